package replication

import (
	"context"
	"sync"
	"time"

	"github.com/quorate/quorate/ha/group"
)

// Done is told how a Wait ended, exactly once. It must not block. g is nil when the answer comes in the caller's goroutine.
type Done interface{ Decided(o Outcome, g *Group) }

// Group are the waits that one progress decided. The first Done that wants to do something once for all of them, such as
// writing each connection once, leaves it here.
type Group struct{ Last Flusher }

// Flusher is called after all waits of a group were told.
type Flusher interface{ Flush() }

var groups = sync.Pool{New: func() any { return new(Group) }}

// Submit calls done exactly once when w is decided: at once in the caller's goroutine when it already is, else from the
// goroutine that completes it. It does not allocate in the steady state.
func (t *Term) Submit(w Wait, done Done) {
	t.mu.Lock()
	t.sync()
	o, decided := t.core.Submit(t.cfg.Clock(), w, done)
	if !decided {
		t.arm(w.Earliest())
	}
	t.mu.Unlock()
	switch {
	case decided:
		done.Decided(o, nil)
	case t.cfg.Durable && !t.cfg.SyncFlush:
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
	t.sync()
	return Outcome{Err: context.Cause(ctx), Proved: t.core.Proved(w.End)}
}

type awaited chan Outcome

func (a awaited) Decided(o Outcome, _ *Group) { a <- o }

// answer tells the waits of a list and gives it back to the core. It is called without mu.
func (t *Term) answer(list *group.Waiter) {
	if list == nil {
		return
	}
	g := groups.Get().(*Group)
	for v := list; v != nil; v = v.Next() {
		v.Owner.(Done).Decided(v.Outcome, g)
	}
	if g.Last != nil {
		g.Last.Flush()
	}
	*g = Group{}
	groups.Put(g)
	t.mu.Lock()
	t.core.Recycle(list)
	t.mu.Unlock()
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

// expire answers the waits whose deadline has passed and arms the timer for the next.
func (t *Term) expire() {
	t.mu.Lock()
	t.sync()
	t.armed = time.Time{}
	out, next := t.core.Expire(time.Now())
	if !next.IsZero() && t.core.Ended() == nil {
		t.arm(next)
	}
	t.mu.Unlock()
	t.answer(out)
}
