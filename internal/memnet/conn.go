package memnet

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// sendBufferBytes is how much a connection takes without the other side reading, as a socket would.
const sendBufferBytes = 256 << 10

// conn is one end of a connection.
type conn struct {
	network       *Network
	way           direction // from this end to the other
	local, remote address
	in, out       *stream
	peer          *conn
}

// pair makes both ends of a connection.
func (n *Network) pair(from string, local address, to string, remote address) (client, server *conn) {
	there, back := newStream(n, direction{from, to}), newStream(n, direction{to, from})
	client = &conn{network: n, way: direction{from, to}, local: local, remote: remote, in: back, out: there}
	server = &conn{network: n, way: direction{to, from}, local: remote, remote: local, in: there, out: back}
	client.peer, server.peer = server, client
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conns[client], n.conns[server] = struct{}{}, struct{}{}
	return client, server
}

func (c *conn) Read(b []byte) (int, error)  { return c.in.read(b) }
func (c *conn) Write(b []byte) (int, error) { return c.out.write(b) }
func (c *conn) LocalAddr() net.Addr         { return c.local }
func (c *conn) RemoteAddr() net.Addr        { return c.remote }

// Close ends this end; the other reads what is under way and then io.EOF.
func (c *conn) Close() error {
	c.in.failReads(net.ErrClosed)
	c.out.finish()
	c.forget()
	return nil
}

// reset ends both ends at once, whatever is under way.
func (c *conn) reset(cause error) {
	for _, s := range []*stream{c.in, c.out} {
		s.abort(cause)
	}
	c.forget()
	c.peer.forget()
}

func (c *conn) forget() {
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	delete(c.network.conns, c)
}

func (c *conn) SetDeadline(t time.Time) error {
	c.in.setReadDeadline(t)
	c.out.setWriteDeadline(t)
	return nil
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.in.setReadDeadline(t)
	return nil
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	c.out.setWriteDeadline(t)
	return nil
}

// packet is bytes that one Write sent; end marks the end of the stream.
type packet struct {
	data []byte
	end  bool
	at   time.Time // not delivered before
}

// stream carries bytes one way. A goroutine delivers packets while there are some.
type stream struct {
	network *Network
	way     direction

	mu         sync.Mutex
	changed    sync.Cond
	travelling []packet
	delivering bool
	arrived    []byte
	buffered   int // bytes in travelling and arrived
	ended      bool
	finished   bool // no more writes
	readErr    error
	writeErr   error
	aborted    chan struct{}
	readBy     deadline
	writeBy    deadline
}

func newStream(n *Network, way direction) *stream {
	s := &stream{network: n, way: way, aborted: make(chan struct{})}
	s.changed.L = &s.mu
	return s
}

func (s *stream) read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.readErr != nil:
			return 0, s.readErr
		case s.readBy.over:
			return 0, os.ErrDeadlineExceeded
		case len(b) == 0:
			return 0, nil
		case len(s.arrived) > 0:
			n := copy(b, s.arrived)
			s.arrived = s.arrived[n:]
			s.buffered -= n
			s.changed.Broadcast()
			return n, nil
		case s.ended:
			return 0, io.EOF
		}
		s.changed.Wait()
	}
}

func (s *stream) write(b []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.writeErr != nil:
			return n, s.writeErr
		case s.finished:
			return n, net.ErrClosed
		case s.writeBy.over:
			return n, os.ErrDeadlineExceeded
		case len(b) == 0:
			return n, nil
		case s.buffered < sendBufferBytes:
			size := min(len(b), sendBufferBytes-s.buffered)
			s.send(packet{data: append([]byte(nil), b[:size]...)})
			n, b = n+size, b[size:]
			continue
		}
		s.changed.Wait()
	}
}

// finish sends the end of the stream.
func (s *stream) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.finished {
		s.finished = true
		s.send(packet{end: true})
		s.changed.Broadcast()
	}
}

// send puts a packet on its way. Under mu.
func (s *stream) send(p packet) {
	s.network.mu.Lock()
	l := *s.network.link(s.way)
	s.network.mu.Unlock()
	if !l.cut && l.delay == 0 && len(s.travelling) == 0 {
		s.buffered += len(p.data)
		s.arrive(p)
		return
	}
	p.at = time.Now().Add(l.delay)
	s.buffered += len(p.data)
	s.travelling = append(s.travelling, p)
	if !s.delivering {
		s.delivering = true
		go s.deliver()
	}
}

// arrive makes a packet readable. Under mu.
func (s *stream) arrive(p packet) {
	s.arrived = append(s.arrived, p.data...)
	s.ended = s.ended || p.end
	s.changed.Broadcast()
}

// deliver brings packets in order, each when its time has come and the link is whole; it ends when none is left.
func (s *stream) deliver() {
	for {
		s.mu.Lock()
		if len(s.travelling) == 0 || s.readErr != nil {
			s.delivering, s.travelling = false, nil
			s.mu.Unlock()
			return
		}
		p := s.travelling[0]
		s.mu.Unlock()
		s.await(p.at)
		s.mu.Lock()
		if len(s.travelling) > 0 {
			s.travelling = s.travelling[1:]
			s.arrive(p)
		}
		s.mu.Unlock()
	}
}

func (s *stream) await(at time.Time) {
	for {
		s.network.mu.Lock()
		l := *s.network.link(s.way)
		s.network.mu.Unlock()
		switch wait := time.Until(at); {
		case l.cut:
			select {
			case <-l.heal:
			case <-s.aborted:
				return
			}
		case wait > 0:
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-s.aborted:
				timer.Stop()
				return
			}
		default:
			return
		}
	}
}

// failReads ends the reading side; what is under way is of no use to anybody.
func (s *stream) failReads(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readErr == nil {
		s.readErr = cause
		s.abortLocked()
		if s.writeErr == nil {
			s.writeErr = ErrReset // as a socket does whose peer is gone
		}
		s.changed.Broadcast()
	}
}

func (s *stream) abort(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readErr == nil {
		s.readErr = cause
	}
	if s.writeErr == nil {
		s.writeErr = cause
	}
	s.abortLocked()
	s.changed.Broadcast()
}

func (s *stream) abortLocked() {
	select {
	case <-s.aborted:
	default:
		close(s.aborted)
	}
}

// deadline is a point in time after which operations fail.
type deadline struct {
	timer *time.Timer
	over  bool
	set   int // so that a timer that fired late does not count
}

func (s *stream) setReadDeadline(t time.Time)  { s.setDeadline(&s.readBy, t) }
func (s *stream) setWriteDeadline(t time.Time) { s.setDeadline(&s.writeBy, t) }

func (s *stream) setDeadline(d *deadline, t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.set++
	d.over = !t.IsZero() && time.Until(t) <= 0
	if !t.IsZero() && !d.over {
		set := d.set
		d.timer = time.AfterFunc(time.Until(t), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if d.set == set {
				d.over = true
				s.changed.Broadcast()
			}
		})
	}
	s.changed.Broadcast()
}
