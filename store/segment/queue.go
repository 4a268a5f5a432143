// Package segment keeps a byte sequence in files of one fixed size, each named by the 20-digit offset of its first byte,
// as RocketMQ's MappedFileQueue does. It knows offsets and files; what the bytes mean is its user's business. All I/O is
// positioned, never mapped: a mapped page that is not in memory stalls every goroutine, and a full disk would be a signal
// instead of an error.
package segment

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/internal/vfs"
)

// Errors of a Queue. Match with errors.Is.
var (
	// ErrLayout reports files that cannot be one sequence: a gap, an overlap, or a wrong length in the middle.
	ErrLayout = errors.New("segment: files do not fit together")
	// ErrNotFound reports an offset that no file covers.
	ErrNotFound = errors.New("segment: offset not covered")
)

const nameDigits = 20

// Name is the file name of the segment that begins at offset.
func Name(offset int64) string { return fmt.Sprintf("%0*d", nameDigits, offset) }

// ParseName is the inverse of Name. ok is false for every other name.
func ParseName(name string) (offset int64, ok bool) {
	if len(name) != nameDigits {
		return 0, false
	}
	for _, c := range name {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	offset, err := strconv.ParseInt(name, 10, 64)
	return offset, err == nil
}

// Segment is one file of a Queue. Positions are offsets of the whole sequence, not of the file.
type Segment struct {
	begin, end int64
	name       string
	file       vfs.File

	// inUse is held shared during I/O and taken to close the file, so that no descriptor is used after it was given back.
	inUse   sync.RWMutex
	removed bool
}

// Begin is the offset of the first byte.
func (s *Segment) Begin() int64 { return s.begin }

// End is the offset behind the last byte.
func (s *Segment) End() int64 { return s.end }

// ReadAt reads len(p) bytes at offset, which must lie within the segment; it gives io.EOF with fewer at its end.
func (s *Segment) ReadAt(p []byte, offset int64) (int, error) {
	s.inUse.RLock()
	defer s.inUse.RUnlock()
	if s.removed || offset < s.begin || offset > s.end {
		return 0, fmt.Errorf("read %d in %s: %w", offset, s.name, ErrNotFound)
	}
	short := int64(len(p)) > s.end-offset
	if short {
		p = p[:s.end-offset]
	}
	n, err := s.file.ReadAt(p, offset-s.begin)
	if n == len(p) {
		err = nil
	}
	if err == nil && short {
		err = io.EOF
	}
	return n, err
}

// WriteAt writes p at offset. All of it must lie within the segment.
func (s *Segment) WriteAt(p []byte, offset int64) error {
	s.inUse.RLock()
	defer s.inUse.RUnlock()
	if s.removed || offset < s.begin || offset+int64(len(p)) > s.end {
		return fmt.Errorf("write %d bytes at %d in %s: %w", len(p), offset, s.name, ErrNotFound)
	}
	n, err := s.file.WriteAt(p, offset-s.begin)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	return err
}

// Sync makes the segment's bytes durable.
func (s *Segment) Sync() error {
	s.inUse.RLock()
	defer s.inUse.RUnlock()
	if s.removed {
		return fmt.Errorf("sync %s: %w", s.name, ErrNotFound)
	}
	return s.file.Sync()
}

// zeros is what Zero writes; never changed.
var zeros [ZeroStep]byte

// ZeroStep is how much Zero writes at once.
const ZeroStep = 1 << 20

// Zero fills [from, to) with zeros, which takes its space on the disk, and asks the system to write it out without
// waiting for the next Sync to do so.
func (s *Segment) Zero(from, to int64) error {
	for at := from; at < to; {
		n := min(to-at, ZeroStep)
		if err := s.WriteAt(zeros[:n], at); err != nil {
			return err
		}
		at += n
	}
	s.inUse.RLock()
	defer s.inUse.RUnlock()
	if !s.removed {
		vfs.StartWriteback(s.file, from-s.begin, to-from)
	}
	return nil
}

// Reserve takes the space of [from, to), which must not have been written before, without writing it where the file system
// can do that. It reads as zeros. Blocks reserved so cost a sync more than zero-filled ones: the first sync behind a write
// must commit that they are in use.
func (s *Segment) Reserve(from, to int64) error {
	s.inUse.RLock()
	defer s.inUse.RUnlock()
	if s.removed || from < s.begin || to > s.end {
		return fmt.Errorf("reserve %d to %d in %s: %w", from, to, s.name, ErrNotFound)
	}
	return vfs.Allocate(s.file, from-s.begin, to-from, func(at, n int64) error {
		_, err := s.file.WriteAt(zeros[:n], at)
		return err
	})
}

// NextData returns the first offset at or behind offset that may hold something else than zeros, End when there is none.
func (s *Segment) NextData(offset int64) (int64, error) {
	s.inUse.RLock()
	defer s.inUse.RUnlock()
	if s.removed {
		return 0, fmt.Errorf("seek %d in %s: %w", offset, s.name, ErrNotFound)
	}
	at, err := vfs.NextData(s.file, offset-s.begin)
	return min(s.begin+at, s.end), err
}

// Cut makes everything from offset on read as zeros, durably, by shortening and lengthening the file: after a crash at
// any moment the bytes are either all there or all gone.
func (s *Segment) Cut(offset int64) error {
	s.inUse.RLock()
	defer s.inUse.RUnlock()
	if s.removed {
		return fmt.Errorf("cut %s: %w", s.name, ErrNotFound)
	}
	if err := s.file.Truncate(offset - s.begin); err != nil {
		return err
	}
	// Between the two the shorter length must be on disk: else a crash could keep the second change only.
	if err := s.file.Sync(); err != nil {
		return err
	}
	if err := s.file.Truncate(s.end - s.begin); err != nil {
		return err
	}
	return s.file.Sync()
}

func (s *Segment) close() error {
	s.inUse.Lock()
	defer s.inUse.Unlock()
	if s.removed {
		return nil
	}
	s.removed = true
	return s.file.Close()
}

// Queue is an unbroken run of segments. Lookups are lock-free; changes of the run are serialized by the Queue.
type Queue struct {
	fsys     vfs.FS
	dir      string
	fileSize int64

	mu       sync.Mutex                 // changes of the run
	segments atomic.Pointer[[]*Segment] // replaced, never changed in place

	stuck *Segment // out of the run, and its file could not be removed yet; of whoever removes
}

// OpenQueue opens the segments in dir, which is made when it is missing. Foreign names are left alone and logged. A last
// file that is too short was being made when a crash came, and gets its length. Everything else that does not fit is
// ErrLayout, naming the file.
func OpenQueue(fsys vfs.FS, dir string, fileSize int64, logger *slog.Logger) (*Queue, error) {
	if err := vfs.MakeDir(fsys, dir); err != nil {
		return nil, fmt.Errorf("make %s: %w", dir, err)
	}
	q := &Queue{fsys: fsys, dir: dir, fileSize: fileSize}
	q.segments.Store(&[]*Segment{})
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	entries = slices.DeleteFunc(entries, func(e vfs.Entry) bool {
		if _, ok := ParseName(e.Name); ok && !e.Dir {
			return false
		}
		logger.Warn("foreign name left alone", slog.String("dir", dir), slog.String("name", e.Name))
		return true
	})
	if err := checkLayout(dir, entries, fileSize); err != nil {
		return nil, err
	}
	for _, e := range entries {
		if err := q.open(e); err != nil {
			_ = q.Close() // the first error says more
			return nil, err
		}
	}
	return q, nil
}

func checkLayout(dir string, entries []vfs.Entry, fileSize int64) error {
	for i, e := range entries {
		name := path.Join(dir, e.Name)
		begin, _ := ParseName(e.Name)
		if i > 0 {
			previous, _ := ParseName(entries[i-1].Name)
			if begin != previous+fileSize {
				return fmt.Errorf("%w: %s follows %s, expected %s", ErrLayout, name, entries[i-1].Name, Name(previous+fileSize))
			}
		}
		last := i == len(entries)-1
		if e.Size > fileSize || e.Size < fileSize && !last {
			return fmt.Errorf("%w: %s has %d bytes, every file must have %d", ErrLayout, name, e.Size, fileSize)
		}
	}
	return nil
}

func (q *Queue) open(e vfs.Entry) error {
	begin, _ := ParseName(e.Name)
	name := path.Join(q.dir, e.Name)
	file, err := q.fsys.Open(name)
	if err != nil {
		return fmt.Errorf("open segment: %w", err)
	}
	if e.Size < q.fileSize {
		if err := file.Truncate(q.fileSize); err != nil {
			_ = file.Close() // the first error says more
			return fmt.Errorf("lengthen %s: %w", name, err)
		}
	}
	q.push(&Segment{begin: begin, end: begin + q.fileSize, name: name, file: file})
	return nil
}

func (q *Queue) push(s *Segment) {
	run := append(slices.Clone(*q.segments.Load()), s)
	q.segments.Store(&run)
}

// FileSize is the size of every file.
func (q *Queue) FileSize() int64 { return q.fileSize }

// Segments returns the run, oldest first. It must not be changed.
func (q *Queue) Segments() []*Segment { return *q.segments.Load() }

// Bounds returns the offsets of the first byte and behind the last, 0 and 0 when there is no segment.
func (q *Queue) Bounds() (begin, end int64) {
	run := q.Segments()
	if len(run) == 0 {
		return 0, 0
	}
	return run[0].begin, run[len(run)-1].end
}

// Find returns the segment that covers offset, or nil.
func (q *Queue) Find(offset int64) *Segment {
	run := q.Segments()
	if len(run) == 0 || offset < run[0].begin {
		return nil
	}
	i := (offset - run[0].begin) / q.fileSize
	if i >= int64(len(run)) {
		return nil
	}
	return run[i]
}

// Grow makes the segment behind the last one, or the one that begins at begin when there is none. The file has its full
// length, and file and name are durable, when Grow returns.
func (q *Queue) Grow(begin int64) (*Segment, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if run := q.Segments(); len(run) > 0 {
		begin = run[len(run)-1].end
	}
	name := path.Join(q.dir, Name(begin))
	file, err := q.fsys.Create(name)
	if err != nil {
		return nil, fmt.Errorf("create segment: %w", err)
	}
	err = file.Truncate(q.fileSize)
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = q.fsys.SyncDir(q.dir)
	}
	if err != nil {
		// An incomplete segment must not stay: the next attempt would find its name taken.
		return nil, errors.Join(fmt.Errorf("prepare segment %s: %w", name, err), file.Close(), q.fsys.Remove(name))
	}
	s := &Segment{begin: begin, end: begin + q.fileSize, name: name, file: file}
	q.push(s)
	return s, nil
}

// RemoveFirst removes the oldest segment. Its name is gone for good when RemoveFirst returns; a read under way ends first.
// One caller removes at a time; a Grow meanwhile is fine.
func (q *Queue) RemoveFirst() error { return q.removeAt(func(int) int { return 0 }) }

// RemoveLast removes the newest segment, as RemoveFirst does; no Grow meanwhile.
func (q *Queue) RemoveLast() error { return q.removeAt(func(n int) int { return n - 1 }) }

// removeAt takes a segment out of the run, and then removes the file outside of the lock: unlinking a large file is slow.
func (q *Queue) removeAt(index func(n int) int) error {
	if q.stuck != nil { // before any other, so that a crash never finds a gap
		if err := q.remove(q.stuck); err != nil {
			return err
		}
	}
	q.mu.Lock()
	run := q.Segments()
	if len(run) == 0 {
		q.mu.Unlock()
		return ErrNotFound
	}
	i := index(len(run))
	rest := slices.Delete(slices.Clone(run), i, i+1)
	q.segments.Store(&rest)
	q.mu.Unlock()
	return q.remove(run[i])
}

// remove syncs the directory each time, so that a crash never leaves a gap in the run.
func (q *Queue) remove(s *Segment) error {
	if q.stuck != s {
		q.stuck = s
		if err := s.close(); err != nil {
			return fmt.Errorf("close %s: %w", s.name, err)
		}
	}
	if err := q.fsys.Remove(s.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove segment: %w", err)
	}
	if err := q.fsys.SyncDir(q.dir); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	q.stuck = nil
	return nil
}

// Close gives the files back. It syncs nothing.
func (q *Queue) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	var errs []error
	for _, s := range q.Segments() {
		errs = append(errs, s.close())
	}
	q.segments.Store(&[]*Segment{})
	return errors.Join(errs...)
}
