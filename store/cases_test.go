package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/vfs"
	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/store"
)

// full says that cases run at the size of the report they come from (`make cases-full`).
var full = os.Getenv("QUORATE_CASES") == "full"

// flip changes one bit at an offset of the log.
func flip(t *testing.T, fsys vfs.FS, cfg store.Config, offset int64) {
	t.Helper()
	f, err := fsys.Open(fmt.Sprintf("%s/commitlog/%020d", root, offset/cfg.CommitLogFileSize*cfg.CommitLogFileSize))
	require.NoError(t, err)
	var b [1]byte
	at := offset % cfg.CommitLogFileSize
	_, err = f.ReadAt(b[:], at)
	require.NoError(t, err)
	b[0] ^= 0x10
	_, err = f.WriteAt(b[:], at)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// Case 66: one bit of an old file is flipped, in any part of a record, while the store is down. Whoever reads that record is
// told which file and offset; nothing else is lost, and no client gets the damaged bytes.
func TestCase66FlippedBitsInOldFiles(t *testing.T) {
	fsys := crashable(t)
	cfg := config(fsys)
	s := run(t, cfg)
	const n, bad = 120, 40
	var at store.Appended
	for i := range n {
		a := appendOne(t, s.Store, testMessage("T", 0, i))
		if i == bad {
			at = a
		}
	}
	s.settled(t)
	s.close(t)
	for name, where := range map[string]int64{
		"size": 2, "small size": 3, "magic": 5, "body checksum": 9, "physical offset": 30, "body length": 86, "body": 95, "last byte": at.End - at.Begin - 1,
	} {
		t.Run(name, func(t *testing.T) {
			left := fsys.Kill()
			flip(t, left, cfg, at.Begin+where)
			c := cfg
			c.FS = left
			again, err := store.Open(c, slog.New(slog.DiscardHandler))
			require.NoError(t, err)
			r := running{Store: again, stop: start(t, again, true)}
			defer r.close(t)
			read, refused := 0, 0
			for next := int64(0); next < n; {
				var g store.GetResult
				err := again.Get("T", 0, next, 32, 1<<20, nil, &g)
				if err != nil {
					require.ErrorIs(t, err, store.ErrCorrupt)
					require.ErrorContains(t, err, fmt.Sprintf("record at offset %d of the log", at.Begin))
					require.EqualValues(t, bad, next)
					refused++
					next++
					continue
				}
				for _, m := range records(t, &g) {
					if m.QueueOffset != bad {
						require.Equal(t, testMessage("T", 0, int(m.QueueOffset)).Body, m.Body)
					}
					read++
				}
				g.Release()
				require.Greater(t, g.NextBegin, next)
				next = g.NextBegin
			}
			if name == "last byte" { // of the properties, which no checksum covers: the format is RocketMQ's
				require.Equal(t, n, read)
				return
			}
			require.Equal(t, []int{n - 1, 1}, []int{read, refused})
		})
	}
}

// Case 69: the log rolls at every byte around the end of a file while nothing is dispatched, and the process dies. The queue
// has as many entries as the log has messages.
func TestCase69RollAtEveryByte(t *testing.T) {
	for left := range int64(24) {
		fsys := crashable(t)
		cfg := config(fsys)
		s := open(t, cfg)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }() // nothing is confirmed, so nothing is dispatched
		n := 0
		put := func(body int64) store.Appended {
			m := &message.Message{Topic: "T", BornHost: host, StoreHost: host, Body: make([]byte, body)}
			n++
			return appendOne(t, s, m)
		}
		first := put(1000)
		overhead := first.End - first.Begin - 1000
		at := first
		for cfg.CommitLogFileSize-at.End > 3000 {
			at = put(1000)
		}
		// The next one leaves so many bytes of the file, fewer than the filler's eight among them.
		at = put(cfg.CommitLogFileSize - at.End - overhead - left)
		for range 5 {
			at = put(700)
		}
		require.NoError(t, s.Durable().Wait(ctx, at.End))
		cancel()
		require.NoError(t, <-done)
		require.Zero(t, s.Dispatched().Load())
		cfg.FS = fsys.Kill()
		again := open(t, cfg)
		require.Len(t, readAll(t, again, "T", 0), n, "%d bytes left", left)
		require.NoError(t, again.Close())
		require.NoError(t, s.Close())
	}
}

// Case 72: damage to one message's properties, to the checkpoint or to the abort marker never makes a start throw queues away.
func TestCase72CorruptionNeverDeletesQueues(t *testing.T) {
	fsys := crashable(t)
	cfg := config(fsys)
	s := run(t, cfg)
	var at [100]store.Appended
	for i := range at {
		at[i] = appendOne(t, s.Store, testMessage("T", 0, i))
	}
	s.settled(t)
	s.close(t)
	write := func(name, text string) func(*vfs.Crashable) {
		return func(left *vfs.Crashable) {
			if err := left.Remove(root + "/" + name); err != nil {
				require.ErrorIs(t, err, fs.ErrNotExist)
			}
			require.NoError(t, vfs.WriteFile(left, root+"/"+name, []byte(text)))
		}
	}
	properties := func(i int) func(*vfs.Crashable) {
		return func(left *vfs.Crashable) { flip(t, left, cfg, at[i].End-3) }
	}
	for name, damage := range map[string]func(*vfs.Crashable){
		"properties of an old message": properties(30), "properties of the last": properties(99),
		"checkpoint of rubbish": write("checkpoint", "rubbish"), "empty checkpoint": write("checkpoint", ""),
		"marker of rubbish": write("abort", "\x00\xff"), "queue ends of rubbish": write("quorate-queue-ends", "rubbish"),
	} {
		for _, aborted := range []bool{false, true} {
			left := fsys.Kill()
			damage(left)
			if _, err := left.Stat(root + "/abort"); aborted && errors.Is(err, fs.ErrNotExist) {
				require.NoError(t, vfs.WriteFile(left, root+"/abort", []byte("1")))
			}
			c := cfg
			c.FS = left
			again := open(t, c)
			low, high := again.QueueBounds("T", 0)
			require.Equal(t, [2]int64{0, 100}, [2]int64{low, high}, name)
			require.NoError(t, again.Close())
		}
	}
}

// Case 77: the checkpoint advances under SYNC_FLUSH and ASYNC_FLUSH, for sends that do not wait, and for a replica's bytes.
func TestCase77CheckpointAdvancesInEveryMode(t *testing.T) {
	for _, sync := range []bool{true, false} {
		fsys := crashable(t)
		cfg := config(fsys)
		cfg.SyncFlush, cfg.CheckpointInterval, cfg.FlushInterval = sync, time.Millisecond, time.Millisecond
		s := run(t, cfg)
		for i := range 100 {
			appendOne(t, s.Store, testMessage("T", 0, i)) // nobody waits
		}
		s.settled(t)
		deadline := time.Now().Add(10 * time.Second)
		for s.Stats().CheckpointOffset < s.Appended().Load() {
			require.True(t, time.Now().Before(deadline), "sync %t: checkpoint stays at %d", sync, s.Stats().CheckpointOffset)
			time.Sleep(time.Millisecond)
		}
		s.close(t)
	}
}

// Case 78, scaled down: a start reads a bounded part of many queue files. At full size 200,000 queues.
func TestCase78RestartWithManyQueues(t *testing.T) {
	topics, queues := 50, 8
	if full {
		topics, queues = 12500, 16
	}
	fsys := crashable(t)
	cfg := config(fsys)
	if full {
		cfg.FS, cfg.RootDir = nil, t.TempDir()+"/store"
		cfg.ConsumeQueueFileSize, cfg.CommitLogFileSize = 20*50, 64<<20
	}
	cfg.SyncFlush = false
	s := run(t, cfg)
	for i := range topics {
		m := testMessage(fmt.Sprintf("T%d", i), 0, 0)
		for q := range int32(queues) {
			m.QueueID = q
			appendOne(t, s.Store, m)
		}
	}
	s.settled(t)
	s.close(t)
	reads := 0
	if !full {
		left := fsys.Kill()
		left.SetFault(func(kind, _ string) error {
			if kind == "read" || kind == "open" {
				reads++
			}
			return nil
		})
		cfg.FS = left
	}
	begun := time.Now()
	again := open(t, cfg)
	took := time.Since(begun)
	t.Logf("%d queues: opened in %s, %d reads", topics*queues, took, reads)
	require.Len(t, again.Topics(), topics)
	_, high := again.QueueBounds("T7", 3)
	require.EqualValues(t, 1, high)
	require.LessOrEqual(t, reads, 4*topics*queues)
	require.Less(t, took, time.Minute)
	require.NoError(t, again.Close())
}

// slowRemoves is a disk on which removing a file takes three seconds, or fails.
type slowRemoves struct {
	*vfs.Crashable
	mu   sync.Mutex
	fail error
}

func (d *slowRemoves) Remove(name string) error {
	time.Sleep(3 * time.Second)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail != nil {
		return &fs.PathError{Op: "remove", Path: name, Err: d.fail}
	}
	return d.Crashable.Remove(name)
}

// Case 80: while slow deletes are under way, a disk that fills is noticed within a second.
func TestCase80SlowDeletesDoNotHoldTheDiskCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newClocked(t)
		slow := &slowRemoves{Crashable: k.fsys}
		k.cfg.FS = slow
		k.cfg.Retention.CleanForcibly, k.cfg.Retention.DeleteWhen = false, "16"
		s := run(t, k.cfg)
		fill(t, s, 0, 200)
		k.advance(100 * time.Hour) // from noon
		require.True(t, hasFirst(k))
		time.Sleep(11 * time.Second) // the first remove is under way
		k.fsys.SetUsage(vfs.Usage{Total: 1000, Free: 50})
		time.Sleep(1100 * time.Millisecond)
		_, err := s.Append(testMessage("T", 0, 200), nil)
		require.ErrorIs(t, err, store.ErrDiskFull)
		require.Len(t, readAll(t, s.Store, "T", 0), 200-int(first(s, "T")))
		require.True(t, hasFirst(k), "deletes are still under way")
		time.Sleep(time.Minute)
		require.False(t, hasFirst(k))
		k.fsys.SetUsage(vfs.Usage{Total: 1000, Free: 900})
		time.Sleep(1100 * time.Millisecond)
		appendOne(t, s.Store, testMessage("T", 0, 200))
		s.close(t)
	})
}

// hasFirst tells whether the first file of the log is on disk.
func hasFirst(k *clocked) bool {
	_, err := k.fsys.Stat(fmt.Sprintf("%s/commitlog/%020d", root, 0))
	return err == nil
}

func first(s running, topic string) int64 {
	low, _ := s.QueueBounds(topic, 0)
	return low
}

// Case 81: a delete that fails is an error in the log that names the file, loses nothing, and is tried again.
func TestCase81FailedDeletesAreLoud(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newClocked(t)
		slow := &slowRemoves{Crashable: k.fsys, fail: syscall.EACCES}
		k.cfg.FS = slow
		k.cfg.Retention.Interval = 24 * time.Hour // only this test deletes
		var out logBuffer
		st, err := store.Open(k.cfg, slog.New(slog.NewJSONHandler(&out, nil)))
		require.NoError(t, err)
		s := running{Store: st, stop: start(t, st, true)}
		fill(t, s, 0, 200)
		k.advance(100 * time.Hour)
		err = s.DeleteExpired()
		require.ErrorIs(t, err, syscall.EACCES)
		require.True(t, bytes.Contains([]byte(out.String()), []byte(`"level":"ERROR"`)))
		require.Contains(t, out.String(), "00000000000000000000")
		require.True(t, hasFirst(k))
		require.Len(t, readAll(t, s.Store, "T", 0), 200-int(first(s, "T")))
		slow.mu.Lock()
		slow.fail = nil
		slow.mu.Unlock()
		require.NoError(t, s.DeleteExpired())
		require.False(t, hasFirst(k), "it was tried again")
		s.close(t)
	})
}

// Case 101, the part of the store: the only topic is deleted. Neither a clean stop nor a kill brings its queues back, and its
// name made again begins at 0.
func TestCase101ADeletedOnlyTopicStaysDeleted(t *testing.T) {
	for _, killed := range []bool{false, true} {
		fsys := crashable(t)
		cfg := config(fsys)
		s := run(t, cfg)
		for i := range 50 {
			appendOne(t, s.Store, testMessage("Gone", 0, i))
		}
		s.settled(t)
		require.NoError(t, s.DeleteTopic("Gone"))
		cfg.FS = fsys.Kill()
		if !killed {
			s.close(t)
			cfg.FS = fsys.Crash(fsys.Ops(), func() bool { return false })
		}
		again := run(t, cfg)
		require.Empty(t, again.Topics())
		require.Zero(t, appendOne(t, again.Store, testMessage("Gone", 0, 0)).QueueOffset, "killed %t", killed)
		again.settled(t)
		require.Len(t, readAll(t, again.Store, "Gone", 0), 1)
		again.close(t)
	}
}
