package remoting

import (
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/quorate/quorate/protocol"
)

const (
	// readBufferBytes is what one read may bring. These buffers are pooled: a connection has one only while it has bytes.
	readBufferBytes = 64 << 10
	// readKeptBytesMax is the most that a waiting connection keeps of an incomplete frame without keeping a pooled buffer.
	readKeptBytesMax = 4 << 10
	// readOwnBytes is the buffer of a connection that cannot be asked whether it is readable (TLS, in-process).
	readOwnBytes = 8 << 10
)

type readBuffer [readBufferBytes]byte

var readBuffers = sync.Pool{New: func() any { return new(readBuffer) }}

// inbound turns what a connection reads into frames. Used by the reader goroutine only.
//
// A plain TCP connection is waited for without a buffer: the read is tried when the socket is readable, into a pooled
// buffer that goes back before waiting again. A frame larger than the buffer grows it by doubling as bytes arrive, never
// by what the frame claims.
type inbound struct {
	c   *Conn
	src io.Reader       // read from when raw is nil
	raw syscall.RawConn // plain TCP

	buf    []byte
	r, w   int // buf[r:w] was read and not served
	pooled *readBuffer
	kept   []byte // buf[:w] while a connection waits without buf
	frame  int    // size of the incomplete frame at r, 0 when unknown
	large  int64  // counted in endpoint.largeReads

	tryRead func(fd uintptr) bool
	n       int
	err     error
}

func (in *inbound) open(c *Conn, nc net.Conn) {
	in.c, in.src, in.raw = c, nc, rawConn(nc)
	in.tryRead = in.readReady
}

// replaceSource goes on with another reader in place of the connection itself; the buffered bytes are handed out.
func (in *inbound) replaceSource(with func(buffered []byte) (io.Reader, error)) error {
	buffered := append([]byte(nil), in.buf[in.r:in.w]...)
	in.drop()
	in.raw = nil
	src, err := with(buffered)
	in.src = src
	return err
}

// next returns the next complete frame that is buffered, nil when there is none. It is valid until fill.
func (in *inbound) next() ([]byte, error) {
	n, err := protocol.FrameBytes(in.buf[in.r:in.w])
	if err != nil {
		return nil, err
	}
	in.frame = n
	if n == 0 || in.w-in.r < n {
		return nil, nil
	}
	frame := in.buf[in.r : in.r+n : in.r+n]
	in.r += n
	in.frame = 0
	return frame, nil
}

func (in *inbound) empty() bool { return in.r == in.w }

// peek returns at least n buffered bytes, reading as needed.
func (in *inbound) peek(n int) ([]byte, error) {
	for in.w-in.r < n {
		if err := in.fill(); err != nil {
			return nil, err
		}
		if in.c.partialAt.Load() == 0 {
			in.c.partialAt.Store(in.c.since(time.Now()))
		}
	}
	return in.buf[in.r:in.w], nil
}

// fill waits for bytes and buffers them.
func (in *inbound) fill() error {
	in.compact()
	if in.raw != nil {
		if err := in.raw.Read(in.tryRead); err != nil {
			return err
		}
	} else if in.err = in.room(); in.err == nil {
		in.n, in.err = in.src.Read(in.buf[in.w:])
	}
	if in.n > 0 {
		in.w += in.n
		in.n = 0
		in.c.readAt.Store(in.c.since(time.Now()))
		return nil
	}
	if in.err == nil {
		in.err = io.EOF
	}
	return in.err
}

// readReady reads what is there; false means to wait until the socket is readable.
func (in *inbound) readReady(fd uintptr) bool {
	if in.err = in.room(); in.err != nil {
		return true
	}
	var again bool
	in.n, again, in.err = readSocket(fd, in.buf[in.w:])
	if again {
		in.park()
	}
	return !again
}

// park gives the pooled buffer back for as long as the connection waits.
func (in *inbound) park() {
	if in.pooled == nil || in.w > readKeptBytesMax {
		return
	}
	in.kept = append(in.kept[:0], in.buf[:in.w]...)
	in.putPooled()
	in.buf = nil
}

// room makes sure that there is a buffer with space behind w.
func (in *inbound) room() error {
	if in.buf == nil {
		if in.raw != nil {
			in.pooled = readBuffers.Get().(*readBuffer)
			in.buf = in.pooled[:]
		} else {
			in.buf = make([]byte, readOwnBytes)
		}
		copy(in.buf, in.kept[:min(in.w, len(in.kept))])
	}
	if in.w < len(in.buf) {
		return nil
	}
	grown := make([]byte, min(2*len(in.buf), max(in.frame, len(in.buf)+1)))
	if in.c.end.largeReads.Add(int64(len(grown))-in.large) > in.c.end.limits.LargeReadBytesMax {
		in.large = int64(len(grown))
		return ErrReadMemory
	}
	in.large = int64(len(grown))
	copy(grown, in.buf[:in.w])
	in.putPooled()
	in.buf = grown
	return nil
}

// compact moves the incomplete frame to the front, and a grown buffer away once it is no longer needed.
func (in *inbound) compact() {
	rest := in.buf[in.r:in.w]
	switch {
	case in.large > 0 && len(rest) <= readKeptBytesMax && in.frame <= readBufferBytes:
		in.kept = append(in.kept[:0], rest...)
		in.dropLarge()
	case in.r > 0:
		copy(in.buf, rest)
	}
	in.r, in.w = 0, len(rest)
}

func (in *inbound) dropLarge() {
	in.buf = nil
	in.c.end.largeReads.Add(-in.large)
	in.large = 0
}

func (in *inbound) putPooled() {
	if in.pooled == nil {
		return
	}
	if in.c.end.poison {
		in.overwrite(in.pooled[:])
	}
	readBuffers.Put(in.pooled)
	in.pooled = nil
}

// overwrite makes bytes that are used after their time visible (tests).
func (in *inbound) overwrite(b []byte) {
	for i := range b {
		b[i] = 0xdb
	}
}

func (in *inbound) drop() {
	in.putPooled()
	in.dropLarge()
	in.kept, in.r, in.w = nil, 0, 0
}
