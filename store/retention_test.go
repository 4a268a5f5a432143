package store_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/vfs"
	"github.com/quorate/quorate/store"
)

// fill appends n messages of about 500 bytes, a file of the log for about 30 of them.
func fill(t testing.TB, s running, from, n int) {
	t.Helper()
	for i := from; i < from+n; i++ {
		m := testMessage("T", 0, i)
		m.Body = append(m.Body, make([]byte, 300)...)
		appendOne(t, s.Store, m)
	}
	s.settled(t)
}

// clocked is a store on a clock that the test moves; files are written at it.
type clocked struct {
	fsys *vfs.Crashable
	now  time.Time
	mu   sync.Mutex
	cfg  store.Config
}

func newClocked(t testing.TB) *clocked {
	t.Helper()
	c := &clocked{fsys: crashable(t), now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.Local)}
	c.fsys.SetNow(c.now)
	c.cfg = config(c.fsys)
	c.cfg.Now = func() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }
	c.cfg.Retention.DeleteInterval = 0
	return c
}

func (c *clocked) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.fsys.SetNow(c.now)
}

func TestOldFilesGoWithTheirQueuesAndKeys(t *testing.T) {
	c := newClocked(t)
	s := run(t, c.cfg)
	fill(t, s, 0, 200)
	eventually(t, s, "T", "UT0-0", 1)
	require.NoError(t, s.DeleteExpired())
	require.Zero(t, s.Begin(), "nothing is 72 hours old")
	c.advance(73 * time.Hour)
	fill(t, s, 200, 40)
	require.NoError(t, s.DeleteExpired())
	begin := s.Begin()
	require.Positive(t, begin)
	minOffset, maxOffset := s.QueueBounds("T", 0)
	require.EqualValues(t, 240, maxOffset)
	require.Greater(t, minOffset, int64(100))
	require.Len(t, readAll(t, s.Store, "T", 0), int(maxOffset-minOffset))
	var g store.GetResult
	require.NoError(t, s.Get("T", 0, 0, 32, 1<<20, nil, &g))
	require.Equal(t, store.OffsetTooSmall, g.Status)
	require.Equal(t, minOffset, g.NextBegin)
	gone, err := s.Query("T", "UT0-0", 10, 0, 1<<62)
	require.NoError(t, err)
	require.Empty(t, gone.Views)
	_, err = s.RecordAt(0)
	require.ErrorIs(t, err, store.ErrRecordNotFound)
	// The same after a kill and after a clean stop.
	for _, left := range []*vfs.Crashable{c.fsys.Kill(), c.fsys.Crash(c.fsys.Ops(), func() bool { return false })} {
		cfg := c.cfg
		cfg.FS = left
		again := open(t, cfg)
		gotMin, gotMax := again.QueueBounds("T", 0)
		require.Equal(t, [2]int64{minOffset, maxOffset}, [2]int64{gotMin, gotMax})
		require.NoError(t, again.Close())
	}
	s.close(t)
}

func TestWhenFilesMayGo(t *testing.T) {
	for name, c := range map[string]struct {
		hour    int
		age     time.Duration
		used    float64
		forced  bool
		removed bool
	}{
		"young, at the hour":               {hour: 4, age: time.Hour, used: .1, forced: true},
		"old, at another hour":             {hour: 12, age: 100 * time.Hour, used: .1, forced: true},
		"old, at the hour":                 {hour: 4, age: 100 * time.Hour, used: .1, forced: true, removed: true},
		"old, above the use line":          {hour: 12, age: 100 * time.Hour, used: .8, forced: true, removed: true},
		"young, above the use line":        {hour: 12, age: time.Hour, used: .8, forced: true},
		"young, above the force line":      {hour: 12, age: time.Hour, used: .87, forced: true, removed: true},
		"young, above it but not by force": {hour: 12, age: time.Hour, used: .87},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newClocked(t)
				k.cfg.Retention.CleanForcibly = c.forced
				var out logBuffer
				s, err := store.Open(k.cfg, slog.New(slog.NewJSONHandler(&out, nil)))
				require.NoError(t, err)
				r := running{Store: s, stop: start(t, s, true)}
				fill(t, r, 0, 200)
				day := time.Date(2026, 12, 20, c.hour, 30, 0, 0, time.Local)
				k.mu.Lock()
				k.now = day
				k.mu.Unlock()
				k.touch(t, day.Add(-c.age))
				k.fsys.SetUsage(vfs.Usage{Total: 1000, Free: uint64(1000 - 1000*c.used)})
				time.Sleep(11 * time.Second)
				synctest.Wait()
				require.Equal(t, c.removed, s.Begin() > 0, out.String())
				if c.removed {
					require.Contains(t, out.String(), `"msg":"commit log file is removed"`)
					require.Contains(t, out.String(), `"reason":`)
				}
				r.close(t)
			})
		})
	}
}

// logBuffer is written by several goroutines.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}
func (l *logBuffer) String() string { l.mu.Lock(); defer l.mu.Unlock(); return l.b.String() }

// touch makes all log files look written at when.
func (c *clocked) touch(t *testing.T, when time.Time) {
	t.Helper()
	c.fsys.SetNow(when)
	entries, err := c.fsys.ReadDir(root + "/commitlog")
	require.NoError(t, err)
	for _, e := range entries {
		f, err := c.fsys.Open(root + "/commitlog/" + e.Name)
		require.NoError(t, err)
		require.NoError(t, f.Truncate(e.Size))
	}
}

// TestFullDiskRefusesAndResumes is cases 80 and 82: above the warning level appends are refused with words that help, reads
// go on, and appends go on by themselves within a second once space is back.
func TestFullDiskRefusesAndResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newClocked(t)
		k.cfg.Retention.CleanForcibly = false
		s := run(t, k.cfg)
		fill(t, s, 0, 10)
		k.fsys.SetUsage(vfs.Usage{Total: 1000, Free: 95})
		time.Sleep(1100 * time.Millisecond)
		_, err := s.Append(testMessage("T", 0, 10), nil)
		require.ErrorIs(t, err, store.ErrDiskFull)
		require.ErrorIs(t, err, store.ErrNotWritable)
		require.ErrorContains(t, err, "disk full: 90.5 % of "+root+" used, writes stop at 90 % (diskSpaceWarningLevelRatio)")
		st := s.Stats()
		require.False(t, st.Writable)
		require.Contains(t, st.NotWritableReason, "disk full")
		require.InDelta(t, .905, st.CommitLogDiskRatio, .001)
		require.Len(t, readAll(t, s.Store, "T", 0), 10)
		k.fsys.SetUsage(vfs.Usage{Total: 1000, Free: 500})
		time.Sleep(1100 * time.Millisecond)
		fill(t, s, 10, 10)
		require.Len(t, readAll(t, s.Store, "T", 0), 20)
		s.close(t)
	})
}

// TestDerivedFilesOutlastAFullDisk: the log has its space ahead, queues and index do not. They wait and lose nothing.
func TestDerivedFilesOutlastAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newClocked(t)
		s := run(t, k.cfg)
		fill(t, s, 0, 5)
		time.Sleep(time.Minute)
		k.fsys.SetFault(func(kind, name string) error {
			if (kind == "write" || kind == "create") && (bytes.Contains([]byte(name), []byte("/consumequeue/")) || bytes.Contains([]byte(name), []byte("/index/"))) {
				return syscall.ENOSPC
			}
			return nil
		})
		for i := 5; i < 60; i++ {
			appendOne(t, s.Store, testMessage("T", int32(i%3), i))
		}
		time.Sleep(time.Minute)
		require.NoError(t, s.WriteFailed(), "a full disk is no failure")
		k.fsys.SetFault(nil)
		time.Sleep(20 * time.Second)
		s.settled(t)
		require.Equal(t, s.Dispatched().Load(), s.Stats().CheckpointOffset)
		after := k.cfg
		after.FS = k.fsys.Crash(k.fsys.Ops(), func() bool { return false })
		again := open(t, after)
		total := 0
		for q := range int32(3) {
			total += len(readAll(t, again, "T", q))
		}
		require.Equal(t, 60, total)
		require.NoError(t, again.Close())
		s.close(t)
	})
}

// TestIdleStoreSleeps: after a while without appends nothing is written and nothing synced.
func TestIdleStoreSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newClocked(t)
		s := run(t, k.cfg)
		fill(t, s, 0, 50)
		time.Sleep(time.Minute)
		before := k.fsys.Ops()
		time.Sleep(time.Hour)
		require.Equal(t, before, k.fsys.Ops())
		require.Equal(t, s.Appended().Load(), s.Stats().CheckpointOffset)
		s.close(t)
	})
}

// TestTopicsComeAndGoUnderLoad is case 84, scaled down: topics are made and deleted while others send and read.
func TestTopicsComeAndGoUnderLoad(t *testing.T) {
	cfg := config(nil)
	cfg.RootDir = t.TempDir() + "/store"
	s := run(t, cfg)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			topic := fmt.Sprintf("Short%d", i%5)
			for j := range 3 {
				_, _ = s.Append(testMessage(topic, int32(j), i), nil) // its topic may go at any moment
			}
			if err := s.DeleteTopic(topic); err != nil {
				t.Error(err)
				return
			}
		}
	})
	wg.Go(func() {
		for ctx.Err() == nil {
			var g store.GetResult
			for i := range 5 {
				if err := s.Get(fmt.Sprintf("Short%d", i), 0, 0, 32, 1<<20, nil, &g); err != nil {
					t.Error(err)
					return
				}
				g.Release()
			}
		}
	})
	const n = 300
	for i := range n {
		appendOne(t, s.Store, testMessage("Long", 0, i))
	}
	s.settled(t)
	cancel()
	wg.Wait()
	s.settled(t)
	all := readAll(t, s.Store, "Long", 0)
	require.Len(t, all, n)
	for i, r := range all {
		require.Equal(t, testMessage("Long", 0, i).Body, r.Body)
	}
	s.close(t)
}

// TestClockStepsDoNoHarm is case 86: the wall clock jumps back ten years and forth a day between stop and start, and under load.
func TestClockStepsDoNoHarm(t *testing.T) {
	c := newClocked(t)
	s := run(t, c.cfg)
	fill(t, s, 0, 20)
	c.advance(-10 * 365 * 24 * time.Hour)
	fill(t, s, 20, 20)
	s.close(t)
	c.advance(11 * 365 * 24 * time.Hour)
	s = run(t, c.cfg)
	require.Len(t, readAll(t, s.Store, "T", 0), 40)
	fill(t, s, 40, 20)
	s.stop()
	cfg := c.cfg
	cfg.FS = c.fsys.Kill()
	again := open(t, cfg)
	require.Len(t, readAll(t, again, "T", 0), 60)
	require.NoError(t, again.Close())
}
