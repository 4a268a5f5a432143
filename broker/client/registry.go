// Package client knows who is connected: producers and consumers by group, their subscriptions, and queue locks.
package client

import "github.com/quorate/quorate/remoting"

// Subscription is one topic subscription of a consumer group, as heard in heartbeats.
type Subscription struct {
	Topic          string
	SubString      string
	ExpressionType string
	Tags           []string
	Codes          []int64
	Version        int64
}

// ConsumerGroup is a snapshot of an online consumer group.
type ConsumerGroup struct {
	Name         string
	ConsumeType  string
	MessageModel string
	FromWhere    string
}

// Member is one connection of a group.
type Member struct {
	Conn       *remoting.Conn
	ClientID   string
	Language   string
	Version    int32
	LastUpdate int64 // ms
}

// Registry is safe for concurrent use.
type Registry struct{}

// Subscription returns what group subscribed of topic, or nil; it does not allocate.
func (r *Registry) Subscription(group, topic []byte) *Subscription { panic("unbuilt") }

// Consumers and Producers list the members of a group.
func (r *Registry) Consumers(group string) (ConsumerGroup, []Member, bool) { panic("unbuilt") }
func (r *Registry) Producers(group string) []Member                        { panic("unbuilt") }

// ConsumerGroups and ProducerGroups list online groups; GroupsOfTopic those that subscribe a topic.
func (r *Registry) ConsumerGroups() []string            { panic("unbuilt") }
func (r *Registry) ProducerGroups() []string            { panic("unbuilt") }
func (r *Registry) GroupsOfTopic(topic string) []string { panic("unbuilt") }

// Subscriptions lists the subscriptions of a group.
func (r *Registry) Subscriptions(group string) []*Subscription { panic("unbuilt") }

// FindConsumer and FindProducer find a member by client id (group "" in FindProducer: any group).
func (r *Registry) FindConsumer(group, clientID string) (Member, bool) { panic("unbuilt") }
func (r *Registry) FindProducer(group, clientID string) (Member, bool) { panic("unbuilt") }

// Closed forgets a connection and notifies its groups.
func (r *Registry) Closed(c *remoting.Conn) { panic("unbuilt") }

// OrderLocked reports whether the group holds a live queue lock (PROTOCOL §3.1, retry row).
func (r *Registry) OrderLocked(group string) bool { panic("unbuilt") }
