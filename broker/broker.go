// Package broker composes one broker node from its features. It has no behaviour of its own: requests are answered by the
// packages below it, which never see each other except through small interfaces that are filled in here.
package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/quorate/quorate/broker/client"
	"github.com/quorate/quorate/broker/delay"
	"github.com/quorate/quorate/broker/group"
	"github.com/quorate/quorate/broker/metasync"
	"github.com/quorate/quorate/broker/meter"
	"github.com/quorate/quorate/broker/offset"
	"github.com/quorate/quorate/broker/ops"
	"github.com/quorate/quorate/broker/produce"
	"github.com/quorate/quorate/broker/pull"
	"github.com/quorate/quorate/broker/register"
	"github.com/quorate/quorate/broker/role"
	"github.com/quorate/quorate/broker/topic"
	"github.com/quorate/quorate/broker/transaction"
	"github.com/quorate/quorate/broker/write"
	"github.com/quorate/quorate/ha"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
	"github.com/quorate/quorate/store"
)

// Deps are what a broker gets from outside.
type Deps struct {
	Logger    *slog.Logger
	Dial      remoting.Dialer     // to NameServers; nil: TCP
	TLS       *remoting.TLSMode   // of the listeners; nil: off
	ClientTLS *remoting.ClientTLS // to NameServers; nil: plaintext
	// SaveConfig keeps keys that an operator changed while the broker runs for the next start; nil: they last until then.
	SaveConfig func(changed map[string]string) error
	// Unused are keys that have no effect, with the reason: an operator who changes one is told.
	Unused map[string]string
}

// Broker is one broker node. New takes its files; Run serves; Close gives the files back.
type Broker struct {
	cfg    Config
	deps   Deps
	logger *slog.Logger
	addr   string
	haAddr string // that replicas are told
	closed sync.Once

	store        *store.Store
	topics       *topic.Table
	groups       *group.Table
	offsets      *offset.Table
	clients      *client.Registry
	meter        *meter.Table
	role         *role.Keeper
	metadata     *metasync.Syncer
	pipeline     *write.Pipeline
	delays       *delay.Schedule
	transactions *transaction.Transactions
	producing    *produce.Handlers
	pulling      *pull.Handlers
	outgoing     *remoting.Client
	registrar    *register.Registrar
	settings     *settings
	router       *remoting.Router
	started      time.Time
}

// New opens the store, recovers and builds everything; it starts nothing. cfg.Network.ListenPort is the port that clients
// are told: whoever listens on a port of the kernel's choice sets it before (see Listen).
func New(cfg Config, deps Deps) (_ *Broker, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	b := &Broker{cfg: cfg, deps: deps, logger: deps.Logger.With("component", "broker"), meter: &meter.Table{}, started: time.Now()}
	addr, ip, err := advertised(cfg.Identity.IP1, cfg.Network.ListenPort)
	if err != nil {
		return nil, err
	}
	b.addr = addr
	numeric, _ := netip.AddrFromSlice(ip)
	host := netip.AddrPortFrom(numeric.Unmap(), uint16(cfg.Network.ListenPort))

	if b.store, err = store.Open(cfg.stored(), deps.Logger); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
		}
	}()
	if err := b.openTables(); err != nil {
		return nil, err
	}
	if err := b.openAnnouncing(); err != nil {
		return nil, err
	}
	if err := b.openWriting(host); err != nil {
		return nil, err
	}
	b.settings = newSettings(b)
	if b.router, err = remoting.NewRouter(b.Routes()...); err != nil {
		return nil, err
	}
	return b, nil
}

func (b *Broker) component(name string) *slog.Logger { return b.deps.Logger.With("component", name) }

func (b *Broker) openTables() (err error) {
	now := b.cfg.Store.Now
	if b.topics, err = topic.Open(b.cfg.Topic, b.cfg.Live.Topic, b.store, now); err != nil {
		return err
	}
	if err = b.topics.EnsureSystem(b.cfg.Identity.Cluster, b.cfg.Identity.Name); err != nil {
		return err
	}
	if b.groups, err = group.Open(b.cfg.Live.Group, b.store, now, b.component("group")); err != nil {
		return err
	}
	b.offsets = offset.NewTable(b.store, b.cfg.Offset.VersionStep, now)
	if err = b.offsets.Load(); err != nil {
		return err
	}
	b.clients = client.New(b.cfg.Client, b.groups, b.topics, b.component("client"))
	return nil
}

// openRole makes this broker a master or a replica.
func (b *Broker) openRole() (err error) {
	dial := b.deps.Dial
	if dial == nil {
		dial = func(ctx context.Context, addr string) (net.Conn, error) {
			return (&net.Dialer{Timeout: haDialTimeout}).DialContext(ctx, "tcp", addr)
		}
	}
	b.role, err = role.New(b.cfg.Replication.HA, b.cfg.Live.Quorum, role.Identity{
		Cluster: b.cfg.Identity.Cluster, Broker: b.cfg.Identity.Name, ID: ha.BrokerID(b.cfg.Identity.ID), Addr: b.addr, HAAddr: b.haAddr,
		Replica: b.cfg.Replication.Role == Slave, Sync: b.cfg.Replication.Role == SyncMaster, SyncFlush: b.cfg.SyncFlush,
		Serve: b.cfg.ListensForReplicas(),
	}, role.Deps{
		Log: b.store, Dial: dial, Invoker: b.outgoing, Announced: b.registrar, NameServers: b.cfg.Register.NameServers, Logger: b.component("replication"),
	})
	return err
}

const haDialTimeout = 3 * time.Second

func (b *Broker) openWriting(host netip.AddrPort) (err error) {
	if err = b.openRole(); err != nil {
		return err
	}
	b.pipeline = write.New(b.cfg.Write, b.store, b.role)
	b.pipeline.Reload(b.cfg.Live.Write)
	b.delays, err = delay.New(b.cfg.Delay, delay.Deps{
		Log: b.store, Durability: b.store, Files: b.store, Writer: b.pipeline, Logger: b.component("delay"),
	})
	if err != nil {
		return err
	}
	b.metadata = metasync.New(metasync.Deps{
		Invoker: b.outgoing, Master: b.role.MasterAddr, Topics: b.topics, Groups: b.groups, Offsets: b.offsets, Delays: b.delays,
		Logger: b.component("metasync"),
	})
	b.transactions = transaction.New(b.cfg.Transaction, transaction.Deps{
		Log: b.store, Durability: b.store, Files: b.store, Writer: b.pipeline, Progress: b.offsets, Producers: b.clients, Topics: b.topics,
		Levels: b.delays.Levels(), Host: host, Logger: b.component("transaction"),
	})
	p := b.cfg.Produce
	p.Cluster, p.MaxMessageSize, p.StoreHost, p.Levels = b.cfg.Identity.Cluster, b.cfg.Store.MaxMessageSize, host, b.delays.Levels()
	b.producing = produce.New(p, b.cfg.Live.Produce, produce.Deps{
		Topics: b.topics, Groups: b.groups, Clients: b.clients, Writer: b.pipeline, Records: b.store, Meter: b.meter, Replica: b.role.Replica(), NoReplica: b.role.NoReplica,
		Logger: b.component("produce"),
	})
	var missing func()
	if b.role.Replica() {
		missing = b.metadata.Soon // a replica may have a topic's records before it has heard of the topic (CASES 180)
	}
	b.pulling = pull.New(b.cfg.Live.Pull, pull.Deps{
		Topics: b.topics, Groups: b.groups, Clients: b.clients, Progress: b.offsets, Queues: b.store, Log: b.store, Meter: b.meter,
		Replica: b.role.Replica(), Missing: missing, Logger: b.component("pull"),
	})
	return nil
}

func (b *Broker) openAnnouncing() error {
	haPort := b.cfg.Network.HAListenPort
	if haPort == 0 {
		haPort = b.cfg.Network.ListenPort + 1
	}
	haHost := b.cfg.Identity.IP2
	if haHost == "" {
		haHost = b.cfg.Identity.IP1
	}
	haAddr, _, err := advertised(haHost, haPort)
	if err != nil {
		return err
	}
	b.haAddr = haAddr
	b.outgoing = remoting.NewClient(remoting.ClientConfig{Dial: b.deps.Dial, TLS: b.deps.ClientTLS}, b.deps.Logger)
	b.registrar = register.New(b.cfg.Register, register.Identity{
		Cluster: b.cfg.Identity.Cluster, Broker: b.cfg.Identity.Name, ID: b.cfg.Identity.ID, Addr: b.addr, HAAddr: haAddr,
		Permission: b.cfg.Live.Produce.BrokerPermission, Acting: b.cfg.Replication.HA.SlaveActing, AliveTimeout: b.cfg.Replication.HA.AliveTimeout,
	}, b.topics, b.outgoing, b.component("register"))
	return nil
}

// Routes is the full request table of a broker.
func (b *Broker) Routes() [][]remoting.Route {
	name := b.cfg.Identity.Name
	return [][]remoting.Route{
		b.producing.Routes(),
		b.pulling.Routes(),
		b.role.Routes(),
		b.transactions.Routes(),
		b.delays.Routes(),
		(&offset.Handlers{
			Table: b.offsets, Queues: b.store, Names: names{b.topics, b.groups}, Online: b.online,
			ServerSideReset: b.pulling.ServerSideReset, BrokerName: name, MovedBackMax: movedBackMax, Logger: b.component("offset"),
		}).Routes(),
		(&topic.Handlers{
			Table: b.topics, Queues: b.store, Progress: b.offsets, Announcer: b.registrar, Meter: b.meter, BrokerName: name,
		}).Routes(),
		(&group.Handlers{Table: b.groups, Progress: b.offsets, Meter: b.meter}).Routes(),
		(&client.Handlers{Registry: b.clients, Progress: b.offsets, Records: b.store, BrokerName: name}).Routes(),
		(&ops.Handlers{
			Self: ops.Identity{
				Cluster: b.cfg.Identity.Cluster, Broker: name, Addr: b.addr, Version: protocol.VersionName(protocol.ServerVersion),
				Levels: len(b.delays.Levels()), Started: b.started, AcceptFrom: b.cfg.Live.Produce.AcceptFrom,
			},
			Store: b.store, Topics: b.topics, Groups: b.groups, Progress: b.offsets, Clients: b.clients, Schedule: b.delays, Meter: b.meter,
			Settings: b.settings,
		}).Routes(),
	}
}

// movedBackMax is how many messages a commit may take a group back before it is reported (CASES 94).
const movedBackMax = 1000

// Addr is the address that clients are told.
func (b *Broker) Addr() string { return b.addr }

// Ready is closed once a client that asks any NameServer finds this broker; All once every NameServer knows it.
func (b *Broker) Ready() <-chan struct{} { return b.registrar.Ready() }

// All is closed once every NameServer knows this broker.
func (b *Broker) All() <-chan struct{} { return b.registrar.All() }

// Config is the configuration the broker runs with now.
func (b *Broker) Config() Config { return b.settings.current() }

// Store is the storage engine, for health and metrics.
func (b *Broker) Store() *store.Store { return b.store }

// Writable says why a send would be refused now, or nil.
func (b *Broker) Writable() error {
	if err := b.pipeline.Writable(); err != nil {
		return err
	}
	return nil
}

// Close gives the files back. After a Run that ended without an error the next start has nothing to recover.
func (b *Broker) Close() (err error) {
	b.closed.Do(func() {
		if b.outgoing != nil {
			err = b.outgoing.Close()
		}
		if b.role != nil {
			b.role.Close()
		}
		err = errors.Join(err, b.store.Close())
	})
	return err
}

// names tells package offset what exists.
type names struct {
	topics *topic.Table
	groups *group.Table
}

// Queues returns a topic's read queues.
func (n names) Queues(name string) (int32, bool) {
	if c := n.topics.Get(name); c != nil {
		return c.ReadQueues, true
	}
	return 0, false
}

// Group reports whether a group exists, creating it when the broker may.
func (n names) Group(name string) bool { return n.groups.Find(name) != nil }

func (b *Broker) online(group string) []offset.Consumer {
	_, members, _ := b.clients.Consumers(group)
	out := make([]offset.Consumer, 0, len(members))
	for _, m := range members {
		out = append(out, offset.Consumer{ClientID: m.ClientID, Language: m.Language, Oneway: m.Conn.InvokeOneway})
	}
	return out
}
