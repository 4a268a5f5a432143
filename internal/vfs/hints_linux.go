package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func (o osFile) nextData(at int64) (int64, error) {
	next := at
	err := control(o.f, func(fd int) error {
		var err error
		next, err = unix.Seek(fd, at, unix.SEEK_DATA)
		return err
	})
	switch {
	case errors.Is(err, unix.ENXIO): // only a hole up to the end
		return o.Size()
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOTSUP):
		return at, nil
	}
	return next, err
}

func (o osFile) startWriteback(at, n int64) {
	_ = control(o.f, func(fd int) error { // a hint
		return unix.SyncFileRange(fd, at, n, unix.SYNC_FILE_RANGE_WRITE)
	})
}

func (o osFile) allocate(at, n int64) error {
	for {
		err := control(o.f, func(fd int) error { return unix.Fallocate(fd, 0, at, n) })
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("fallocate", err)
		}
	}
}
