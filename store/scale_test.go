package store_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestAnIdleQueueIsSmall is M7, scaled down: 1,000 queues with a record each, idle, in memory.
func TestAnIdleQueueIsSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("1,000 queue files")
	}
	cfg := config(nil)
	cfg.RootDir = t.TempDir() + "/store"
	cfg.CommitLogFileSize = 1 << 20
	cfg.FlushQueueInterval = 50 * time.Millisecond
	s := run(t, cfg)
	const topics, queues = 250, 4
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for i := range topics {
		m := testMessage(fmt.Sprintf("topic-%03d", i), 0, 0)
		for q := range int32(queues) {
			m.QueueID = q
			appendOne(t, s.Store, m)
		}
	}
	s.settled(t)
	deadline := time.Now().Add(60 * time.Second)
	for s.Stats().CheckpointOffset < s.Appended().Load() {
		require.True(t, time.Now().Before(deadline), "no checkpoint")
		time.Sleep(20 * time.Millisecond)
	}
	time.Sleep(4 * cfg.FlushQueueInterval) // tails are let go of
	per := int64(heap()-before) / (topics * queues)
	t.Logf("%d bytes per queue", per)
	require.Less(t, per, int64(3<<10))
	s.close(t)

	begun := time.Now()
	s = run(t, cfg)
	t.Logf("opened in %s", time.Since(begun))
	require.Len(t, s.Topics(), topics)
	s.close(t)
}
