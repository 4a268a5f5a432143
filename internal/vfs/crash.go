package vfs

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
)

// Crashable is an in-memory FS that remembers every change, so that a test can ask for the states a power cut may leave.
// A change of content is durable once a later Sync of that file is recorded, a change of a name once a later SyncDir of
// its directory is; SyncAll covers both. Anything else may or may not have reached the disk: writes page by page, and a
// page whole or in sectors, names in their order within a directory. A Sync that failed has dropped what was to be written,
// as Linux does: a later one no longer covers it. Safe for concurrent use.
type Crashable struct {
	mu     sync.Mutex
	inodes map[string]*inode // by clean path
	ops    []op
	now    time.Time

	fault func(kind, name string) error
	usage Usage
}

type inode struct {
	dir  bool
	data []byte
	mod  time.Time
}

type opKind uint8

const (
	opMkdir opKind = iota
	opCreate
	opRemove
	opRename
	opWrite
	opTruncate
	opSync
	opSyncDir
	opSyncAll
	opSyncFailed
)

// Units in which a disk and the page cache lose a write.
const (
	pageSize   = 4096
	sectorSize = 512
)

type op struct {
	kind    opKind
	node    *inode // of the live system; identity only
	name    string
	newName string
	at      int64
	data    []byte
}

// NewCrashable returns an empty one, with a root directory.
func NewCrashable() *Crashable {
	return &Crashable{
		inodes: map[string]*inode{"/": {dir: true}, ".": {dir: true}},
		now:    time.Unix(1_700_000_000, 0),
		usage:  Usage{Total: 1 << 40, Free: 1 << 39},
	}
}

// SetNow sets the modification time of later changes.
func (c *Crashable) SetNow(now time.Time) { c.mu.Lock(); c.now = now; c.mu.Unlock() }

// SetUsage sets what Usage answers.
func (c *Crashable) SetUsage(u Usage) { c.mu.Lock(); c.usage = u; c.mu.Unlock() }

// SetFault installs a decision about operations to come: kind is open, create, mkdir, remove, rename, write, truncate,
// sync, syncdir, syncall or read. An error makes the operation fail without effect. Nil removes it.
func (c *Crashable) SetFault(fault func(kind, name string) error) {
	c.mu.Lock()
	c.fault = fault
	c.mu.Unlock()
}

// Ops is how many changes and syncs are recorded: a crash may be placed before each, and after the last.
func (c *Crashable) Ops() int { c.mu.Lock(); defer c.mu.Unlock(); return len(c.ops) }

// Kill returns what is left when the process dies but the machine goes on: everything.
func (c *Crashable) Kill() *Crashable { return c.Crash(c.Ops(), func() bool { return true }) }

// Crash returns a new system with what a power cut before operation at leaves. keep is asked once for each change that
// is not known to be durable; a change of a name is only kept when those before it in its directory are.
func (c *Crashable) Crash(at int, keep func() bool) *Crashable {
	c.mu.Lock()
	defer c.mu.Unlock()
	ops := c.ops[:at]
	durable := durableOps(ops)
	twin := NewCrashable()
	twin.now, twin.usage = c.now, c.usage
	nodes := map[*inode]*inode{}
	lost := map[string]bool{} // directories that lost a change of a name
	for i, o := range ops {
		switch o.kind {
		case opSync, opSyncDir, opSyncAll, opSyncFailed:
			continue
		case opWrite:
			switch n := nodes[o.node]; {
			case n == nil:
			case durable[i]:
				n.apply(o)
			default:
				n.applyPart(o, keep)
			}
		case opTruncate:
			if n := nodes[o.node]; n != nil && (durable[i] || keep()) {
				n.apply(o)
			}
		default:
			dir := path.Dir(o.name)
			if !durable[i] && (lost[dir] || !keep()) {
				lost[dir] = true
				if o.kind == opCreate {
					nodes[o.node] = &inode{} // content may be written to it all the same; no name leads there
				}
				continue
			}
			twin.replay(o, nodes)
		}
	}
	twin.rebase()
	return twin
}

// rebase makes the present state the durable beginning of the record.
func (c *Crashable) rebase() {
	names := make([]string, 0, len(c.inodes))
	for name := range c.inodes {
		if name != "/" && name != "." {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	c.ops = nil
	for _, name := range names {
		n := c.inodes[name]
		if n.dir {
			c.ops = append(c.ops, op{kind: opMkdir, name: name})
			continue
		}
		c.ops = append(c.ops, op{kind: opCreate, node: n, name: name})
		if len(n.data) > 0 {
			c.ops = append(c.ops, op{kind: opWrite, node: n, name: name, data: append([]byte(nil), n.data...)})
		}
	}
	c.ops = append(c.ops, op{kind: opSyncAll})
}

// durableOps tells for each operation whether a later sync covers it.
func durableOps(ops []op) []bool {
	durable := make([]bool, len(ops))
	all := false
	files, failed, dirs := map[*inode]bool{}, map[*inode]bool{}, map[string]bool{}
	for i := len(ops) - 1; i >= 0; i-- {
		switch o := ops[i]; o.kind {
		case opSyncAll:
			all = true
			clear(failed)
		case opSync:
			files[o.node], failed[o.node] = true, false
		case opSyncFailed:
			files[o.node], failed[o.node] = false, true
		case opSyncDir:
			dirs[o.name] = true
		case opWrite, opTruncate:
			durable[i] = (all || files[o.node]) && !failed[o.node]
		case opRename:
			durable[i] = all || dirs[path.Dir(o.name)] || dirs[path.Dir(o.newName)]
		default:
			durable[i] = all || dirs[path.Dir(o.name)]
		}
	}
	return durable
}

func (c *Crashable) replay(o op, nodes map[*inode]*inode) {
	if parent := c.inodes[path.Dir(o.name)]; parent == nil {
		// The directory itself was lost; what was created in it is unreachable.
		if o.kind == opCreate {
			nodes[o.node] = &inode{}
		}
		return
	}
	switch o.kind {
	case opMkdir:
		if c.inodes[o.name] == nil {
			c.inodes[o.name] = &inode{dir: true, mod: c.now}
		}
	case opCreate:
		n := nodes[o.node]
		if n == nil {
			n = &inode{mod: c.now}
			nodes[o.node] = n
		}
		c.inodes[o.name] = n
	case opRemove:
		delete(c.inodes, o.name)
	case opRename:
		c.move(o.name, o.newName)
	default: // what happens to content is replayed with the file
	}
}

func (c *Crashable) move(oldName, newName string) {
	n := c.inodes[oldName]
	if n == nil {
		return
	}
	delete(c.inodes, oldName)
	c.inodes[newName] = n
	if !n.dir {
		return
	}
	for name, child := range c.inodes {
		if rest, ok := strings.CutPrefix(name, oldName+"/"); ok {
			delete(c.inodes, name)
			c.inodes[newName+"/"+rest] = child
		}
	}
}

func (n *inode) apply(o op) {
	if o.kind == opTruncate {
		n.resize(o.at)
		return
	}
	if end := o.at + int64(len(o.data)); end > int64(len(n.data)) {
		n.resize(end)
	}
	copy(n.data[o.at:], o.data)
}

// applyPart writes the pages, or single sectors of a page, that keep wants.
func (n *inode) applyPart(o op, keep func() bool) {
	pieces(o, pageSize, func(page op) {
		if !keep() {
			return
		}
		if len(page.data) <= sectorSize || keep() {
			n.apply(page)
			return
		}
		pieces(page, sectorSize, func(sector op) {
			if keep() {
				n.apply(sector)
			}
		})
	})
}

// pieces splits a write at the multiples of unit.
func pieces(o op, unit int64, each func(op)) {
	for len(o.data) > 0 {
		size := min(int64(len(o.data)), unit-o.at%unit)
		each(op{kind: opWrite, node: o.node, at: o.at, data: o.data[:size]})
		o.at, o.data = o.at+size, o.data[size:]
	}
}

func (n *inode) resize(size int64) {
	if size <= int64(len(n.data)) {
		clear(n.data[size:])
		n.data = n.data[:size]
		return
	}
	if size <= int64(cap(n.data)) {
		n.data = n.data[:size]
		return
	}
	grown := make([]byte, size)
	copy(grown, n.data)
	n.data = grown
}

func clean(name string) string { return path.Clean(name) }

func (c *Crashable) check(kind, name string) error {
	if c.fault == nil {
		return nil
	}
	if err := c.fault(kind, name); err != nil {
		return &fs.PathError{Op: kind, Path: name, Err: err}
	}
	return nil
}

// Open implements FS.
func (c *Crashable) Open(name string) (File, error) {
	name = clean(name)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.check("open", name); err != nil {
		return nil, err
	}
	n := c.inodes[name]
	if n == nil || n.dir {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &memFile{c: c, n: n, name: name}, nil
}

// Create implements FS.
func (c *Crashable) Create(name string) (File, error) {
	name = clean(name)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.check("create", name); err != nil {
		return nil, err
	}
	if c.inodes[name] != nil {
		return nil, &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
	}
	if p := c.inodes[path.Dir(name)]; p == nil || !p.dir {
		return nil, &fs.PathError{Op: "create", Path: name, Err: fs.ErrNotExist}
	}
	n := &inode{mod: c.now}
	c.inodes[name] = n
	c.ops = append(c.ops, op{kind: opCreate, node: n, name: name})
	return &memFile{c: c, n: n, name: name}, nil
}

// MkdirAll implements FS.
func (c *Crashable) MkdirAll(dir string) error {
	dir = clean(dir)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.check("mkdir", dir); err != nil {
		return err
	}
	var missing []string
	for d := dir; c.inodes[d] == nil; d = path.Dir(d) {
		missing = append(missing, d)
	}
	for _, m := range slices.Backward(missing) {
		c.inodes[m] = &inode{dir: true, mod: c.now}
		c.ops = append(c.ops, op{kind: opMkdir, name: m})
	}
	return nil
}

// Remove implements FS.
func (c *Crashable) Remove(name string) error {
	name = clean(name)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.check("remove", name); err != nil {
		return err
	}
	n := c.inodes[name]
	if n == nil {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
	}
	if n.dir {
		for other := range c.inodes {
			if strings.HasPrefix(other, name+"/") {
				return &fs.PathError{Op: "remove", Path: name, Err: fmt.Errorf("directory not empty: %s", other)}
			}
		}
	}
	delete(c.inodes, name)
	c.ops = append(c.ops, op{kind: opRemove, name: name})
	return nil
}

// Rename implements FS.
func (c *Crashable) Rename(oldName, newName string) error {
	oldName, newName = clean(oldName), clean(newName)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.check("rename", oldName); err != nil {
		return err
	}
	if c.inodes[oldName] == nil {
		return &fs.PathError{Op: "rename", Path: oldName, Err: fs.ErrNotExist}
	}
	if p := c.inodes[path.Dir(newName)]; p == nil || !p.dir {
		return &fs.PathError{Op: "rename", Path: newName, Err: fs.ErrNotExist}
	}
	c.move(oldName, newName)
	c.ops = append(c.ops, op{kind: opRename, name: oldName, newName: newName})
	return nil
}

// ReadDir implements FS.
func (c *Crashable) ReadDir(dir string) ([]Entry, error) {
	dir = clean(dir)
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.inodes[dir]; n == nil || !n.dir {
		return nil, &fs.PathError{Op: "readdir", Path: dir, Err: fs.ErrNotExist}
	}
	var list []Entry
	for name, n := range c.inodes {
		if path.Dir(name) == dir && name != dir {
			list = append(list, n.entry(name))
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	return list, nil
}

func (n *inode) entry(name string) Entry {
	return Entry{Name: path.Base(name), Dir: n.dir, Size: int64(len(n.data)), ModTime: n.mod}
}

// Stat implements FS.
func (c *Crashable) Stat(name string) (Entry, error) {
	name = clean(name)
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.inodes[name]
	if n == nil {
		return Entry{}, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return n.entry(name), nil
}

// SyncDir implements FS.
func (c *Crashable) SyncDir(dir string) error {
	dir = clean(dir)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.check("syncdir", dir); err != nil {
		return err
	}
	if n := c.inodes[dir]; n == nil || !n.dir {
		return &fs.PathError{Op: "syncdir", Path: dir, Err: fs.ErrNotExist}
	}
	c.ops = append(c.ops, op{kind: opSyncDir, name: dir})
	return nil
}

// SyncAll implements FS.
func (c *Crashable) SyncAll(dir string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.check("syncall", clean(dir)); err != nil {
		return err
	}
	c.ops = append(c.ops, op{kind: opSyncAll})
	return nil
}

// Usage implements FS.
func (c *Crashable) Usage(string) (Usage, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.usage, nil
}

type memFile struct {
	c    *Crashable
	n    *inode
	name string
}

func (f *memFile) ReadAt(b []byte, at int64) (int, error) {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if err := f.c.check("read", f.name); err != nil {
		return 0, err
	}
	if at >= int64(len(f.n.data)) {
		return 0, io.EOF
	}
	n := copy(b, f.n.data[at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) WriteAt(b []byte, at int64) (int, error) {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if err := f.c.check("write", f.name); err != nil {
		return 0, err
	}
	o := op{kind: opWrite, node: f.n, name: f.name, at: at, data: append([]byte(nil), b...)}
	f.n.apply(o)
	f.n.mod = f.c.now
	f.c.ops = append(f.c.ops, o)
	return len(b), nil
}

func (f *memFile) Truncate(size int64) error {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if err := f.c.check("truncate", f.name); err != nil {
		return err
	}
	o := op{kind: opTruncate, node: f.n, name: f.name, at: size}
	f.n.apply(o)
	f.n.mod = f.c.now
	f.c.ops = append(f.c.ops, o)
	return nil
}

func (f *memFile) Sync() error {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if err := f.c.check("sync", f.name); err != nil {
		f.c.ops = append(f.c.ops, op{kind: opSyncFailed, node: f.n, name: f.name})
		return err
	}
	f.c.ops = append(f.c.ops, op{kind: opSync, node: f.n, name: f.name})
	return nil
}

func (f *memFile) Size() (int64, error) {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	return int64(len(f.n.data)), nil
}

func (f *memFile) Close() error { return nil }

func (f *memFile) nextData(at int64) (int64, error) {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	for ; at < int64(len(f.n.data)); at++ {
		if f.n.data[at] != 0 {
			return at, nil
		}
	}
	return int64(len(f.n.data)), nil
}
