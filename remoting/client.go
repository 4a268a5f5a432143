package remoting

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/quorate/quorate/protocol"
)

// Dialer opens a connection to "host:port".
type Dialer func(ctx context.Context, addr string) (net.Conn, error)

// ClientConfig has the limits of a client.
type ClientConfig struct {
	Dial           Dialer        // nil: TCP (and TLS when TLS is set)
	ConnectTimeout time.Duration // default 3 s
	IdleTimeout    time.Duration
	Router         *Router // serves requests that the peer sends back on the connection; may be nil
	TLS            *ClientTLS
	Serialization  protocol.Serialization
}

// ClientTLS is built from tls.client.* keys.
type ClientTLS struct{}

// Client keeps one connection per address and multiplexes requests over it. Safe for concurrent use.
type Client struct{}

// NewClient starts nothing; connections are opened on demand.
func NewClient(cfg ClientConfig, logger *slog.Logger) *Client { panic("unbuilt") }

// Close closes all connections and waits for their goroutines.
func (c *Client) Close() error { panic("unbuilt") }

// Invoke sends cmd to addr and returns the answer, whatever its code. The answer owns its bytes. ctx bounds connect and wait.
func (c *Client) Invoke(ctx context.Context, addr string, cmd *protocol.Command) (*protocol.Command, error) {
	panic("unbuilt")
}

// InvokeOneway sends cmd without waiting for an answer.
func (c *Client) InvokeOneway(ctx context.Context, addr string, cmd *protocol.Command) error {
	panic("unbuilt")
}

// InvokeTyped sends a typed request: a code other than Success becomes a *protocol.Error; out (may be nil) is decoded from the answer's ext fields.
func InvokeTyped(ctx context.Context, c *Client, addr string, req protocol.Request, body []byte, out any) (respBody []byte, err error) {
	panic("unbuilt")
}

// Loopback is an in-process network: servers listen on it by address, clients dial through it.
type Loopback struct{}

// NewLoopback returns an empty network.
func NewLoopback() *Loopback { panic("unbuilt") }

// Listen announces addr.
func (l *Loopback) Listen(addr string) (net.Listener, error) { panic("unbuilt") }

// Dial is a Dialer to this network; addresses nobody listens on are dialled over TCP.
func (l *Loopback) Dial(ctx context.Context, addr string) (net.Conn, error) { panic("unbuilt") }
