package client

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/broker/group"
	"github.com/quorate/quorate/broker/topic"
	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
)

// Ext fields of a heartbeat's answer (RocketMQ MixAll).
const (
	supportsV2 = "IS_SUPPORT_HEART_BEAT_V2"
	subChange  = "IS_SUB_CHANGE"
)

// unitSubFlag is the topic system flag of a unit's subscription (TopicSysFlag).
const unitSubFlag = 2

func (r *Registry) heartbeat(_ context.Context, call remoting.Call[protocol.HeartbeatRequest]) (*remoting.Reply, error) {
	var b protocol.HeartbeatData
	if err := fastjson.Unmarshal(call.Body, &b); err != nil {
		return nil, protocol.Errorf(protocol.InvalidParameter, "heartbeat: %v", err)
	}
	if b.ClientID == "" {
		return nil, protocol.Errorf(protocol.InvalidParameter, "heartbeat: clientID is missing")
	}
	for i := range b.ConsumerDataSet { // all of it or nothing
		if err := group.CheckName(b.ConsumerDataSet[i].GroupName); err != nil {
			return nil, protocol.Errorf(protocol.InvalidParameter, "heartbeat: %v", err)
		}
	}
	m := Member{
		Conn: call.Conn, ClientID: b.ClientID, Language: call.Command.Language, Version: call.Command.Version,
		LastUpdate: time.Now().UnixMilli(),
	}
	changed, err := r.beat(m, &b)
	if err != nil {
		return nil, err
	}
	return &remoting.Reply{Ext: protocol.ExtFields{}.Add(supportsV2, "true").Add(subChange, strconv.FormatBool(changed))}, nil
}

// beat registers what a heartbeat says. subChanged asks the client for its full subscriptions with the next one.
func (r *Registry) beat(m Member, b *protocol.HeartbeatData) (subChanged bool, err error) {
	fingerprint := int32(0)
	if b.HeartbeatFingerprint != nil {
		fingerprint = *b.HeartbeatFingerprint
	}
	light := fingerprint != 0 && b.WithoutSub != nil && *b.WithoutSub
	subChanged = fingerprint == 0
	for i := range b.ConsumerDataSet {
		c := &b.ConsumerDataSet[i]
		g := r.groups.Find(c.GroupName)
		if g == nil || r.cfg.RejectPull && c.ConsumeType == protocol.ConsumeActively {
			continue
		}
		if err := r.ensureRetryTopic(c, g); err != nil {
			return false, err
		}
		again, n := r.addConsumer(m, c, fingerprint, light)
		subChanged = subChanged || again
		r.send([]notice{n})
	}
	if r.cfg.RegisterProducers {
		for _, p := range b.ProducerDataSet {
			r.addProducer(m, p.GroupName)
		}
	}
	return subChanged, nil
}

func (r *Registry) ensureRetryTopic(c *protocol.ConsumerData, g *group.Config) error {
	if g.RetryQueueNums <= 0 {
		return nil
	}
	t := topic.Config{
		Name: topic.Retry(c.GroupName), ReadQueues: g.RetryQueueNums, WriteQueues: g.RetryQueueNums, Perm: topic.PermRead | topic.PermWrite,
	}
	if c.UnitMode {
		t.SysFlag = unitSubFlag
	}
	_, err := r.topics.Ensure(t)
	return err
}

func (r *Registry) addProducer(m Member, group string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.producers[group]
	if g == nil {
		g = map[uint64]*Member{}
		r.producers[group] = g
	}
	g[m.Conn.ID()] = &m
	r.present(m.Conn).producers[group] = true
}

// present is called under mu.
func (r *Registry) present(c Conn) *presence {
	p := r.conns[c.ID()]
	if p == nil {
		p = &presence{conn: c, consumers: map[string]bool{}, producers: map[string]bool{}}
		r.conns[c.ID()] = p
	}
	return p
}

// addConsumer registers one group of a heartbeat. With light set the subscriptions known before stay, and a group that has
// none is asked for them.
func (r *Registry) addConsumer(m Member, c *protocol.ConsumerData, fingerprint int32, light bool) (again bool, n notice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.consumers[c.GroupName]
	if g == nil {
		g = r.newGroup(c.GroupName)
	}
	g.ConsumeType, g.MessageModel, g.FromWhere = c.ConsumeType, c.MessageModel, c.ConsumeFromWhere
	if fingerprint != 0 {
		last, known := r.prints[c.GroupName]
		again = known && last != fingerprint || light && len(*g.subs.Load()) == 0
		r.prints[c.GroupName] = fingerprint
	}
	id := m.Conn.ID()
	old := g.members[id]
	changed := old == nil || old.ClientID != m.ClientID
	next := &consumer{Member: m}
	if old != nil {
		next.subscribes = old.subscribes
	}
	g.members[id] = next
	r.present(m.Conn).consumers[c.GroupName] = true
	if !light {
		changed = g.subscribe(c.SubscriptionDataSet) || changed
		r.compare(g, next, digest(c.SubscriptionDataSet), old == nil)
	}
	if changed {
		n = r.noticeTo(g)
	}
	return again, n
}

// newGroup is called under mu.
func (r *Registry) newGroup(name string) *consumers {
	g := &consumers{ConsumerGroup: ConsumerGroup{Name: name}, members: map[uint64]*consumer{}, subs: &topicMap{}}
	g.subs.Store(&map[string]*Subscription{})
	r.consumers[name] = g
	next := maps.Clone(*r.subscribed.Load())
	next[name] = g.subs
	r.subscribed.Store(&next)
	return g
}

// subscribe takes over the topics of a heartbeat: a stored expression yields to a larger version only. It reports whether a
// topic came or went.
func (g *consumers) subscribe(list []protocol.SubscriptionData) (changed bool) {
	have := *g.subs.Load()
	next := make(map[string]*Subscription, len(list))
	same := len(have) == len(list)
	for i := range list {
		old := have[list[i].Topic]
		if old != nil && old.Version >= list[i].SubVersion {
			next[old.Topic] = old
			continue
		}
		same = false
		changed = changed || old == nil
		next[list[i].Topic] = subscriptionOf(&list[i])
	}
	for name := range have {
		changed = changed || next[name] == nil
	}
	if !same || changed {
		g.subs.Store(&next)
	}
	return changed
}

// compare warns of members of one group that subscribe differently: the one heard last decides for all, and messages that
// only another would take are lost to the group.
func (r *Registry) compare(g *consumers, m *consumer, subscribes string, joined bool) {
	news := joined || m.subscribes != subscribes
	m.subscribes = subscribes
	for _, other := range g.members {
		if other == m || other.subscribes == "" || other.subscribes == subscribes || other.ClientID == m.ClientID {
			continue
		}
		r.conflicts.Add(1)
		if news {
			r.logger.Warn("members of one group subscribe differently", "group", g.Name, "client", m.ClientID, "subscribes", subscribes,
				"other_client", other.ClientID, "other_subscribes", other.subscribes)
		}
		return
	}
}

func digest(list []protocol.SubscriptionData) string {
	parts := make([]string, 0, len(list))
	for i := range list {
		tags := strings.Split(list[i].SubString, "||")
		for j := range tags {
			tags[j] = strings.TrimSpace(tags[j])
		}
		slices.Sort(tags)
		parts = append(parts, list[i].Topic+"("+list[i].ExpressionType+":"+strings.Join(tags, "||")+")")
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

func (r *Registry) unregister(_ context.Context, call remoting.Call[protocol.UnregisterClientRequest]) (*remoting.Reply, error) {
	h := call.Header
	var n notice
	r.mu.Lock()
	if p := r.conns[call.Conn.ID()]; p != nil {
		if p.producers[h.ProducerGroup] {
			delete(p.producers, h.ProducerGroup)
			r.dropProducer(h.ProducerGroup, call.Conn.ID())
		}
		if p.consumers[h.ConsumerGroup] {
			delete(p.consumers, h.ConsumerGroup)
			n = r.dropConsumer(h.ConsumerGroup, call.Conn.ID())
		}
		if len(p.consumers)+len(p.producers) == 0 {
			delete(r.conns, call.Conn.ID())
		}
	}
	r.mu.Unlock()
	r.send([]notice{n})
	return &remoting.Reply{}, nil
}

// checkConfig is CHECK_CLIENT_CONFIG. Only SQL92 expressions need a check, and this broker does not filter by them.
func (r *Registry) checkConfig(_ context.Context, call remoting.Call[protocol.CheckClientConfigRequest]) (*remoting.Reply, error) {
	var b protocol.CheckClientRequestBody
	if err := fastjson.Unmarshal(call.Body, &b); err != nil {
		return nil, protocol.Errorf(protocol.InvalidParameter, "client config: %v", err)
	}
	if s := b.SubscriptionData; s == nil || s.ExpressionType == "" || s.ExpressionType == protocol.ExpressionTag {
		return &remoting.Reply{}, nil
	}
	return nil, protocol.Errorf(protocol.SystemError, "the broker does not support consumer to filter message by %s", b.SubscriptionData.ExpressionType)
}

func (r *Registry) lockQueues(_ context.Context, call remoting.Call[protocol.LockBatchMqRequest]) (*remoting.Reply, error) {
	b, queues, err := lockRequest(call.Body)
	if err != nil {
		return nil, err
	}
	answer := protocol.LockBatchResponseBody{LockOKMQSet: []protocol.MessageQueue{}}
	for _, q := range r.locks.take(b.ConsumerGroup, b.ClientID, queues, time.Now()) {
		answer.LockOKMQSet = append(answer.LockOKMQSet, protocol.MessageQueue{BrokerName: q.Broker, QueueID: q.ID, Topic: q.Topic})
	}
	return jsonReply(answer)
}

func (r *Registry) unlockQueues(_ context.Context, call remoting.Call[protocol.UnlockBatchMqRequest]) (*remoting.Reply, error) {
	b, queues, err := lockRequest(call.Body)
	if err != nil {
		return nil, err
	}
	r.locks.give(b.ConsumerGroup, b.ClientID, queues)
	return &remoting.Reply{}, nil
}

var errLockRequest = errors.New("consumerGroup and clientId must be given")

func lockRequest(body []byte) (b protocol.LockBatchRequestBody, queues []Queue, err error) {
	if err = fastjson.Unmarshal(body, &b); err == nil && (b.ConsumerGroup == "" || b.ClientID == "") {
		err = errLockRequest
	}
	if err != nil {
		return b, nil, protocol.Errorf(protocol.InvalidParameter, "lock request: %v", err)
	}
	for _, q := range b.MQSet {
		queues = append(queues, Queue{Topic: q.Topic, Broker: q.BrokerName, ID: q.QueueID})
	}
	return b, queues, nil
}

func jsonReply(body any) (*remoting.Reply, error) {
	text, err := fastjson.Marshal(body)
	if err != nil {
		return nil, err
	}
	return &remoting.Reply{Body: text}, nil
}
