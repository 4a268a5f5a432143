// Package quoratetest starts a broker for a Go test and stops it when the test ends.
//
//	func TestOrders(t *testing.T) {
//		q := quoratetest.Start(t)
//		producer := newProducer(q.NameServers()) // of any RocketMQ client
//		…
//	}
package quoratetest

import (
	"context"
	"log/slog"
	"maps"
	"testing"
	"time"

	"github.com/quorate/quorate/embed"
)

// startTimeout bounds a start; on an idle machine it takes a few milliseconds.
const startTimeout = 30 * time.Second

// Option changes what Start starts.
type Option func(*embed.Config)

// OnDisk keeps messages in a directory, which a later Start may open again. Without it they are in memory.
func OnDisk(dir string) Option {
	return func(c *embed.Config) { c.Brokers[0].Dir, c.Brokers[0].Memory = dir, false }
}

// With sets keys of RocketMQ's broker configuration.
func With(settings map[string]string) Option {
	return func(c *embed.Config) { maps.Copy(c.Brokers[0].Settings, settings) }
}

// Start runs a NameServer and a broker on free ports of this machine, in memory, until the test and its cleanups end. What
// they log goes to the test's log.
func Start(tb testing.TB, options ...Option) *embed.Node {
	tb.Helper()
	cfg := embed.Standalone("")
	cfg.NameServers[0].Port, cfg.Brokers[0].Port = 0, 0
	cfg.Logger = slog.New(slog.NewTextHandler(tb.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	for _, o := range options {
		o(&cfg)
	}
	ctx, cancel := context.WithTimeout(tb.Context(), startTimeout)
	defer cancel()
	node, err := embed.Start(ctx, cfg)
	if err != nil {
		tb.Fatalf("start quorate: %v", err)
	}
	tb.Cleanup(func() {
		if err := node.Stop(); err != nil {
			tb.Errorf("stop quorate: %v", err)
		}
	})
	return node
}
