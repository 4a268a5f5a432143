package vfs

import (
	"os"

	"golang.org/x/sys/unix"
)

// fdatasync goes through SyscallConn, so that a concurrent Close cannot hand the descriptor to another file.
func fdatasync(f *os.File) error { return control(f, unix.Fdatasync) }

func syncfs(d *os.File) error { return os.NewSyscallError("syncfs", control(d, unix.Syncfs)) }

func control(f *os.File, call func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var callErr error
	if err := conn.Control(func(fd uintptr) { callErr = call(int(fd)) }); err != nil {
		return err
	}
	return callErr
}
