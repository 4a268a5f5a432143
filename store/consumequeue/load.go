package consumequeue

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"github.com/quorate/quorate/internal/vfs"
)

// Bounds is what the log and the checkpoint say about the queues at start.
type Bounds struct {
	// LogMin is the first byte of the log.
	LogMin int64
	// Trusted is the physical offset up to which units are known to be durable: those of records at or behind it are
	// dropped, for the store dispatches these records again.
	Trusted int64
	// Known is what queues were like, or had already grown beyond: a queue that is shorter was damaged. Nil: nothing known.
	Known map[Key]Known
	// Complete: after a clean stop Known has every queue, and each is exactly like that. Directories are not listed.
	Complete bool
}

// Known is what a queue was like: the first offset in its files, the first whose record the log had, and its end.
type Known struct{ First, Min, End int64 }

// TrustAll is the Trusted of a store that was closed cleanly.
const TrustAll int64 = math.MaxInt64

// Key names a queue.
type Key struct {
	Topic string
	ID    int32
}

// Damage is a queue whose files do not hold what they should. The store rebuilds it from the log, from physical offset
// From on.
type Damage struct {
	Key
	Reason string
	From   int64
}

// Open reads the directory and finds the ends of all queues (RocketMQ ConsumeQueue.recover). It reports queues to be
// rebuilt, and starts no goroutine that outlives it.
func Open(cfg Config, bounds Bounds, logger *slog.Logger) (*Table, []Damage, error) {
	if err := cfg.Validate(); err != nil {
		return nil, nil, err
	}
	t := newTable(cfg, logger)
	keys, err := t.list(bounds)
	if err != nil {
		return nil, nil, err
	}
	l := &loader{t: t, bounds: bounds}
	if err := l.run(keys); err != nil {
		return nil, nil, errors.Join(err, t.Close())
	}
	damaged := make(map[Key]bool, len(l.damage))
	for _, d := range l.damage {
		damaged[d.Key] = true
	}
	for k, known := range bounds.Known {
		q := t.Lookup(k.Topic, k.ID)
		switch {
		case damaged[k]:
		case q == nil || q.end == 0:
			l.damage = append(l.damage, Damage{k, fmt.Sprintf("queue is missing, it ended at %d", known.End), bounds.LogMin})
		case q.end < known.End:
			l.damage = append(l.damage, Damage{k, fmt.Sprintf("ends at %d, it ended at %d", q.end, known.End), q.resume(bounds.LogMin)})
		}
	}
	return t, l.damage, nil
}

// resume is where a rebuild of q has to begin. A queue without a unit may have lost any of them.
func (q *Queue) resume(logMin int64) int64 { return max(q.maxPhysical, logMin) }

// list finds the queue directories.
func (t *Table) list(bounds Bounds) ([]Key, error) {
	if bounds.Complete {
		keys := make([]Key, 0, len(bounds.Known))
		for k := range bounds.Known {
			keys = append(keys, k)
		}
		return keys, nil
	}
	topics, err := t.cfg.FS.ReadDir(t.cfg.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list consume queues: %w", err)
	}
	var keys []Key
	for _, topic := range topics {
		if !topic.Dir {
			continue
		}
		ids, err := t.cfg.FS.ReadDir(t.cfg.Dir + "/" + topic.Name)
		if err != nil {
			return nil, fmt.Errorf("list consume queues: %w", err)
		}
		for _, e := range ids {
			id, err := strconv.ParseInt(e.Name, 10, 32)
			if e.Dir && err == nil && strconv.FormatInt(id, 10) == e.Name {
				keys = append(keys, Key{topic.Name, int32(id)})
			}
		}
	}
	return keys, nil
}

type loader struct {
	t      *Table
	bounds Bounds

	mu     sync.Mutex
	next   int
	damage []Damage
	err    error
}

// run loads the queues in parallel: with 100,000 of them the start is bound by system calls.
func (l *loader) run(keys []Key) error {
	var wg sync.WaitGroup
	for range min(len(keys), 2*runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			var scratch block
			for {
				l.mu.Lock()
				i := l.next
				l.next++
				failed := l.err != nil
				l.mu.Unlock()
				if failed || i >= len(keys) {
					return
				}
				if err := l.load(keys[i], &scratch); err != nil {
					l.mu.Lock()
					l.err = errors.Join(l.err, fmt.Errorf("load consume queue %s/%d: %w", keys[i].Topic, keys[i].ID, err))
					l.mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return l.err
}

func (l *loader) load(k Key, scratch *block) error {
	q := l.t.Queue(k.Topic, k.ID)
	if known := l.bounds.Known[k]; l.bounds.Complete && l.unchanged(q, known, scratch) {
		return nil
	}
	begins, reason, err := l.fileBegins(q)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it is missing
	}
	if err != nil {
		return err
	}
	if len(begins) > 0 {
		// Up to here the files are one run; what lies behind a flaw is dropped.
		q.first = begins[0] / UnitSize
		q.end = q.first
		whole, err := l.findEnd(q, begins, scratch)
		if err != nil {
			return err
		}
		if whole != "" && reason == "" {
			reason = whole
		}
	}
	q.written, q.tailBegin = q.end, q.end
	if l.bounds.Trusted != TrustAll || reason != "" {
		if err := l.dropBehind(q); err != nil {
			return err
		}
	}
	if q.end == q.first { // files without a single unit
		q.first, q.end, q.written, q.tailBegin = 0, 0, 0, 0
	}
	if q.end > 0 {
		var units Units
		if q.min, err = firstNotBefore(q, q.first, q.end, l.bounds.LogMin, &units); err != nil {
			return err
		}
	}
	if reason != "" {
		l.mu.Lock()
		l.damage = append(l.damage, Damage{k, reason, q.resume(l.bounds.LogMin)})
		l.mu.Unlock()
	}
	return nil
}

// unchanged takes a queue of one file as it was known, after a look at its last unit and the place behind: most queues of a
// store with very many are like that.
func (l *loader) unchanged(q *Queue, known Known, scratch *block) bool {
	if known.First%l.t.units != 0 || known.End <= known.First || known.End > known.First+l.t.units {
		return false
	}
	f, err := l.t.cfg.FS.Open(l.t.files.name(fileKey{q, known.First * UnitSize}))
	if err != nil {
		return false // the long way tells why
	}
	defer func() { _ = f.Close() }() // nothing was written
	units := min(2, known.First+l.t.units-known.End+1)
	if n, _ := f.ReadAt(scratch.b[:units*UnitSize], (known.End-1-known.First)*UnitSize); int64(n) < units*UnitSize {
		return false
	}
	last := decodeUnit(scratch.b[:])
	if !last.Valid() || units == 2 && decodeUnit(scratch.b[UnitSize:]).Valid() {
		return false
	}
	q.first, q.min, q.end = known.First, min(max(known.Min, known.First), known.End), known.End
	q.written, q.tailBegin, q.maxPhysical = q.end, q.end, last.End()
	return true
}

// fileBegins lists the run of files that a queue may be read from, and says what is wrong with the others.
func (l *loader) fileBegins(q *Queue) (begins []int64, reason string, err error) {
	dir := l.t.files.queueDir(q)
	entries, err := l.t.cfg.FS.ReadDir(dir)
	if err != nil {
		return nil, "", err
	}
	size := l.t.cfg.FileSize
	for _, e := range entries {
		begin, ok := parseFileName(e.Name)
		if !ok || e.Dir {
			continue
		}
		if e.Size > size || begin%size != 0 {
			return nil, "", fmt.Errorf("file %s has %d bytes: mappedFileSizeConsumeQueue=%d does not fit this directory",
				e.Name, e.Size, size)
		}
		if n := len(begins); reason == "" && n > 0 && begin != begins[n-1]+size {
			reason = "a file is missing before " + e.Name
		}
		if reason != "" {
			continue
		}
		begins = append(begins, begin)
		if e.Size < size {
			if err := l.lengthen(dir + "/" + e.Name); err != nil {
				return nil, "", err
			}
		}
	}
	return begins, reason, nil
}

// lengthen gives a file its full length again; a crash while it was cut, or damage, left it short.
func (l *loader) lengthen(name string) error {
	f, err := l.t.cfg.FS.Open(name)
	if err != nil {
		return err
	}
	err = f.Truncate(l.t.cfg.FileSize)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// findEnd sets the end of q: the first unit that is not valid, or whose record the store dispatches again. A file before
// the last one that is not full is damage.
func (l *loader) findEnd(q *Queue, begins []int64, scratch *block) (reason string, err error) {
	for i, begin := range slices.Backward(begins) {
		n, last, err := l.unitsIn(q, begin, scratch)
		if err != nil {
			return "", err
		}
		if n == 0 {
			continue
		}
		q.end = begin/UnitSize + n
		q.maxPhysical = last.End()
		for j := range begins[:i] {
			n, last, err := l.lastUnitIn(q, begins[j], scratch)
			if err != nil {
				return "", err
			}
			if n < l.t.units {
				q.end = begins[j]/UnitSize + n
				q.maxPhysical = last.End()
				return fmt.Sprintf("file %s is not full", fileName(begins[j])), nil
			}
		}
		return "", nil
	}
	return "", nil
}

// lastUnitIn is unitsIn for a file that should be full.
func (l *loader) lastUnitIn(q *Queue, begin int64, scratch *block) (n int64, last Unit, err error) {
	f, err := l.t.cfg.FS.Open(l.t.files.name(fileKey{q, begin}))
	if err != nil {
		return 0, Unit{}, err
	}
	first, err := scratch.unit(f, 0)
	if err == nil {
		last, err = scratch.unit(f, l.t.units-1)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, Unit{}, err
	}
	if first.Valid() && l.trusted(last) {
		return l.t.units, last, nil
	}
	return l.unitsIn(q, begin, scratch)
}

func (l *loader) trusted(u Unit) bool { return u.Valid() && u.PhysicalOffset < l.bounds.Trusted }

// unitsIn counts the units at the front of a file that can be trusted. Behind the durable part there may be anything, but
// no unit of a record before Trusted, so that halving finds the place.
func (l *loader) unitsIn(q *Queue, begin int64, scratch *block) (n int64, last Unit, err error) {
	f, err := l.t.cfg.FS.Open(l.t.files.name(fileKey{q, begin}))
	if err != nil {
		return 0, Unit{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	// Most queues are short: one read settles them.
	got, err := scratch.fill(f, 0)
	if err != nil {
		return 0, Unit{}, err
	}
	low, high := int64(0), l.t.units
	for i := range got {
		u := decodeUnit(scratch.b[i*UnitSize:])
		if !l.trusted(u) {
			return int64(i), last, nil
		}
		last = u
		low++
	}
	for low < high {
		mid := low + (high-low)/2
		u, err := scratch.unit(f, mid)
		if err != nil {
			return 0, Unit{}, err
		}
		if l.trusted(u) {
			low, last = mid+1, u
		} else {
			high = mid
		}
	}
	return low, last, nil
}

// dropBehind makes the files end where q ends, so that nothing stale can be taken for a unit later.
func (l *loader) dropBehind(q *Queue) error {
	t := l.t
	entries, err := t.cfg.FS.ReadDir(t.files.queueDir(q))
	if err != nil {
		return err
	}
	end := q.end * UnitSize
	for _, entrie := range slices.Backward(entries) {
		begin, ok := parseFileName(entrie.Name)
		if !ok || entrie.Dir || begin+t.cfg.FileSize <= end {
			continue
		}
		k := fileKey{q, begin}
		switch {
		case begin >= end:
			if err := t.removeFile(k); err != nil {
				return err
			}
		default:
			if err := t.zeroBehind(k, end-begin); err != nil {
				return err
			}
		}
	}
	return nil
}

// block is one read of a queue file.
type block struct{ b [200 * UnitSize]byte }

func (s *block) fill(f vfs.File, unit int64) (units int, err error) {
	n, err := f.ReadAt(s.b[:], unit*UnitSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	return n / UnitSize, nil
}

func (s *block) unit(f vfs.File, unit int64) (Unit, error) {
	if _, err := f.ReadAt(s.b[:UnitSize], unit*UnitSize); err != nil {
		return Unit{}, err
	}
	return decodeUnit(s.b[:]), nil
}
