package store

import (
	"bytes"
	"fmt"
	"log/slog"

	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/store/consumequeue"
)

// OffsetByTime finds the queue offset for a store time; upper picks the last record at or before it, else the first at or
// after (RocketMQ BoundaryType). 0 for an unknown queue.
func (s *Store) OffsetByTime(topic string, queueID int32, timestamp int64, upper bool) int64 {
	q := s.queues.Lookup(topic, queueID)
	if q == nil {
		return 0
	}
	offset, err := q.OffsetByTime(timestamp, upper, func(u consumequeue.Unit) int64 { return s.recordTime(u.PhysicalOffset) })
	if err != nil {
		s.logger.Error("search by time", slog.String("topic", topic), slog.Int("queue", int(queueID)), slog.Any("error", err))
		return 0
	}
	return offset
}

// recordTime is the store time of the record at a physical offset, −1 when there is none.
func (s *Store) recordTime(offset int64) int64 {
	var head [headBytesTime]byte
	n, err := s.log.Read(head[:], offset)
	if err != nil {
		return -1
	}
	if ms, ok := storeTimeOf(head[:n]); ok {
		return ms
	}
	return -1
}

// RecordAt returns the record that starts at a physical offset below Confirmed.
func (s *Store) RecordAt(offset int64) (View, error) {
	if begin, confirmed := s.log.Begin(), s.confirmed.Load(); offset < begin || offset >= confirmed {
		return View{}, fmt.Errorf("%w: offset %d, the log is %d to %d", ErrRecordNotFound, offset, begin, confirmed)
	}
	v, err := s.log.Record(offset)
	if err != nil {
		return View{}, fmt.Errorf("%w: %w", ErrRecordNotFound, err)
	}
	return v, nil
}

// StoreTime returns the store timestamp of a queue offset, or −1.
func (s *Store) StoreTime(topic string, queueID int32, offset int64) int64 {
	u, ok := s.unit(topic, queueID, offset)
	if !ok {
		return -1
	}
	return s.recordTime(u.PhysicalOffset)
}

// unit returns the entry of a queue offset within the bounds of its queue.
func (s *Store) unit(topic string, queueID int32, offset int64) (QueueEntry, bool) {
	var one [1]QueueEntry
	n, err := s.QueueEntries(topic, queueID, offset, one[:])
	return one[0], err == nil && n == 1 && one[0].Valid() && !one[0].Filler()
}

// QueueEntries reads up to len(into) entries from offset and returns how many. Fillers, which stand for no record, are
// among them. ErrQueueNotFound for an unknown queue.
func (s *Store) QueueEntries(topic string, queueID int32, offset int64, into []QueueEntry) (int, error) {
	q := s.queues.Lookup(topic, queueID)
	if q == nil || !q.Exists() {
		return 0, fmt.Errorf("%w: %s/%d", ErrQueueNotFound, topic, queueID)
	}
	if first, _ := q.Bounds(); offset < first {
		return 0, nil
	}
	g := getters.Get().(*getter)
	defer getters.Put(g)
	if err := q.Read(offset, len(into), &g.units); err != nil {
		return 0, err
	}
	n := g.units.Len()
	for i := range n {
		into[i] = g.units.At(i)
	}
	return n, nil
}

// InMemory reports whether a queue offset's record counts as in memory (QUERY_CONSUMER_OFFSET's rule). One that is not there
// does not, as with RocketMQ 5.5.0, which answers QUERY_NOT_FOUND for an empty queue.
func (s *Store) InMemory(topic string, queueID int32, offset int64) bool {
	u, ok := s.unit(topic, queueID, offset)
	return ok && s.confirmed.Load()-u.PhysicalOffset <= s.memory()
}

// QueryResult is the answer of a key query. The caller releases the views, each one record.
type QueryResult struct {
	Views            []View
	LastUpdateTime   int64
	LastUpdateOffset int64
}

// Release gives back all views.
func (r *QueryResult) Release() {
	for _, v := range r.Views {
		v.Release()
	}
	r.Views = nil
}

// Query finds records by unique key or one of their keys, the newest first. Records whose keys only share the hash are
// left out, and each comes once.
func (s *Store) Query(topic, key string, maxNum int, begin, end int64) (QueryResult, error) {
	return s.query(topic, key, false, maxNum, begin, end)
}

// QueryTag finds records by tag (indexType T of RocketMQ 5.5); only records written with IndexTags are found.
func (s *Store) QueryTag(topic, tag string, maxNum int, begin, end int64) (QueryResult, error) {
	return s.query(topic, tag, true, maxNum, begin, end)
}

// collisionsMax is how many records of the same hash a query looks at beyond what it wants.
const collisionsMax = 256

func (s *Store) query(topic, key string, byTag bool, maxNum int, begin, end int64) (QueryResult, error) {
	var result QueryResult
	if s.index == nil {
		return result, nil
	}
	maxNum = min(max(maxNum, 0), s.cfg.QueryMax)
	found, err := s.index.Query(topic, key, byTag, maxNum+collisionsMax, begin, end)
	if err != nil {
		return result, fmt.Errorf("query index: %w", err)
	}
	result.LastUpdateTime, result.LastUpdateOffset = found.LastTime, found.LastOffset
	for _, offset := range found.Offsets {
		if len(result.Views) >= maxNum {
			break
		}
		v, err := s.RecordAt(offset)
		if err != nil {
			continue // retention took it
		}
		if !hasKey(v.Bytes, topic, key, byTag) {
			v.Release()
			continue
		}
		result.Views = append(result.Views, v)
	}
	return result, nil
}

func hasKey(record []byte, topic, key string, byTag bool) bool {
	r, err := message.DecodeRecord(record, false)
	if err != nil || string(r.Topic) != topic {
		return false
	}
	if byTag {
		return r.Properties.Get(message.Tags) == key
	}
	if unique, ok := r.Properties.Lookup(message.UniqueKey); ok && string(unique) == key {
		return true
	}
	keys, _ := r.Properties.Lookup(message.Keys)
	for word := range bytes.SplitSeq(keys, []byte{' '}) {
		if len(word) > 0 && string(word) == key {
			return true
		}
	}
	return false
}

// earliest is the store time of the first record of the log.
type earliest struct{ begin, time int64 }

func (s *Store) earliestStoreTime() int64 {
	begin := s.log.Begin()
	if begin >= s.log.Appended().Load() {
		return -1
	}
	if e := s.earliest.Load(); e != nil && e.begin == begin {
		return e.time
	}
	ms := s.recordTime(begin)
	if ms >= 0 {
		s.earliest.Store(&earliest{begin, ms})
	}
	return ms
}
