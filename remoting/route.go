// Package remoting carries protocol commands over connections and hands each request to its route. It knows frames,
// connections, admission and TLS; what a request means is the business of its handler.
//
// One goroutine reads a connection and serves inline routes itself; every other request gets a goroutine of its own. There
// is no writer goroutine: whoever produces an answer appends it to the connection's queue, and whoever finds nobody
// writing writes the queue (see writer.go). Nothing in this package blocks on a peer that does not read, except a reader
// that has produced more answers than its peer takes.
package remoting

import (
	"context"
	"fmt"
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

	classes = 3
)

// Call is one request as an ordinary handler sees it. Header and Body are copies that the handler may keep.
type Call[H any] struct {
	Header   *H
	Body     []byte
	Conn     *Conn
	Command  *protocol.Command // fields beyond the typed header; valid until the handler returns
	Received time.Time         // when the frame was complete; deadlines count from here
	exchange *Exchange
}

// Yield gives the request's admission slot back while the handler waits; see Exchange.Yield.
func (c Call[H]) Yield() bool { return c.exchange == nil || c.exchange.Yield() }

// Resume ends what Yield began; see Exchange.Resume.
func (c Call[H]) Resume() {
	if c.exchange != nil {
		c.exchange.Resume()
	}
}

// Reply is the answer of a handler. The zero value is a success without header. What it holds is read, and its Body
// copied where needed, before Respond returns; Parts belong to the connection until Done is called.
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
// connection or the server. An error becomes an answer through the server's ErrorReply; a nil Reply without an error is a
// success without header. A header that cannot be decoded is answered without calling fn.
func Handle[H any, P headerPtr[H]](class Class, fn func(context.Context, Call[H]) (*Reply, error)) Route {
	return HandleCode(P(new(H)).Code(), class, fn)
}

// HandleCode is Handle for a header type that is used with more than one code.
func HandleCode[H any](code protocol.RequestCode, class Class, fn func(context.Context, Call[H]) (*Reply, error)) Route {
	return Route{Code: code, Class: class, serve: func(ctx context.Context, x *Exchange) (*Reply, error) {
		h := new(H)
		if err := protocol.DecodeHeader(x.Command.Ext, h); err != nil {
			return nil, err
		}
		return fn(ctx, Call[H]{Header: h, Body: x.Command.Body, Conn: x.Conn, Command: &x.Command, Received: x.Received, exchange: x})
	}}
}

// Inline makes a route whose handler runs on the connection's reader goroutine: it must not block, and it must call
// Exchange.Respond exactly once, now or later, from any goroutine.
func Inline(code protocol.RequestCode, class Class, fn func(*Exchange)) Route {
	return Route{Code: code, Class: class, inline: fn}
}

// OnMainPortOnly marks a route as not served on the fast port.
func (r Route) OnMainPortOnly() Route { r.MainOnly = true; return r }

// routerDenseMax is the number of low request codes that are found by index.
const routerDenseMax = 512

// Router finds the route of a request code.
type Router struct {
	dense  [routerDenseMax]*Route
	routes map[protocol.RequestCode]*Route
}

// NewRouter fails when two routes claim one code.
func NewRouter(tables ...[]Route) (*Router, error) {
	r := &Router{routes: map[protocol.RequestCode]*Route{}}
	for _, table := range tables {
		for i := range table {
			route := table[i]
			if _, twice := r.routes[route.Code]; twice {
				return nil, fmt.Errorf("request code %d is routed twice", route.Code)
			}
			if route.Class < 0 || route.Class >= classes {
				return nil, fmt.Errorf("request code %d has no admission class", route.Code)
			}
			r.routes[route.Code] = &route
			if route.Code >= 0 && route.Code < routerDenseMax {
				r.dense[route.Code] = &route
			}
		}
	}
	return r, nil
}

// Serves reports whether a code has a route.
func (r *Router) Serves(c protocol.RequestCode) bool { return r.find(int32(c)) != nil }

func (r *Router) find(code int32) *Route {
	if r == nil {
		return nil
	}
	if code >= 0 && code < routerDenseMax {
		return r.dense[code]
	}
	return r.routes[protocol.RequestCode(code)]
}
