package consumequeue

import (
	"container/list"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"sync"

	"github.com/quorate/quorate/internal/vfs"
)

// files opens queue files when they are needed and keeps the most recently used open, at most max of them. A file in use
// beyond that stays open until it is given back. Safe for concurrent use.
type files struct {
	fsys vfs.FS
	dir  string
	size int64
	max  int

	mu     sync.Mutex
	open   map[fileKey]*list.Element // of *openFile
	recent *list.List                // front: used last
	// What the next sync has to cover.
	unsynced     map[fileKey]struct{}
	unsyncedDirs map[string]struct{}
}

type fileKey struct {
	q     *Queue
	begin int64 // byte of the queue
}

type openFile struct {
	key   fileKey
	f     vfs.File
	users int
	gone  bool // dropped from the cache: closed with its last user
}

func newFiles(fsys vfs.FS, dir string, size int64, maxOpen int) *files {
	return &files{
		fsys: fsys, dir: dir, size: size, max: maxOpen,
		open: map[fileKey]*list.Element{}, recent: list.New(),
		unsynced: map[fileKey]struct{}{}, unsyncedDirs: map[string]struct{}{},
	}
}

func (c *files) queueDir(q *Queue) string {
	return c.dir + "/" + q.topic + "/" + strconv.Itoa(int(q.id))
}

func (c *files) name(k fileKey) string { return c.queueDir(k.q) + "/" + fileName(k.begin) }

// acquire returns the open file; with create, a missing one is made at its full length. Give it back with release.
func (c *files) acquire(k fileKey, create bool) (*openFile, error) {
	if o := c.cached(k); o != nil {
		return o, nil
	}
	f, err := c.fsys.Open(c.name(k))
	if create && errors.Is(err, fs.ErrNotExist) {
		f, err = c.create(k)
	}
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	if e := c.open[k]; e != nil { // somebody was faster
		o := e.Value.(*openFile)
		o.users++
		c.mu.Unlock()
		_ = f.Close() // nothing was written through it
		return o, nil
	}
	o := &openFile{key: k, f: f, users: 1}
	c.open[k] = c.recent.PushFront(o)
	victims := c.evict()
	c.mu.Unlock()
	for _, v := range victims {
		_ = v.Close() // errors of written pages are reported by the next sync of the file
	}
	return o, nil
}

func (c *files) cached(k fileKey) *openFile {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.open[k]
	if e == nil {
		return nil
	}
	c.recent.MoveToFront(e)
	o := e.Value.(*openFile)
	o.users++
	return o
}

// evict drops unused files beyond the bound and returns them for closing. c.mu is held.
func (c *files) evict() []vfs.File {
	var victims []vfs.File
	for e := c.recent.Back(); e != nil && c.recent.Len() > c.max; {
		prev := e.Prev()
		if o := e.Value.(*openFile); o.users == 0 {
			c.recent.Remove(e)
			delete(c.open, o.key)
			victims = append(victims, o.f)
		}
		e = prev
	}
	return victims
}

func (c *files) create(k fileKey) (vfs.File, error) {
	dir := c.queueDir(k.q)
	if err := c.fsys.MkdirAll(dir); err != nil {
		return nil, err
	}
	f, err := c.fsys.Create(c.name(k))
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(c.size); err != nil {
		_ = f.Close()                // the first error counts
		_ = c.fsys.Remove(c.name(k)) // a short file would be taken for damage
		return nil, err
	}
	c.mu.Lock()
	c.unsyncedDirs[dir] = struct{}{}
	c.unsyncedDirs[c.dir+"/"+k.q.topic] = struct{}{}
	c.unsyncedDirs[c.dir] = struct{}{}
	c.unsyncedDirs[path.Dir(c.dir)] = struct{}{}
	c.mu.Unlock()
	return f, nil
}

func (c *files) release(o *openFile) {
	c.mu.Lock()
	o.users--
	last := o.users == 0 && o.gone
	c.mu.Unlock()
	if last {
		_ = o.f.Close() // its name is gone, nobody will miss it
	}
}

func (c *files) markUnsynced(k fileKey) {
	c.mu.Lock()
	c.unsynced[k] = struct{}{}
	c.mu.Unlock()
}

// drop forgets files of q from byte begin up to end; those in use are closed by their last user.
func (c *files) drop(q *Queue, begin, end int64) {
	c.mu.Lock()
	var idle []vfs.File
	for at := begin; at < end; at += c.size {
		k := fileKey{q, at}
		delete(c.unsynced, k)
		e := c.open[k]
		if e == nil {
			continue
		}
		o := e.Value.(*openFile)
		c.recent.Remove(e)
		delete(c.open, k)
		o.gone = true
		if o.users == 0 {
			idle = append(idle, o.f)
		}
	}
	c.mu.Unlock()
	for _, f := range idle {
		_ = f.Close() // removed or about to be
	}
}

// syncFilesMax is how many files are synced one by one; beyond, one syncfs is cheaper.
const syncFilesMax = 64

// sync makes durable what was written, made and removed before the call. After an error nothing is known to be durable.
func (c *files) sync() error {
	c.mu.Lock()
	changed, dirs := c.unsynced, c.unsyncedDirs
	c.unsynced, c.unsyncedDirs = map[fileKey]struct{}{}, map[string]struct{}{}
	c.mu.Unlock()
	if len(changed)+len(dirs) == 0 {
		return nil
	}
	if len(changed)+len(dirs) > syncFilesMax {
		return c.fsys.SyncAll(c.dir)
	}
	for k := range changed {
		if err := c.syncFile(k); err != nil {
			return fmt.Errorf("sync %s: %w", c.name(k), err)
		}
	}
	for dir := range dirs {
		if err := c.fsys.SyncDir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("sync directory %s: %w", dir, err)
		}
	}
	return nil
}

func (c *files) syncFile(k fileKey) error {
	o, err := c.acquire(k, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed since
	}
	if err != nil {
		return err
	}
	defer c.release(o)
	return o.f.Sync()
}

func (c *files) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	for e := c.recent.Front(); e != nil; e = e.Next() {
		err = errors.Join(err, e.Value.(*openFile).f.Close())
	}
	clear(c.open)
	c.recent.Init()
	return err
}
