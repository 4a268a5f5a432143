// Package vfs is the small part of a file system that the store uses: positioned files, names, and the three kinds of
// fsync. OS is the real one; Crashable is an in-memory twin that can be asked what a crash would have left of it. It
// decides nothing about formats or about what to sync when.
package vfs

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"time"
)

// File is an open file with positioned I/O. Safe for concurrent use.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Truncate sets the length; bytes added read as zeros and take no space.
	Truncate(size int64) error
	// Sync makes content and length durable (fdatasync). The name needs SyncDir.
	Sync() error
	Size() (int64, error)
}

// Entry is one name in a directory.
type Entry struct {
	Name    string
	Dir     bool
	Size    int64
	ModTime time.Time
}

// Usage is the space of the file system that holds a path, in bytes. Free counts what an ordinary user may take.
type Usage struct{ Total, Free uint64 }

// UsedRatio is the used part of what an ordinary user may take, 0..1, as df prints it.
func (u Usage) UsedRatio() float64 {
	if u.Total == 0 {
		return 0
	}
	return 1 - float64(u.Free)/float64(u.Total)
}

// FS names files. Errors match fs.ErrNotExist and fs.ErrExist. Safe for concurrent use.
type FS interface {
	// Open opens an existing file for reading and writing.
	Open(name string) (File, error)
	// Create makes a new empty file, mode 0600; it fails when the name exists.
	Create(name string) (File, error)
	// MkdirAll makes a directory and its parents, mode 0700.
	MkdirAll(dir string) error
	Remove(name string) error
	// Rename replaces newName when it exists, atomically.
	Rename(oldName, newName string) error
	// ReadDir lists a directory in name order.
	ReadDir(dir string) ([]Entry, error)
	Stat(name string) (Entry, error)
	// SyncDir makes creations, renames and removals of names in dir durable.
	SyncDir(dir string) error
	// SyncAll makes everything on the file system that holds dir durable (syncfs).
	SyncAll(dir string) error
	// Usage reports the space of the file system that holds dir.
	Usage(dir string) (Usage, error)
}

// MakeDir makes dir and its parents where they are missing, and makes the names of the new ones durable: what is synced in
// a directory is lost with it.
func MakeDir(fsys FS, dir string) error {
	var missing []string
	for d := path.Clean(dir); ; d = path.Dir(d) {
		if _, err := fsys.Stat(d); err == nil || d == path.Dir(d) {
			break
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		missing = append(missing, d)
	}
	if len(missing) == 0 {
		// It may have been made by a process that was killed before it could sync.
		return fsys.SyncDir(path.Dir(path.Clean(dir)))
	}
	if err := fsys.MkdirAll(dir); err != nil {
		return err
	}
	for _, d := range missing {
		if err := fsys.SyncDir(path.Dir(d)); err != nil {
			return err
		}
	}
	return nil
}

// ReadFile returns the content of name.
func ReadFile(fsys FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	b := make([]byte, size)
	n, err := f.ReadAt(b, 0)
	if errors.Is(err, io.EOF) && int64(n) == size {
		err = nil
	}
	return b[:n], err
}

// WriteFile makes a new file with content and syncs it; the name is not yet durable.
func WriteFile(fsys FS, name string, content []byte) error {
	f, err := fsys.Create(name)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(content, 0)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

// RemoveTree removes dir and what is below it; a missing dir is no error.
func RemoveTree(fsys FS, dir string) error {
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	for _, e := range entries {
		name := dir + "/" + e.Name
		if e.Dir {
			err = RemoveTree(fsys, name)
		} else {
			err = fsys.Remove(name)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := fsys.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
