package message_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/message"
)

func FuzzRecord(f *testing.F) {
	f.Add(unhex(f, goldenRecord))
	log, err := os.ReadFile("testdata/commitlog-java-5.5.0")
	require.NoError(f, err)
	for at := 0; at < len(log); {
		r, err := message.DecodeRecord(log[at:], true)
		if err != nil {
			break
		}
		f.Add(log[at : at+int(r.Size)])
		at += int(r.Size)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := message.DecodeRecord(b, true)
		if err != nil {
			return
		}
		if r.BornHost.Addr().Is4In6() || r.StoreHost.Addr().Is4In6() || len(r.Topic) == 0 {
			return // read, but never written
		}
		m := r.Message()
		size, err := message.RecordSize(&m)
		require.NoError(t, err)
		again := message.AppendRecord(nil, &m, r.PhysicalOffset, r.QueueOffset, r.StoreTimestamp)
		require.Len(t, again, size)
		r2, err := message.DecodeRecord(again, true)
		require.NoError(t, err)
		require.Equal(t, r.Body, r2.Body)
		require.Equal(t, r.Topic, r2.Topic)
		require.Equal(t, r.Properties, r2.Properties)
		require.Equal(t, r.SysFlag, r2.SysFlag)
		require.Equal(t, r.BornHost, r2.BornHost)
		require.Equal(t, r.StoreHost, r2.StoreHost)
	})
}

func FuzzBatch(f *testing.F) {
	f.Add(message.AppendBatchEntry(message.AppendBatchEntry(nil,
		message.BatchEntry{Body: []byte("ab"), Properties: encoded("TAGS=x;")}), message.BatchEntry{Flag: -1}))
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, err := message.DecodeBatch(b, 1000)
		if err != nil {
			return
		}
		var again []byte
		for _, e := range entries {
			again = message.AppendBatchEntry(again, e)
		}
		require.Len(t, again, len(b))
		got, err := message.DecodeBatch(again, 1000)
		require.NoError(t, err)
		require.Equal(t, entries, got)
	})
}

func FuzzProperties(f *testing.F) {
	for _, seed := range []string{"", "a=1;b=2;", "a=1", "a==;;=;", "a=1;a=2;a;"} {
		f.Add([]byte(encoded(seed)), "a", "v")
	}
	f.Fuzz(func(t *testing.T, b []byte, key, value string) {
		p := message.Properties(bytes.Clone(b))
		pairs := message.ParseProperties(p)
		for k, v := range pairs {
			require.Equal(t, v, p.Get(k))
		}
		got, ok := p.Lookup(key)
		want, wantOK := pairs[key]
		require.Equal(t, wantOK, ok)
		require.Equal(t, want, string(got))
		require.Equal(t, pairs, message.ParseProperties(message.MakeProperties(pairs)))
		if key == "" || value == "" || bytes.ContainsAny([]byte(key+value), "\x01\x02") {
			return
		}
		set := message.Properties(bytes.Clone(b)).Set(key, value)
		pairs[key] = value
		require.Equal(t, pairs, message.ParseProperties(set))
		delete(pairs, key)
		require.Equal(t, pairs, message.ParseProperties(set.Without(key)))
	})
}

func FuzzOffsetID(f *testing.F) {
	f.Add("C0A8010200002A9F0000000000000400")
	f.Add("20010DB80000000000000000000000010000FFFF7FFFFFFFFFFFFFFF")
	f.Fuzz(func(t *testing.T, id string) {
		host, offset, err := message.ParseOffsetID(id)
		if err != nil || host.Addr().Is4In6() {
			return
		}
		require.Equal(t, string(bytes.ToUpper([]byte(id))), message.OffsetID(host, offset))
	})
}
