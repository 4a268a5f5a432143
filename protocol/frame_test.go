package protocol_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/protocol"
)

// split cuts a stream of whole frames.
func split(tb testing.TB, stream []byte) (frames [][]byte) {
	tb.Helper()
	for len(stream) > 0 {
		n, err := protocol.FrameBytes(stream)
		require.NoError(tb, err)
		require.Positive(tb, n)
		require.LessOrEqual(tb, n, len(stream))
		frames = append(frames, stream[:n])
		stream = stream[n:]
	}
	return frames
}

func captured(tb testing.TB) (frames [][]byte) {
	tb.Helper()
	files, err := filepath.Glob("testdata/frames/*.bin")
	require.NoError(tb, err)
	require.NotEmpty(tb, files)
	for _, name := range files {
		stream, err := os.ReadFile(name)
		require.NoError(tb, err)
		frames = append(frames, split(tb, stream)...)
	}
	return frames
}

// decode works on a copy, since decoding resolves escapes in place.
func decode(frame []byte) (*protocol.Command, error) {
	c := new(protocol.Command)
	return c, protocol.DecodeFrame(bytes.Clone(frame[4:]), c)
}

func TestCapturedFramesEncodeToTheSameBytes(t *testing.T) {
	for _, frame := range captured(t) {
		c, err := decode(frame)
		require.NoError(t, err)
		require.Equal(t, string(frame), string(protocol.AppendFrame(nil, c)))
	}
}

// The vectors of a Java program that ran RemotingCommand and RocketMQSerializable.
func TestGoldenVectors(t *testing.T) {
	c := &protocol.Command{Code: 14, Version: 479, Ext: protocol.ExtFields(nil).
		Add("queueId", "3").Add("bname", "b").Add("topic", "t").Add("consumerGroup", "g")}

	frame := protocol.AppendFrame(nil, c)
	require.Len(t, frame, 176)
	require.Equal(t, "000000ac000000a8", hex.EncodeToString(frame[:8]))
	//nolint:testifylint // the bytes count, not their meaning
	require.Equal(t, `{"code":14,"extFields":{"queueId":"3","bname":"b","topic":"t","consumerGroup":"g"},"flag":0,"language":"JAVA","opaque":0,"serializeTypeCurrentRPC":"JSON","version":479}`, string(frame[8:]))

	c.Serialization = protocol.RocketMQ
	want := "000e 00 01df 00000000 00000000 00000000 0000003a 0007 71756575654964 00000001 33 0005 626e616d65 00000001 62 0005 746f706963 00000001 74 000d 636f6e73756d657247726f7570 00000001 67"
	frame = protocol.AppendFrame(nil, c)
	require.Equal(t, strings.ReplaceAll(want, " ", ""), hex.EncodeToString(frame[8:]))
	require.Equal(t, byte(1), frame[4])
	back, err := decode(frame)
	require.NoError(t, err)
	require.Equal(t, c.Ext, back.Ext)
	require.Equal(t, int32(14), back.Code)
}

func jsonFrame(header, body string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)+len(body)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(header)))
	return append(append(b, header...), body...)
}

func TestJSONHeaderIsReadAsTolerantlyAsFastjsonDoes(t *testing.T) {
	c, err := decode(jsonFrame(` {"version" : 317 ,"unknown":{"a":[1,{"b":"\"}"},null]},"extFields":{"n":12,"f":1.50,"b":true,"null":null,`+
		`"nested":{"x":"\u0001"},"list":[1, 2],"u":"\u0001\u00e9\ud83d\ude00\ud800\/\"\\","dup":"1","dup":"2"},"opaque":"7","remark":"a\nb",`+
		`"language":"KLINGON","flag":null,"code":200050,"big":123456789012345678901234567890}`, "body"))
	require.NoError(t, err)
	require.Equal(t, int32(317), c.Version)
	require.Equal(t, int32(7), c.Opaque)
	require.Equal(t, int32(200050), c.Code)
	require.Equal(t, int32(0), c.Flag)
	require.Equal(t, "a\nb", string(c.Remark))
	require.Equal(t, "body", string(c.Body))
	require.Equal(t, protocol.LanguageUnknown, c.Language)
	for key, want := range map[string]string{
		"n": "12", "f": "1.50", "b": "true", "nested": `{"x":"\u0001"}`, "list": "[1, 2]",
		"u": "\x01\u00e9\U0001F600\uFFFD/\"\\", "dup": "2",
	} {
		require.Equal(t, want, c.Ext.Get(key), key)
	}
	_, present := c.Ext.Lookup("null")
	require.False(t, present)

	c, err = decode(jsonFrame(`{"code":1,"language":"GO","version":317,"opaque":1,"flag":0,"remark":"","extFields":{}}`, ""))
	require.NoError(t, err)
	require.Equal(t, protocol.Go, c.Language)
	//nolint:testifylint // the bytes count, not their meaning
	require.Equal(t, `{"code":1,"extFields":{},"flag":0,"language":"GO","opaque":1,"remark":"","version":317}`, string(protocol.AppendFrame(nil, c)[8:]))

	c, err = decode(jsonFrame(`{"opaque":1.0,"version":-0}`, ""))
	require.NoError(t, err)
	require.Equal(t, int32(1), c.Opaque)
}

func TestMalformedFramesAreRefused(t *testing.T) {
	binaryHeader := protocol.AppendFrame(nil, &protocol.Command{Serialization: protocol.RocketMQ, Remark: []byte("r"), Ext: protocol.ExtFields(nil).Add("k", "v")})[4:]
	broken := func(at int, with ...byte) []byte {
		b := bytes.Clone(binaryHeader)
		copy(b[at:], with)
		return b
	}
	deep := `{"x":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`
	many := `{"extFields":{` + strings.Repeat(`"a":"",`, protocol.ExtFieldsMax) + `"b":""}}`
	for name, body := range map[string][]byte{
		"empty":                   {},
		"no header":               {0, 0, 0, 0},
		"header beyond frame":     {0, 0, 0, 3, '{', '}'},
		"header length 24 bit":    append([]byte{0, 0xff, 0xff, 0xff}, make([]byte, 100)...),
		"unknown serialization":   append([]byte{2, 0, 0, 2}, "{}"...),
		"negative serialization":  append([]byte{0xff, 0, 0, 2}, "{}"...),
		"not an object":           jsonFrame(`[]`, "")[4:],
		"unterminated object":     jsonFrame(`{"code":1`, "")[4:],
		"unterminated string":     jsonFrame(`{"code`, "")[4:],
		"unterminated escape":     jsonFrame(`{"remark":"\`, "")[4:],
		"bad escape":              jsonFrame(`{"remark":"\q"}`, "")[4:],
		"bad unicode":             jsonFrame(`{"remark":"\u12g4"}`, "")[4:],
		"trailing bytes":          jsonFrame(`{"code":1}x`, "")[4:],
		"code beyond 32 bits":     jsonFrame(`{"code":2147483648}`, "")[4:],
		"code beyond 64 bits":     jsonFrame(`{"code":99999999999999999999}`, "")[4:],
		"code not a number":       jsonFrame(`{"code":"x"}`, "")[4:],
		"nesting":                 jsonFrame(deep, "")[4:],
		"too many fields":         jsonFrame(many, "")[4:],
		"bad literal":             jsonFrame(`{"x":nil}`, "")[4:],
		"binary too short":        append([]byte{1, 0, 0, 20}, make([]byte, 20)...),
		"binary remark length":    broken(4+13, 0, 0, 1, 0),
		"binary remark negative":  broken(4+13, 0xff, 0xff, 0xff, 0xff),
		"binary ext length":       broken(4+18, 0, 0, 0, 9),
		"binary ext short":        broken(4+18, 0, 0, 0, 7),
		"binary ext negative":     broken(4+18, 0x80, 0, 0, 0),
		"binary key length":       broken(4+22, 0x7f, 0xff),
		"binary key negative":     broken(4+22, 0xff, 0xff),
		"binary value length":     broken(4+25, 0, 0, 0, 2),
		"binary value length max": broken(4+25, 0x7f, 0xff, 0xff, 0xff),
	} {
		c := new(protocol.Command)
		err := protocol.DecodeFrame(bytes.Clone(body), c)
		require.ErrorIs(t, err, protocol.ErrFrame, name)
	}
}

func TestFrameLengthIsJudgedBeforeAnythingElse(t *testing.T) {
	for _, tc := range []struct {
		total, mark uint32
		want        int // 0: refused
	}{
		{0, 0, 0},
		{3, 2, 0},
		{4, 0, 0},
		{5, 1, 9},
		{6, 2, 10},
		{6, 3, 0},
		{0xffffffff, 2, 0},
		{0x7fffffff, 2, 0},
		{0x80000000, 2, 0},
		{protocol.FrameBytesMax - 4, 2, protocol.FrameBytesMax},
		{protocol.FrameBytesMax - 3, 2, 0},
		{1 << 20, protocol.HeaderBytesMax, 1<<20 + 4},
		{1 << 20, protocol.HeaderBytesMax + 1, 0},
		{100, 1<<24 | 21, 104},
		{100, 2<<24 | 21, 0},
		{binary.BigEndian.Uint32([]byte("PRI ")), binary.BigEndian.Uint32([]byte("* HT")), 0},
		{binary.BigEndian.Uint32([]byte("GET ")), binary.BigEndian.Uint32([]byte("/ HT")), 0},
	} {
		b := binary.BigEndian.AppendUint32(nil, tc.total)
		b = binary.BigEndian.AppendUint32(b, tc.mark)
		n, err := protocol.FrameBytes(b)
		require.Equal(t, tc.want, n, "%x %x", tc.total, tc.mark)
		require.Equal(t, tc.want == 0, errors.Is(err, protocol.ErrFrame))
		n, err = protocol.FrameBytes(b[:7])
		require.NoError(t, err)
		require.Zero(t, n)
	}
}

func TestLargestLegalPropertiesPass(t *testing.T) {
	c := &protocol.Command{Code: 310, Ext: protocol.ExtFields(nil).Add("i", strings.Repeat("\x01", math.MaxInt16))}
	frame := protocol.AppendFrame(nil, c)
	n, err := protocol.FrameBytes(frame)
	require.NoError(t, err)
	require.Len(t, frame, n)
	back, err := decode(frame)
	require.NoError(t, err)
	require.Equal(t, c.Ext, back.Ext)
}

func TestBinaryHeaderFallsBackToJSONWhereItCannotHoldTheCommand(t *testing.T) {
	for _, c := range []protocol.Command{{Code: 200050}, {Version: 40000}, {Ext: protocol.ExtFields{{Key: make([]byte, 40000)}}}} {
		c.Serialization = protocol.RocketMQ
		frame := protocol.AppendFrame(nil, &c)
		require.Equal(t, byte(protocol.JSON), frame[4])
		back, err := decode(frame)
		require.NoError(t, err)
		require.Equal(t, c.Code, back.Code)
		require.Equal(t, c.Version, back.Version)
	}
}

func FuzzDecodeFrame(f *testing.F) {
	for i, frame := range captured(f) {
		if i%16 == 0 {
			f.Add(frame[4:])
		}
		if c, err := decode(frame); err == nil && i%16 == 8 {
			c.Serialization = protocol.RocketMQ
			f.Add(protocol.AppendFrame(nil, c)[4:])
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c := new(protocol.Command)
		if err := protocol.DecodeFrame(bytes.Clone(b), c); err != nil {
			require.ErrorIs(t, err, protocol.ErrFrame)
			return
		}
		// What was understood is written and understood again as the same, in both serializations.
		for _, kind := range []protocol.Serialization{protocol.JSON, protocol.RocketMQ} {
			c.Serialization = kind
			frame := protocol.AppendFrame(nil, c)
			back, err := decode(frame)
			require.NoError(t, err)
			require.Equal(t, [5]int32{c.Code, c.Version, c.Opaque, c.Flag, int32(len(c.Ext))},
				[5]int32{back.Code, back.Version, back.Opaque, back.Flag, int32(len(back.Ext))})
			for i := range c.Ext {
				require.Equal(t, string(c.Ext[i].Key), string(back.Ext[i].Key))
				require.Equal(t, string(c.Ext[i].Value), string(back.Ext[i].Value))
			}
			require.Equal(t, string(c.Remark), string(back.Remark))
			require.Equal(t, string(c.Body), string(back.Body))
			if c.Language <= protocol.NodeJS { // an unknown one is left out of JSON, and a missing one means Java
				require.Equal(t, string(frame), string(protocol.AppendFrame(nil, back)))
			}
		}
	})
}

func benchmarkDecode(b *testing.B, kind protocol.Serialization) {
	b.Helper()
	frame := sendFrame(kind)
	buf := make([]byte, len(frame))
	var c protocol.Command
	var view protocol.SendView
	b.SetBytes(int64(len(frame)))
	b.ReportAllocs()
	for b.Loop() {
		copy(buf, frame)
		if err := protocol.DecodeFrame(buf[4:], &c); err != nil {
			b.Fatal(err)
		}
		if err := protocol.DecodeSendV2(c.Ext, &view); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeSendJSON(b *testing.B)   { benchmarkDecode(b, protocol.JSON) }
func BenchmarkDecodeSendBinary(b *testing.B) { benchmarkDecode(b, protocol.RocketMQ) }

func BenchmarkEncodeResponseJSON(b *testing.B) {
	c := protocol.Command{Flag: 1, Version: 479, Opaque: 12345, Ext: protocol.ExtFields(nil).
		Add("queueId", "3").Add("msgId", "7F00000100002A9F00000000000004D2").Add("queueOffset", "123456").Add("durability", "local")}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = protocol.AppendFrame(buf[:0], &c)
	}
}

func sendFrame(kind protocol.Serialization) []byte {
	return protocol.AppendFrame(nil, &protocol.Command{
		Code: 310, Version: 479, Opaque: 4711, Serialization: kind, Body: make([]byte, 1024),
		Ext: protocol.ExtFields(nil).Add("a", "producers").Add("b", "TopicTest").Add("c", "TBW102").Add("d", "4").Add("e", "2").
			Add("f", "0").Add("g", "1796023006071").Add("h", "0").Add("i", "KEYS\x01key-0\x02UNIQ_KEY\x01FD0000000000000000000000000000000126D8930946E0996E84B770000\x02WAIT\x01true\x02TAGS\x01TagA\x02").
			Add("j", "0").Add("k", "false").Add("m", "false").Add("n", "broker-a"),
	})
}

func TestCapturedFramesHaveBothHeaders(t *testing.T) {
	var sends, count [2]int
	for _, frame := range captured(t) {
		c, err := decode(frame)
		require.NoError(t, err)
		count[c.Serialization]++
		if c.Code == 310 && !c.Response() {
			sends[c.Serialization]++
			var v protocol.SendView
			require.NoError(t, protocol.DecodeSendV2(c.Ext, &v))
			require.NotEmpty(t, v.Properties)
		}
	}
	require.Greater(t, count[protocol.JSON], 200)
	require.Greater(t, count[protocol.RocketMQ], 20)
	require.Positive(t, sends[protocol.JSON])
	require.Positive(t, sends[protocol.RocketMQ])
}
