// Package replication moves CommitLog bytes between brokers and tracks what replicas hold. A Term is one mastership.
package replication

import (
	"context"
	"time"

	"github.com/quorate/quorate/ha"
)

// Term is everything that exists only while this broker is master under one epoch: lease, sync-state set, progress, and
// those who wait for an acknowledgement. Ending it answers every waiter. Safe for concurrent use.
type Term struct{}

// Wait is one append that waits to be acknowledged.
type Wait struct {
	End      int64     // exclusive physical end of the append
	Flush    bool      // SYNC_FLUSH and waitStoreMsgOK: the local fsync must cover End
	Replicas bool      // the replica policy applies (SYNC_MASTER and waitStoreMsgOK)
	Deadline time.Time // answered with a timeout outcome then
}

// Outcome is how a Wait ended: exactly one of Ack and Err is set. With Err, Proved says what was proved all the same.
type Outcome struct {
	Ack    ha.Acknowledgement
	Err    error // ErrFenced, ErrFlushTimeout, ErrReplicaTimeout, a storage error
	Proved Proved
}

// Proved is what holds for an append at the moment of its answer, success or not (ext fields of DESIGN §14).
type Proved struct {
	Durability       ha.Durability
	DurableReplicas  int
	ReceivedReplicas int
	Epoch            ha.MasterEpoch
}

// Authority names the mastership.
func (t *Term) Authority() ha.Authority { panic("unbuilt") }

// Writable fails, with the reason, unless this term may append now. The store calls it under its append lock.
func (t *Term) Writable() error { panic("unbuilt") }

// Submit calls done exactly once when w is decided: at once in the caller's goroutine when it already is, else from the
// goroutine that completes it. done must not block.
func (t *Term) Submit(w Wait, done func(Outcome)) { panic("unbuilt") }

// Await is Submit for callers that may block; ctx bounds the wait as well.
func (t *Term) Await(ctx context.Context, w Wait) Outcome { panic("unbuilt") }

// End answers every waiter with cause (joined with ErrFenced); nothing is acknowledged by this term afterwards.
func (t *Term) End(cause error) { panic("unbuilt") }
