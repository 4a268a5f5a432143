package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/quorate/quorate/test/bench/load"
)

const (
	natsSubject = "bench"
	natsStream  = "BENCH"
	natsBytes   = 8 << 30
	natsTimeout = 30 * time.Second
)

// serveNATS runs one NATS server with a file-backed stream of one copy until ctx ends. always is sync_interval: always,
// the setting whose acknowledgement means what SYNC_FLUSH means.
func serveNATS(ctx context.Context, dir string, always bool) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true, SyncAlways: always,
		JetStreamMaxStore: natsBytes,
	})
	if err != nil {
		return fmt.Errorf("nats: %w", err)
	}
	s.Start()
	defer func() {
		s.Shutdown()
		s.WaitForShutdown()
	}()
	if !s.ReadyForConnections(natsTimeout) {
		return errors.New("nats: not ready")
	}
	fmt.Println(s.ClientURL())
	<-ctx.Done()
	return nil
}

// publishNATS keeps the shape's requests in flight: so many connections, each with Window goroutines that publish and wait.
func publishNATS(ctx context.Context, url string, shape load.Shape, body int, d time.Duration) (load.Result, error) {
	out := load.Result{Duration: d, Latency: hdrhistogram.New(1000, int64(time.Minute), 3)}
	conns := make([]*nats.Conn, shape.Connections)
	for i := range conns {
		c, err := nats.Connect(url)
		if err != nil {
			return out, fmt.Errorf("nats: %w", err)
		}
		defer c.Close()
		conns[i] = c
	}
	if err := ensureStream(ctx, conns[0]); err != nil {
		return out, err
	}
	payload := make([]byte, body)
	stop := time.Now().Add(d)
	var (
		mu    sync.Mutex
		errs  []error
		group sync.WaitGroup
	)
	for _, c := range conns {
		js, err := jetstream.New(c)
		if err != nil {
			return out, err
		}
		for range shape.Window {
			group.Go(func() {
				mine := hdrhistogram.New(1000, int64(time.Minute), 3)
				var err error
				for began := time.Now(); began.Before(stop); began = time.Now() {
					if _, err = js.Publish(ctx, natsSubject, payload); err != nil {
						break
					}
					_ = mine.RecordValue(min(max(int64(time.Since(began)), 1000), int64(time.Minute))) // within the bounds
				}
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
				out.Latency.Merge(mine)
			})
		}
	}
	group.Wait()
	out.Acked = out.Latency.TotalCount()
	out.Rate = float64(out.Acked) / d.Seconds()
	return out, errors.Join(errs...)
}

func ensureStream(ctx context.Context, c *nats.Conn) error {
	js, err := jetstream.New(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, natsTimeout)
	defer cancel()
	_, err = js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: natsStream, Subjects: []string{natsSubject}, Storage: jetstream.FileStorage, Replicas: 1, MaxBytes: natsBytes / 2, Discard: jetstream.DiscardOld,
	})
	if err != nil {
		return fmt.Errorf("nats stream: %w", err)
	}
	return nil
}
