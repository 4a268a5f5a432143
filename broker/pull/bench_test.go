package pull_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/broker/internal/rig"
	"github.com/quorate/quorate/broker/topic"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/store"
)

// filled is a rig on TCP whose queue holds n messages of 1 KiB.
func filled(tb testing.TB, n int) *rig.Rig {
	tb.Helper()
	r := start(tb, rig.Options{TCP: true, Store: func(c *store.Config) {
		d := store.DefaultConfig()
		c.CommitLogFileSize, c.ConsumeQueueFileSize, c.IndexSlots, c.IndexEntries = d.CommitLogFileSize, d.ConsumeQueueFileSize, d.IndexSlots, d.IndexEntries
	}})
	cmd := protocol.NewRequest(&protocol.SendMessageRequestV2{
		ProducerGroup: "pg", Topic: "T", DefaultTopic: topic.Template, DefaultTopicQueueNums: 4, Properties: "TAGS\x01a\x02",
	}, make([]byte, 1024))
	rig.Pump(tb, r.Addr, protocol.AppendFrame(nil, cmd), n, 64)
	r.Dispatched(tb)
	return r
}

func pullFrame(expression string) []byte {
	return protocol.AppendFrame(nil, protocol.NewRequest(from(100, tagged(expression)), nil))
}

func benchmarkPull(b *testing.B, expression string, window int) {
	b.Helper()
	r := filled(b, 2000)
	frame := pullFrame(expression)
	rig.Pump(b, r.Addr, frame, 200, window)
	b.SetBytes(32 << 10)
	b.ReportAllocs()
	cpu := rig.CPU()
	b.ResetTimer()
	rig.Pump(b, r.Addr, frame, b.N, window)
	b.StopTimer()
	b.ReportMetric(32*float64(b.N)/b.Elapsed().Seconds(), "messages/s")
	b.ReportMetric(float64(rig.CPU()-cpu)/float64(b.N), "cpu-ns/op") // client included
}

func BenchmarkPull32(b *testing.B)          { benchmarkPull(b, "*", 1) }
func BenchmarkPull32Pipelined(b *testing.B) { benchmarkPull(b, "*", 8) }
func BenchmarkPull32Tagged(b *testing.B)    { benchmarkPull(b, "a", 1) }

// The whole broker side of a pull of 32 messages, from the request to the socket.
func TestPullsAllocateAlmostNothing(t *testing.T) {
	if rig.Race {
		t.Skip("the race detector makes pools drop things")
	}
	for _, expression := range []string{"*", "a"} {
		t.Run(expression, func(t *testing.T) {
			r := filled(t, 500)
			frame := pullFrame(expression)
			rig.Pump(t, r.Addr, frame, 500, 1)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			const n = 2000
			answered := rig.Pump(t, r.Addr, frame, n, 1)
			runtime.ReadMemStats(&after)
			require.Greater(t, answered, int64(n*32*1024), "each answer has 32 messages")
			require.LessOrEqual(t, float64(after.Mallocs-before.Mallocs)/n, 0.5, "allocations per pull of 32 messages")
		})
	}
}
