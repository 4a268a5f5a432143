// Package ceiling is a server that does nothing but what no log server can leave out: it reads framed requests, appends
// them in one order to a file, flushes groups of them when asked to, and answers. It parses nothing and has no features,
// so its rate bounds what a server of this design can reach on a machine. It is no product: it never recovers its file.
package ceiling

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	fileBytes     = 256 << 20 // zero-filled once, then written round and round
	zeroStep      = 1 << 20
	groupBytesMax = 8 << 20
	frameBytesMax = 16 << 20
	answerBytes   = 64
	readBytes     = 64 << 10
)

// Config of a server.
type Config struct {
	File  string
	Flush bool // fdatasync each group before it is answered
}

type request struct {
	conn *conn
	slot uint32
}

type conn struct {
	net.Conn
	out []byte // appender's
}

// server collects requests in one group while the appender writes the former one.
type server struct {
	cfg  Config
	file *os.File

	mu      sync.Mutex
	filled  *sync.Cond
	bytes   []byte
	waiting []request
	err     error
}

// Serve runs until ctx ends.
func Serve(ctx context.Context, l net.Listener, cfg Config) error {
	s := &server{cfg: cfg}
	s.filled = sync.NewCond(&s.mu)
	var err error
	if s.file, err = zeroFilled(cfg.File); err != nil {
		return err
	}
	defer s.file.Close()
	stop := context.AfterFunc(ctx, func() {
		l.Close()
		s.end(ctx.Err())
	})
	defer stop()
	var group sync.WaitGroup
	group.Go(s.append)
	defer group.Wait()
	for {
		c, err := l.Accept()
		if err != nil {
			s.end(err)
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("accept: %w", err)
		}
		go s.read(&conn{Conn: c})
	}
}

func zeroFilled(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	zeros := make([]byte, zeroStep)
	for at := int64(0); at < fileBytes; at += zeroStep {
		if _, err := f.WriteAt(zeros, at); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, f.Sync()
}

func (s *server) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	s.filled.Signal()
}

func (s *server) read(c *conn) {
	defer c.Close()
	r := bufio.NewReaderSize(c, readBytes)
	buf := make([]byte, readBytes)
	for {
		if _, err := io.ReadFull(r, buf[:4]); err != nil {
			return
		}
		n := int(binary.BigEndian.Uint32(buf)) + 4
		if n < 8 || n > frameBytesMax {
			return
		}
		if n > len(buf) {
			grown := make([]byte, n)
			copy(grown, buf[:4])
			buf = grown
		}
		if _, err := io.ReadFull(r, buf[4:n]); err != nil {
			return
		}
		s.mu.Lock()
		s.bytes = append(s.bytes, buf[:n]...)
		s.waiting = append(s.waiting, request{c, binary.BigEndian.Uint32(buf[4:])})
		if len(s.waiting) == 1 {
			s.filled.Signal()
		}
		s.mu.Unlock()
	}
}

func (s *server) append() {
	spareBytes, spareWaiting := make([]byte, 0, groupBytesMax), []request(nil)
	for at := int64(0); ; {
		s.mu.Lock()
		for len(s.waiting) == 0 && s.err == nil {
			s.filled.Wait()
		}
		if s.err != nil {
			s.mu.Unlock()
			return
		}
		bytes, waiting := s.bytes, s.waiting
		s.bytes, s.waiting = spareBytes[:0], spareWaiting[:0]
		s.mu.Unlock()
		if at+int64(len(bytes)) > fileBytes {
			at = 0
		}
		_, err := s.file.WriteAt(bytes, at)
		at += int64(len(bytes))
		if err == nil && s.cfg.Flush {
			err = unix.Fdatasync(int(s.file.Fd()))
		}
		if err != nil {
			s.end(err)
			return
		}
		answer(waiting)
		spareBytes, spareWaiting = bytes, waiting
	}
}

// answer writes one piece per connection.
func answer(waiting []request) {
	var touched []*conn
	for _, q := range waiting {
		if len(q.conn.out) == 0 {
			touched = append(touched, q.conn)
		}
		var a [answerBytes]byte
		binary.BigEndian.PutUint32(a[:], answerBytes-4)
		binary.BigEndian.PutUint32(a[4:], q.slot)
		q.conn.out = append(q.conn.out, a[:]...)
	}
	for _, c := range touched {
		_, _ = c.Write(c.out) // a connection that is gone is its reader's business
		c.out = c.out[:0]
	}
}
