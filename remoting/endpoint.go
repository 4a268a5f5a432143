package remoting

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/protocol"
)

// Causes of a closed connection, as found by errors.Is in context.Cause(conn.Context()).
var (
	// ErrClosed is wrapped by every failure of a request whose connection closed.
	ErrClosed = errors.New("connection closed")
	// ErrPeerClosed: the peer ended the connection.
	ErrPeerClosed = errors.New("peer closed the connection")
	// ErrIdle: nothing was read or written for IdleTimeout.
	ErrIdle = errors.New("connection idle")
	// ErrSlowReader: the peer asks for more than it reads.
	ErrSlowReader = errors.New("peer does not read its answers")
	// ErrSlowWriter: a frame, or the TLS handshake, did not complete within FrameTimeout.
	ErrSlowWriter = errors.New("peer does not complete its frame")
	// ErrStopped: this side stops.
	ErrStopped = errors.New("stopped")
	// ErrTooManyInvokes: more requests await an answer on one connection than InvokesMax.
	ErrTooManyInvokes = errors.New("too many requests await an answer")
	// ErrReadMemory: frames that are being received take more than LargeReadBytesMax.
	ErrReadMemory = errors.New("large frames being received take too much memory")
)

// Limits bound what one connection, or all connections of one server or client together, may use. Zero means the default.
type Limits struct {
	IdleTimeout  time.Duration // nothing read and nothing written for so long closes (serverChannelMaxIdleTimeSeconds); 120 s
	FrameTimeout time.Duration // from the first byte of a frame, or of a handshake, to its last; 60 s
	WriteTimeout time.Duration // a peer that takes not one byte of a waiting answer for so long is closed; 60 s

	WriteQueueBytesPause int64 // a server reads no further requests from a connection with more unsent bytes; 4 MiB
	WriteQueueBytesMax   int64 // more unsent bytes on one connection close it; 64 MiB
	LargeReadBytesMax    int64 // buffers of partly received frames above 64 KiB, all connections together; 512 MiB
	InvokesMax           int   // requests of ours awaiting an answer on one connection; 65,536

	DataMax, QueryMax, AdminMax int // requests at work per class, all connections together; 65,536, 16,384, 1,024
	HoldsMax                    int // requests that only wait; 100,000
}

// DefaultLimits returns the defaults named at each field.
func DefaultLimits() Limits {
	return Limits{
		IdleTimeout: 120 * time.Second, FrameTimeout: time.Minute, WriteTimeout: time.Minute,
		WriteQueueBytesPause: 4 << 20, WriteQueueBytesMax: 64 << 20, LargeReadBytesMax: 512 << 20, InvokesMax: 65536,
		DataMax: 65536, QueryMax: 16384, AdminMax: 1024, HoldsMax: 100000,
	}
}

// withDefaults fills what is zero.
func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	for _, f := range []struct{ v, d *time.Duration }{
		{&l.IdleTimeout, &d.IdleTimeout}, {&l.FrameTimeout, &d.FrameTimeout}, {&l.WriteTimeout, &d.WriteTimeout},
	} {
		if *f.v <= 0 {
			*f.v = *f.d
		}
	}
	for _, f := range []struct{ v, d *int64 }{
		{&l.WriteQueueBytesPause, &d.WriteQueueBytesPause}, {&l.WriteQueueBytesMax, &d.WriteQueueBytesMax}, {&l.LargeReadBytesMax, &d.LargeReadBytesMax},
	} {
		if *f.v <= 0 {
			*f.v = *f.d
		}
	}
	for _, f := range []struct{ v, d *int }{
		{&l.InvokesMax, &d.InvokesMax}, {&l.DataMax, &d.DataMax}, {&l.QueryMax, &d.QueryMax}, {&l.AdminMax, &d.AdminMax}, {&l.HoldsMax, &d.HoldsMax},
	} {
		if *f.v <= 0 {
			*f.v = *f.d
		}
	}
	return l
}

// endpoint is what all connections of one server, or of one client, share.
type endpoint struct {
	router     *Router // nil: requests are not served
	fast       bool
	server     bool // accepted connections: detect TLS and PROXY headers, stop reading when answers pile up
	proxyOff   bool
	tls        *TLSMode
	errorReply func(error) *Reply
	onClose    func(*Conn)
	admission  *admission
	limits     Limits
	logger     *slog.Logger
	complaints complaints
	goroutines sync.WaitGroup // readers, writers, handlers
	largeReads atomic.Int64   // bytes in read buffers above the pooled size
	poison     bool           // overwrite read buffers after use (tests)
}

func newEndpoint(limits Limits, router *Router, logger *slog.Logger) *endpoint {
	limits = limits.withDefaults()
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &endpoint{
		router:    router,
		limits:    limits,
		logger:    logger,
		admission: newAdmission([classes]int{Data: limits.DataMax, Query: limits.QueryMax, Admin: limits.AdminMax}, limits.HoldsMax),
	}
}

// closed logs why a connection was closed: foreign bytes and exhausted limits once a minute and peer, the rest for
// whoever debugs.
func (e *endpoint) closed(c *Conn, cause error) {
	if (errors.Is(cause, protocol.ErrFrame) || errors.Is(cause, ErrSlowReader) || errors.Is(cause, ErrSlowWriter) || errors.Is(cause, ErrReadMemory)) &&
		e.complaints.may(c.RemoteAddr().Addr()) {
		e.logger.Warn("connection closed", "remote", c.RemoteAddr(), "local", c.LocalAddr(), "cause", cause.Error())
		return
	}
	e.logger.Debug("connection closed", "remote", c.RemoteAddr(), "local", c.LocalAddr(), "cause", cause.Error())
}
