package store

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/store/commitlog"
)

// Appended is where an append landed. For a batch: the first record's offsets and Count records.
type Appended struct {
	Begin, End     int64 // physical offsets, end exclusive
	QueueOffset    int64
	StoreTimestamp int64
	Count          int
	RecordOffsets  []int64 // physical offset of each record of a batch; nil for a single message
}

// Append assigns offsets under the append lock and copies m into the log. allowed is called under that lock before a byte
// is taken; its error is returned as it is. Append does not wait for any flush, and has the bytes written out soon. It does
// not allocate.
func (s *Store) Append(m *message.Message, allowed func() error) (Appended, error) {
	at, err := s.Stage(m, allowed)
	if err == nil {
		s.log.Kick(false)
	}
	return at, err
}

// Stage is Append without having the bytes written out: the caller calls Kick once it has no more to append at hand.
func (s *Store) Stage(m *message.Message, allowed func() error) (Appended, error) {
	if err := s.admit(m.Topic); err != nil {
		return Appended{}, err
	}
	at, err := s.log.Append(m, allowed, s.counter(m.Topic, m.QueueID))
	if err != nil {
		return Appended{}, appendError(err)
	}
	s.appendedBytes.Add(uint64(at.End - at.Begin))
	return Appended{Begin: at.Begin, End: at.End, QueueOffset: at.QueueOffset, StoreTimestamp: at.StoreTimestamp, Count: 1}, nil
}

// AppendBatch appends all messages of one (topic, queue) contiguously, all or none.
func (s *Store) AppendBatch(ms []message.Message, allowed func() error) (Appended, error) {
	if len(ms) == 0 {
		return Appended{}, fmt.Errorf("%w: empty batch", ErrMessageIllegal)
	}
	if err := s.admit(ms[0].Topic); err != nil {
		return Appended{}, err
	}
	offsets := make([]int64, 0, len(ms))
	at, offsets, err := s.log.AppendBatch(ms, allowed, s.counter(ms[0].Topic, ms[0].QueueID), offsets)
	if err != nil {
		return Appended{}, appendError(err)
	}
	s.log.Kick(false)
	s.appendedBytes.Add(uint64(at.End - at.Begin))
	return Appended{
		Begin: at.Begin, End: at.End, QueueOffset: at.QueueOffset, StoreTimestamp: at.StoreTimestamp, Count: at.Count,
		RecordOffsets: offsets,
	}, nil
}

// counter returns what a queue's next record gets. While the clock is behind the log that was found at the start, a queue
// is asked once for its last store time, so that times stay in order.
func (s *Store) counter(topic string, queueID int32) *commitlog.QueueCounter {
	q := s.counters.of(topic, queueID)
	if s.clockBehind && q.Last() == 0 && q.Next() > 0 {
		q.SetLast(max(s.StoreTime(topic, queueID, q.Next()-1), 0))
	}
	return q
}

// Kick has what was staged written out (commitlog.Log.Kick): inline saves a lone request the hop to another goroutine.
func (s *Store) Kick(inline bool) { s.log.Kick(inline) }

// admit checks what can be checked without the append lock.
func (s *Store) admit(topic string) error {
	if !validName(topic) {
		return fmt.Errorf("%w: topic %q cannot name a directory", ErrMessageIllegal, topic)
	}
	return s.refusal()
}

// refusal is why nothing is appended now, or nil.
func (s *Store) refusal() error {
	if err := s.failed.Load(); err != nil {
		return *err
	}
	if err := s.diskFull.Load(); err != nil {
		return *err
	}
	return nil
}

// nameBytesMax is what a file system takes for one name.
const nameBytesMax = 255

// validName tells whether a topic can be a directory of its own.
func validName(topic string) bool {
	return topic != "" && topic != "." && topic != ".." && len(topic) <= nameBytesMax &&
		strings.IndexByte(topic, '/') < 0 && strings.IndexByte(topic, 0) < 0
}

// causes maps errors of the log to the store's; their text stays.
var causes = []struct {
	cause error
	is    []error
}{
	{commitlog.ErrDiskFull, []error{ErrNotWritable, ErrDiskFull}},
	{commitlog.ErrBusy, []error{ErrNotWritable, ErrBusy}},
	{commitlog.ErrWriteFailed, []error{ErrNotWritable}},
	{commitlog.ErrClosed, []error{ErrNotWritable}},
	{commitlog.ErrTooLarge, []error{ErrMessageIllegal}},
	{message.ErrPropertiesTooLong, []error{ErrPropertiesTooLong}},
	{message.ErrTopicIllegal, []error{ErrMessageIllegal}},
	{message.ErrBodyTooLong, []error{ErrMessageIllegal}},
}

func appendError(err error) error {
	for _, c := range causes {
		if errors.Is(err, c.cause) {
			return &refusedError{is: c.is, err: err}
		}
	}
	return err
}

// refusedError is an error of the log that is also one of the store's.
type refusedError struct {
	is  []error
	err error
}

func (e *refusedError) Error() string { return e.err.Error() }

func (e *refusedError) Unwrap() []error { return append([]error{e.err}, e.is...) }

// counters are the next offsets of all queues, for appends. Safe for concurrent use.
type counters struct {
	mu     sync.RWMutex
	topics map[string]*topicCounters
}

type topicCounters struct {
	dense  []*commitlog.QueueCounter // by queue id
	sparse map[int32]*commitlog.QueueCounter
}

// transactionPrefix begins the topics of prepared messages, whose store times decide when their producer is asked.
const transactionPrefix = "RMQ_SYS_TRANS_"

// denseIDs bounds what one absurd queue id may cost.
const denseIDs = 4096

func (t *topicCounters) get(id int32) *commitlog.QueueCounter {
	if id >= 0 && int(id) < len(t.dense) {
		return t.dense[id]
	}
	return t.sparse[id]
}

// of returns the counter of a queue. It allocates only for a queue that it did not know.
func (c *counters) of(topic string, id int32) *commitlog.QueueCounter {
	c.mu.RLock()
	var q *commitlog.QueueCounter
	if t := c.topics[topic]; t != nil {
		q = t.get(id)
	}
	c.mu.RUnlock()
	if q == nil {
		q = c.add(topic, id)
	}
	return q
}

func (c *counters) add(topic string, id int32) *commitlog.QueueCounter {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.topics == nil {
		c.topics = map[string]*topicCounters{}
	}
	t := c.topics[topic]
	if t == nil {
		t = &topicCounters{sparse: map[int32]*commitlog.QueueCounter{}}
		c.topics[strings.Clone(topic)] = t
	}
	if q := t.get(id); q != nil {
		return q
	}
	q := &commitlog.QueueCounter{}
	if topic == scheduleTopic || strings.HasPrefix(topic, transactionPrefix) {
		q.FollowClock()
	}
	if id < 0 || id >= denseIDs {
		t.sparse[id] = q
		return q
	}
	if n := int(id) + 1; n > len(t.dense) {
		t.dense = append(t.dense, make([]*commitlog.QueueCounter, n-len(t.dense))...)
	}
	t.dense[id] = q
	return q
}

// raise makes a counter stand at next at least. Nothing appends meanwhile.
func (c *counters) raise(topic []byte, id int32, next int64) {
	c.mu.RLock()
	var q *commitlog.QueueCounter
	if t := c.topics[string(topic)]; t != nil {
		q = t.get(id)
	}
	c.mu.RUnlock()
	if q == nil {
		q = c.add(string(topic), id)
	}
	if q.Next() < next {
		q.Set(next)
	}
}

func (c *counters) forget(topic string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.topics, topic)
}

func (c *counters) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.topics = nil
}
