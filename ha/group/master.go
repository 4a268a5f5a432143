package group

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/quorate/quorate/ha"
)

// Errors of a mastership. Match with errors.Is.
var (
	ErrFenced         = errors.New("replication: fenced")          // the mastership of this write is over, or its lease ran out
	ErrLeaseExpired   = errors.New("replication: lease expired")   // wrapped beside ErrFenced
	ErrFlushTimeout   = errors.New("replication: flush timeout")   // the local fsync did not come in time
	ErrReplicaTimeout = errors.New("replication: replica timeout") // the flush did, the replicas did not
	ErrWaitsFull      = errors.New("replication: too many writes wait for acknowledgement")
)

// MasterConfig says what one mastership promises.
type MasterConfig struct {
	Authority ha.Authority
	Set       ha.SyncStateSet // with the master itself; zero: the master alone

	SyncFlush bool            // an ordinary write waits for the local fsync
	Durable   bool            // replicas count by their fsync (replicaAck=durable), else by what they received
	Sync      bool            // brokerRole=SYNC_MASTER or Controller mode: writes wait for replicas at all
	Quorum    ha.QuorumPolicy // how many copies

	Lease    bool // the master may write only while Extend holds; else its lease never ends
	WaitsMax int  // writes that may wait at once; 0: 65536
}

const waitsMaxDefault = 64 << 10

// noDeadline is the lease of standalone and static masters.
const noDeadline = time.Duration(math.MaxInt64)

// Master is the pure core of one mastership: lease, sync-state set, progress of log and replicas, and those who wait for
// an acknowledgement. Its owner feeds it what happened, with the time, and does what it answers. Not safe for concurrent use.
type Master struct {
	cfg MasterConfig

	appended int64 // the master's own log
	written  int64
	durable  int64
	alive    int // brokers of the group that are alive, self included; 0: all that are connected

	deadline time.Duration // of the lease
	fence    uint64        // grows whenever what was admitted before may no longer be acknowledged
	ended    error

	set      ha.SyncStateSet // committed set, united with the pending one
	quorum   ha.QuorumPolicy
	flushed  []ha.ReplicaAck // one per replica, what its fsync covers
	received []ha.ReplicaAck // one per replica, what it holds
	scratch  []int64

	classes []*class
	waits   int
	free    *Waiter
	freeLen int
}

// NewMaster begins a mastership. With a lease it begins expired.
func NewMaster(cfg MasterConfig) (*Master, error) {
	if _, err := ha.NewAuthority(int64(cfg.Authority.BrokerID), int32(cfg.Authority.Epoch)); err != nil {
		return nil, err
	}
	if cfg.Set.Size() == 0 {
		set, err := ha.NewSyncStateSet(cfg.Authority.BrokerID)
		if err != nil {
			return nil, err
		}
		cfg.Set = set
	}
	if !cfg.Set.Has(cfg.Authority.BrokerID) {
		return nil, fmt.Errorf("%w: broker %d", ha.ErrLeaderMissing, cfg.Authority.BrokerID)
	}
	if cfg.WaitsMax <= 0 {
		cfg.WaitsMax = waitsMaxDefault
	}
	m := &Master{cfg: cfg, set: cfg.Set, quorum: cfg.Quorum, deadline: noDeadline}
	if cfg.Lease {
		m.deadline = math.MinInt64
	}
	return m, nil
}

// Progress records where the master's own log stands: its end in memory, what the operating system has and so survives a
// kill of the process, and what its fsync covers. Lower values are ignored.
func (m *Master) Progress(appended, written, durable int64) {
	m.appended, m.written, m.durable = max(m.appended, appended), max(m.written, written), max(m.durable, durable)
}

// Alive records how many brokers of the group are alive, self included; 0 counts the connected ones.
func (m *Master) Alive(n int) { m.alive = n }

// Pass is the right to append that admission gave: it names the fence counter at that moment. A renewal of the lease
// leaves it valid, an expiry does not (D8).
type Pass struct{ fence uint64 }

// Admit opens the door for one append, or says why not: ended, lease expired, too many waits.
func (m *Master) Admit(now time.Duration) (Pass, error) {
	p := Pass{fence: m.fence}
	if m.waits >= m.cfg.WaitsMax {
		return p, ErrWaitsFull
	}
	return p, m.Valid(now, p)
}

// Valid fails unless what p admitted may still be appended and acknowledged. It is asked again under the append lock.
func (m *Master) Valid(now time.Duration, p Pass) error {
	switch {
	case m.ended != nil:
		return m.ended
	case m.expired(now):
		return errLease
	case p.fence != m.fence:
		return ErrFenced
	}
	return nil
}

// errLease is joined once: a fenced master is asked often.
var errLease = errors.Join(ErrFenced, ErrLeaseExpired)

func (m *Master) expired(now time.Duration) bool {
	return m.deadline != noDeadline && now >= m.deadline
}

// Extend moves the lease to a later deadline, counted by the caller from before it asked for the grant. A lease that had
// run out fences what waited under it first: those are returned, to be answered.
func (m *Master) Extend(now, deadline time.Duration) *Waiter {
	if !m.cfg.Lease || m.ended != nil {
		return nil
	}
	var out *Waiter
	if m.expired(now) {
		out = m.refuse(errLease)
	}
	m.deadline = max(m.deadline, deadline)
	return out
}

// Fence withdraws the lease at once: nothing admitted before is acknowledged, whatever is granted later.
func (m *Master) Fence(cause error) *Waiter {
	if m.cfg.Lease {
		m.deadline = math.MinInt64
	}
	return m.refuse(errors.Join(ErrFenced, cause))
}

// End finishes the mastership; every waiter is returned with cause, joined with ErrFenced.
func (m *Master) End(cause error) *Waiter {
	if m.ended != nil {
		return nil
	}
	m.ended = ErrFenced
	if cause != nil {
		m.ended = errors.Join(ErrFenced, cause)
	}
	return m.refuse(m.ended)
}

// Ended is the cause given to End, nil before.
func (m *Master) Ended() error { return m.ended }

func (m *Master) refuse(err error) *Waiter {
	m.fence++
	return m.takeAll(err)
}

// Report takes what a replica holds and what its fsync covers, both exclusive ends. Offsets of one session only grow, so
// a lower one is ignored. An end beyond the master's own log is no evidence of anything and is refused (I9).
func (m *Master) Report(id ha.BrokerID, received, flushed int64) error {
	if id < 0 || received < 0 || flushed < 0 || flushed > received || received > m.appended {
		return fmt.Errorf("%w: broker %d received %d, durable %d, log ends at %d", ha.ErrInvalidOffset, id, received, flushed, m.appended)
	}
	m.received = raise(m.received, id, received)
	m.flushed = raise(m.flushed, id, flushed)
	return nil
}

// Forget drops the progress of a replica whose session ended: its acknowledgements count for nothing until it reports anew.
func (m *Master) Forget(id ha.BrokerID) {
	m.received, m.flushed = without(m.received, id), without(m.flushed, id)
}

// SetSyncStateSet replaces the set acks are judged against: the committed one, united with a pending one (I10).
func (m *Master) SetSyncStateSet(set ha.SyncStateSet) error {
	if !set.Has(m.cfg.Authority.BrokerID) {
		return fmt.Errorf("%w: broker %d", ha.ErrLeaderMissing, m.cfg.Authority.BrokerID)
	}
	m.set = set
	return nil
}

// SetQuorum replaces the policy for later writes; those already waiting keep the number they were admitted with.
func (m *Master) SetQuorum(q ha.QuorumPolicy) { m.quorum = q }

// Need decides how many copies the next write needs, or refuses it before anything is appended.
func (m *Master) Need() (ha.Need, error) {
	if !m.cfg.Sync {
		return ha.Need{Copies: 1, InSync: 1}, nil
	}
	view := ha.QuorumView{PutEnd: m.appended, Alive: 1 + len(m.received), SyncStateSet: m.set.Size()}
	if m.alive > 0 {
		view.Alive = m.alive
	}
	m.scratch = m.scratch[:0]
	for _, a := range m.received {
		m.scratch = append(m.scratch, a.DurableOffset)
	}
	view.ReplicaEnds = m.scratch
	return ha.RequiredCopies(m.quorum, view)
}

// Frontier is the offset below which consumers may see the log: what the rule in force acknowledges (D6, I12). A rule that
// refuses writes for want of replicas, an ended mastership and an expired lease leave it where it was: 0 says nothing new.
func (m *Master) Frontier(now time.Duration) int64 {
	if m.ended != nil || m.expired(now) {
		return 0
	}
	local := m.written
	if m.cfg.SyncFlush || m.cfg.Durable {
		local = m.durable
	}
	if !m.cfg.Sync {
		return local
	}
	need, err := m.Need()
	if err != nil {
		return 0
	}
	if need.Copies <= 1 {
		return local
	}
	o := m.observation(0, policyOf(need.Copies, need.All))
	if !m.cfg.Durable {
		o.Acks, o.LocalDurable = m.received, local // received offsets through the same order statistic
	}
	return ha.AckFrontier(o, m.scratch)
}

// observation collects what a decision about required depends on; the result borrows.
func (m *Master) observation(required int64, policy ha.AckPolicy) ha.Observation {
	return ha.Observation{
		Current: m.cfg.Authority, Requested: m.cfg.Authority, Policy: policy, Required: required,
		LocalDurable: m.durable, Acks: m.flushed, Set: m.judged(),
	}
}

func (m *Master) holding(required int64) ha.Holding {
	return ha.Holding{
		Current: m.cfg.Authority, Requested: m.cfg.Authority, Required: required,
		Written: m.written, Acks: m.received, Set: m.judged(),
	}
}

// judged is the set acks are judged against. Static groups have no committed set: every replica that reported is a member.
func (m *Master) judged() ha.SyncStateSet {
	if m.cfg.Quorum.Mode == ha.ControllerQuorum || len(m.received) == 0 || m.knows() {
		return m.set
	}
	ids := []ha.BrokerID{m.cfg.Authority.BrokerID}
	for _, a := range m.received {
		ids = append(ids, a.BrokerID)
	}
	if set, err := ha.NewSyncStateSet(ids...); err == nil { // ids were checked by Report
		m.set = set
	}
	return m.set
}

// knows says whether the set is just the master and its reporting replicas: it is rebuilt only when one came or went.
func (m *Master) knows() bool {
	if m.set.Size() != 1+len(m.received) {
		return false
	}
	for _, a := range m.received {
		if !m.set.Has(a.BrokerID) {
			return false
		}
	}
	return true
}

// Proved is what holds for an append at the moment of its answer, success or not (ext fields of DESIGN §14).
type Proved struct {
	Durability       ha.Durability
	DurableReplicas  int // brokers whose fsync covers it, self included
	ReceivedReplicas int // brokers that hold it at all, self included
	Epoch            ha.MasterEpoch
}

// Proved says what holds for a record that ends at end, now.
func (m *Master) Proved(end int64) Proved {
	p := Proved{ReceivedReplicas: 1, Epoch: m.cfg.Authority.Epoch}
	for _, a := range m.received {
		if a.DurableOffset >= end {
			p.ReceivedReplicas++
		}
	}
	if m.durable < end {
		return p
	}
	p.Durability, p.DurableReplicas = ha.Local, 1
	if m.cfg.Durable {
		for _, a := range m.flushed {
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
