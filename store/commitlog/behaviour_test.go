package commitlog_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/vfs"
	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/store/commitlog"
	"github.com/quorate/quorate/store/segment"
)

// Stores that Java brokers wrote, after kill -9 (with the empty file prepared ahead) and after a clean stop.
func TestJavaStoresAreReadRecordByRecord(t *testing.T) {
	const size = 16384
	for name, c := range map[string]struct {
		files   []string
		records int
	}{
		"5.5.0 killed": {[]string{"commitlog-java-5.5.0", ""}, 0},
		"4.9.7 killed": {[]string{"commitlog-java-4.9.7", ""}, 0},
		"5.5.0 clean":  {[]string{"commitlog-java-5.5.0"}, 0},
		"5.5.0 rolled": {[]string{"commitlog-java-5.5.0-rolled-0", "commitlog-java-5.5.0-rolled-1"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var whole []byte
			for i, file := range c.files {
				b := make([]byte, size)
				if file != "" {
					var err error
					b, err = os.ReadFile(filepath.Join("../../message/testdata", file))
					require.NoError(t, err)
				}
				whole = append(whole, b...)
				require.NoError(t, os.WriteFile(filepath.Join(dir, segment.Name(int64(i*size))), b, 0o600))
			}
			cfg := testConfig(dir)
			cfg.FileSize = size
			l := start(t, cfg, vfs.OS(), commitlog.Recovery{CheckCRC: true})
			require.Empty(t, l.found.Torn)
			require.Greater(t, len(l.records), 10)
			for _, r := range l.records {
				v, err := l.Record(r.PhysicalOffset)
				require.NoError(t, err)
				require.Equal(t, whole[r.PhysicalOffset:r.PhysicalOffset+int64(r.Size)], v.Bytes)
				v.Release()
			}
			var q commitlog.QueueCounter
			at := l.append(t, &q, msg("T", body(1)))
			require.NoError(t, l.Durable().Wait(t.Context(), at.End))
			require.Equal(t, whole[:l.found.End], readAll(t, l.Log, 0, l.found.End), "what Java wrote is untouched")
			l.stop()
		})
	}
}

func readAll(t *testing.T, l *commitlog.Log, from, to int64) []byte {
	t.Helper()
	var all []byte
	b := make([]byte, 3000)
	for from < to {
		n, err := l.Read(b[:min(int64(len(b)), to-from)], from)
		require.NoError(t, err)
		require.Positive(t, n)
		all = append(all, b[:n]...)
		from += int64(n)
	}
	return all
}

func TestARefusedAppendTakesNothing(t *testing.T) {
	l := start(t, smallConfig(), vfs.NewCrashable(), commitlog.Recovery{})
	var q commitlog.QueueCounter
	// Close to the end of a file, where an append would put a filler first.
	m := msg("T", make([]byte, 5000))
	for range 3 {
		l.append(t, &q, m)
	}
	end := l.Appended().Load()
	require.Greater(t, end+int64(len(m.Body)), int64(16<<10))
	fenced := errors.New("fenced")
	_, err := l.Append(&m, func() error { return fenced }, &q)
	require.Equal(t, fenced, err, "the error of allowed is returned as it is")
	_, offsets, err := l.AppendBatch([]message.Message{m}, func() error { return fenced }, &q, nil)
	require.Equal(t, fenced, err)
	require.Empty(t, offsets)
	big := msg("T", make([]byte, 6<<10+1))
	_, err = l.Append(&big, nil, &q)
	require.ErrorIs(t, err, commitlog.ErrTooLarge)
	_, _, err = l.AppendBatch([]message.Message{m, m}, nil, &q, nil)
	require.ErrorIs(t, err, commitlog.ErrTooLarge)
	_, _, err = l.AppendBatch(nil, nil, &q, nil)
	require.Error(t, err)
	noTopic := msg("", nil)
	_, err = l.Append(&noTopic, nil, &q)
	require.ErrorIs(t, err, message.ErrTopicIllegal)
	require.EqualValues(t, 3, q.Next())
	require.Equal(t, end, l.Appended().Load())

	at, err := l.Append(&m, func() error { return nil }, &q)
	require.NoError(t, err)
	require.EqualValues(t, 16<<10, at.Begin, "the next file begins after a filler")
	filler := readAll(t, l.Log, end, 16<<10)
	require.Equal(t, message.AppendBlank(nil, int32(len(filler))), filler[:message.BlankSize])
	require.Equal(t, make([]byte, len(filler)-message.BlankSize), filler[message.BlankSize:])
	_, err = l.Record(end)
	require.ErrorIs(t, err, commitlog.ErrNotFound)
}

func TestABatchLiesInOneFileWithRunningQueueOffsets(t *testing.T) {
	l := start(t, smallConfig(), vfs.NewCrashable(), commitlog.Recovery{})
	var q commitlog.QueueCounter
	q.Set(100)
	batch := []message.Message{msg("T", body(1)), msg("T", body(2)), msg("T", body(3))}
	for range 20 {
		before := q.Next()
		at, offsets, err := l.AppendBatch(batch, nil, &q, make([]int64, 0, 3))
		require.NoError(t, err)
		require.Equal(t, at.Begin, offsets[0])
		require.Equal(t, at.Begin/(16<<10), (at.End-1)/(16<<10), "one file")
		require.Equal(t, before, at.QueueOffset)
		for i, offset := range offsets {
			v, err := l.Record(offset)
			require.NoError(t, err)
			r, err := message.DecodeRecord(v.Bytes, true)
			require.NoError(t, err)
			require.Equal(t, before+int64(i), r.QueueOffset)
			require.Equal(t, batch[i].Body, r.Body)
			v.Release()
		}
	}
}

func TestPreparedAndRolledBackMessagesTakeNoQueueOffset(t *testing.T) {
	l := start(t, smallConfig(), vfs.NewCrashable(), commitlog.Recovery{})
	var q commitlog.QueueCounter
	q.Set(7)
	for _, c := range []struct {
		flag      message.SysFlag
		got, next int64
	}{
		{message.TransactionPreparedFlag, 0, 7},
		{message.TransactionRollback, 0, 7},
		{message.TransactionCommit, 7, 8},
		{message.TransactionNone, 8, 9},
	} {
		m := msg("T", body(1))
		m.SysFlag = c.flag
		at, err := l.Append(&m, nil, &q)
		require.NoError(t, err)
		require.Equal(t, c.got, at.QueueOffset)
		require.Equal(t, c.next, q.Next())
	}
}

// A replica that takes another log's bytes, in pieces that cut records, has the same log, and recovers to its last whole
// record.
func TestAReplicaTakesRawBytes(t *testing.T) {
	master, _ := filled(t, 40)
	from := start(t, smallConfig(), master, commitlog.Recovery{})
	fsys := vfs.NewCrashable()
	l := start(t, smallConfig(), fsys, commitlog.Recovery{})
	end := from.Appended().Load()
	for at := int64(0); at < end-100; {
		b := make([]byte, 777)
		n, err := from.Read(b, at)
		require.NoError(t, err)
		n = min(n, int(end-100-at))
		require.NoError(t, l.AppendRaw(b[:n], at, func() error { return nil }))
		l.Kick(false)
		at += int64(n)
		require.ErrorIs(t, l.AppendRaw(b[:n], at+1, nil), commitlog.ErrNotNext)
		require.ErrorIs(t, l.AppendRaw(b[:n], at, func() error { return io.ErrNoProgress }), io.ErrNoProgress)
	}
	require.NoError(t, l.Durable().Wait(t.Context(), end-100))
	require.Equal(t, readAll(t, from.Log, 0, end-100), readAll(t, l.Log, 0, end-100))
	l.stop()
	again := start(t, smallConfig(), fsys, commitlog.Recovery{})
	require.Len(t, again.records, 39)
	require.Equal(t, from.records[:39], again.records)
}

func TestAnEmptyReplicaStartsAtItsMastersFile(t *testing.T) {
	fsys := vfs.NewCrashable()
	cfg := smallConfig()
	l, err := commitlog.Open(cfg, fsys, quiet)
	require.NoError(t, err)
	_, err = l.Recover(commitlog.Recovery{}, nil)
	require.NoError(t, err)
	require.Error(t, l.StartAt(5))
	require.NoError(t, l.StartAt(3*cfg.FileSize))
	require.Equal(t, 3*cfg.FileSize, l.Begin())
	require.NoError(t, l.Close())
}

func TestTruncationIsForGoodAndTheLogGoesOn(t *testing.T) {
	fsys, at := filled(t, 60)
	l := start(t, smallConfig(), fsys, commitlog.Recovery{})
	cut := at[20].Begin
	waiting := make(chan error, 1)
	go func() { waiting <- l.Durable().Wait(t.Context(), at[59].End+1) }()
	require.Eventually(t, func() bool {
		require.NoError(t, l.TruncateTo(cut))
		select {
		case err := <-waiting:
			require.ErrorIs(t, err, commitlog.ErrCut)
			return true
		default: // not waiting yet: put something behind the cut again
			m := msg("T", body(1))
			_, err := l.Append(&m, nil, new(commitlog.QueueCounter))
			require.NoError(t, err)
			return false
		}
	}, 10*time.Second, time.Millisecond)
	for _, w := range []int64{l.Appended().Load(), l.Written().Load(), l.Durable().Load()} {
		require.Equal(t, cut, w)
	}
	require.ErrorIs(t, l.TruncateTo(cut+1), commitlog.ErrNotFound)
	_, err := l.Record(at[20].Begin)
	require.Error(t, err)
	_, err = l.Read(make([]byte, 1), at[40].Begin)
	require.ErrorIs(t, err, commitlog.ErrNotFound)
	var q commitlog.QueueCounter
	q.Set(20)
	next := l.append(t, &q, msg("T", []byte("new")))
	require.Equal(t, cut, next.Begin)
	require.NoError(t, l.Durable().Wait(t.Context(), next.End))
	l.stop()
	again := start(t, smallConfig(), fsys, commitlog.Recovery{Durable: next.End})
	require.Len(t, again.records, 21)
	require.Equal(t, "new", string(again.records[20].Body))
}

func TestOldestFilesAreRemovedNeverTheNewest(t *testing.T) {
	fsys, at := filled(t, 60)
	l := start(t, smallConfig(), fsys, commitlog.Recovery{})
	v, err := l.Record(at[0].Begin)
	require.NoError(t, err)
	held := bytes.Clone(v.Bytes)
	removed, err := l.RemoveFirst(100)
	require.NoError(t, err)
	require.False(t, removed, "it ends above the limit")
	files, err := l.Files()
	require.NoError(t, err)
	n := 0
	for {
		removed, err := l.RemoveFirst(1 << 40)
		require.NoError(t, err)
		if !removed {
			break
		}
		n++
	}
	require.Equal(t, at[59].Begin/(16<<10)*(16<<10), l.Begin())
	require.Greater(t, n, 1)
	require.Equal(t, int64(n*(16<<10)), files[n].Begin)
	require.Equal(t, held, v.Bytes, "a view keeps what it holds")
	v.Release()
	_, err = l.Record(at[0].Begin)
	require.ErrorIs(t, err, commitlog.ErrNotFound)
	v, err = l.Record(at[59].Begin)
	require.NoError(t, err)
	v.Release()
	l.stop()
	again := start(t, smallConfig(), fsys, commitlog.Recovery{})
	require.Equal(t, l.found.End, again.found.End)
}

func TestManyAppendersAndReaders(t *testing.T) {
	for _, inline := range []bool{false, true} {
		cfg := testConfig("/log")
		cfg.FlushInterval = 2 * time.Millisecond
		l := start(t, cfg, vfs.NewCrashable(), commitlog.Recovery{})
		var q commitlog.QueueCounter
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := range 100 {
					m := msg("T", body(g*100+i))
					at, err := l.Append(&m, nil, &q)
					if err != nil {
						t.Error(err)
						return
					}
					l.Kick(inline)
					if i%10 == 0 {
						if err := l.Written().Wait(t.Context(), at.End); err != nil {
							t.Error(err)
						}
					}
					v, err := l.Record(at.Begin)
					if err != nil || !bytes.Contains(v.Bytes, m.Body) {
						t.Errorf("read back at %d: %v", at.Begin, err)
						return
					}
					v.Release()
				}
			})
		}
		wg.Wait()
		end := l.Appended().Load()
		require.NoError(t, l.Written().Wait(t.Context(), end))
		require.NoError(t, l.Durable().Wait(t.Context(), end))
		require.EqualValues(t, 800, q.Next())
		seen := 0
		for at := int64(0); at < end; {
			v, err := l.Record(at)
			if errors.Is(err, commitlog.ErrNotFound) {
				at += cfg.FileSize - at%cfg.FileSize
				continue
			}
			require.NoError(t, err)
			r, err := message.DecodeRecord(v.Bytes, true)
			require.NoError(t, err)
			require.EqualValues(t, seen, r.QueueOffset, "queue offsets follow the log")
			seen++
			at += int64(r.Size)
			v.Release()
		}
		require.Equal(t, 800, seen)
		l.stop()
	}
}

func TestTheUsualAppendAndReadDoNotAllocate(t *testing.T) {
	cfg := commitlog.DefaultConfig()
	cfg.Dir, cfg.SyncFlush = t.TempDir(), false
	l := start(t, cfg, vfs.OS(), commitlog.Recovery{})
	var q commitlog.QueueCounter
	m := msg("T", make([]byte, 1024))
	allowed := func() error { return nil }
	warm := l.append(t, &q, m)
	require.NoError(t, l.Written().Wait(t.Context(), warm.End))
	require.LessOrEqual(t, testing.AllocsPerRun(500, func() {
		at, err := l.Append(&m, allowed, &q)
		if err != nil {
			t.Error(err)
			return
		}
		l.Kick(true)
		v, err := l.Record(at.Begin)
		if err != nil {
			t.Error(err)
			return
		}
		v.Release()
	}), 0.0)
}
