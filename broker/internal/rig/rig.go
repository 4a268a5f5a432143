// Package rig puts the parts together that requests of clients need, around a real store in a directory of the test: a
// term, the write pipeline, the tables, sends, pulls and heartbeats, behind a remoting server on an in-memory network.
package rig

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/broker/client"
	"github.com/quorate/quorate/broker/delay"
	"github.com/quorate/quorate/broker/group"
	"github.com/quorate/quorate/broker/meter"
	"github.com/quorate/quorate/broker/offset"
	"github.com/quorate/quorate/broker/produce"
	"github.com/quorate/quorate/broker/pull"
	"github.com/quorate/quorate/broker/topic"
	"github.com/quorate/quorate/broker/write"
	"github.com/quorate/quorate/ha"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
	"github.com/quorate/quorate/replication"
	"github.com/quorate/quorate/store"
)

// Addr is where the rig's server listens on its own network.
const Addr = "broker:10911"

// Host is the store host of records.
var Host = netip.MustParseAddrPort("10.0.0.7:10911")

// Options change what a rig is made of; the zero value is SYNC_FLUSH and RocketMQ's defaults.
type Options struct {
	Async  bool
	TCP    bool // listen on a loopback port instead of the in-memory network
	Topics func(*topic.Reloadable)
	Groups func(*group.Reloadable)
	Store  func(*store.Config)
	Send   func(*produce.Reloadable)
	Pull   func(*pull.Reloadable)
	Term   func(*replication.Config)
	Write  func(*write.Config)
	Queues func(pull.Queues) pull.Queues // stands before the store's queues
	// Router serves what the broker asks the rig's client.
	Router *remoting.Router
}

// Rig is a broker reduced to what sends and pulls need.
type Rig struct {
	Addr     string
	Store    *store.Store
	Term     *replication.Term
	Pipeline *write.Pipeline
	Topics   *topic.Table
	Groups   *group.Table
	Clients  *client.Registry
	Offsets  *offset.Table
	Send     *produce.Handlers
	Pull     *pull.Handlers
	Meter    *meter.Table
	Client   *remoting.Client
	Logger   *slog.Logger

	mu   sync.Mutex
	term *replication.Term
	err  error
}

// Current is the mastership of writes.
func (r *Rig) Current() (*replication.Term, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.term, r.err
}

// Demote takes the mastership away: later writes are refused with err.
func (r *Rig) Demote(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.term, r.err = nil, err
}

// New starts a rig; it stops with the test.
func New(tb testing.TB, o Options) *Rig {
	tb.Helper()
	r := &Rig{Addr: Addr, Logger: slog.New(slog.DiscardHandler), Meter: &meter.Table{}}
	r.openStore(tb, o)
	r.openTables(tb, o)
	levels, err := delay.ParseLevels(delay.DefaultLevels)
	require.NoError(tb, err)
	cfg := write.DefaultConfig()
	if o.Write != nil {
		o.Write(&cfg)
	}
	r.Pipeline = write.New(cfg, r.Store, r)
	live, livePull := produce.DefaultReloadable(), pull.DefaultReloadable()
	if o.Send != nil {
		o.Send(&live)
	}
	if o.Pull != nil {
		o.Pull(&livePull)
	}
	r.Send = produce.New(produce.Config{Cluster: "DefaultCluster", StoreReplies: true, StoreHost: Host, Levels: levels}, live, produce.Deps{
		Topics: r.Topics, Groups: r.Groups, Clients: r.Clients, Writer: r.Pipeline, Records: r.Store, Meter: r.Meter, Logger: r.Logger,
	})
	queues := pull.Queues(r.Store)
	if o.Queues != nil {
		queues = o.Queues(queues)
	}
	r.Pull = pull.New(livePull, pull.Deps{
		Topics: r.Topics, Groups: r.Groups, Clients: r.Clients, Progress: r.Offsets, Queues: queues, Log: r.Store,
		Meter: r.Meter, Logger: r.Logger,
	})
	r.serve(tb, o)
	return r
}

func (r *Rig) openStore(tb testing.TB, o Options) {
	tb.Helper()
	cfg := store.DefaultConfig()
	cfg.RootDir = tb.TempDir()
	cfg.CommitLogFileSize, cfg.ConsumeQueueFileSize, cfg.IndexSlots, cfg.IndexEntries = 4<<20, 6000, 64, 256
	cfg.SyncFlush = !o.Async
	cfg.HoldConfirmed = true
	if o.Store != nil {
		o.Store(&cfg)
	}
	var err error
	r.Store, err = store.Open(cfg, r.Logger)
	require.NoError(tb, err)
	a, err := ha.NewAuthority(0, 1)
	require.NoError(tb, err)
	tc := replication.Config{Authority: a, SyncFlush: cfg.SyncFlush}
	if o.Term != nil {
		o.Term(&tc)
	}
	r.Term, err = replication.NewTerm(tc, r.Store)
	require.NoError(tb, err)
	r.term = r.Term
	run(tb, r.Store.Run, func() { require.NoError(tb, r.Store.Close()) })
	run(tb, func(ctx context.Context) error {
		_ = r.Term.Run(ctx) // says why it ended, which is what ends it here
		return nil
	}, nil)
}

func (r *Rig) openTables(tb testing.TB, o Options) {
	tb.Helper()
	ts, gs := topic.DefaultReloadable(), group.DefaultReloadable()
	if o.Topics != nil {
		o.Topics(&ts)
	}
	if o.Groups != nil {
		o.Groups(&gs)
	}
	var err error
	r.Topics, err = topic.Open(topic.DefaultSettings(), ts, r.Store, time.Now)
	require.NoError(tb, err)
	require.NoError(tb, r.Topics.EnsureSystem("DefaultCluster", "broker-a"))
	r.Groups, err = group.Open(gs, r.Store, time.Now, r.Logger)
	require.NoError(tb, err)
	r.Clients = client.New(client.DefaultConfig(), r.Groups, r.Topics, r.Logger)
	r.Offsets = offset.NewTable(r.Store, 500, time.Now)
}

// Queues and Group let offset requests ask about topics and groups.
func (r *Rig) Queues(name string) (int32, bool) {
	if c := r.Topics.Get(name); c != nil {
		return c.ReadQueues, true
	}
	return 0, false
}

// Group reports whether a group exists.
func (r *Rig) Group(name string) bool { return r.Groups.Find(name) != nil }

func (r *Rig) serve(tb testing.TB, o Options) {
	tb.Helper()
	clients := &client.Handlers{Registry: r.Clients, BrokerName: "broker-a"}
	offsets := &offset.Handlers{
		Table: r.Offsets, Queues: r.Store, Names: r, Online: func(string) []offset.Consumer { return nil }, ServerSideReset: func() bool { return true },
		BrokerName: "broker-a", MovedBackMax: 1 << 20, Logger: r.Logger,
	}
	router, err := remoting.NewRouter(r.Send.Routes(), r.Pull.Routes(), clients.Routes(), offsets.Routes())
	require.NoError(tb, err)
	server := remoting.NewServer(remoting.ServerConfig{Name: "rig"}, router, nil, func(c *remoting.Conn) { r.Clients.Closed(c) }, r.Logger)
	loop := remoting.NewLoopback()
	var l net.Listener
	if o.TCP {
		l, err = net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test's own listener
		require.NoError(tb, err)
		r.Addr = l.Addr().String()
	} else {
		l, err = loop.Listen(Addr)
		require.NoError(tb, err)
	}
	run(tb, r.Send.Run, nil)
	run(tb, r.Pull.Run, nil)
	run(tb, func(ctx context.Context) error { return server.Serve(ctx, l) }, nil)
	r.Client = remoting.NewClient(remoting.ClientConfig{Dial: loop.Dial, Router: o.Router}, r.Logger)
	tb.Cleanup(func() { require.NoError(tb, r.Client.Close()) })
}

// run runs fn until the test ends, and after afterwards.
func run(tb testing.TB, fn func(context.Context) error, after func()) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- fn(ctx) }()
	tb.Cleanup(func() {
		cancel()
		require.NoError(tb, <-done)
		if after != nil {
			after()
		}
	})
}

// Invoke sends a request and returns the answer, whatever its code.
func (r *Rig) Invoke(tb testing.TB, req protocol.Request, body []byte) *protocol.Command {
	tb.Helper()
	return r.InvokeCommand(tb, protocol.NewRequest(req, body))
}

// InvokeCommand is Invoke for a command made by hand.
func (r *Rig) InvokeCommand(tb testing.TB, cmd *protocol.Command) *protocol.Command {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	answer, err := r.Client.Invoke(ctx, r.Addr, cmd)
	require.NoError(tb, err)
	return answer
}

// Dispatched waits until consumers can see everything appended so far.
func (r *Rig) Dispatched(tb testing.TB) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	require.NoError(tb, r.Store.Dispatched().Wait(ctx, r.Store.Appended().Load()))
}
