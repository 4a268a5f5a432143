package sim

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/ha"
	"github.com/quorate/quorate/ha/group"
)

var errStorage = errors.New("storage failed")

// operation is one send, from its call to what the client was told.
type operation struct {
	id      uint64
	called  time.Duration
	ended   time.Duration
	end     int64 // where its record ends, 0 before the append
	need    ha.Need
	flush   bool
	status  status
	outcome group.Outcome
}

type status uint8

const (
	running status = iota
	acknowledged
	refused // before the append: nothing was written
	unsure  // after it: the record may stay
)

func (o *operation) unknown(now time.Duration) {
	if o.status == running {
		o.status, o.ended = unsure, now
	}
}

type history struct {
	ops      []*operation
	observed []byte // the longest log that a consumer has seen
	compared int    // up to here it was compared with the master's
	acks     int
	degraded int
}

// client sends one message after the other.
func (w *World) client() {
	w.send1()
	w.after(w.between(10*time.Millisecond, 100*time.Millisecond), "client", w.client)
}

func (w *World) send1() {
	n := w.nodes[masterID]
	op := &operation{id: uint64(len(w.history.ops) + 1), called: w.now, flush: w.SyncFlush}
	w.history.ops = append(w.history.ops, op)
	if !n.up || n.disk.full {
		op.status, op.ended = refused, w.now
		return
	}
	n.sync()
	need, err := n.core.Need()
	w.checkNeed(n, need, err)
	pass, admitErr := n.core.Admit(w.now)
	if err != nil || admitErr != nil {
		op.status, op.ended = refused, w.now
		return
	}
	op.need = need
	if need.Degraded {
		w.history.degraded++
	}
	n.disk.data = appendRecord(n.disk.data, op.id, recordHead+w.rng.IntN(100))
	op.end = int64(len(n.disk.data))
	n.sync()
	wait := group.Wait{Pass: pass, End: op.end, Flush: op.flush, Need: need, Deadline: at(w.now + waitLimit)}
	n.pending = append(n.pending, op)
	if o, decided := n.core.Submit(w.now, wait, op); decided {
		n.told(op, o)
	}
	if w.SyncFlush || w.Durable {
		n.flush()
	}
	for _, id := range sortedKeys(n.conns) {
		n.replicate(n.conns[id])
	}
	n.settle()
}

func (n *node) sync() {
	n.core.Progress(int64(len(n.disk.data)), int64(len(n.disk.data)), int64(n.disk.durable))
}

// settle answers what is satisfied, lets consumers see what is confirmed, and checks that nobody satisfied still waits.
func (n *node) settle() {
	if !n.up || n.core.Ended() != nil {
		return
	}
	n.sync()
	confirm, answered := n.core.Settle(n.w.now)
	if confirm > int64(len(n.disk.data)) {
		n.w.broken("confirmed %d of a log of %d", confirm, len(n.disk.data))
		return
	}
	n.confirmed = max(n.confirmed, confirm)
	visible := n.confirmed
	if n.w.Mutant == PhantomReads {
		visible = int64(len(n.disk.data))
	}
	n.w.consume(n.disk.data[:min(visible, int64(len(n.disk.data)))])
	n.deliver(answered)
	n.w.checkNobodySatisfiedWaits(n)
}

// deliver hands outcomes to clients.
func (n *node) deliver(list *group.Waiter) {
	for v := list; v != nil; v = v.Next() {
		op := v.Owner.(*operation)
		if n.w.Mutant == HeadOfLine && v.Outcome.Err == nil && n.pending[0] != op {
			continue // never told: an earlier one is still waiting
		}
		n.told(op, v.Outcome)
	}
	if n.core != nil {
		n.core.Recycle(list)
	}
}

func (n *node) told(op *operation, o group.Outcome) {
	op.outcome, op.ended = o, n.w.now
	n.pending = slices.DeleteFunc(n.pending, func(p *operation) bool { return p == op })
	if !o.Acknowledged(op.end) {
		op.status = unsure
		return
	}
	op.status = acknowledged
	n.w.history.acks++
	n.w.checkEvidence(op)
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
