package consumequeue

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/quorate/quorate/internal/watermark"
)

// Queue is the index of one (topic, queue id). Readers are concurrent; the Table's one dispatcher appends.
type Queue struct {
	topic string
	id    int32
	files *files

	mu sync.Mutex
	// Units, not bytes. Files hold [first, written), memory holds [tailBegin, end); written >= tailBegin, so that
	// together they are whole. min is the first unit whose record the log still has.
	first, min, end    int64
	written, tailBegin int64
	tail               []byte
	maxPhysical        int64 // physical end of the last record
	arrived            *watermark.Watermark
	deleted            bool

	// Owned by the Table's dispatcher and writer, under Table.dirtyMu.
	dirty, touched bool
}

// Topic and ID name the queue.
func (q *Queue) Topic() string { return q.topic }

// ID is the queue id.
func (q *Queue) ID() int32 { return q.id }

// Bounds returns the first offset whose record the log still has, and the end, exclusive.
func (q *Queue) Bounds() (minOffset, maxOffset int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.min, q.end
}

// Known is what a later start should find.
func (q *Queue) Known() Known {
	q.mu.Lock()
	defer q.mu.Unlock()
	return Known{First: q.first, Min: q.min, End: q.end}
}

// Exists reports whether the queue ever held a unit; one that is only waited for does not exist.
func (q *Queue) Exists() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.end > 0
}

// MaxPhysical is the physical end of the queue's last record, 0 for an empty queue.
func (q *Queue) MaxPhysical() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.maxPhysical
}

// Arrived is the watermark of the queue's end. It closes when the queue is deleted or cut.
func (q *Queue) Arrived() *watermark.Watermark {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.arrived == nil {
		q.arrived = &watermark.Watermark{}
		if q.deleted {
			q.arrived.Close(ErrDeleted)
		} else {
			q.arrived.Advance(q.end)
		}
	}
	return q.arrived
}

// Units is a run of encoded units; a caller keeps one and reads into it again and again.
type Units struct{ b []byte }

// Len is the number of units.
func (u *Units) Len() int { return len(u.b) / UnitSize }

// At returns the i-th unit.
func (u *Units) At(i int) Unit { return decodeUnit(u.b[i*UnitSize:]) }

// Read fills into with up to n units from offset on, as many as there are. It does not allocate when into has room. An
// offset outside [first, end) reads nothing.
func (q *Queue) Read(offset int64, n int, into *Units) error {
	into.b = into.b[:0]
	for n > 0 {
		got, err := q.read(offset, n, into)
		if err != nil {
			return err
		}
		if got == 0 {
			return nil
		}
		offset += int64(got)
		n -= got
	}
	return nil
}

// read appends units from one place: the tail, or one file.
func (q *Queue) read(offset int64, n int, into *Units) (int, error) {
	q.mu.Lock()
	if offset < q.first || offset >= q.end || q.deleted {
		q.mu.Unlock()
		return 0, nil
	}
	if offset >= q.tailBegin {
		n = min(n, int(q.end-offset))
		at := (offset - q.tailBegin) * UnitSize
		into.b = append(into.b, q.tail[at:at+int64(n)*UnitSize]...)
		q.mu.Unlock()
		return n, nil
	}
	n = int(min(int64(n), q.tailBegin-offset))
	q.mu.Unlock()

	begin := offset * UnitSize / q.files.size * q.files.size
	n = int(min(int64(n), (begin+q.files.size)/UnitSize-offset))
	o, err := q.files.acquire(fileKey{q, begin}, false)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil // retention took it
	}
	if err != nil {
		return 0, fmt.Errorf("open units of %s/%d: %w", q.topic, q.id, err)
	}
	defer q.files.release(o)
	had := len(into.b)
	into.b = append(into.b, make([]byte, n*UnitSize)...)
	if _, err := o.f.ReadAt(into.b[had:], offset*UnitSize-begin); err != nil && !errors.Is(err, io.EOF) {
		into.b = into.b[:had]
		return 0, fmt.Errorf("read units of %s/%d: %w", q.topic, q.id, err)
	}
	return n, nil
}

// unitAt reads one unit; ok is false outside the queue.
func (q *Queue) unitAt(offset int64, into *Units) (u Unit, ok bool, err error) {
	if err := q.Read(offset, 1, into); err != nil || into.Len() == 0 {
		return Unit{}, false, err
	}
	return into.At(0), true, nil
}

// OffsetByTime finds an offset by store time (RocketMQ BoundaryType): lower, the first one at or after timestamp, or the
// end; upper, the last one at or before it, or 0. storeTime answers for a unit, negative when its record is gone.
func (q *Queue) OffsetByTime(timestamp int64, upper bool, storeTime func(Unit) int64) (int64, error) {
	low, high := q.Bounds()
	if low >= high {
		return 0, nil
	}
	first := low
	var units Units
	// low ends as the first offset whose time is above (upper) or not below (lower) the timestamp.
	for low < high {
		mid := low + (high-low)/2
		u, ok, err := q.unitAt(mid, &units)
		if err != nil {
			return 0, err
		}
		t := int64(-1)
		if ok && !u.Filler() {
			t = storeTime(u)
		}
		if t < timestamp || (upper && t == timestamp) {
			low = mid + 1
		} else {
			high = mid
		}
	}
	switch {
	case !upper:
		return low, nil
	case low == first:
		return 0, nil
	}
	return low - 1, nil
}
