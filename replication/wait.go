package replication

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/quorate/quorate/ha"
)

// Wait is one append that waits to be acknowledged.
type Wait struct {
	Pass     Pass      // what admitted it
	End      int64     // exclusive physical end of the append
	Flush    bool      // SYNC_FLUSH and waitStoreMsgOK: the local fsync must cover End
	Need     ha.Need   // copies asked for at admission; the zero value and 1 ask for no replica
	Deadline time.Time // for the flush: answered with ErrFlushTimeout then; required
	Replicas time.Time // for the replicas: answered with ErrReplicaTimeout then; zero: Deadline
}

// Outcome is how a Wait ended. Only this package makes one that is acknowledged, from a decision of package ha.
type Outcome struct {
	proof  ha.ReplicationAcknowledgement
	memory ha.MemoryAcceptance
	Err    error  // ErrFenced, ErrFlushTimeout, ErrReplicaTimeout, a storage error; nil when acknowledged
	Proved Proved // what holds all the same
}

// Acknowledged reports whether success may be answered for a record that ends at end.
func (o Outcome) Acknowledged(end int64) bool {
	return o.Err == nil && (o.proof.Epoch() > 0 && o.proof.End() >= end || o.memory.Epoch() > 0 && o.memory.End() >= end)
}

// Ack returns the acknowledgement, nil when there is none. It allocates; the response writer asks Acknowledged.
func (o Outcome) Ack() ha.Acknowledgement {
	switch {
	case o.Err != nil:
		return nil
	case o.proof.Epoch() > 0:
		return o.proof
	case o.memory.Epoch() > 0:
		return o.memory
	}
	return nil
}

// Proved is what holds for an append at the moment of its answer, success or not (ext fields of DESIGN §14).
type Proved struct {
	Durability       ha.Durability
	DurableReplicas  int // brokers whose fsync covers it, self included
	ReceivedReplicas int // brokers that hold it at all, self included
	Epoch            ha.MasterEpoch
}

// Done is told how a Wait ended, exactly once. It must not block. g is nil when the answer comes in the caller's goroutine.
type Done interface{ Decided(o Outcome, g *Group) }

// Group are the waits that one progress decided. The first Done that wants to do something once for all of them, such as
// writing each connection once, leaves it here.
type Group struct{ Last Flusher }

// Flusher is called after all waits of a group were told.
type Flusher interface{ Flush() }

var groups = sync.Pool{New: func() any { return new(Group) }}

// waiter is a pooled Wait with its Done; next links free and answered ones.
type waiter struct {
	wait    Wait
	done    Done
	outcome Outcome
	next    *waiter
}

// class holds the waits that ask for the same, lowest End first, so that one look at the top says whether anybody is
// satisfied, and a write that asks for more never stands before one that asks for less.
type class struct {
	flush  bool
	copies int
	all    bool
	heap   []*waiter
}

// Submit calls done exactly once when w is decided: at once in the caller's goroutine when it already is, else from the
// goroutine that completes it. It does not allocate in the steady state.
func (t *Term) Submit(w Wait, done Done) {
	if w.Replicas.IsZero() {
		w.Replicas = w.Deadline
	}
	t.mu.Lock()
	o, decided := t.decide(&w)
	if decided {
		t.mu.Unlock()
		done.Decided(o, nil)
		return
	}
	v := t.free
	if v == nil {
		v = &waiter{}
	} else {
		t.free, v.next = v.next, nil
		t.freeLen--
	}
	v.wait, v.done = w, done
	t.classOf(&w).push(v)
	t.waits.Add(1)
	t.arm(w.earliest())
	t.mu.Unlock()
	if t.cfg.Durable && !t.cfg.SyncFlush {
		t.log.RequestFlush() // nobody flushes by itself soon enough
	}
}

// Await is Submit for callers that may block; ctx bounds the wait as well.
func (t *Term) Await(ctx context.Context, w Wait) Outcome {
	done := make(awaited, 1)
	t.Submit(w, done)
	select {
	case o := <-done:
		return o
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return Outcome{Err: context.Cause(ctx), Proved: t.proved(w.End)}
}

type awaited chan Outcome

func (a awaited) Decided(o Outcome, _ *Group) { a <- o }

// decide applies the rules to w. The caller holds mu.
func (t *Term) decide(w *Wait) (Outcome, bool) {
	if t.ended != nil {
		return Outcome{Err: t.ended, Proved: t.proved(w.End)}, true
	}
	if t.expired() || w.Pass.fence != t.fence.Load() {
		err := ErrFenced
		if t.expired() {
			err = errors.Join(ErrFenced, ErrLeaseExpired)
		}
		return Outcome{Err: err, Proved: t.proved(w.End)}, true
	}
	if w.Flush || (t.cfg.Durable && w.Need.Copies > 1) {
		policy := ha.LocalDurable()
		if t.cfg.Durable {
			policy = policyOf(w.Need.Copies, w.Need.All)
		}
		if !t.cfg.Durable && !t.receivedEnough(w) {
			return Outcome{}, false
		}
		d := ha.DecideReplication(t.observation(w.End, policy))
		switch d.Verdict {
		case ha.Acknowledge:
			o := Outcome{proof: d.Ack, Proved: t.proved(w.End)}
			o.Proved.Durability, o.Proved.DurableReplicas = d.Ack.Durability(), d.Ack.DurableReplicas()
			return o, true
		case ha.Wait:
			return Outcome{}, false
		default: // not reached: both authorities are this term's own
			return Outcome{Err: ErrFenced, Proved: t.proved(w.End)}, true
		}
	}
	a, verdict := ha.AcceptInMemory(ha.AcceptMode{Received: t.copies(w)}, t.holding(w.End))
	switch verdict {
	case ha.Acknowledge:
		return Outcome{memory: a, Proved: t.proved(w.End)}, true
	case ha.Wait:
		return Outcome{}, false
	default:
		return Outcome{Err: ErrFenced, Proved: t.proved(w.End)}, true
	}
}

// receivedEnough says whether enough brokers hold w at all, where acks are counted by what was received.
func (t *Term) receivedEnough(w *Wait) bool {
	copies := t.copies(w)
	return copies <= 1 || ha.CountReceived(t.holding(w.End)) >= copies
}

func (t *Term) copies(w *Wait) int {
	if w.Need.All {
		return max(w.Need.Copies, t.set.Size())
	}
	return max(w.Need.Copies, 1)
}

// confirmAppended follows Appended where the confirm point depends on it.
func (t *Term) confirmAppended() {
	t.mu.Lock()
	frontier := t.frontier()
	t.mu.Unlock()
	t.log.Confirmed().Advance(frontier)
}

// advance looks at what a moved watermark or a report satisfies: consumers first, then the waiting writes, in the
// goroutine that made the progress.
func (t *Term) advance() {
	t.mu.Lock()
	frontier := t.frontier()
	var out *waiter
	for _, c := range t.classes {
		out = t.satisfied(c, out)
	}
	t.mu.Unlock()
	t.log.Confirmed().Advance(frontier)
	t.answer(out)
}

func (t *Term) satisfied(c *class, out *waiter) *waiter {
	for len(c.heap) > 0 {
		o, decided := t.decide(&c.heap[0].wait)
		if !decided {
			break
		}
		v := c.pop()
		v.outcome = o
		v.next, out = out, v
	}
	return out
}

// takeAll removes every waiter and gives each the same error. The caller holds mu.
func (t *Term) takeAll(err error) (out *waiter) {
	for _, c := range t.classes {
		for len(c.heap) > 0 {
			v := c.pop()
			v.outcome = Outcome{Err: err, Proved: t.proved(v.wait.End)}
			v.next, out = out, v
		}
	}
	return out
}

// answer tells the removed waiters, in the order they were appended, and pools them. It is called without mu.
func (t *Term) answer(out *waiter) {
	var first *waiter
	for out != nil { // they were pushed in front: turn the list
		out.next, first, out = first, out, out.next
	}
	if first == nil {
		return
	}
	n, last := 0, first
	g := groups.Get().(*Group)
	for v := first; v != nil; v = v.next {
		t.waits.Add(-1)
		v.done.Decided(v.outcome, g)
		v.done, v.outcome = nil, Outcome{}
		last, n = v, n+1
	}
	if g.Last != nil {
		g.Last.Flush()
	}
	*g = Group{}
	groups.Put(g)
	t.mu.Lock()
	if t.freeLen < t.cfg.WaitsMax {
		last.next, t.free = t.free, first
		t.freeLen += n
	}
	t.mu.Unlock()
}

func (w *Wait) earliest() time.Time {
	if w.Need.Copies > 1 && (!w.Flush || w.Replicas.Before(w.Deadline)) {
		return w.Replicas
	}
	return w.Deadline
}

// arm makes the one timer fire no later than at. The caller holds mu.
func (t *Term) arm(at time.Time) {
	if !t.armed.IsZero() && !at.Before(t.armed) {
		return
	}
	t.armed = at
	if t.timer == nil {
		t.timer = time.AfterFunc(time.Until(at), t.expire)
		return
	}
	t.timer.Reset(time.Until(at))
}

// expire answers the waits whose deadline has passed and arms the timer for the next. It walks all waits, which is cheap
// because it happens once per timeout and not once per wait.
func (t *Term) expire() {
	t.mu.Lock()
	now := time.Now()
	t.armed = time.Time{}
	var out *waiter
	var next time.Time
	for _, c := range t.classes {
		kept := c.heap[:0]
		for _, v := range c.heap {
			err, at := t.overdue(&v.wait, now)
			if err != nil {
				v.outcome = Outcome{Err: err, Proved: t.proved(v.wait.End)}
				v.next, out = out, v
				continue
			}
			kept = append(kept, v)
			if next.IsZero() || at.Before(next) {
				next = at
			}
		}
		clear(c.heap[len(kept):])
		c.heap = kept
		c.order()
	}
	if !next.IsZero() && t.ended == nil {
		t.arm(next)
	}
	t.mu.Unlock()
	t.answer(out)
}

// overdue says what w missed by now, or when to look again.
func (t *Term) overdue(w *Wait, now time.Time) (error, time.Time) {
	flushed := !w.Flush || t.log.Durable().Load() >= w.End
	if !flushed && !now.Before(w.Deadline) {
		return ErrFlushTimeout, time.Time{}
	}
	if w.Need.Copies <= 1 {
		return nil, w.Deadline
	}
	if now.Before(w.Replicas) {
		if flushed || w.Replicas.Before(w.Deadline) {
			return nil, w.Replicas
		}
		return nil, w.Deadline
	}
	if t.replicated(w) {
		return nil, w.Deadline // only the flush is missing, and its time is not over
	}
	return ErrReplicaTimeout, time.Time{}
}

// replicated says whether the replicas did their part of w.
func (t *Term) replicated(w *Wait) bool {
	if !t.cfg.Durable {
		return t.receivedEnough(w)
	}
	o := t.observation(w.End, policyOf(w.Need.Copies, w.Need.All))
	o.LocalDurable = w.End // as if the local part were done
	return ha.DecideReplication(o).Verdict == ha.Acknowledge
}

func (t *Term) classOf(w *Wait) *class {
	for _, c := range t.classes {
		if c.flush == w.Flush && c.copies == w.Need.Copies && c.all == w.Need.All {
			return c
		}
	}
	c := &class{flush: w.Flush, copies: w.Need.Copies, all: w.Need.All}
	t.classes = append(t.classes, c)
	return c
}

func (c *class) push(v *waiter) {
	c.heap = append(c.heap, v)
	for i := len(c.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if c.heap[parent].wait.End <= c.heap[i].wait.End {
			break
		}
		c.heap[parent], c.heap[i] = c.heap[i], c.heap[parent]
		i = parent
	}
}

func (c *class) pop() *waiter {
	top, last := c.heap[0], len(c.heap)-1
	c.heap[0] = c.heap[last]
	c.heap[last] = nil
	c.heap = c.heap[:last]
	c.sink(0)
	return top
}

func (c *class) sink(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(c.heap); child++ {
			if c.heap[child].wait.End < c.heap[least].wait.End {
				least = child
			}
		}
		if least == i {
			return
		}
		c.heap[least], c.heap[i] = c.heap[i], c.heap[least]
		i = least
	}
}

// order restores the heap after waits were taken from its middle.
func (c *class) order() {
	for i := len(c.heap)/2 - 1; i >= 0; i-- {
		c.sink(i)
	}
}
