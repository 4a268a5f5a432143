package client

import (
	"context"
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/protocol"
)

func newSubscription(topic, expression string, version int64) protocol.SubscriptionData {
	s := protocol.SubscriptionData{
		Topic: topic, SubString: expression, ExpressionType: protocol.ExpressionTag, TagsSet: []string{}, CodeSet: []int32{},
		SubVersion: version,
	}
	for _, tag := range tagsOf(expression) {
		s.TagsSet = append(s.TagsSet, tag)
		s.CodeSet = append(s.CodeSet, message.JavaHash([]byte(tag)))
	}
	return s
}

// registration is what the client announces now; nil when it has nobody to announce.
func (c *Client) registration() *protocol.HeartbeatData {
	c.mu.Lock()
	defer c.mu.Unlock()
	body := &protocol.HeartbeatData{
		ClientID: c.cfg.ID, ProducerDataSet: []protocol.ProducerData{}, ConsumerDataSet: []protocol.ConsumerData{},
	}
	for group := range c.producers {
		body.ProducerDataSet = append(body.ProducerDataSet, protocol.ProducerData{GroupName: group})
	}
	for _, co := range c.consumers {
		body.ConsumerDataSet = append(body.ConsumerDataSet, co.registration)
	}
	if len(body.ProducerDataSet)+len(body.ConsumerDataSet) == 0 {
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
	body, err := fastjson.Marshal(registration)
	if err != nil {
		c.logger.Error("heartbeat not encoded", "error", err)
		return
	}
	for _, addr := range c.brokerAddrs(len(registration.ConsumerDataSet) > 0) {
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
	for _, p := range registration.ProducerDataSet {
		requests = append(requests, &protocol.UnregisterClientRequest{ClientID: c.cfg.ID, ProducerGroup: p.GroupName})
	}
	for _, co := range registration.ConsumerDataSet {
		requests = append(requests, &protocol.UnregisterClientRequest{ClientID: c.cfg.ID, ConsumerGroup: co.GroupName})
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
	var list protocol.GetConsumerListByGroupResponseBody
	if err := fastjson.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("members of %s: %w", group, err)
	}
	slices.Sort(list.ConsumerIDList)
	return list.ConsumerIDList, nil
}
