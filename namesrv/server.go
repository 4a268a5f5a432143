// Package namesrv is the NameServer: brokers register with it, clients ask it for routes. The routing table and its rules
// are package route; this package has the requests, the clock that expires silent brokers, the key-value settings and
// their file, and the notices to brokers. A NameServer knows no other NameServer: each broker registers with all of them.
package namesrv

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quorate/quorate/internal/vfs"
	"github.com/quorate/quorate/namesrv/route"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
)

// noticeTimeout is how long a notice to one broker may take, connecting included (RouteInfoManager).
const noticeTimeout = 300 * time.Millisecond

// Server is one NameServer.
type Server struct {
	settings *settings
	kv       *kvStore
	fs       vfs.FS
	router   *remoting.Router
	client   *remoting.Client
	logger   *slog.Logger
	notices  chan route.Notice
	rescan   chan struct{} // the scan interval changed

	started time.Time // of Run

	mu      sync.RWMutex
	table   *route.Table
	arrived chan struct{} // closed and replaced when a broker is new
}

// New reads the key-value settings and starts nothing.
func New(cfg Config, logger *slog.Logger) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("namesrv configuration: %w", err)
	}
	if cfg.FS == nil {
		cfg.FS = vfs.OS()
	}
	kv, err := openKV(cfg.FS, cfg.KVConfigPath, cfg.KVEntriesMax)
	if err != nil {
		return nil, err
	}
	if cfg.Limits.IdleTimeout == 0 {
		cfg.Limits.IdleTimeout = cfg.IdleTimeout
	}
	logger = logger.With("component", "namesrv")
	s := &Server{
		settings: newSettings(cfg), kv: kv, fs: cfg.FS, logger: logger,
		notices: make(chan route.Notice, cfg.NoticesQueueMax), rescan: make(chan struct{}, 1),
		table: route.New(tableConfig(cfg, cfg.Reloadable)), arrived: make(chan struct{}),
	}
	if s.router, err = remoting.NewRouter(s.Routes()); err != nil {
		return nil, fmt.Errorf("namesrv routes: %w", err)
	}
	s.client = remoting.NewClient(remoting.ClientConfig{Dial: cfg.Dial, ConnectTimeout: noticeTimeout, TLS: cfg.ClientTLS}, logger)
	return s, nil
}

func tableConfig(cfg Config, live Reloadable) route.Config {
	return route.Config{
		SupportActingMaster: live.SupportActingMaster, DeleteAbsentTopics: live.DeleteTopicsWithRegistration,
		MembersMax: cfg.BrokersMax, TopicsMax: cfg.TopicsMax,
	}
}

// Run serves the listeners until ctx ends, and returns when all its goroutines are gone. It may be called once.
func (s *Server) Run(ctx context.Context, listeners ...net.Listener) error {
	s.mu.Lock()
	s.started = time.Now()
	s.mu.Unlock()
	cfg := s.settings.fixed
	group, ctx := errgroup.WithContext(ctx)
	for _, l := range listeners {
		server := remoting.NewServer(remoting.ServerConfig{
			Name: "namesrv", ConnectionsMax: cfg.ConnectionsMax, Limits: cfg.Limits, TLS: cfg.TLS,
		}, s.router, s.replyFor, s.closed, s.logger)
		group.Go(func() error { return server.Serve(ctx, l) })
	}
	group.Go(func() error { return s.expire(ctx) })
	group.Go(func() error { return s.sendNotices(ctx) })
	return errors.Join(group.Wait(), s.client.Close())
}

// WaitRegistered returns once a broker of that name is registered, or with the cause of ctx.
func (s *Server) WaitRegistered(ctx context.Context, brokerName string) error {
	for {
		s.mu.RLock()
		found := false
		for _, m := range s.table.Members() {
			found = found || m.Name == brokerName
		}
		arrived := s.arrived
		s.mu.RUnlock()
		if found {
			return nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// expire removes silent brokers every scan interval.
func (s *Server) expire(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.rescan:
			continue // with the new interval
		case <-time.After(s.settings.live.Load().ScanInterval):
		}
		s.mu.Lock()
		removed := s.table.Expire(time.Now())
		s.mu.Unlock()
		s.report(removed, "silent")
	}
}

// closed removes the brokers of a connection. The connection's goroutine calls it after it has served its last request in
// order, so no registration of that connection can follow.
func (s *Server) closed(c *remoting.Conn) {
	s.mu.Lock()
	removed := s.table.Closed(c.ID())
	s.mu.Unlock()
	s.report(removed, "connection closed")
}

func (s *Server) report(removed route.Removed, reason string) {
	for _, m := range removed.Members {
		s.logger.Info("broker removed", "cluster", m.Cluster, "broker", m.Name, "broker_id", m.ID, "addr", m.Addr, "reason", reason)
	}
	s.notify(removed.Notices)
}

// notify queues notices; a full queue drops them, since brokers also poll their group.
func (s *Server) notify(notices []route.Notice) {
	if !s.settings.live.Load().NotifyMinBrokerIDChanged {
		return
	}
	for _, n := range notices {
		select {
		case s.notices <- n:
		default:
			s.logger.Warn("notice of a new lowest broker id dropped, too many wait", "lowest_id", n.MinID, "lowest_addr", n.MinAddr)
		}
	}
}

func (s *Server) sendNotices(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case n := <-s.notices:
			for _, m := range n.To {
				s.sendNotice(ctx, n, m)
			}
		}
	}
}

func (s *Server) sendNotice(ctx context.Context, n route.Notice, to route.Member) {
	ctx, cancel := context.WithTimeout(ctx, noticeTimeout)
	defer cancel()
	err := s.client.InvokeOneway(ctx, to.Addr, protocol.NewRequest(&protocol.NotifyMinBrokerIDChangeRequest{
		MinBrokerID: &n.MinID, BrokerName: to.Name, MinBrokerAddr: n.MinAddr, OfflineBrokerAddr: n.Offline, HABrokerAddr: n.HAAddr,
	}, nil))
	if err != nil {
		s.logger.Warn("broker not told of a new lowest broker id", "addr", to.Addr, "error", err)
	}
}

// replyFor is the one place where errors become codes.
func (s *Server) replyFor(err error) *remoting.Reply {
	code := protocol.SystemError
	switch {
	case errors.Is(err, route.ErrName), errors.Is(err, errKVName):
		code = protocol.InvalidParameter
	case errors.Is(err, route.ErrSingleTopic), errors.Is(err, route.ErrFull), errors.Is(err, route.ErrTaken), errors.Is(err, errKVFull):
	default:
		if !errors.Is(err, context.Canceled) {
			s.logger.Error("request failed", "error", err)
		}
		return &remoting.Reply{Code: code, Remark: "internal error"}
	}
	return &remoting.Reply{Code: code, Remark: err.Error()}
}
