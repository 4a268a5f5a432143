package store_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/store"
)

func benchConfig(b testing.TB) store.Config {
	b.Helper()
	cfg := store.DefaultConfig()
	cfg.RootDir = b.TempDir() + "/store"
	cfg.CommitLogFileSize = 256 << 20
	return cfg
}

func kilobyte(topic string, queue int32) *message.Message {
	return &message.Message{
		Topic: topic, QueueID: queue, BornHost: host, StoreHost: host, BornTimestamp: 1, Body: make([]byte, 1024),
		Properties: message.MakeProperties(map[string]string{
			message.UniqueKey: "AC11000100002A9F0000000000001234", message.Tags: "TagA", "WAIT": "true",
		}),
	}
}

// BenchmarkAppend appends from two goroutines; dispatch and index run beside it.
func BenchmarkAppend(b *testing.B) {
	s := run(b, benchConfig(b))
	b.ReportAllocs()
	b.SetBytes(1024)
	var worker atomic.Int32
	b.RunParallel(func(pb *testing.PB) {
		m := kilobyte("BenchmarkTopic", worker.Add(1)%4)
		for pb.Next() {
			if _, err := s.Append(m, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	s.settled(b)
	s.close(b)
}

// BenchmarkDispatch dispatches an appended log to 4 queues and the index.
func BenchmarkDispatch(b *testing.B) {
	cfg := benchConfig(b)
	s := open(b, cfg)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	m := kilobyte("BenchmarkTopic", 0)
	for i := range b.N {
		m.QueueID = int32(i % 4)
		if _, err := s.Append(m, nil); err != nil {
			b.Fatal(err)
		}
	}
	end := s.Appended().Load()
	b.ReportAllocs()
	b.SetBytes(1024)
	b.ResetTimer()
	s.Confirmed().Advance(end)
	if err := s.Dispatched().Wait(ctx, end); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	cancel()
	require.NoError(b, <-done)
	require.NoError(b, s.Close())
}

// BenchmarkGet32 reads 32 messages of one of 4 interleaved queues: from memory, and from files.
func BenchmarkGet32(b *testing.B) {
	for name, count := range map[string]int{"memory": 4_000, "files": 100_000} {
		b.Run(name, func(b *testing.B) {
			s := run(b, benchConfig(b))
			m := kilobyte("BenchmarkTopic", 0)
			for i := range count {
				m.QueueID = int32(i % 4)
				if _, err := s.Append(m, nil); err != nil {
					b.Fatal(err)
				}
			}
			s.settled(b)
			var g store.GetResult
			b.ReportAllocs()
			b.SetBytes(32 * 1024)
			next := int64(0)
			for b.Loop() {
				if err := s.Get("BenchmarkTopic", 1, next%int64(count/8), 32, 1<<20, nil, &g); err != nil || g.Count != 32 {
					b.Fatal(err, g.Count)
				}
				next += 32
				g.Release()
			}
			s.close(b)
		})
	}
}

// BenchmarkOpen100kQueues opens a store with 25,000 topics of 4 queues after a clean stop.
func BenchmarkOpen100kQueues(b *testing.B) {
	cfg := benchConfig(b)
	s := run(b, cfg)
	begun := time.Now()
	for i := range 25_000 {
		m := kilobyte(fmt.Sprintf("topic-%05d", i), 0)
		m.Body = m.Body[:10]
		for q := range int32(4) {
			m.QueueID = q
			if _, err := s.Append(m, nil); err != nil {
				b.Fatal(err)
			}
		}
	}
	s.settled(b)
	s.close(b)
	b.ReportMetric(time.Since(begun).Seconds(), "fill-s")
	for b.Loop() {
		s := open(b, cfg)
		require.NoError(b, s.Close())
	}
}

func TestSendAndPullAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("pools forget at random under the race detector")
	}
	s := run(t, config(crashable(t)))
	for i := range 64 {
		appendOne(t, s.Store, testMessage("T", int32(i%2), i))
	}
	s.settled(t)
	var g store.GetResult
	get := func() {
		if err := s.Get("T", 0, 0, 32, 1<<20, nil, &g); err != nil || g.Count != 32 {
			t.Fatal(err, g.Count)
		}
		g.Release()
	}
	get()
	require.LessOrEqual(t, testing.AllocsPerRun(200, get), 0.5)
	m := testMessage("T", 0, 0)
	send := func() {
		if _, err := s.Append(m, nil); err != nil {
			t.Fatal(err)
		}
	}
	send()
	require.Less(t, testing.AllocsPerRun(200, send), 1.0, "dispatch and flush run beside it")
	s.close(t)
}
