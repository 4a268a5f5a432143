package consumequeue

import (
	"errors"
	"fmt"
	"io/fs"
	"sort"

	"github.com/quorate/quorate/internal/vfs"
)

// DeleteTopic removes the queues of a topic and wakes who waits for them. The removal is durable when it returns.
func (t *Table) DeleteTopic(topic string) error {
	t.writeMu.Lock()
	defer t.writeMu.Unlock()
	t.mu.Lock()
	e := t.topics[topic]
	delete(t.topics, topic)
	if e != nil {
		e.each(func(*Queue) { t.count-- })
	}
	t.mu.Unlock()
	if e != nil {
		e.each(func(q *Queue) { t.forget(q) })
	}
	if err := vfs.RemoveTree(t.cfg.FS, t.cfg.Dir+"/"+topic); err != nil {
		return fmt.Errorf("remove queues of topic %s: %w", topic, err)
	}
	if err := t.cfg.FS.SyncDir(t.cfg.Dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove queues of topic %s: %w", topic, err)
	}
	return nil
}

// forget empties a queue for good. t.writeMu is held.
func (t *Table) forget(q *Queue) {
	q.mu.Lock()
	q.deleted = true
	first, end, arrived := q.first, q.end, q.arrived
	t.pending.Add(-(q.end - q.written) * UnitSize)
	q.tail, q.first, q.min, q.end, q.written, q.tailBegin = nil, 0, 0, 0, 0, 0
	q.mu.Unlock()
	t.files.drop(q, first*UnitSize, end*UnitSize+t.cfg.FileSize)
	if arrived != nil {
		arrived.Close(ErrDeleted)
	}
}

// restart empties a queue none of whose units counts any more; who waits for it wakes.
func (t *Table) restart(q *Queue) error {
	t.writeMu.Lock()
	defer t.writeMu.Unlock()
	return t.cutAt(q, 0, 0)
}

// CutAbove removes the units of records that begin at or behind physical, in every queue.
func (t *Table) CutAbove(physical int64) error {
	t.writeMu.Lock()
	defer t.writeMu.Unlock()
	for _, q := range t.all() {
		if q.MaxPhysical() <= physical {
			continue
		}
		if err := t.cutQueue(q, physical); err != nil {
			return fmt.Errorf("cut consume queue %s/%d at %d: %w", q.topic, q.id, physical, err)
		}
	}
	return nil
}

func (t *Table) cutQueue(q *Queue, physical int64) error {
	q.mu.Lock()
	low, high := q.first, q.end
	q.mu.Unlock()
	var units Units
	for low < high {
		mid := low + (high-low)/2
		u, ok, err := q.unitAt(mid, &units)
		if err != nil {
			return err
		}
		if ok && u.PhysicalOffset < physical {
			low = mid + 1
		} else {
			high = mid
		}
	}
	maxPhysical := int64(0)
	if u, ok, err := q.unitAt(low-1, &units); err != nil {
		return err
	} else if ok {
		maxPhysical = u.End()
	}
	return t.cutAt(q, low, maxPhysical)
}

// cutAt makes end the end of q, in memory and in its files. t.writeMu is held.
func (t *Table) cutAt(q *Queue, end, maxPhysical int64) error {
	q.mu.Lock()
	first, oldEnd, arrived := q.first, q.end, q.arrived
	if end <= first {
		end = 0 // nothing is left: it begins anew with its next record
	}
	t.pending.Add(-(q.end - q.written) * UnitSize)
	if end >= q.tailBegin {
		q.tail = q.tail[:(end-q.tailBegin)*UnitSize]
	} else {
		q.tail, q.tailBegin = nil, end
	}
	q.end, q.written, q.min, q.maxPhysical = end, min(q.written, end), min(q.min, end), maxPhysical
	if end == 0 {
		q.first, q.min, q.tail, q.tailBegin, q.maxPhysical = 0, 0, nil, 0, 0
	}
	t.pending.Add((q.end - q.written) * UnitSize)
	q.arrived = nil
	q.mu.Unlock()
	if arrived != nil {
		arrived.Close(ErrCut)
	}
	return t.cutFiles(q, first*UnitSize, end*UnitSize, oldEnd*UnitSize)
}

// cutFiles zeroes what lies behind byte end in its file and removes the files behind.
func (t *Table) cutFiles(q *Queue, first, end, oldEnd int64) error {
	size := t.cfg.FileSize
	keep := end / size * size // the file that holds byte end
	if end%size != 0 {
		if err := t.zeroBehind(fileKey{q, keep}, end-keep); err != nil {
			return err
		}
		keep += size
	}
	keep = max(keep, first)
	t.files.drop(q, keep, oldEnd+size)
	var names []int64
	for at := keep; at <= oldEnd; at += size {
		names = append(names, at)
	}
	// From the back, so that a crash leaves no gap.
	sort.Slice(names, func(i, j int) bool { return names[i] > names[j] })
	for _, at := range names {
		if err := t.removeFile(fileKey{q, at}); err != nil {
			return err
		}
	}
	return nil
}

// zeroBehind makes the file read as zeros from byte at on, whatever was there.
func (t *Table) zeroBehind(k fileKey, at int64) error {
	o, err := t.files.acquire(k, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // its units were never written
	}
	if err != nil {
		return err
	}
	defer t.files.release(o)
	t.files.markUnsynced(k)
	if err := o.f.Truncate(at); err != nil {
		return err
	}
	return o.f.Truncate(t.cfg.FileSize)
}

func (t *Table) removeFile(k fileKey) error {
	err := t.cfg.FS.Remove(t.files.name(k))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	t.files.mu.Lock()
	t.files.unsyncedDirs[t.files.queueDir(k.q)] = struct{}{}
	t.files.mu.Unlock()
	return nil
}

// RaiseMin tells every queue that the log now begins at physical: units of records before it are no longer served, and
// files that hold nothing else are removed, except the last of each queue. It returns how many were removed.
func (t *Table) RaiseMin(physical int64) (removed int, err error) {
	for _, q := range t.all() {
		n, qerr := t.raiseMin(q, physical)
		removed += n
		if qerr != nil {
			err = errors.Join(err, fmt.Errorf("expire units of %s/%d: %w", q.topic, q.id, qerr))
		}
	}
	return removed, err
}

func (t *Table) raiseMin(q *Queue, physical int64) (removed int, err error) {
	low, high := q.Bounds()
	var units Units
	low, err = firstNotBefore(q, low, high, physical, &units)
	if err != nil {
		return 0, err
	}
	t.writeMu.Lock()
	defer t.writeMu.Unlock()
	q.mu.Lock()
	if q.deleted || low > q.end {
		q.mu.Unlock()
		return 0, nil
	}
	q.min = max(q.min, low)
	// The last file stays: it carries the end.
	oldFirst := q.first
	lastFile := max(q.end-1, 0) / t.units * t.units
	q.first = max(q.first, min(q.min/t.units*t.units, lastFile))
	newFirst := q.first
	q.mu.Unlock()
	for at := oldFirst; at < newFirst; at += t.units {
		t.files.drop(q, at*UnitSize, (at+t.units)*UnitSize)
		if err := t.removeFile(fileKey{q, at * UnitSize}); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}

// firstNotBefore is the first offset in [low, high) whose record begins at or behind physical, or high.
func firstNotBefore(q *Queue, low, high, physical int64, units *Units) (int64, error) {
	if low < high { // mostly nothing has changed
		u, ok, err := q.unitAt(low, units)
		if err != nil {
			return 0, err
		}
		if ok && !u.Filler() && u.PhysicalOffset >= physical {
			return low, nil
		}
	}
	for low < high {
		mid := low + (high-low)/2
		u, ok, err := q.unitAt(mid, units)
		if err != nil {
			return 0, err
		}
		if !ok || u.PhysicalOffset < physical || (u.Filler() && u.PhysicalOffset == 0) {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low, nil
}
