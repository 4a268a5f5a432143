// Package index finds records by key: RocketMQ's IndexFile, a hash table in sparse files. Keys come in batches from the
// store's dispatcher and are taken in by a worker of its own, some way behind; slots are changed in memory and reach the
// file at a checkpoint. It knows hashes, not keys: who asks compares the records it is pointed to. What a crash takes from
// it is found again in the log.
package index

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/quorate/quorate/internal/vfs"
)

// Config of an Index; leaf fields carry RocketMQ's key.
type Config struct {
	FS    vfs.FS
	Dir   string
	Slots int `conf:"maxHashSlotNum"`
	// Entries of one file, the unused first one included.
	Entries int32 `conf:"maxIndexNum"`
	// PendingMax bounds the keys that wait for the worker; Submit waits beyond.
	PendingMax int
	Now        func() time.Time
}

// DefaultConfig is RocketMQ's where it has the key. FS and Dir are left to the caller.
func DefaultConfig() Config {
	return Config{Slots: 5_000_000, Entries: 20_000_000, PendingMax: 128 << 10, Now: time.Now}
}

// Validate checks the bounds of the fields.
func (c Config) Validate() error {
	switch {
	case c.FS == nil || c.Dir == "" || c.Now == nil:
		return errors.New("index: no directory or clock")
	case c.Slots < 1 || c.Slots > math.MaxInt32/slotSize:
		return fmt.Errorf("maxHashSlotNum: %d is not in 1..%d", c.Slots, math.MaxInt32/slotSize)
	case c.Entries < 2 || c.Entries > math.MaxInt32/entrySize:
		return fmt.Errorf("maxIndexNum: %d is not in 2..%d", c.Entries, math.MaxInt32/entrySize)
	case c.PendingMax < 1:
		return errors.New("index: PendingMax below 1")
	}
	return nil
}

// Index is safe for concurrent use; Submit belongs to one dispatcher, Run and Sync may run beside it.
type Index struct {
	cfg    Config
	logger *slog.Logger

	// applyMu is held by whoever changes files: the worker, Sync, Expire, CutAbove. mu is taken inside it, exclusively to
	// change what queries read, shared by queries.
	applyMu sync.Mutex
	mu      sync.RWMutex
	files   []*file

	pendingMu sync.Mutex
	pending   []pendingKey
	spare     []pendingKey
	end       int64 // of what was submitted
	wake      chan struct{}
	room      chan struct{}
	covered   atomic.Int64

	// resumed: records up to the file's end offset may be submitted again; only the worker looks.
	resume int64

	dirUnsynced bool // applyMu
}

// Submit hands the batch to the worker and empties it. It waits while too many keys are pending.
func (x *Index) Submit(ctx context.Context, b *Batch) error {
	for {
		x.pendingMu.Lock()
		if len(x.pending) < x.cfg.PendingMax {
			x.pending = append(x.pending, b.keys...)
			x.end = max(x.end, b.end)
			x.pendingMu.Unlock()
			b.keys = b.keys[:0]
			signal(x.wake)
			return nil
		}
		x.pendingMu.Unlock()
		select {
		case <-x.room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// retryAfter is how long the worker waits after an error before it tries again: space may come back.
const retryAfter = time.Second

// Run takes in what is submitted until ctx ends, and what is pending then. A full disk it waits out; another error ends it.
func (x *Index) Run(ctx context.Context) error {
	for {
		select {
		case <-x.wake:
		case <-ctx.Done():
			return x.Apply()
		}
		for err := x.Apply(); err != nil; err = x.Apply() {
			if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
				return err
			}
			x.logger.Warn("index stands still for want of space", slog.Any("error", err))
			select {
			case <-time.After(retryAfter):
			case <-ctx.Done():
				return x.Apply()
			}
		}
	}
}

// applyStep is how many keys are taken in under one hold of the lock that queries wait for.
const applyStep = 1024

// Apply takes in everything pending, in the caller's goroutine. After an error the rest stays pending.
func (x *Index) Apply() error {
	x.applyMu.Lock()
	defer x.applyMu.Unlock()
	return x.apply()
}

func (x *Index) apply() error {
	for {
		x.pendingMu.Lock()
		batch, end := x.pending, x.end
		x.pending, x.spare = x.spare[:0], nil
		x.pendingMu.Unlock()
		for done := 0; done < len(batch); {
			n := min(len(batch)-done, applyStep)
			taken, err := x.take(batch[done : done+n])
			done += taken
			if err != nil {
				x.pendingMu.Lock()
				x.pending = append(batch[done:len(batch):len(batch)], x.pending...)
				x.pendingMu.Unlock()
				return err
			}
		}
		signal(x.room)
		x.covered.Store(end)
		x.pendingMu.Lock()
		x.spare = batch[:0]
		more := len(x.pending) > 0
		x.pendingMu.Unlock()
		if !more {
			return nil
		}
	}
}

func (x *Index) take(keys []pendingKey) (taken int, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i, k := range keys {
		if k.physical <= x.resume {
			if k.physical < x.resume {
				continue
			}
			// A crash may have come between two keys of one record.
			has, err := x.has(k)
			if err != nil {
				return i, err
			}
			if has {
				continue
			}
		}
		f, err := x.current()
		if err != nil {
			return i, err
		}
		if err := f.put(k); err != nil {
			return i, err
		}
	}
	return len(keys), nil
}

// has tells whether a key of the record is in one of the last two files.
func (x *Index) has(k pendingKey) (bool, error) {
	for i := len(x.files) - 1; i >= max(len(x.files)-2, 0); i-- {
		found := false
		err := x.files[i].walk(k.hash, func(e entry) bool {
			found = e.hash == k.hash && e.physical == k.physical
			return !found && e.physical >= k.physical
		})
		if found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// current is the file that takes the next key; a full one is synced and followed by a new one.
func (x *Index) current() (*file, error) {
	if n := len(x.files); n > 0 && !x.files[n-1].full() {
		return x.files[n-1], nil
	}
	var head header
	previous := ""
	if n := len(x.files); n > 0 {
		last := x.files[n-1]
		if err := last.sync(); err != nil {
			return nil, err
		}
		previous = last.name
		// As Java's: an empty file stands where the one before ended.
		head = header{
			beginTime: last.head.endTime, endTime: last.head.endTime,
			beginOffset: last.head.endOffset, endOffset: last.head.endOffset,
		}
	}
	head.next = 1
	f, err := x.create(nextName(x.cfg.Now(), previous))
	if err != nil {
		return nil, err
	}
	f.head, f.inFile = head, 1
	x.files = append(x.files, f)
	return f, nil
}

func (x *Index) create(name string) (*file, error) {
	if err := x.cfg.FS.MkdirAll(x.cfg.Dir); err != nil {
		return nil, fmt.Errorf("make index directory: %w", err)
	}
	full := x.cfg.Dir + "/" + name
	f, err := x.cfg.FS.Create(full)
	if err != nil {
		return nil, fmt.Errorf("create index file: %w", err)
	}
	if err := f.Truncate(fileSize(x.cfg.Slots, x.cfg.Entries)); err != nil {
		return nil, errors.Join(fmt.Errorf("create index file %s: %w", name, err), f.Close(), x.cfg.FS.Remove(full))
	}
	x.dirUnsynced = true
	return newFile(name, f, x.cfg.Slots, x.cfg.Entries), nil
}

// Covered is the end of the log up to which the worker has taken in all keys.
func (x *Index) Covered() int64 { return x.covered.Load() }

// Newest is the store time of the newest key, 0 without one.
func (x *Index) Newest() int64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if n := len(x.files); n > 0 {
		return x.files[n-1].head.endTime
	}
	return 0
}

// Sync makes durable what the worker has taken in, and returns up to where that covers the log and the store time of the
// newest key. After an error nothing is known about the files any more.
func (x *Index) Sync() (covered, newestTime int64, err error) {
	x.applyMu.Lock()
	defer x.applyMu.Unlock()
	covered = x.covered.Load()
	if x.dirUnsynced {
		if err := x.cfg.FS.SyncDir(x.cfg.Dir); err != nil {
			return 0, 0, fmt.Errorf("sync index directory: %w", err)
		}
		if err := x.cfg.FS.SyncDir(path.Dir(x.cfg.Dir)); err != nil {
			return 0, 0, fmt.Errorf("sync index directory: %w", err)
		}
		x.dirUnsynced = false
	}
	if len(x.files) == 0 {
		return covered, 0, nil
	}
	// Queries only read what sync changes under the lock: the buffer's and the pages' places.
	last := x.files[len(x.files)-1]
	if !last.changed {
		x.mu.Lock()
		last.rest()
		x.mu.Unlock()
		return covered, last.head.endTime, nil
	}
	x.mu.Lock()
	err = last.writeEntries()
	x.mu.Unlock()
	if err == nil {
		err = last.sync()
	}
	return covered, last.head.endTime, err
}

// Found is the outcome of a Query.
type Found struct {
	Offsets    []int64 // of records that may have the key, the newest first, each once
	LastTime   int64   // store time and offset of the newest key in the index
	LastOffset int64
}

// Query finds records that may have the key in the time [begin, end], at most maxNum of each file's newest. With byTag the
// key is a tag. Hashes collide: the caller compares.
func (x *Index) Query(topic, key string, byTag bool, maxNum int, begin, end int64) (Found, error) {
	hash := keyHash(topic, key)
	if byTag {
		hash = keyHash(topic, tagType+"#"+key)
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	var found Found
	seen := map[int64]bool{}
	for i, f := range slices.Backward(x.files) {
		if i == len(x.files)-1 {
			found.LastTime, found.LastOffset = f.head.endTime, f.head.endOffset
		}
		if f.head.next > 1 && f.timeMatches(begin, end) {
			err := f.walk(hash, func(e entry) bool {
				at := f.head.beginTime + int64(e.seconds)*1000
				if e.hash == hash && at >= begin && at <= end && !seen[e.physical] {
					seen[e.physical] = true
					found.Offsets = append(found.Offsets, e.physical)
				}
				return len(found.Offsets) < maxNum && at >= begin
			})
			if err != nil {
				return found, err
			}
		}
		if f.head.beginTime < begin || len(found.Offsets) >= maxNum {
			break
		}
	}
	return found, nil
}

// Expire removes files whose records are all before logBegin, except the newest. It returns how many.
func (x *Index) Expire(logBegin int64) (removed int, err error) {
	x.applyMu.Lock()
	defer x.applyMu.Unlock()
	for len(x.files) > 1 && x.files[0].head.endOffset < logBegin {
		f := x.files[0]
		x.mu.Lock()
		x.files = x.files[1:]
		x.mu.Unlock()
		if err := errors.Join(f.f.Close(), x.cfg.FS.Remove(x.cfg.Dir+"/"+f.name)); err != nil {
			return removed, fmt.Errorf("remove index file %s: %w", f.name, err)
		}
		x.dirUnsynced = true
		removed++
	}
	return removed, nil
}

// CutAbove takes back the keys of records at or behind physical, durably. Nothing may be pending.
func (x *Index) CutAbove(physical int64) error {
	x.applyMu.Lock()
	defer x.applyMu.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	for len(x.files) > 0 {
		f := x.files[len(x.files)-1]
		next, err := f.firstAtOrBehind(physical)
		if err != nil {
			return err
		}
		if next > 1 || len(x.files) == 1 && f.head.next <= 1 {
			if next < f.head.next {
				err = f.cut(next)
			}
			x.finishCut(physical)
			return err
		}
		x.files = x.files[:len(x.files)-1]
		if err := errors.Join(f.f.Close(), x.cfg.FS.Remove(x.cfg.Dir+"/"+f.name)); err != nil {
			return fmt.Errorf("remove index file %s: %w", f.name, err)
		}
		x.dirUnsynced = true
	}
	x.finishCut(physical)
	return nil
}

func (x *Index) finishCut(physical int64) {
	x.resume = min(x.resume, physical-1)
	x.pendingMu.Lock()
	x.end = min(x.end, physical)
	x.pendingMu.Unlock()
	x.covered.Store(min(x.covered.Load(), physical))
}

// firstAtOrBehind is the number of the first entry of a record at or behind physical, or the next free one.
func (x *file) firstAtOrBehind(physical int64) (int32, error) {
	low, high := int32(1), x.head.next
	for low < high {
		mid := low + (high-low)/2
		e, err := x.entry(mid)
		if err != nil {
			return 0, err
		}
		if e.physical < physical {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low, nil
}

// Close closes the files; what was not synced is lost to them.
func (x *Index) Close() error {
	x.applyMu.Lock()
	defer x.applyMu.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	var err error
	for _, f := range x.files {
		err = errors.Join(err, f.f.Close())
	}
	x.files = nil
	return err
}
