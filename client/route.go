package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/protocol"
)

// Queue is one queue of a topic at one broker group.
type Queue = protocol.MessageQueue

// Route says where a topic's queues are.
type Route struct {
	protocol.TopicRouteData

	writable []Queue
	masters  map[string]string // address by broker name
}

// masterID is the key of a group's master among its addresses.
const masterID = 0

// templateTopic is whose route a producer uses for a topic nobody has created yet.
const templateTopic = "TBW102"

// autoQueues is how many queues a producer asks for when its send creates the topic.
const autoQueues = 4

// ErrNoRoute is a topic that no NameServer knows.
var ErrNoRoute = errors.New("no route")

func parseRoute(topic string, body []byte) (*Route, error) {
	r := &Route{masters: map[string]string{}}
	if err := fastjson.Unmarshal(body, &r.TopicRouteData); err != nil {
		return nil, fmt.Errorf("route of %s: %w", topic, err)
	}
	for _, b := range r.BrokerDatas {
		if addr, ok := b.BrokerAddrs[masterID]; ok {
			r.masters[b.BrokerName] = addr
		}
	}
	for _, q := range r.QueueDatas {
		if q.Perm&protocol.PermWrite == 0 || r.masters[q.BrokerName] == "" {
			continue
		}
		for id := range q.WriteQueueNums {
			r.writable = append(r.writable, Queue{Topic: topic, BrokerName: q.BrokerName, QueueID: id})
		}
	}
	return r, nil
}

// readable lists the queues that may be consumed, sorted as every member of a group sorts them.
func (r *Route) readable(topic string) []Queue {
	var all []Queue
	for _, q := range r.QueueDatas {
		for id := range q.ReadQueueNums {
			if q.Perm&protocol.PermRead != 0 {
				all = append(all, Queue{Topic: topic, BrokerName: q.BrokerName, QueueID: id})
			}
		}
	}
	slices.SortFunc(all, compareQueues)
	return all
}

func compareQueues(a, b Queue) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.BrokerName, b.BrokerName), cmp.Compare(a.QueueID, b.QueueID))
}

// addr is where a broker group is reached: its master, or any replica when there is no master and read only is enough.
func (r *Route) addr(broker string, readOnly bool) string {
	if addr := r.masters[broker]; addr != "" || !readOnly {
		return addr
	}
	for _, b := range r.BrokerDatas {
		if b.BrokerName == broker {
			for _, id := range slices.Sorted(maps.Keys(b.BrokerAddrs)) {
				return b.BrokerAddrs[id]
			}
		}
	}
	return ""
}

// Route returns the topic's route, from the cache when it is there.
func (c *Client) Route(ctx context.Context, topic string) (*Route, error) {
	c.mu.Lock()
	r := c.routes[topic]
	c.mu.Unlock()
	if r != nil {
		return r, nil
	}
	return c.fetchRoute(ctx, topic)
}

// fetchRoute asks a NameServer and refreshes the cache.
func (c *Client) fetchRoute(ctx context.Context, topic string) (*Route, error) {
	standard := true
	body, err := c.invokeNameServer(ctx, &protocol.GetRouteInfoRequest{Topic: topic, AcceptStandardJSONOnly: &standard}, nil)
	var answered *protocol.Error
	if errors.As(err, &answered) && answered.Code == protocol.TopicNotExist {
		return nil, fmt.Errorf("topic %q: %w: the NameServer knows no broker that has it", topic, ErrNoRoute)
	}
	if err != nil {
		return nil, fmt.Errorf("route of %s: %w", topic, err)
	}
	r, err := parseRoute(topic, body)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	_, known := c.routes[topic]
	c.routes[topic] = r
	c.mu.Unlock()
	if !known {
		c.announce()
	}
	return r, nil
}

// routeForSend is Route, with the template topic's queues for a topic that does not exist yet.
func (c *Client) routeForSend(ctx context.Context, topic string) (*Route, error) {
	r, err := c.Route(ctx, topic)
	if err == nil || !errors.Is(err, ErrNoRoute) {
		return r, err
	}
	template, templateErr := c.fetchRoute(ctx, templateTopic)
	if templateErr != nil {
		if errors.Is(templateErr, ErrNoRoute) {
			return nil, fmt.Errorf("%w, and no broker creates topics on send (is one running and registered there?)", err)
		}
		return nil, templateErr
	}
	made := &Route{TopicRouteData: template.TopicRouteData, masters: template.masters}
	for _, q := range template.writable {
		if q.QueueID < autoQueues {
			made.writable = append(made.writable, Queue{Topic: topic, BrokerName: q.BrokerName, QueueID: q.QueueID})
		}
	}
	return made, nil
}

// refreshRoutes renews every cached route; a topic that is gone is forgotten.
func (c *Client) refreshRoutes(ctx context.Context) {
	c.mu.Lock()
	topics := slices.Sorted(maps.Keys(c.routes))
	c.mu.Unlock()
	for _, topic := range topics {
		if _, err := c.fetchRoute(ctx, topic); err != nil {
			if errors.Is(err, ErrNoRoute) {
				c.forgetRoute(topic)
			} else if ctx.Err() == nil {
				c.logger.Warn("route not refreshed", "topic", topic, "error", err)
			}
		}
	}
}

func (c *Client) forgetRoute(topic string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.routes, topic)
}

// brokerAddrs lists every broker that a cached route names; masters only unless replicas are wanted too.
func (c *Client) brokerAddrs(replicas bool) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	set := map[string]bool{}
	for _, r := range c.routes {
		for _, b := range r.BrokerDatas {
			for id, addr := range b.BrokerAddrs {
				if replicas || id == masterID {
					set[addr] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// WaitForRoute asks until the topic has a route or ctx ends.
func (c *Client) WaitForRoute(ctx context.Context, topic string) (*Route, error) {
	const interval = 50 * time.Millisecond
	for {
		r, err := c.fetchRoute(ctx, topic)
		if err == nil && len(r.QueueDatas) > 0 {
			return r, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, context.Cause(ctx))
		case <-time.After(interval):
		}
	}
}
