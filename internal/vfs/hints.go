package vfs

import "errors"

// dataSeeker is a File that knows its holes.
type dataSeeker interface {
	nextData(at int64) (int64, error)
}

// NextData returns the first position at or behind at that may hold something else than zeros, and the file's size when
// there is none. A file system that does not know its holes answers at.
func NextData(f File, at int64) (int64, error) {
	if s, ok := f.(dataSeeker); ok {
		return s.nextData(at)
	}
	return at, nil
}

// writebackStarter is a File that can be told to write out a range.
type writebackStarter interface {
	startWriteback(at, n int64)
}

// StartWriteback asks the system to write n bytes from at to the disk soon, so that a later Sync has less to do. It is a
// hint: it promises nothing, and nothing is lost when it has no effect.
func StartWriteback(f File, at, n int64) {
	if s, ok := f.(writebackStarter); ok {
		s.startWriteback(at, n)
	}
}

// allocator is a File that can take space without writing to it.
type allocator interface {
	allocate(at, n int64) error
}

// Allocate takes the space of n bytes from at on, which read as zeros, or as what they were, so that a write there does not
// meet a full disk. It writes zeros where the file system cannot do without; write says how, in pieces.
func Allocate(f File, at, n int64, write func(at, n int64) error) error {
	if a, ok := f.(allocator); ok {
		if err := a.allocate(at, n); !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
	}
	return write(at, n)
}
