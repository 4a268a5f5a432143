// Package e2e runs each case against the loopback network, TCP in one process, and the binary.
package e2e

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quorate/quorate/admin"
	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/embed"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
	"github.com/quorate/quorate/test/process"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// settings make waiting short: every delay level is one second, half messages are asked about at once.
var settings = map[string]string{
	"messageDelayLevel":        "1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s",
	"transactionTimeOut":       "200",
	"transactionCheckInterval": "300",
	"flushDiskType":            "SYNC_FLUSH",
}

// world is a running NameServer and broker, and how to reach them.
type world struct {
	nameServers []string
	broker      string
	dial        remoting.Dialer
}

// TestCases runs every case against the same servers over the loopback network of one process, over TCP within one
// process, and, when QUORATE_BIN names it, over TCP against the binary.
func TestCases(t *testing.T) {
	for _, network := range []struct {
		name  string
		start func(*testing.T) world
	}{
		{"loopback", func(t *testing.T) world { return startEmbedded(t, true) }},
		{"tcp", func(t *testing.T) world { return startEmbedded(t, false) }},
		{"binary", startBinary},
	} {
		t.Run(network.name, func(t *testing.T) {
			w := network.start(t)
			t.Run("cases", func(t *testing.T) {
				for name, run := range cases {
					t.Run(name, func(t *testing.T) {
						t.Parallel()
						run(t, w)
					})
				}
			})
		})
	}
}

func startEmbedded(t *testing.T, loopback bool) world {
	cfg := embed.Standalone(t.TempDir())
	cfg.Loopback, cfg.NameServers[0].Port, cfg.Brokers[0].Port = loopback, 0, 0
	cfg.Brokers[0].Settings = maps.Clone(settings)
	cfg.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	n, err := embed.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Stop(); err != nil {
			t.Error(err)
		}
	})
	return world{nameServers: n.NameServers(), broker: n.Brokers()[0], dial: n.Dial}
}

func startBinary(t *testing.T) world {
	binary := os.Getenv("QUORATE_BIN")
	if binary == "" {
		t.Skip("QUORATE_BIN is not set: make e2e sets it")
	}
	dir := t.TempDir()
	s, err := process.StartStandalone(t.Context(), process.StandaloneConfig{
		Binary: binary, Data: filepath.Join(dir, "data"), Set: settings, Log: filepath.Join(dir, "log"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(30 * time.Second); err != nil {
			t.Error(err)
		}
	})
	return world{nameServers: []string{s.NameServer}, broker: s.Broker}
}

// connect makes a running client.
func (w world) connect(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.New(client.Config{
		NameServers: w.nameServers, Dial: w.dial, RebalanceInterval: time.Second, OffsetInterval: 100 * time.Millisecond,
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, c.Close()); err != nil {
			t.Error(err)
		}
	})
	return c
}

func (w world) admin(t *testing.T) *admin.Client {
	t.Helper()
	rc := remoting.NewClient(remoting.ClientConfig{Dial: w.dial}, slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		if err := rc.Close(); err != nil {
			t.Error(err)
		}
	})
	return admin.New(rc, w.nameServers)
}

// topic creates a topic of its own for a case and waits until it is routed.
func (w world) topic(t *testing.T, c *client.Client, queues int32) string {
	t.Helper()
	name := fmt.Sprintf("T%d", time.Now().UnixNano())
	config := admin.NewTopic(name)
	config.ReadQueueNums, config.WriteQueueNums = queues, queues
	if err := w.admin(t).PutTopic(t.Context(), w.broker, config, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := c.WaitForRoute(within(t, 10*time.Second), name); err != nil {
		t.Fatal(err)
	}
	return name
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// inbox collects what a consumer gets.
type inbox struct {
	mu       sync.Mutex
	messages []*client.Received
	changed  chan struct{}
	// fail says whether a message shall be refused.
	fail func(*client.Received) error
}

// consume runs a consumer until the case ends.
func consume(t *testing.T, c *client.Client, cfg client.ConsumerConfig, fail func(*client.Received) error) (*inbox, func()) {
	t.Helper()
	box := &inbox{changed: make(chan struct{}, 1), fail: fail}
	if cfg.From == "" {
		cfg.From = client.FromFirst
	}
	consumer := c.NewConsumer(cfg, box.take)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- consumer.Run(ctx) }()
	var once sync.Once
	stop := func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(stop)
	return box, stop
}

func (b *inbox) take(_ context.Context, messages []*client.Received) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range messages {
		if b.fail != nil {
			if err := b.fail(m); err != nil {
				return err
			}
		}
		b.messages = append(b.messages, m)
	}
	select {
	case b.changed <- struct{}{}:
	default: // somebody looks already
	}
	return nil
}

// wait returns once n messages are there.
func (b *inbox) wait(t *testing.T, n int) []*client.Received {
	t.Helper()
	timeout := time.After(30 * time.Second)
	for {
		b.mu.Lock()
		got := append([]*client.Received(nil), b.messages...)
		b.mu.Unlock()
		if len(got) >= n {
			return got
		}
		select {
		case <-b.changed:
		case <-timeout:
			t.Fatalf("%d of %d messages arrived", len(got), n)
		}
	}
}

// code is the response code of an error, -1 when it has none.
func code(err error) protocol.ResponseCode {
	if answered, ok := errors.AsType[*protocol.Error](err); ok {
		return answered.Code
	}
	return -1
}
