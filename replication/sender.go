package replication

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quorate/quorate/ha"
	"github.com/quorate/quorate/ha/group"
	"github.com/quorate/quorate/internal/watermark"
)

// Source is the log a master sends from (store.Store).
type Source interface {
	Confirmed() *watermark.Watermark
	Begin() int64
	FileSize() int64
	Appended() *watermark.Watermark
	// Read copies bytes from offset on, not across a file.
	Read(p []byte, offset int64) (int, error)
}

// Epochs is the epoch history of the log (store.Store).
type Epochs interface{ History() ha.History }

// confirmEvery bounds how long a replica of ours that has everything waits to hear that it is confirmed.
const confirmEvery = 100 * time.Millisecond

const ourBatchBytes = 256 << 10 // of one transfer between our own; RocketMQ's peers get haTransferBatchSize

// Sender is the master's side of one replica's connection. Status is safe for concurrent use.
type Sender struct {
	conn   net.Conn
	reader *bufio.Reader
	source Source
	epochs Epochs
	batch  int
	origin time.Time
	// report is told of each acknowledgement that is evidence. Its error closes the connection.
	report func(received, flushed int64) error
	stall  func() // the replica's acknowledgements are to be forgotten

	mu      sync.Mutex
	session *group.Session
	sent    meter
	learner bool

	confirmed int64 // told to the replica; used by the writer only

	wake chan struct{} // capacity 1: something to send
}

// Status is one replica as its master sees it.
type Status struct {
	ID             ha.BrokerID
	Addr           string
	Dialect        group.Dialect
	Received       int64 // −1 before the first report
	Flushed        int64 // −1 for RocketMQ's replicas
	Next           int64 // next byte to send
	BytesPerSecond int64
	Learner        bool
}

func (s *Sender) now() time.Duration { return time.Since(s.origin) }

// Status returns where the replica stands.
func (s *Sender) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Status{
		ID: s.session.ID, Addr: s.conn.RemoteAddr().String(), Dialect: s.session.Dialect, Received: s.session.Received(),
		Flushed: s.session.Flushed(), Next: s.session.Next(), BytesPerSecond: s.sent.perSecond(s.now()), Learner: s.learner,
	}
}

// Run sends until the connection fails, the replica breaks the rules, or ctx ends; the error says which.
func (s *Sender) Run(ctx context.Context) error {
	cancel := s.source.Appended().Subscribe(func(int64) { s.kick() })
	defer cancel()
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.read() })
	g.Go(func() error { return s.write(gctx) })
	g.Go(func() error { // a blocked read or write ends with the connection
		<-gctx.Done()
		return errors.Join(context.Cause(gctx), s.conn.Close())
	})
	err := g.Wait()
	if ctx.Err() != nil { // else the read that failed because of it might be named
		return context.Cause(ctx)
	}
	return err
}

func (s *Sender) kick() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// read takes reports until the connection ends.
func (s *Sender) read() error {
	size := map[group.Dialect]int{group.Plain: reportSize, group.Auto: autoReportSize, group.Ours: ourReportSize}[s.session.Dialect]
	buf := make([]byte, size)
	for {
		if _, err := io.ReadFull(s.reader, buf); err != nil {
			return fmt.Errorf("read from replica: %w", err)
		}
		received, flushed, err := s.decode(buf)
		if err != nil {
			return err
		}
		if err := s.acknowledge(received, flushed); err != nil {
			return err
		}
	}
}

func (s *Sender) decode(b []byte) (received, flushed int64, err error) {
	switch s.session.Dialect {
	case group.Ours:
		r, err := DecodeOurReport(b)
		return r.Received, r.Flushed, err
	case group.Auto:
		r, err := DecodeAutoReport(b)
		return r.MaxOffset, -1, err
	default:
		r, err := DecodeReport(b)
		return r.MaxOffset, -1, err
	}
}

func (s *Sender) acknowledge(received, flushed int64) error {
	s.mu.Lock()
	now := s.now()
	if !s.session.Started() {
		fileSize, end := s.source.FileSize(), s.source.Appended().Load()
		log := group.LogBounds{Min: s.source.Begin(), End: end, LastFile: end - end%fileSize}
		if err := s.session.Start(now, received, false, log); err != nil {
			s.mu.Unlock()
			return err
		}
		s.mu.Unlock()
		s.kick()
		if flushed < 0 {
			return s.report(received, flushed)
		}
		s.mu.Lock()
	}
	_, err := s.session.Report(now, received, flushed)
	stalled, _, _ := s.session.Stalled(now)
	s.mu.Unlock()
	if err != nil || stalled {
		return err
	}
	return s.report(received, flushed)
}

// write sends what the log has and heartbeats when it has nothing.
func (s *Sender) write(ctx context.Context) error {
	frame := make([]byte, autoPushSize+s.batch)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var told time.Time // when the confirmed end was last sent alone
	for {
		sentAll, wait, err := s.sendAvailable(frame)
		if err != nil {
			return err
		}
		in, due, owed, silent := s.clocks()
		if silent != nil {
			return silent
		}
		if due || owed && s.source.Confirmed().Load() > s.confirmed && told.Add(confirmEvery).Before(time.Now()) {
			told = time.Now()
			if err := s.push(frame[:0], 0); err != nil {
				return err
			}
			continue
		}
		if !sentAll && wait > 0 {
			in = min(in, wait)
		}
		timer.Reset(in)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.wake:
		case <-timer.C:
		}
	}
}

// clocks says how long nothing has to be done, whether a heartbeat is due, whether the replica is owed the confirmed end,
// and whether it has been silent for too long.
func (s *Sender) clocks() (in time.Duration, due, owed bool, silent error) {
	s.mu.Lock()
	in, silent = s.session.Expired(s.now())
	due, heartbeatIn := s.session.HeartbeatDue(s.now())
	_, stalled, stallIn := s.session.Stalled(s.now())
	started, next := s.session.Started(), s.session.Next()
	s.mu.Unlock()
	if stalled && silent == nil {
		s.stall()
	}
	owed = started && s.session.Dialect != group.Plain && s.confirmed < next
	if owed {
		in = min(in, confirmEvery)
	}
	for _, other := range []time.Duration{stallIn, heartbeatIn} {
		if other > 0 {
			in = min(in, other)
		}
	}
	return in, due && started, owed, silent
}

// sendAvailable sends all that is appended, as far as the rate allows.
func (s *Sender) sendAvailable(frame []byte) (all bool, wait time.Duration, err error) {
	for {
		s.mu.Lock()
		next := s.session.Next()
		allowed, wait := s.session.Send(s.now(), s.source.Appended().Load()-next)
		s.mu.Unlock()
		if allowed <= 0 {
			return wait == 0, wait, nil
		}
		header := s.headerSize()
		body := frame[header : header+int(min(allowed, int64(s.batch)))]
		if s.session.Dialect != group.Plain { // a body lies in one epoch
			if _, end, ok := s.epochs.History().At(next); ok {
				body = body[:min(int64(len(body)), end-next)]
			}
		}
		n, err := s.source.Read(body, next)
		if err != nil {
			return false, 0, fmt.Errorf("read log at %d for replica: %w", next, err)
		}
		if n == 0 {
			return true, 0, nil
		}
		if err := s.push(frame, n); err != nil {
			return false, 0, err
		}
	}
}

func (s *Sender) headerSize() int {
	if s.session.Dialect == group.Plain {
		return pushHeaderSize
	}
	return autoPushSize
}

// push writes header and body of one transfer; the body already stands behind the header's place.
func (s *Sender) push(frame []byte, n int) error {
	s.mu.Lock()
	next := s.session.Next()
	s.mu.Unlock()
	p := Push{Offset: next, BodySize: int32(n)}
	header := s.headerSize()
	if s.session.Dialect == group.Plain {
		AppendPush(frame[:0], p)
	} else {
		e, _, _ := s.epochs.History().At(next)
		confirm := s.source.Confirmed().Load()
		AppendAutoPush(frame[:0], AutoPush{Push: p, Epoch: int32(e.Epoch), EpochStart: e.Start, Confirm: confirm})
		s.confirmed = confirm
	}
	// Counted as sent before the write: an acknowledgement may come back before Write returns.
	s.mu.Lock()
	s.session.Sent(s.now(), int64(n))
	s.sent.add(s.now(), int64(n))
	s.mu.Unlock()
	if _, err := s.conn.Write(frame[:header+n]); err != nil {
		return fmt.Errorf("write to replica: %w", err)
	}
	return nil
}

// meter counts bytes of the running and the last whole second.
type meter struct {
	second    time.Duration
	now, last int64
}

func (m *meter) add(now time.Duration, n int64) {
	m.roll(now)
	m.now += n
}

func (m *meter) roll(now time.Duration) {
	switch second := now.Truncate(time.Second); second {
	case m.second:
	case m.second + time.Second:
		m.second, m.last, m.now = second, m.now, 0
	default:
		m.second, m.last, m.now = second, 0, 0
	}
}

func (m *meter) perSecond(now time.Duration) int64 {
	m.roll(now)
	return max(m.last, m.now)
}
