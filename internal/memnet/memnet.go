// Package memnet is an in-process network for tests: named hosts, links that can be cut both ways or one way, delayed and
// reset. It uses no sockets and waits only on channels and conditions, so that it works on the fake time of testing/synctest.
//
// A cut link behaves as when packets are dropped: open connections stay open and silent, what was written is delivered
// after Heal, and a new connection waits until its dialer gives up.
package memnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Errors of dialing and of connections that Reset ended.
var (
	ErrRefused = errors.New("memnet: connection refused")
	ErrReset   = errors.New("memnet: connection reset")
)

// Network connects listeners to dialers by address. Safe for concurrent use.
type Network struct {
	mu        sync.Mutex
	listeners map[string]*listener
	links     map[direction]*linkState
	conns     map[*conn]struct{}
	port      atomic.Uint32
}

// direction is one way between two hosts.
type direction struct{ from, to string }

type linkState struct {
	cut   bool
	delay time.Duration
	heal  chan struct{} // closed when cut ends
}

// New returns a network with no hosts; every pair of hosts is linked without delay.
func New() *Network {
	return &Network{listeners: map[string]*listener{}, links: map[direction]*linkState{}, conns: map[*conn]struct{}{}}
}

// Listen announces addr, "host:port", until the listener is closed.
func (n *Network) Listen(addr string) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[addr] != nil {
		return nil, fmt.Errorf("memnet: address %s in use", addr)
	}
	l := &listener{network: n, addr: address(addr), conns: make(chan net.Conn), done: make(chan struct{})}
	n.listeners[addr] = l
	return l, nil
}

// Dialer returns the dial function of one host.
func (n *Network) Dialer(from string) func(ctx context.Context, addr string) (net.Conn, error) {
	return func(ctx context.Context, addr string) (net.Conn, error) { return n.dial(ctx, from, addr) }
}

func (n *Network) dial(ctx context.Context, from, addr string) (net.Conn, error) {
	there := host(addr)
	for _, d := range []direction{{from, there}, {there, from}} {
		if err := n.pass(ctx, d); err != nil {
			return nil, err
		}
	}
	n.mu.Lock()
	l := n.listeners[addr]
	n.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("%w: %s", ErrRefused, addr)
	}
	local := address(fmt.Sprintf("%s:%d", from, 1024+n.port.Add(1)%64000))
	client, server := n.pair(from, local, there, l.addr)
	select {
	case l.conns <- server:
		return client, nil
	case <-l.done:
		client.reset(ErrRefused)
		return nil, fmt.Errorf("%w: %s", ErrRefused, addr)
	case <-ctx.Done():
		client.reset(ErrReset)
		return nil, context.Cause(ctx)
	}
}

// pass waits as a packet would for the link, then for its delay.
func (n *Network) pass(ctx context.Context, d direction) error {
	for {
		n.mu.Lock()
		l := n.link(d)
		cut, heal, delay := l.cut, l.heal, l.delay
		n.mu.Unlock()
		if !cut {
			return sleep(ctx, delay)
		}
		select {
		case <-heal:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// link returns the state of one direction. Under mu.
func (n *Network) link(d direction) *linkState {
	l := n.links[d]
	if l == nil {
		l = &linkState{}
		n.links[d] = l
	}
	return l
}

// CutOneWay drops what from sends to to.
func (n *Network) CutOneWay(from, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if l := n.link(direction{from, to}); !l.cut {
		l.cut, l.heal = true, make(chan struct{})
	}
}

// Cut drops what two hosts send each other.
func (n *Network) Cut(a, b string) {
	n.CutOneWay(a, b)
	n.CutOneWay(b, a)
}

// Heal undoes Cut and CutOneWay in both directions.
func (n *Network) Heal(a, b string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, d := range []direction{{a, b}, {b, a}} {
		if l := n.link(d); l.cut {
			l.cut = false
			close(l.heal)
		}
	}
}

// Delay makes everything that from sends to to arrive d later than it was sent.
func (n *Network) Delay(from, to string, d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.link(direction{from, to}).delay = d
}

// Reset ends all open connections between two hosts with ErrReset on both sides.
func (n *Network) Reset(a, b string) {
	n.mu.Lock()
	var hit []*conn
	for c := range n.conns {
		if c.way == (direction{a, b}) || c.way == (direction{b, a}) {
			hit = append(hit, c)
		}
	}
	n.mu.Unlock()
	for _, c := range hit {
		c.reset(ErrReset)
	}
}

func host(addr string) string {
	if i := strings.LastIndexByte(addr, ':'); i >= 0 {
		return addr[:i]
	}
	return addr
}

type listener struct {
	network *Network
	addr    address
	conns   chan net.Conn
	once    sync.Once
	done    chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() {
		close(l.done)
		l.network.mu.Lock()
		defer l.network.mu.Unlock()
		delete(l.network.listeners, string(l.addr))
	})
	return nil
}

func (l *listener) Addr() net.Addr { return l.addr }

type address string

func (a address) Network() string { return "mem" }
func (a address) String() string  { return string(a) }
