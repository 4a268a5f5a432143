package store_test

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/store"
	"github.com/quorate/quorate/store/consumequeue"
)

// A queue file that was damaged after a clean stop costs the message of its damaged entry, and no memory or other message.
func TestADamagedQueueEntryHidesOnlyItsOwnMessage(t *testing.T) {
	cfg := config(crashable(t))
	s := run(t, cfg)
	const count, bad = 40, 7
	var at []store.Appended
	for i := range count {
		at = append(at, appendOne(t, s.Store, testMessage("T", 0, i)))
	}
	s.settled(t)
	s.close(t)
	const name = root + "/consumequeue/T/0/00000000000000000000"
	for what, unit := range map[string]consumequeue.Unit{
		"a size of 2 GiB":        {PhysicalOffset: at[bad].Begin, Size: 1<<31 - 2},
		"a size of 8 MiB":        {PhysicalOffset: at[bad].Begin, Size: 8 << 20},
		"2 GiB behind the log":   {PhysicalOffset: 1 << 40, Size: 1<<31 - 2},
		"another size":           {PhysicalOffset: at[bad].Begin, Size: 100},
		"a size of 3":            {PhysicalOffset: at[bad].Begin, Size: 3},
		"the middle of a record": {PhysicalOffset: at[bad].Begin + 9, Size: 100},
		"behind the log":         {PhysicalOffset: 1 << 40, Size: 100},
		"far behind the log":     {PhysicalOffset: 1<<63 - 10, Size: 100},
	} {
		t.Run(what, func(t *testing.T) {
			f, err := cfg.FS.Open(name)
			require.NoError(t, err)
			b := binary.BigEndian.AppendUint64(nil, uint64(unit.PhysicalOffset))
			_, err = f.WriteAt(binary.BigEndian.AppendUint32(b, uint32(unit.Size)), bad*consumequeue.UnitSize)
			require.NoError(t, err)
			require.NoError(t, f.Close())
			s := open(t, cfg)
			defer func() { require.NoError(t, s.Close()) }()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			var got []int64
			for next := int64(0); next < count; {
				var g store.GetResult
				if err := s.Get("T", 0, next, 32, 1<<20, nil, &g); err != nil {
					require.ErrorIs(t, err, store.ErrCorrupt)
					require.EqualValues(t, bad, next)
					next++
					continue
				}
				for _, r := range records(t, &g) {
					got = append(got, r.QueueOffset)
				}
				require.Greater(t, g.NextBegin, next)
				next = g.NextBegin
			}
			runtime.ReadMemStats(&after)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20))
			require.Len(t, got, count-1)
			require.NotContains(t, got, int64(bad))
		})
	}
}

// A client chooses the offset of a message it wants to see, and the bytes of the bodies.
func TestNoRecordStartsWithinABody(t *testing.T) {
	s := run(t, config(crashable(t)))
	inner := message.AppendRecord(nil, testMessage("T", 0, 1), 12345, 0, 1)
	m := testMessage("T", 0, 0)
	m.Body = inner
	a := appendOne(t, s.Store, m)
	s.settled(t)
	v, err := s.RecordAt(a.Begin)
	require.NoError(t, err)
	defer v.Release()
	for i := range len(v.Bytes) - 1 {
		_, err := s.RecordAt(a.Begin + int64(i) + 1)
		require.ErrorIs(t, err, store.ErrRecordNotFound)
	}
}

// A supervisor starts a broker again and again: what the first start refuses to cut, the next ones refuse as well. The
// store of another product has no checkpoint that says how much was durable.
func TestCorruptionIsRefusedByEveryStart(t *testing.T) {
	cfg := config(crashable(t))
	s := run(t, cfg)
	var at []store.Appended
	for i := range 40 {
		at = append(at, appendOne(t, s.Store, testMessage("T", 0, i)))
	}
	s.settled(t)
	s.close(t)
	require.NoError(t, cfg.FS.Remove(root+"/checkpoint"))
	f, err := cfg.FS.Open(fmt.Sprintf("%s/commitlog/%020d", root, 0))
	require.NoError(t, err)
	_, err = f.WriteAt([]byte{0xee}, at[7].Begin+100)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	for range 3 {
		_, err := store.Open(cfg, slog.New(slog.DiscardHandler))
		require.ErrorIs(t, err, store.ErrCorrupt)
		require.ErrorContains(t, err, fmt.Sprintf("offset %d (file %020d)", at[7].Begin, 0))
	}
}
