package role

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/ha"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/replication"
)

// ErrReplica refuses writes at a replica.
var ErrReplica = errors.New("this broker is a replica: it takes no messages")

// errClosed ends the mastership of a broker that stops.
var errClosed = errors.New("broker closed")

// Log is the store as replication needs it (store.Store).
type Log interface {
	replication.Log
	replication.Source
	replication.Sink
}

// Identity is who this broker is.
type Identity struct {
	Cluster, Broker string
	ID              ha.BrokerID
	Addr, HAAddr    string // "host:port" that clients and replicas use
	Replica         bool   // brokerRole=SLAVE
	Sync            bool   // brokerRole=SYNC_MASTER
	SyncFlush       bool
	Serve           bool // the HA port is open
}

// Announced is what the NameServers answered to a registration of this replica: the addresses of its master.
type Announced interface {
	Upstream() (masterAddr, haAddr string)
}

// Invoker sends requests to NameServers and to the master (remoting.Client).
type Invoker interface {
	Invoke(ctx context.Context, addr string, cmd *protocol.Command) (*protocol.Command, error)
	InvokeOneway(ctx context.Context, addr string, cmd *protocol.Command) error
}

// Deps are what a Keeper works with.
type Deps struct {
	Log         Log
	Dial        func(ctx context.Context, addr string) (net.Conn, error) // to the master's HA port
	Invoker     Invoker
	Announced   Announced
	NameServers []string
	Logger      *slog.Logger
}

// Keeper holds the role of a broker. Safe for concurrent use.
type Keeper struct {
	cfg    Config
	self   Identity
	deps   Deps
	policy atomic.Pointer[Policy]

	term     *replication.Term     // nil at a replica
	server   *replication.Server   // of the HA port
	follower *replication.Follower // nil at a master
	began    int64                 // end of the log at the start

	members watchedMembers
	told    atomic.Pointer[protocol.ExchangeHAInfoRequest] // a master that a peer named
	closing sync.Once
}

// New makes a master's term, which begins an epoch of the log, or prepares to follow. It starts nothing.
func New(cfg Config, policy Policy, self Identity, deps Deps) (*Keeper, error) {
	k := &Keeper{cfg: cfg, self: self, deps: deps, began: deps.Log.Appended().Load()}
	k.policy.Store(&policy)
	k.members.init()
	k.server = replication.NewServer(replication.ServerConfig{
		Timing: cfg.timing(), BatchBytes: cfg.BatchBytes, BytesPerSecond: cfg.rate(), SelfID: self.ID, Durable: cfg.ReplicaAck == Durable,
	}, deps.Log, deps.Log, k.members.at, k.progress, k.event, deps.Logger)
	if self.Replica {
		k.follower = replication.NewFollower(replication.FollowerConfig{
			ID: self.ID, Timing: cfg.timing(), SyncFlush: self.SyncFlush, Dial: deps.Dial,
		}, deps.Log, k.upstream, k.event, deps.Logger)
		return k, nil
	}
	epoch, err := k.beginEpoch()
	if err != nil {
		return nil, err
	}
	k.term, err = replication.NewTerm(replication.Config{
		Authority: ha.Authority{BrokerID: self.ID, Epoch: epoch}, SyncFlush: self.SyncFlush, Durable: cfg.ReplicaAck == Durable,
		Sync: self.Sync, Quorum: policy.quorum(cfg.SlaveActing), Alive: k.alive,
	}, deps.Log)
	return k, err
}

// beginEpoch gives this start of a master an epoch of its own. A master that comes back after it lost its unsynced end
// writes other bytes at offsets that its replicas hold already: only another epoch tells the two apart (ADR 0012). A broker
// that never had replicas keeps no history.
func (k *Keeper) beginEpoch() (ha.MasterEpoch, error) {
	h, end := k.deps.Log.History(), k.began
	if h.Last() == 0 && !k.self.Serve {
		return 1, nil
	}
	if h.Last() == 0 && end > 0 { // what was written before anybody kept a history is one epoch
		if err := k.deps.Log.BeginEpoch(ha.EpochEntry{Epoch: 1}); err != nil {
			return 0, fmt.Errorf("begin epoch 1: %w", err)
		}
	}
	e := ha.EpochEntry{Epoch: k.deps.Log.History().Last() + 1, Start: end}
	if err := k.deps.Log.BeginEpoch(e); err != nil {
		return 0, fmt.Errorf("begin epoch %d: %w", e.Epoch, err)
	}
	return e.Epoch, nil
}

// Current returns the term under which this broker may write (write.Masterships).
func (k *Keeper) Current() (*replication.Term, error) {
	if k.term == nil {
		return nil, ErrReplica
	}
	return k.term, nil
}

// NoReplica reports whether no replica is within haMaxGapNotInSync: what RocketMQ 4 called SLAVE_NOT_AVAILABLE.
func (k *Keeper) NoReplica() bool { return k.Status().InSyncSlaveNums == 0 }

// Replica reports whether this broker follows a master.
func (k *Keeper) Replica() bool { return k.self.Replica }

// Reload replaces the policy; it holds from the next send on.
func (k *Keeper) Reload(p Policy) {
	k.policy.Store(&p)
	if k.term != nil {
		k.term.SetQuorum(p.quorum(k.cfg.SlaveActing))
	}
}

func (k *Keeper) progress() replication.Progress {
	if k.term == nil {
		return nil
	}
	return k.term
}

// alive counts the group's members that are alive, self included: totalReplicas until a NameServer has told.
func (k *Keeper) alive() int {
	if n, known := k.members.alive(k.self.ID); known {
		return n
	}
	return k.policy.Load().TotalReplicas
}

func (k *Keeper) event(e replication.Event) {
	k.deps.Logger.Info("replication", "event", e.Kind, "replica", int64(e.Replica), "remote_addr", e.Addr, "reason", e.Reason)
}

// Hold keeps the mastership until ctx ends. When the log fails the term ends and the broker goes on: it refuses writes,
// with the reason, and serves what is confirmed.
func (k *Keeper) Hold(ctx context.Context) error {
	if k.term != nil {
		if err := k.term.Run(ctx); err != nil && ctx.Err() == nil {
			k.deps.Logger.Error("writes have stopped until this broker is restarted; reads go on", "error", err)
		}
	}
	<-ctx.Done()
	return nil
}

// Serve sends the log to replicas that connect to l, until ctx ends. A replica turns them away.
func (k *Keeper) Serve(ctx context.Context, l net.Listener) error { return k.server.Serve(ctx, l) }

// Follow keeps a replica's log equal to its master's until ctx ends; at a master it only waits.
func (k *Keeper) Follow(ctx context.Context) error {
	if k.follower == nil {
		<-ctx.Done()
		return nil
	}
	return k.follower.Run(ctx)
}

// Close ends the mastership. Nothing is acknowledged afterwards.
func (k *Keeper) Close() {
	if k.term != nil {
		k.closing.Do(func() { k.term.End(errClosed) })
	}
}

// MasterAddr is the main address of a replica's master, "" while it is not known.
func (k *Keeper) MasterAddr() string {
	if addr := k.members.addr(0); addr != "" {
		return addr
	}
	if told := k.told.Load(); told != nil && told.MasterAddress != "" {
		return told.MasterAddress
	}
	addr, _ := k.deps.Announced.Upstream()
	return addr
}

// hostOf is the numeric host of "host:port", if it is one.
func hostOf(addr string) (netip.Addr, bool) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return netip.Addr{}, false
	}
	ip, err := netip.ParseAddr(host)
	return ip.Unmap(), err == nil
}
