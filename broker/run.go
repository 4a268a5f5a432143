package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/quorate/quorate/broker/advice"
	"github.com/quorate/quorate/broker/produce"
	"github.com/quorate/quorate/broker/write"
	"github.com/quorate/quorate/internal/lifecycle"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
	"github.com/quorate/quorate/store"
)

// Listeners are the ports of a broker. Fast and HA, where replicas connect, may be nil.
type Listeners struct{ Main, Fast, HA net.Listener }

// Close closes them.
func (l Listeners) Close() error {
	var errs []error
	for _, x := range []net.Listener{l.Main, l.Fast, l.HA} {
		if x != nil {
			errs = append(errs, x.Close())
		}
	}
	return errors.Join(errs...)
}

// Listen opens the main port of cfg, the fast port two below it and, where replicas may come, the HA port. Port 0 takes one
// of the kernel's choice and notes it in cfg, whose other ports are then any.
func Listen(ctx context.Context, cfg *Config) (l Listeners, err error) {
	var lc net.ListenConfig
	open := func(port int) (net.Listener, error) {
		return lc.Listen(ctx, "tcp", net.JoinHostPort(cfg.Network.BindAddress, strconv.Itoa(port)))
	}
	fast, replicas := max(cfg.Network.ListenPort-2, 0), cfg.Network.HAListenPort
	if replicas == 0 && cfg.Network.ListenPort > 0 {
		replicas = cfg.Network.ListenPort + 1
	}
	if l.Main, err = open(cfg.Network.ListenPort); err != nil {
		return l, fmt.Errorf("listenPort=%d: %w", cfg.Network.ListenPort, err)
	}
	if l.Fast, err = open(fast); err != nil {
		return Listeners{}, errors.Join(fmt.Errorf("fast port %d (listenPort - 2): %w", fast, err), l.Main.Close())
	}
	if addr, ok := l.Main.Addr().(*net.TCPAddr); ok {
		cfg.Network.ListenPort = addr.Port
	}
	if !cfg.ListensForReplicas() {
		return l, nil
	}
	if l.HA, err = open(replicas); err != nil {
		return Listeners{}, errors.Join(fmt.Errorf("HA port %d (haListenPort, else listenPort + 1): %w", replicas, err), l.Close())
	}
	if addr, ok := l.HA.Addr().(*net.TCPAddr); ok {
		cfg.Network.HAListenPort = addr.Port
	}
	return l, nil
}

// Run serves until ctx ends. Parts start bottom-up and stop in reverse: the NameServers forget the broker first, then
// requests drain, loops end, tables are written, and the log is flushed and checkpointed. Close follows.
func (b *Broker) Run(ctx context.Context, l Listeners) error {
	b.logger.Info("broker starts", "cluster", b.cfg.Identity.Cluster, "broker", b.cfg.Identity.Name, "address", b.addr,
		"acknowledgement", b.cfg.Promise())
	for _, f := range b.cfg.Advice() {
		if f.Severity > advice.Note {
			b.logger.Warn("replication keys", "key", f.Key, "meaning", f.Text, "remedy", f.Remedy)
		}
	}
	g := lifecycle.Group{Logger: b.logger}
	g.Add("store", b.store.Run)
	g.Add("offsets", func(ctx context.Context) error {
		return b.offsets.Run(ctx, b.cfg.Offset.PersistInterval, b.component("offset"))
	})
	g.Add("term", b.role.Hold)
	if l.HA != nil {
		g.Add("HA port", func(ctx context.Context) error { return b.role.Serve(ctx, l.HA) })
	}
	if l.HA != nil || b.role.Replica() {
		g.Add("members", b.role.Watch)
	}
	g.Add("following", b.role.Follow)
	switch {
	case b.role.Replica():
		g.Add("metadata", b.metadata.Run)
	case b.cfg.Replication.HA.SlaveActing:
		g.Add("return", b.takeBack)
	}
	g.Add("meter", b.meter.Run)
	if !b.role.Replica() { // these write messages
		g.Add("delays", b.delays.Run)
		g.Add("transactions", func(ctx context.Context) error {
			if err := b.transactions.Load(ctx); err != nil {
				return err
			}
			return b.transactions.Run(ctx)
		})
	}
	g.Add("clients", b.clients.Run)
	g.Add("pulls", b.pulling.Run)
	g.Add("sends", b.producing.Run)
	g.Add("main port", b.serve("main", l.Main, false))
	if l.Fast != nil {
		g.Add("fast port", b.serve("fast", l.Fast, true))
	}
	g.Add("registrar", b.registrar.Run)
	return g.Run(ctx)
}

func (b *Broker) serve(name string, l net.Listener, fast bool) func(context.Context) error {
	s := remoting.NewServer(remoting.ServerConfig{
		Name: name, Fast: fast, IdleTimeout: b.cfg.Network.IdleTimeout, TLS: b.deps.TLS,
	}, b.router, b.responseFor, func(c *remoting.Conn) { b.clients.Closed(c) }, b.deps.Logger)
	return func(ctx context.Context) error { return s.Serve(ctx, l) }
}

// takeBack gives a master that was away the progress that its replicas kept meanwhile.
func (b *Broker) takeBack(ctx context.Context) error {
	for id, addr := range b.role.Others(ctx) {
		if err := b.metadata.Return(ctx, addr); err != nil && ctx.Err() == nil {
			b.logger.Warn("progress not taken back from a replica", "replica", id, "error", err)
		}
	}
	<-ctx.Done()
	return nil
}

// responseFor is the one place where errors become answers. A *protocol.Error already is one; what is not known here
// reaches the client as a code only, and the log in full.
func (b *Broker) responseFor(err error) *remoting.Reply {
	var answer *protocol.Error
	var refused *write.Error
	switch {
	case errors.As(err, &answer):
		return &remoting.Reply{Code: answer.Code, Remark: answer.Remark}
	case errors.As(err, &refused):
		return &remoting.Reply{Code: produce.CodeOf(refused), Remark: refused.Error()}
	case errors.Is(err, store.ErrNotWritable), errors.Is(err, store.ErrDiskFull):
		return &remoting.Reply{Code: protocol.ServiceNotAvailable, Remark: "the store takes no writes now"}
	case errors.Is(err, store.ErrQueueNotFound), errors.Is(err, store.ErrRecordNotFound):
		return &remoting.Reply{Code: protocol.SystemError, Remark: "no such message"}
	case errors.Is(err, store.ErrCorrupt): // the operator may skip it by moving the group's offset
		return &remoting.Reply{Code: protocol.SystemError, Remark: err.Error()}
	case errors.Is(err, context.DeadlineExceeded):
		return &remoting.Reply{Code: protocol.SystemBusy, Remark: "the request took too long"}
	case errors.Is(err, context.Canceled):
		return &remoting.Reply{Code: protocol.SystemBusy, Remark: "the broker stops, or the connection closed"}
	}
	b.logger.Error("request failed", "error", err)
	return &remoting.Reply{Code: protocol.SystemError, Remark: "internal error, the broker's log has the details"}
}
