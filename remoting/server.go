package remoting

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"
)

// ServerConfig has the limits of a server. Zero means the default.
type ServerConfig struct {
	Name           string        // for the log
	Fast           bool          // serves no MainOnly routes
	IdleTimeout    time.Duration // serverChannelMaxIdleTimeSeconds, default 120 s; same as Limits.IdleTimeout, which wins
	ConnectionsMax int           // further ones are closed at once; default 16,384
	DrainTimeout   time.Duration // how long requests at work may take once the server stops; default 5 s
	Limits         Limits
	TLS            *TLSMode // nil: TLS is disabled
	NoProxyHeader  bool     // do not accept a HAProxy PROXY header before the first frame
}

// acceptBackoffMax bounds the pause after accept failed, as it does while no file descriptor is free.
const acceptBackoffMax = time.Second

// Server accepts connections and serves a router.
type Server struct {
	cfg ServerConfig
	end *endpoint

	mu    sync.Mutex
	conns map[*Conn]struct{}
}

// NewServer starts nothing. errorReply turns a handler's plain error into an answer (nil: SYSTEM_ERROR; a *protocol.Error
// needs none); onClose (may be nil) is told of each closed connection, from a goroutine of that connection.
func NewServer(cfg ServerConfig, router *Router, errorReply func(error) *Reply, onClose func(*Conn), logger *slog.Logger) *Server {
	if cfg.Limits.IdleTimeout == 0 {
		cfg.Limits.IdleTimeout = cfg.IdleTimeout
	}
	if cfg.ConnectionsMax <= 0 {
		cfg.ConnectionsMax = 16384
	}
	if cfg.DrainTimeout <= 0 {
		cfg.DrainTimeout = 5 * time.Second
	}
	s := &Server{cfg: cfg, end: newEndpoint(cfg.Limits, router, logger), conns: map[*Conn]struct{}{}}
	if cfg.Name != "" {
		s.end.logger = s.end.logger.With("server", cfg.Name)
	}
	s.end.server, s.end.fast, s.end.tls, s.end.proxyOff = true, cfg.Fast, cfg.TLS, cfg.NoProxyHeader
	s.end.errorReply, s.end.onClose = errorReply, onClose
	return s
}

// Serve accepts on l until ctx ends, then drains, closes all connections and returns when their goroutines are gone.
// Draining: no connection is accepted, requests at work are finished and answered within DrainTimeout, new ones from
// clients that know GO_AWAY get that, the others are still served; held requests (Yield) end with their connection. The
// end of ctx is no error. Serve may be called once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	base, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(ErrStopped)
	unwatch := context.AfterFunc(ctx, func() { _ = l.Close() }) // makes Accept return; nothing to do about a failure
	defer unwatch()

	err := s.accept(ctx, base, l)
	_ = l.Close() // as above
	s.drain()
	s.end.goroutines.Wait()
	return err
}

// Connections returns the number of open connections.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

func (s *Server) accept(ctx, base context.Context, l net.Listener) error {
	var backoff time.Duration
	for {
		nc, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = nc.Close() // came too late to be served
			}
			return nil
		case err == nil:
			backoff = 0
			s.start(base, nc)
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accept on %v: %w", l.Addr(), err)
		default: // no file descriptor, a connection reset before it was accepted: neither ends the server
			backoff = min(max(2*backoff, 5*time.Millisecond), acceptBackoffMax)
			s.end.logger.Warn("accept failed", "listen", l.Addr().String(), "error", err, "pause", backoff)
			select {
			case <-ctx.Done():
			case <-time.After(backoff):
			}
		}
	}
}

func (s *Server) start(base context.Context, nc net.Conn) {
	c := newConn(base, s.end, nc)
	s.mu.Lock()
	full := len(s.conns) >= s.cfg.ConnectionsMax
	if !full {
		s.conns[c] = struct{}{}
	}
	s.mu.Unlock()
	if full {
		if s.end.complaints.may(c.remote.Addr()) {
			s.end.logger.Warn("connection refused, too many are open", "remote", c.remote, "connections_max", s.cfg.ConnectionsMax)
		}
		c.Close(ErrStopped)
		return
	}
	s.end.goroutines.Go(func() {
		defer s.forget(c)
		c.serve()
	})
}

func (s *Server) forget(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

func (s *Server) open() []*Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	conns := make([]*Conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	return conns
}

// drain waits for requests at work, then for their answers to be written, both together within DrainTimeout.
func (s *Server) drain() {
	bound := time.NewTimer(s.cfg.DrainTimeout)
	defer bound.Stop()
	adm := s.end.admission
	adm.draining.Store(true)
	inTime := true
	for inTime && adm.atWork() > 0 {
		select {
		case <-adm.drained:
		case <-bound.C:
			inTime = false
			s.end.logger.Warn("requests at work are given up", "requests", adm.atWork())
		}
	}
	conns := s.open()
	for _, c := range conns {
		c.out.closeWhenWritten(ErrStopped)
	}
	for _, c := range conns {
		if inTime {
			select {
			case <-c.ctx.Done():
				continue
			case <-bound.C:
				inTime = false
			}
		}
		c.Close(ErrStopped)
	}
}
