package remoting

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/protocol"
)

var connIDs atomic.Uint64

// Conn is one connection, accepted or opened. Safe for concurrent use.
type Conn struct {
	end    *endpoint
	id     uint64
	remote netip.AddrPort // of the client itself, when a proxy announced it; set before the first request
	local  netip.AddrPort
	ctx    context.Context // ends with the connection, its cause says why
	cancel context.CancelCauseFunc
	born   time.Time

	in    inbound
	out   outbound
	calls calls

	handlers  atomic.Int32 // goroutines that handle its requests
	readAt    atomic.Int64 // nanoseconds after born: last bytes read
	wroteAt   atomic.Int64 // last bytes written
	partialAt atomic.Int64 // since when a frame or handshake is incomplete, 0: none is

	mu       sync.Mutex
	net      net.Conn // what Close closes; replaced by preface when TLS begins
	watchdog *time.Timer
	ends     []BatchEnd // the reader's: who waits for the end of its batch
}

// newConn starts nothing; base is what ends all connections of the endpoint.
func newConn(base context.Context, end *endpoint, nc net.Conn) *Conn {
	c := &Conn{
		end: end, id: connIDs.Add(1), net: nc, born: time.Now(),
		remote: addrPort(nc.RemoteAddr()), local: addrPort(nc.LocalAddr()),
	}
	c.ctx, c.cancel = context.WithCancelCause(base)
	c.in.open(c, nc)
	c.out.open(c, nc)
	return c
}

// ID is unique within the process.
func (c *Conn) ID() uint64 { return c.id }

// RemoteAddr is the peer's address, or what a PROXY header said it is.
func (c *Conn) RemoteAddr() netip.AddrPort { return c.remote }

// LocalAddr is the address the peer connected to.
func (c *Conn) LocalAddr() netip.AddrPort { return c.local }

// Context ends when the connection is closed; its cause says why.
func (c *Conn) Context() context.Context { return c.ctx }

// Close closes the connection; the first cause counts. It does not wait.
func (c *Conn) Close(cause error) {
	if cause == nil {
		cause = ErrClosed
	}
	if !c.out.close(cause) {
		return
	}
	c.cancel(cause)
	c.mu.Lock()
	nc := c.net
	c.mu.Unlock()
	// Below TLS, so that a peer that does not read cannot hold the closer up.
	if t, ok := nc.(interface{ NetConn() net.Conn }); ok {
		nc = t.NetConn()
	}
	_ = nc.Close() // the connection is given up either way
	c.out.abandon()
}

// serve reads until the connection ends. It returns when no other goroutine writes to it any more; handlers may still run.
func (c *Conn) serve() {
	c.startWatchdog()
	err := c.read()
	c.Close(err)
	c.stopWatchdog()
	c.in.drop()
	c.out.waitIdle()
	<-c.ctx.Done() // whoever closed first may not have got as far as naming the cause
	c.end.closed(c, context.Cause(c.ctx))
	if c.end.onClose != nil {
		c.end.onClose(c)
	}
}

// read serves frames until the connection cannot be read on, and says why.
func (c *Conn) read() error {
	if c.end.server {
		if err := c.preface(); err != nil {
			return readError(err)
		}
	}
	for {
		// Frames may already be buffered behind a preface.
		if err := c.serveBuffered(); err != nil {
			return err
		}
		if err := c.in.fill(); err != nil {
			return readError(err)
		}
	}
}

// serveBuffered serves the complete frames that are buffered. Answers that come meanwhile leave in one write at the end.
func (c *Conn) serveBuffered() error {
	received := time.Now()
	c.out.hold()
	defer c.out.unhold()
	defer c.endBatch() // before the answers leave, so that what it decides leaves with them
	served := false
	for {
		frame, err := c.in.next()
		if err != nil {
			return c.foreign(err)
		}
		if frame == nil {
			break
		}
		served = true
		if err := c.frame(frame, received); err != nil {
			return err
		}
	}
	switch {
	case c.in.empty():
		c.partialAt.Store(0)
	case served || c.partialAt.Load() == 0:
		c.partialAt.Store(c.since(received))
	}
	return nil
}

// BatchEnd is told when a connection's reader has served all requests that it had read, before their answers leave. It runs
// on the reader goroutine and must not block.
type BatchEnd interface{ BatchEnd() }

// AtBatchEnd has e told once, whoever else asked for it. For inline handlers, while they run: what many requests of one
// read have in common is done once.
func (x *Exchange) AtBatchEnd(e BatchEnd) {
	if slices.Contains(x.Conn.ends, e) {
		return
	}
	x.Conn.ends = append(x.Conn.ends, e)
}

func (c *Conn) endBatch() {
	for i, e := range c.ends {
		c.ends[i] = nil
		e.BatchEnd()
	}
	c.ends = c.ends[:0]
}

func (c *Conn) frame(frame []byte, received time.Time) error {
	x := newExchange(c, received)
	err := protocol.DecodeFrame(frame[4:], &x.Command)
	x.ext = x.Command.Ext
	switch {
	case err != nil:
		x.release(2)
		return err
	case x.Command.Response():
		c.calls.complete(&x.Command)
		x.release(2)
	default:
		c.request(x)
	}
	return nil
}

func readError(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return ErrPeerClosed
	case errors.Is(err, net.ErrClosed):
		return ErrClosed
	}
	return fmt.Errorf("read: %w", err)
}

// since is now on the connection's clock; never 0.
func (c *Conn) since(now time.Time) int64 { return max(1, int64(now.Sub(c.born))) }

// startWatchdog checks the time limits now and then: one timer for the life of a connection costs less than a deadline
// per read.
func (c *Conn) startWatchdog() {
	l := &c.end.limits
	period := min(l.IdleTimeout, l.FrameTimeout, l.WriteTimeout) / 4
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watchdog = time.AfterFunc(period, func() {
		if cause := c.overdue(c.since(time.Now())); cause != nil {
			c.Close(cause)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.ctx.Err() == nil {
			c.watchdog.Reset(period)
		}
	})
}

func (c *Conn) stopWatchdog() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watchdog.Stop()
}

func (c *Conn) overdue(now int64) error {
	l := &c.end.limits
	partial, stalled := c.partialAt.Load(), c.out.stalledAt.Load()
	switch {
	case stalled != 0 && now-stalled >= int64(l.WriteTimeout):
		return fmt.Errorf("%w: nothing taken for %v", ErrSlowReader, l.WriteTimeout)
	case partial != 0 && now-partial >= int64(l.FrameTimeout):
		return fmt.Errorf("%w within %v", ErrSlowWriter, l.FrameTimeout)
	case now-max(c.readAt.Load(), c.wroteAt.Load()) >= int64(l.IdleTimeout):
		return fmt.Errorf("%w for %v", ErrIdle, l.IdleTimeout)
	}
	return nil
}

// Invoke sends a request to the peer and waits for its answer, whatever its code (broker to client: 307, 309, 221, 326).
// The answer owns its bytes. cmd is not changed and may be reused after Invoke returned. It fails when ctx ends, with the
// cause of a closed connection, or at once when limits are reached.
func (c *Conn) Invoke(ctx context.Context, cmd *protocol.Command) (*protocol.Command, error) {
	answer, opaque, err := c.calls.open(c.end.limits.InvokesMax)
	if err != nil {
		return nil, err
	}
	defer c.calls.forget(opaque)
	if err := c.send(cmd, opaque, 0); err != nil {
		return nil, err
	}
	select {
	case r := <-answer:
		return r, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("request %d to %v: %w", cmd.Code, c.remote, context.Cause(ctx))
	case <-c.ctx.Done():
	}
	select {
	case r := <-answer: // it came before the end
		return r, nil
	default:
		return nil, fmt.Errorf("request %d to %v: %w", cmd.Code, c.remote, closedBy(context.Cause(c.ctx)))
	}
}

// InvokeOneway sends a request to the peer without waiting; it fails when the connection is closed or its write queue full.
func (c *Conn) InvokeOneway(cmd *protocol.Command) error {
	return c.send(cmd, c.calls.nextOpaque(), protocol.FlagOneway)
}

// closedBy makes sure that ErrClosed is found in a connection's cause.
func closedBy(cause error) error {
	if errors.Is(cause, ErrClosed) {
		return cause
	}
	return fmt.Errorf("%w: %w", ErrClosed, cause)
}

// calls are our requests that await an answer.
type calls struct {
	opaque  atomic.Int32
	mu      sync.Mutex
	pending map[int32]chan *protocol.Command
}

func (s *calls) nextOpaque() int32 { return s.opaque.Add(1) }

func (s *calls) open(limit int) (chan *protocol.Command, int32, error) {
	answer, opaque := make(chan *protocol.Command, 1), s.nextOpaque()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) >= limit {
		return nil, 0, fmt.Errorf("%w: %d", ErrTooManyInvokes, limit)
	}
	if s.pending == nil {
		s.pending = map[int32]chan *protocol.Command{}
	}
	s.pending[opaque] = answer
	return answer, opaque, nil
}

func (s *calls) forget(opaque int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, opaque)
}

// complete hands a borrowed answer to whoever waits for it. A late one is dropped.
func (s *calls) complete(borrowed *protocol.Command) {
	s.mu.Lock()
	answer := s.pending[borrowed.Opaque]
	delete(s.pending, borrowed.Opaque)
	s.mu.Unlock()
	if answer != nil {
		own := cloneCommand(borrowed)
		answer <- &own
	}
}

// addrPort returns the zero value for addresses that are not IP and port.
func addrPort(a net.Addr) netip.AddrPort {
	if tcp, ok := a.(*net.TCPAddr); ok {
		p := tcp.AddrPort()
		return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
	}
	if a == nil {
		return netip.AddrPort{}
	}
	p, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.AddrPort{}
	}
	return p
}
