package broker

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/quorate/quorate/broker/advice"
	"github.com/quorate/quorate/broker/client"
	"github.com/quorate/quorate/broker/delay"
	"github.com/quorate/quorate/broker/group"
	"github.com/quorate/quorate/broker/produce"
	"github.com/quorate/quorate/broker/pull"
	"github.com/quorate/quorate/broker/register"
	"github.com/quorate/quorate/broker/role"
	"github.com/quorate/quorate/broker/topic"
	"github.com/quorate/quorate/broker/transaction"
	"github.com/quorate/quorate/broker/write"
	"github.com/quorate/quorate/internal/vfs"
	"github.com/quorate/quorate/store"
)

// Roles of a broker (RocketMQ BrokerRole).
const (
	AsyncMaster = "ASYNC_MASTER"
	SyncMaster  = "SYNC_MASTER"
	Slave       = "SLAVE"
)

// Config of a broker. Keys are RocketMQ's; a key that several fields carry sets them all.
type Config struct {
	Identity    Identity
	Network     Network
	SyncFlush   bool `conf:"flushDiskType,important" enum:"ASYNC_FLUSH|SYNC_FLUSH"`
	Replication Replication
	Store       store.Config
	Write       write.Config
	Topic       topic.Settings
	Client      client.Config
	Offset      OffsetConfig
	Delay       delay.Config
	Transaction transaction.Config
	Register    register.Config
	Produce     produce.Config
	Live        Reloadable
}

// Identity is who a broker is.
type Identity struct {
	Cluster string `conf:"brokerClusterName,important"`
	Name    string `conf:"brokerName,important"`
	ID      int64  `conf:"brokerId,important" bounds:"0..9223372036854775807"`
	// IP1 is the address that clients are told, IP2 the one that replicas are; "" means the first of this machine.
	IP1 string `conf:"brokerIP1"`
	IP2 string `conf:"brokerIP2"`
}

// Network is where a broker listens.
type Network struct {
	BindAddress  string        `conf:"bindAddress"`
	ListenPort   int           `conf:"listenPort,important" bounds:"0..65535"`   // the port that clients are told
	HAListenPort int           `conf:"haListenPort,important" bounds:"0..65535"` // 0: listenPort + 1
	IdleTimeout  time.Duration `conf:"serverChannelMaxIdleTimeSeconds,s" bounds:"1..86400"`
}

// Replication says which part this broker has in its group. How many copies a send needs may change while it runs: see
// Reloadable.Quorum.
type Replication struct {
	Role string `conf:"brokerRole,important" enum:"ASYNC_MASTER|SYNC_MASTER|SLAVE"`
	HA   role.Config
	// AlwaysListen opens the HA port of a broker whose configuration knows of no replica: one may come all the same.
	AlwaysListen bool
}

// OffsetConfig is about consumer offsets.
type OffsetConfig struct {
	PersistInterval time.Duration `conf:"flushConsumerOffsetInterval,ms" bounds:"10..86400000"`
	VersionStep     int64         `conf:"consumerOffsetUpdateVersionStep" bounds:"1..1000000"`
}

// Reloadable are the keys that UPDATE_BROKER_CONFIG may change.
type Reloadable struct {
	Produce produce.Reloadable
	Pull    pull.Reloadable
	Topic   topic.Reloadable
	Group   group.Reloadable
	Quorum  role.Policy
	Write   write.Reloadable
}

// DefaultConfig has RocketMQ's defaults.
func DefaultConfig() Config {
	name, err := os.Hostname()
	if err != nil || name == "" {
		name = "DEFAULT_BROKER" // as RocketMQ names a broker on a host without a name
	}
	d := store.DefaultConfig()
	return Config{
		Identity:    Identity{Cluster: "DefaultCluster", Name: name},
		Network:     Network{BindAddress: "0.0.0.0", ListenPort: 10911, IdleTimeout: 2 * time.Minute},
		Replication: Replication{Role: AsyncMaster, HA: role.DefaultConfig()},
		Store:       d,
		Write:       write.DefaultConfig(),
		Topic:       topic.DefaultSettings(),
		Client:      client.DefaultConfig(),
		Offset:      OffsetConfig{PersistInterval: 5 * time.Second, VersionStep: 500},
		Delay:       delay.DefaultConfig(),
		Transaction: transaction.DefaultConfig(),
		Register:    register.DefaultConfig(),
		Produce:     produce.Config{Cluster: "DefaultCluster", MaxMessageSize: d.MaxMessageSize, StoreReplies: true, SlaveNotAvailable: "5x"},
		Live: Reloadable{
			Produce: produce.DefaultReloadable(), Pull: pull.DefaultReloadable(), Topic: topic.DefaultReloadable(), Group: group.DefaultReloadable(),
			Quorum: role.DefaultPolicy(), Write: write.DefaultReloadable(),
		},
	}
}

// Validate checks fields and their relations; the error names the key.
func (c Config) Validate() error {
	var errs []error
	if c.Identity.Cluster == "" {
		errs = append(errs, errors.New("brokerClusterName is empty"))
	}
	if c.Identity.Name == "" {
		errs = append(errs, errors.New("brokerName is empty"))
	}
	if c.Network.ListenPort < 0 || c.Network.ListenPort > 65535 {
		errs = append(errs, fmt.Errorf("listenPort=%d: must be from 0 to 65535", c.Network.ListenPort))
	}
	switch r := c.Replication; {
	case r.Role == Slave && c.Identity.ID <= 0:
		errs = append(errs, fmt.Errorf("brokerId=%d: a replica (brokerRole=SLAVE) has a brokerId above 0", c.Identity.ID))
	case r.Role != Slave && r.Role != AsyncMaster && r.Role != SyncMaster:
		errs = append(errs, fmt.Errorf("brokerRole=%s: must be ASYNC_MASTER, SYNC_MASTER or SLAVE", r.Role))
	case r.Role != Slave && c.Identity.ID != 0:
		errs = append(errs, fmt.Errorf("brokerId=%d: a master has brokerId=0", c.Identity.ID))
	}
	errs = append(errs, c.stored().Validate(), c.Topic.Validate(), c.Delay.Validate(), c.Live.Validate())
	return errors.Join(errs...)
}

// Validate checks what may change while the broker runs.
func (r Reloadable) Validate() error {
	if p := r.Produce.BrokerPermission; p < 0 || p > 7 {
		return fmt.Errorf("brokerPermission=%d: must be from 0 to 7", p)
	}
	// It becomes a property of every message, whose separators are control characters.
	if id := r.Produce.RegionID; len(id) > regionBytesMax || strings.Trim(id, regionChars) != "" {
		return fmt.Errorf("regionId=%q: only letters, digits and -_. are allowed, at most %d of them", id, regionBytesMax)
	}
	return nil
}

// What a regionId may be made of.
const (
	regionBytesMax = 127
	regionChars    = "-_.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// stored is the store's part with what other parts say.
func (c Config) stored() store.Config {
	s := c.Store
	s.SyncFlush = c.SyncFlush
	// What consumers may see of the end that a start finds is for the replicas, or the master, to say.
	s.HoldConfirmed = c.Replication.Role == Slave || c.Replication.Role == SyncMaster && c.Live.Quorum.InSyncReplicas > 1
	if levels, err := delay.ParseLevels(c.Delay.Levels); err == nil { // else Validate names it
		s.DelayLevels = levels
	}
	return s
}

// ListensForReplicas says whether the HA port is opened.
func (c Config) ListensForReplicas() bool {
	q := c.Live.Quorum
	return c.Replication.AlwaysListen || c.Replication.Role != AsyncMaster || q.TotalReplicas > 1 || q.InSyncReplicas > 1
}

// Advice is what an operator should know about the replication keys, as lines for the log.
func (c Config) Advice() []advice.Finding {
	flush := "ASYNC_FLUSH"
	if c.SyncFlush {
		flush = "SYNC_FLUSH"
	}
	q := c.Live.Quorum
	return advice.Lint(advice.Keys{
		BrokerRole: c.Replication.Role, FlushDiskType: flush, TotalReplicas: q.TotalReplicas, InSyncReplicas: q.InSyncReplicas,
		MinInSyncReplicas: q.MinInSync, AutoInSyncReplicas: q.AutoInSync, SlaveActingMaster: c.Replication.HA.SlaveActing,
		MaxGapNotInSync: q.MaxGapNotInSync, GapSet: q.MaxGapNotInSync != advice.Defaults().MaxGapNotInSync,
		SlaveTimeoutMillis: int(c.Live.Write.ReplicaTimeout.Milliseconds()), ReplicaAck: c.Replication.HA.ReplicaAck,
	})
}

// Promise says in one line what an OK to a send means under this configuration.
func (c Config) Promise() string {
	copies := ""
	if c.Replication.Role == Slave {
		return "this broker is a replica and takes no messages"
	}
	if q := c.Live.Quorum; c.Replication.Role == SyncMaster && q.InSyncReplicas > 1 {
		copies = fmt.Sprintf(" and held by %d brokers (without replicas sends are not acknowledged)", q.InSyncReplicas)
		if q.AutoInSync && c.Replication.HA.SlaveActing {
			copies = fmt.Sprintf(" and held by %d brokers, or by fewer while replicas are missing, at least %d", q.InSyncReplicas, max(q.MinInSync, 1))
		}
	}
	if _, memory := c.Store.FS.(*vfs.Memory); memory {
		return "an OK means: held in the memory of this process" + copies + "; it is gone when the process is"
	}
	if c.SyncFlush {
		return "an OK means: flushed to this broker's disk" + copies + "; it survives kill -9 and power loss"
	}
	return fmt.Sprintf("an OK means: written to this broker's operating system%s; it survives kill -9 and is on disk within about %s, "+
		"a power loss before that loses it (flushDiskType=SYNC_FLUSH waits for the disk)", copies, c.Store.FlushInterval)
}

// advertised returns the address that a configured host and port are announced as, and its numeric form.
func advertised(host string, port int) (string, net.IP, error) {
	if host == "" {
		ip, err := firstAddress()
		if err != nil {
			return "", nil, err
		}
		host = ip.String()
	}
	ip := net.ParseIP(host)
	if ip == nil {
		found, err := net.LookupIP(host) //nolint:noctx // once at the start, and nothing can go on without it
		if err != nil {
			return "", nil, fmt.Errorf("brokerIP1=%s: %w", host, err)
		}
		ip = found[0]
	}
	return net.JoinHostPort(host, fmt.Sprint(port)), ip, nil
}

// firstAddress is the first address of this machine that others may reach, IPv4 before IPv6, else the loopback.
func firstAddress() (net.IP, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("find this machine's address: %w", err)
	}
	best, rank := net.IPv4(127, 0, 0, 1), 0
	for _, a := range all {
		n, ok := a.(*net.IPNet)
		if !ok || n.IP.IsLoopback() || n.IP.IsLinkLocalUnicast() {
			continue
		}
		if n.IP.To4() != nil && rank < 2 {
			best, rank = n.IP, 2
		} else if rank < 1 {
			best, rank = n.IP, 1
		}
	}
	return best, nil
}
