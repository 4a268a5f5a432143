// Package memlog is a log in memory for tests of the broker's features: what they read, write and wait on of a store, with
// faults on demand. It keeps records in their real form; nothing of it is durable until Flush.
package memlog

import (
	"context"
	"errors"
	"io/fs"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/broker/write"
	"github.com/quorate/quorate/internal/watermark"
	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/store"
)

// Host is the store host of records that name none.
var Host = netip.MustParseAddrPort("127.0.0.1:10911")

// Log is safe for concurrent use.
type Log struct {
	appended, durable watermark.Watermark

	mu      sync.Mutex
	records map[int64][]byte
	queues  map[queueKey]*queue
	files   map[string][]byte
	refuse  error
	lost    map[int64]bool
	// ManualFlush keeps appended records undurable until Flush.
	ManualFlush atomic.Bool
}

type queueKey struct {
	topic string
	id    int32
}

type queue struct {
	low     int64
	entries []store.QueueEntry
	arrived watermark.Watermark
}

// New returns an empty log.
func New() *Log {
	return &Log{records: map[int64][]byte{}, queues: map[queueKey]*queue{}, files: map[string][]byte{}, lost: map[int64]bool{}}
}

func (l *Log) queue(topic string, id int32) *queue {
	k := queueKey{topic, id}
	if l.queues[k] == nil {
		l.queues[k] = &queue{}
	}
	return l.queues[k]
}

// Refuse makes every write fail with err; nil ends it.
func (l *Log) Refuse(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refuse = err
}

// Lose makes the record at a physical offset unreadable.
func (l *Log) Lose(physical int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost[physical] = true
}

// Write appends a message, as a pipeline does.
func (l *Log) Write(_ context.Context, r write.Request) write.Result {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refuse != nil {
		return write.Result{Err: &write.Error{Stage: write.Append, Err: l.refuse}}
	}
	return write.Result{Appended: l.append(r.Message)}
}

// Append is Write for the set-up of a test.
func (l *Log) Append(m *message.Message) store.Appended {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.append(m)
}

func (l *Log) append(m *message.Message) store.Appended {
	c := *m
	if !c.BornHost.IsValid() {
		c.BornHost = Host
	}
	if !c.StoreHost.IsValid() {
		c.StoreHost = Host
	}
	q := l.queue(c.Topic, c.QueueID)
	begin, offset, now := l.appended.Load(), q.low+int64(len(q.entries)), time.Now().UnixMilli()
	record := message.AppendRecord(nil, &c, begin, offset, now)
	l.records[begin] = record
	tags := c.TagsCode
	if !c.HasTagsCode {
		if text, ok := c.Properties.Lookup(message.Tags); ok {
			tags = int64(message.JavaHash(text))
		}
	}
	q.entries = append(q.entries, store.QueueEntry{PhysicalOffset: begin, Size: int32(len(record)), TagsCode: tags})
	end := begin + int64(len(record))
	l.appended.Advance(end)
	if !l.ManualFlush.Load() {
		l.durable.Advance(end)
	}
	q.arrived.Advance(offset + 1)
	return store.Appended{Begin: begin, End: end, QueueOffset: offset, StoreTimestamp: now, Count: 1}
}

// Flush makes everything appended durable.
func (l *Log) Flush() { l.durable.Advance(l.appended.Load()) }

// Appended, Durable and RequestFlush are as of a store.
func (l *Log) Appended() *watermark.Watermark { return &l.appended }

// Durable is what Flush covered.
func (l *Log) Durable() *watermark.Watermark { return &l.durable }

// Confirmed is what an acknowledgement covers: the durable part.
func (l *Log) Confirmed() *watermark.Watermark { return &l.durable }

// RequestFlush does nothing with ManualFlush: Flush decides.
func (l *Log) RequestFlush() {}

// QueueBounds returns min and max offset.
func (l *Log) QueueBounds(topic string, id int32) (minOffset, maxOffset int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.queue(topic, id)
	return q.low, q.low + int64(len(q.entries))
}

// QueueArrived is the watermark of a queue's max offset.
func (l *Log) QueueArrived(topic string, id int32) *watermark.Watermark {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &l.queue(topic, id).arrived
}

// QueueEntries reads entries from offset on.
func (l *Log) QueueEntries(topic string, id int32, offset int64, into []store.QueueEntry) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.queue(topic, id)
	if offset < q.low || offset > q.low+int64(len(q.entries)) {
		return 0, errors.New("memlog: offset outside of the queue")
	}
	return copy(into, q.entries[offset-q.low:]), nil
}

// Retain deletes the entries of a queue below offset.
func (l *Log) Retain(topic string, id int32, offset int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.queue(topic, id)
	q.entries, q.low = q.entries[offset-q.low:], offset
}

// RecordAt returns a record.
func (l *Log) RecordAt(offset int64) (store.View, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	record, ok := l.records[offset]
	if !ok || l.lost[offset] {
		return store.View{}, store.ErrRecordNotFound
	}
	return store.View{Bytes: record}, nil
}

// Messages decodes all records of a queue.
func (l *Log) Messages(topic string, id int32) []message.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []message.Record
	for _, e := range l.queue(topic, id).entries {
		r, err := message.DecodeRecord(l.records[e.PhysicalOffset], true)
		if err != nil {
			panic(err) //nolint:forbidigo // a log for tests holds what it encoded itself
		}
		out = append(out, r)
	}
	return out
}

// ReadConfigFile reads what WriteConfigFile wrote.
func (l *Log) ReadConfigFile(name string) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	content, ok := l.files[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return content, nil
}

// WriteConfigFile replaces a file.
func (l *Log) WriteConfigFile(name string, content []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refuse != nil {
		return l.refuse
	}
	l.files[name] = append([]byte(nil), content...)
	return nil
}
