package remoting

import "sync/atomic"

// admission counts requests at work per class, and requests that only wait. Safe for concurrent use.
type admission struct {
	workMax  [classes]int64
	holdsMax int64

	work     [classes]atomic.Int64
	holds    atomic.Int64
	draining atomic.Bool
	drained  chan struct{} // capacity 1: signalled when draining and a class went down to zero
}

func newAdmission(workMax [classes]int, holdsMax int) *admission {
	a := &admission{holdsMax: int64(holdsMax), drained: make(chan struct{}, 1)}
	for class, bound := range workMax {
		a.workMax[class] = int64(bound)
	}
	return a
}

// enter takes a slot, or reports that the class is full.
func (a *admission) enter(class Class) bool {
	if a.work[class].Add(1) > a.workMax[class] {
		a.leave(class)
		return false
	}
	return true
}

func (a *admission) leave(class Class) {
	if a.work[class].Add(-1) == 0 && a.draining.Load() {
		select {
		case a.drained <- struct{}{}:
		default:
		}
	}
}

// hold turns a slot into a hold, or reports that there are too many holds.
func (a *admission) hold(class Class) bool {
	if a.holds.Add(1) > a.holdsMax {
		a.holds.Add(-1)
		return false
	}
	a.leave(class)
	return true
}

// unhold turns a hold back into a slot. It does not wait for a free one: the request was admitted once, and refusing
// new requests while a burst of held ones is answered is what the bound is for.
func (a *admission) unhold(class Class) {
	a.work[class].Add(1)
	a.holds.Add(-1)
}

func (a *admission) atWork() (n int64) {
	for class := range a.work {
		n += a.work[class].Load()
	}
	return n
}
