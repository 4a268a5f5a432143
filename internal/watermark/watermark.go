// Package watermark is a growing offset that goroutines can wait on. Every stage of a broker follows the stage before it
// by waiting for its watermark; nothing calls upward except the one subscribed stage that follows directly.
package watermark

import (
	"container/heap"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
)

// ErrClosed is wrapped by the error of every wait on a closed watermark, beside the cause given to Close.
var ErrClosed = errors.New("watermark: closed")

// Watermark only grows. Safe for concurrent use. The zero value stands at 0.
type Watermark struct {
	offset atomic.Int64 // written under mu only; read without it
	spare  atomic.Pointer[waiter]

	mu          sync.Mutex
	closed      error
	waiters     waiterHeap
	subscribers []*subscriber // replaced, never changed in place, so that Advance may call out of the lock
}

type subscriber struct{ fn func(offset int64) }

// waiter is one goroutine in Wait. Whoever takes it out of the heap to wake it sends on its channel, under mu; err
// is set before.
type waiter struct {
	offset int64
	index  int // position in the heap, -1 once taken out
	err    error
	wake   chan struct{} // capacity 1
}

// newWaiter returns a waiter: the last one that was given back, or a new one. One is kept because a stage that follows
// another waits again and again; a pool of all would carry channels out of a test's synctest bubble.
func (w *Watermark) newWaiter(offset int64) *waiter {
	v := w.spare.Swap(nil)
	if v == nil {
		v = &waiter{wake: make(chan struct{}, 1)}
	}
	v.offset = offset
	return v
}

// done gives a waiter back once its wake was taken, or nobody will send one, and returns what it was told.
func (w *Watermark) done(v *waiter) error {
	err := v.err
	v.err = nil
	w.spare.Store(v)
	return err
}

// Load returns the current offset.
func (w *Watermark) Load() int64 { return w.offset.Load() }

// Advance moves the watermark up to offset and wakes exactly those waiters that it reaches; a lower offset is ignored, and
// so is every offset after Close. Subscribers are called before Advance returns; two goroutines that advance at once may
// call them in either order.
func (w *Watermark) Advance(offset int64) {
	if offset <= w.offset.Load() {
		return
	}
	w.mu.Lock()
	if offset <= w.offset.Load() || w.closed != nil {
		w.mu.Unlock()
		return
	}
	w.offset.Store(offset)
	for len(w.waiters) > 0 && w.waiters[0].offset <= offset {
		heap.Pop(&w.waiters).(*waiter).wake <- struct{}{}
	}
	subscribers := w.subscribers
	w.mu.Unlock()
	for _, s := range subscribers {
		s.fn(offset)
	}
}

// Close fails current and future waiters above the watermark with ErrClosed and cause. Later calls change nothing.
func (w *Watermark) Close(cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed != nil {
		return
	}
	w.closed = ErrClosed
	if cause != nil {
		w.closed = errors.Join(ErrClosed, cause)
	}
	for _, v := range w.waiters {
		v.index, v.err = -1, w.closed
		v.wake <- struct{}{}
	}
	w.waiters = nil
}

// Wait blocks until the watermark reaches offset (nil), the watermark closes, or ctx ends (its cause). A watermark that
// already stands at offset answers at once, whatever the state of ctx.
func (w *Watermark) Wait(ctx context.Context, offset int64) error {
	if w.offset.Load() >= offset {
		return nil
	}
	w.mu.Lock()
	if w.offset.Load() >= offset {
		w.mu.Unlock()
		return nil
	}
	if w.closed != nil {
		defer w.mu.Unlock()
		return w.closed
	}
	v := w.newWaiter(offset)
	heap.Push(&w.waiters, v)
	w.mu.Unlock()

	select {
	case <-v.wake:
		return w.done(v)
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if v.index < 0 { // woken at the same moment: what was reached counts
		<-v.wake
		return w.done(v)
	}
	heap.Remove(&w.waiters, v.index)
	_ = w.done(v) // nobody told it anything
	return context.Cause(ctx)
}

// Subscribe registers fn to be called after every advance, in the advancing goroutine; fn must not block. For the one
// pipeline stage that follows. cancel removes it; a call already under way may still end after cancel returned.
func (w *Watermark) Subscribe(fn func(offset int64)) (cancel func()) {
	s := &subscriber{fn}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.subscribers = append(slices.Clip(w.subscribers), s)
	return func() { w.unsubscribe(s) }
}

func (w *Watermark) unsubscribe(s *subscriber) {
	w.mu.Lock()
	defer w.mu.Unlock()
	kept := make([]*subscriber, 0, len(w.subscribers))
	for _, other := range w.subscribers {
		if other != s {
			kept = append(kept, other)
		}
	}
	w.subscribers = kept
}

// waiterHeap has the lowest awaited offset first.
type waiterHeap []*waiter

func (h waiterHeap) Len() int           { return len(h) }
func (h waiterHeap) Less(i, j int) bool { return h[i].offset < h[j].offset }
func (h waiterHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *waiterHeap) Push(x any) {
	v := x.(*waiter)
	v.index = len(*h)
	*h = append(*h, v)
}

func (h *waiterHeap) Pop() any {
	last := len(*h) - 1
	v := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	v.index = -1
	return v
}

// Rewind takes the watermark back to offset: the log was cut there. Those who wait for more fail with cause, because what
// they wait for is gone; it may come again with other content. Subscribers are not called. After Close it has no effect.
func (w *Watermark) Rewind(offset int64, cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if offset >= w.offset.Load() || w.closed != nil {
		return
	}
	w.offset.Store(offset)
	for len(w.waiters) > 0 {
		v := heap.Pop(&w.waiters).(*waiter)
		v.err = cause
		v.wake <- struct{}{}
	}
}
