package ops

import (
	"context"
	"slices"
	"strings"

	"github.com/quorate/quorate/broker/topic"
	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
)

func splitKey(key string) (topicName, group string, ok bool) { return strings.Cut(key, "@") }

// consumeStats is GET_CONSUME_STATS: how far a group is on the topics named, or on all it ever consumed.
func (h *Handlers) consumeStats(_ context.Context, call remoting.Call[protocol.GetConsumeStatsRequest]) (*remoting.Reply, error) {
	r := call.Header
	var topics []string
	switch {
	case r.Topic != "":
		topics = []string{r.Topic}
	case r.TopicList != "":
		topics = strings.FieldsFunc(r.TopicList, func(c rune) bool { return c == ';' })
	default:
		topics = h.Progress.Topics(r.ConsumerGroup)
	}
	b := protocol.ConsumeStats{OffsetTable: fastjson.Map[protocol.MessageQueue, protocol.OffsetWrapper]{}}
	for _, name := range topics {
		h.add(&b, r.ConsumerGroup, name)
	}
	return jsonReply(b)
}

// add puts the figures of a group on one topic into b. A topic that is gone, or that an online group does not subscribe any
// more, is left out.
func (h *Handlers) add(b *protocol.ConsumeStats, group, name string) {
	c := h.Topics.Get(name)
	if c == nil || !h.consumes(group, name) {
		return
	}
	for id := range c.ReadQueues {
		_, end := h.Store.QueueBounds(name, id)
		w := protocol.OffsetWrapper{BrokerOffset: max(end, 0), ConsumerOffset: max(h.Progress.Query(group, name, id), 0)}
		w.PullOffset = max(w.ConsumerOffset, h.Progress.Pulled(group, name, id))
		if w.ConsumerOffset > 0 {
			w.LastTimestamp = max(h.Store.StoreTime(name, id, w.ConsumerOffset-1), 0)
		}
		b.OffsetTable[protocol.MessageQueue{Topic: name, BrokerName: h.Self.Broker, QueueID: id}] = w
	}
	b.ConsumeTps += h.Meter.GetRate(group, name)
}

func (h *Handlers) consumes(group, name string) bool {
	return h.Clients.Subscription([]byte(group), []byte(name)) != nil || len(h.Clients.Subscriptions(group)) == 0
}

// brokerConsumeStats is GET_BROKER_CONSUME_STATS: every group of this broker.
func (h *Handlers) brokerConsumeStats(_ context.Context, call remoting.Call[protocol.GetConsumeStatsInBrokerRequest]) (*remoting.Reply, error) {
	all := protocol.ConsumeStatsList{BrokerAddr: h.Self.Addr, ConsumeStatsList: []map[string][]protocol.ConsumeStats{}}
	for _, g := range h.Groups.All() {
		topics := slices.Clone(h.Progress.Topics(g.Name))
		slices.Sort(topics)
		list := []protocol.ConsumeStats{}
		for _, name := range topics {
			if c := h.Topics.Get(name); c == nil || call.Header.IsOrder && !ordered(c) {
				continue
			}
			b := protocol.ConsumeStats{OffsetTable: fastjson.Map[protocol.MessageQueue, protocol.OffsetWrapper]{}}
			h.add(&b, g.Name, name)
			if len(b.OffsetTable) == 0 {
				continue
			}
			for _, w := range b.OffsetTable {
				all.TotalDiff += w.BrokerOffset - w.ConsumerOffset
				all.TotalInflightDiff += w.PullOffset - w.ConsumerOffset
			}
			list = append(list, b)
		}
		all.ConsumeStatsList = append(all.ConsumeStatsList, map[string][]protocol.ConsumeStats{g.Name: list})
	}
	return jsonReply(all)
}

func ordered(c *topic.Config) bool { return c.Order }
