package produce

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/quorate/quorate/broker/topic"
	"github.com/quorate/quorate/broker/write"
	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
	"github.com/quorate/quorate/store"
)

// sendBack is CONSUMER_SEND_MSG_BACK: a consumer could not process a message and asks for it again later. It goes to the
// group's retry topic by way of the delay topic, or, consumed too often, to its dead-letter queue (PROTOCOL §3.9).
func (h *Handlers) sendBack(ctx context.Context, c remoting.Call[protocol.ConsumerSendMsgBackRequest]) (*remoting.Reply, error) {
	r := c.Header
	if h.deps.Replica {
		return nil, errReplica()
	}
	g := h.deps.Groups.Find(r.Group)
	if g == nil {
		return nil, protocol.Errorf(protocol.SubscriptionGroupNotExist, "subscription group %q does not exist", r.Group)
	}
	if live := h.live.Load(); live.BrokerPermission&topic.PermWrite == 0 {
		return nil, protocol.Errorf(protocol.NoPermission, "the broker's permission is %d: sending is forbidden", live.BrokerPermission)
	}
	if g.RetryQueueNums <= 0 {
		return &remoting.Reply{}, nil
	}
	retry, err := h.deps.Topics.Ensure(topic.Config{
		Name: topic.Retry(r.Group), ReadQueues: g.RetryQueueNums, WriteQueues: g.RetryQueueNums,
		Perm: topic.PermRead | topic.PermWrite, SysFlag: unitSub(r.UnitMode),
	})
	if err != nil {
		h.deps.Logger.Error("retry topic not created", "consumer_group", r.Group, "error", err)
		return nil, protocol.Errorf(protocol.SystemError, "topic %q could not be created", topic.Retry(r.Group))
	}
	if retry.Perm&topic.PermWrite == 0 {
		return nil, protocol.Errorf(protocol.NoPermission, "topic %q may not be written", retry.Name)
	}
	view, err := h.deps.Records.RecordAt(r.Offset)
	if err != nil {
		if !errors.Is(err, store.ErrRecordNotFound) {
			h.deps.Logger.Error("record of a send-back not read", "offset", r.Offset, "error", err)
		}
		return nil, protocol.Errorf(protocol.SystemError, "no message at offset %d", r.Offset)
	}
	defer view.Release()
	record, err := message.DecodeRecord(view.Bytes, false)
	if err != nil {
		return nil, protocol.Errorf(protocol.SystemError, "no message at offset %d", r.Offset)
	}
	m := h.again(&record)
	level := r.DelayLevel
	limit := g.RetryMaxTimes
	if r.MaxReconsumeTimes != nil && c.Command.Version >= maxReconsumeVersion {
		limit = *r.MaxReconsumeTimes
	}
	if record.ReconsumeTimes >= limit || level < 0 {
		dead, err := ensureDeadLetter(h.deps.Topics, r.Group)
		if err != nil {
			return nil, err
		}
		m.Topic, m.QueueID = dead.Name, 0
		m.Properties = m.Properties.Set(message.DelayTimeLevel, "0")
	} else {
		if level == 0 {
			level = 3 + record.ReconsumeTimes
		}
		m.Topic, m.QueueID = retry.Name, rand.Int32N(max(retry.WriteQueues, 1))
		m.Properties = m.Properties.Set(message.DelayTimeLevel, strconv.Itoa(int(level)))
		h.cfg.Levels.Park(&m, time.Now())
	}
	result := h.deps.Writer.Write(ctx, write.Request{Message: &m, Received: c.Received})
	if code := CodeOf(result.Err); !stored(code) {
		h.deps.Logger.Warn("send-back not stored", "consumer_group", r.Group, "offset", r.Offset, "error", result.Err)
		return nil, protocol.Errorf(code, "%s", result.Err.Error())
	}
	h.deps.Meter.SentBack([]byte(r.Group), record.Topic)
	return &remoting.Reply{}, nil
}

// again is the message that goes back: everything born with it is kept, and it remembers where it came from first.
func (h *Handlers) again(r *message.Record) message.Message {
	m := r.Message()
	m.StoreHost = h.cfg.StoreHost
	m.ReconsumeTimes = r.ReconsumeTimes + 1
	m.PreparedTransactionOffset = 0
	// The record belongs to the log: properties are changed in a copy with room for what is added.
	p := append(make(message.Properties, 0, len(r.Properties)+256), r.Properties...)
	if !p.Has(message.RetryTopic) {
		p = p.Set(message.RetryTopic, string(r.Topic))
	}
	p = p.Set(message.WaitStoreMsgOK, "false")
	if !p.Has(message.OriginMessageID) {
		p = p.Set(message.OriginMessageID, message.OffsetID(r.StoreHost, r.PhysicalOffset))
	}
	m.Properties = p
	return m
}

func unitSub(unit bool) int32 {
	if unit {
		return unitSubFlag
	}
	return 0
}
