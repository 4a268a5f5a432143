package commitlog

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/message"
)

// QueueCounter is the next offset of one queue and the store time of its last record. The Log takes both from it under the
// append lock; its owner sets them at recovery and truncation, when nothing is appended. Safe for concurrent use. The zero
// value stands at 0.
type QueueCounter struct {
	next  atomic.Int64
	last  atomic.Int64
	clock bool
}

// Next is the offset that the next record of the queue will get.
func (q *QueueCounter) Next() int64 { return q.next.Load() }

// Set moves the counter.
func (q *QueueCounter) Set(next int64) { q.next.Store(next) }

// Last is the store time of the last record that was appended, or what SetLast said; ms, 0 when neither was.
func (q *QueueCounter) Last() int64 { return q.last.Load() }

// SetLast makes store times go on from at least ms.
func (q *QueueCounter) SetLast(ms int64) { q.last.Store(ms) }

// FollowClock makes store times follow a clock that is set back. It is for queues whose store times are deadlines, and is
// called before the first append.
func (q *QueueCounter) FollowClock() { q.clock = true }

// stamp is the store time of the next record: that of the clock, unless the clock was set back. Then times of the queue stand
// still, for a search by time needs them in order.
func (q *QueueCounter) stamp(now int64) int64 {
	if last := q.last.Load(); last > now && !q.clock {
		return last
	}
	q.last.Store(now)
	return now
}

// Appended is where an append landed. For a batch: the first record's offsets and Count records.
type Appended struct {
	Begin, End     int64 // physical offsets, end exclusive
	QueueOffset    int64
	StoreTimestamp int64
	Count          int
}

// Append assigns offsets under the append lock and encodes m into the log. allowed, when not nil, is called under that
// lock before a byte is taken, and its error is returned as it is. queue gives the queue offset; prepared and rolled back
// transaction messages get 0 and leave it alone. Append waits for room at most AppendWaitMax, and never for a flush; it
// does not allocate. Nothing is written out before Kick.
func (l *Log) Append(m *message.Message, allowed func() error, queue *QueueCounter) (Appended, error) {
	size, err := message.RecordSize(m)
	if err != nil {
		return Appended{}, err
	}
	if len(m.Body) > l.cfg.MaxMessageSize || int64(size) > l.cfg.unitMax()-message.BlankSize {
		return Appended{}, l.tooLarge(size)
	}
	l.mu.Lock()
	if err := l.take(int64(size), allowed); err != nil {
		l.mu.Unlock()
		return Appended{}, err
	}
	at := Appended{Begin: l.next, End: l.next + int64(size), StoreTimestamp: queue.stamp(l.cfg.Now().UnixMilli()), Count: 1}
	at.QueueOffset = queue.take(m)
	l.encode(m, at.Begin, at.QueueOffset, at.StoreTimestamp, int64(size))
	l.next = at.End
	l.mu.Unlock()
	l.publish(at.End, 1)
	return at, nil
}

// AppendBatch appends all messages of one queue back to back, in one file, all or none. The physical offset of each record
// is appended to offsets, which is returned.
func (l *Log) AppendBatch(ms []message.Message, allowed func() error, queue *QueueCounter, offsets []int64) (Appended, []int64, error) {
	if len(ms) == 0 {
		return Appended{}, offsets, errors.New("commitlog: empty batch")
	}
	total := 0
	for i := range ms {
		size, err := message.RecordSize(&ms[i])
		if err != nil {
			return Appended{}, offsets, fmt.Errorf("batch entry %d: %w", i, err)
		}
		if total += size; total > l.cfg.MaxMessageSize || int64(total) > l.cfg.unitMax()-message.BlankSize {
			return Appended{}, offsets, l.tooLarge(total)
		}
	}
	l.mu.Lock()
	if err := l.take(int64(total), allowed); err != nil {
		l.mu.Unlock()
		return Appended{}, offsets, err
	}
	at := Appended{Begin: l.next, End: l.next + int64(total), StoreTimestamp: queue.stamp(l.cfg.Now().UnixMilli()), Count: len(ms)}
	for i := range ms {
		queueOffset := queue.take(&ms[i])
		if i == 0 {
			at.QueueOffset = queueOffset
		}
		size, _ := message.RecordSize(&ms[i]) // checked above
		l.encode(&ms[i], l.next, queueOffset, at.StoreTimestamp, int64(size))
		offsets = append(offsets, l.next)
		l.next += int64(size)
	}
	l.mu.Unlock()
	l.publish(at.End, uint64(len(ms)))
	return at, offsets, nil
}

// AppendRaw appends bytes of another broker's log at offset, which must be the end of this one. The bytes may cut records
// and hold fillers; they are taken as they are. It is how a replica follows. Nothing is written out before Kick.
func (l *Log) AppendRaw(p []byte, offset int64, allowed func() error) error {
	for len(p) > 0 {
		piece := p[:min(int64(len(p)), l.cfg.unitMax())]
		l.mu.Lock()
		if offset != l.next {
			at := l.next
			l.mu.Unlock()
			return fmt.Errorf("%w: %d, the log ends at %d", ErrNotNext, offset, at)
		}
		// Room first: what was checked before a wait may not hold after it.
		if err := l.makeRoom(offset + int64(len(piece))); err != nil {
			l.mu.Unlock()
			return err
		}
		if allowed != nil {
			if err := allowed(); err != nil {
				l.mu.Unlock()
				return err
			}
		}
		if offset != l.next {
			l.mu.Unlock()
			continue
		}
		l.tail.put(piece, offset)
		l.next += int64(len(piece))
		offset, p = l.next, p[len(piece):]
		l.mu.Unlock()
		l.publish(offset, 0)
	}
	return nil
}

// Kick has what was appended written out: without SyncFlush and with inline by the caller itself, when nobody else is at
// it; else by the writer. inline saves a lone request the hop to another goroutine, and costs a busy caller the chance to
// have more written at once: give it when no further append is at hand.
func (l *Log) Kick(inline bool) {
	if !inline || l.cfg.SyncFlush {
		l.writer.wake()
		return
	}
	for range inlineRounds {
		if l.written.Load() >= l.appended.Load() || !l.ioMu.TryLock() {
			return // whoever holds ioMu looks again before it sleeps
		}
		l.writePending()
		l.ioMu.Unlock()
	}
	l.writer.wake()
}

// inlineRounds is how often a caller writes for others before it hands over to the writer.
const inlineRounds = 4

// take holds a QueueCounter's rule for transaction messages (PROTOCOL §4.9).
func (q *QueueCounter) take(m *message.Message) int64 {
	if t := m.SysFlag.Transaction(); t == message.TransactionPreparedFlag || t == message.TransactionRollback {
		return 0
	}
	return q.next.Add(1) - 1
}

// take makes room for size bytes in one file, asks allowed, and puts the filler when the file has no room left. With nil
// the caller owns [l.next, l.next+size). mu is held.
func (l *Log) take(size int64, allowed func() error) error {
	filler := l.filler(size)
	for {
		at := l.next
		if err := l.makeRoom(at + filler + size); err != nil {
			return err
		}
		if l.next == at {
			break
		}
		filler = l.filler(size) // others appended while this one waited
	}
	if allowed != nil {
		if err := allowed(); err != nil {
			return err
		}
	}
	if filler > 0 {
		var blank [message.BlankSize]byte
		l.tail.zero(l.next, filler)
		l.tail.put(message.AppendBlank(blank[:0], int32(filler)), l.next)
		l.next += filler
	}
	return nil
}

// filler is what must be filled up so that a record of size bytes begins in the next file, 0 when it fits into this one.
func (l *Log) filler(size int64) int64 {
	if left := l.cfg.FileSize - l.next%l.cfg.FileSize; size+message.BlankSize > left {
		return left
	}
	return 0
}

// makeRoom waits until the log may grow to end: files prepared, memory free, the disk not too far behind. mu is held; it
// is given up while waiting.
func (l *Log) makeRoom(end int64) error {
	if l.refusal() == nil && l.fits(end) {
		return nil
	}
	return l.waitForRoom(end)
}

func (l *Log) fits(end int64) bool {
	return end <= l.zeroed.Load() && end <= l.durable.Load()+UnsyncedBytesMax && l.tail.reserve(l.next, end, l.written.Load())
}

func (l *Log) refusal() error {
	if err := l.WriteFailed(); err != nil {
		return err
	}
	if !l.open {
		return ErrClosed
	}
	return nil
}

func (l *Log) waitForRoom(end int64) error {
	deadline := time.Now().Add(AppendWaitMax)
	timer := time.AfterFunc(AppendWaitMax, func() {
		l.mu.Lock()
		l.room.Broadcast()
		l.mu.Unlock()
	})
	defer timer.Stop()
	l.waiting.Add(1)
	defer l.waiting.Add(-1)
	end -= l.next // others may append meanwhile: the caller tries again then
	for begin := l.next; ; l.room.Wait() {
		switch {
		case l.refusal() != nil:
			return l.refusal()
		case l.next != begin || l.fits(begin+end):
			return nil
		case begin+end > l.zeroed.Load() && l.diskFull.Load() != nil:
			return fmt.Errorf("%w: %w", ErrDiskFull, *l.diskFull.Load())
		case !time.Now().Before(deadline):
			return fmt.Errorf("%w: no room for %d bytes within %s", ErrBusy, end, AppendWaitMax)
		}
		l.writer.wake()
		l.preparer.wake()
	}
}

// encode puts the record of m at offset. mu is held, room is made.
func (l *Log) encode(m *message.Message, offset, queueOffset, storeTimestamp, size int64) {
	if slot := l.tail.slot(offset, size); slot != nil {
		message.AppendRecord(slot[:0], m, offset, queueOffset, storeTimestamp)
		return
	}
	l.crossing = message.AppendRecord(l.crossing[:0], m, offset, queueOffset, storeTimestamp)
	l.tail.put(l.crossing, offset)
	if cap(l.crossing) > crossingKept {
		l.crossing = nil
	}
}

// crossingKept is the largest scratch record that is kept for the next one that crosses blocks.
const crossingKept = 64 << 10

func (l *Log) publish(end int64, records uint64) {
	l.appended.Advance(end)
	if records > 0 {
		l.records.Add(records)
	}
	if at := l.prepareAt.Load(); end >= at && l.prepareAt.CompareAndSwap(at, maxOffset) {
		l.preparer.wake()
	}
}

func (l *Log) tooLarge(size int) error {
	return fmt.Errorf("%w: %d bytes, maxMessageSize=%d, mappedFileSizeCommitLog=%d", ErrTooLarge, size, l.cfg.MaxMessageSize, l.cfg.FileSize)
}
