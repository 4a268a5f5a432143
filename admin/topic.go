package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/protocol"
)

// NewTopic has the defaults of updateTopic: 8 queues, read and write.
func NewTopic(name string) protocol.TopicConfig {
	return protocol.TopicConfig{
		TopicName: name, ReadQueueNums: 8, WriteQueueNums: 8, Perm: protocol.PermRead | protocol.PermWrite, TopicFilterType: "SINGLE_TAG",
	}
}

func sorted(l protocol.TopicList) []string {
	slices.Sort(l.TopicList)
	return slices.Compact(l.TopicList)
}

// Topics lists all topics a NameServer knows; TopicsOf those of one cluster.
func (c *Client) Topics(ctx context.Context) ([]string, error) {
	var l protocol.TopicList
	err := c.ask(ctx, &protocol.GetAllTopicListFromNameServerRequest{}, nil, &l)
	return sorted(l), err
}

// TopicsOf lists the topics of one cluster.
func (c *Client) TopicsOf(ctx context.Context, cluster string) ([]string, error) {
	var l protocol.TopicList
	err := c.ask(ctx, &protocol.GetTopicsByClusterRequest{Cluster: cluster}, nil, &l)
	return sorted(l), err
}

// SystemTopics lists the topics a broker made for itself.
func (c *Client) SystemTopics(ctx context.Context, addr string) ([]string, error) {
	var l protocol.TopicList
	err := c.call(ctx, addr, &protocol.GetSystemTopicListFromBrokerRequest{}, nil, nil, &l)
	return sorted(l), err
}

// PutTopic creates or changes a topic at one broker. attributes is `+key=value,-key`, "" changes none.
func (c *Client) PutTopic(ctx context.Context, addr string, t protocol.TopicConfig, attributes string) error {
	return c.call(ctx, addr, &protocol.CreateTopicRequest{
		Topic: t.TopicName, DefaultTopic: "TBW102", ReadQueueNums: t.ReadQueueNums, WriteQueueNums: t.WriteQueueNums, Perm: t.Perm,
		TopicFilterType: cmp.Or(t.TopicFilterType, "SINGLE_TAG"), TopicSysFlag: &t.TopicSysFlag, Order: t.Order, Attributes: attributes,
	}, nil, nil, nil)
}

// PutTopics creates or changes several topics at one broker in one request.
func (c *Client) PutTopics(ctx context.Context, addr string, topics []protocol.TopicConfig) error {
	body, err := fastjson.Marshal(protocol.CreateTopicListRequestBody{TopicConfigList: topics})
	if err != nil {
		return err
	}
	return c.call(ctx, addr, &protocol.CreateTopicListRequest{}, body, nil, nil)
}

// TopicConfig reads a topic's configuration at one broker.
func (c *Client) TopicConfig(ctx context.Context, addr, topic string) (protocol.TopicConfig, error) {
	var t protocol.TopicConfig
	err := c.call(ctx, addr, &protocol.GetTopicConfigRequest{Topic: topic}, nil, nil, &t)
	return t, err
}

// TopicConfigs reads the whole topic table of one broker, sorted by name.
func (c *Client) TopicConfigs(ctx context.Context, addr string) ([]protocol.TopicConfig, error) {
	var body protocol.TopicConfigSerializeWrapper
	if err := c.call(ctx, addr, &protocol.GetAllTopicConfigRequest{}, nil, nil, &body); err != nil {
		return nil, err
	}
	var topics []protocol.TopicConfig
	for _, t := range body.TopicConfigTable {
		topics = append(topics, t)
	}
	slices.SortFunc(topics, func(a, b protocol.TopicConfig) int { return compareNames(a.TopicName, b.TopicName) })
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
func (c *Client) BrokerTopicStats(ctx context.Context, addr, topic string) (protocol.TopicStatsTable, error) {
	var body protocol.TopicStatsTable
	err := c.call(ctx, addr, &protocol.GetTopicStatsInfoRequest{Topic: topic}, nil, nil, &body)
	return body, err
}

// TopicStats reads the bounds of a topic's queues at all brokers that have it.
func (c *Client) TopicStats(ctx context.Context, topic string) (protocol.TopicStatsTable, error) {
	all := protocol.TopicStatsTable{OffsetTable: fastjson.Map[protocol.MessageQueue, protocol.TopicOffset]{}}
	r, err := c.Route(ctx, topic)
	if err != nil {
		return all, err
	}
	for _, b := range r.BrokerDatas {
		addr := Master(b)
		if addr == "" {
			continue
		}
		one, err := c.BrokerTopicStats(ctx, addr, topic)
		if err != nil {
			return all, err
		}
		maps.Copy(all.OffsetTable, one.OffsetTable)
		all.TopicPutTps += one.TopicPutTps
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
	for _, b := range r.BrokerDatas {
		if Master(b) == "" {
			continue
		}
		var body protocol.GroupList
		if err := c.call(ctx, Master(b), &protocol.QueryTopicConsumeByWhoRequest{Topic: topic}, nil, nil, &body); err != nil {
			return nil, err
		}
		groups = append(groups, body.GroupList...)
	}
	slices.Sort(groups)
	return slices.Compact(groups), nil
}

// Producers lists the connections of a producer group at the brokers of a topic.
func (c *Client) Producers(ctx context.Context, group, topic string) ([]protocol.Connection, error) {
	r, err := c.Route(ctx, topic)
	if err != nil {
		return nil, err
	}
	var all []protocol.Connection
	var errs []error
	for _, b := range r.BrokerDatas {
		if Master(b) == "" {
			continue
		}
		var body protocol.ProducerConnection
		if err := c.call(ctx, Master(b), &protocol.GetProducerConnectionListRequest{ProducerGroup: group}, nil, nil, &body); err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, body.ConnectionSet...)
	}
	if len(all) == 0 && errs != nil {
		return nil, fmt.Errorf("producers of %s: %w", group, errors.Join(errs...))
	}
	slices.SortFunc(all, func(a, b protocol.Connection) int { return compareNames(a.ClientID, b.ClientID) })
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
