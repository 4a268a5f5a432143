package pull

import (
	"context"
	"errors"
	"strconv"

	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
	"github.com/quorate/quorate/store"
)

// view is VIEW_MESSAGE_BY_ID: the record at a physical offset.
func (h *Handlers) view(_ context.Context, c remoting.Call[protocol.ViewMessageRequest]) (*remoting.Reply, error) {
	v, err := h.deps.Log.RecordAt(c.Header.Offset)
	if err != nil {
		if !errors.Is(err, store.ErrRecordNotFound) {
			h.deps.Logger.Error("record not read", "offset", c.Header.Offset, "error", err)
		}
		return nil, protocol.Errorf(protocol.SystemError, "can not find message by the offset, %d", c.Header.Offset)
	}
	return &remoting.Reply{Parts: [][]byte{v.Bytes}, Done: v.Release}, nil
}

// query is QUERY_MESSAGE: records by key, or by unique key. Hash collisions are returned too; clients compare.
func (h *Handlers) query(_ context.Context, c remoting.Call[protocol.QueryMessageRequest]) (*remoting.Reply, error) {
	r := c.Header
	live := h.live.Load()
	num := r.MaxNum
	if unique, ok := c.Command.Ext.Lookup("_UNIQUE_KEY_QUERY"); ok && string(unique) == "true" {
		num = live.QueryNumDefault
	}
	found, err := h.deps.Log.Query(r.Topic, r.Key, int(min(num, live.QueryNumMax)), r.BeginTimestamp, r.EndTimestamp)
	if err != nil {
		return nil, err
	}
	if len(found.Views) == 0 {
		return nil, protocol.Errorf(protocol.QueryNotFound, "can not find message, maybe time range not correct")
	}
	parts := make([][]byte, len(found.Views))
	for i, v := range found.Views {
		parts[i] = v.Bytes
	}
	return &remoting.Reply{
		Header: &protocol.QueryMessageResponse{
			IndexLastUpdateTimestamp: found.LastUpdateTime, IndexLastUpdatePhyoffset: found.LastUpdateOffset,
		},
		Parts: parts,
		Done: func() {
			for _, v := range found.Views {
				v.Release()
			}
		},
	}, nil
}

// queueEntriesMax bounds one QUERY_CONSUME_QUEUE.
const queueEntriesMax = 4096

// consumeQueue is QUERY_CONSUME_QUEUE: entries as they are, and whether the group's filter takes them.
func (h *Handlers) consumeQueue(_ context.Context, c remoting.Call[protocol.QueryConsumeQueueRequest]) (*remoting.Reply, error) {
	r := c.Header
	queueID := int32(0)
	if r.QueueID != nil {
		queueID = *r.QueueID
	}
	minOffset, maxOffset := h.deps.Queues.QueueBounds(r.Topic, queueID)
	if maxOffset == 0 {
		return nil, protocol.Errorf(protocol.SystemError, "%d@%s is not exist!", queueID, r.Topic)
	}
	body := protocol.QueryConsumeQueueResponseBody{MinQueueIndex: minOffset, MaxQueueIndex: maxOffset}
	var filter *tags
	if s := h.deps.Clients.Subscription([]byte(r.ConsumerGroup), []byte(r.Topic)); r.ConsumerGroup != "" && s != nil {
		body.SubscriptionData = &protocol.SubscriptionData{
			ClassFilterMode: s.ClassFilterMode, Topic: s.Topic, SubString: s.SubString, TagsSet: s.Tags, SubVersion: s.Version,
			ExpressionType: s.ExpressionType,
		}
		for _, code := range s.Codes {
			body.SubscriptionData.CodeSet = append(body.SubscriptionData.CodeSet, int32(code))
		}
		f := &tags{}
		if !f.subscribe(s) {
			filter = f
		}
	}
	entries := make([]store.QueueEntry, min(max(r.Count, 0), queueEntriesMax))
	n, err := h.deps.Log.QueueEntries(r.Topic, queueID, r.Index, entries)
	if err != nil {
		return nil, protocol.Errorf(protocol.SystemError, "index %d of %d@%s is not exist!", r.Index, queueID, r.Topic)
	}
	for _, e := range entries[:n] {
		body.QueueData = append(body.QueueData, h.entry(e, filter))
	}
	text, err := fastjson.Marshal(body)
	if err != nil {
		return nil, err
	}
	return &remoting.Reply{Body: text}, nil
}

func (h *Handlers) entry(e store.QueueEntry, filter *tags) protocol.ConsumeQueueData {
	d := protocol.ConsumeQueueData{PhysicOffset: e.PhysicalOffset, PhysicSize: e.Size, TagsCode: e.TagsCode, Eval: true}
	if filter == nil {
		return d
	}
	d.Eval = filter.MatchTagsCode(e.TagsCode)
	v, err := h.deps.Log.RecordAt(e.PhysicalOffset)
	if err != nil {
		d.Eval, d.Msg = false, "message at "+strconv.FormatInt(e.PhysicalOffset, 10)+" is not readable"
		return d
	}
	defer v.Release()
	d.Eval = d.Eval && filter.MatchRecord(v.Bytes)
	return d
}

// searchOffset is SEARCH_OFFSET_BY_TIMESTAMP.
func (h *Handlers) searchOffset(_ context.Context, c remoting.Call[protocol.SearchOffsetRequest]) (*remoting.Reply, error) {
	r := c.Header
	offset := h.deps.Log.OffsetByTime(r.Topic, r.QueueID, r.Timestamp, r.BoundaryType == "UPPER" || r.BoundaryType == "upper")
	return &remoting.Reply{Header: &protocol.SearchOffsetResponse{Offset: offset}}, nil
}

// maxOffset is GET_MAX_OFFSET. Only confirmed messages count, whatever `committed` asks for: a consumer that started behind
// an unconfirmed one could skip it.
func (h *Handlers) maxOffset(_ context.Context, c remoting.Call[protocol.GetMaxOffsetRequest]) (*remoting.Reply, error) {
	_, offset := h.deps.Queues.QueueBounds(c.Header.Topic, c.Header.QueueID)
	return &remoting.Reply{Header: &protocol.GetMaxOffsetResponse{Offset: offset}}, nil
}

// minOffset is GET_MIN_OFFSET.
func (h *Handlers) minOffset(_ context.Context, c remoting.Call[protocol.GetMinOffsetRequest]) (*remoting.Reply, error) {
	offset, _ := h.deps.Queues.QueueBounds(c.Header.Topic, c.Header.QueueID)
	return &remoting.Reply{Header: &protocol.GetMinOffsetResponse{Offset: offset}}, nil
}

// earliest is GET_EARLIEST_MSG_STORETIME.
func (h *Handlers) earliest(_ context.Context, c remoting.Call[protocol.GetEarliestMsgStoretimeRequest]) (*remoting.Reply, error) {
	minOffset, _ := h.deps.Queues.QueueBounds(c.Header.Topic, c.Header.QueueID)
	at := h.deps.Log.StoreTime(c.Header.Topic, c.Header.QueueID, minOffset)
	return &remoting.Reply{Header: &protocol.GetEarliestMsgStoretimeResponse{Timestamp: at}}, nil
}
