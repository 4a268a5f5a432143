package message_test

import (
	"encoding/hex"
	"errors"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/message"
)

const goldenRecord = `0000009b daa320a7 3610a686 00000003 00000000 0000000000000007 0000000000000400 00000000 0000018bcfe56800
 7f000001 00009c40 0000018bcfe5687b c0a80102 00002a9f 00000000 0000000000000000 00000005 68656c6c6f 09
 546f70696354657374 0032
 554e49515f4b455901374630303030303130303031303030303030303030303030303030303031025441475301546167 4102`

func unhex(tb testing.TB, text string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
	require.NoError(tb, err)
	return b
}

func goldenMessage() message.Message {
	return message.Message{
		Topic: "TopicTest", QueueID: 3, Body: []byte("hello"),
		Properties:    message.Properties(nil).Append("UNIQ_KEY", "7F0000010001000000000000000001").Append("TAGS", "TagA"),
		BornTimestamp: 1700000000000, BornHost: netip.MustParseAddrPort("127.0.0.1:40000"),
		StoreHost: netip.MustParseAddrPort("192.168.1.2:10911"),
	}
}

func TestRecordMatchesTheGoldenVector(t *testing.T) {
	m := goldenMessage()
	want := unhex(t, goldenRecord)
	size, err := message.RecordSize(&m)
	require.NoError(t, err)
	require.Equal(t, 155, size)
	require.Equal(t, want, message.AppendRecord(nil, &m, 1024, 7, 1700000000123))

	r, err := message.DecodeRecord(want, true)
	require.NoError(t, err)
	require.EqualValues(t, 907060870, r.BodyCRC)
	require.EqualValues(t, 7, r.QueueOffset)
	require.EqualValues(t, 1024, r.PhysicalOffset)
	require.Equal(t, "TagA", r.Properties.Get(message.Tags))
	back := r.Message()
	require.Empty(t, cmp.Diff(m, back, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })))
}

// Every record of the stores that Java brokers wrote must come out of decode and encode as the same bytes.
func TestJavaCommitLogsEncodeToTheSameBytes(t *testing.T) {
	files, err := filepath.Glob("testdata/commitlog-java-*")
	require.NoError(t, err)
	require.Len(t, files, 4)
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			log, err := os.ReadFile(name)
			require.NoError(t, err)
			var records, blanks int
			for at := 0; at < len(log); {
				r, err := message.DecodeRecord(log[at:], true)
				if errors.Is(err, message.ErrBlank) {
					require.EqualValues(t, len(log)-at, r.Size)
					require.Equal(t, message.AppendBlank(nil, r.Size), log[at:at+message.BlankSize])
					blanks++
					break
				}
				if errors.Is(err, message.ErrNoRecord) {
					require.Equal(t, make([]byte, len(log)-at), log[at:], "bytes after the end at %d", at)
					break
				}
				require.NoError(t, err, "offset %d", at)
				m := r.Message()
				got := message.AppendRecord(nil, &m, r.PhysicalOffset, r.QueueOffset, r.StoreTimestamp)
				require.Equal(t, log[at:at+int(r.Size)], got, "offset %d", at)
				records++
				at += int(r.Size)
			}
			require.Greater(t, records, 10)
			require.Equal(t, strings.Contains(name, "rolled-0"), blanks == 1)
		})
	}
}

func TestRecordShapesRoundTrip(t *testing.T) {
	v4, v6 := netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("[2001:db8::1]:65535")
	mapped := netip.MustParseAddrPort("[::ffff:10.0.0.1]:1")
	for name, c := range map[string]struct {
		change func(*message.Message)
		size   int
		flags  message.SysFlag
		magic  uint32
	}{
		"smallest":          {func(*message.Message) {}, 92, 0, message.MagicV1},
		"born v6":           {func(m *message.Message) { m.BornHost = v6 }, 104, message.FlagBornHostV6, message.MagicV1},
		"store v6":          {func(m *message.Message) { m.StoreHost = v6 }, 104, message.FlagStoreHostV6, message.MagicV1},
		"both v6":           {func(m *message.Message) { m.BornHost, m.StoreHost = v6, v6 }, 116, 0x30, message.MagicV1},
		"mapped is v4":      {func(m *message.Message) { m.BornHost = mapped }, 92, 0, message.MagicV1},
		"stale v6 bits":     {func(m *message.Message) { m.SysFlag = 0x30; m.BornHost = v4 }, 92, 0, message.MagicV1},
		"topic 127 is v1":   {func(m *message.Message) { m.Topic = strings.Repeat("t", 127) }, 218, 0, message.MagicV1},
		"topic 128 is v2":   {func(m *message.Message) { m.Topic = strings.Repeat("t", 128) }, 220, 0, message.MagicV2},
		"longest topic":     {func(m *message.Message) { m.Topic = strings.Repeat("t", 32767) }, 32859, 0, message.MagicV2},
		"longest props":     {func(m *message.Message) { m.Properties = make([]byte, 32767) }, 92 + 32767, 0, message.MagicV1},
		"negative numbers":  {func(m *message.Message) { m.QueueID, m.Flag, m.ReconsumeTimes = -1, -2, -3 }, 92, 0, message.MagicV1},
		"prepared offset":   {func(m *message.Message) { m.PreparedTransactionOffset = math.MaxInt64 }, 92, 0, message.MagicV1},
		"transaction flags": {func(m *message.Message) { m.SysFlag = message.TransactionRollback }, 92, 0x0C, message.MagicV1},
	} {
		t.Run(name, func(t *testing.T) {
			m := message.Message{Topic: "t"}
			c.change(&m)
			size, err := message.RecordSize(&m)
			require.NoError(t, err)
			require.Equal(t, c.size, size)
			b := message.AppendRecord([]byte("before"), &m, 5, 6, 7)[6:]
			require.Len(t, b, size)
			gotSize, magic := message.RecordHead(b)
			require.EqualValues(t, size, gotSize)
			require.Equal(t, c.magic, magic)
			r, err := message.DecodeRecord(append(b, "behind"...), true)
			require.NoError(t, err)
			require.Equal(t, c.flags, r.SysFlag)
			require.Equal(t, m.Topic, string(r.Topic))
			require.Equal(t, m.QueueID, r.QueueID)
			require.Equal(t, m.Flag, r.Flag)
			require.Equal(t, m.ReconsumeTimes, r.ReconsumeTimes)
			require.Equal(t, m.PreparedTransactionOffset, r.PreparedTransactionOffset)
			require.Len(t, r.Properties, len(m.Properties))
			again := r.Message()
			require.Equal(t, b, message.AppendRecord(nil, &again, 5, 6, 7))
		})
	}
}

func TestRecordSizeRefusesWhatTheFormatCannotHold(t *testing.T) {
	_, err := message.RecordSize(&message.Message{})
	require.ErrorIs(t, err, message.ErrTopicIllegal)
	_, err = message.RecordSize(&message.Message{Topic: strings.Repeat("t", message.TopicBytesMax+1)})
	require.ErrorIs(t, err, message.ErrTopicIllegal)
	_, err = message.RecordSize(&message.Message{Topic: "t", Properties: make([]byte, message.PropertiesBytesMax+1)})
	require.ErrorIs(t, err, message.ErrPropertiesTooLong)
}

func TestDecodeRecordNamesWhatIsWrong(t *testing.T) {
	good := unhex(t, goldenRecord)
	change := func(at int, b ...byte) []byte {
		c := append([]byte(nil), good...)
		copy(c[at:], b)
		return c
	}
	for name, c := range map[string]struct {
		in   []byte
		want error
	}{
		"empty":                   {nil, message.ErrIncomplete},
		"seven bytes":             {good[:7], message.ErrIncomplete},
		"zeros":                   {make([]byte, 200), message.ErrNoRecord},
		"filler":                  {message.AppendBlank(nil, 4096), message.ErrBlank},
		"cut":                     {good[:len(good)-1], message.ErrIncomplete},
		"size zero":               {change(0, 0, 0, 0, 0), message.ErrMalformed},
		"size negative":           {change(0, 0xFF), message.ErrMalformed},
		"size one less":           {change(3, 0x9a), message.ErrMalformed},
		"body length negative":    {change(84, 0x80), message.ErrMalformed},
		"body length one more":    {change(87, 6), message.ErrMalformed},
		"body bit":                {change(88, 'H'), message.ErrChecksum},
		"checksum bit":            {change(8, 0x37), message.ErrChecksum},
		"topic length negative":   {change(93, 0x80), message.ErrMalformed},
		"v2 magic on a v1 record": {change(7, 0xAB), message.ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := message.DecodeRecord(c.in, true)
			require.ErrorIs(t, err, c.want)
		})
	}
	_, err := message.DecodeRecord(change(88, 'H'), false)
	require.NoError(t, err, "without the checksum a changed body is not looked at")
}

func TestBatchMatchesTheGoldenVector(t *testing.T) {
	want := unhex(t, `00000034 00000000 00000000 00000000 00000002 6162 001c
 4b455953016b310257414954017472756502544147530154616741 02 00000023 00000000 00000000 00000000 00000003 636465 000a
 574149540174727565 02`)
	entries, err := message.DecodeBatch(want, 2)
	require.NoError(t, err)
	require.Len(t, entries, 2)
	require.Equal(t, "ab", string(entries[0].Body))
	require.Equal(t, "k1", entries[0].Properties.Get(message.Keys))
	require.Equal(t, "cde", string(entries[1].Body))
	require.Equal(t, map[string]string{"WAIT": "true"}, message.ParseProperties(entries[1].Properties))
	var got []byte
	for _, e := range entries {
		got = message.AppendBatchEntry(got, e)
	}
	require.Equal(t, want, got)

	_, err = message.DecodeBatch(want, 1)
	require.ErrorIs(t, err, message.ErrBatch)
	for n := 1; n < len(want); n++ {
		if n == 0x34 {
			continue
		}
		_, err = message.DecodeBatch(want[:n], 2)
		require.ErrorIs(t, err, message.ErrBatch, "%d bytes", n)
	}
}

func TestHotPathsDoNotAllocate(t *testing.T) {
	m := goldenMessage()
	m.Body = make([]byte, 1024)
	buf := make([]byte, 0, 4096)
	props := append(make(message.Properties, 0, 4096), m.Properties...)
	record := message.AppendRecord(nil, &m, 1, 2, 3)
	batch := message.AppendBatchEntry(nil, message.BatchEntry{Body: m.Body})
	entries := make([]message.BatchEntry, 0, 4)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		buf = message.AppendRecord(buf[:0], &m, 1024, 7, 9)
		if _, err := message.DecodeRecord(record, true); err != nil {
			t.Error(err)
		}
		entries, _ = message.AppendBatchEntries(entries[:0], batch, 1)
		_, _ = m.Properties.Lookup("TAGS")
		p := props.Set("TAGS", "another").Set("NEW", "x").Without("UNIQ_KEY")
		_ = message.JavaHash(p)
	}))
}

func BenchmarkAppendRecord1K(b *testing.B) {
	m := goldenMessage()
	m.Body = make([]byte, 1024)
	buf := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		buf = message.AppendRecord(buf[:0], &m, 1024, 7, 9)
	}
	b.SetBytes(int64(len(buf)))
}

func BenchmarkDecodeRecord1K(b *testing.B) {
	m := goldenMessage()
	m.Body = make([]byte, 1024)
	buf := message.AppendRecord(nil, &m, 1024, 7, 9)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := message.DecodeRecord(buf, true); err != nil {
			b.Fatal(err)
		}
	}
}
