// Package offset holds consumer progress, its persistence (config/consumerOffset.json) and the requests about offsets.
package offset

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/protocol"
)

// Limits of the table.
const (
	queueIDMax = 1 << 16 // queue ids beyond are refused: the table is indexed by them
	unset      = int64(-1)
)

// Table is safe for concurrent use; queries and commits of known queues do not allocate.
type Table struct {
	files Files
	now   func() time.Time
	step  int64 // consumerOffsetUpdateVersionStep

	mu       sync.RWMutex
	progress map[string]map[string]*progress // topic → group
	resets   map[resetKey]int64

	changes   atomic.Int64 // commits since start; every step-th one bumps the data version
	persisted atomic.Int64 // changes at the last Persist
	version   atomic.Pointer[protocol.DataVersion]
	saving    sync.Mutex // one Persist at a time
}

// Files is where the table persists (store.Store).
type Files interface {
	ReadConfigFile(name string) ([]byte, error)
	WriteConfigFile(name string, content []byte) error
}

type resetKey struct {
	group, topic string
	queueID      int32
}

// progress is one group's progress on one topic. Slices grow by copy under the table's lock; values are atomic.
type progress struct {
	committed atomic.Pointer[[]*queue]
}

// queue is the progress on one queue.
type queue struct{ committed, pulled atomic.Int64 }

// NewTable makes an empty table. versionStep is consumerOffsetUpdateVersionStep, at least 1.
func NewTable(files Files, versionStep int64, now func() time.Time) *Table {
	t := &Table{
		files: files, now: now, step: max(versionStep, 1),
		progress: map[string]map[string]*progress{}, resets: map[resetKey]int64{},
	}
	t.version.Store(&protocol.DataVersion{Timestamp: now().UnixMilli()})
	return t
}

// find returns the queue's progress, or nil.
func (t *Table) find(group, topic string, queueID int32) *queue {
	t.mu.RLock()
	p := t.progress[topic][group]
	t.mu.RUnlock()
	return p.at(queueID)
}

func (p *progress) at(queueID int32) *queue {
	if p == nil || queueID < 0 {
		return nil
	}
	queues := p.committed.Load()
	if queues == nil || int(queueID) >= len(*queues) {
		return nil
	}
	return (*queues)[queueID]
}

// make returns the queue's progress, adding it if it is new; nil for a queue id out of bounds.
func (t *Table) make(group, topic string, queueID int32) *queue {
	if q := t.find(group, topic, queueID); q != nil {
		return q
	}
	if queueID < 0 || queueID >= queueIDMax {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	groups := t.progress[topic]
	if groups == nil {
		groups = map[string]*progress{}
		t.progress[topic] = groups
	}
	p := groups[group]
	if p == nil {
		p = &progress{}
		groups[group] = p
	}
	if q := p.at(queueID); q != nil {
		return q
	}
	var queues []*queue
	if old := p.committed.Load(); old != nil {
		queues = slices.Clone(*old)
	}
	for int(queueID) >= len(queues) {
		queues = append(queues, nil)
	}
	q := &queue{}
	q.committed.Store(unset)
	q.pulled.Store(unset)
	queues[queueID] = q
	p.committed.Store(&queues)
	return q
}

// Query returns the committed offset, or −1.
func (t *Table) Query(group, topic string, queueID int32) int64 {
	if q := t.find(group, topic, queueID); q != nil {
		return q.committed.Load()
	}
	return unset
}

// Pulled returns the next offset of the group's last pull, or −1.
func (t *Table) Pulled(group, topic string, queueID int32) int64 {
	if q := t.find(group, topic, queueID); q != nil {
		return q.pulled.Load()
	}
	return unset
}

// Commit stores an offset. An offset below 0 or a queue id out of bounds is ignored. It reports by how much the group
// moved back (0 when it did not), so that the caller can log and count it (CASES 94).
func (t *Table) Commit(group, topic string, queueID int32, offset int64) (movedBack int64) {
	if offset < 0 {
		return 0
	}
	q := t.make(group, topic, queueID)
	if q == nil {
		return 0
	}
	old := q.committed.Swap(offset)
	if n := t.changes.Add(1); n%t.step == 0 {
		t.bumpVersion()
	}
	return max(0, old-offset)
}

// CommitPull stores the pull position (in memory only).
func (t *Table) CommitPull(group, topic string, queueID int32, offset int64) {
	if offset < 0 {
		return
	}
	if q := t.make(group, topic, queueID); q != nil {
		q.pulled.Store(offset)
	}
}

// MergeMax raises the committed offset to offset if that is greater: progress learnt from another broker never moves a
// group back, whatever the age of either side (I17, I18).
func (t *Table) MergeMax(group, topic string, queueID int32, offset int64) {
	q := t.make(group, topic, queueID)
	if q == nil {
		return
	}
	for old := q.committed.Load(); offset > old; old = q.committed.Load() {
		if q.committed.CompareAndSwap(old, offset) {
			t.changes.Add(1)
			return
		}
	}
}

// SetReset makes offset the target of the group's next pull of that queue and its committed offset (PROTOCOL §3.6).
func (t *Table) SetReset(group, topic string, queueID int32, offset int64) {
	t.Commit(group, topic, queueID, offset)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.resets[resetKey{group, topic, queueID}] = offset
}

// PendingReset reports whether a server-side reset waits for the group's next pull.
func (t *Table) PendingReset(group, topic string, queueID int32) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	_, ok := t.resets[resetKey{group, topic, queueID}]
	return ok
}

// TakeReset returns and forgets a server-side reset target, or −1, false.
func (t *Table) TakeReset(group, topic string, queueID int32) (int64, bool) {
	key := resetKey{group, topic, queueID}
	t.mu.RLock()
	pending := len(t.resets) > 0
	t.mu.RUnlock()
	if !pending {
		return unset, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	offset, ok := t.resets[key]
	if !ok {
		return unset, false
	}
	delete(t.resets, key)
	return offset, true
}

// Groups lists groups with committed progress on a topic, sorted.
func (t *Table) Groups(topic string) []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var groups []string
	for g, p := range t.progress[topic] {
		if len(p.offsets()) > 0 {
			groups = append(groups, g)
		}
	}
	slices.Sort(groups)
	return groups
}

// Topics lists the topics on which a group has committed progress, sorted.
func (t *Table) Topics(group string) []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var topics []string
	for topic, groups := range t.progress {
		if p := groups[group]; p != nil && len(p.offsets()) > 0 {
			topics = append(topics, topic)
		}
	}
	slices.Sort(topics)
	return topics
}

// Offsets returns a group's committed offsets on a topic by queue id.
func (t *Table) Offsets(group, topic string) map[int32]int64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.progress[topic][group].offsets()
}

func (p *progress) offsets() map[int32]int64 {
	found := map[int32]int64{}
	if p == nil {
		return found
	}
	if queues := p.committed.Load(); queues != nil {
		for id, q := range *queues {
			if q != nil && q.committed.Load() >= 0 {
				found[int32(id)] = q.committed.Load()
			}
		}
	}
	return found
}

// RemoveTopic forgets all progress on a topic, pending resets included.
func (t *Table) RemoveTopic(topic string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.progress, topic)
	maps.DeleteFunc(t.resets, func(k resetKey, _ int64) bool { return k.topic == topic })
	t.changes.Add(1)
}

// RemoveGroup forgets all progress of a group, pending resets included.
func (t *Table) RemoveGroup(group string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, groups := range t.progress {
		delete(groups, group)
	}
	maps.DeleteFunc(t.resets, func(k resetKey, _ int64) bool { return k.group == group })
	t.changes.Add(1)
}

func (t *Table) bumpVersion() {
	old := t.version.Load()
	t.version.Store(&protocol.DataVersion{Counter: old.Counter + 1, StateVersion: old.StateVersion, Timestamp: t.now().UnixMilli()})
}
