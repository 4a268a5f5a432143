// Package group holds the subscription-group table, its persistence (config/subscriptionGroup.json) and the requests about groups.
package group

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/protocol"
)

// Config is one consumer group's configuration (RocketMQ SubscriptionGroupConfig, PROTOCOL §3.16 code 201).
type Config struct {
	Name                   string            `json:"groupName"`
	ConsumeEnable          bool              `json:"consumeEnable"`
	ConsumeFromMinEnable   bool              `json:"consumeFromMinEnable"`
	ConsumeBroadcastEnable bool              `json:"consumeBroadcastEnable"`
	ConsumeMessageOrderly  bool              `json:"consumeMessageOrderly"`
	RetryQueueNums         int32             `json:"retryQueueNums"`
	RetryMaxTimes          int32             `json:"retryMaxTimes"`
	RetryPolicy            fastjson.Raw      `json:"groupRetryPolicy,omitempty"` // kept as it is; only POP uses it
	BrokerID               int64             `json:"brokerId"`
	WhichBrokerWhenSlow    int64             `json:"whichBrokerWhenConsumeSlowly"`
	NotifyIDsChangedEnable bool              `json:"notifyConsumerIdsChangedEnable"`
	SysFlag                int32             `json:"groupSysFlag"`
	ConsumeTimeoutMinute   int32             `json:"consumeTimeoutMinute"`
	Subscriptions          fastjson.Raw      `json:"subscriptionDataSet,omitempty"` // static subscriptions, kept as they are
	Attributes             map[string]string `json:"attributes"`
}

// Default is the configuration of a group that nobody configured.
func Default(name string) Config {
	return Config{
		Name: name, ConsumeEnable: true, ConsumeFromMinEnable: true, ConsumeBroadcastEnable: true,
		RetryQueueNums: 1, RetryMaxTimes: 16, WhichBrokerWhenSlow: 1, NotifyIDsChangedEnable: true, ConsumeTimeoutMinute: 15,
	}
}

// read makes a configuration of its JSON object; what the text leaves out has its default.
func read(text fastjson.Raw) (Config, error) {
	c := Default("")
	err := fastjson.Unmarshal(text, &c)
	return c, err
}

// The groups every broker has from its start (SubscriptionGroupManager.init).
var systemGroups = []string{
	"TOOLS_CONSUMER", "FILTERSRV_CONSUMER", "SELF_TEST_C_GROUP", "CID_ONS-HTTP-PROXY", "CID_ONSAPI_PULL",
	"CID_ONSAPI_PERMISSION", "CID_ONSAPI_OWNER", TransactionGroup,
}

// TransactionGroup holds the progress of the transaction check on the half topic and its op topic.
const TransactionGroup = "CID_RMQ_SYS_TRANS"

// systemPrefix starts the names of groups of the broker's own (MixAll.CID_RMQ_SYS_PREFIX).
const systemPrefix = "CID_RMQ_SYS_"

// NameBytesMax bounds a group name (RocketMQ TopicValidator.validateGroup).
const NameBytesMax = 255

// readForbidden is the bit of the forbidden table that closes reading (PermName.INDEX_PERM_READ).
const readForbidden = 1 << 2

// Files keeps small files under config/ (store.Store).
type Files interface {
	ReadConfigFile(name string) ([]byte, error)
	WriteConfigFile(name string, content []byte) error
}

// Reloadable are the configuration keys about groups; all may change while the broker runs.
type Reloadable struct {
	AutoCreate    bool `conf:"autoCreateSubscriptionGroup,important"`
	SplitMetadata bool `conf:"enableSplitMetadata"`
	SplitSize     int  `conf:"splitMetadataSize" bounds:"1..1000000"`
}

// DefaultReloadable are RocketMQ's defaults.
func DefaultReloadable() Reloadable {
	return Reloadable{AutoCreate: true, SplitMetadata: true, SplitSize: 2000}
}

// Snapshot is the table at one moment. It is immutable.
type Snapshot struct {
	Version   protocol.DataVersion
	Groups    map[string]*Config
	Forbidden map[string]map[string]int32 // group, topic: bits
}

// Table is safe for concurrent use. A *Config handed out is immutable. Lookups take no lock; changes are made one at a
// time, and each is on disk before it can be seen.
type Table struct {
	live    atomic.Pointer[Reloadable]
	files   Files
	now     func() time.Time
	logger  *slog.Logger
	current atomic.Pointer[Snapshot]
	turn    chan struct{} // held by the one change being made
}

// Open reads config/subscriptionGroup.json and adds the groups every broker has.
func Open(live Reloadable, files Files, now func() time.Time, logger *slog.Logger) (*Table, error) {
	t := &Table{files: files, now: now, logger: logger, turn: make(chan struct{}, 1)}
	t.live.Store(&live)
	s, err := load(files)
	if err != nil {
		return nil, err
	}
	for _, name := range systemGroups {
		if s.Groups[name] == nil {
			c := Default(name)
			s.Groups[name] = normal(c)
		}
	}
	t.current.Store(s)
	return t, nil
}

// Reload replaces the keys that may change at run time.
func (t *Table) Reload(r Reloadable) { t.live.Store(&r) }

// Snapshot returns the table as it is now.
func (t *Table) Snapshot() *Snapshot { return t.current.Load() }

// Lookup finds a group without allocating; nil when unknown.
func (t *Table) Lookup(name []byte) *Config { return t.current.Load().Groups[string(name)] }

// Find returns a group, and creates it when autoCreateSubscriptionGroup allows or it is one of the broker's own; nil when
// not. A new group is on disk before it is returned.
func (t *Table) Find(name string) *Config {
	if c := t.current.Load().Groups[name]; c != nil {
		return c
	}
	if !t.live.Load().AutoCreate && !System(name) || CheckName(name) != nil {
		return nil
	}
	err := t.change(func(s *Snapshot) (bool, error) {
		if s.Groups[name] != nil {
			return false, nil
		}
		s.Groups[name] = normal(Default(name))
		return true, nil
	})
	if err != nil {
		t.logger.Error("subscription group not created", "group", name, "error", err)
		return nil
	}
	return t.current.Load().Groups[name]
}

// Put creates or replaces; it persists before it returns.
func (t *Table) Put(c Config) error { return t.PutAll([]Config{c}) }

// PutAll is Put for several groups in one change.
func (t *Table) PutAll(cs []Config) error {
	return t.change(func(s *Snapshot) (bool, error) {
		for i := range cs {
			next := cs[i]
			have := s.Groups[next.Name]
			attributes, err := alterAttributes(have, next.Attributes)
			if err != nil {
				return false, err
			}
			next.Attributes = attributes
			s.Groups[next.Name] = normal(next)
		}
		return len(cs) > 0, nil
	})
}

// Delete removes a group and what was forbidden to it; it persists before it returns.
func (t *Table) Delete(name string) error {
	return t.change(func(s *Snapshot) (bool, error) {
		_, there := s.Groups[name]
		_, forbidden := s.Forbidden[name]
		delete(s.Groups, name)
		delete(s.Forbidden, name)
		return there || forbidden, nil
	})
}

// All returns a snapshot sorted by name.
func (t *Table) All() []*Config {
	groups := t.current.Load().Groups
	out := make([]*Config, 0, len(groups))
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		out = append(out, groups[name])
	}
	return out
}

// ReadForbidden reports whether a group may not read a topic (UPDATE_AND_GET_GROUP_FORBIDDEN). It does not allocate.
func (t *Table) ReadForbidden(group, topic []byte) bool {
	return t.current.Load().Forbidden[string(group)][string(topic)]&readForbidden != 0
}

// SetReadForbidden closes or opens a topic for a group; it persists before it returns.
func (t *Table) SetReadForbidden(group, topic string, forbidden bool) error {
	return t.change(func(s *Snapshot) (bool, error) {
		old := s.Forbidden[group][topic]
		bits := old &^ readForbidden
		if forbidden {
			bits |= readForbidden
		}
		if bits == old {
			return false, nil
		}
		topics := maps.Clone(s.Forbidden[group])
		if topics == nil {
			topics = map[string]int32{}
		}
		topics[topic] = bits
		if bits == 0 {
			delete(topics, topic)
		}
		s.Forbidden[group] = topics
		if len(topics) == 0 {
			delete(s.Forbidden, group)
		}
		return true, nil
	})
}

// change makes one change: it is applied to a copy, written to disk, and only then seen.
func (t *Table) change(fn func(s *Snapshot) (changed bool, err error)) error {
	return t.changeTo(fn, func(old protocol.DataVersion) protocol.DataVersion { return old.Next(t.now()) })
}

// changeTo is change with a version of the caller's.
func (t *Table) changeTo(fn func(s *Snapshot) (changed bool, err error), version func(old protocol.DataVersion) protocol.DataVersion) error {
	t.turn <- struct{}{}
	defer func() { <-t.turn }()
	old := t.current.Load()
	next := &Snapshot{Groups: maps.Clone(old.Groups), Forbidden: maps.Clone(old.Forbidden)}
	changed, err := fn(next)
	if err != nil || !changed {
		return err
	}
	next.Version = version(old.Version)
	if err := save(t.files, next); err != nil {
		return err
	}
	t.current.Store(next)
	return nil
}

func normal(c Config) *Config {
	if c.Attributes == nil {
		c.Attributes = map[string]string{}
	}
	if len(c.RetryPolicy) == 0 {
		c.RetryPolicy = fastjson.Raw(`{"type":"CUSTOMIZED"}`)
	}
	return &c
}

// System reports whether a group is one of the broker's own.
func System(name string) bool { return strings.HasPrefix(name, systemPrefix) }

// CheckName tells why a name cannot be a consumer group: 1 to 255 bytes of letters, digits and %|_-.
func CheckName(name string) error {
	if name == "" {
		return errors.New("group: name is blank")
	}
	if len(name) > NameBytesMax {
		return fmt.Errorf("group: name has %d bytes, at most %d are allowed", len(name), NameBytesMax)
	}
	for i := range len(name) {
		c := name[i]
		if c != '%' && c != '|' && c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return fmt.Errorf("group: name %q contains illegal characters, allowing only %%|a-zA-Z0-9_-", name)
		}
	}
	return nil
}

// queuesMax and retriesMax bound the numbers of a group; RocketMQ has no bound, and a mistyped number of queues would fill the disk.
const queuesMax, retriesMax = 65536, 1 << 20

// check holds a group that an operator asks for against the rules of names and numbers.
func check(c *Config) error {
	if err := CheckName(c.Name); err != nil {
		return err
	}
	if c.RetryQueueNums < 0 || c.RetryQueueNums > queuesMax {
		return fmt.Errorf("group: retryQueueNums must be from 0 to %d, not %d", queuesMax, c.RetryQueueNums)
	}
	if c.RetryMaxTimes < -1 || c.RetryMaxTimes > retriesMax {
		return fmt.Errorf("group: retryMaxTimes must be from -1 to %d, not %d", retriesMax, c.RetryMaxTimes)
	}
	return nil
}

// fileName and document are RocketMQ's subscriptionGroup.json (PROTOCOL §5.6).
const fileName = "subscriptionGroup.json"

type document struct {
	DataVersion protocol.DataVersion        `json:"dataVersion"`
	Forbidden   map[string]map[string]int32 `json:"forbiddenTable"`
	Groups      map[string]*Config          `json:"subscriptionGroupTable"`
}

func load(files Files) (*Snapshot, error) {
	s := &Snapshot{Groups: map[string]*Config{}, Forbidden: map[string]map[string]int32{}}
	content, err := files.ReadConfigFile(fileName)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(content) == 0 {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", fileName, err)
	}
	var d struct {
		DataVersion protocol.DataVersion        `json:"dataVersion"`
		Forbidden   map[string]map[string]int32 `json:"forbiddenTable"`
		Groups      map[string]fastjson.Raw     `json:"subscriptionGroupTable"`
	}
	if err := fastjson.Unmarshal(content, &d); err != nil {
		return nil, fmt.Errorf("read %s: %w", fileName, err)
	}
	s.Version = d.DataVersion
	for name, text := range d.Groups {
		c, err := read(text)
		if err != nil {
			return nil, fmt.Errorf("read %s: group %s: %w", fileName, name, err)
		}
		c.Name = name
		s.Groups[name] = normal(c)
	}
	maps.Copy(s.Forbidden, d.Forbidden)
	return s, nil
}

func save(files Files, s *Snapshot) error {
	content, err := fastjson.MarshalIndent(document{DataVersion: s.Version, Forbidden: s.Forbidden, Groups: s.Groups})
	if err != nil {
		return fmt.Errorf("write %s: %w", fileName, err)
	}
	if err := files.WriteConfigFile(fileName, content); err != nil {
		return fmt.Errorf("write %s: %w", fileName, err)
	}
	return nil
}

// alterAttributes applies the signed changes of a request (RocketMQ AttributeUtil). RocketMQ knows no group attribute that
// this broker serves, so only removals and plain copies of what is there pass.
func alterAttributes(have *Config, changes map[string]string) (map[string]string, error) {
	next := map[string]string{}
	if have != nil {
		next = maps.Clone(have.Attributes)
	}
	for key, value := range changes {
		switch {
		case strings.HasPrefix(key, "-"):
			delete(next, key[1:])
		case next[strings.TrimPrefix(key, "+")] == value:
		default:
			return nil, fmt.Errorf("group: attribute %q is not served by this broker", key)
		}
	}
	return next, nil
}
