// Package client is a small producer and consumer over the remoting protocol, for the product's own commands and tests:
// try, msg, bench. Users have RocketMQ's clients; nothing here is promised to them. It leaves to them what those commands
// do not need: broadcasting, namespaces, trace, pop.
package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
)

// Config of a client. Durations of zero take the default.
type Config struct {
	NameServers       []string // "host:port"
	Dial              remoting.Dialer
	TLS               *remoting.ClientTLS
	ID                string        // default: host@pid#number, unique in the process
	RequestTimeout    time.Duration // of one attempt, 3 s
	HeartbeatInterval time.Duration // 30 s
	RouteInterval     time.Duration // 30 s
	RebalanceInterval time.Duration // 20 s
	OffsetInterval    time.Duration // between two commits of consumer progress, 5 s
	SuspendTimeout    time.Duration // how long a broker may hold a pull that finds nothing, 15 s
}

// Defaults, as RocketMQ's clients have them.
const (
	requestTimeout    = 3 * time.Second
	heartbeatInterval = 30 * time.Second
	routeInterval     = 30 * time.Second
	rebalanceInterval = 20 * time.Second
	offsetInterval    = 5 * time.Second
	suspendTimeout    = 15 * time.Second
)

// Client holds connections, routes and the registration of its producers and consumers. Safe for concurrent use.
type Client struct {
	cfg      Config
	logger   *slog.Logger
	remoting *remoting.Client
	nextNS   atomic.Uint32

	mu        sync.Mutex
	routes    map[string]*Route
	producers map[string]*Producer
	consumers map[string]*Consumer
	changed   chan struct{} // tells Run that a heartbeat is due
}

var instances atomic.Uint64

// New starts nothing. A client whose producers take part in transactions, or that has consumers, needs Run.
func New(cfg Config, logger *slog.Logger) (*Client, error) {
	if len(cfg.NameServers) == 0 {
		return nil, errors.New("client: no NameServer address")
	}
	for _, d := range []struct {
		value    *time.Duration
		fallback time.Duration
	}{
		{&cfg.RequestTimeout, requestTimeout},
		{&cfg.HeartbeatInterval, heartbeatInterval},
		{&cfg.RouteInterval, routeInterval},
		{&cfg.RebalanceInterval, rebalanceInterval},
		{&cfg.OffsetInterval, offsetInterval},
		{&cfg.SuspendTimeout, suspendTimeout},
	} {
		if *d.value == 0 {
			*d.value = d.fallback
		}
	}
	if cfg.ID == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "localhost"
		}
		cfg.ID = fmt.Sprintf("%s@%d#%d", host, os.Getpid(), instances.Add(1))
	}
	c := &Client{
		cfg: cfg, logger: logger.With("component", "client"), routes: map[string]*Route{},
		producers: map[string]*Producer{}, consumers: map[string]*Consumer{}, changed: make(chan struct{}, 1),
	}
	router, err := remoting.NewRouter(c.callbacks())
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	c.remoting = remoting.NewClient(remoting.ClientConfig{Dial: cfg.Dial, TLS: cfg.TLS, Router: router}, logger)
	return c, nil
}

// ID is the client id that brokers know.
func (c *Client) ID() string { return c.cfg.ID }

// Run keeps routes fresh and announces producers and consumers to their brokers until ctx ends; then it takes leave.
func (c *Client) Run(ctx context.Context) error {
	beat := time.NewTicker(c.cfg.HeartbeatInterval)
	defer beat.Stop()
	routes := time.NewTicker(c.cfg.RouteInterval)
	defer routes.Stop()
	for {
		select {
		case <-ctx.Done():
			leave, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.RequestTimeout)
			defer cancel()
			c.unregister(leave)
			return nil
		case <-beat.C:
			c.heartbeat(ctx)
		case <-c.changed:
			c.heartbeat(ctx)
		case <-routes.C:
			c.refreshRoutes(ctx)
			c.heartbeat(ctx)
		}
	}
}

// Close closes all connections. Run has returned before.
func (c *Client) Close() error { return c.remoting.Close() }

// Invoke sends a typed request to addr within the request timeout; see remoting.InvokeTyped.
func (c *Client) Invoke(ctx context.Context, addr string, req protocol.Request, body []byte, out any) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.RequestTimeout)
	defer cancel()
	return remoting.InvokeTyped(ctx, c.remoting, addr, req, body, out)
}

// invokeNameServer tries each NameServer once, starting with the one that answered last.
func (c *Client) invokeNameServer(ctx context.Context, req protocol.Request, out any) ([]byte, error) {
	var errs []error
	first := c.nextNS.Load()
	for i := range len(c.cfg.NameServers) {
		at := (int(first) + i) % len(c.cfg.NameServers)
		body, err := c.Invoke(ctx, c.cfg.NameServers[at], req, nil, out)
		var answered *protocol.Error
		if err == nil || errors.As(err, &answered) {
			c.nextNS.Store(uint32(at))
			return body, err
		}
		errs = append(errs, fmt.Errorf("NameServer %s: %w", c.cfg.NameServers[at], err))
	}
	return nil, errors.Join(errs...)
}

// announce makes Run send a heartbeat soon.
func (c *Client) announce() {
	select {
	case c.changed <- struct{}{}:
	default: // one is due already
	}
}
