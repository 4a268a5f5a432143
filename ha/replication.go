package ha

import (
	"fmt"
	"slices"
)

// ReplicaAck is the evidence that a broker's fsync covers everything below DurableOffset (exclusive, ≥ 0).
type ReplicaAck struct {
	BrokerID      BrokerID
	DurableOffset int64
}

// Observation is everything one acknowledgement decision depends on. Acks may hold duplicates, strangers and the master:
// only distinct other members of Set count. NewObservation checks one; hot paths that build it from checked parts need not.
type Observation struct {
	Current      Authority // who holds the authority now
	Requested    Authority // under whom the append was admitted
	Policy       AckPolicy
	Required     int64 // exclusive end of the append
	LocalDurable int64
	Acks         []ReplicaAck
	Set          SyncStateSet
}

// NewObservation checks o: offsets are not negative and the current master is in the set.
func NewObservation(o Observation) (Observation, error) {
	if o.Required < 0 || o.LocalDurable < 0 {
		return Observation{}, fmt.Errorf("%w: required %d, local %d", ErrInvalidOffset, o.Required, o.LocalDurable)
	}
	for _, a := range o.Acks {
		if a.DurableOffset < 0 {
			return Observation{}, fmt.Errorf("%w: ack of broker %d at %d", ErrInvalidOffset, a.BrokerID, a.DurableOffset)
		}
	}
	if !o.Set.Has(o.Current.BrokerID) {
		return Observation{}, fmt.Errorf("%w: broker %d", ErrLeaderMissing, o.Current.BrokerID)
	}
	return o, nil
}

// Verdict is the kind of a Decision.
type Verdict uint8

// Verdicts. There is no "insufficient replicas" reject: too few members is Wait, and the caller's deadline ends it.
const (
	Wait Verdict = iota
	Acknowledge
	RejectStale    // requested under an older epoch
	RejectMismatch // another broker, or an epoch not installed yet
)

// Decision is the outcome of DecideReplication. Ack is set only with Acknowledge.
type Decision struct {
	Verdict Verdict
	Ack     ReplicationAcknowledgement
}

// Acknowledgement is the right to answer success for the append that ends at End. It is sealed: ReplicationAcknowledgement
// and MemoryAcceptance are the only ones, and only the decision functions of this package make valid ones.
type Acknowledgement interface {
	Durability() Durability
	End() int64
	// DurableReplicas counts brokers whose fsync covers End, the master included.
	DurableReplicas() int
	Epoch() MasterEpoch
	sealed()
}

// ReplicationAcknowledgement proves that the policy holds. Its zero value proves nothing and is never handed out.
type ReplicationAcknowledgement struct {
	durability Durability
	end        int64
	replicas   int
	epoch      MasterEpoch
}

// Durability is Local or Replicated.
func (a ReplicationAcknowledgement) Durability() Durability { return a.durability }

// End is the required offset of the decision, never a larger watermark.
func (a ReplicationAcknowledgement) End() int64 { return a.end }

// DurableReplicas counts the distinct members, master included, whose fsync covers End.
func (a ReplicationAcknowledgement) DurableReplicas() int { return a.replicas }

// Epoch is the epoch under which it was decided.
func (a ReplicationAcknowledgement) Epoch() MasterEpoch { return a.epoch }

func (ReplicationAcknowledgement) sealed() {}

// DecideReplication judges authority first, then the local fsync, then the policy, in this order; it never retries,
// mutates, or falls back to a weaker policy ([S1], HA.md §2).
func DecideReplication(o Observation) Decision {
	switch {
	case o.Requested.Epoch < o.Current.Epoch:
		return Decision{Verdict: RejectStale}
	case o.Requested != o.Current || o.Current.Epoch <= 0:
		return Decision{Verdict: RejectMismatch}
	case o.LocalDurable < o.Required:
		return Decision{}
	}
	covering := 1 // the master
	for i := range o.Set.ids {
		if id := o.Set.ids[i]; id != o.Current.BrokerID && covered(o.Acks, id, o.Required) {
			covering++
		}
	}
	if covering < o.Policy.Copies(o.Set.Size()) {
		return Decision{}
	}
	ack := ReplicationAcknowledgement{durability: Local, end: o.Required, replicas: covering, epoch: o.Current.Epoch}
	if o.Policy.kind == replicaCount || o.Policy.kind == allInSyncSet && o.Set.Size() > 1 {
		ack.durability = Replicated
	}
	return Decision{Verdict: Acknowledge, Ack: ack}
}

func covered(acks []ReplicaAck, id BrokerID, required int64) bool {
	for i := range acks {
		if acks[i].BrokerID == id && acks[i].DurableOffset >= required {
			return true
		}
	}
	return false
}

// AckFrontier is the largest offset that DecideReplication would acknowledge for o, whatever o.Required is: many waiters
// are resolved by one comparison, and each then gets its own decision. It is 0 when authority does not match. It uses
// scratch, which may be nil, to sort in.
func AckFrontier(o Observation, scratch []int64) int64 {
	if o.Requested != o.Current {
		return 0
	}
	need := o.Policy.Copies(o.Set.Size()) - 1
	if need <= 0 {
		return o.LocalDurable
	}
	ends := scratch[:0]
	for _, id := range o.Set.ids {
		if id == o.Current.BrokerID {
			continue
		}
		end := int64(-1)
		for i := range o.Acks {
			if o.Acks[i].BrokerID == id {
				end = max(end, o.Acks[i].DurableOffset)
			}
		}
		ends = append(ends, end)
	}
	if len(ends) < need {
		return 0
	}
	slices.Sort(ends)
	return max(0, min(o.LocalDurable, ends[len(ends)-need]))
}
