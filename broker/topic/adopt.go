package topic

import (
	"fmt"

	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/protocol"
)

// Adopt takes the topics of a master's answer to GET_ALL_TOPIC_CONFIG, and its version. A topic that the answer does not
// mention stays: a peer that knows less has lost something more often than somebody deleted it (I23). It reports whether
// anything was new.
func (t *Table) Adopt(content []byte) (bool, error) {
	var d document
	if err := fastjson.Unmarshal(content, &d); err != nil {
		return false, fmt.Errorf("topics of the master: %w", err)
	}
	if len(d.Topics) == 0 || d.DataVersion == t.Snapshot().Version {
		return false, nil
	}
	before := t.Snapshot().Change
	err := t.changeTo(func(topics map[string]*Config) (bool, error) {
		changed := false
		for name, c := range d.Topics {
			if c == nil {
				continue
			}
			if err := CheckName(name); err != nil {
				return false, fmt.Errorf("topics of the master: %q: %w", name, err)
			}
			if max(c.ReadQueues, c.WriteQueues) > QueuesMax || min(c.ReadQueues, c.WriteQueues) < 0 {
				return false, fmt.Errorf("topics of the master: %q has %d read and %d write queues", name, c.ReadQueues, c.WriteQueues)
			}
			c.Name = name
			next := normal(*c)
			if have := topics[name]; have == nil || !equal(have, next) {
				topics[name], changed = next, true
			}
		}
		return changed, nil
	}, func(protocol.DataVersion) protocol.DataVersion { return d.DataVersion })
	return t.Snapshot().Change > before, err
}
