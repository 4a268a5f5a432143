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

type queueBody struct {
	Broker string `json:"brokerName"`
	ID     int32  `json:"queueId"`
	Topic  string `json:"topic"`
}

type wrapperBody struct {
	Broker   int64 `json:"brokerOffset"`
	Consumer int64 `json:"consumerOffset"`
	LastTime int64 `json:"lastTimestamp"`
	Pull     int64 `json:"pullOffset"`
}

type consumeStatsBody struct {
	TPS     float64                              `json:"consumeTps"`
	Offsets fastjson.Map[queueBody, wrapperBody] `json:"offsetTable"`
}

type brokerConsumeStatsBody struct {
	Addr     string                          `json:"brokerAddr"`
	Groups   []map[string][]consumeStatsBody `json:"consumeStatsList"`
	Diff     int64                           `json:"totalDiff"`
	Inflight int64                           `json:"totalInflightDiff"`
}

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
	b := consumeStatsBody{Offsets: fastjson.Map[queueBody, wrapperBody]{}}
	for _, name := range topics {
		h.add(&b, r.ConsumerGroup, name)
	}
	return jsonReply(b)
}

// add puts the figures of a group on one topic into b. A topic that is gone, or that an online group does not subscribe any
// more, is left out.
func (h *Handlers) add(b *consumeStatsBody, group, name string) {
	c := h.Topics.Get(name)
	if c == nil || !h.consumes(group, name) {
		return
	}
	for id := range c.ReadQueues {
		_, end := h.Store.QueueBounds(name, id)
		w := wrapperBody{Broker: max(end, 0), Consumer: max(h.Progress.Query(group, name, id), 0)}
		w.Pull = max(w.Consumer, h.Progress.Pulled(group, name, id))
		if w.Consumer > 0 {
			w.LastTime = max(h.Store.StoreTime(name, id, w.Consumer-1), 0)
		}
		b.Offsets[queueBody{h.Self.Broker, id, name}] = w
	}
	b.TPS += h.Meter.GetRate(group, name)
}

func (h *Handlers) consumes(group, name string) bool {
	return h.Clients.Subscription([]byte(group), []byte(name)) != nil || len(h.Clients.Subscriptions(group)) == 0
}

// brokerConsumeStats is GET_BROKER_CONSUME_STATS: every group of this broker.
func (h *Handlers) brokerConsumeStats(_ context.Context, call remoting.Call[protocol.GetConsumeStatsInBrokerRequest]) (*remoting.Reply, error) {
	all := brokerConsumeStatsBody{Addr: h.Self.Addr, Groups: []map[string][]consumeStatsBody{}}
	for _, g := range h.Groups.All() {
		topics := slices.Clone(h.Progress.Topics(g.Name))
		slices.Sort(topics)
		list := []consumeStatsBody{}
		for _, name := range topics {
			if c := h.Topics.Get(name); c == nil || call.Header.IsOrder && !ordered(c) {
				continue
			}
			b := consumeStatsBody{Offsets: fastjson.Map[queueBody, wrapperBody]{}}
			h.add(&b, g.Name, name)
			if len(b.Offsets) == 0 {
				continue
			}
			for _, w := range b.Offsets {
				all.Diff += w.Broker - w.Consumer
				all.Inflight += w.Pull - w.Consumer
			}
			list = append(list, b)
		}
		all.Groups = append(all.Groups, map[string][]consumeStatsBody{g.Name: list})
	}
	return jsonReply(all)
}

func ordered(c *topic.Config) bool { return c.Order }
