package meter

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRatesFollowTheLastSecondsAndMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var m Table
		done := make(chan error, 1)
		go func() { done <- m.Run(ctx) }()
		synctest.Wait()
		for range 20 {
			m.Stored([]byte("T"), 10, 1000, 3*time.Millisecond)
			m.Pulled([]byte("G"), []byte("T"), 5, 500, time.Millisecond)
			m.Missed()
			time.Sleep(time.Second)
			synctest.Wait()
		}
		s := m.Speed()
		require.Equal(t, Rates{10, 10, 10}, s.Put)
		require.Equal(t, Rates{5, 5, 5}, s.Transferred)
		require.Equal(t, Rates{2, 2, 2}, s.GetTotal)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		s = m.Speed()
		require.Equal(t, 0.0, s.Put[1], "nothing for ten seconds")
		require.InDelta(t, 200.0/30, s.Put[2], 0.01)

		minute, hour, day := m.Spans(m.mustFind(t, "TOPIC_PUT_NUMS", "T", ""))
		require.Equal(t, int64(200), minute.Sum)
		require.InDelta(t, 200.0/30, minute.TPS, 0.01)
		require.Equal(t, 10.0, minute.Average)
		require.Equal(t, int64(200), hour.Sum)
		require.Equal(t, int64(200), day.Sum)
		require.InDelta(t, 100.0/30, m.GetRate("G", "T"), 0.01)
		require.Zero(t, m.PutRate("unknown"))

		m.ForgetTopic("T")
		_, ok := m.Find("TOPIC_PUT_NUMS", "T", "")
		require.False(t, ok)
		cancel()
		require.NoError(t, <-done)
	})
}

func (t *Table) mustFind(tb testing.TB, name, topic, group string) *Item {
	tb.Helper()
	i, ok := t.Find(name, topic, group)
	require.True(tb, ok)
	return i
}

func TestCountingAllocatesNothing(t *testing.T) {
	var m Table
	topic, group := []byte("topic"), []byte("group")
	n := testing.AllocsPerRun(100, func() {
		m.Stored(topic, 1, 100, 0)
		m.Pulled(group, topic, 32, 3200, 0)
	})
	require.Zero(t, n)
}

func BenchmarkStored(b *testing.B) {
	var m Table
	topic := []byte("topic")
	b.ReportAllocs()
	for b.Loop() {
		m.Stored(topic, 1, 100, 0)
	}
}
