package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/protocol"
)

// RetryPrefix and DeadLetterPrefix make the names of a group's own topics.
const (
	RetryPrefix      = "%RETRY%"
	DeadLetterPrefix = "%DLQ%"
)

// NewGroup has RocketMQ's defaults (SubscriptionGroupConfig).
func NewGroup(name string) protocol.SubscriptionGroupConfig {
	return protocol.SubscriptionGroupConfig{
		GroupName: name, ConsumeEnable: true, ConsumeFromMinEnable: true, ConsumeBroadcastEnable: true, RetryQueueNums: 1,
		RetryMaxTimes: 16, GroupRetryPolicy: fastjson.Raw(`{"type":"CUSTOMIZED"}`), WhichBrokerWhenConsumeSlowly: 1,
		NotifyConsumerIDsChangedEnable: true, ConsumeTimeoutMinute: 15, Attributes: map[string]string{},
	}
}

// PutGroup creates or changes a group at one broker.
func (c *Client) PutGroup(ctx context.Context, addr string, g protocol.SubscriptionGroupConfig) error {
	body, err := fastjson.Marshal(g)
	if err != nil {
		return err
	}
	return c.call(ctx, addr, &protocol.UpdateAndCreateSubscriptionGroupRequest{}, body, nil, nil)
}

// DeleteGroup removes a group at one broker, and its progress when asked to.
func (c *Client) DeleteGroup(ctx context.Context, addr, group string, progressToo bool) error {
	return c.call(ctx, addr, &protocol.DeleteSubscriptionGroupRequest{GroupName: group, CleanOffset: progressToo}, nil, nil, nil)
}

// GroupConfig reads a group's configuration at one broker.
func (c *Client) GroupConfig(ctx context.Context, addr, group string) (protocol.SubscriptionGroupConfig, error) {
	var g protocol.SubscriptionGroupConfig
	err := c.call(ctx, addr, &protocol.GetSubscriptionGroupConfigRequest{Group: group}, nil, nil, &g)
	return g, err
}

// GroupConfigs reads the group table of one broker, sorted by name.
func (c *Client) GroupConfigs(ctx context.Context, addr string) ([]protocol.SubscriptionGroupConfig, error) {
	var body protocol.SubscriptionGroupWrapper
	if err := c.call(ctx, addr, &protocol.GetAllSubscriptionGroupRequest{}, nil, nil, &body); err != nil {
		return nil, err
	}
	return slices.SortedFunc(maps.Values(body.SubscriptionGroupTable), func(a, b protocol.SubscriptionGroupConfig) int { return compareNames(a.GroupName, b.GroupName) }), nil
}

// ConsumerConnections reads a group's members; addr "" asks a broker that has the group's retry topic.
func (c *Client) ConsumerConnections(ctx context.Context, addr, group string) (protocol.ConsumerConnection, error) {
	var all protocol.ConsumerConnection
	addrs, err := c.brokersOf(ctx, addr, group)
	if err != nil {
		return all, err
	}
	var errs []error
	for _, addr := range addrs {
		err := c.call(ctx, addr, &protocol.GetConsumerConnectionListRequest{ConsumerGroup: group}, nil, nil, &all)
		if err == nil {
			slices.SortFunc(all.ConnectionSet, func(a, b protocol.Connection) int { return compareNames(a.ClientID, b.ClientID) })
			return all, nil
		}
		errs = append(errs, err)
	}
	return all, fmt.Errorf("group %s: %w", group, errors.Join(errs...))
}

// brokersOf lists the masters that hold a group, or addr alone.
func (c *Client) brokersOf(ctx context.Context, addr, group string) ([]string, error) {
	if addr != "" {
		return []string{addr}, nil
	}
	r, err := c.Route(ctx, RetryPrefix+group)
	if err != nil {
		return nil, fmt.Errorf("group %s is not known to any broker (its retry topic has no route): %w", group, err)
	}
	var addrs []string
	for _, b := range r.BrokerDatas {
		if Master(b) != "" {
			addrs = append(addrs, Master(b))
		}
	}
	return addrs, nil
}

// ConsumeStats reads a group's progress at all brokers that hold it; topic "" is every topic.
func (c *Client) ConsumeStats(ctx context.Context, group, topic string) (protocol.ConsumeStats, error) {
	all := protocol.ConsumeStats{OffsetTable: fastjson.Map[protocol.MessageQueue, protocol.OffsetWrapper]{}}
	addrs, err := c.brokersOf(ctx, "", group)
	if err != nil {
		return all, err
	}
	for _, addr := range addrs {
		one, err := c.BrokerConsumeStats(ctx, addr, group, topic)
		if err != nil {
			return all, err
		}
		maps.Copy(all.OffsetTable, one.OffsetTable)
		all.ConsumeTps += one.ConsumeTps
	}
	return all, nil
}

// BrokerConsumeStats reads a group's progress at one broker.
func (c *Client) BrokerConsumeStats(ctx context.Context, addr, group, topic string) (protocol.ConsumeStats, error) {
	var body protocol.ConsumeStats
	err := c.call(ctx, addr, &protocol.GetConsumeStatsRequest{ConsumerGroup: group, Topic: topic}, nil, nil, &body)
	return body, err
}

// BrokerProgress reads the progress of every group at one broker; order keeps to groups that consume in order.
func (c *Client) BrokerProgress(ctx context.Context, addr string, order bool) (protocol.ConsumeStatsList, error) {
	var list protocol.ConsumeStatsList
	err := c.call(ctx, addr, &protocol.GetConsumeStatsInBrokerRequest{IsOrder: order}, nil, nil, &list)
	return list, err
}

// ResetOffsets moves a group's progress on a topic to a time (ms; -1 is the end), at every broker of the topic, and returns
// the offsets set.
func (c *Client) ResetOffsets(ctx context.Context, group, topic string, timestamp int64, force bool) (map[protocol.MessageQueue]int64, error) {
	r, err := c.Route(ctx, topic)
	if err != nil {
		return nil, err
	}
	all := map[protocol.MessageQueue]int64{}
	for _, b := range r.BrokerDatas {
		if Master(b) == "" {
			continue
		}
		one, err := c.reset(ctx, Master(b), &protocol.ResetOffsetRequest{Group: group, Topic: topic, Timestamp: timestamp, IsForce: force})
		if err != nil {
			return all, err
		}
		maps.Copy(all, one)
	}
	return all, nil
}

// ResetQueue moves a group's progress on one queue of one broker to an offset; offset -1 means the time.
func (c *Client) ResetQueue(ctx context.Context, addr, group, topic string, queue int32, timestamp, offset int64) (map[protocol.MessageQueue]int64, error) {
	return c.reset(ctx, addr, &protocol.ResetOffsetRequest{
		Group: group, Topic: topic, QueueID: &queue, Offset: &offset, Timestamp: timestamp, IsForce: true,
	})
}

func (c *Client) reset(ctx context.Context, addr string, req *protocol.ResetOffsetRequest) (map[protocol.MessageQueue]int64, error) {
	var body protocol.ResetOffsetBody
	err := c.call(ctx, addr, req, nil, nil, &body)
	return body.OffsetTable, err
}

// CloneOffsets copies progress from one group to another at every broker of the topic.
func (c *Client) CloneOffsets(ctx context.Context, from, to, topic string, offline bool) error {
	addrs, err := c.brokersOf(ctx, "", from)
	if err != nil {
		return err
	}
	var errs []error
	for _, addr := range addrs {
		errs = append(errs, c.call(ctx, addr, &protocol.CloneGroupOffsetRequest{
			SrcGroup: from, DestGroup: to, Topic: topic, Offline: offline,
		}, nil, nil, nil))
	}
	return errors.Join(errs...)
}

// TopicsOfGroup lists the topics a group consumes or consumed at one broker.
func (c *Client) TopicsOfGroup(ctx context.Context, addr, group string) ([]string, error) {
	var l protocol.TopicList
	err := c.call(ctx, addr, &protocol.QueryTopicsByConsumerRequest{Group: group}, nil, nil, &l)
	return sorted(l), err
}

// RunningInfo asks a consumer, through a broker, for its state.
func (c *Client) RunningInfo(ctx context.Context, group, clientID string, stack bool) (protocol.ConsumerRunningInfo, error) {
	var info protocol.ConsumerRunningInfo
	addrs, err := c.brokersOf(ctx, "", group)
	if err != nil {
		return info, err
	}
	for _, addr := range addrs {
		err = c.call(ctx, addr, &protocol.GetConsumerRunningInfoRequest{
			ConsumerGroup: group, ClientID: clientID, JstackEnable: stack,
		}, nil, nil, &info)
		if err == nil {
			break
		}
	}
	return info, err
}

// End is the timestamp that means the end of a queue in ResetOffsets; At is that of a time.
const End int64 = -1

// At is the timestamp of a time.
func At(t time.Time) int64 { return t.UnixMilli() }
