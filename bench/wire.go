package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/quorate/quorate/protocol"
)

const (
	dialTimeout   = 5 * time.Second
	drainTimeout  = 5 * time.Second // how long answers may take once the last request is out
	wireReadBytes = 64 << 10
	// connectionsAtOnce bounds the dials under way, so that thousands of connections do not overflow the listen backlog.
	connectionsAtOnce = 64
)

// wire is one connection. One goroutine may write and one may read.
type wire struct {
	conn net.Conn
	r    *bufio.Reader
	w    *bufio.Writer
	in   []byte // the frame last read, which cmd borrows
	cmd  protocol.Command
}

func dial(ctx context.Context, addr string) (*wire, error) {
	d := net.Dialer{Timeout: dialTimeout}
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", addr, err)
	}
	return &wire{conn: conn, r: bufio.NewReaderSize(conn, wireReadBytes), w: bufio.NewWriterSize(conn, wireReadBytes)}, nil
}

// read returns the next frame; it is valid until the next read.
func (w *wire) read() (*protocol.Command, error) {
	head, err := w.r.Peek(8)
	if err != nil {
		return nil, err
	}
	n, err := protocol.FrameBytes(head)
	if err != nil {
		return nil, err
	}
	if cap(w.in) < n {
		w.in = make([]byte, n+n/2)
	}
	w.in = w.in[:n]
	if _, err := io.ReadFull(w.r, w.in); err != nil {
		return nil, err
	}
	if err := protocol.DecodeFrame(w.in[4:], &w.cmd); err != nil {
		return nil, err
	}
	return &w.cmd, nil
}

// setField overwrites the value of an ext field in place of the old one.
func setField(cmd *protocol.Command, i int, value []byte) { cmd.Ext[i].Value = value }

// fieldIndex finds a field of a template; its absence is a mistake of this package.
func fieldIndex(cmd *protocol.Command, key string) int {
	for i := range cmd.Ext {
		if string(cmd.Ext[i].Key) == key {
			return i
		}
	}
	panic("bench: no header field " + key) //nolint:forbidigo // found by the first test
}
