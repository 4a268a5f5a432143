package route

import (
	"fmt"

	"github.com/quorate/quorate/protocol"
)

// DeleteTopic forgets a topic, on the brokers of one cluster only unless cluster is "".
func (t *Table) DeleteTopic(topic, cluster string) {
	for name := range t.topics[topic] {
		if _, in := t.clusters[cluster][name]; cluster == "" || in {
			t.dropQueues(topic, name)
		}
	}
}

// RegisterTopic adds the queues of one topic on brokers that are known; an unknown broker refuses all.
func (t *Table) RegisterTopic(topic string, queues []protocol.QueueData) error {
	if !ValidName(topic) {
		return fmt.Errorf("topic %q: %w", topic, ErrName)
	}
	if t.topics[topic] == nil && len(t.topics) >= t.cfg.TopicsMax {
		return ErrFull
	}
	for _, q := range queues {
		if t.groups[q.BrokerName] == nil {
			return fmt.Errorf("broker %q is not registered", q.BrokerName)
		}
	}
	for _, q := range queues {
		t.putQueues(topic, q)
	}
	return nil
}

// WipeWrite takes the write bit from all queues of a broker, AddWrite makes them readable and writable; both return how
// many topics it concerned. A later registration whose version changed sets them as the broker says.
func (t *Table) WipeWrite(name string) int {
	return t.setPerm(name, func(perm int32) int32 { return perm &^ protocol.PermWrite })
}

// AddWrite is told with WipeWrite.
func (t *Table) AddWrite(name string) int {
	return t.setPerm(name, func(int32) int32 { return protocol.PermRead | protocol.PermWrite })
}

func (t *Table) setPerm(name string, perm func(int32) int32) (topics int) {
	for _, queues := range t.topics {
		if q, has := queues[name]; has {
			q.Perm = perm(q.Perm)
			queues[name] = q
			topics++
		}
	}
	return topics
}
