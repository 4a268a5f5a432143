package group

import (
	"time"

	"github.com/quorate/quorate/ha"
)

// Wait is one append that waits to be acknowledged.
type Wait struct {
	Pass     Pass      // what admitted it
	End      int64     // exclusive physical end of the append
	Flush    bool      // SYNC_FLUSH and waitStoreMsgOK: the local fsync must cover End
	Need     ha.Need   // copies asked for at admission; the zero value and 1 ask for no replica
	Deadline time.Time // for the flush: answered with ErrFlushTimeout then
	Replicas time.Time // for the replicas: answered with ErrReplicaTimeout then; zero: Deadline
}

// Earliest is when w may first be overdue.
func (w *Wait) Earliest() time.Time {
	if w.Need.Copies > 1 && !w.Replicas.IsZero() && (!w.Flush || w.Replicas.Before(w.Deadline)) {
		return w.Replicas
	}
	return w.Deadline
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

// Waiter is a pooled Wait with what its owner keeps beside it. Answered ones come as a list, first appended first.
type Waiter struct {
	Wait    Wait
	Owner   any
	Outcome Outcome
	next    *Waiter
}

// Next is the following waiter of an answered list, or nil.
func (v *Waiter) Next() *Waiter { return v.next }

// class holds the waits that ask for the same, lowest End first, so that one look at the top says whether anybody is
// satisfied, and a write that asks for more never stands before one that asks for less.
type class struct {
	flush  bool
	copies int
	all    bool
	heap   []*Waiter
}

// Submit decides w at once, or keeps it with its owner until Settle, Expire, Fence or End returns it. It does not
// allocate in the steady state.
func (m *Master) Submit(now time.Duration, w Wait, owner any) (o Outcome, decided bool) {
	if w.Replicas.IsZero() {
		w.Replicas = w.Deadline
	}
	if o, decided = m.decide(now, &w); decided {
		return o, true
	}
	v := m.free
	if v == nil {
		v = &Waiter{}
	} else {
		m.free, v.next = v.next, nil
		m.freeLen--
	}
	v.Wait, v.Owner = w, owner
	m.classOf(&v.Wait).push(v)
	m.waits++
	return Outcome{}, false
}

// decide applies the rules to w: the lease and fence it was admitted under first.
func (m *Master) decide(now time.Duration, w *Wait) (Outcome, bool) {
	if err := m.Valid(now, w.Pass); err != nil {
		return Outcome{Err: err, Proved: m.Proved(w.End)}, true
	}
	if !w.Flush && (!m.cfg.Durable || w.Need.Copies <= 1) {
		a, verdict := ha.AcceptInMemory(ha.AcceptMode{Received: m.copies(w)}, m.holding(w.End))
		if verdict == ha.Wait {
			return Outcome{}, false
		}
		return m.outcome(w, verdict, Outcome{memory: a}), true
	}
	policy := ha.LocalDurable()
	if m.cfg.Durable {
		policy = policyOf(w.Need.Copies, w.Need.All)
	} else if !m.receivedEnough(w) {
		return Outcome{}, false
	}
	d := ha.DecideReplication(m.observation(w.End, policy))
	if d.Verdict == ha.Wait {
		return Outcome{}, false
	}
	return m.outcome(w, d.Verdict, Outcome{proof: d.Ack}), true
}

func (m *Master) outcome(w *Wait, v ha.Verdict, o Outcome) Outcome {
	if v != ha.Acknowledge { // not reached: both authorities are this mastership's own
		return Outcome{Err: ErrFenced, Proved: m.Proved(w.End)}
	}
	o.Proved = m.Proved(w.End)
	if o.proof.Epoch() > 0 {
		o.Proved.Durability, o.Proved.DurableReplicas = o.proof.Durability(), o.proof.DurableReplicas()
	}
	return o
}

// receivedEnough says whether enough brokers hold w at all, where acks are counted by what was received.
func (m *Master) receivedEnough(w *Wait) bool {
	copies := m.copies(w)
	return copies <= 1 || ha.CountReceived(m.holding(w.End)) >= copies
}

func (m *Master) copies(w *Wait) int {
	if w.Need.All {
		return max(w.Need.Copies, m.set.Size())
	}
	return max(w.Need.Copies, 1)
}

// Settle looks at what progress and reports satisfy. Consumers come first: confirm is how far they may see; then the
// waits that are decided, to be answered by the caller.
func (m *Master) Settle(now time.Duration) (confirm int64, answered *Waiter) {
	confirm = m.Frontier(now)
	var out *Waiter
	for _, c := range m.classes {
		for len(c.heap) > 0 {
			o, decided := m.decide(now, &c.heap[0].Wait)
			if !decided {
				break
			}
			out = m.answer(c.pop(), o, out)
		}
	}
	return confirm, inOrder(out)
}

// Expire returns the waits whose deadline has passed at at, and when to look again (zero: nobody waits). It walks all
// waits, which is cheap because it happens once per timeout and not once per wait.
func (m *Master) Expire(at time.Time) (answered *Waiter, next time.Time) {
	var out *Waiter
	for _, c := range m.classes {
		kept := c.heap[:0]
		for _, v := range c.heap {
			again, err := m.overdue(&v.Wait, at)
			if err != nil {
				out = m.answer(v, Outcome{Err: err, Proved: m.Proved(v.Wait.End)}, out)
				continue
			}
			kept = append(kept, v)
			if next.IsZero() || again.Before(next) {
				next = again
			}
		}
		clear(c.heap[len(kept):])
		c.heap = kept
		c.order()
	}
	return inOrder(out), next
}

// overdue says what w missed by now, or when to look again.
func (m *Master) overdue(w *Wait, now time.Time) (again time.Time, err error) {
	flushed := m.written >= w.End
	if w.Flush {
		flushed = m.durable >= w.End
	}
	if !flushed && !now.Before(w.Deadline) {
		return time.Time{}, ErrFlushTimeout
	}
	if w.Need.Copies <= 1 {
		return w.Deadline, nil
	}
	if now.Before(w.Replicas) {
		if flushed || w.Replicas.Before(w.Deadline) {
			return w.Replicas, nil
		}
		return w.Deadline, nil
	}
	if m.replicated(w) {
		return w.Deadline, nil // only the flush is missing, and its time is not over
	}
	return time.Time{}, ErrReplicaTimeout
}

// replicated says whether the replicas did their part of w.
func (m *Master) replicated(w *Wait) bool {
	if !m.cfg.Durable {
		return m.receivedEnough(w)
	}
	o := m.observation(w.End, policyOf(w.Need.Copies, w.Need.All))
	o.LocalDurable = w.End // as if the local part were done
	return ha.DecideReplication(o).Verdict == ha.Acknowledge
}

// takeAll removes every waiter and gives each the same error.
func (m *Master) takeAll(err error) *Waiter {
	var out *Waiter
	for _, c := range m.classes {
		for len(c.heap) > 0 {
			v := c.pop()
			out = m.answer(v, Outcome{Err: err, Proved: m.Proved(v.Wait.End)}, out)
		}
	}
	return inOrder(out)
}

func (m *Master) answer(v *Waiter, o Outcome, out *Waiter) *Waiter {
	v.Outcome = o
	v.next = out
	m.waits--
	return v
}

// inOrder turns a list that was built by pushing in front.
func inOrder(out *Waiter) *Waiter {
	var first *Waiter
	for out != nil {
		out.next, first, out = first, out, out.next
	}
	return first
}

// Recycle takes an answered list back for later waits.
func (m *Master) Recycle(list *Waiter) {
	for list != nil {
		v := list
		list = v.next
		v.Owner, v.Outcome, v.next = nil, Outcome{}, nil
		if m.freeLen < m.cfg.WaitsMax {
			v.next, m.free = m.free, v
			m.freeLen++
		}
	}
}

func (m *Master) classOf(w *Wait) *class {
	for _, c := range m.classes {
		if c.flush == w.Flush && c.copies == w.Need.Copies && c.all == w.Need.All {
			return c
		}
	}
	c := &class{flush: w.Flush, copies: w.Need.Copies, all: w.Need.All}
	m.classes = append(m.classes, c)
	return c
}

func (c *class) push(v *Waiter) {
	c.heap = append(c.heap, v)
	for i := len(c.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if c.heap[parent].Wait.End <= c.heap[i].Wait.End {
			break
		}
		c.heap[parent], c.heap[i] = c.heap[i], c.heap[parent]
		i = parent
	}
}

func (c *class) pop() *Waiter {
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
			if c.heap[child].Wait.End < c.heap[least].Wait.End {
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
