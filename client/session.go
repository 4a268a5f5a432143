package client

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/protocol"
)

// heartbeatBody is RocketMQ's HeartbeatData.
type heartbeatBody struct {
	ClientID  string          `json:"clientID"`
	Producers []producerBody  `json:"producerDataSet"`
	Consumers []*consumerBody `json:"consumerDataSet"`
}

type producerBody struct {
	Group string `json:"groupName"`
}

type consumerBody struct {
	Group         string             `json:"groupName"`
	ConsumeType   string             `json:"consumeType"`
	MessageModel  string             `json:"messageModel"`
	FromWhere     string             `json:"consumeFromWhere"`
	Subscriptions []subscriptionBody `json:"subscriptionDataSet"`
	UnitMode      bool               `json:"unitMode"`
}

type subscriptionBody struct {
	Topic          string   `json:"topic"`
	SubString      string   `json:"subString"`
	ExpressionType string   `json:"expressionType"`
	Tags           []string `json:"tagsSet"`
	Codes          []int32  `json:"codeSet"`
	Version        int64    `json:"subVersion"`
}

func newSubscription(topic, expression string, version int64) subscriptionBody {
	s := subscriptionBody{
		Topic: topic, SubString: expression, ExpressionType: "TAG", Tags: tagsOf(expression), Codes: []int32{}, Version: version,
	}
	for _, tag := range s.Tags {
		s.Codes = append(s.Codes, message.JavaHash([]byte(tag)))
	}
	if s.Tags == nil {
		s.Tags = []string{}
	}
	return s
}

// registration is what the client announces now; nil when it has nobody to announce.
func (c *Client) registration() *heartbeatBody {
	c.mu.Lock()
	defer c.mu.Unlock()
	body := &heartbeatBody{ClientID: c.cfg.ID, Producers: []producerBody{}, Consumers: []*consumerBody{}}
	for group := range c.producers {
		body.Producers = append(body.Producers, producerBody{group})
	}
	for _, co := range c.consumers {
		body.Consumers = append(body.Consumers, co.registration)
	}
	if len(body.Producers)+len(body.Consumers) == 0 {
		return nil
	}
	return body
}

// heartbeat announces producers and consumers to every broker known. A broker that does not answer is left to the next
// round: its route will go if it is dead.
func (c *Client) heartbeat(ctx context.Context) {
	registration := c.registration()
	if registration == nil {
		return
	}
	body, err := json.Marshal(registration)
	if err != nil {
		c.logger.Error("heartbeat not encoded", "error", err)
		return
	}
	for _, addr := range c.brokerAddrs(len(registration.Consumers) > 0) {
		if _, err := c.Invoke(ctx, addr, &protocol.HeartbeatRequest{}, body, nil); err != nil && ctx.Err() == nil {
			c.logger.Warn("heartbeat not answered", "broker", addr, "error", err)
		}
	}
}

// unregister tells brokers that this client's groups leave, so that others take over its queues at once.
func (c *Client) unregister(ctx context.Context) {
	registration := c.registration()
	if registration == nil {
		return
	}
	var requests []*protocol.UnregisterClientRequest
	for _, p := range registration.Producers {
		requests = append(requests, &protocol.UnregisterClientRequest{ClientID: c.cfg.ID, ProducerGroup: p.Group})
	}
	for _, co := range registration.Consumers {
		requests = append(requests, &protocol.UnregisterClientRequest{ClientID: c.cfg.ID, ConsumerGroup: co.Group})
	}
	for _, addr := range c.brokerAddrs(true) {
		for _, r := range requests {
			if _, err := c.Invoke(ctx, addr, r, nil, nil); err != nil {
				c.logger.Debug("leave not answered", "broker", addr, "error", err)
				break // the broker is gone, and with it the registration
			}
		}
	}
}

// members lists the client ids of a group as a broker of the topic knows them, sorted.
func (c *Client) members(ctx context.Context, group, addr string) ([]string, error) {
	body, err := c.Invoke(ctx, addr, &protocol.GetConsumerListByGroupRequest{ConsumerGroup: group}, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("members of %s: %w", group, err)
	}
	var list struct {
		IDs []string `json:"consumerIdList"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("members of %s: %w", group, err)
	}
	slices.Sort(list.IDs)
	return list.IDs, nil
}
