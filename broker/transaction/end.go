package transaction

import (
	"context"
	"strconv"
	"time"

	"github.com/quorate/quorate/broker/topic"
	"github.com/quorate/quorate/broker/write"
	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
)

// Routes are the requests about transactions.
func (t *Transactions) Routes() []remoting.Route {
	return []remoting.Route{
		remoting.Handle(remoting.Data, t.end),
		remoting.Handle(remoting.Admin, t.resume),
	}
}

// end is END_TRANSACTION. An unknown state gets no answer at all, as in RocketMQ: clients do not wait for one.
func (t *Transactions) end(ctx context.Context, call remoting.Call[protocol.EndTransactionRequest]) (*remoting.Reply, error) {
	h := call.Header
	want := decision(h.CommitOrRollback)
	if want != commit && want != rollback {
		return remoting.NoReply, nil
	}
	select {
	case <-t.loaded:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	view, err := t.deps.Log.RecordAt(h.CommitLogOffset)
	if err != nil {
		return nil, protocol.Errorf(protocol.SystemError, "find prepared transaction message failed")
	}
	defer view.Release()
	record, err := message.DecodeRecord(view.Bytes, false)
	if err != nil {
		return nil, protocol.Errorf(protocol.SystemError, "find prepared transaction message failed")
	}
	if err := checkHalf(&record, h, call.Received); err != nil {
		return nil, err
	}
	first := firstOffset(&record)
	prior, at, err := t.claim(first, place{record.QueueOffset, record.PhysicalOffset}, want)
	switch {
	case err != nil:
		t.deps.Logger.Warn("late end of a transaction refused", "half_offset", first, "wanted", want.String())
		return nil, protocol.Errorf(protocol.IllegalOperation, "the transaction was decided or given up before")
	case prior == want:
		return &remoting.Reply{}, nil
	case prior != undecided:
		t.deps.Logger.Warn("contrary end of a transaction refused", "half_offset", first, "wanted", want.String(), "was", prior.String())
		return nil, protocol.Errorf(protocol.IllegalOperation, "the transaction is %s already", prior)
	}
	if want == commit {
		if err := t.release(ctx, &record, at, call.Received); err != nil {
			t.settle(first, at, undecided)
			return nil, err
		}
	}
	for _, o := range t.settle(first, at, want) {
		if err := t.announce(ctx, o); err != nil {
			return nil, err
		}
	}
	return &remoting.Reply{}, nil
}

// announce queues the op record of a decided offset.
func (t *Transactions) announce(ctx context.Context, queueOffset int64) error {
	select {
	case t.ops <- queueOffset:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// checkHalf tells why a request does not fit the record it names.
func checkHalf(r *message.Record, h *protocol.EndTransactionRequest, now time.Time) error {
	fromCheck := h.FromTransactionCheck != nil && *h.FromTransactionCheck
	if string(r.Topic) != topic.Half {
		return protocol.Errorf(protocol.SystemError, "the message at that offset is not a prepared transaction message")
	}
	if limit, ok := immunity(r.Properties); ok && !fromCheck && now.UnixMilli()-r.BornTimestamp > limit.Milliseconds() {
		return protocol.Errorf(protocol.IllegalOperation, "message has expired; its transaction state can only be checked")
	}
	if r.Properties.Get(message.ProducerGroup) != h.ProducerGroup {
		return protocol.Errorf(protocol.SystemError, "the producer group wrong")
	}
	if r.QueueOffset != h.TranStateTableOffset {
		return protocol.Errorf(protocol.SystemError, "the transaction state table offset wrong")
	}
	if r.PhysicalOffset != h.CommitLogOffset {
		return protocol.Errorf(protocol.SystemError, "the commit log offset wrong")
	}
	return nil
}

// release stores the message itself. Its property bytes stay as those of the half message. A flush or replica that did not
// answer in time leaves it appended, which is committed: RocketMQ answers success then, and so do we.
func (t *Transactions) release(ctx context.Context, half *message.Record, at place, received time.Time) error {
	name, queue, ok := realPlace(half.Properties)
	if !ok {
		return protocol.Errorf(protocol.SystemError, "the prepared message does not name its topic")
	}
	m := message.Message{
		Topic: name, QueueID: queue, Flag: half.Flag, SysFlag: half.SysFlag&^message.TransactionRollback | message.TransactionCommit,
		Properties: half.Properties, Body: half.Body, BornTimestamp: half.BornTimestamp, BornHost: half.BornHost,
		StoreHost: half.StoreHost, ReconsumeTimes: half.ReconsumeTimes, PreparedTransactionOffset: at.physical,
	}
	t.deps.Levels.Park(&m, time.Now())
	r := t.deps.Writer.Write(ctx, write.Request{Message: &m, Received: received})
	if r.Err != nil && r.Appended.End == 0 {
		return r.Err
	}
	return nil
}

// realPlace is where the message of a half record goes.
func realPlace(p message.Properties) (name string, queue int32, ok bool) {
	name = p.Get(message.RealTopic)
	n, err := strconv.ParseInt(p.Get(message.RealQueueID), 10, 32)
	return name, int32(n), err == nil && name != "" && n >= 0 && name != topic.Half && name != topic.OpHalf
}

// firstOffset identifies a half message: the queue offset at which it first lay.
func firstOffset(r *message.Record) int64 {
	if text, ok := r.Properties.Lookup(message.PreparedQueueOffset); ok {
		if n, err := strconv.ParseInt(string(text), 10, 64); err == nil && n >= 0 {
			return n
		}
	}
	return r.QueueOffset
}

// immunity is how long a half message must not be checked, if it says so itself.
func immunity(p message.Properties) (time.Duration, bool) {
	text, ok := p.Lookup(message.CheckImmunityTime)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(string(text), 10, 32)
	if err != nil || n < 0 {
		return 0, false
	}
	return time.Duration(n) * time.Second, true
}

// resume is RESUME_CHECK_HALF_MESSAGE: a message that was given up goes back to the half topic with its checks at zero.
func (t *Transactions) resume(ctx context.Context, call remoting.Call[protocol.ResumeCheckHalfMessageRequest]) (*remoting.Reply, error) {
	_, offset, err := message.ParseOffsetID(call.Header.MsgID)
	if err != nil {
		return nil, protocol.Errorf(protocol.InvalidParameter, "msgId: %v", err)
	}
	view, err := t.deps.Log.RecordAt(offset)
	if err != nil {
		return nil, protocol.Errorf(protocol.SystemError, "no message at offset %d", offset)
	}
	defer view.Release()
	record, err := message.DecodeRecord(view.Bytes, false)
	if err != nil {
		return nil, protocol.Errorf(protocol.SystemError, "the message at offset %d cannot be read", offset)
	}
	if name := string(record.Topic); name != topic.CheckMaxTime && name != topic.Half {
		return nil, protocol.Errorf(protocol.SystemError, "the message at offset %d is no half message but of topic %s", offset, name)
	}
	m := again(&record, 0)
	if r := t.deps.Writer.Write(ctx, write.Request{Message: &m, Received: call.Received}); r.Err != nil {
		return nil, r.Err
	}
	return &remoting.Reply{}, nil
}

// again is a half record as the message that appends it once more, counted as checked the given number of times.
func again(r *message.Record, checks int) message.Message {
	properties := append(message.Properties(nil), r.Properties...)
	properties = properties.Set(message.TransactionCheckTime, strconv.Itoa(checks))
	if string(r.Topic) == topic.Half && !properties.Has(message.PreparedQueueOffset) {
		properties = properties.Set(message.PreparedQueueOffset, strconv.FormatInt(r.QueueOffset, 10))
	}
	return message.Message{
		Topic: topic.Half, Flag: r.Flag, SysFlag: r.SysFlag, Properties: properties, Body: r.Body, BornTimestamp: r.BornTimestamp,
		BornHost: r.BornHost, StoreHost: r.StoreHost, ReconsumeTimes: r.ReconsumeTimes,
	}
}
