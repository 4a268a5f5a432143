// Package topic holds the broker's topic table, its persistence (config/topics.json) and the requests about topics. What
// the NameServers know of it is the registrar's business, which waits on Table.Changes.
package topic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/watermark"
	"github.com/quorate/quorate/protocol"
)

// Config is one topic's configuration (RocketMQ TopicConfig); JSON names are the wire's.
type Config struct {
	Name        string            `json:"topicName"`
	ReadQueues  int32             `json:"readQueueNums"`
	WriteQueues int32             `json:"writeQueueNums"`
	Perm        int32             `json:"perm"`
	FilterType  string            `json:"topicFilterType"`
	SysFlag     int32             `json:"topicSysFlag"`
	Order       bool              `json:"order"`
	Attributes  map[string]string `json:"attributes"`
}

// Filter types of a topic (RocketMQ TopicFilterType).
const (
	SingleTag = "SINGLE_TAG"
	MultiTag  = "MULTI_TAG"
)

// QueuesMax bounds the queues of one topic; RocketMQ has no bound, and a mistyped number would fill the disk with files.
const QueuesMax = 65536

// Files keeps small files under config/ (store.Store).
type Files interface {
	ReadConfigFile(name string) ([]byte, error)
	WriteConfigFile(name string, content []byte) error
}

// Settings are the configuration keys about topics that need a restart.
type Settings struct {
	DefaultQueues  int32  `conf:"defaultTopicQueueNums" bounds:"1..65536"`
	ClusterTopic   bool   `conf:"clusterTopicEnable"`
	BrokerTopic    bool   `conf:"brokerTopicEnable"`
	TraceTopic     bool   `conf:"traceTopicEnable"`
	TraceTopicName string `conf:"msgTraceTopicName"`
	ReviveQueues   int32  `conf:"reviveQueueNum" bounds:"1..65536"`
	TimerTopic     bool   `conf:"timerWheelEnable"`
}

// Reloadable are the keys about topics that may change while the broker runs.
type Reloadable struct {
	AutoCreate    bool `conf:"autoCreateTopicEnable,important"`
	GuardSystem   bool `conf:"validateSystemTopicWhenUpdateTopic"`
	MixedType     bool `conf:"enableMixedMessageType"`
	SplitMetadata bool `conf:"enableSplitMetadata"`
	SplitSize     int  `conf:"splitMetadataSize" bounds:"1..1000000"`
}

// DefaultSettings are RocketMQ's defaults.
func DefaultSettings() Settings {
	return Settings{
		DefaultQueues: 8, ClusterTopic: true, BrokerTopic: true, TraceTopicName: TraceDefault, ReviveQueues: 8, TimerTopic: true,
	}
}

// DefaultReloadable are RocketMQ's defaults.
func DefaultReloadable() Reloadable {
	return Reloadable{AutoCreate: true, GuardSystem: true, SplitMetadata: true, SplitSize: 2000}
}

// Validate names the first setting out of its bounds.
func (s Settings) Validate() error {
	if s.DefaultQueues < 1 || s.DefaultQueues > QueuesMax {
		return fmt.Errorf("defaultTopicQueueNums=%d: must be from 1 to %d", s.DefaultQueues, QueuesMax)
	}
	if s.ReviveQueues < 1 || s.ReviveQueues > QueuesMax {
		return fmt.Errorf("reviveQueueNum=%d: must be from 1 to %d", s.ReviveQueues, QueuesMax)
	}
	if err := CheckName(s.TraceTopicName); err != nil {
		return fmt.Errorf("msgTraceTopicName=%q: %w", s.TraceTopicName, err)
	}
	return nil
}

// Errors of creations on send.
var (
	ErrAutoCreateOff = errors.New("topic: automatic creation is off")
	ErrNoQueues      = errors.New("topic: a topic needs at least one queue")
	ErrNoTemplate    = errors.New("topic: the template topic does not exist or may not be inherited")
)

// Snapshot is the table at one moment. It is immutable. Change counts changes since the start of the process.
type Snapshot struct {
	Version protocol.DataVersion
	Topics  map[string]*Config
	Change  int64
}

// Table is safe for concurrent use. A *Config handed out is immutable: changes replace it. Lookups take no lock; changes
// are made one at a time, and each is on disk before it can be seen.
type Table struct {
	settings Settings
	live     atomic.Pointer[Reloadable]
	files    Files
	now      func() time.Time
	system   atomic.Pointer[map[string]bool]
	current  atomic.Pointer[Snapshot]
	changes  watermark.Watermark
	turn     chan struct{} // held by the one change being made; a channel, since file writes happen under it
}

// Open reads config/topics.json. A table that was never written is empty.
func Open(settings Settings, live Reloadable, files Files, now func() time.Time) (*Table, error) {
	t := &Table{settings: settings, files: files, now: now, turn: make(chan struct{}, 1)}
	t.live.Store(&live)
	t.system.Store(&map[string]bool{})
	s, err := load(files)
	if err != nil {
		return nil, err
	}
	t.current.Store(s)
	return t, nil
}

// Reload replaces the keys that may change at run time.
func (t *Table) Reload(r Reloadable) { t.live.Store(&r) }

// Changes counts the changes made: the registrar waits on it. Snapshot.Change is the same count.
func (t *Table) Changes() *watermark.Watermark { return &t.changes }

// Snapshot returns the table as it is now.
func (t *Table) Snapshot() *Snapshot { return t.current.Load() }

// Lookup finds a topic by name bytes without allocating; nil when unknown.
func (t *Table) Lookup(name []byte) *Config { return t.current.Load().Topics[string(name)] }

// Get finds a topic; nil when unknown.
func (t *Table) Get(name string) *Config { return t.current.Load().Topics[name] }

// All returns a snapshot sorted by name.
func (t *Table) All() []*Config {
	topics := t.current.Load().Topics
	out := make([]*Config, 0, len(topics))
	for _, name := range slices.Sorted(maps.Keys(topics)) {
		out = append(out, topics[name])
	}
	return out
}

// CreateOnSend makes a topic from its template as a send does (PROTOCOL §3.1), on disk before it returns. A retry topic
// needs no template. With automatic creation off nothing is made from any template, since each that could be inherited
// would be a way around the switch. RocketMQ makes a topic without queues when asked to, which nobody can send to until an
// administrator finds it; here that is ErrNoQueues.
func (t *Table) CreateOnSend(name, template string, queues, sysFlag int32) (*Config, error) {
	if c := t.Get(name); c != nil {
		return c, nil
	}
	if err := CheckName(name); err != nil {
		return nil, err
	}
	if strings.HasPrefix(name, RetryPrefix) {
		return t.Ensure(Config{Name: name, ReadQueues: 1, WriteQueues: 1, Perm: PermRead | PermWrite, SysFlag: sysFlag})
	}
	if !t.live.Load().AutoCreate {
		return nil, ErrAutoCreateOff
	}
	from := t.Get(template)
	if from == nil || from.Perm&PermInherit == 0 {
		return nil, ErrNoTemplate
	}
	n := min(queues, from.WriteQueues)
	if n < 1 {
		return nil, ErrNoQueues
	}
	return t.Ensure(Config{
		Name: name, ReadQueues: n, WriteQueues: n, Perm: from.Perm &^ PermInherit, FilterType: from.FilterType, SysFlag: sysFlag,
	})
}

// Ensure makes an internal topic (retry, dead letter, system) if it is missing, and returns the one that is there.
func (t *Table) Ensure(c Config) (*Config, error) {
	if have := t.Get(c.Name); have != nil {
		return have, nil
	}
	if err := t.EnsureAll([]Config{c}); err != nil {
		return nil, err
	}
	return t.Get(c.Name), nil
}

// EnsureAll makes the missing ones of several topics in one change.
func (t *Table) EnsureAll(cs []Config) error {
	return t.change(func(topics map[string]*Config) (bool, error) {
		changed := false
		for i := range cs {
			if topics[cs[i].Name] == nil {
				changed = true
				topics[cs[i].Name] = normal(cs[i])
			}
		}
		return changed, nil
	})
}

// Put creates or replaces; a topic that already is as wanted is no change. It persists before it returns.
func (t *Table) Put(c Config) error { return t.PutAll([]Config{c}) }

// PutAll is Put for several topics in one change.
func (t *Table) PutAll(cs []Config) error {
	return t.change(func(topics map[string]*Config) (bool, error) {
		changed := false
		for i := range cs {
			next := normal(cs[i])
			if have := topics[next.Name]; have == nil || !equal(have, next) {
				changed = true
				topics[next.Name] = next
			}
		}
		return changed, nil
	})
}

// Delete removes a topic; one that is not there is no change. It persists before it returns.
func (t *Table) Delete(name string) error {
	return t.change(func(topics map[string]*Config) (bool, error) {
		_, there := topics[name]
		delete(topics, name)
		return there, nil
	})
}

// MarkOrdered marks the named topics as ordered: the NameServer's ORDER_TOPIC_CONFIG as a registration returns it. Others
// keep their mark, since it may have been set at this broker alone.
func (t *Table) MarkOrdered(names []string) error {
	unmarked := func(name string) bool { c := t.Get(name); return c != nil && !c.Order }
	if !slices.ContainsFunc(names, unmarked) {
		return nil
	}
	return t.change(func(topics map[string]*Config) (bool, error) {
		changed := false
		for _, name := range names {
			if c := topics[name]; c != nil && !c.Order {
				next := *c
				next.Order = true
				topics[name], changed = &next, true
			}
		}
		return changed, nil
	})
}

// alter replaces one topic by what fn makes of it (nil when it is new).
func (t *Table) alter(name string, fn func(have *Config) (*Config, error)) error {
	return t.change(func(topics map[string]*Config) (bool, error) {
		have := topics[name]
		next, err := fn(have)
		if err != nil {
			return false, err
		}
		next = normal(*next)
		if have != nil && equal(have, next) {
			return false, nil
		}
		topics[name] = next
		return true, nil
	})
}

// change makes one change: it is applied to a copy, written to disk, and only then seen.
func (t *Table) change(fn func(topics map[string]*Config) (changed bool, err error)) error {
	return t.changeTo(fn, func(old protocol.DataVersion) protocol.DataVersion { return old.Next(t.now()) })
}

// changeTo is change with a version of the caller's.
func (t *Table) changeTo(fn func(topics map[string]*Config) (changed bool, err error), version func(old protocol.DataVersion) protocol.DataVersion) error {
	t.turn <- struct{}{}
	defer func() { <-t.turn }()
	old := t.current.Load()
	topics := maps.Clone(old.Topics)
	changed, err := fn(topics)
	if err != nil || !changed {
		return err
	}
	next := &Snapshot{Version: version(old.Version), Topics: topics, Change: old.Change + 1}
	if err := save(t.files, next); err != nil {
		return err
	}
	t.current.Store(next)
	t.changes.Advance(next.Change)
	return nil
}

// Wait blocks until the table has changed more than count times since the start.
func (t *Table) Wait(ctx context.Context, count int64) error { return t.changes.Wait(ctx, count+1) }

// normal fills what a topic must have.
func normal(c Config) *Config {
	if c.FilterType == "" {
		c.FilterType = SingleTag
	}
	if c.Attributes == nil {
		c.Attributes = map[string]string{}
	}
	return &c
}

func equal(a, b *Config) bool {
	return a.Name == b.Name && a.ReadQueues == b.ReadQueues && a.WriteQueues == b.WriteQueues && a.Perm == b.Perm &&
		a.FilterType == b.FilterType && a.SysFlag == b.SysFlag && a.Order == b.Order && maps.Equal(a.Attributes, b.Attributes)
}
