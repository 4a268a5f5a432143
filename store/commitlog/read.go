package commitlog

import (
	"errors"
	"fmt"
	"io"
	"math/bits"
	"sync"
	"time"

	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/store/segment"
)

// View borrows bytes of the log in a pooled buffer. Release exactly once; the bytes are invalid afterwards.
type View struct {
	Bytes []byte
	buf   *buffer
}

// Release gives the bytes back. The zero View has nothing to give back.
func (v View) Release() {
	if v.buf != nil {
		v.buf.release()
	}
}

// Size classes of pooled buffers are powers of two between these; larger ones are left to the garbage collector.
const (
	classBitsMin = 10
	classBitsMax = 23
)

type buffer struct {
	b     []byte
	class int
}

// buffers are the pools of View, by class. A pool is shared state without meaning.
var buffers [classBitsMax - classBitsMin + 1]sync.Pool

func newBuffer(size int) *buffer {
	class := max(bits.Len(uint(max(size, 1)-1)), classBitsMin) - classBitsMin
	if class >= len(buffers) {
		return &buffer{b: make([]byte, size), class: -1}
	}
	if pooled, ok := buffers[class].Get().(*buffer); ok {
		return pooled
	}
	return &buffer{b: make([]byte, 1<<(class+classBitsMin)), class: class}
}

func (b *buffer) release() {
	if b.class >= 0 {
		buffers[b.class].Put(b)
	}
}

// NewView returns a View of size bytes of undefined content, for a caller who fills it itself.
func NewView(size int) View {
	buf := newBuffer(size)
	return View{Bytes: buf.b[:size], buf: buf}
}

// Read copies log bytes from offset on into p and returns how many: as much as fits, but not across a file and not beyond
// Appended, where it returns 0. From the newest part they come out of memory, else by a positioned read. ErrNotFound
// stands for an offset below Begin or above Appended. It does not allocate.
func (l *Log) Read(p []byte, offset int64) (int, error) {
	end := l.appended.Load()
	if offset == end {
		return 0, nil
	}
	if offset < 0 || offset > end {
		return 0, fmt.Errorf("%w: %d, the log ends at %d", ErrNotFound, offset, end)
	}
	limit := min(end-offset, l.cfg.FileSize-offset%l.cfg.FileSize)
	p = p[:min(int64(len(p)), limit)]
	n := l.tail.read(p, offset)
	for n < len(p) {
		m, err := l.readFile(p[n:], offset+int64(n))
		if err != nil {
			return 0, err
		}
		n += m
		k := l.tail.read(p[n:], offset+int64(n))
		if m+k == 0 {
			break // cut meanwhile
		}
		n += k
	}
	return n, nil
}

// readFile reads what is not in memory (any more) and so is in a file. What is not written yet is not: behind the end that
// a start found, memory begins where the files' bytes end.
func (l *Log) readFile(p []byte, offset int64) (int, error) {
	p = p[:max(min(int64(len(p)), l.written.Load()-offset), 0)]
	s := l.files.Find(offset)
	if s == nil {
		return 0, fmt.Errorf("%w: %d, the log begins at %d", ErrNotFound, offset, l.Begin())
	}
	n, err := s.ReadAt(p, offset)
	if errors.Is(err, segment.ErrNotFound) {
		return 0, fmt.Errorf("%w: %d was removed", ErrNotFound, offset)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("read commit log: %w", err)
	}
	return n, nil
}

// View returns size bytes from offset on. They must lie in one file and below Appended.
func (l *Log) View(offset int64, size int) (View, error) {
	if size < 0 || int64(size) > min(l.cfg.FileSize, l.appended.Load()-offset) {
		return View{}, fmt.Errorf("%w: %d bytes at %d", ErrNotFound, size, offset)
	}
	v := NewView(size)
	n, err := l.Read(v.Bytes, offset)
	if err == nil && n < size {
		err = fmt.Errorf("%w: %d bytes at %d, only %d are there", ErrNotFound, size, offset, n)
	}
	if err != nil {
		v.Release()
		return View{}, err
	}
	return v, nil
}

// recordGuess is how much Record reads before it knows the size: most records are smaller.
const recordGuess = 2 << 10

// Record returns the record that starts at offset. Its head is checked, not its checksum: an
// offset that a client made up may lie within a body that looks like a record. It does not allocate.
func (l *Log) Record(offset int64) (View, error) {
	v := NewView(recordGuess)
	n, err := l.Read(v.Bytes, offset)
	if err != nil {
		v.Release()
		return View{}, err
	}
	size, magic := message.RecordHead(v.Bytes[:n])
	switch {
	case !message.IsRecordMagic(magic) || size < message.RecordSizeMin || message.RecordOffset(v.Bytes[:n]) != offset:
		v.Release()
		return View{}, fmt.Errorf("%w: no record starts at %d", ErrNotFound, offset)
	case int(size) <= n:
		v.Bytes = v.Bytes[:size]
		return v, nil
	}
	v.Release()
	return l.View(offset, int(size))
}

// InMemory tells whether the bytes at offset are still served without a read of a file.
func (l *Log) InMemory(offset int64) bool {
	return offset >= 0 && offset < l.appended.Load() && l.tail.has(offset)
}

// FileSize is mappedFileSizeCommitLog.
func (l *Log) FileSize() int64 { return l.cfg.FileSize }

// File is one file of the log.
type File struct {
	Begin    int64
	Modified time.Time // of its last write: what retention counts from
}

// Files lists the files, oldest first, those prepared ahead included.
func (l *Log) Files() ([]File, error) {
	entries, err := l.fsys.ReadDir(l.cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("list commit log: %w", err)
	}
	begin, end := l.files.Bounds()
	files := make([]File, 0, len(entries))
	for _, e := range entries {
		if at, ok := segment.ParseName(e.Name); ok && at >= begin && at < end {
			files = append(files, File{Begin: at, Modified: e.ModTime})
		}
	}
	return files, nil
}

// RemoveFirst removes the oldest file, if it ends at or below limit and below the durable end: the newest file with data in
// it is never removed. Reads of removed bytes give ErrNotFound; Views keep what they hold. One caller at a time.
func (l *Log) RemoveFirst(limit int64) (bool, error) {
	files := l.files.Segments()
	if len(files) < 2 || files[0].End() > limit || files[0].End() >= l.durable.Load() {
		return false, nil
	}
	if err := l.files.RemoveFirst(); err != nil {
		return false, fmt.Errorf("remove oldest file of commit log: %w", err)
	}
	return true, nil
}
