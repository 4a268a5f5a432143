package produce_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/broker/internal/rig"
	"github.com/quorate/quorate/broker/topic"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/store"
)

// bigLog has files of RocketMQ's size.
func bigLog(c *store.Config) {
	d := store.DefaultConfig()
	c.CommitLogFileSize, c.ConsumeQueueFileSize, c.IndexSlots, c.IndexEntries = d.CommitLogFileSize, d.ConsumeQueueFileSize, d.IndexSlots, d.IndexEntries
}

func sendFrame() []byte {
	cmd := protocol.NewRequest(sendTo("T"), make([]byte, 1024))
	cmd.Version = 479
	return protocol.AppendFrame(nil, cmd)
}

func benchmarkSend(b *testing.B, async bool, connections, window int) {
	b.Helper()
	r := rig.New(b, rig.Options{Async: async, TCP: true, Store: bigLog})
	require.NoError(b, r.Topics.Put(topic.Config{Name: "T", ReadQueues: 4, WriteQueues: 4, Perm: 6}))
	frame := sendFrame()
	rig.Pump(b, r.Addr, frame, 2000, window)
	b.SetBytes(1024)
	b.ReportAllocs()
	cpu, flushes := rig.CPU(), r.Store.Stats().Flushes
	b.ResetTimer()
	var wg sync.WaitGroup
	for range connections {
		wg.Go(func() { rig.Pump(b, r.Addr, frame, b.N/connections+1, window) })
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "sends/s")
	b.ReportMetric(float64(b.N)/float64(max(r.Store.Stats().Flushes-flushes, 1)), "sends/flush")
	b.ReportMetric(float64(rig.CPU()-cpu)/float64(b.N), "cpu-ns/op") // client included; steadier than time on a busy machine
}

func BenchmarkSendAsync1x64(b *testing.B) { benchmarkSend(b, true, 1, 64) }
func BenchmarkSendAsync64x1(b *testing.B) { benchmarkSend(b, true, 64, 1) }
func BenchmarkSendAsync1x1(b *testing.B)  { benchmarkSend(b, true, 1, 1) }
func BenchmarkSendSync1x64(b *testing.B)  { benchmarkSend(b, false, 1, 64) }
func BenchmarkSendSync64x1(b *testing.B)  { benchmarkSend(b, false, 64, 1) }
func BenchmarkSendSync1x1(b *testing.B)   { benchmarkSend(b, false, 1, 1) }

// The whole broker side of a send, from the socket to the log and back: everything that runs meanwhile is counted.
func TestSendsAllocateAlmostNothing(t *testing.T) {
	if rig.Race {
		t.Skip("the race detector makes pools drop things")
	}
	for name, async := range map[string]bool{"async": true, "sync": false} {
		t.Run(name, func(t *testing.T) {
			r := rig.New(t, rig.Options{Async: async, TCP: true, Store: bigLog})
			put(t, r, plain("T"))
			frame := sendFrame()
			rig.Pump(t, r.Addr, frame, 3000, 64)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			const n = 20_000
			rig.Pump(t, r.Addr, frame, n, 64)
			runtime.ReadMemStats(&after)
			perSend := float64(after.Mallocs-before.Mallocs) / n
			require.Less(t, perSend, 0.5, "allocations per send")
		})
	}
}
