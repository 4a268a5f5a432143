package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/protocol"
)

// Topic is a topic's configuration (RocketMQ TopicConfig).
type Topic struct {
	Name       string            `json:"topicName"`
	Read       int32             `json:"readQueueNums"`
	Write      int32             `json:"writeQueueNums"`
	Perm       int32             `json:"perm"`
	FilterType string            `json:"topicFilterType"`
	SysFlag    int32             `json:"topicSysFlag"`
	Order      bool              `json:"order"`
	Attributes map[string]string `json:"attributes"`
}

// Permissions of a topic or broker (RocketMQ PermName).
const (
	PermWrite = 2
	PermRead  = 4
)

// NewTopic has the defaults of updateTopic: 8 queues, read and write.
func NewTopic(name string) Topic {
	return Topic{Name: name, Read: 8, Write: 8, Perm: PermRead | PermWrite, FilterType: "SINGLE_TAG"}
}

// TopicStats are the bounds of a topic's queues at one broker (RocketMQ TopicStatsTable).
type TopicStats struct {
	Queues map[Queue]QueueStats
	PutTPS float64
}

// QueueStats are the bounds of one queue.
type QueueStats struct {
	MinOffset  int64 `json:"minOffset"`
	MaxOffset  int64 `json:"maxOffset"`
	LastUpdate int64 `json:"lastUpdateTimestamp"` // ms, 0 is never
}

type topicList struct {
	Topics     []string `json:"topicList"`
	BrokerAddr string   `json:"brokerAddr"`
}

func (l topicList) sorted() []string {
	slices.Sort(l.Topics)
	return slices.Compact(l.Topics)
}

// Topics lists all topics a NameServer knows; TopicsOf those of one cluster.
func (c *Client) Topics(ctx context.Context) ([]string, error) {
	var l topicList
	err := c.ask(ctx, &protocol.GetAllTopicListFromNameServerRequest{}, nil, &l)
	return l.sorted(), err
}

// TopicsOf lists the topics of one cluster.
func (c *Client) TopicsOf(ctx context.Context, cluster string) ([]string, error) {
	var l topicList
	err := c.ask(ctx, &protocol.GetTopicsByClusterRequest{Cluster: cluster}, nil, &l)
	return l.sorted(), err
}

// SystemTopics lists the topics a broker made for itself.
func (c *Client) SystemTopics(ctx context.Context, addr string) ([]string, error) {
	var l topicList
	err := c.call(ctx, addr, &protocol.GetSystemTopicListFromBrokerRequest{}, nil, nil, &l)
	return l.sorted(), err
}

// PutTopic creates or changes a topic at one broker. attributes is `+key=value,-key`, "" changes none.
func (c *Client) PutTopic(ctx context.Context, addr string, t Topic, attributes string) error {
	return c.call(ctx, addr, &protocol.CreateTopicRequest{
		Topic: t.Name, DefaultTopic: "TBW102", ReadQueueNums: t.Read, WriteQueueNums: t.Write, Perm: t.Perm,
		TopicFilterType: cmp.Or(t.FilterType, "SINGLE_TAG"), TopicSysFlag: &t.SysFlag, Order: t.Order, Attributes: attributes,
	}, nil, nil, nil)
}

// PutTopics creates or changes several topics at one broker in one request.
func (c *Client) PutTopics(ctx context.Context, addr string, topics []Topic) error {
	body, err := fastjson.Marshal(struct {
		Topics []Topic `json:"topicConfigList"`
	}{topics})
	if err != nil {
		return err
	}
	return c.call(ctx, addr, &protocol.CreateTopicListRequest{}, body, nil, nil)
}

// TopicConfig reads a topic's configuration at one broker.
func (c *Client) TopicConfig(ctx context.Context, addr, topic string) (Topic, error) {
	var t Topic
	err := c.call(ctx, addr, &protocol.GetTopicConfigRequest{Topic: topic}, nil, nil, &t)
	return t, err
}

// TopicConfigs reads the whole topic table of one broker, sorted by name.
func (c *Client) TopicConfigs(ctx context.Context, addr string) ([]Topic, error) {
	var body struct {
		Table map[string]Topic `json:"topicConfigTable"`
	}
	if err := c.call(ctx, addr, &protocol.GetAllTopicConfigRequest{}, nil, nil, &body); err != nil {
		return nil, err
	}
	var topics []Topic
	for _, t := range body.Table {
		topics = append(topics, t)
	}
	slices.SortFunc(topics, func(a, b Topic) int { return compareNames(a.Name, b.Name) })
	return topics, nil
}

// DeleteTopic removes a topic from the brokers of a cluster and from every NameServer.
func (c *Client) DeleteTopic(ctx context.Context, cluster, topic string) error {
	addrs, err := c.Masters(ctx, cluster)
	if err != nil {
		return err
	}
	var errs []error
	for _, addr := range addrs {
		errs = append(errs, c.call(ctx, addr, &protocol.DeleteTopicRequest{Topic: topic}, nil, nil, nil))
	}
	errs = append(errs, c.tell(ctx, &protocol.DeleteTopicFromNamesrvRequest{Topic: topic, ClusterName: cluster}, nil))
	return errors.Join(errs...)
}

// BrokerTopicStats reads the bounds of a topic's queues at one broker.
func (c *Client) BrokerTopicStats(ctx context.Context, addr, topic string) (TopicStats, error) {
	var body struct {
		Table  fastjson.Map[Queue, QueueStats] `json:"offsetTable"`
		PutTPS float64                         `json:"topicPutTps"`
	}
	err := c.call(ctx, addr, &protocol.GetTopicStatsInfoRequest{Topic: topic}, nil, nil, &body)
	return TopicStats{Queues: body.Table, PutTPS: body.PutTPS}, err
}

// TopicStats reads the bounds of a topic's queues at all brokers that have it.
func (c *Client) TopicStats(ctx context.Context, topic string) (TopicStats, error) {
	all := TopicStats{Queues: map[Queue]QueueStats{}}
	r, err := c.Route(ctx, topic)
	if err != nil {
		return all, err
	}
	for _, b := range r.Brokers {
		addr := b.Master()
		if addr == "" {
			continue
		}
		one, err := c.BrokerTopicStats(ctx, addr, topic)
		if err != nil {
			return all, err
		}
		for q, s := range one.Queues {
			all.Queues[q] = s
		}
		all.PutTPS += one.PutTPS
	}
	return all, nil
}

// Consumers lists the groups that consume or consumed a topic, at all brokers that have it.
func (c *Client) Consumers(ctx context.Context, topic string) ([]string, error) {
	r, err := c.Route(ctx, topic)
	if err != nil {
		return nil, err
	}
	var groups []string
	for _, b := range r.Brokers {
		if b.Master() == "" {
			continue
		}
		var body struct {
			Groups []string `json:"groupList"`
		}
		if err := c.call(ctx, b.Master(), &protocol.QueryTopicConsumeByWhoRequest{Topic: topic}, nil, nil, &body); err != nil {
			return nil, err
		}
		groups = append(groups, body.Groups...)
	}
	slices.Sort(groups)
	return slices.Compact(groups), nil
}

// Producers lists the connections of a producer group at the brokers of a topic.
func (c *Client) Producers(ctx context.Context, group, topic string) ([]Connection, error) {
	r, err := c.Route(ctx, topic)
	if err != nil {
		return nil, err
	}
	var all []Connection
	var errs []error
	for _, b := range r.Brokers {
		if b.Master() == "" {
			continue
		}
		var body struct {
			Connections []Connection `json:"connectionSet"`
		}
		if err := c.call(ctx, b.Master(), &protocol.GetProducerConnectionListRequest{ProducerGroup: group}, nil, nil, &body); err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, body.Connections...)
	}
	if len(all) == 0 && errs != nil {
		return nil, fmt.Errorf("producers of %s: %w", group, errors.Join(errs...))
	}
	slices.SortFunc(all, func(a, b Connection) int { return compareNames(a.ClientID, b.ClientID) })
	return all, nil
}

// IsSystemTopic tells topics of the broker from those of users (RocketMQ TopicValidator).
func IsSystemTopic(topic string) bool {
	switch topic {
	case "TBW102", "SCHEDULE_TOPIC_XXXX", "BenchmarkTest", "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRACE_TOPIC",
		"RMQ_SYS_TRANS_OP_HALF_TOPIC", "TRANS_CHECK_MAX_TIME_TOPIC", "SELF_TEST_TOPIC", "OFFSET_MOVED_EVENT", "CHECKPOINT_TOPIC":
		return true
	}
	return strings.HasPrefix(topic, "rmq_sys_")
}

func compareNames(a, b string) int { return cmp.Compare(a, b) }
