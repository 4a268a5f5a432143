package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/protocol"
)

// FromWhere is where a group without progress starts.
type FromWhere string

// Where a group starts.
const (
	FromLast  FromWhere = protocol.ConsumeFromLastOffset
	FromFirst FromWhere = protocol.ConsumeFromFirstOffset
)

// retryPrefix names the topic that holds a group's messages to be tried again.
const retryPrefix = "%RETRY%"

// pauses between attempts of things that failed.
const (
	pullPause     = time.Second
	orderlyPause  = time.Second
	lockInterval  = 20 * time.Second // a broker forgets a lock after 60 s
	fetchedBudget = 2                // answers read ahead per queue
)

// ConsumerConfig says what a consumer reads and how.
type ConsumerConfig struct {
	Group         string
	Subscriptions map[string]string // expression of tags by topic; "*" is all
	From          FromWhere         // default FromLast
	// Orderly locks each queue at its broker and tries a failed message again in place, until it succeeds. Otherwise a failed
	// message goes back to the broker, which delivers it again later.
	Orderly bool
	Max     int32 // messages per pull, default 32
}

// Handler consumes messages of one queue, in order. Queues are handled side by side. An error means that the messages
// were not consumed.
type Handler func(ctx context.Context, messages []*Received) error

// Consumer is one member of a consumer group: it takes its share of the queues and hands their messages to a Handler.
type Consumer struct {
	client       *Client
	cfg          ConsumerConfig
	handle       Handler
	registration protocol.ConsumerData
	due          chan struct{}

	mu       sync.Mutex
	progress map[Queue]int64 // next offset to consume
	dirty    map[Queue]bool
}

// NewConsumer registers a consumer. Client.Run announces it; Consumer.Run consumes.
func (c *Client) NewConsumer(cfg ConsumerConfig, handle Handler) *Consumer {
	if cfg.From == "" {
		cfg.From = FromLast
	}
	cfg.Subscriptions = maps.Clone(cfg.Subscriptions)
	cfg.Subscriptions[retryPrefix+cfg.Group] = "*"
	registration := protocol.ConsumerData{
		GroupName: cfg.Group, ConsumeType: protocol.ConsumePassively, MessageModel: protocol.Clustering,
		ConsumeFromWhere: string(cfg.From),
	}
	version := time.Now().UnixMilli()
	for _, topic := range slices.Sorted(maps.Keys(cfg.Subscriptions)) {
		registration.SubscriptionDataSet = append(registration.SubscriptionDataSet, newSubscription(topic, cfg.Subscriptions[topic], version))
	}
	co := &Consumer{
		client: c, cfg: cfg, handle: handle, registration: registration, due: make(chan struct{}, 1),
		progress: map[Queue]int64{}, dirty: map[Queue]bool{},
	}
	c.mu.Lock()
	c.consumers[cfg.Group] = co
	c.mu.Unlock()
	c.announce()
	return co
}

func (co *Consumer) rebalanceSoon() {
	select {
	case co.due <- struct{}{}:
	default: // one is due already
	}
}

// reader is one queue being read.
type reader struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// Run consumes until ctx ends, then lets go of its queues and commits what was consumed.
func (co *Consumer) Run(ctx context.Context) error {
	readers := map[Queue]*reader{}
	defer func() {
		for _, r := range readers {
			r.cancel()
		}
		for q, r := range readers {
			<-r.done
			co.release(context.WithoutCancel(ctx), q)
		}
		co.client.forgetConsumer(context.WithoutCancel(ctx), co)
	}()
	co.client.heartbeat(ctx) // before the first rebalance, so that this member counts
	rebalance := time.NewTicker(co.client.cfg.RebalanceInterval)
	defer rebalance.Stop()
	commit := time.NewTicker(co.client.cfg.OffsetInterval)
	defer commit.Stop()
	relock := time.NewTicker(lockInterval)
	defer relock.Stop()
	for {
		settled := co.rebalance(ctx, readers)
		var again <-chan time.Time
		if !settled {
			again = time.After(pullPause)
		}
	wait:
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-rebalance.C:
				break wait
			case <-co.due:
				break wait
			case <-again:
				break wait
			case <-commit.C:
				co.commitAll(ctx)
			case <-relock.C:
				co.relock(ctx, readers)
			}
		}
	}
}

// rebalance starts and stops readers until they are this member's share. It reports false when it has to be tried again.
func (co *Consumer) rebalance(ctx context.Context, readers map[Queue]*reader) bool {
	share := map[Queue]bool{}
	settled := true
	for topic := range co.cfg.Subscriptions {
		queues, err := co.share(ctx, topic)
		if err != nil {
			if strings.HasPrefix(topic, retryPrefix) && errors.Is(err, ErrNoRoute) {
				continue // made by the first heartbeat; nothing is lost before
			}
			if ctx.Err() == nil {
				co.client.logger.Warn("share of a topic unknown", "topic", topic, "error", err)
			}
			settled = false
			// What this member has of the topic it keeps.
			for q := range readers {
				if q.Topic == topic {
					share[q] = true
				}
			}
			continue
		}
		for _, q := range queues {
			share[q] = true
		}
	}
	for q, r := range readers {
		if !share[q] {
			r.cancel()
			<-r.done
			co.release(ctx, q)
			delete(readers, q)
		}
	}
	for q := range share {
		if readers[q] == nil {
			queueCtx, cancel := context.WithCancel(ctx)
			r := &reader{cancel: cancel, done: make(chan struct{})}
			readers[q] = r
			go func() {
				defer close(r.done)
				co.read(queueCtx, q)
			}()
		}
	}
	return settled
}

// share is this member's part of a topic's queues.
func (co *Consumer) share(ctx context.Context, topic string) ([]Queue, error) {
	r, err := co.client.fetchRoute(ctx, topic)
	if err != nil {
		return nil, err
	}
	queues := r.readable(topic)
	if len(queues) == 0 {
		return nil, fmt.Errorf("topic %s has no queue to read", topic)
	}
	members, err := co.client.members(ctx, co.cfg.Group, r.addr(queues[0].BrokerName, true))
	if err != nil {
		return nil, err
	}
	return Allocate(queues, members, co.client.cfg.ID), nil
}

// Allocate gives each member of a group an equal, contiguous part of the queues, the first ones one more when they do not
// divide (RocketMQ AllocateMessageQueueAveragely). Queues and members are sorted.
func Allocate(queues []Queue, members []string, self string) []Queue {
	index := slices.Index(members, self)
	if index < 0 || len(queues) == 0 {
		return nil
	}
	each, extra := len(queues)/len(members), len(queues)%len(members)
	start := index*each + min(index, extra)
	end := start + each
	if index < extra {
		end++
	}
	return queues[start:end]
}

// read consumes one queue until ctx ends.
func (co *Consumer) read(ctx context.Context, q Queue) {
	offset, err := co.start(ctx, q)
	for err != nil {
		if !co.pause(ctx, "queue not started", q, err, pullPause) {
			return
		}
		offset, err = co.start(ctx, q)
	}
	fetched := make(chan PullResult, fetchedBudget)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(fetched)
		co.fetch(ctx, q, offset, fetched)
	})
	for r := range fetched {
		if len(r.Messages) > 0 && !co.consume(ctx, q, r.Messages) {
			break
		}
		co.advance(q, r.Next)
	}
	for range fetched { // drain, so that fetch can leave
	}
	wg.Wait()
}

// fetch pulls ahead of consumption.
func (co *Consumer) fetch(ctx context.Context, q Queue, offset int64, out chan<- PullResult) {
	for {
		r, err := co.client.Pull(ctx, PullRequest{
			Group: co.cfg.Group, Queue: q, Offset: offset, Max: co.cfg.Max, Expression: co.cfg.Subscriptions[q.Topic],
			Hold: co.client.cfg.SuspendTimeout,
		})
		if err != nil {
			if !co.pause(ctx, "queue not read", q, err, pullPause) {
				return
			}
			continue
		}
		offset = r.Next
		select {
		case out <- r:
		case <-ctx.Done():
			return
		}
	}
}

// pause reports a failure and waits; false when ctx ended.
func (co *Consumer) pause(ctx context.Context, what string, q Queue, err error, d time.Duration) bool {
	if ctx.Err() != nil {
		return false
	}
	co.client.logger.Warn("tried again after a pause", "what", what, "queue", q.String(), "error", err)
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// start finds where to begin, and locks the queue when order is asked for.
func (co *Consumer) start(ctx context.Context, q Queue) (int64, error) {
	if co.cfg.Orderly {
		if err := co.lock(ctx, q); err != nil {
			return 0, err
		}
	}
	offset, ok, err := co.client.Committed(ctx, co.cfg.Group, q)
	if err != nil || ok {
		return offset, err
	}
	if co.cfg.From == FromFirst || strings.HasPrefix(q.Topic, retryPrefix) {
		first, _, err := co.client.Bounds(ctx, q)
		return first, err
	}
	_, end, err := co.client.Bounds(ctx, q)
	return end, err
}

// consume hands messages to the handler until they are consumed or given back; false when ctx ended before.
func (co *Consumer) consume(ctx context.Context, q Queue, messages []*Received) bool {
	for _, m := range messages {
		if topic := m.Properties["RETRY_TOPIC"]; topic != "" && strings.HasPrefix(q.Topic, retryPrefix) {
			m.Topic = topic
		}
	}
	for {
		err := co.handle(ctx, messages)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		if !co.cfg.Orderly {
			if err = co.giveBack(ctx, q, messages); err == nil {
				return true
			}
		}
		if !co.pause(ctx, "messages not consumed", q, err, orderlyPause) {
			return false
		}
	}
}

// giveBack returns messages to the broker, which delivers them again later.
func (co *Consumer) giveBack(ctx context.Context, q Queue, messages []*Received) error {
	addr, err := co.client.queueAddr(ctx, q)
	if err != nil {
		return err
	}
	for _, m := range messages {
		_, err := co.client.Invoke(ctx, addr, &protocol.ConsumerSendMsgBackRequest{
			Offset: m.PhysicalOffset, Group: co.cfg.Group, OriginMsgID: m.OffsetID, OriginTopic: m.Topic,
		}, nil, nil)
		if err != nil {
			return fmt.Errorf("give back offset %d of %s: %w", m.Offset, q, err)
		}
	}
	return nil
}

func (co *Consumer) advance(q Queue, next int64) {
	co.mu.Lock()
	defer co.mu.Unlock()
	if previous, ok := co.progress[q]; !ok || previous != next {
		co.progress[q], co.dirty[q] = next, true
	}
}

func (co *Consumer) commitAll(ctx context.Context) {
	co.mu.Lock()
	due := slices.Collect(maps.Keys(co.dirty))
	co.mu.Unlock()
	for _, q := range due {
		co.commitQueue(ctx, q)
	}
}

func (co *Consumer) commitQueue(ctx context.Context, q Queue) {
	co.mu.Lock()
	offset, due := co.progress[q], co.dirty[q]
	delete(co.dirty, q)
	co.mu.Unlock()
	if !due {
		return
	}
	if err := co.client.Commit(ctx, co.cfg.Group, q, offset); err != nil {
		co.client.logger.Warn("progress not committed", "queue", q.String(), "error", err)
		co.mu.Lock()
		co.dirty[q] = true
		co.mu.Unlock()
	}
}

// release commits a queue that is not this member's any more, and forgets it.
func (co *Consumer) release(ctx context.Context, q Queue) {
	co.commitQueue(ctx, q)
	if co.cfg.Orderly {
		if err := co.unlock(ctx, q); err != nil {
			co.client.logger.Warn("queue not unlocked", "queue", q.String(), "error", err)
		}
	}
	co.mu.Lock()
	defer co.mu.Unlock()
	delete(co.progress, q)
	delete(co.dirty, q)
}

func (co *Consumer) lock(ctx context.Context, q Queue) error {
	body, err := co.invokeLock(ctx, q, &protocol.LockBatchMqRequest{})
	if err != nil {
		return fmt.Errorf("lock %s: %w", q, err)
	}
	var answer protocol.LockBatchResponseBody
	if err := fastjson.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("lock %s: %w", q, err)
	}
	if !slices.Contains(answer.LockOKMQSet, q) {
		return fmt.Errorf("queue %s is locked by another member", q)
	}
	return nil
}

// relock renews the locks of the queues held; a queue whose lock is lost is let go, and taken again when it is free.
func (co *Consumer) relock(ctx context.Context, readers map[Queue]*reader) {
	if !co.cfg.Orderly {
		return
	}
	for q, r := range readers {
		if err := co.lock(ctx, q); err != nil && ctx.Err() == nil {
			co.client.logger.Warn("lock lost", "queue", q.String(), "error", err)
			r.cancel()
			<-r.done
			co.release(ctx, q)
			delete(readers, q)
			co.rebalanceSoon()
		}
	}
}

func (co *Consumer) unlock(ctx context.Context, q Queue) error {
	_, err := co.invokeLock(ctx, q, &protocol.UnlockBatchMqRequest{})
	return err
}

func (co *Consumer) invokeLock(ctx context.Context, q Queue, req protocol.Request) ([]byte, error) {
	body, err := fastjson.Marshal(protocol.LockBatchRequestBody{
		ConsumerGroup: co.cfg.Group, ClientID: co.client.cfg.ID, MQSet: []Queue{q},
	})
	if err != nil {
		return nil, err
	}
	addr, err := co.client.queueAddr(ctx, q)
	if err != nil {
		return nil, err
	}
	return co.client.Invoke(ctx, addr, req, body, nil)
}

func (c *Client) forgetConsumer(ctx context.Context, co *Consumer) {
	c.mu.Lock()
	delete(c.consumers, co.cfg.Group)
	c.mu.Unlock()
	for _, addr := range c.brokerAddrs(true) {
		_, err := c.Invoke(ctx, addr, &protocol.UnregisterClientRequest{ClientID: c.cfg.ID, ConsumerGroup: co.cfg.Group}, nil, nil)
		if err != nil {
			c.logger.Debug("leave not answered", "broker", addr, "error", err)
		}
	}
}
