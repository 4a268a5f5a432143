package offset

import (
	"context"
	"log/slog"

	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
)

// Queues answers about consume queues (store.Store).
type Queues interface {
	QueueBounds(topic string, queueID int32) (minOffset, maxOffset int64)
	InMemory(topic string, queueID int32, offset int64) bool
	OffsetByTime(topic string, queueID int32, timestamp int64, upper bool) int64
	StoreTime(topic string, queueID int32, offset int64) int64
}

// Names knows topics and groups.
type Names interface {
	// Queues returns a topic's number of read queues, and whether the topic exists.
	Queues(topic string) (n int32, ok bool)
	// Group reports whether a group exists, creating it when the broker may.
	Group(group string) bool
}

// Handlers serves the requests about consumer progress.
type Handlers struct {
	Table  *Table
	Queues Queues
	Names  Names
	// Online lists the members of an online group, for what is told to consumers.
	Online func(group string) []Consumer
	// ServerSideReset is useServerSideResetOffset, which may change while the broker runs.
	ServerSideReset func() bool
	BrokerName      string
	// MovedBackMax is how far a commit may move a group back without a warning.
	MovedBackMax int64
	Logger       *slog.Logger
}

// Consumer is one online member of a consumer group.
type Consumer struct {
	ClientID string
	Language protocol.Language
	Oneway   func(*protocol.Command) error
}

// Routes lists every request code this package answers.
func (h *Handlers) Routes() []remoting.Route {
	return []remoting.Route{
		remoting.Handle(remoting.Query, h.query),
		remoting.Handle(remoting.Query, h.update),
		remoting.Handle(remoting.Admin, h.all),
		remoting.Handle(remoting.Admin, h.clone),
		remoting.Handle(remoting.Admin, h.reset),
		remoting.Handle(remoting.Admin, h.correct),
		remoting.Handle(remoting.Admin, h.timeSpan),
	}
}

// query is QUERY_CONSUMER_OFFSET. A group without progress on a young topic, whose first message is still in memory,
// starts at 0; otherwise the client's own consumeFromWhere decides, which QUERY_NOT_FOUND asks it to apply.
func (h *Handlers) query(_ context.Context, c remoting.Call[protocol.QueryConsumerOffsetRequest]) (*remoting.Reply, error) {
	r := c.Header
	if offset := h.Table.Query(r.ConsumerGroup, r.Topic, r.QueueID); offset >= 0 {
		return &remoting.Reply{Header: &protocol.QueryConsumerOffsetResponse{Offset: offset}}, nil
	}
	minOffset, _ := h.Queues.QueueBounds(r.Topic, r.QueueID)
	zeroAllowed := r.SetZeroIfNotFound == nil || *r.SetZeroIfNotFound
	if zeroAllowed && minOffset <= 0 && h.Queues.InMemory(r.Topic, r.QueueID, 0) {
		return &remoting.Reply{Header: &protocol.QueryConsumerOffsetResponse{}}, nil
	}
	return nil, protocol.Errorf(protocol.QueryNotFound,
		"group %q has no offset of topic %q queue %d: the client's consumeFromWhere decides", r.ConsumerGroup, r.Topic, r.QueueID)
}

// update is UPDATE_CONSUMER_OFFSET.
func (h *Handlers) update(_ context.Context, c remoting.Call[protocol.UpdateConsumerOffsetRequest]) (*remoting.Reply, error) {
	r := c.Header
	if !h.Names.Group(r.ConsumerGroup) {
		return nil, protocol.Errorf(protocol.SubscriptionGroupNotExist, "subscription group %q does not exist", r.ConsumerGroup)
	}
	if _, ok := h.Names.Queues(r.Topic); !ok {
		return nil, protocol.Errorf(protocol.TopicNotExist, "topic %q does not exist", r.Topic)
	}
	if r.QueueID < 0 || r.QueueID >= queueIDMax {
		return nil, protocol.Errorf(protocol.InvalidParameter, "queueId %d is not in 0…%d", r.QueueID, queueIDMax-1)
	}
	if r.CommitOffset < 0 {
		return nil, protocol.Errorf(protocol.InvalidParameter, "commitOffset %d is negative", r.CommitOffset)
	}
	if h.Table.PendingReset(r.ConsumerGroup, r.Topic, r.QueueID) {
		return &remoting.Reply{Remark: "Offset has been previously reset"}, nil
	}
	if back := h.Table.Commit(r.ConsumerGroup, r.Topic, r.QueueID, r.CommitOffset); back > h.MovedBackMax {
		h.Logger.Warn("consumer group committed a far lower offset than before", "consumer_group", r.ConsumerGroup,
			"topic", r.Topic, "queue_id", r.QueueID, "moved_back", back, "offset", r.CommitOffset)
	}
	return &remoting.Reply{}, nil
}

// all is GET_ALL_CONSUMER_OFFSET.
func (h *Handlers) all(context.Context, remoting.Call[protocol.GetAllConsumerOffsetRequest]) (*remoting.Reply, error) {
	return jsonReply(h.Table.Content())
}

// clone is CLONE_GROUP_OFFSET: the destination takes the source's offsets of one topic, or of all its topics.
func (h *Handlers) clone(_ context.Context, c remoting.Call[protocol.CloneGroupOffsetRequest]) (*remoting.Reply, error) {
	topics := []string{c.Header.Topic}
	if c.Header.Topic == "" {
		topics = h.Table.Topics(c.Header.SrcGroup)
	}
	for _, topic := range topics {
		if _, ok := h.Names.Queues(topic); !ok {
			h.Logger.Warn("offsets of a topic that does not exist are not cloned", "topic", topic)
			continue
		}
		if !c.Header.Offline && len(h.Online(c.Header.DestGroup)) > 0 {
			return nil, protocol.Errorf(protocol.SystemError, "group %q is online: its members would overwrite the offsets", c.Header.DestGroup)
		}
		for id, offset := range h.Table.Offsets(c.Header.SrcGroup, topic) {
			h.Table.Commit(c.Header.DestGroup, topic, id, offset)
		}
	}
	return &remoting.Reply{}, nil
}

func jsonReply(v any) (*remoting.Reply, error) {
	body, err := fastjson.Marshal(v)
	if err != nil {
		return nil, err
	}
	return &remoting.Reply{Body: body}, nil
}
