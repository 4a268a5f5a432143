// Package replication moves CommitLog bytes between brokers and tracks what replicas hold. A Term is one mastership.
package replication

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/ha"
	"github.com/quorate/quorate/internal/watermark"
)

// Errors of a Term. Match with errors.Is.
var (
	ErrFenced         = errors.New("replication: fenced")          // the mastership of this write is over, or its lease ran out
	ErrLeaseExpired   = errors.New("replication: lease expired")   // wrapped beside ErrFenced
	ErrFlushTimeout   = errors.New("replication: flush timeout")   // the local fsync did not come in time
	ErrReplicaTimeout = errors.New("replication: replica timeout") // the flush did, the replicas did not
	ErrWaitsFull      = errors.New("replication: too many writes wait for acknowledgement")
)

// Log is what a Term needs of the store: the watermarks it follows, the one it drives, and a way to hurry the flusher.
type Log interface {
	Appended() *watermark.Watermark
	Durable() *watermark.Watermark
	Confirmed() *watermark.Watermark
	RequestFlush()
	WriteFailed() error
}

// Config says what one mastership promises. The zero Lease never ends (standalone and static masters).
type Config struct {
	Authority ha.Authority
	Set       ha.SyncStateSet // with the master itself; zero: the master alone

	SyncFlush bool            // an ordinary write waits for the local fsync
	Durable   bool            // replicas count by their fsync (replicaAck=durable), else by what they received
	Sync      bool            // brokerRole=SYNC_MASTER or Controller mode: writes wait for replicas at all
	Quorum    ha.QuorumPolicy // how many copies
	Alive     func() int      // brokers of the group that are alive, self included; nil: all that are connected

	Lease    bool                 // the Term may write only while Extend holds
	Clock    func() time.Duration // clock of the lease, counting in suspend; needed with Lease only
	WaitsMax int                  // writes that may wait at once; 0: 65536
}

const waitsMaxDefault = 64 << 10

// Term is everything that exists only while this broker is master under one epoch: lease, sync-state set, progress, and
// those who wait for an acknowledgement. Ending it answers every waiter. Safe for concurrent use.
type Term struct {
	cfg Config
	log Log

	deadline atomic.Int64  // of the lease, on cfg.Clock; MaxInt64 without a lease
	fence    atomic.Uint64 // grows whenever what was admitted before may no longer be acknowledged
	over     atomic.Bool   // End was called
	waits    atomic.Int64

	cancel []func()

	mu       sync.Mutex
	ended    error
	set      ha.SyncStateSet // committed set, united with the pending one
	quorum   ha.QuorumPolicy
	durable  []ha.ReplicaAck // one per replica, what its fsync covers
	received []ha.ReplicaAck // one per replica, what it holds
	scratch  []int64
	classes  []*class
	free     *waiter
	freeLen  int
	timer    *time.Timer
	armed    time.Time // when timer fires; zero: not armed
}

// NewTerm starts a mastership over log. It follows the log's watermarks until End.
func NewTerm(cfg Config, log Log) (*Term, error) {
	if _, err := ha.NewAuthority(int64(cfg.Authority.BrokerID), int32(cfg.Authority.Epoch)); err != nil {
		return nil, fmt.Errorf("new term: %w", err)
	}
	if cfg.Set.Size() == 0 {
		set, err := ha.NewSyncStateSet(cfg.Authority.BrokerID)
		if err != nil {
			return nil, fmt.Errorf("new term: %w", err)
		}
		cfg.Set = set
	}
	if !cfg.Set.Has(cfg.Authority.BrokerID) {
		return nil, fmt.Errorf("new term: %w: broker %d", ha.ErrLeaderMissing, cfg.Authority.BrokerID)
	}
	if cfg.Lease && cfg.Clock == nil {
		return nil, errors.New("new term: a lease needs a clock")
	}
	if cfg.WaitsMax <= 0 {
		cfg.WaitsMax = waitsMaxDefault
	}
	t := &Term{cfg: cfg, log: log, set: cfg.Set, quorum: cfg.Quorum}
	if cfg.Lease {
		t.deadline.Store(math.MinInt64) // a lease begins expired
	} else {
		t.deadline.Store(math.MaxInt64)
	}
	t.cancel = append(t.cancel, log.Durable().Subscribe(func(int64) { t.advance() }))
	if !cfg.SyncFlush || cfg.Sync {
		t.cancel = append(t.cancel, log.Appended().Subscribe(func(int64) { t.confirmAppended() }))
	}
	t.advance() // what was flushed before this mastership
	return t, nil
}

// Run ends the term when the log fails or ctx does, and returns the cause.
func (t *Term) Run(ctx context.Context) error {
	err := t.log.Durable().Wait(ctx, math.MaxInt64) // never reached: returns when the watermark closes or ctx ends
	if failed := t.log.WriteFailed(); failed != nil {
		err = failed
	}
	t.End(err)
	return err
}

// Authority names the mastership.
func (t *Term) Authority() ha.Authority { return t.cfg.Authority }

// SyncFlush reports whether an ordinary write of this term waits for the local fsync.
func (t *Term) SyncFlush() bool { return t.cfg.SyncFlush }

// Extend moves the lease to a later deadline on Config.Clock, counted by the caller from before it asked for the grant.
// An expired lease fences what waited under it before the new deadline takes effect.
func (t *Term) Extend(deadline time.Duration) {
	if !t.cfg.Lease || t.over.Load() {
		return
	}
	if t.expired() {
		t.fenceWaiters(ErrLeaseExpired)
	}
	for {
		held := t.deadline.Load()
		if int64(deadline) <= held || t.deadline.CompareAndSwap(held, int64(deadline)) {
			return
		}
	}
}

// Fence withdraws the lease at once: nothing admitted before is acknowledged, whatever is granted later.
func (t *Term) Fence(cause error) {
	if t.cfg.Lease {
		t.deadline.Store(math.MinInt64)
	}
	t.fenceWaiters(cause)
}

func (t *Term) expired() bool {
	deadline := t.deadline.Load()
	return deadline != math.MaxInt64 && int64(t.cfg.Clock()) >= deadline
}

// Pass is the right to append that admission gave: it names the fence counter at that moment. A renewal of the lease
// leaves it valid, an expiry does not (D8).
type Pass struct{ fence uint64 }

// Admit opens the door for one append, or says why not: ended, lease expired, log failed, too many waits.
func (t *Term) Admit() (Pass, error) {
	p := Pass{fence: t.fence.Load()}
	if t.waits.Load() >= int64(t.cfg.WaitsMax) {
		return p, ErrWaitsFull
	}
	return p, t.Valid(p)
}

// Valid fails unless what p admitted may still be appended and acknowledged. The store calls it under its append lock.
func (t *Term) Valid(p Pass) error {
	if t.over.Load() {
		return t.endError()
	}
	if t.expired() {
		t.fenceWaiters(ErrLeaseExpired)
		return errors.Join(ErrFenced, ErrLeaseExpired)
	}
	if p.fence != t.fence.Load() {
		return ErrFenced
	}
	return nil
}

// Writable fails, with the reason, unless this term may append now.
func (t *Term) Writable() error {
	_, err := t.Admit()
	if err == nil {
		err = t.log.WriteFailed()
	}
	return err
}

// End answers every waiter with cause (joined with ErrFenced); nothing is acknowledged by this term afterwards.
func (t *Term) End(cause error) {
	t.mu.Lock()
	if t.ended != nil {
		t.mu.Unlock()
		return
	}
	t.ended = ErrFenced
	if cause != nil {
		t.ended = errors.Join(ErrFenced, cause)
	}
	t.over.Store(true)
	t.fence.Add(1)
	if t.timer != nil {
		t.timer.Stop()
	}
	out := t.takeAll(t.ended)
	t.mu.Unlock()
	for _, cancel := range t.cancel {
		cancel()
	}
	t.answer(out)
}

func (t *Term) endError() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended
}

func (t *Term) fenceWaiters(cause error) {
	t.mu.Lock()
	t.fence.Add(1)
	out := t.takeAll(errors.Join(ErrFenced, cause))
	t.mu.Unlock()
	t.answer(out)
}
