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

// Group is a subscription group's configuration (RocketMQ SubscriptionGroupConfig).
type Group struct {
	Name             string            `json:"groupName"`
	ConsumeEnable    bool              `json:"consumeEnable"`
	FromMin          bool              `json:"consumeFromMinEnable"`
	Broadcast        bool              `json:"consumeBroadcastEnable"`
	Orderly          bool              `json:"consumeMessageOrderly"`
	RetryQueues      int32             `json:"retryQueueNums"`
	RetryMax         int32             `json:"retryMaxTimes"`
	RetryPolicy      RetryPolicy       `json:"groupRetryPolicy"`
	BrokerID         int64             `json:"brokerId"`
	WhichWhenSlow    int64             `json:"whichBrokerWhenConsumeSlowly"`
	NotifyIDsChanged bool              `json:"notifyConsumerIdsChangedEnable"`
	SysFlag          int32             `json:"groupSysFlag"`
	TimeoutMinutes   int32             `json:"consumeTimeoutMinute"`
	Attributes       map[string]string `json:"attributes"`
}

// RetryPolicy is RocketMQ's GroupRetryPolicy; the types are CUSTOMIZED and EXPONENTIAL.
type RetryPolicy struct {
	Type string `json:"type"`
}

// NewGroup has RocketMQ's defaults.
func NewGroup(name string) Group {
	return Group{
		Name: name, ConsumeEnable: true, FromMin: true, Broadcast: true, RetryQueues: 1, RetryMax: 16,
		RetryPolicy: RetryPolicy{"CUSTOMIZED"}, WhichWhenSlow: 1, NotifyIDsChanged: true, TimeoutMinutes: 15,
		Attributes: map[string]string{},
	}
}

// Connection is one connected client (RocketMQ Connection).
type Connection struct {
	ClientID   string `json:"clientId"`
	ClientAddr string `json:"clientAddr"`
	Language   string `json:"language"`
	Version    int32  `json:"version"`
}

// Subscription is what a group reads of a topic (RocketMQ SubscriptionData).
type Subscription struct {
	Topic          string   `json:"topic"`
	SubString      string   `json:"subString"`
	ExpressionType string   `json:"expressionType"`
	Tags           []string `json:"tagsSet"`
	Version        int64    `json:"subVersion"`
}

// ConsumerConnections is an online consumer group (RocketMQ ConsumerConnection).
type ConsumerConnections struct {
	Connections   []Connection            `json:"connectionSet"`
	Subscriptions map[string]Subscription `json:"subscriptionTable"`
	ConsumeType   string                  `json:"consumeType"`
	MessageModel  string                  `json:"messageModel"`
	FromWhere     string                  `json:"consumeFromWhere"`
}

// ConsumeStats is a group's progress (RocketMQ ConsumeStats).
type ConsumeStats struct {
	Queues map[Queue]Progress
	TPS    float64
}

// Progress is a group's progress on one queue.
type Progress struct {
	BrokerOffset   int64 `json:"brokerOffset"`
	ConsumerOffset int64 `json:"consumerOffset"`
	PullOffset     int64 `json:"pullOffset"`
	LastTimestamp  int64 `json:"lastTimestamp"` // store time of the last message consumed, ms
}

// Lag is how many messages are left to consume.
func (p Progress) Lag() int64 { return p.BrokerOffset - p.ConsumerOffset }

// PutGroup creates or changes a group at one broker.
func (c *Client) PutGroup(ctx context.Context, addr string, g Group) error {
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
func (c *Client) GroupConfig(ctx context.Context, addr, group string) (Group, error) {
	var g Group
	err := c.call(ctx, addr, &protocol.GetSubscriptionGroupConfigRequest{Group: group}, nil, nil, &g)
	return g, err
}

// GroupConfigs reads the group table of one broker, sorted by name.
func (c *Client) GroupConfigs(ctx context.Context, addr string) ([]Group, error) {
	var body struct {
		Table map[string]Group `json:"subscriptionGroupTable"`
	}
	if err := c.call(ctx, addr, &protocol.GetAllSubscriptionGroupRequest{}, nil, nil, &body); err != nil {
		return nil, err
	}
	return slices.SortedFunc(maps.Values(body.Table), func(a, b Group) int { return compareNames(a.Name, b.Name) }), nil
}

// ConsumerConnections reads a group's members; addr "" asks a broker that has the group's retry topic.
func (c *Client) ConsumerConnections(ctx context.Context, addr, group string) (ConsumerConnections, error) {
	var all ConsumerConnections
	addrs, err := c.brokersOf(ctx, addr, group)
	if err != nil {
		return all, err
	}
	var errs []error
	for _, addr := range addrs {
		err := c.call(ctx, addr, &protocol.GetConsumerConnectionListRequest{ConsumerGroup: group}, nil, nil, &all)
		if err == nil {
			slices.SortFunc(all.Connections, func(a, b Connection) int { return compareNames(a.ClientID, b.ClientID) })
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
	for _, b := range r.Brokers {
		if b.Master() != "" {
			addrs = append(addrs, b.Master())
		}
	}
	return addrs, nil
}

// ConsumeStats reads a group's progress at all brokers that hold it; topic "" is every topic.
func (c *Client) ConsumeStats(ctx context.Context, group, topic string) (ConsumeStats, error) {
	all := ConsumeStats{Queues: map[Queue]Progress{}}
	addrs, err := c.brokersOf(ctx, "", group)
	if err != nil {
		return all, err
	}
	for _, addr := range addrs {
		one, err := c.BrokerConsumeStats(ctx, addr, group, topic)
		if err != nil {
			return all, err
		}
		maps.Copy(all.Queues, one.Queues)
		all.TPS += one.TPS
	}
	return all, nil
}

// BrokerConsumeStats reads a group's progress at one broker.
func (c *Client) BrokerConsumeStats(ctx context.Context, addr, group, topic string) (ConsumeStats, error) {
	var body struct {
		Table fastjson.Map[Queue, Progress] `json:"offsetTable"`
		TPS   float64                       `json:"consumeTps"`
	}
	err := c.call(ctx, addr, &protocol.GetConsumeStatsRequest{ConsumerGroup: group, Topic: topic}, nil, nil, &body)
	return ConsumeStats{Queues: body.Table, TPS: body.TPS}, err
}

// ResetOffsets moves a group's progress on a topic to a time (ms; -1 is the end), at every broker of the topic, and returns
// the offsets set.
func (c *Client) ResetOffsets(ctx context.Context, group, topic string, timestamp int64, force bool) (map[Queue]int64, error) {
	r, err := c.Route(ctx, topic)
	if err != nil {
		return nil, err
	}
	all := map[Queue]int64{}
	for _, b := range r.Brokers {
		if b.Master() == "" {
			continue
		}
		one, err := c.reset(ctx, b.Master(), &protocol.ResetOffsetRequest{Group: group, Topic: topic, Timestamp: timestamp, IsForce: force})
		if err != nil {
			return all, err
		}
		maps.Copy(all, one)
	}
	return all, nil
}

// ResetQueue moves a group's progress on one queue of one broker to an offset; offset -1 means the time.
func (c *Client) ResetQueue(ctx context.Context, addr, group, topic string, queue int32, timestamp, offset int64) (map[Queue]int64, error) {
	return c.reset(ctx, addr, &protocol.ResetOffsetRequest{
		Group: group, Topic: topic, QueueID: &queue, Offset: &offset, Timestamp: timestamp, IsForce: true,
	})
}

func (c *Client) reset(ctx context.Context, addr string, req *protocol.ResetOffsetRequest) (map[Queue]int64, error) {
	var body struct {
		Table fastjson.Map[Queue, int64] `json:"offsetTable"`
	}
	err := c.call(ctx, addr, req, nil, nil, &body)
	return body.Table, err
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
	var l topicList
	err := c.call(ctx, addr, &protocol.QueryTopicsByConsumerRequest{Group: group}, nil, nil, &l)
	return l.sorted(), err
}

// RunningInfo is what a consumer says of itself (RocketMQ ConsumerRunningInfo).
type RunningInfo struct {
	Properties    map[string]string              `json:"properties"`
	Subscriptions []Subscription                 `json:"subscriptionSet"`
	Status        map[string]ConsumeStatus       `json:"statusTable"`
	Stack         string                         `json:"jstack"`
	Queues        fastjson.Map[Queue, QueueInfo] `json:"mqTable"`
}

// ConsumeStatus are a consumer's rates on one topic.
type ConsumeStatus struct {
	PullRT         float64 `json:"pullRT"`
	PullTPS        float64 `json:"pullTPS"`
	ConsumeRT      float64 `json:"consumeRT"`
	ConsumeOKTPS   float64 `json:"consumeOKTPS"`
	FailedTPS      float64 `json:"consumeFailedTPS"`
	FailedInAnHour int64   `json:"consumeFailedMsgs"`
}

// QueueInfo is a consumer's state of one queue (RocketMQ ProcessQueueInfo).
type QueueInfo struct {
	CommitOffset int64 `json:"commitOffset"`
	CachedMin    int64 `json:"cachedMsgMinOffset"`
	CachedMax    int64 `json:"cachedMsgMaxOffset"`
	CachedCount  int32 `json:"cachedMsgCount"`
	Locked       bool  `json:"locked"`
	LastLock     int64 `json:"lastLockTimestamp"`
	Dropped      bool  `json:"droped"`
	LastPull     int64 `json:"lastPullTimestamp"`
	LastConsume  int64 `json:"lastConsumeTimestamp"`
}

// RunningInfo asks a consumer, through a broker, for its state.
func (c *Client) RunningInfo(ctx context.Context, group, clientID string, stack bool) (RunningInfo, error) {
	var info RunningInfo
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
