package pull

import (
	"context"
	"slices"
	"time"

	"github.com/quorate/quorate/store"
)

// hold parks the pull until a message arrives, its time is over, the connection closes or the topic is deleted. It gives
// the admission slot back meanwhile. It returns false when too many pulls are held: the client is then answered at once and
// will ask again.
func (o *op) hold() bool {
	if !o.x.Yield() {
		return false
	}
	// What was read may have been stale by a hair; the watermark is looked at first, so no arrival is missed.
	o.detach()
	o.h.held.Add(1)
	o.h.holds.Go(o.await)
	return true
}

func (o *op) await() {
	h, v := o.h, &o.view
	live := h.live.Load()
	suspend := min(time.Duration(v.SuspendTimeoutMillis)*time.Millisecond, suspendMax)
	if !live.LongPolling {
		suspend = live.ShortPolling
	}
	ctx, cancel := context.WithTimeout(o.x.Conn.Context(), suspend)
	defer cancel()
	err := o.watch(ctx)
	h.held.Add(-1)
	o.x.Resume()
	if err != nil {
		o.fail(err)
		return
	}
	o.respond()
}

// watch reads again whenever the queue has grown beyond what was looked at. Arrivals that do not match move the offset, so
// nothing is looked at twice.
func (o *op) watch(ctx context.Context) error {
	h, v := o.h, &o.view
	for {
		err := h.deps.Queues.QueueArrived(o.topic.Name, v.QueueID).Wait(ctx, o.offset+1)
		if err != nil && ctx.Err() == nil {
			return o.again() // the queue was deleted
		}
		if err != nil {
			return o.over()
		}
		if err := o.get(); err != nil {
			return err
		}
		switch o.result.Status {
		case store.NoMatchedMessage:
			o.offset = o.result.NextBegin
		case store.OffsetOverflowOne, store.OffsetFoundNull, store.NoMessageInQueue, store.NoMatchedLogicQueue:
			// Arrived and gone, or not readable yet: what QueueArrived says next decides.
			if o.result.MaxOffset > o.offset {
				return nil
			}
		default:
			h.deps.Progress.CommitPull(o.group.Name, o.topic.Name, v.QueueID, o.result.NextBegin)
			return nil
		}
	}
}

// over is the end of the hold without a message: the client goes on behind what did not match.
func (o *op) over() error {
	o.result.MinOffset, o.result.MaxOffset = o.h.deps.Queues.QueueBounds(o.topic.Name, o.view.QueueID)
	if o.offset != o.view.QueueOffset {
		o.result.Status, o.result.NextBegin = store.NoMatchedMessage, o.offset
		o.h.deps.Progress.CommitPull(o.group.Name, o.topic.Name, o.view.QueueID, o.offset)
	}
	return nil
}

// again judges the whole request anew.
func (o *op) again() error {
	if err := o.check(); err != nil {
		return err
	}
	return o.get()
}

// detach copies what the hold needs of the request, which is only borrowed from the connection.
func (o *op) detach() {
	v := &o.view
	fields := [...]*[]byte{&v.ConsumerGroup, &v.Topic, &v.Subscription, &v.ExpressionType, &v.ProxyForwardClientID, &v.BrokerName}
	size := 0
	for _, f := range fields {
		size += len(*f)
	}
	subscription := v.SysFlag&flagSubscription != 0
	o.own = slices.Grow(o.own[:0], size)
	for _, f := range fields {
		start := len(o.own)
		o.own = append(o.own, *f...)
		*f = o.own[start:len(o.own):len(o.own)]
	}
	if subscription && !o.all { // the names of the filter alias the request too
		o.filter.parse(v.Subscription)
	}
}
