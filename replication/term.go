// Package replication moves CommitLog bytes between brokers and tracks what replicas hold. A Term is one mastership. The
// rules are those of ha/group; this package is their shell: locks, timers, goroutines and connections.
package replication

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/quorate/quorate/ha"
	"github.com/quorate/quorate/ha/group"
	"github.com/quorate/quorate/internal/watermark"
)

// Errors of a Term. Match with errors.Is.
var (
	ErrFenced         = group.ErrFenced
	ErrLeaseExpired   = group.ErrLeaseExpired
	ErrFlushTimeout   = group.ErrFlushTimeout
	ErrReplicaTimeout = group.ErrReplicaTimeout
	ErrWaitsFull      = group.ErrWaitsFull
)

// What a wait is made of and how it ends: see package ha/group.
type (
	Pass    = group.Pass
	Wait    = group.Wait
	Outcome = group.Outcome
	Proved  = group.Proved
)

// Log is what a Term needs of the store: the watermarks it follows, the one it drives, and a way to hurry the flusher.
type Log interface {
	Appended() *watermark.Watermark
	Written() *watermark.Watermark // what a kill of the process leaves
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

// Term is everything that exists only while this broker is master under one epoch: lease, sync-state set, progress, and
// those who wait for an acknowledgement. Ending it answers every waiter. Safe for concurrent use.
type Term struct {
	cfg    Config
	log    Log
	cancel []func()

	mu    sync.Mutex
	core  *group.Master
	timer *time.Timer
	armed time.Time // when timer fires; zero: not armed
}

// NewTerm starts a mastership over log. It follows the log's watermarks until End.
func NewTerm(cfg Config, log Log) (*Term, error) {
	if cfg.Lease && cfg.Clock == nil {
		return nil, errors.New("new term: a lease needs a clock")
	}
	if cfg.Clock == nil {
		cfg.Clock = func() time.Duration { return 0 } // nothing looks at it without a lease
	}
	core, err := group.NewMaster(group.MasterConfig{
		Authority: cfg.Authority, Set: cfg.Set, SyncFlush: cfg.SyncFlush, Durable: cfg.Durable, Sync: cfg.Sync,
		Quorum: cfg.Quorum, Lease: cfg.Lease, WaitsMax: cfg.WaitsMax,
	})
	if err != nil {
		return nil, fmt.Errorf("new term: %w", err)
	}
	t := &Term{cfg: cfg, log: log, core: core}
	t.cancel = append(t.cancel, log.Durable().Subscribe(func(int64) { t.advance() }))
	t.cancel = append(t.cancel, log.Written().Subscribe(func(int64) { t.advance() }))
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

// sync tells the core where the log stands. The caller holds mu.
func (t *Term) sync() {
	t.core.Progress(t.log.Appended().Load(), t.log.Written().Load(), t.log.Durable().Load())
	if t.cfg.Alive != nil {
		t.core.Alive(t.cfg.Alive())
	}
}

// Extend moves the lease to a later deadline on Config.Clock, counted by the caller from before it asked for the grant.
// An expired lease fences what waited under it before the new deadline takes effect.
func (t *Term) Extend(deadline time.Duration) {
	t.mu.Lock()
	t.sync()
	out := t.core.Extend(t.cfg.Clock(), deadline)
	t.mu.Unlock()
	t.answer(out)
}

// Fence withdraws the lease at once: nothing admitted before is acknowledged, whatever is granted later.
func (t *Term) Fence(cause error) {
	t.mu.Lock()
	t.sync()
	out := t.core.Fence(cause)
	t.mu.Unlock()
	t.answer(out)
}

// Admit opens the door for one append, or says why not: ended, lease expired, log failed, too many waits.
func (t *Term) Admit() (Pass, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.core.Admit(t.cfg.Clock())
}

// Valid fails unless what p admitted may still be appended and acknowledged. The store calls it under its append lock.
func (t *Term) Valid(p Pass) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.core.Valid(t.cfg.Clock(), p)
}

// Writable fails, with the reason, unless this term may append now.
func (t *Term) Writable() error {
	_, err := t.Admit()
	if err == nil {
		err = t.log.WriteFailed()
	}
	return err
}

// Need decides how many copies the next write needs, or refuses it before anything is appended. It does not allocate
// where writes do not wait for replicas.
func (t *Term) Need() (ha.Need, error) {
	if !t.cfg.Sync {
		return ha.Need{Copies: 1, InSync: 1}, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sync()
	return t.core.Need()
}

// End answers every waiter with cause (joined with ErrFenced); nothing is acknowledged by this term afterwards.
func (t *Term) End(cause error) {
	t.mu.Lock()
	if t.core.Ended() != nil {
		t.mu.Unlock()
		return
	}
	t.sync()
	out := t.core.End(cause)
	if t.timer != nil {
		t.timer.Stop()
	}
	t.mu.Unlock()
	for _, cancel := range t.cancel {
		cancel()
	}
	t.answer(out)
}
