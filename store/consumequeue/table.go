// Package consumequeue is the index of the log by queue: for each (topic, queue id) a run of 20-byte units that say where
// the records lie. Files have RocketMQ's bytes and lengths and are sparse; they are opened when needed and written in
// batches. The recent units of a busy queue are in memory, an idle queue keeps none. It knows nothing of records: the
// store tells it what to append and when to sync, and a queue can always be rebuilt from the log.
package consumequeue

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/internal/vfs"
)

// Causes that a queue's Arrived watermark closes with. Match with errors.Is.
var (
	ErrDeleted = errors.New("consume queue deleted")
	ErrCut     = errors.New("consume queue cut back")
)

// Config of a Table.
type Config struct {
	FS  vfs.FS
	Dir string
	// FileSize is the length of a queue file in bytes, a multiple of UnitSize.
	FileSize int64
	// OpenFilesMax bounds the files kept open.
	OpenFilesMax int
	// TailBytesMax bounds the units that one queue has in memory.
	TailBytesMax int
	// PendingBytesMax bounds the units, of all queues together, that are not in their files yet.
	PendingBytesMax int64
}

// DefaultConfig leaves FS and Dir open.
func DefaultConfig() Config {
	return Config{
		FileSize:        300_000 * UnitSize,
		OpenFilesMax:    512,
		TailBytesMax:    1024 * UnitSize,
		PendingBytesMax: 8 << 20,
	}
}

// Validate checks the relations between the fields.
func (c Config) Validate() error {
	switch {
	case c.FS == nil || c.Dir == "":
		return errors.New("consume queue: no directory")
	case c.FileSize < UnitSize || c.FileSize%UnitSize != 0:
		return fmt.Errorf("mappedFileSizeConsumeQueue: %d is not a positive multiple of %d", c.FileSize, UnitSize)
	case c.OpenFilesMax < 1 || c.TailBytesMax < 16*UnitSize || c.PendingBytesMax < int64(c.TailBytesMax):
		return errors.New("consume queue: bounds too small")
	}
	return nil
}

// Table holds every queue of a store. One goroutine appends (Append, Announce); all else may be called by any.
type Table struct {
	cfg    Config
	logger *slog.Logger
	files  *files
	units  int64 // per file

	mu     sync.RWMutex
	topics map[string]*topicQueues
	count  int // of queues

	// writeMu is held by whoever changes files: write back, cut, delete. It is never taken under a queue's lock.
	writeMu sync.Mutex
	scratch []byte

	dirtyMu sync.Mutex
	dirty   []*Queue // hold units that are not in their files
	warm    []*Queue // written in the last pass, their tails still in memory
	pending atomic.Int64

	touched []*Queue // the dispatcher's: appended to since the last Announce
}

// denseIDs bounds what one absurd queue id may cost.
const denseIDs = 4096

type topicQueues struct {
	name   string
	dense  []*Queue // by queue id, nil where there is none
	sparse map[int32]*Queue
}

func (t *topicQueues) get(id int32) *Queue {
	if id >= 0 && int(id) < len(t.dense) {
		return t.dense[id]
	}
	return t.sparse[id]
}

func (t *topicQueues) put(q *Queue) {
	if q.id < 0 || q.id >= denseIDs {
		if t.sparse == nil {
			t.sparse = map[int32]*Queue{}
		}
		t.sparse[q.id] = q
		return
	}
	if n := int(q.id) + 1; n > len(t.dense) {
		t.dense = append(t.dense, make([]*Queue, n-len(t.dense))...)
	}
	t.dense[q.id] = q
}

func (t *topicQueues) each(do func(*Queue)) {
	for _, q := range t.dense {
		if q != nil {
			do(q)
		}
	}
	for _, q := range t.sparse {
		do(q)
	}
}

func newTable(cfg Config, logger *slog.Logger) *Table {
	return &Table{
		cfg: cfg, logger: logger,
		files:  newFiles(cfg.FS, cfg.Dir, cfg.FileSize, cfg.OpenFilesMax),
		units:  cfg.FileSize / UnitSize,
		topics: map[string]*topicQueues{},
	}
}

// Lookup returns the queue, or nil. It does not allocate.
func (t *Table) Lookup(topic string, id int32) *Queue {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if e := t.topics[topic]; e != nil {
		return e.get(id)
	}
	return nil
}

// Queue returns the queue, and makes an empty one, in memory only, when there is none. The topic is a checked name.
func (t *Table) Queue(topic string, id int32) *Queue {
	if q := t.Lookup(topic, id); q != nil {
		return q
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.queueLocked(topic, id)
}

func (t *Table) queueLocked(topic string, id int32) *Queue {
	e := t.topics[topic]
	if e == nil {
		e = &topicQueues{name: topic}
		t.topics[topic] = e
	}
	q := e.get(id)
	if q == nil {
		q = &Queue{topic: e.name, id: id, files: t.files}
		e.put(q)
		t.count++
	}
	return q
}

// Each calls do for every queue, existing or only waited for, outside the table's lock.
func (t *Table) Each(do func(*Queue)) {
	for _, q := range t.all() {
		do(q)
	}
}

func (t *Table) all() []*Queue {
	t.mu.RLock()
	defer t.mu.RUnlock()
	list := make([]*Queue, 0, 4*len(t.topics))
	for _, e := range t.topics {
		e.each(func(q *Queue) { list = append(list, q) })
	}
	return list
}

// Len is the number of queues, those only waited for included.
func (t *Table) Len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.count
}

// Topics lists the topics that have queues, with the queue ids.
func (t *Table) Topics() map[string][]int32 {
	topics := map[string][]int32{}
	for _, q := range t.all() {
		if q.Exists() {
			topics[q.topic] = append(topics[q.topic], q.id)
		}
	}
	return topics
}

// Outcome is what Append did.
type Outcome int

// Outcomes of Append.
const (
	Added      Outcome = iota
	Repeated           // the queue already covers the record: nothing changed
	AfterGap           // added; the offsets it skipped are filled with fillers
	Restarted          // the queue began anew: its topic was deleted and made again, or all it held had expired long before
	OutOfOrder         // refused: the offset is taken by another record, or absurdly far ahead
)

// Append adds the unit of one record. Records come in log order; one that the queue covers already changes nothing, so
// that dispatch may be repeated from any earlier point. On an error nothing was added and the call may be repeated. The
// topic is a checked name. It does not allocate for a known queue whose tail has room.
func (t *Table) Append(topic []byte, id int32, queueOffset int64, u Unit) (Outcome, error) {
	q := t.lookupBytes(topic, id)
	if t.pending.Load() >= t.cfg.PendingBytesMax {
		if err := t.WriteBack(); err != nil {
			return Repeated, err
		}
	}
	q.mu.Lock()
	for q.deleted {
		q.mu.Unlock()
		q = t.lookupBytes(topic, id)
		q.mu.Lock()
	}
	outcome, fill := q.place(queueOffset, u, t.units)
	if outcome == Repeated || outcome == OutOfOrder {
		q.mu.Unlock()
		return outcome, nil
	}
	if outcome == Restarted {
		q.mu.Unlock()
		if err := t.restart(q); err != nil {
			return Repeated, err
		}
		q.mu.Lock()
		_, fill = q.place(queueOffset, u, t.units)
	}
	for q.end < queueOffset {
		if err := t.push(q, fill); err != nil {
			q.mu.Unlock()
			return Repeated, err
		}
	}
	if err := t.push(q, u); err != nil {
		q.mu.Unlock()
		return Repeated, err
	}
	q.maxPhysical = u.End()
	if !q.touched && q.arrived != nil {
		q.touched = true
		t.touched = append(t.touched, q)
	}
	q.mu.Unlock()
	return outcome, nil
}

func (t *Table) lookupBytes(topic []byte, id int32) *Queue {
	t.mu.RLock()
	e := t.topics[string(topic)]
	var q *Queue
	if e != nil {
		q = e.get(id)
	}
	t.mu.RUnlock()
	if q == nil {
		q = t.Queue(string(topic), id)
	}
	return q
}

// place decides what to do with a record, and readies an empty queue. q.mu is held. fill is the unit for skipped offsets.
func (q *Queue) place(queueOffset int64, u Unit, unitsPerFile int64) (outcome Outcome, fill Unit) {
	switch {
	case u.End() <= q.maxPhysical:
		return Repeated, fill
	case queueOffset < 0:
		return OutOfOrder, fill
	case q.end == 0 && queueOffset > 0:
		// RocketMQ fills the file from its beginning with units of offset 0.
		q.first = queueOffset - queueOffset%unitsPerFile
		q.written, q.tailBegin, q.end = q.first, q.first, q.first
		q.min = queueOffset
		return Added, Unit{Size: fillerSize}
	case queueOffset > q.end && q.min == q.end && q.maxPhysical > 0:
		// Retention took the records between the last unit that a crash left and this one: nothing is missing.
		if queueOffset-q.end > unitsPerFile {
			return Restarted, fill
		}
		q.min = queueOffset
		return Added, Unit{Size: fillerSize}
	case queueOffset == q.end, queueOffset > q.end && q.maxPhysical == 0 && queueOffset-q.end <= unitsPerFile:
		return Added, Unit{Size: fillerSize}
	case queueOffset == 0:
		return Restarted, fill
	case queueOffset < q.end, queueOffset-q.end > unitsPerFile:
		return OutOfOrder, fill
	}
	return AfterGap, Unit{PhysicalOffset: u.PhysicalOffset, Size: fillerSize}
}

// push appends a unit to the tail. q.mu is held, and let go for a moment when the tail is full of unwritten units.
func (t *Table) push(q *Queue, u Unit) error {
	if len(q.tail)+UnitSize > cap(q.tail) {
		if err := t.makeRoom(q); err != nil {
			return err
		}
	}
	q.tail = appendUnit(q.tail, u)
	q.end++
	t.pending.Add(UnitSize)
	if !q.dirty {
		q.dirty = true
		t.dirtyMu.Lock()
		t.dirty = append(t.dirty, q)
		t.dirtyMu.Unlock()
	}
	return nil
}

// tailBytesMin is the first allocation of a tail.
const tailBytesMin = 8 * UnitSize

func (t *Table) makeRoom(q *Queue) error {
	if cap(q.tail) >= t.cfg.TailBytesMax && q.written-q.tailBegin < int64(cap(q.tail))/UnitSize/2 {
		q.mu.Unlock()
		err := t.write(q)
		q.mu.Lock()
		if err != nil {
			return err
		}
	}
	// Of what is in the file anyway, keep the younger half of the tail for readers.
	if done := int(q.written-q.tailBegin) * UnitSize; done >= cap(q.tail)/2 && done > 0 {
		drop := min(done, max(cap(q.tail)/2/UnitSize*UnitSize, UnitSize))
		q.tail = append(q.tail[:0], q.tail[drop:]...)
		q.tailBegin += int64(drop / UnitSize)
		return nil
	}
	grown := make([]byte, len(q.tail), min(max(tailBytesMin, 2*cap(q.tail)), max(t.cfg.TailBytesMax, len(q.tail)+UnitSize)))
	copy(grown, q.tail)
	q.tail = grown
	return nil
}

// Announce advances the Arrived watermarks of the queues appended to since the last call. The dispatcher calls it after
// each batch, so that who waits wakes once and finds the whole batch.
func (t *Table) Announce() {
	for i, q := range t.touched {
		q.mu.Lock()
		q.touched = false
		end, arrived := q.end, q.arrived
		q.mu.Unlock()
		if arrived != nil {
			arrived.Advance(end)
		}
		t.touched[i] = nil
	}
	t.touched = t.touched[:0]
}

// WriteBack writes the units that are only in memory to their files, and lets go of tails that were not appended to since
// the last call. After an error the rest stays pending; the call may be repeated.
func (t *Table) WriteBack() error {
	t.dirtyMu.Lock()
	dirty, warm := t.dirty, t.warm
	t.dirty, t.warm = nil, nil
	t.dirtyMu.Unlock()
	for _, q := range warm {
		q.mu.Lock()
		if !q.dirty && q.written == q.end {
			q.tail, q.tailBegin = nil, q.end
		}
		q.mu.Unlock()
	}
	for i, q := range dirty {
		if err := t.write(q); err != nil {
			t.dirtyMu.Lock()
			t.dirty = append(t.dirty, dirty[i:]...)
			t.warm = append(t.warm, dirty[:i]...)
			t.dirtyMu.Unlock()
			return err
		}
	}
	t.dirtyMu.Lock()
	t.warm = append(t.warm, dirty...)
	t.dirtyMu.Unlock()
	return nil
}

// Sync makes everything appended before the call durable. After an error nothing about the files is known any more.
func (t *Table) Sync() error {
	if err := t.WriteBack(); err != nil {
		return err
	}
	return t.files.sync()
}

// Pending is how many bytes of units are not in their files.
func (t *Table) Pending() int64 { return t.pending.Load() }

// Close closes the files; units that were not written back are lost to them.
func (t *Table) Close() error { return t.files.close() }

// write brings one queue's file up to its end.
func (t *Table) write(q *Queue) error {
	t.writeMu.Lock()
	defer t.writeMu.Unlock()
	for {
		q.mu.Lock()
		from, n := q.written, min(q.end-q.written, t.units-q.written%t.units)
		if n == 0 || q.deleted {
			q.dirty = false
			q.mu.Unlock()
			return nil
		}
		at := (from - q.tailBegin) * UnitSize
		t.scratch = append(t.scratch[:0], q.tail[at:at+n*UnitSize]...)
		q.mu.Unlock()
		if err := t.writeUnits(q, from, t.scratch); err != nil {
			return err
		}
		q.mu.Lock()
		q.written = from + n
		q.mu.Unlock()
		t.pending.Add(-n * UnitSize)
	}
}

func (t *Table) writeUnits(q *Queue, from int64, b []byte) error {
	k := fileKey{q, from / t.units * t.cfg.FileSize}
	o, err := t.files.acquire(k, true)
	if err != nil {
		return fmt.Errorf("open consume queue file %s: %w", t.files.name(k), err)
	}
	defer t.files.release(o)
	t.files.markUnsynced(k)
	if _, err := o.f.WriteAt(b, from*UnitSize-k.begin); err != nil {
		return fmt.Errorf("write consume queue file %s: %w", t.files.name(k), err)
	}
	return nil
}
