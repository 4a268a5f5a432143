package topic

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
)

// Queues knows what the store holds of a topic (store.Store).
type Queues interface {
	QueueBounds(topic string, queueID int32) (minOffset, maxOffset int64)
	StoreTime(topic string, queueID int32, offset int64) int64
	DeleteTopic(topic string) error
	CleanUnusedTopics(keep map[string]bool) (int, error)
}

// Progress forgets the consumer offsets of a topic (offset.Table).
type Progress interface {
	RemoveTopic(topic string)
}

// Announcer waits, no longer than is good for an operator, until the NameServers know a change of the table
// (register.Registrar).
type Announcer interface {
	Await(ctx context.Context, change int64)
}

// Meter knows the rate of a topic and forgets a deleted one (meter.Table).
type Meter interface {
	PutRate(topic string) float64
	ForgetTopic(topic string)
}

// Handlers serve the requests about topics.
type Handlers struct {
	Table      *Table
	Queues     Queues
	Progress   Progress
	Announcer  Announcer
	Meter      Meter
	BrokerName string
}

// Routes of the requests about topics.
func (h *Handlers) Routes() []remoting.Route {
	return []remoting.Route{
		remoting.Handle(remoting.Admin, h.update),
		remoting.Handle(remoting.Admin, h.updateList),
		remoting.Handle(remoting.Admin, h.remove),
		remoting.Handle(remoting.Admin, h.all),
		remoting.Handle(remoting.Query, h.one),
		remoting.Handle(remoting.Admin, h.stats),
		remoting.Handle(remoting.Admin, h.system),
		remoting.Handle(remoting.Admin, h.cleanUnused),
	}
}

func (h *Handlers) update(ctx context.Context, call remoting.Call[protocol.CreateTopicRequest]) (*remoting.Reply, error) {
	r := call.Header
	c := Config{
		Name: r.Topic, ReadQueues: r.ReadQueueNums, WriteQueues: r.WriteQueueNums, Perm: r.Perm, FilterType: r.TopicFilterType, Order: r.Order,
	}
	if r.TopicSysFlag != nil {
		c.SysFlag = *r.TopicSysFlag
	}
	changes, err := parseAttributes(r.Attributes)
	if err != nil {
		return nil, protocol.Errorf(protocol.InvalidParameter, "%v", err)
	}
	if err := h.Table.wish(c, changes); err != nil {
		return nil, err
	}
	h.Announcer.Await(ctx, h.Table.Snapshot().Change)
	return &remoting.Reply{}, nil
}

// wish makes a topic what an operator asks for, within the rules. The error is the answer.
func (t *Table) wish(c Config, changes map[string]string) error {
	if err := t.check(&c); err != nil {
		return protocol.Errorf(protocol.InvalidParameter, "%v", err)
	}
	if !t.live.Load().MixedType && changes["+"+attrMessageType] == "MIXED" {
		return protocol.Errorf(protocol.InvalidParameter, "MIXED message type is not supported")
	}
	return t.alter(c.Name, func(have *Config) (*Config, error) {
		var current map[string]string
		if have != nil {
			current = have.Attributes
		}
		attributes, err := alterAttributes(have == nil, current, changes)
		if err != nil {
			return nil, protocol.Errorf(protocol.InvalidParameter, "%v", err)
		}
		c.Attributes = attributes
		return &c, nil
	})
}

// check holds a topic that an operator asks for against the rules of names and numbers.
func (t *Table) check(c *Config) error {
	if err := CheckName(c.Name); err != nil {
		return err
	}
	if t.live.Load().GuardSystem && t.System(c.Name) {
		return fmt.Errorf("the topic[%s] is conflict with system topic", c.Name)
	}
	if c.FilterType != "" && c.FilterType != SingleTag && c.FilterType != MultiTag {
		return fmt.Errorf("topicFilterType must be %s or %s, not %q", SingleTag, MultiTag, c.FilterType)
	}
	if c.ReadQueues < 0 || c.WriteQueues < 0 || c.ReadQueues > QueuesMax || c.WriteQueues > QueuesMax {
		return fmt.Errorf("queue numbers must be from 0 to %d", QueuesMax)
	}
	if c.Perm < 0 || c.Perm > 7 {
		return fmt.Errorf("perm must be from 0 to 7, not %d", c.Perm)
	}
	return nil
}

type listBody struct {
	Topics []Config `json:"topicConfigList"`
}

// updateList is UPDATE_AND_CREATE_TOPIC_LIST: all or none. Attributes in the list are signed, as in a single request.
func (h *Handlers) updateList(ctx context.Context, call remoting.Call[protocol.CreateTopicListRequest]) (*remoting.Reply, error) {
	var b listBody
	if err := fastjson.Unmarshal(call.Body, &b); err != nil {
		return nil, protocol.Errorf(protocol.InvalidParameter, "topic list: %v", err)
	}
	for i := range b.Topics {
		c := &b.Topics[i]
		if err := h.Table.check(c); err != nil {
			return nil, protocol.Errorf(protocol.InvalidParameter, "%v", err)
		}
		have := h.Table.Get(c.Name)
		var current map[string]string
		if have != nil {
			current = have.Attributes
		}
		attributes, err := alterAttributes(have == nil, current, signed(c.Attributes))
		if err != nil {
			return nil, protocol.Errorf(protocol.InvalidParameter, "%v", err)
		}
		c.Attributes = attributes
	}
	if err := h.Table.PutAll(b.Topics); err != nil {
		return nil, err
	}
	h.Announcer.Await(ctx, h.Table.Snapshot().Change)
	return &remoting.Reply{}, nil
}

// signed gives attributes that a tool copied from a table the sign of an addition.
func signed(attributes map[string]string) map[string]string {
	out := make(map[string]string, len(attributes))
	for k, v := range attributes {
		if !strings.HasPrefix(k, "+") && !strings.HasPrefix(k, "-") {
			k = "+" + k
		}
		if len(k) > 1 {
			out[k] = v
		}
	}
	return out
}

// remove is DELETE_TOPIC_IN_BROKER: the topic first, so that nobody writes to it any more, then what belongs to it.
func (h *Handlers) remove(ctx context.Context, call remoting.Call[protocol.DeleteTopicRequest]) (*remoting.Reply, error) {
	name := strings.TrimSpace(call.Header.Topic)
	if name == "" {
		return nil, protocol.Errorf(protocol.InvalidParameter, "the specified topic is blank")
	}
	if h.Table.live.Load().GuardSystem && h.Table.System(name) {
		return nil, protocol.Errorf(protocol.InvalidParameter, "the topic[%s] is conflict with system topic", name)
	}
	if err := CheckName(name); err != nil && h.Table.Get(name) == nil {
		return nil, protocol.Errorf(protocol.InvalidParameter, "%v", err)
	}
	if err := h.Table.Delete(name); err != nil {
		return nil, err
	}
	if err := h.Queues.DeleteTopic(name); err != nil {
		return nil, err
	}
	h.Progress.RemoveTopic(name)
	h.Meter.ForgetTopic(name)
	h.Announcer.Await(ctx, h.Table.Snapshot().Change)
	return &remoting.Reply{}, nil
}

type tableBody struct {
	DataVersion    protocol.DataVersion `json:"dataVersion"`
	MappingVersion protocol.DataVersion `json:"mappingDataVersion"`
	Topics         map[string]*Config   `json:"topicConfigTable"`
	MappingDetails map[string]string    `json:"topicQueueMappingDetailMap"` // static topics, which are not served
	MappingInfos   map[string]string    `json:"topicQueueMappingInfoMap"`
}

// all is GET_ALL_TOPIC_CONFIG, in pages by name when the caller asks for them.
func (h *Handlers) all(_ context.Context, call remoting.Call[protocol.GetAllTopicConfigRequest]) (*remoting.Reply, error) {
	s := h.Table.Snapshot()
	topics := s.Topics
	if r := call.Header; r.TopicSeq != nil && h.Table.live.Load().SplitMetadata {
		var caller protocol.DataVersion
		from := int(*r.TopicSeq)
		if r.DataVersion != "" {
			if err := fastjson.Unmarshal([]byte(r.DataVersion), &caller); err != nil {
				return nil, protocol.Errorf(protocol.InvalidParameter, "dataVersion: %v", err)
			}
			if caller != s.Version {
				from = 0
			}
		}
		limit := h.Table.live.Load().SplitSize
		if r.MaxTopicNum != nil && *r.MaxTopicNum > 0 {
			limit = min(limit, int(*r.MaxTopicNum))
		}
		topics = page(topics, from, limit)
	}
	total := int32(len(s.Topics))
	return reply(tableBody{
		DataVersion: s.Version, Topics: topics, MappingDetails: map[string]string{}, MappingInfos: map[string]string{},
	}, &protocol.GetAllTopicConfigResponse{TotalTopicNum: &total})
}

// page picks at most limit topics by name, from the from-th on.
func page(topics map[string]*Config, from, limit int) map[string]*Config {
	names := slices.Sorted(maps.Keys(topics))
	from = min(max(from, 0), len(names))
	out := map[string]*Config{}
	for _, name := range names[from:min(from+limit, len(names))] {
		out[name] = topics[name]
	}
	return out
}

func (h *Handlers) one(_ context.Context, call remoting.Call[protocol.GetTopicConfigRequest]) (*remoting.Reply, error) {
	c := h.Table.Get(call.Header.Topic)
	if c == nil {
		return nil, protocol.Errorf(protocol.TopicNotExist, "no topic in this broker. topic: %s", call.Header.Topic)
	}
	return reply(c, nil)
}

func (h *Handlers) stats(_ context.Context, call remoting.Call[protocol.GetTopicStatsInfoRequest]) (*remoting.Reply, error) {
	name := call.Header.Topic
	c := h.Table.Get(name)
	if c == nil {
		return nil, protocol.Errorf(protocol.TopicNotExist, "topic[%s] not exist", name)
	}
	b := protocol.TopicStatsTable{OffsetTable: fastjson.Map[protocol.MessageQueue, protocol.TopicOffset]{}, TopicPutTps: h.Meter.PutRate(name)}
	for q := range max(c.ReadQueues, c.WriteQueues) {
		low, high := h.Queues.QueueBounds(name, q)
		bounds := protocol.TopicOffset{MaxOffset: max(high, 0), MinOffset: max(low, 0)}
		if high > 0 {
			bounds.LastUpdateTimestamp = max(h.Queues.StoreTime(name, q, high-1), 0)
		}
		b.OffsetTable[protocol.MessageQueue{Topic: name, BrokerName: h.BrokerName, QueueID: q}] = bounds
	}
	return reply(b, nil)
}

func (h *Handlers) system(context.Context, remoting.Call[protocol.GetSystemTopicListFromBrokerRequest]) (*remoting.Reply, error) {
	names := h.Table.SystemNames()
	slices.Sort(names)
	return reply(protocol.TopicList{TopicList: names}, nil)
}

// cleanUnused is CLEAN_UNUSED_TOPIC: queues of topics that the table does not have go.
func (h *Handlers) cleanUnused(context.Context, remoting.Call[protocol.CleanUnusedTopicRequest]) (*remoting.Reply, error) {
	keep := map[string]bool{}
	for name := range h.Table.Snapshot().Topics {
		keep[name] = true
	}
	for _, name := range h.Table.SystemNames() {
		keep[name] = true
	}
	if _, err := h.Queues.CleanUnusedTopics(keep); err != nil {
		return nil, err
	}
	return &remoting.Reply{}, nil
}

func reply(body, header any) (*remoting.Reply, error) {
	text, err := fastjson.Marshal(body)
	if err != nil {
		return nil, err
	}
	return &remoting.Reply{Header: header, Body: text}, nil
}
