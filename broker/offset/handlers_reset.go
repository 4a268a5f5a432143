package offset

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
)

// ResetBody is the body of RESET_CONSUMER_CLIENT_OFFSET and of the answer to INVOKE_BROKER_TO_RESET_OFFSET
// (RocketMQ ResetOffsetBody).
type ResetBody struct {
	OffsetTable fastjson.Map[protocol.MessageQueue, int64] `json:"offsetTable"`
}

// resetBodyC is the list form for C++ clients (RocketMQ ResetOffsetBodyForC).
type resetBodyC struct {
	OffsetTable []queueOffset `json:"offsetTable"`
}

type queueOffset struct {
	BrokerName string `json:"brokerName"`
	QueueID    int32  `json:"queueId"`
	Topic      string `json:"topic"`
	Offset     int64  `json:"offset"`
}

// reset is INVOKE_BROKER_TO_RESET_OFFSET: to an explicit offset, or to a time (−1: the end). Server-side the target waits
// for the group's next pull; else the group's online members are told.
func (h *Handlers) reset(_ context.Context, c remoting.Call[protocol.ResetOffsetRequest]) (*remoting.Reply, error) {
	r := c.Header
	queues, ok := h.Names.Queues(r.Topic)
	if !ok {
		return nil, protocol.Errorf(protocol.TopicNotExist, "topic %q does not exist", r.Topic)
	}
	if !h.Names.Group(r.Group) {
		return nil, protocol.Errorf(protocol.SubscriptionGroupNotExist, "subscription group %q does not exist", r.Group)
	}
	targets := map[int32]int64{}
	first, end := int32(0), queues
	if r.QueueID != nil && *r.QueueID >= 0 {
		if *r.QueueID >= queues {
			return nil, protocol.Errorf(protocol.SystemError, "queueId %d is not in 0…%d of topic %q", *r.QueueID, queues-1, r.Topic)
		}
		first, end = *r.QueueID, *r.QueueID+1
	}
	for id := first; id < end; id++ {
		target, err := h.target(r, id)
		if err != nil {
			return nil, err
		}
		// Without force a group only moves back: a reset to a time ahead of what it consumed would skip messages.
		if have := h.Table.Query(r.Group, r.Topic, id); !r.IsForce && have >= 0 && have < target {
			target = have
		}
		targets[id] = target
	}
	body := ResetBody{OffsetTable: fastjson.Map[protocol.MessageQueue, int64]{}}
	for id, target := range targets {
		body.OffsetTable[protocol.MessageQueue{BrokerName: h.BrokerName, QueueID: id, Topic: r.Topic}] = target
	}
	if h.ServerSideReset() {
		for id, target := range targets {
			h.Table.SetReset(r.Group, r.Topic, id, target)
		}
		return jsonReply(body)
	}
	if err := h.push(r, body); err != nil {
		return nil, err
	}
	return jsonReply(body)
}

func (h *Handlers) target(r *protocol.ResetOffsetRequest, id int32) (int64, error) {
	minOffset, maxOffset := h.Queues.QueueBounds(r.Topic, id)
	switch {
	case r.Offset != nil && *r.Offset >= 0 && r.QueueID != nil && *r.QueueID >= 0:
		if *r.Offset < minOffset || *r.Offset > maxOffset {
			return 0, protocol.Errorf(protocol.SystemError, "offset %d is not in %d…%d of topic %q queue %d",
				*r.Offset, minOffset, maxOffset, r.Topic, id)
		}
		return *r.Offset, nil
	case r.Timestamp < 0:
		return maxOffset, nil
	default:
		return max(minOffset, h.Queues.OffsetByTime(r.Topic, id, r.Timestamp, false)), nil
	}
}

// push tells the online members, as brokers before useServerSideResetOffset do.
func (h *Handlers) push(r *protocol.ResetOffsetRequest, body ResetBody) error {
	members := h.Online(r.Group)
	if len(members) == 0 {
		return protocol.Errorf(protocol.ConsumerNotOnline, "group %q has no online consumer to tell", r.Group)
	}
	object, err := fastjson.Marshal(body)
	if err != nil {
		return err
	}
	var listed resetBodyC
	for mq, offset := range body.OffsetTable {
		listed.OffsetTable = append(listed.OffsetTable, queueOffset{mq.BrokerName, mq.QueueID, mq.Topic, offset})
	}
	slices.SortFunc(listed.OffsetTable, func(a, b queueOffset) int { return cmp.Compare(a.QueueID, b.QueueID) })
	list, err := fastjson.Marshal(listed)
	if err != nil {
		return err
	}
	for _, m := range members {
		payload := object
		if m.Language == protocol.CPP {
			payload = list
		}
		notice := protocol.NewRequest(&protocol.ResetConsumerClientOffsetRequest{ResetOffsetRequest: *r}, payload)
		if err := m.Oneway(notice); err != nil {
			h.Logger.Warn("consumer not told of an offset reset", "client_id", m.ClientID, "consumer_group", r.Group, "error", err)
		}
	}
	return nil
}

// correctionBody is the answer of QUERY_CORRECTION_OFFSET (RocketMQ QueryCorrectionOffsetBody).
type correctionBody struct {
	CorrectionOffsets map[int32]int64 `json:"correctionOffsets"`
}

// correct is QUERY_CORRECTION_OFFSET: per queue the smallest offset of all groups but the filtered ones; where even that lies
// beyond the compared group's offset nothing has to be corrected, which MaxInt64 says.
func (h *Handlers) correct(_ context.Context, c remoting.Call[protocol.QueryCorrectionOffsetRequest]) (*remoting.Reply, error) {
	r := c.Header
	least := map[int32]int64{}
	filtered := strings.Split(r.FilterGroups, ",")
	for _, g := range h.Table.Groups(r.Topic) {
		if slices.Contains(filtered, g) {
			continue
		}
		for id, offset := range h.Table.Offsets(g, r.Topic) {
			minOffset, _ := h.Queues.QueueBounds(r.Topic, id)
			if have, ok := least[id]; offset >= minOffset && (!ok || offset < have) {
				least[id] = offset
			}
		}
	}
	for id, compared := range h.Table.Offsets(r.CompareGroup, r.Topic) {
		if offset, ok := least[id]; ok && offset > compared {
			least[id] = math.MaxInt64
		}
	}
	return jsonReply(correctionBody{least})
}

// timeSpanBody is the answer of QUERY_CONSUME_TIME_SPAN (RocketMQ QueryConsumeTimeSpanBody). Times are ms.
type timeSpanBody struct {
	ConsumeTimeSpanSet []timeSpan `json:"consumeTimeSpanSet"`
}

type timeSpan struct {
	MessageQueue     protocol.MessageQueue `json:"messageQueue"`
	MinTimeStamp     int64                 `json:"minTimeStamp"`
	MaxTimeStamp     int64                 `json:"maxTimeStamp"`
	ConsumeTimeStamp int64                 `json:"consumeTimeStamp"`
	DelayTime        int64                 `json:"delayTime"`
}

// timeSpan is QUERY_CONSUME_TIME_SPAN.
func (h *Handlers) timeSpan(_ context.Context, c remoting.Call[protocol.QueryConsumeTimeSpanRequest]) (*remoting.Reply, error) {
	r := c.Header
	queues, ok := h.Names.Queues(r.Topic)
	if !ok {
		return nil, protocol.Errorf(protocol.TopicNotExist, "topic %q does not exist", r.Topic)
	}
	body := timeSpanBody{ConsumeTimeSpanSet: []timeSpan{}}
	for id := range queues {
		minOffset, maxOffset := h.Queues.QueueBounds(r.Topic, id)
		if maxOffset <= minOffset {
			continue
		}
		span := timeSpan{
			MessageQueue: protocol.MessageQueue{BrokerName: h.BrokerName, QueueID: id, Topic: r.Topic},
			MinTimeStamp: h.Queues.StoreTime(r.Topic, id, minOffset),
			MaxTimeStamp: h.Queues.StoreTime(r.Topic, id, maxOffset-1),
		}
		span.ConsumeTimeStamp = span.MinTimeStamp
		if have := h.Table.Query(r.Group, r.Topic, id); have > minOffset {
			span.ConsumeTimeStamp = h.Queues.StoreTime(r.Topic, id, min(have, maxOffset)-1)
			if have < maxOffset {
				span.DelayTime = h.Table.now().UnixMilli() - h.Queues.StoreTime(r.Topic, id, have)
			}
		} else {
			span.DelayTime = h.Table.now().UnixMilli() - span.MinTimeStamp
		}
		body.ConsumeTimeSpanSet = append(body.ConsumeTimeSpanSet, span)
	}
	return jsonReply(body)
}
