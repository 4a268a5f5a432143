package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/protocol"
)

// Bits of a pull's system flag (RocketMQ PullSysFlag).
const (
	pullSuspend      = 1 << 1
	pullSubscription = 1 << 2
)

// holdMargin is how much longer than the broker's hold a pull is waited for.
const holdMargin = 5 * time.Second

// PullRequest asks for messages of one queue.
type PullRequest struct {
	Group      string
	Queue      Queue
	Offset     int64
	Max        int32         // messages, default 32
	Expression string        // tags `a || b`, "" is all
	Hold       time.Duration // how long the broker may wait when there is nothing; 0 answers at once
}

// PullResult is the answer. Next is where to go on; nothing found is an empty Messages.
type PullResult struct {
	Messages        []*Received
	Next            int64
	Min, Max        int64
	OffsetOutOfLine bool // the offset was not in the queue: Next is the nearest one that is
}

// Pull reads messages of one queue.
func (c *Client) Pull(ctx context.Context, r PullRequest) (PullResult, error) {
	addr, err := c.queueAddr(ctx, r.Queue)
	if err != nil {
		return PullResult{}, err
	}
	expression := r.Expression
	if expression == "" {
		expression = "*"
	}
	header := &protocol.PullMessageRequest{
		ConsumerGroup: r.Group, Topic: r.Queue.Topic, QueueID: r.Queue.QueueID, QueueOffset: r.Offset, MaxMsgNums: r.Max,
		SysFlag: pullSubscription, Subscription: expression, ExpressionType: "TAG",
	}
	if header.MaxMsgNums == 0 {
		header.MaxMsgNums = 32
	}
	if r.Hold > 0 {
		header.SysFlag |= pullSuspend
		header.SuspendTimeoutMillis = r.Hold.Milliseconds()
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.RequestTimeout+r.Hold+holdMargin)
	defer cancel()
	answer, err := c.remoting.Invoke(ctx, addr, protocol.NewRequest(header, nil))
	if err != nil {
		return PullResult{}, fmt.Errorf("pull %s at %s: %w", r.Queue, addr, err)
	}
	code := protocol.ResponseCode(answer.Code)
	if !slices.Contains([]protocol.ResponseCode{0, protocol.PullNotFound, protocol.PullRetryImmediately, protocol.PullOffsetMoved}, code) {
		return PullResult{}, fmt.Errorf("pull %s at %s: %w", r.Queue, addr, &protocol.Error{Code: code, Remark: string(answer.Remark)})
	}
	var response protocol.PullMessageResponse
	if err := protocol.DecodeHeader(answer.Ext, &response); err != nil {
		return PullResult{}, fmt.Errorf("pull %s: %w", r.Queue, err)
	}
	result := PullResult{
		Next: response.NextBeginOffset, Min: response.MinOffset, Max: response.MaxOffset,
		OffsetOutOfLine: code == protocol.PullOffsetMoved,
	}
	if code != 0 {
		return result, nil
	}
	messages, err := DecodeRecords(r.Queue.BrokerName, answer.Body)
	if err != nil {
		return PullResult{}, fmt.Errorf("pull %s: %w", r.Queue, err)
	}
	// Brokers filter by hash; two tags may share one.
	if tags := tagsOf(r.Expression); tags != nil {
		messages = slices.DeleteFunc(messages, func(m *Received) bool { return !slices.Contains(tags, m.Tags) })
	}
	result.Messages = messages
	return result, nil
}

func (c *Client) queueAddr(ctx context.Context, q Queue) (string, error) {
	r, err := c.Route(ctx, q.Topic)
	if err != nil {
		return "", err
	}
	addr := r.addr(q.BrokerName, true)
	if addr == "" {
		c.forgetRoute(q.Topic)
		return "", fmt.Errorf("queue %s: no broker of that name is registered", q)
	}
	return addr, nil
}

// Queues lists the queues of a topic that may be consumed.
func (c *Client) Queues(ctx context.Context, topic string) ([]Queue, error) {
	r, err := c.fetchRoute(ctx, topic)
	if err != nil {
		return nil, err
	}
	return r.readable(topic), nil
}

// Bounds returns the first offset of a queue and the one behind its last.
func (c *Client) Bounds(ctx context.Context, q Queue) (first, end int64, err error) {
	addr, err := c.queueAddr(ctx, q)
	if err != nil {
		return 0, 0, err
	}
	var low protocol.GetMinOffsetResponse
	if _, err := c.Invoke(ctx, addr, &protocol.GetMinOffsetRequest{Topic: q.Topic, QueueID: q.QueueID}, nil, &low); err != nil {
		return 0, 0, fmt.Errorf("first offset of %s: %w", q, err)
	}
	var high protocol.GetMaxOffsetResponse
	if _, err := c.Invoke(ctx, addr, &protocol.GetMaxOffsetRequest{Topic: q.Topic, QueueID: q.QueueID}, nil, &high); err != nil {
		return 0, 0, fmt.Errorf("end of %s: %w", q, err)
	}
	return low.Offset, high.Offset, nil
}

// OffsetAt finds the first offset stored at or after a time.
func (c *Client) OffsetAt(ctx context.Context, q Queue, at time.Time) (int64, error) {
	addr, err := c.queueAddr(ctx, q)
	if err != nil {
		return 0, err
	}
	var found protocol.SearchOffsetResponse
	_, err = c.Invoke(ctx, addr, &protocol.SearchOffsetRequest{Topic: q.Topic, QueueID: q.QueueID, Timestamp: at.UnixMilli()}, nil, &found)
	if err != nil {
		return 0, fmt.Errorf("offset of %s at %s: %w", q, at.Format(time.RFC3339), err)
	}
	return found.Offset, nil
}

// Committed returns the group's progress on a queue; ok is false when there is none.
func (c *Client) Committed(ctx context.Context, group string, q Queue) (offset int64, ok bool, err error) {
	addr, err := c.queueAddr(ctx, q)
	if err != nil {
		return 0, false, err
	}
	var found protocol.QueryConsumerOffsetResponse
	_, err = c.Invoke(ctx, addr, &protocol.QueryConsumerOffsetRequest{ConsumerGroup: group, Topic: q.Topic, QueueID: q.QueueID}, nil, &found)
	var answered *protocol.Error
	if errors.As(err, &answered) && answered.Code == protocol.QueryNotFound {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("progress of %s on %s: %w", group, q, err)
	}
	return found.Offset, true, nil
}

// Commit stores the group's progress on a queue: the next offset to consume.
func (c *Client) Commit(ctx context.Context, group string, q Queue, offset int64) error {
	addr, err := c.queueAddr(ctx, q)
	if err != nil {
		return err
	}
	_, err = c.Invoke(ctx, addr, &protocol.UpdateConsumerOffsetRequest{
		ConsumerGroup: group, Topic: q.Topic, QueueID: q.QueueID, CommitOffset: offset,
	}, nil, nil)
	if err != nil {
		return fmt.Errorf("commit %s on %s: %w", group, q, err)
	}
	return nil
}
