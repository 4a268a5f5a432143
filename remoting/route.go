// Package remoting carries protocol commands over connections and hands each request to its route.
package remoting

import (
	"context"
	"time"

	"github.com/quorate/quorate/protocol"
)

// Class is the admission class a request is counted against: each has its own bound of requests at work.
type Class int

// Admission classes.
const (
	Data  Class = iota // send, pull, ack
	Query              // offsets, heartbeats, lookups
	Admin              // maintenance
)

// Call is one request as an ordinary handler sees it. Header and Body are copies that the handler may keep.
type Call[H any] struct {
	Header   *H
	Body     []byte
	Conn     *Conn
	Command  *protocol.Command // fields beyond the typed header; valid until the handler returns
	Received time.Time         // when the frame was complete; deadlines count from here
}

// Reply is the answer of a handler. The zero value is a success without header.
type Reply struct {
	Code   protocol.ResponseCode
	Remark string
	Header any                // typed response header or nil
	Ext    protocol.ExtFields // further fields
	Body   []byte
	Parts  [][]byte // body in pieces, written without copying; used when Body is nil
	Done   func()   // called once after the frame has been written or dropped, to release Parts
}

// NoReply makes the server send nothing at all.
var NoReply = &Reply{}

// headerPtr is satisfied by *H when *H is a typed request header.
type headerPtr[H any] interface {
	*H
	protocol.Request
}

// Route binds one request code to its handler.
type Route struct {
	Code     protocol.RequestCode
	Class    Class
	MainOnly bool // not served on the fast port
	serve    func(context.Context, *Exchange) (*Reply, error)
	inline   func(*Exchange)
}

// Handle makes a route from a typed handler that runs in its own goroutine and may block. Its context ends with the
// connection or the server. An error becomes an answer through the server's ErrorReply.
func Handle[H any, P headerPtr[H]](class Class, fn func(context.Context, Call[H]) (*Reply, error)) Route {
	panic("unbuilt")
}

// Inline makes a route whose handler runs on the connection's reader goroutine: it must not block, and it must call
// Exchange.Respond exactly once, now or later, from any goroutine.
func Inline(code protocol.RequestCode, class Class, fn func(*Exchange)) Route {
	return Route{Code: code, Class: class, inline: fn}
}

// OnMainPortOnly marks a route as not served on the fast port.
func (r Route) OnMainPortOnly() Route { r.MainOnly = true; return r }

// Exchange is one request being answered. Its Command borrows the connection's read buffer: an Inline handler that keeps
// bytes after it has returned copies them. (Body of a send is copied into the log by the append itself.)
type Exchange struct {
	Conn     *Conn
	Command  protocol.Command
	Received time.Time
	// further fields: pooling, oneway, response state
}

// Respond queues the answer; answers queued by one batch of work leave in one write. r is read before Respond returns.
func (x *Exchange) Respond(r *Reply) { panic("unbuilt") }

// RespondError answers with the code of err.
func (x *Exchange) RespondError(err error) { panic("unbuilt") }

// Router finds the route of a request code.
type Router struct {
	routes map[protocol.RequestCode]Route
}

// NewRouter fails when two routes claim one code.
func NewRouter(tables ...[]Route) (*Router, error) { panic("unbuilt") }

// Serves reports whether a code has a route.
func (r *Router) Serves(c protocol.RequestCode) bool { _, ok := r.routes[c]; return ok }
