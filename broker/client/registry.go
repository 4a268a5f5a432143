// Package client knows who is connected: producers and consumers by group, their subscriptions, and queue locks. It tells
// the consumers of a group when its members change, and carries requests of operators to consumers.
package client

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/broker/group"
	"github.com/quorate/quorate/broker/topic"
	"github.com/quorate/quorate/protocol"
)

// Conn is a client's connection (*remoting.Conn).
type Conn interface {
	ID() uint64
	RemoteAddr() netip.AddrPort
	Invoke(ctx context.Context, cmd *protocol.Command) (*protocol.Command, error)
	InvokeOneway(cmd *protocol.Command) error
	Close(cause error)
}

// Subscription is one topic subscription of a consumer group, as heard in heartbeats. It is immutable.
type Subscription struct {
	Topic           string
	SubString       string
	ExpressionType  string
	Tags            []string
	Codes           []int64
	Version         int64
	ClassFilterMode bool
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
	Conn       Conn
	ClientID   string
	Language   protocol.Language
	Version    int32
	LastUpdate int64 // ms
}

// Config of a registry.
type Config struct {
	Expiry            time.Duration `conf:"channelExpiredTimeout,ms" bounds:"1000..86400000"`
	NotifyChanges     bool          `conf:"notifyConsumerIdsChangedEnable"`
	RejectPull        bool          `conf:"rejectPullConsumerEnable"`
	RegisterProducers bool          `conf:"enableRegisterProducer"`
}

// DefaultConfig has RocketMQ's defaults.
func DefaultConfig() Config {
	return Config{Expiry: 2 * time.Minute, NotifyChanges: true, RegisterProducers: true}
}

// scanInterval is how often connections without a heartbeat and dead locks are looked for (ClientHousekeepingService).
const scanInterval = 10 * time.Second

// Groups is the subscription-group table (group.Table).
type Groups interface {
	Lookup(name []byte) *group.Config
	Find(name string) *group.Config
}

// Topics makes retry topics (topic.Table).
type Topics interface {
	Ensure(c topic.Config) (*topic.Config, error)
}

// Registry is safe for concurrent use. Subscription is read without a lock.
type Registry struct {
	cfg    Config
	groups Groups
	topics Topics
	logger *slog.Logger

	mu        sync.Mutex // guards the maps and everything below them; nothing is sent under it
	consumers map[string]*consumers
	producers map[string]map[uint64]*Member
	conns     map[uint64]*presence
	prints    map[string]int32 // last heartbeat fingerprint by consumer group

	subscribed atomic.Pointer[map[string]*topicMap] // by group; replaced when a group comes or goes
	locks      locks
	conflicts  atomic.Int64
}

// topicMap holds the subscriptions of one group by topic; the map is replaced to change.
type topicMap struct {
	atomic.Pointer[map[string]*Subscription]
}

type consumers struct {
	ConsumerGroup
	members map[uint64]*consumer
	subs    *topicMap
}

type consumer struct {
	Member
	subscribes string // its own subscriptions in one string; "" when it never said
}

// presence is what one connection takes part in.
type presence struct {
	conn                 Conn
	consumers, producers map[string]bool
}

// New starts nothing.
func New(cfg Config, groups Groups, topics Topics, logger *slog.Logger) *Registry {
	r := &Registry{
		cfg: cfg, groups: groups, topics: topics, logger: logger, consumers: map[string]*consumers{},
		producers: map[string]map[uint64]*Member{}, conns: map[uint64]*presence{}, prints: map[string]int32{},
	}
	r.subscribed.Store(&map[string]*topicMap{})
	r.locks.queues = map[string]map[Queue]lock{}
	return r
}

// Run closes connections without a heartbeat until ctx ends.
func (r *Registry) Run(ctx context.Context) error {
	tick := time.NewTicker(scanInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			r.expire(now)
			r.locks.expire(now)
		}
	}
}

var errNoHeartbeat = errors.New("client: no heartbeat in time")

func (r *Registry) expire(now time.Time) {
	oldest := now.Add(-r.cfg.Expiry).UnixMilli()
	r.mu.Lock()
	var dead []Conn
	for id, p := range r.conns {
		last := int64(0)
		for g := range p.consumers {
			last = max(last, r.consumers[g].members[id].LastUpdate)
		}
		for g := range p.producers {
			last = max(last, r.producers[g][id].LastUpdate)
		}
		if last < oldest {
			dead = append(dead, p.conn)
		}
	}
	r.mu.Unlock()
	for _, c := range dead {
		r.logger.Info("client closed", "reason", "no heartbeat", "remote", c.RemoteAddr().String())
		c.Close(errNoHeartbeat)
		r.Closed(c)
	}
}

// Subscription returns what group subscribed of topic, or nil; it does not allocate.
func (r *Registry) Subscription(group, topic []byte) *Subscription {
	if subs := (*r.subscribed.Load())[string(group)]; subs != nil {
		return (*subs.Load())[string(topic)]
	}
	return nil
}

// Online reports whether a consumer group has members; it does not allocate.
func (r *Registry) Online(group []byte) bool { return (*r.subscribed.Load())[string(group)] != nil }

// Consumers lists the members of a consumer group, ordered by client id.
func (r *Registry) Consumers(group string) (ConsumerGroup, []Member, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.consumers[group]
	if g == nil {
		return ConsumerGroup{}, nil, false
	}
	out := make([]Member, 0, len(g.members))
	for _, m := range g.members {
		out = append(out, m.Member)
	}
	slices.SortFunc(out, byClient)
	return g.ConsumerGroup, out, true
}

func byClient(a, b Member) int {
	if c := strings.Compare(a.ClientID, b.ClientID); c != 0 {
		return c
	}
	return int(int64(a.Conn.ID()) - int64(b.Conn.ID()))
}

// Producers lists the members of a producer group, ordered by client id.
func (r *Registry) Producers(group string) []Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Member, 0, len(r.producers[group]))
	for _, m := range r.producers[group] {
		out = append(out, *m)
	}
	slices.SortFunc(out, byClient)
	return out
}

// ConsumerGroups and ProducerGroups list online groups; GroupsOfTopic those that subscribe a topic.
func (r *Registry) ConsumerGroups() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.consumers))
}

// ProducerGroups lists online producer groups.
func (r *Registry) ProducerGroups() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.producers))
}

// GroupsOfTopic lists online consumer groups that subscribe a topic.
func (r *Registry) GroupsOfTopic(topic string) []string {
	var out []string
	for name, subs := range *r.subscribed.Load() {
		if (*subs.Load())[topic] != nil {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Subscriptions lists the subscriptions of a group, ordered by topic.
func (r *Registry) Subscriptions(group string) []*Subscription {
	subs := (*r.subscribed.Load())[group]
	if subs == nil {
		return nil
	}
	out := slices.Collect(maps.Values(*subs.Load()))
	slices.SortFunc(out, func(a, b *Subscription) int { return strings.Compare(a.Topic, b.Topic) })
	return out
}

// FindConsumer finds a member by client id; of several connections the one heard last.
func (r *Registry) FindConsumer(group, clientID string) (Member, bool) {
	_, members, _ := r.Consumers(group)
	return newest(members, clientID)
}

// FindProducer finds a producer by client id; group "" means any group.
func (r *Registry) FindProducer(group, clientID string) (Member, bool) {
	if group != "" {
		return newest(r.Producers(group), clientID)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var members []Member
	for _, g := range r.producers {
		for _, m := range g {
			if m.ClientID == clientID {
				members = append(members, *m)
			}
		}
	}
	return newest(members, clientID)
}

func newest(members []Member, clientID string) (found Member, ok bool) {
	for _, m := range members {
		if m.ClientID == clientID && (!ok || m.LastUpdate >= found.LastUpdate) {
			found, ok = m, true
		}
	}
	return found, ok
}

// Connected counts connections that sent a heartbeat.
func (r *Registry) Connected() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.conns)
}

// Conflicts counts heartbeats whose subscriptions differed from those of another live member of their group.
func (r *Registry) Conflicts() int64 { return r.conflicts.Load() }

// Closed forgets a connection and notifies its groups. Queue locks of a client that is gone with it are free at once.
func (r *Registry) Closed(c Conn) {
	r.mu.Lock()
	p := r.conns[c.ID()]
	if p == nil {
		r.mu.Unlock()
		return
	}
	delete(r.conns, c.ID())
	var notices []notice
	for g := range p.producers {
		r.dropProducer(g, c.ID())
	}
	for g := range p.consumers {
		notices = append(notices, r.dropConsumer(g, c.ID()))
	}
	r.mu.Unlock()
	r.send(notices)
}

// dropProducer and dropConsumer are called under mu.
func (r *Registry) dropProducer(group string, id uint64) {
	delete(r.producers[group], id)
	if len(r.producers[group]) == 0 {
		delete(r.producers, group)
	}
}

func (r *Registry) dropConsumer(group string, id uint64) notice {
	g := r.consumers[group]
	gone := g.members[id]
	delete(g.members, id)
	if !slices.ContainsFunc(slices.Collect(maps.Values(g.members)), func(m *consumer) bool { return m.ClientID == gone.ClientID }) {
		r.locks.release(group, gone.ClientID)
	}
	if len(g.members) == 0 {
		delete(r.consumers, group)
		delete(r.prints, group)
		next := maps.Clone(*r.subscribed.Load())
		delete(next, group)
		r.subscribed.Store(&next)
		return notice{}
	}
	return r.noticeTo(g)
}

// notice is a change of members to be told to the consumers of a group.
type notice struct {
	group string
	to    []Conn
}

// noticeTo is called under mu.
func (r *Registry) noticeTo(g *consumers) notice {
	if !r.cfg.NotifyChanges || g.MessageModel == protocol.Broadcasting {
		return notice{}
	}
	if c := r.groups.Lookup([]byte(g.Name)); c != nil && !c.NotifyIDsChangedEnable {
		return notice{}
	}
	n := notice{group: g.Name}
	for _, m := range g.members {
		n.to = append(n.to, m.Conn)
	}
	return n
}

func (r *Registry) send(notices []notice) {
	for _, n := range notices {
		for _, c := range n.to {
			cmd := protocol.NewRequest(&protocol.NotifyConsumerIDsChangedRequest{ConsumerGroup: n.group}, nil)
			if err := c.InvokeOneway(cmd); err != nil {
				r.logger.Debug("consumer not told of a change", "group", n.group, "remote", c.RemoteAddr().String(), "error", err)
			}
		}
	}
}
