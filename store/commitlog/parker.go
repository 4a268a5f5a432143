package commitlog

import (
	"context"
	"sync/atomic"
)

// parker lets one goroutine sleep until there is work. A wake costs one atomic load unless somebody sleeps.
type parker struct {
	sleeping atomic.Bool
	ch       chan struct{} // capacity 1
}

func (p *parker) wake() {
	if p.sleeping.Load() && p.sleeping.CompareAndSwap(true, false) {
		p.ch <- struct{}{}
	}
}

// park returns true when ready holds or somebody woke it, false when ctx ended. Work must be published before wake, and
// ready must see it.
func (p *parker) park(ctx context.Context, ready func() bool) bool {
	p.sleeping.Store(true)
	if ready() {
		p.unpark()
		return true
	}
	select {
	case <-p.ch:
		return true
	case <-ctx.Done():
		p.unpark()
		return false
	}
}

// unpark takes back the wish to be woken, or the wake that came in between.
func (p *parker) unpark() {
	if !p.sleeping.CompareAndSwap(true, false) {
		<-p.ch
	}
}
