package consumequeue

// Offsets holds the next queue offset of each queue, for the one that appends to the log. Not safe for concurrent use:
// it lives under the append lock.
type Offsets struct {
	topics map[string]*topicOffsets
}

type topicOffsets struct {
	dense  []int64         // by queue id
	sparse map[int32]int64 // ids at and above denseIDs
}

// denseIDs bounds what one absurd queue id may cost.
const denseIDs = 4096

// NewOffsets returns an empty table: every queue stands at 0.
func NewOffsets() *Offsets { return &Offsets{topics: map[string]*topicOffsets{}} }

// Next returns the offset that the next record of the queue gets. It does not allocate.
func (o *Offsets) Next(topic string, queueID int32) int64 {
	t := o.topics[topic]
	switch {
	case t == nil || queueID < 0:
		return 0
	case queueID >= denseIDs:
		return t.sparse[queueID]
	case int(queueID) >= len(t.dense):
		return 0
	}
	return t.dense[queueID]
}

// Set makes next the offset of the queue's next record. It allocates only for a queue that it did not know.
func (o *Offsets) Set(topic string, queueID int32, next int64) {
	if queueID < 0 {
		return
	}
	t := o.topics[topic]
	if t == nil {
		t = &topicOffsets{}
		o.topics[topic] = t
	}
	if queueID >= denseIDs {
		if t.sparse == nil {
			t.sparse = map[int32]int64{}
		}
		t.sparse[queueID] = next
		return
	}
	if n := int(queueID) + 1; n > len(t.dense) {
		t.dense = append(t.dense, make([]int64, n-len(t.dense))...)
	}
	t.dense[queueID] = next
}

// Raise is Set unless the queue is already further.
func (o *Offsets) Raise(topic string, queueID int32, next int64) {
	if next > o.Next(topic, queueID) {
		o.Set(topic, queueID, next)
	}
}

// Forget drops a topic: its queues stand at 0 again.
func (o *Offsets) Forget(topic string) { delete(o.topics, topic) }

// Reset drops everything.
func (o *Offsets) Reset() { clear(o.topics) }
