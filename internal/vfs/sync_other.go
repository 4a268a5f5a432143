//go:build !linux

package vfs

import (
	"os"

	"golang.org/x/sys/unix"
)

func fdatasync(f *os.File) error { return f.Sync() }

func syncfs(*os.File) error { unix.Sync(); return nil }
