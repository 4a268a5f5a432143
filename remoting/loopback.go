package remoting

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
)

// Loopback is an in-process network: servers listen on it by address, clients dial through it. Safe for concurrent use.
type Loopback struct {
	mu        sync.Mutex
	listeners map[string]*loopListener
	port      atomic.Uint32
}

// NewLoopback returns an empty network.
func NewLoopback() *Loopback { return &Loopback{listeners: map[string]*loopListener{}} }

// Listen announces addr ("host:port"), which nobody else may listen on until the listener is closed.
func (l *Loopback) Listen(addr string) (net.Listener, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listeners[addr] != nil {
		return nil, fmt.Errorf("loopback: address %s in use", addr)
	}
	ln := &loopListener{net: l, addr: loopAddr(addr), conns: make(chan net.Conn), closed: make(chan struct{})}
	l.listeners[addr] = ln
	return ln, nil
}

// Dial is a Dialer to this network; addresses nobody listens on are dialled over TCP.
func (l *Loopback) Dial(ctx context.Context, addr string) (net.Conn, error) {
	l.mu.Lock()
	ln := l.listeners[addr]
	l.mu.Unlock()
	if ln == nil {
		return dialTCP(ctx, addr)
	}
	here, there := net.Pipe()
	from := loopAddr(fmt.Sprintf("127.0.0.1:%d", 1+l.port.Add(1)%65535))
	select {
	case ln.conns <- &loopConn{there, ln.addr, from}:
		return &loopConn{here, from, ln.addr}, nil
	case <-ln.closed:
		return nil, fmt.Errorf("loopback: dial %s: %w", addr, net.ErrClosed)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

type loopListener struct {
	net    *Loopback
	addr   loopAddr
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *loopListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *loopListener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.net.mu.Lock()
		defer l.net.mu.Unlock()
		delete(l.net.listeners, string(l.addr))
	})
	return nil
}

func (l *loopListener) Addr() net.Addr { return l.addr }

// loopAddr is "host:port".
type loopAddr string

func (a loopAddr) Network() string { return "loopback" }
func (a loopAddr) String() string  { return string(a) }

type loopConn struct {
	net.Conn
	local, remote net.Addr
}

func (c *loopConn) LocalAddr() net.Addr  { return c.local }
func (c *loopConn) RemoteAddr() net.Addr { return c.remote }
