package store_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/vfs"
	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/store"
)

// entry of the ledger: a message that was acknowledged, for it was durable by operation ops.
type entry struct {
	ops   int
	queue int32
	n     int
	at    store.Appended
}

// ledger is what a workload left behind.
type ledger struct {
	entries []entry
	configs []int // operations by which config version i was durable
	sent    map[int32]int
}

func configVersion(i int) string {
	return fmt.Sprintf(`{"version":%d,"fill":"%0*d"}`, i, 1+i*53%300, i)
}

// work appends n messages to two queues, in singles and batches, waits for each to be durable, and rewrites a config file.
func work(t *testing.T, fsys *vfs.Crashable, s running, n int) ledger {
	t.Helper()
	l := ledger{sent: map[int32]int{}}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for i := 0; i < n; {
		q := int32(i % 2)
		count := 1
		if i%7 == 0 {
			count = 3
		}
		batch := make([]message.Message, count)
		for j := range batch {
			batch[j] = *testMessage("T", q, l.sent[q]+j)
		}
		at, err := s.AppendBatch(batch, nil)
		require.NoError(t, err)
		require.NoError(t, s.Durable().Wait(ctx, at.End))
		ops := fsys.Ops()
		for range batch {
			l.entries = append(l.entries, entry{ops: ops, queue: q, n: l.sent[q], at: at})
			l.sent[q]++
		}
		if i%20 == 0 {
			require.NoError(t, s.WriteConfigFile("x.json", []byte(configVersion(len(l.configs)))))
			l.configs = append(l.configs, fsys.Ops())
		}
		i += count
	}
	return l
}

// check opens what a crash before operation at left, and compares it with the ledger.
func (l ledger) check(t *testing.T, cfg store.Config, left *vfs.Crashable, at int, what string) {
	t.Helper()
	cfg.FS = left
	s, err := store.Open(cfg, slog.New(slog.DiscardHandler))
	require.NoError(t, err, what)
	got := map[int32][]message.Record{}
	for q := range int32(2) {
		got[q] = readAll(t, s, "T", q)
		for i, r := range got[q] {
			require.Equal(t, testMessage("T", q, i).Body, r.Body, what)
		}
		require.LessOrEqual(t, len(got[q]), l.sent[q], what)
	}
	for i, e := range l.entries {
		if e.ops > at {
			break
		}
		require.Greater(t, len(got[e.queue]), e.n, "%s: acknowledged message %d of queue %d is lost", what, e.n, e.queue)
		if i%5 == 0 {
			found, err := s.Query("T", fmt.Sprintf("UT%d-%d", e.queue, e.n), 10, 0, math.MaxInt64)
			require.NoError(t, err)
			require.Len(t, found.Views, 1, "%s: key of message %d of queue %d", what, e.n, e.queue)
			found.Release()
		}
	}
	content, err := s.ReadConfigFile("x.json")
	version := -1
	for i, ops := range l.configs {
		if ops <= at {
			version = i
		}
	}
	switch {
	case version < 0 && errors.Is(err, fs.ErrNotExist):
	case version < 0:
		require.Equal(t, configVersion(0), string(content), what)
	default:
		require.NoError(t, err, what)
		require.Contains(t, []string{configVersion(version), configVersion(min(version+1, len(l.configs)-1))}, string(content), what)
	}
	// It goes on: offsets continue, nothing is written twice.
	r := running{Store: s, stop: start(t, s, true)}
	next := appendOne(t, s, testMessage("T", 0, len(got[0])))
	require.EqualValues(t, len(got[0]), next.QueueOffset, what)
	r.settled(t)
	require.Len(t, readAll(t, s, "T", 0), len(got[0])+1, what)
	r.close(t)
}

// TestPowerCutAnywhereKeepsWhatWasAcknowledged cuts the power between any two operations of append, flush, roll, dispatch,
// checkpoint and config rewrite (faults 12, 16, 17; cases 65, 69, 73, 76).
func TestPowerCutAnywhereKeepsWhatWasAcknowledged(t *testing.T) {
	fsys := crashable(t)
	cfg := config(fsys)
	cfg.CommitLogFileSize = 32 << 10
	cfg.CheckpointInterval = time.Millisecond
	cfg.Boot = 0 // a power cut
	s := run(t, cfg)
	l := work(t, fsys, s, 150)
	s.settled(t)
	s.close(t)
	const points = 120
	rng := rand.New(rand.NewPCG(11, 12))
	ops := fsys.Ops()
	for i := range points {
		at := 3 + (ops-3)*i/points + rng.IntN((ops-3)/points+1)
		for seed := range 3 {
			keep := func() bool { return seed == 0 || (seed > 1 && rng.IntN(2) == 0) }
			l.check(t, cfg, fsys.Crash(min(at, ops), keep), at, fmt.Sprintf("op %d seed %d", at, seed))
		}
	}
	l.check(t, cfg, fsys.Crash(ops, func() bool { return false }), ops, "after a clean stop")
}

// TestKillLoopRecovers kills the process inside its own recoveries (fault 6).
func TestKillLoopRecovers(t *testing.T) {
	fsys := crashable(t)
	cfg := config(fsys)
	s := run(t, cfg)
	l := work(t, fsys, s, 100)
	s.stop()
	rng := rand.New(rand.NewPCG(5, 6))
	left := fsys.Kill()
	for range 5 {
		before := left.Ops()
		attempt := cfg
		attempt.FS = left
		again, err := store.Open(attempt, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		require.NotNil(t, again)
		// Killed somewhere inside that start.
		left = left.Crash(before+rng.IntN(left.Ops()-before+1), func() bool { return true })
	}
	l.check(t, cfg, left, math.MaxInt, "after five killed starts")
}

// TestAStartReadsOnlyWhatTheCheckpointLeft is R2: the scan after a kill begins at the checkpoint.
func TestAStartReadsOnlyWhatTheCheckpointLeft(t *testing.T) {
	fsys := crashable(t)
	cfg := config(fsys)
	cfg.CheckpointInterval = time.Millisecond
	s := run(t, cfg)
	work(t, fsys, s, 200)
	s.settled(t)
	deadline := time.Now().Add(10 * time.Second)
	for s.Stats().CheckpointOffset < s.Appended().Load() {
		require.True(t, time.Now().Before(deadline), "no checkpoint")
		time.Sleep(time.Millisecond)
	}
	end := s.Appended().Load()
	s.stop()
	var reads struct {
		sync.Mutex
		log int
	}
	left := fsys.Kill()
	left.SetFault(func(kind, name string) error {
		if kind == "read" && len(name) > 25 && name[:len(root)+10] == root+"/commitlog" {
			reads.Lock()
			reads.log++
			reads.Unlock()
		}
		return nil
	})
	cfg.FS = left
	again := open(t, cfg)
	require.Equal(t, end, again.Dispatched().Load())
	require.LessOrEqual(t, reads.log, 20, "the whole log would be more")
	require.NoError(t, again.Close())
}

// TestDerivedFilesAreBuiltAnew is I20 and case 70: whatever is removed, zeroed or cut off, answers stay the same.
func TestDerivedFilesAreBuiltAnew(t *testing.T) {
	fsys := crashable(t)
	cfg := config(fsys)
	s := run(t, cfg)
	l := work(t, fsys, s, 700)
	s.settled(t)
	s.close(t)
	var names []string
	var walk func(dir string)
	walk = func(dir string) {
		entries, err := fsys.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			names = append(names, dir+"/"+e.Name)
			if e.Dir {
				walk(dir + "/" + e.Name)
			}
		}
	}
	names = append(names, root+"/consumequeue", root+"/index", root+"/checkpoint", root+"/quorate-queue-ends")
	walk(root + "/consumequeue")
	walk(root + "/index")
	for _, aborted := range []bool{false, true} {
		for _, name := range names {
			for _, how := range []string{"remove", "zero", "truncate"} {
				left := fsys.Kill()
				info, err := left.Stat(name)
				require.NoError(t, err)
				if info.Dir || how == "remove" {
					require.NoError(t, vfs.RemoveTree(left, name))
				} else {
					f, err := left.Open(name)
					require.NoError(t, err)
					require.NoError(t, f.Truncate(info.Size/4))
					if how == "zero" {
						require.NoError(t, f.Truncate(0))
						require.NoError(t, f.Truncate(info.Size))
					}
				}
				if aborted {
					require.NoError(t, vfs.WriteFile(left, root+"/abort", []byte("1")))
				}
				l.check(t, cfg, left, math.MaxInt, fmt.Sprintf("%s %s, aborted %t", how, name, aborted))
				if info.Dir {
					break
				}
			}
		}
	}
}

// TestTailDispatchGap is case 69: queues are behind the log across a file roll when the process dies.
func TestTailDispatchGap(t *testing.T) {
	fsys := crashable(t)
	cfg := config(fsys)
	s := open(t, cfg)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }() // nothing is confirmed, so nothing is dispatched
	l := work(t, fsys, running{Store: s}, 200)
	cancel()
	require.NoError(t, <-done)
	require.Zero(t, s.Dispatched().Load())
	l.check(t, cfg, fsys.Kill(), math.MaxInt, "killed before any dispatch")
	require.NoError(t, s.Close())
}

// TestFailedSyncLatchesWritesOff is case 67: after one EIO nothing is acknowledged, whatever the next sync says; a reopen
// looks at the disk and goes on.
func TestFailedSyncLatchesWritesOff(t *testing.T) {
	for _, where := range []string{"commitlog", "consumequeue", "index", "checkpoint"} {
		t.Run(where, func(t *testing.T) {
			fsys := crashable(t)
			cfg := config(fsys)
			cfg.CheckpointInterval = time.Millisecond
			s := run(t, cfg)
			appendOne(t, s.Store, testMessage("T", 0, 0))
			s.settled(t)
			var once sync.Once
			fsys.SetFault(func(kind, name string) error {
				var err error
				if kind == "sync" && len(name) > len(root)+len(where) && name[len(root)+1:len(root)+1+len(where)] == where {
					once.Do(func() { err = syscall.EIO })
				}
				return err
			})
			deadline := time.Now().Add(10 * time.Second)
			n := 1
			for s.WriteFailed() == nil {
				require.True(t, time.Now().Before(deadline), "no latch")
				if _, err := s.Append(testMessage("T", 0, n), nil); err == nil {
					n++
				}
				time.Sleep(time.Millisecond)
			}
			require.ErrorIs(t, s.WriteFailed(), syscall.EIO)
			_, err := s.Append(testMessage("T", 0, n), nil)
			require.ErrorIs(t, err, store.ErrNotWritable)
			require.False(t, s.Stats().Writable)
			var g store.GetResult
			require.NoError(t, s.Get("T", 0, 0, 1, 1<<20, nil, &g))
			require.Equal(t, store.Found, g.Status, "reads go on")
			g.Release()
			s.stop()
			require.NoError(t, s.Close())
			again := run(t, cfg)
			require.NoError(t, again.WriteFailed())
			require.NotEmpty(t, readAll(t, again.Store, "T", 0))
			appendOne(t, again.Store, testMessage("T", 0, 0))
			again.close(t)
		})
	}
}

// TestCorruptionInTheMiddleIsReported is case 66: one flipped bit below the checkpoint is no torn tail.
func TestCorruptionInTheMiddleIsReported(t *testing.T) {
	fsys := crashable(t)
	cfg := config(fsys)
	s := run(t, cfg)
	l := work(t, fsys, s, 100)
	s.settled(t)
	s.stop() // killed
	left := fsys.Kill()
	if err := left.Remove(root + "/checkpoint"); err != nil { // so that the scan comes across it
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	bad := l.entries[40].at
	f, err := left.Open(fmt.Sprintf("%s/commitlog/%020d", root, bad.Begin/cfg.CommitLogFileSize*cfg.CommitLogFileSize))
	require.NoError(t, err)
	var b [1]byte
	at := bad.Begin%cfg.CommitLogFileSize + 95
	_, err = f.ReadAt(b[:], at)
	require.NoError(t, err)
	b[0] ^= 0x10
	_, err = f.WriteAt(b[:], at)
	require.NoError(t, err)
	cfg.FS, cfg.Boot = left, 7
	_, err = store.Open(cfg, slog.New(slog.DiscardHandler))
	if err != nil { // within what a power cut may tear, a bad record with good ones behind it may be taken for a torn tail
		require.ErrorIs(t, err, store.ErrCorrupt)
		require.ErrorContains(t, err, "corrupt at offset")
	}
}
