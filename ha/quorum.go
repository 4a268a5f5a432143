package ha

import (
	"errors"
	"fmt"
)

// QuorumMode says by which of RocketMQ's three rules a master computes how many copies a send needs
// (CommitLog.calcNeedAckNums, HA.md §9.3).
type QuorumMode uint8

// Quorum modes. Controller mode wins where both switches are on.
const (
	PlainQuorum      QuorumMode = iota // static master and replicas
	ActingQuorum                       // enableSlaveActingMaster
	ControllerQuorum                   // enableControllerMode
)

// QuorumPolicy is what the operator asked for. Counts include the master. The zero value of a count means 1.
type QuorumPolicy struct {
	Mode            QuorumMode
	InSyncReplicas  int   // inSyncReplicas
	MinInSync       int   // minInSyncReplicas
	AllInSyncSet    bool  // allAckInSyncStateSet; only in Controller mode
	AutoInSync      bool  // enableAutoInSyncReplicas; only in acting mode
	MaxGapNotInSync int64 // haMaxGapNotInSync, bytes; a replica exactly this far behind is out of sync
}

// QuorumView is what a master sees of its group at the moment of a send.
type QuorumView struct {
	PutEnd       int64   // end of the log before the append
	Alive        int     // brokers of the group that are alive, self included (acting mode)
	ReplicaEnds  []int64 // per distinct connected replica: the end it acknowledged, −1 when it has not yet
	SyncStateSet int     // size of the larger of committed and pending set (Controller mode)
}

// Need is how many copies, the master included, must hold a record before it may be acknowledged.
type Need struct {
	Copies   int // ≥ 1; with All the size of the set at decision time
	All      bool
	InSync   int // what counted as in sync, master included; 0 where the rule does not look
	Degraded bool
}

// ErrInSyncNotEnough refuses a send before anything is appended (RocketMQ IN_SYNC_REPLICAS_NOT_ENOUGH).
var ErrInSyncNotEnough = errors.New("in-sync replicas not enough")

// InSyncByGap counts the master and those replicas whose acknowledged end lies less than maxGap behind putEnd. An end
// ahead of putEnd is in sync (RocketMQ HAService.inSyncReplicasNums, strict "<").
func InSyncByGap(putEnd, maxGap int64, replicaEnds []int64) int {
	n := 1
	for _, end := range replicaEnds {
		if putEnd-end < maxGap {
			n++
		}
	}
	return n
}

// RequiredCopies decides how many copies the next send needs, or refuses it with ErrInSyncNotEnough. It is evaluated at
// every send, without hysteresis, so that degradation ends by itself when replicas return (I16).
func RequiredCopies(p QuorumPolicy, v QuorumView) (Need, error) {
	configured, floor := max(p.InSyncReplicas, 1), max(p.MinInSync, 1)
	switch p.Mode {
	case ControllerQuorum:
		if v.SyncStateSet < floor {
			return Need{InSync: v.SyncStateSet}, fmt.Errorf("%w: sync-state set has %d members, minInSyncReplicas is %d",
				ErrInSyncNotEnough, v.SyncStateSet, floor)
		}
		if p.AllInSyncSet {
			return Need{Copies: v.SyncStateSet, All: true, InSync: v.SyncStateSet}, nil
		}
		return Need{Copies: configured, InSync: v.SyncStateSet}, nil
	case ActingQuorum:
		inSync := min(v.Alive, InSyncByGap(v.PutEnd, p.MaxGapNotInSync, v.ReplicaEnds))
		need := Need{Copies: configured, InSync: inSync}
		if p.AutoInSync {
			need.Copies = max(min(configured, inSync), floor)
			need.Degraded = need.Copies < configured
		}
		if need.Copies > inSync {
			return need, fmt.Errorf("%w: %d in sync, %d required", ErrInSyncNotEnough, inSync, need.Copies)
		}
		return need, nil
	default:
		return Need{Copies: configured}, nil
	}
}
