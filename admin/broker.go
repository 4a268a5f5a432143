package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/protocol"
)

// Runtime reads a broker's figures (PROTOCOL: runtime info keys).
func (c *Client) Runtime(ctx context.Context, addr string) (map[string]string, error) {
	var body protocol.KVTable
	err := c.call(ctx, addr, &protocol.GetBrokerRuntimeInfoRequest{}, nil, nil, &body)
	return body.Table, err
}

// BrokerConfig reads a broker's configuration as `key=value` lines.
func (c *Client) BrokerConfig(ctx context.Context, addr string) (string, error) {
	text, err := c.raw(ctx, addr, &protocol.GetBrokerConfigRequest{}, nil, nil)
	return string(text), err
}

// SetBrokerConfig changes one key of a running broker.
func (c *Client) SetBrokerConfig(ctx context.Context, addr, key, value string) error {
	return c.call(ctx, addr, &protocol.UpdateBrokerConfigRequest{}, []byte(key+"="+value+"\n"), nil, nil)
}

// Cleaning is a job a broker runs on demand.
type Cleaning int

// Jobs.
const (
	ExpiredConsumeQueues Cleaning = iota
	UnusedTopics
	ExpiredCommitLog
)

// Clean runs a job at one broker.
func (c *Client) Clean(ctx context.Context, addr string, what Cleaning) error {
	switch what {
	case ExpiredConsumeQueues:
		return c.call(ctx, addr, &protocol.CleanExpiredConsumeQueueRequest{}, nil, nil, nil)
	case UnusedTopics:
		return c.call(ctx, addr, &protocol.CleanUnusedTopicRequest{}, nil, nil, nil)
	case ExpiredCommitLog:
		return c.call(ctx, addr, &protocol.DeleteExpiredCommitLogRequest{}, nil, nil, nil)
	}
	return fmt.Errorf("cleaning %d is unknown", what)
}

// Stats reads one counter of a broker: name as TOPIC_PUT_NUMS or GROUP_GET_NUMS, key as the topic or `topic@group`.
func (c *Client) Stats(ctx context.Context, addr, name, key string) (protocol.BrokerStatsData, error) {
	var s protocol.BrokerStatsData
	err := c.call(ctx, addr, &protocol.ViewBrokerStatsDataRequest{StatsName: name, StatsKey: key}, nil, nil, &s)
	return s, err
}

// ProducerTable lists all producers of a broker by group.
func (c *Client) ProducerTable(ctx context.Context, addr string) (map[string][]protocol.ProducerInfo, error) {
	var body protocol.ProducerTableInfo
	err := c.call(ctx, addr, &protocol.GetAllProducerInfoRequest{}, nil, nil, &body)
	return body.Data, err
}

// ViewMessage reads the record that an offset message id names, as CommitLog bytes.
func (c *Client) ViewMessage(ctx context.Context, topic, offsetID string) ([]byte, error) {
	host, offset, err := message.ParseOffsetID(offsetID)
	if err != nil {
		return nil, err
	}
	return c.raw(ctx, host.String(), &protocol.ViewMessageRequest{Topic: topic, Offset: offset}, nil, nil)
}

// QueryLimits bound a key query; times are ms.
type QueryLimits struct {
	Max        int32
	Begin, End int64
}

// uniqueKeyField marks a QUERY_MESSAGE for a unique key (RocketMQ MixAll.UNIQUE_MSG_QUERY_FLAG).
const uniqueKeyField = "_UNIQUE_KEY_QUERY"

// QueryMessages finds records by key, or by unique key, at all brokers of the topic: broker name to CommitLog bytes. Index
// entries are hashes: the caller compares keys.
func (c *Client) QueryMessages(ctx context.Context, topic, key string, unique bool, limits QueryLimits) (map[string][]byte, error) {
	r, err := c.Route(ctx, topic)
	if err != nil {
		return nil, err
	}
	found := map[string][]byte{}
	var errs []error
	for _, b := range r.BrokerDatas {
		if Master(b) == "" {
			continue
		}
		body, err := c.queryMessages(ctx, Master(b), topic, key, unique, limits)
		switch {
		case Is(err, protocol.QueryNotFound):
		case err != nil:
			errs = append(errs, err)
		default:
			found[b.BrokerName] = body
		}
	}
	return found, errors.Join(errs...)
}

func (c *Client) queryMessages(ctx context.Context, addr, topic, key string, unique bool, limits QueryLimits) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	cmd := protocol.NewRequest(&protocol.QueryMessageRequest{
		Topic: topic, Key: key, MaxNum: limits.Max, BeginTimestamp: limits.Begin, EndTimestamp: limits.End,
	}, nil)
	if unique {
		cmd.Ext = cmd.Ext.Add(uniqueKeyField, "true")
	}
	answer, err := c.remoting.Invoke(ctx, addr, cmd)
	if err != nil {
		return nil, fmt.Errorf("query %s at %s: %w", topic, addr, err)
	}
	if code := protocol.ResponseCode(answer.Code); code != protocol.Success {
		return nil, fmt.Errorf("query %s at %s: %w", topic, addr, &protocol.Error{Code: code, Remark: string(answer.Remark)})
	}
	return answer.Body, nil
}

// ConsumeQueue reads entries of one queue at one broker.
func (c *Client) ConsumeQueue(ctx context.Context, addr, topic string, queue int32, index int64, count int32, group string) (protocol.QueryConsumeQueueResponseBody, error) {
	var q protocol.QueryConsumeQueueResponseBody
	err := c.call(ctx, addr, &protocol.QueryConsumeQueueRequest{
		Topic: topic, QueueID: &queue, Index: index, Count: count, ConsumerGroup: group,
	}, nil, nil, &q)
	return q, err
}

// ConsumeDirectly makes one consumer of a group consume the message that an offset message id names.
func (c *Client) ConsumeDirectly(ctx context.Context, group, clientID, topic, offsetID string) (protocol.ConsumeMessageDirectlyResult, error) {
	var r protocol.ConsumeMessageDirectlyResult
	host, _, err := message.ParseOffsetID(offsetID)
	if err != nil {
		return r, err
	}
	err = c.call(ctx, host.String(), &protocol.ConsumeMessageDirectlyResultRequest{
		ConsumerGroup: group, ClientID: clientID, Topic: topic, MsgID: offsetID,
	}, nil, nil, &r)
	return r, err
}
