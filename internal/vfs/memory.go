package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// chunkSize is the granule of a memory file: a hole takes no memory.
const chunkSize = 64 << 10

// Memory is a file system that lives as long as its process. Syncs do nothing and never fail. Its size is bounded: a write
// beyond it fails with ENOSPC, as on a full disk. Safe for concurrent use.
type Memory struct {
	bytesMax int64
	used     atomic.Int64

	mu    sync.Mutex // taken before that of a node
	nodes map[string]*memNode
}

type memNode struct {
	fs  *Memory
	dir bool

	mu       sync.RWMutex
	removed  bool // its space has been given back
	modified time.Time
	chunks   map[int64]*[chunkSize]byte
	size     int64
}

// NewMemory makes an empty file system of at most bytesMax bytes.
func NewMemory(bytesMax int64) *Memory {
	m := &Memory{bytesMax: bytesMax, nodes: map[string]*memNode{}}
	for _, dir := range []string{"/", "."} {
		m.nodes[dir] = &memNode{fs: m, dir: true}
	}
	return m
}

// take counts bytes against the bound.
func (m *Memory) take(bytes int64) error {
	if m.used.Add(bytes) > m.bytesMax {
		m.used.Add(-bytes)
		return syscall.ENOSPC
	}
	return nil
}

// Open implements FS.
func (m *Memory) Open(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.nodes[path.Clean(name)]
	if n == nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if n.dir {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EISDIR}
	}
	return n, nil
}

// Create implements FS.
func (m *Memory) Create(name string) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := path.Clean(name)
	if m.nodes[key] != nil {
		return nil, &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
	}
	if parent := m.nodes[path.Dir(key)]; parent == nil || !parent.dir {
		return nil, &fs.PathError{Op: "create", Path: name, Err: fs.ErrNotExist}
	}
	n := &memNode{fs: m, modified: time.Now(), chunks: map[int64]*[chunkSize]byte{}}
	m.nodes[key] = n
	return n, nil
}

// MkdirAll implements FS.
func (m *Memory) MkdirAll(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for at := path.Clean(dir); m.nodes[at] == nil || !m.nodes[at].dir; at = path.Dir(at) {
		if m.nodes[at] != nil {
			return &fs.PathError{Op: "mkdir", Path: at, Err: syscall.ENOTDIR}
		}
		m.nodes[at] = &memNode{fs: m, dir: true, modified: time.Now()}
	}
	return nil
}

// Remove implements FS. A file that is open stays readable, as on a disk.
func (m *Memory) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := path.Clean(name)
	n := m.nodes[key]
	if n == nil {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
	}
	if n.dir && len(m.list(key)) > 0 {
		return &fs.PathError{Op: "remove", Path: name, Err: syscall.ENOTEMPTY}
	}
	delete(m.nodes, key)
	n.remove()
	return nil
}

// Rename implements FS.
func (m *Memory) Rename(oldName, newName string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	from, to := path.Clean(oldName), path.Clean(newName)
	n := m.nodes[from]
	if n == nil {
		return &fs.PathError{Op: "rename", Path: oldName, Err: fs.ErrNotExist}
	}
	if replaced := m.nodes[to]; replaced != nil && replaced != n {
		replaced.remove()
	}
	delete(m.nodes, from)
	m.nodes[to] = n
	if n.dir {
		for _, name := range m.below(from) {
			m.nodes[to+strings.TrimPrefix(name, from)] = m.nodes[name]
			delete(m.nodes, name)
		}
	}
	return nil
}

func (m *Memory) below(dir string) []string {
	var names []string
	for name := range m.nodes {
		if strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/") && name != dir {
			names = append(names, name)
		}
	}
	return names
}

func (m *Memory) list(dir string) []string {
	var names []string
	for name := range m.nodes {
		if name != dir && path.Dir(name) == dir {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// ReadDir implements FS.
func (m *Memory) ReadDir(dir string) ([]Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := path.Clean(dir)
	if n := m.nodes[key]; n == nil || !n.dir {
		return nil, &fs.PathError{Op: "readdir", Path: dir, Err: fs.ErrNotExist}
	}
	var entries []Entry
	for _, name := range m.list(key) {
		entries = append(entries, m.nodes[name].entry(path.Base(name)))
	}
	return entries, nil
}

// Stat implements FS.
func (m *Memory) Stat(name string) (Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.nodes[path.Clean(name)]
	if n == nil {
		return Entry{}, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return n.entry(path.Base(name)), nil
}

// SyncDir implements FS.
func (m *Memory) SyncDir(string) error { return nil }

// SyncAll implements FS.
func (m *Memory) SyncAll(string) error { return nil }

// Usage implements FS: the bound is the disk.
func (m *Memory) Usage(string) (Usage, error) {
	return Usage{Total: uint64(m.bytesMax), Free: uint64(max(m.bytesMax-m.used.Load(), 0))}, nil
}

func (n *memNode) entry(name string) Entry {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return Entry{Name: name, Dir: n.dir, Size: n.size, ModTime: n.modified}
}

// remove gives the space back. Who has the file open keeps what is in it, uncounted, until the last of them lets go.
func (n *memNode) remove() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fs.used.Add(-int64(len(n.chunks)) * chunkSize)
	n.removed = true
}

var errNegativeOffset = errors.New("negative offset")

// ReadAt implements File.
func (n *memNode) ReadAt(b []byte, at int64) (int, error) {
	if at < 0 {
		return 0, errNegativeOffset
	}
	n.mu.RLock()
	defer n.mu.RUnlock()
	if at >= n.size {
		return 0, io.EOF
	}
	whole := len(b)
	b = b[:min(int64(len(b)), n.size-at)]
	for done := 0; done < len(b); {
		pos := at + int64(done)
		part := b[done:min(len(b), done+int(chunkSize-pos%chunkSize))]
		if c := n.chunks[pos/chunkSize]; c != nil {
			copy(part, c[pos%chunkSize:])
		} else {
			clear(part)
		}
		done += len(part)
	}
	if len(b) < whole {
		return len(b), io.EOF
	}
	return len(b), nil
}

// WriteAt implements File.
func (n *memNode) WriteAt(b []byte, at int64) (int, error) {
	if at < 0 {
		return 0, errNegativeOffset
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for done := 0; done < len(b); {
		pos := at + int64(done)
		part := b[done:min(len(b), done+int(chunkSize-pos%chunkSize))]
		c := n.chunks[pos/chunkSize]
		if c == nil {
			if !n.removed {
				if err := n.fs.take(chunkSize); err != nil {
					return done, fmt.Errorf("write to memory: %w", err)
				}
			}
			c = new([chunkSize]byte)
			n.chunks[pos/chunkSize] = c
		}
		copy(c[pos%chunkSize:], part)
		done += len(part)
		n.size = max(n.size, pos+int64(len(part)))
	}
	n.modified = time.Now()
	return len(b), nil
}

// Truncate implements File.
func (n *memNode) Truncate(size int64) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if size < n.size {
		for i, c := range n.chunks {
			switch {
			case i*chunkSize >= size:
				delete(n.chunks, i)
				if !n.removed {
					n.fs.used.Add(-chunkSize)
				}
			case (i+1)*chunkSize > size:
				clear(c[size-i*chunkSize:])
			}
		}
	}
	n.size, n.modified = size, time.Now()
	return nil
}

// Sync implements File.
func (n *memNode) Sync() error { return nil }

// Size implements File.
func (n *memNode) Size() (int64, error) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.size, nil
}

// Close implements File. The content stays with the name.
func (n *memNode) Close() error { return nil }

// allocate promises nothing ahead: memory is taken when it is written.
func (n *memNode) allocate(int64, int64) error { return nil }
