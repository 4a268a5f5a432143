// Package role knows who this broker is in its group: a master under a Term, or a replica that follows one. It opens the
// HA port, agrees with peers over remoting, watches which members of the group are alive, and tells operators.
package role

import (
	"time"

	"github.com/quorate/quorate/ha"
	"github.com/quorate/quorate/ha/group"
)

// Config has the keys of replication that need a restart.
type Config struct {
	// MasterAddress is the HA address of the master; "" learns it from the NameServer and the master.
	MasterAddress string        `conf:"haMasterAddress"`
	Heartbeat     time.Duration `conf:"haSendHeartbeatInterval,ms" bounds:"10..600000"`
	Housekeeping  time.Duration `conf:"haHousekeepingInterval,ms" bounds:"100..3600000"`
	// Stall is ours: a replica that owes an acknowledgement for so long without progress (its process stopped, its fsync
	// hanging) counts no more until it goes on; 0 leaves it to RocketMQ's rules, which take 10 to 20 s.
	Stall          time.Duration `conf:"haReplicaStallTimeoutMillis,ms" bounds:"0..3600000"`
	BatchBytes     int           `conf:"haTransferBatchSize" bounds:"1024..16777216"`
	FlowControl    bool          `conf:"haFlowControlEnable"`
	BytesPerSecond int64         `conf:"maxHaTransferByteInSecond" bounds:"1024..1099511627776"`
	MemberPeriod   time.Duration `conf:"syncBrokerMemberGroupPeriod,ms" bounds:"100..600000"`
	// SlaveActing is the quorum rule of enableSlaveActingMaster, and what the NameServers are told with it.
	SlaveActing   bool          `conf:"enableSlaveActingMaster"`
	AliveInterval time.Duration `conf:"brokerHeartbeatInterval,ms" bounds:"100..600000"`
	AliveTimeout  time.Duration `conf:"brokerNotActiveTimeoutMillis,ms" bounds:"1000..3600000"`
	// ReplicaAck says what of a replica counts: that it received a record, as in RocketMQ, or that its disk has it. A
	// replica of RocketMQ never proves the second.
	ReplicaAck string `conf:"replicaAck" enum:"received|durable"`
}

// ReplicaAck values.
const (
	Received = "received"
	Durable  = "durable"
)

// Policy has the keys that decide how many copies a send needs; all may change while the broker runs, and hold from the
// next send on.
type Policy struct {
	TotalReplicas   int   `conf:"totalReplicas" bounds:"1..1000"`
	InSyncReplicas  int   `conf:"inSyncReplicas" bounds:"0..1000"`
	MinInSync       int   `conf:"minInSyncReplicas" bounds:"0..1000"`
	AutoInSync      bool  `conf:"enableAutoInSyncReplicas"`
	MaxGapNotInSync int64 `conf:"haMaxGapNotInSync" bounds:"1..9223372036854775807"`
}

// DefaultConfig has RocketMQ's defaults.
func DefaultConfig() Config {
	return Config{
		Heartbeat: 5 * time.Second, Housekeeping: 20 * time.Second, Stall: 3 * time.Second, BatchBytes: 32 << 10, BytesPerSecond: 100 << 20,
		MemberPeriod: time.Second, AliveInterval: time.Second, AliveTimeout: 10 * time.Second, ReplicaAck: Received,
	}
}

// DefaultPolicy has RocketMQ's defaults.
func DefaultPolicy() Policy {
	return Policy{TotalReplicas: 1, InSyncReplicas: 1, MinInSync: 1, MaxGapNotInSync: 256 << 20}
}

// quorum is the rule of p for static groups.
func (p Policy) quorum(acting bool) ha.QuorumPolicy {
	q := ha.QuorumPolicy{
		InSyncReplicas: p.InSyncReplicas, MinInSync: p.MinInSync, AutoInSync: p.AutoInSync, MaxGapNotInSync: p.MaxGapNotInSync,
	}
	if acting {
		q.Mode = ha.ActingQuorum
	}
	return q
}

func (c Config) timing() group.Timing {
	return group.Timing{Heartbeat: c.Heartbeat, Housekeeping: c.Housekeeping, Stall: c.Stall}
}

func (c Config) rate() int64 {
	if c.FlowControl {
		return c.BytesPerSecond
	}
	return 0
}
