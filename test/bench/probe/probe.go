// Package probe measures what the machine does at the moment, without any server: the round trip over loopback, and the
// flush of the disk. Ratios against these two, and voiding passes in which they moved, is what makes figures of a shared
// machine comparable.
package probe

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

const (
	requestBytes = 1024
	answerBytes  = 64
	flushBytes   = 4096
	fileBytes    = 16 << 20
)

// Probe is one look at the machine.
type Probe struct {
	RoundTrip time.Duration // p50: 1 KiB there, 64 bytes back, over loopback TCP
	Flush     time.Duration // p50: overwrite of 4 KiB in a zero-filled file, and fdatasync
}

// Take measures for d, half of it each. dir is on the file system in question.
func Take(dir string, d time.Duration) (Probe, error) {
	trip, err := roundTrip(d / 2)
	if err != nil {
		return Probe{}, fmt.Errorf("probe loopback: %w", err)
	}
	flush, err := flushTime(dir, d/2)
	if err != nil {
		return Probe{}, fmt.Errorf("probe disk: %w", err)
	}
	return Probe{RoundTrip: trip, Flush: flush}, nil
}

func roundTrip(d time.Duration) (time.Duration, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		in, out := make([]byte, requestBytes), make([]byte, answerBytes)
		for {
			if _, err := io.ReadFull(c, in); err != nil {
				return
			}
			if _, err := c.Write(out); err != nil {
				return
			}
		}
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return 0, err
	}
	defer c.Close()
	out, in := make([]byte, requestBytes), make([]byte, answerBytes)
	var took []time.Duration
	for stop := time.Now().Add(d); time.Now().Before(stop); {
		began := time.Now()
		if _, err := c.Write(out); err != nil {
			return 0, err
		}
		if _, err := io.ReadFull(c, in); err != nil {
			return 0, err
		}
		took = append(took, time.Since(began))
	}
	return median(took), nil
}

func flushTime(dir string, d time.Duration) (time.Duration, error) {
	path := filepath.Join(dir, "flush-probe")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, err
	}
	defer os.Remove(path)
	defer f.Close()
	if _, err := f.Write(make([]byte, fileBytes)); err != nil {
		return 0, err
	}
	if err := f.Sync(); err != nil {
		return 0, err
	}
	page := make([]byte, flushBytes)
	var took []time.Duration
	for at, stop := int64(0), time.Now().Add(d); time.Now().Before(stop); at = (at + flushBytes) % fileBytes {
		page[0]++
		began := time.Now()
		if _, err := f.WriteAt(page, at); err != nil {
			return 0, err
		}
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			return 0, err
		}
		took = append(took, time.Since(began))
	}
	return median(took), nil
}

func median(d []time.Duration) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[len(d)/2]
}
