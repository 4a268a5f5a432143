package remoting

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/protocol"
)

// Exchange is one request being answered. Its Command borrows the connection's read buffer: an Inline handler that keeps
// bytes after it has returned copies them. (Body of a send is copied into the log by the append itself.) Code, Opaque,
// Version, Flag and Language stay valid until Respond. An Exchange is reused after Respond and must not be touched then.
type Exchange struct {
	Conn     *Conn
	Command  protocol.Command
	Received time.Time

	ext      protocol.ExtFields // the array that Command.Ext of an inline request uses
	class    Class
	admitted bool
	held     bool
	answered atomic.Bool
	refs     atomic.Int32 // the reader, and whoever answers; 0 returns it to the pool
}

// exchangeExtFieldsKept bounds the array of ext fields that a pooled Exchange keeps.
const exchangeExtFieldsKept = 64

var exchangePool = sync.Pool{New: func() any { return new(Exchange) }}

// newExchange has two references.
func newExchange(c *Conn, received time.Time) *Exchange {
	x := exchangePool.Get().(*Exchange)
	x.Conn, x.Received = c, received
	x.Command.Ext = x.ext[:0]
	x.refs.Store(2)
	return x
}

func (x *Exchange) release(n int32) {
	if x.refs.Add(-n) > 0 {
		return
	}
	clear(x.ext) // no pointer into a read buffer may outlive the request
	if cap(x.ext) > exchangeExtFieldsKept {
		x.ext = nil
	}
	x.Conn, x.Command, x.admitted, x.held = nil, protocol.Command{}, false, false
	x.answered.Store(false)
	exchangePool.Put(x)
}

// Yield gives the request's admission slot back while it waits for something other than this process (a message to
// arrive, a time). False: too many requests wait already, and this one should be answered at once. Not while it answers,
// and by one goroutine at a time.
func (x *Exchange) Yield() bool {
	if !x.admitted || x.held {
		return true
	}
	x.held = x.Conn.end.admission.hold(x.class)
	return x.held
}

// Resume takes a slot again after Yield. Respond does so by itself.
func (x *Exchange) Resume() {
	if x.held {
		x.held = false
		x.Conn.end.admission.unhold(x.class)
	}
}

// Respond queues the answer and sees that it leaves: at once when nobody writes to the connection, else with the answers
// that others queue meanwhile. It never blocks on the peer. r is read before Respond returns and may be reused then.
// A completion stage that answers many requests uses a Batch, so that each connection is written once.
func (x *Exchange) Respond(r *Reply) { x.respond(r, false, false) }

// RespondError answers with the code of err.
func (x *Exchange) RespondError(err error) { x.Respond(x.Conn.end.replyFor(err)) }

// respond answers once. later: the caller will call flushOwed on the connection if it is returned. owned: the caller gives
// Body away, so that a large one need not be copied.
func (x *Exchange) respond(r *Reply, later, owned bool) (owes *Conn) {
	if x.answered.Swap(true) {
		x.Conn.end.logger.Error("request was answered twice", "code", x.Command.Code)
		if r.Done != nil {
			r.Done()
		}
		return nil
	}
	switch {
	case r == NoReply:
	case x.Command.Oneway():
		if r.Done != nil {
			r.Done()
		}
	default:
		if x.Conn.answer(x, r, later, owned) {
			owes = x.Conn
		}
	}
	x.finish()
	return owes
}

func (x *Exchange) finish() {
	x.Resume()
	if x.admitted {
		x.admitted = false
		x.Conn.end.admission.leave(x.class)
	}
	x.release(1)
}

// Batch collects answers of one completion stage to many requests, so that each connection is written once. Not safe for
// concurrent use; the zero value is ready, and ready again after Flush.
type Batch struct{ conns []*Conn }

// Respond queues the answer of x. It leaves with Flush at the latest.
func (b *Batch) Respond(x *Exchange, r *Reply) {
	if c := x.respond(r, true, false); c != nil {
		b.conns = append(b.conns, c)
	}
}

// Connections is how many connections Flush would write to.
func (b *Batch) Connections() int { return len(b.conns) }

// Flush writes what was queued, without blocking on any peer.
func (b *Batch) Flush() {
	for i, c := range b.conns {
		c.flushOwed()
		b.conns[i] = nil
	}
	b.conns = b.conns[:0]
}

// request hands a decoded request to its route. It runs on the reader goroutine.
func (c *Conn) request(x *Exchange) {
	end := c.end
	code := x.Command.Code
	route := end.router.find(code)
	switch {
	case route == nil || route.MainOnly && end.fast:
		x.refuse(protocol.RequestCodeNotSupported, fmt.Sprintf(" request type %d not supported", code))
	case end.admission.draining.Load() && x.Command.Version > protocol.Version5_3_1: // NettyRemotingAbstract: later clients know GO_AWAY
		x.refuse(protocol.GoAway, "the server is shutting down, use another connection")
	case !end.admission.enter(route.Class):
		x.refuse(protocol.SystemBusy, "[OVERLOAD]system busy, start flow control for a while")
	default:
		x.class, x.admitted = route.Class, true
		if route.inline != nil {
			x.serveInline(route.inline)
			return
		}
		x.Command = cloneCommand(&x.Command)
		c.handlers.Add(1)
		end.goroutines.Add(1) // the reader's own count keeps it above zero
		go x.serveBlocking(route)
	}
}

func (x *Exchange) refuse(code protocol.ResponseCode, remark string) {
	x.respond(&Reply{Code: code, Remark: remark}, false, true)
	x.release(1)
}

func (x *Exchange) serveInline(handler func(*Exchange)) {
	defer x.release(1)
	defer x.recoverPanic()
	handler(x)
}

func (x *Exchange) serveBlocking(route *Route) {
	c, end := x.Conn, x.Conn.end
	defer end.goroutines.Done()
	defer c.handlers.Add(-1)
	defer x.release(1)
	defer x.recoverPanic()
	r, err := route.serve(c.ctx, x)
	switch {
	case err != nil:
		r = end.replyFor(err)
	case r == nil:
		r = &Reply{}
	}
	if x.respond(r, true, true) == nil {
		return
	}
	if c.handlers.Load() > 1 {
		runtime.Gosched() // others that are about to answer on this connection share the write
	}
	c.flushOwed()
}

// recoverPanic answers a request whose handler panicked. It holds a reference, so x is still this request.
func (x *Exchange) recoverPanic() {
	p := recover()
	if p == nil {
		return
	}
	end := x.Conn.end
	end.logger.Error("request handler panicked", "code", x.Command.Code, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	if !x.answered.Load() {
		x.respond(&Reply{Code: protocol.SystemError, Remark: "internal error"}, false, true)
	}
}

// replyFor turns a handler's error into an answer.
func (e *endpoint) replyFor(err error) *Reply {
	if wire, ok := errors.AsType[*protocol.Error](err); ok {
		return &Reply{Code: wire.Code, Remark: wire.Remark}
	}
	if e.errorReply != nil {
		if r := e.errorReply(err); r != nil {
			return r
		}
	}
	if !errors.Is(err, context.Canceled) {
		e.logger.Error("request failed", "error", err)
	}
	return &Reply{Code: protocol.SystemError, Remark: "internal error"}
}

// cloneCommand copies what a command borrows, in one allocation for all bytes.
func cloneCommand(c *protocol.Command) protocol.Command {
	size := len(c.Remark) + len(c.Body)
	for i := range c.Ext {
		size += len(c.Ext[i].Key) + len(c.Ext[i].Value)
	}
	own := make([]byte, 0, size)
	keep := func(b []byte) []byte {
		if b == nil {
			return nil
		}
		start := len(own)
		own = append(own, b...)
		return own[start:len(own):len(own)]
	}
	out := *c
	out.Ext = make(protocol.ExtFields, len(c.Ext))
	for i := range c.Ext {
		out.Ext[i] = protocol.ExtField{Key: keep(c.Ext[i].Key), Value: keep(c.Ext[i].Value)}
	}
	out.Remark, out.Body = keep(c.Remark), keep(c.Body)
	return out
}
