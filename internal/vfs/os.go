package vfs

import (
	"errors"
	"os"
	"path/filepath"
	"sort"

	"golang.org/x/sys/unix"
)

// Modes of what the store creates: message data is nobody else's business.
const (
	fileMode = 0o600
	dirMode  = 0o700
)

// OS returns the machine's file system.
func OS() FS { return osFS{} }

type osFS struct{}

type osFile struct{ f *os.File }

func (o osFile) ReadAt(b []byte, at int64) (int, error)  { return o.f.ReadAt(b, at) }
func (o osFile) WriteAt(b []byte, at int64) (int, error) { return o.f.WriteAt(b, at) }
func (o osFile) Close() error                            { return o.f.Close() }
func (o osFile) Truncate(size int64) error               { return o.f.Truncate(size) }

func (o osFile) Sync() error {
	for {
		err := fdatasync(o.f)
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

func (o osFile) Size() (int64, error) {
	info, err := o.f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (osFS) Open(name string) (File, error) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (osFS) Create(name string) (File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (osFS) MkdirAll(dir string) error            { return os.MkdirAll(dir, dirMode) }
func (osFS) Remove(name string) error             { return os.Remove(name) }
func (osFS) Rename(oldName, newName string) error { return os.Rename(oldName, newName) }

func (osFS) ReadDir(dir string) ([]Entry, error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(list))
	for _, e := range list {
		if e.IsDir() {
			entries = append(entries, Entry{Name: e.Name(), Dir: true})
			continue
		}
		info, err := e.Info()
		if os.IsNotExist(err) {
			continue // removed since the listing
		}
		if err != nil {
			return nil, err
		}
		entries = append(entries, Entry{Name: e.Name(), Size: info.Size(), ModTime: info.ModTime()})
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name < entries[j].Name })
	return entries, nil
}

func (osFS) Stat(name string) (Entry, error) {
	info, err := os.Stat(name)
	if err != nil {
		return Entry{}, err
	}
	return Entry{Name: filepath.Base(name), Dir: info.IsDir(), Size: info.Size(), ModTime: info.ModTime()}, nil
}

func (osFS) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if closeErr := d.Close(); err == nil {
		err = closeErr
	}
	return err
}

func (osFS) SyncAll(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = syncfs(d)
	if closeErr := d.Close(); err == nil {
		err = closeErr
	}
	return err
}

func (osFS) Usage(dir string) (Usage, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return Usage{}, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	// What root keeps for itself is neither used nor free to us.
	unit := uint64(st.Bsize)
	used := st.Blocks - st.Bfree
	free := st.Bavail
	return Usage{Total: (used + free) * unit, Free: free * unit}, nil
}
