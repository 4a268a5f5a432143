package remoting

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/quorate/quorate/protocol"
)

// ServerConfig has the limits of a server.
type ServerConfig struct {
	Name           string
	Fast           bool          // serves no MainOnly routes
	IdleTimeout    time.Duration // serverChannelMaxIdleTimeSeconds, default 120 s
	ConnectionsMax int
	// admission bounds per class, write queue bounds: named by the owner
	TLS *TLSMode
}

// TLSMode says how a port treats TLS (RocketMQ TlsSystemConfig).
type TLSMode struct {
	Config    *tls.Config
	Enforcing bool // plaintext is refused
}

// Server accepts connections and serves a router.
type Server struct{}

// NewServer starts nothing. errorReply turns a handler's plain error into an answer; onClose is told of each closed connection.
func NewServer(cfg ServerConfig, router *Router, errorReply func(error) *Reply, onClose func(*Conn), logger *slog.Logger) *Server {
	panic("unbuilt")
}

// Serve accepts on l until ctx ends, then drains, closes all connections and returns when their goroutines are gone.
func (s *Server) Serve(ctx context.Context, l net.Listener) error { panic("unbuilt") }

// Conn is one accepted connection.
type Conn struct{}

// ID is unique within the process.
func (c *Conn) ID() uint64 { panic("unbuilt") }

// RemoteAddr is the peer's address.
func (c *Conn) RemoteAddr() netip.AddrPort { panic("unbuilt") }

// LocalAddr is the address the peer connected to.
func (c *Conn) LocalAddr() netip.AddrPort { panic("unbuilt") }

// Context ends when the connection is closed; its cause says why.
func (c *Conn) Context() context.Context { panic("unbuilt") }

// Close closes the connection.
func (c *Conn) Close(cause error) { panic("unbuilt") }

// Invoke sends a request to the peer and waits for its answer (broker to client: 307, 309, 221, 326).
func (c *Conn) Invoke(ctx context.Context, cmd *protocol.Command) (*protocol.Command, error) {
	panic("unbuilt")
}

// InvokeOneway sends a request to the peer without waiting; it fails when the write queue is full.
func (c *Conn) InvokeOneway(cmd *protocol.Command) error { panic("unbuilt") }
