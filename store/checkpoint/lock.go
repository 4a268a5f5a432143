package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// ErrLocked reports that another process, ours or RocketMQ's, has the store open.
var ErrLocked = errors.New("checkpoint: store is locked")

// Lock holds a store against other processes.
type Lock struct{ f *os.File }

// Acquire takes the lock: an exclusive lock on byte 0 of the file, which RocketMQ takes, too.
func Acquire(name string) (*Lock, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	region := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: 0, Len: 1}
	err = unix.FcntlFlock(f.Fd(), setLock, &region)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return nil, errors.Join(fmt.Errorf("%w: %s", ErrLocked, name), f.Close())
	}
	if err == nil {
		_, err = f.WriteAt([]byte("lock"), 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", name, err), f.Close())
	}
	return &Lock{f: f}, nil
}

// Release gives the lock back; the file stays.
func (l *Lock) Release() error { return l.f.Close() }
