package remoting

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/quorate/quorate/protocol"
)

// Dialer opens a connection to "host:port".
type Dialer func(ctx context.Context, addr string) (net.Conn, error)

// ClientConfig has the limits of a client. Zero means the default.
type ClientConfig struct {
	Dial           Dialer        // nil: TCP
	ConnectTimeout time.Duration // TLS handshake included; default 3 s
	IdleTimeout    time.Duration // default 120 s; same as Limits.IdleTimeout, which wins
	Router         *Router       // serves requests that the peer sends back on the connection; may be nil
	TLS            *ClientTLS    // nil: plaintext
	Serialization  protocol.Serialization
	Limits         Limits
}

// ClientTLS is built from tls.client.* keys, see TLSSettings.
type ClientTLS struct{ Config *tls.Config }

// Client keeps one connection per address and multiplexes requests over it. Safe for concurrent use.
type Client struct {
	cfg    ClientConfig
	end    *endpoint
	base   context.Context // ends all connections
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	links map[string]*link // replaced when its connection is closed
}

// link is the connection to one address, or the attempt to make it.
type link struct {
	ready chan struct{} // closed when conn or err is set
	conn  *Conn
	err   error
}

// NewClient starts nothing; connections are opened on demand.
func NewClient(cfg ClientConfig, logger *slog.Logger) *Client {
	if cfg.ConnectTimeout <= 0 {
		cfg.ConnectTimeout = 3 * time.Second
	}
	if cfg.Limits.IdleTimeout == 0 {
		cfg.Limits.IdleTimeout = cfg.IdleTimeout
	}
	if cfg.Dial == nil {
		cfg.Dial = dialTCP
	}
	c := &Client{cfg: cfg, end: newEndpoint(cfg.Limits, cfg.Router, logger), links: map[string]*link{}}
	c.base, c.cancel = context.WithCancelCause(context.Background())
	return c
}

func dialTCP(ctx context.Context, addr string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", addr)
}

// Close closes all connections and waits for their goroutines.
func (c *Client) Close() error {
	c.mu.Lock()
	c.links = nil
	c.mu.Unlock()
	c.cancel(ErrStopped) // ends dialing and closes every connection
	c.end.goroutines.Wait()
	return nil
}

// Invoke sends cmd to addr and returns the answer, whatever its code. The answer owns its bytes. ctx bounds connect and
// wait. A request that the peer turns away with GO_AWAY, or whose connection closed before it was queued, is sent once more on
// a new connection.
func (c *Client) Invoke(ctx context.Context, addr string, cmd *protocol.Command) (*protocol.Command, error) {
	own := c.prepared(cmd)
	for again := true; ; again = false {
		l, err := c.link(ctx, addr)
		if err != nil {
			return nil, err
		}
		answer, err := l.conn.Invoke(ctx, &own)
		switch {
		case err == nil && answer.Code == int32(protocol.GoAway) && again:
			c.forget(addr, l) // what else is under way there may finish
		case errors.Is(err, errNotSent) && again:
			c.forget(addr, l)
		default:
			return answer, err
		}
	}
}

// InvokeOneway sends cmd without waiting for an answer.
func (c *Client) InvokeOneway(ctx context.Context, addr string, cmd *protocol.Command) error {
	own := c.prepared(cmd)
	for again := true; ; again = false {
		l, err := c.link(ctx, addr)
		if err != nil {
			return err
		}
		if err = l.conn.InvokeOneway(&own); !errors.Is(err, errNotSent) || !again {
			return err
		}
		c.forget(addr, l)
	}
}

func (c *Client) prepared(cmd *protocol.Command) protocol.Command {
	own := *cmd
	if own.Serialization == protocol.JSON {
		own.Serialization = c.cfg.Serialization
	}
	return own
}

// InvokeTyped sends a typed request: a code other than Success becomes a *protocol.Error; out (may be nil) is decoded from the answer's ext fields.
func InvokeTyped(ctx context.Context, c *Client, addr string, req protocol.Request, body []byte, out any) (respBody []byte, err error) {
	answer, err := c.Invoke(ctx, addr, protocol.NewRequest(req, body))
	if err != nil {
		return nil, err
	}
	return typedAnswer(answer, out)
}

// typedAnswer splits an answer into body and typed header, or makes an error of its code.
func typedAnswer(answer *protocol.Command, out any) ([]byte, error) {
	if answer.Code != int32(protocol.Success) {
		return nil, &protocol.Error{Code: protocol.ResponseCode(answer.Code), Remark: string(answer.Remark)}
	}
	if out != nil {
		if err := protocol.DecodeHeader(answer.Ext, out); err != nil {
			return nil, fmt.Errorf("answer: %w", err)
		}
	}
	return answer.Body, nil
}

// link returns the open connection to addr, making one if there is none.
func (c *Client) link(ctx context.Context, addr string) (*link, error) {
	c.mu.Lock()
	if c.links == nil {
		c.mu.Unlock()
		return nil, fmt.Errorf("client: %w", ErrStopped)
	}
	l := c.links[addr]
	if l == nil || l.over() {
		l = &link{ready: make(chan struct{})}
		c.links[addr] = l
		c.end.goroutines.Go(func() { c.connect(addr, l) }) // under mu: Close has not begun to wait
	}
	c.mu.Unlock()
	select {
	case <-l.ready:
	case <-ctx.Done():
		return nil, fmt.Errorf("connect to %s: %w", addr, context.Cause(ctx))
	}
	if l.err != nil {
		return nil, fmt.Errorf("connect to %s: %w", addr, l.err)
	}
	return l, nil
}

// over reports that the attempt failed or the connection closed.
func (l *link) over() bool {
	select {
	case <-l.ready:
		return l.err != nil || l.conn.ctx.Err() != nil
	default:
		return false
	}
}

// connect opens the connection and serves it.
func (c *Client) connect(addr string, l *link) {
	nc, err := c.dial(addr)
	if err != nil {
		l.err = err
		close(l.ready)
		c.forget(addr, l)
		return
	}
	l.conn = newConn(c.base, c.end, nc)
	close(l.ready)
	// Also for a connection that was replaced after GO_AWAY, which Close does not find any more.
	defer context.AfterFunc(c.base, func() { l.conn.Close(ErrStopped) })()
	l.conn.serve()
	c.forget(addr, l)
}

func (c *Client) dial(addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(c.base, c.cfg.ConnectTimeout)
	defer cancel()
	nc, err := c.cfg.Dial(ctx, addr)
	if err != nil || c.cfg.TLS == nil {
		return nc, err
	}
	config := c.cfg.TLS.Config.Clone()
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(addr) // a bad address has not been dialled
	}
	t := tls.Client(nc, config)
	if err := t.HandshakeContext(ctx); err != nil {
		_ = nc.Close() // it is of no use
		return nil, fmt.Errorf("TLS handshake: %w", err)
	}
	return t, nil
}

func (c *Client) forget(addr string, l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.links[addr] == l {
		delete(c.links, addr)
	}
}
