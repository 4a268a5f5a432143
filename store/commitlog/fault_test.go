package commitlog_test

import (
	"bytes"
	"errors"
	"os"
	"path"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/vfs"
	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/store/commitlog"
	"github.com/quorate/quorate/store/segment"
)

// fail makes the next n operations of a kind fail with EIO. The result tells whether any did.
func fail(fsys *vfs.Crashable, kind string, n int64) (happened func() bool) {
	var left, hits atomic.Int64
	left.Store(n)
	fsys.SetFault(func(k, _ string) error {
		if k == kind && left.Add(-1) >= 0 {
			hits.Add(1)
			return syscall.EIO
		}
		return nil
	})
	return func() bool { return hits.Load() > 0 }
}

func TestAStorageErrorIsNeverRetriedIntoSuccess(t *testing.T) {
	for _, kind := range []string{"write", "sync"} {
		for _, sync := range []bool{true, false} {
			t.Run(kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					fsys := vfs.NewCrashable()
					cfg := testConfig("/log")
					cfg.SyncFlush = sync
					l := start(t, cfg, fsys, commitlog.Recovery{})
					var q commitlog.QueueCounter
					good := l.append(t, &q, msg("T", body(1)))
					require.NoError(t, l.Durable().Wait(t.Context(), good.End))
					happened := fail(fsys, kind, 1) // the next one would succeed
					bad := l.append(t, &q, msg("T", body(2)))
					err := l.Durable().Wait(t.Context(), bad.End)
					require.ErrorIs(t, err, commitlog.ErrWriteFailed)
					require.ErrorIs(t, err, syscall.EIO)
					require.True(t, happened())
					m := msg("T", body(3))
					_, err = l.Append(&m, nil, &q)
					require.ErrorIs(t, err, commitlog.ErrWriteFailed)
					require.ErrorIs(t, l.WriteFailed(), syscall.EIO)
					require.ErrorIs(t, l.Flush(), commitlog.ErrWriteFailed)
					time.Sleep(time.Minute)
					require.Equal(t, good.End, l.Durable().Load())
					v, err := l.Record(good.Begin)
					require.NoError(t, err, "reads go on")
					v.Release()
					l.stop()
					require.Equal(t, good.End, l.Durable().Load())
				})
			})
		}
	}
}

func TestAFullDiskRefusesBeforeAByteIsTakenAndEndsByItself(t *testing.T) {
	for _, kind := range []string{"write", "create"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fsys := vfs.NewCrashable()
				cfg := testConfig("/log")
				cfg.SyncFlush = true
				l := start(t, cfg, fsys, commitlog.Recovery{})
				var q commitlog.QueueCounter
				synctest.Wait() // all that is to be prepared is prepared
				full := atomic.Bool{}
				full.Store(true)
				_, size, err := lastFile(fsys)
				require.NoError(t, err)
				fsys.SetFault(func(k, name string) error {
					begin, _ := segment.ParseName(path.Base(name))
					if full.Load() && (k == "create" || kind == "write" && k == "write" && begin > size) {
						return syscall.ENOSPC
					}
					return nil
				})
				var last commitlog.Appended
				var appends int
				for appends = 0; ; appends++ {
					m := msg("T", make([]byte, 8<<10))
					at, err := l.Append(&m, nil, &q)
					l.Kick(false)
					if err != nil {
						require.ErrorIs(t, err, commitlog.ErrDiskFull)
						break
					}
					last = at
				}
				require.Greater(t, appends, 2)
				require.Equal(t, int64(appends), q.Next(), "a refused append takes no queue offset")
				require.Equal(t, last.End, l.Appended().Load())
				require.NoError(t, l.Durable().Wait(t.Context(), last.End), "what was taken is flushed all the same")
				require.NoError(t, l.WriteFailed())

				full.Store(false)
				time.Sleep(2 * time.Second)
				next := l.append(t, &q, msg("T", body(1)))
				require.NoError(t, l.Durable().Wait(t.Context(), next.End))
				l.stop()
			})
		})
	}
}

func lastFile(fsys vfs.FS) (name string, begin int64, err error) {
	entries, err := fsys.ReadDir("/log")
	if err != nil || len(entries) == 0 {
		return "", 0, errors.Join(err, os.ErrNotExist)
	}
	name = entries[len(entries)-1].Name
	begin, _ = segment.ParseName(name)
	return name, begin, nil
}

func TestAppendsWaitForRoomAndGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := vfs.NewCrashable()
		cfg := testConfig("/log")
		cfg.SyncFlush = true
		var q commitlog.QueueCounter
		block := make(chan struct{})
		slow := &stalledFS{Crashable: fsys, block: block}
		l := start(t, cfg, slow, commitlog.Recovery{})
		slow.stall.Store(true)
		began := time.Now()
		var err error
		for range 1000 {
			m := msg("T", make([]byte, 4<<10))
			if _, err = l.Append(&m, nil, &q); err != nil {
				break
			}
			l.Kick(false)
		}
		require.ErrorIs(t, err, commitlog.ErrBusy)
		require.Equal(t, commitlog.AppendWaitMax, time.Since(began))
		slow.stall.Store(false)
		close(block)
		at := l.append(t, &q, msg("T", body(1)))
		require.NoError(t, l.Durable().Wait(t.Context(), at.End))
		l.stop()
	})
}

// stalledFS is a disk whose writes get stuck while stall is set, until block is closed.
type stalledFS struct {
	*vfs.Crashable
	stall  atomic.Bool
	block  chan struct{}
	spared string // this file is written all the same
}

type stalledFile struct {
	vfs.File
	fs   *stalledFS
	name string
}

func (s *stalledFS) Open(name string) (vfs.File, error) {
	f, err := s.Crashable.Open(name)
	return &stalledFile{f, s, name}, err
}

func (s *stalledFS) Create(name string) (vfs.File, error) {
	f, err := s.Crashable.Create(name)
	return &stalledFile{f, s, name}, err
}

func (f *stalledFile) WriteAt(p []byte, at int64) (int, error) {
	if f.fs.stall.Load() && f.name != f.fs.spared {
		<-f.fs.block
	}
	return f.File.WriteAt(p, at)
}

// filled is a log of n records, stopped cleanly, and where they are.
func filled(t *testing.T, n int) (*vfs.Crashable, []commitlog.Appended) {
	t.Helper()
	fsys := vfs.NewCrashable()
	l := start(t, smallConfig(), fsys, commitlog.Recovery{})
	var q commitlog.QueueCounter
	var at []commitlog.Appended
	for i := range n {
		at = append(at, l.append(t, &q, msg("T", body(i))))
	}
	require.NoError(t, l.Durable().Wait(t.Context(), at[n-1].End))
	l.stop()
	return fsys, at
}

func damage(t *testing.T, fsys vfs.FS, offset int64, b ...byte) {
	t.Helper()
	f, err := fsys.Open("/log/" + segment.Name(offset-offset%(16<<10)))
	require.NoError(t, err)
	_, err = f.WriteAt(b, offset%(16<<10))
	require.NoError(t, err)
}

func TestDamageIsCutOnlyAtATornTail(t *testing.T) {
	const n = 30
	zeros := make([]byte, 3000)
	for name, c := range map[string]struct {
		record int // damaged one
		at     int64
		bytes  []byte
		r      func(at []commitlog.Appended) commitlog.Recovery
		torn   bool // else corrupt
	}{
		"bit in a body in the middle": {10, 90, []byte{0xFF}, nil, false},
		"magic in the middle":         {10, 4, []byte{0}, nil, false},
		"size in the middle":          {10, 0, []byte{0, 0, 1, 0}, nil, false},
		"offset in the middle":        {10, 28, []byte{9}, nil, false},
		"zeros in the middle":         {10, 0, zeros[:100], nil, false},
		"last record":                 {n - 1, 90, []byte{0xFF}, nil, true},
		"last record is zeros":        {n - 1, 0, zeros[:91], nil, true},
		"last record ends early":      {n - 1, 100, zeros, nil, true},
		"last record, known to be durable": {n - 1, 90, []byte{0xFF}, func(at []commitlog.Appended) commitlog.Recovery {
			return commitlog.Recovery{CheckCRC: true, Durable: at[n-1].End}
		}, false},
		"middle after a power cut": {25, 90, []byte{0xFF}, func(at []commitlog.Appended) commitlog.Recovery {
			return commitlog.Recovery{PowerLoss: true, Durable: at[24].End}
		}, true},
		"below durable after a power cut": {25, 90, []byte{0xFF}, func(at []commitlog.Appended) commitlog.Recovery {
			return commitlog.Recovery{CheckCRC: true, PowerLoss: true, Durable: at[25].End}
		}, false},
		"durable beyond the end of the files": {n - 1, 90, []byte{'x'}, func([]commitlog.Appended) commitlog.Recovery { return commitlog.Recovery{Durable: 1 << 40} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			fsys, at := filled(t, n)
			damage(t, fsys, at[c.record].Begin+c.at, c.bytes...)
			r := commitlog.Recovery{}
			if c.r != nil {
				r = c.r(at)
			}
			l, err := commitlog.Open(smallConfig(), fsys, quiet)
			require.NoError(t, err)
			before := fsys.Ops()
			defer func() { require.NoError(t, l.Close()) }()
			found, err := l.Recover(r, nil)
			if c.torn {
				require.NoError(t, err)
				require.Equal(t, at[c.record].Begin, found.End)
				require.NotEmpty(t, found.Torn)
				require.EqualValues(t, c.record, found.Records)
				return
			}
			require.ErrorIs(t, err, commitlog.ErrCorrupt)
			var corrupt *commitlog.CorruptError
			require.ErrorAs(t, err, &corrupt)
			if r.Durable < 1<<40 {
				require.Equal(t, at[c.record].Begin, corrupt.Offset)
			}
			require.Equal(t, before, fsys.Ops(), "a corrupt log is not touched")
			m := msg("T", body(1))
			_, err = l.Append(&m, nil, new(commitlog.QueueCounter))
			require.ErrorIs(t, err, commitlog.ErrClosed)
		})
	}
}

func TestASectorThatNeverReachedTheDiskIsATornTail(t *testing.T) {
	fsys := vfs.NewCrashable()
	l := start(t, smallConfig(), fsys, commitlog.Recovery{})
	var q commitlog.QueueCounter
	first := l.append(t, &q, msg("T", body(1)))
	m := msg("T", []byte("x"))
	m.Properties = message.MakeProperties(map[string]string{"KEYS": string(bytes.Repeat([]byte("k"), 2000))})
	at := l.append(t, &q, m)
	require.NoError(t, l.Durable().Wait(t.Context(), at.End))
	l.stop()
	damage(t, fsys, 1024, make([]byte, 512)...) // lies in the properties, which have no checksum
	again := start(t, smallConfig(), fsys, commitlog.Recovery{Durable: first.End})
	require.Equal(t, first.End, again.found.End)
	require.NotEmpty(t, again.found.Torn)
}

// Files ahead were not ready yet when the log failed: nobody may go on trying to prepare them.
func TestAFailureWhileFilesArePreparedLeavesNobodyBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := vfs.NewCrashable()
		cfg := testConfig("/log")
		cfg.SyncFlush = true
		slow := &stalledFS{Crashable: fsys, block: make(chan struct{}), spared: "/log/" + segment.Name(0)}
		slow.stall.Store(true) // the second file cannot be filled
		l := start(t, cfg, slow, commitlog.Recovery{})
		synctest.Wait()
		happened := fail(fsys, "sync", 1)
		var q commitlog.QueueCounter
		at := l.append(t, &q, msg("T", body(1)))
		require.ErrorIs(t, l.Durable().Wait(t.Context(), at.End), commitlog.ErrWriteFailed)
		require.True(t, happened())
		close(slow.block)
		time.Sleep(time.Hour) // fake time passes only while everybody is idle
		l.stop()
	})
}
