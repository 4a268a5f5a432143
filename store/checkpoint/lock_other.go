//go:build !linux

package checkpoint

import "golang.org/x/sys/unix"

const setLock = unix.F_SETLK
