package topic

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"

	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/protocol"
)

// fileName and document are RocketMQ's topics.json (PROTOCOL §5.6).
const fileName = "topics.json"

type document struct {
	DataVersion protocol.DataVersion `json:"dataVersion"`
	Topics      map[string]*Config   `json:"topicConfigTable"`
}

func load(files Files) (*Snapshot, error) {
	s := &Snapshot{Topics: map[string]*Config{}}
	content, err := files.ReadConfigFile(fileName)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(content) == 0 {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", fileName, err)
	}
	var d document
	if err := fastjson.Unmarshal(content, &d); err != nil {
		return nil, fmt.Errorf("read %s: %w", fileName, err)
	}
	s.Version = d.DataVersion
	for name, c := range d.Topics {
		if c == nil {
			continue
		}
		c.Name = name
		s.Topics[name] = normal(*c)
	}
	return s, nil
}

func save(files Files, s *Snapshot) error {
	content, err := fastjson.MarshalIndent(document{DataVersion: s.Version, Topics: s.Topics})
	if err != nil {
		return fmt.Errorf("write %s: %w", fileName, err)
	}
	if err := files.WriteConfigFile(fileName, content); err != nil {
		return fmt.Errorf("write %s: %w", fileName, err)
	}
	return nil
}

// EnsureSystem makes the topics that a broker has from its start (PROTOCOL §5.6) and remembers their names as system
// topics. With automatic creation off a template left by an earlier configuration goes, so that no route advertises it.
func (t *Table) EnsureSystem(cluster, broker string) error {
	systems := t.systemTopics(cluster, broker)
	names := map[string]bool{}
	for _, n := range fixedSystem {
		names[n] = true
	}
	for _, c := range systems {
		names[c.Name] = true
	}
	t.system.Store(&names)
	return t.change(func(topics map[string]*Config) (bool, error) {
		before := len(topics)
		have := maps.Clone(topics)
		for _, c := range systems {
			if topics[c.Name] == nil {
				topics[c.Name] = normal(c)
			}
		}
		if !t.live.Load().AutoCreate {
			delete(topics, Template)
		}
		return len(topics) != before || !maps.Equal(have, topics), nil
	})
}

func (t *Table) systemTopics(cluster, broker string) []Config {
	perm := func(inherit bool) int32 {
		if inherit {
			return PermInherit | PermRead | PermWrite
		}
		return PermInherit
	}
	const rw = PermRead | PermWrite
	list := []Config{
		queues(SelfTest, 1, rw),
		queues(Benchmark, 1024, rw),
		queues(cluster, 16, perm(t.settings.ClusterTopic)),
		queues(broker, 1, perm(t.settings.BrokerTopic)),
		queues(OffsetMoved, 1, rw),
		queues(Schedule, 18, rw),
		queues(cluster+"_REPLY_TOPIC", 1, rw),
		queues(SystemPrefix+"REVIVE_LOG_"+cluster, t.settings.ReviveQueues, rw),
		queues(SystemPrefix+"SYNC_BROKER_MEMBER_"+broker, 1, PermInherit),
		queues(Half, 1, rw),
		queues(OpHalf, 1, rw),
	}
	if t.live.Load().AutoCreate {
		list = append(list, queues(Template, t.settings.DefaultQueues, PermInherit|rw))
	}
	if t.settings.TraceTopic {
		list = append(list, queues(t.settings.TraceTopicName, 1, rw))
	}
	if t.settings.TimerTopic {
		list = append(list, queues(WheelTimer, 1, rw))
	}
	return list
}

func queues(name string, n, perm int32) Config {
	return Config{Name: name, ReadQueues: n, WriteQueues: n, Perm: perm}
}

// System reports whether a name belongs to the broker itself (RocketMQ TopicValidator.isSystemTopic).
func (t *Table) System(name string) bool {
	return (*t.system.Load())[name] || hasPrefix(name, SystemPrefix)
}

// SystemNames lists the system topics of this broker.
func (t *Table) SystemNames() []string {
	out := make([]string, 0, len(*t.system.Load()))
	for n := range *t.system.Load() {
		out = append(out, n)
	}
	return out
}
