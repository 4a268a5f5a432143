package rig

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Pump keeps window copies of a request frame in flight on one TCP connection until n were answered, and returns the bytes
// of the answers. It allocates nothing per request, so that what a benchmark reports is the broker's.
func Pump(tb testing.TB, addr string, frame []byte, n, window int) (answered int64) {
	tb.Helper()
	nc, err := net.Dial("tcp", addr) //nolint:noctx // a benchmark's own connection
	require.NoError(tb, err)
	defer func() { _ = nc.Close() }() // nothing is lost
	in := bufio.NewReaderSize(nc, 256<<10)
	out := make([]byte, 0, len(frame)*window)
	var head [4]byte
	for sent, got := 0, 0; got < n; {
		out = out[:0]
		for sent < n && sent-got < window {
			out = append(out, frame...)
			sent++
		}
		if len(out) > 0 {
			if _, err := nc.Write(out); err != nil {
				tb.Error(err)
				return answered
			}
		}
		for first := true; got < sent && (first || in.Buffered() > 4); first = false {
			if _, err := io.ReadFull(in, head[:]); err != nil {
				tb.Error(err)
				return answered
			}
			size := int(binary.BigEndian.Uint32(head[:]))
			if _, err := in.Discard(size); err != nil {
				tb.Error(err)
				return answered
			}
			answered += int64(size)
			got++
		}
	}
	return answered
}

// CPU is the processor time this process has used.
func CPU() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
