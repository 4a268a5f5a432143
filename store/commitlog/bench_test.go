package commitlog_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/vfs"
	"github.com/quorate/quorate/store/commitlog"
)

func benchLog(b *testing.B, sync bool) *started {
	b.Helper()
	cfg := commitlog.DefaultConfig()
	cfg.Dir, cfg.SyncFlush, cfg.Now = b.TempDir(), sync, time.Now
	return start(b, cfg, vfs.OS(), commitlog.Recovery{})
}

// BenchmarkAppend has n appenders with a window of w unacknowledged 1 KiB messages each. An append counts once it is
// acknowledged: written with ASYNC_FLUSH, durable with SYNC_FLUSH.
func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct {
		sync, inline bool
		n, window    int
	}{
		{false, true, 1, 1},
		{false, false, 1, 1},
		{false, true, 1, 64},
		{false, false, 1, 64},
		{false, true, 64, 1},
		{false, false, 64, 1},
		{true, false, 1, 1},
		{true, false, 1, 64},
		{true, false, 64, 1},
	} {
		b.Run(fmt.Sprintf("sync=%t/inline=%t/%dx%d", c.sync, c.inline, c.n, c.window), func(b *testing.B) {
			l := benchLog(b, c.sync)
			acked := l.Written()
			if c.sync {
				acked = l.Durable()
			}
			var q commitlog.QueueCounter
			m := msg("BenchmarkTest", make([]byte, 1024))
			first, err := l.Append(&m, nil, &q)
			require.NoError(b, err)
			l.Kick(false)
			require.NoError(b, l.Durable().Wait(context.Background(), first.End))
			b.ReportAllocs()
			b.SetParallelism((c.n + 1) / 2)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				m := m
				ends := make([]int64, c.window)
				for i := 0; pb.Next(); i = (i + 1) % c.window {
					if err := acked.Wait(context.Background(), ends[i]); err != nil {
						b.Error(err)
						return
					}
					at, err := l.Append(&m, nil, &q)
					if err != nil {
						b.Error(err)
						return
					}
					l.Kick(c.inline)
					ends[i] = at.End
				}
			})
			b.StopTimer()
			b.ReportMetric(float64(l.Stats().Records)/float64(max(l.Stats().Flushes, 1)), "records/flush")
		})
	}
}
