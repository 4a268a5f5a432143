package replication

import (
	"fmt"
	"math"

	"github.com/quorate/quorate/ha"
)

// Report takes what a replica holds and what its fsync covers, both exclusive ends. Offsets of one session only grow, so
// a lower one is ignored. An end beyond the master's own log is no evidence of anything and is refused (I9).
func (t *Term) Report(id ha.BrokerID, received, durable int64) error {
	end := t.log.Appended().Load()
	if id < 0 || received < 0 || durable < 0 || durable > received || received > end {
		return fmt.Errorf("%w: broker %d received %d, durable %d, log ends at %d", ha.ErrInvalidOffset, id, received, durable, end)
	}
	t.mu.Lock()
	t.received = raise(t.received, id, received)
	t.durable = raise(t.durable, id, durable)
	t.mu.Unlock()
	t.advance()
	return nil
}

// Forget drops the progress of a replica whose session ended: its acknowledgements count for nothing until it reports anew.
func (t *Term) Forget(id ha.BrokerID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.received, t.durable = without(t.received, id), without(t.durable, id)
}

// SetSyncStateSet replaces the set acks are judged against: the committed one, united with a pending one (I10).
func (t *Term) SetSyncStateSet(set ha.SyncStateSet) error {
	if !set.Has(t.cfg.Authority.BrokerID) {
		return fmt.Errorf("%w: broker %d", ha.ErrLeaderMissing, t.cfg.Authority.BrokerID)
	}
	t.mu.Lock()
	t.set = set
	t.mu.Unlock()
	t.advance()
	return nil
}

// SetQuorum replaces the policy for later writes; those already waiting keep the number they were admitted with.
func (t *Term) SetQuorum(q ha.QuorumPolicy) {
	t.mu.Lock()
	t.quorum = q
	t.mu.Unlock()
	t.advance()
}

// Need decides how many copies the next write needs, or refuses it before anything is appended. It does not allocate
// where writes do not wait for replicas.
func (t *Term) Need() (ha.Need, error) {
	if !t.cfg.Sync {
		return ha.Need{Copies: 1, InSync: 1}, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.need()
}

func (t *Term) need() (ha.Need, error) {
	view := ha.QuorumView{PutEnd: t.log.Appended().Load(), Alive: 1 + len(t.received), SyncStateSet: t.set.Size()}
	if t.cfg.Alive != nil {
		view.Alive = t.cfg.Alive()
	}
	t.scratch = t.scratch[:0]
	for _, a := range t.received {
		t.scratch = append(t.scratch, a.DurableOffset)
	}
	view.ReplicaEnds = t.scratch
	return ha.RequiredCopies(t.quorum, view)
}

// confirm moves the store's Confirmed watermark by the rule that acknowledges (D6). A rule that refuses writes for want of
// replicas, an ended term and an expired lease leave it where it is. The caller holds mu.
func (t *Term) frontier() int64 {
	if t.ended != nil || t.expired() {
		return 0
	}
	local := t.log.Appended().Load()
	if t.cfg.SyncFlush || t.cfg.Durable {
		local = t.log.Durable().Load()
	}
	if !t.cfg.Sync {
		return local
	}
	need, err := t.need()
	if err != nil {
		return 0
	}
	if need.Copies <= 1 {
		return local
	}
	if t.cfg.Durable {
		return ha.AckFrontier(t.observation(0, policyOf(need.Copies, need.All)), t.scratch)
	}
	o := t.observation(0, policyOf(need.Copies, need.All))
	o.Acks, o.LocalDurable = t.received, local // received offsets through the same order statistic
	return ha.AckFrontier(o, t.scratch)
}

// observation collects what a decision about required depends on. The caller holds mu; the result borrows.
func (t *Term) observation(required int64, policy ha.AckPolicy) ha.Observation {
	return ha.Observation{
		Current: t.cfg.Authority, Requested: t.cfg.Authority, Policy: policy, Required: required,
		LocalDurable: t.log.Durable().Load(), Acks: t.durable, Set: t.judged(),
	}
}

func (t *Term) holding(required int64) ha.Holding {
	return ha.Holding{
		Current: t.cfg.Authority, Requested: t.cfg.Authority, Required: required,
		Written: t.log.Appended().Load(), Acks: t.received, Set: t.judged(),
	}
}

// judged is the set acks are judged against. Static groups have no committed set: every replica that reported is a member.
func (t *Term) judged() ha.SyncStateSet {
	if t.cfg.Quorum.Mode == ha.ControllerQuorum || len(t.received) == 0 {
		return t.set
	}
	return t.static()
}

// static rebuilds the set of a static group only when a replica came or went.
func (t *Term) static() ha.SyncStateSet {
	if t.set.Size() == 1+len(t.received) {
		all := true
		for _, a := range t.received {
			all = all && t.set.Has(a.BrokerID)
		}
		if all {
			return t.set
		}
	}
	ids := []ha.BrokerID{t.cfg.Authority.BrokerID}
	for _, a := range t.received {
		ids = append(ids, a.BrokerID)
	}
	if set, err := ha.NewSyncStateSet(ids...); err == nil { // ids were checked by Report
		t.set = set
	}
	return t.set
}

// proved says what holds for a record that ends at end, at this moment. The caller holds mu.
func (t *Term) proved(end int64) Proved {
	p := Proved{ReceivedReplicas: 1, Epoch: t.cfg.Authority.Epoch}
	for _, a := range t.received {
		if a.DurableOffset >= end {
			p.ReceivedReplicas++
		}
	}
	if t.log.Durable().Load() < end {
		return p
	}
	p.Durability, p.DurableReplicas = ha.Local, 1
	if t.cfg.Durable {
		for _, a := range t.durable {
			if a.DurableOffset >= end {
				p.DurableReplicas++
			}
		}
	}
	return p
}

func policyOf(copies int, all bool) ha.AckPolicy {
	if all {
		return ha.AllInSyncSet()
	}
	p, err := ha.AckPolicyFromCount(max(copies, 1))
	if err != nil { // not reached: every count from 1 on is a policy
		p, _ = ha.ReplicaCount(math.MaxInt32) // one nobody can satisfy: an error must not weaken a promise
	}
	return p
}

func raise(acks []ha.ReplicaAck, id ha.BrokerID, end int64) []ha.ReplicaAck {
	for i := range acks {
		if acks[i].BrokerID == id {
			acks[i].DurableOffset = max(acks[i].DurableOffset, end)
			return acks
		}
	}
	return append(acks, ha.ReplicaAck{BrokerID: id, DurableOffset: end})
}

func without(acks []ha.ReplicaAck, id ha.BrokerID) []ha.ReplicaAck {
	kept := acks[:0]
	for _, a := range acks {
		if a.BrokerID != id {
			kept = append(kept, a)
		}
	}
	return kept
}
