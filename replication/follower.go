package replication

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quorate/quorate/ha"
	"github.com/quorate/quorate/ha/group"
	"github.com/quorate/quorate/internal/watermark"
)

// Sink is the log a replica appends to (store.Store).
type Sink interface {
	Appended() *watermark.Watermark
	Written() *watermark.Watermark
	Durable() *watermark.Watermark
	// Confirmed is the end of what this replica's consumers may see; the Follower advances it.
	Confirmed() *watermark.Watermark
	// AppendRaw takes bytes of the master's log at offset, which is the end of this one.
	AppendRaw(p []byte, offset int64, allowed func() error) error
	// StartAt makes an empty log begin at the master's first file.
	StartAt(offset int64) error
	// TruncateTo takes everything from offset on out of the log for good, epochs that begin there included.
	TruncateTo(offset int64) error
	// Kick has what was appended written out.
	Kick(inline bool)
	// History is the epoch history of the log; changes are durable when they return.
	History() ha.History
	BeginEpoch(e ha.EpochEntry) error
	SetHistory(h ha.History) error
}

// Upstream is the master to follow, as agreed over remoting beforehand.
type Upstream struct {
	Addr    string // its HA port
	Ours    bool   // it granted Session: our dialect
	Session uint64
}

// FollowerConfig has the settings of a replica.
type FollowerConfig struct {
	ID     ha.BrokerID
	Timing group.Timing
	// SyncFlush shows consumers of this replica only what its fsync covers; else what survives a kill of the process.
	SyncFlush bool
	Dial      func(ctx context.Context, addr string) (net.Conn, error)
}

// Follower keeps a replica's log equal to its master's: it connects, takes what continues its log, reports, reconnects.
// Its methods are safe for concurrent use.
type Follower struct {
	cfg    FollowerConfig
	sink   Sink
	find   func(ctx context.Context) (Upstream, error)
	event  func(Event)
	logger *slog.Logger

	status atomic.Pointer[FollowerStatus]
	master atomic.Int64 // the master's log end as far as pushes tell

	mu       sync.Mutex
	origin   time.Time
	received meter
}

// FollowerStatus is the replica's connection as GET_BROKER_HA_STATUS shows it.
type FollowerStatus struct {
	Addr      string
	Connected bool
	Dialect   group.Dialect
	Since     time.Time
	LastRead  time.Time
	LastWrite time.Time
	Reason    string // why it is not connected

	BytesPerSecond int64
}

// NewFollower starts nothing. find asks for the upstream before each connection; its error is a reason to wait.
func NewFollower(cfg FollowerConfig, sink Sink, find func(context.Context) (Upstream, error), event func(Event), logger *slog.Logger) *Follower {
	f := &Follower{cfg: cfg, sink: sink, find: find, event: event, logger: logger, origin: time.Now()}
	f.status.Store(&FollowerStatus{Reason: "not started"})
	return f
}

// Status returns the state of the connection.
func (f *Follower) Status() FollowerStatus {
	s := *f.status.Load()
	f.mu.Lock()
	defer f.mu.Unlock()
	s.BytesPerSecond = f.received.perSecond(time.Since(f.origin))
	return s
}

// MasterEnd is the greatest end of the master's log that was heard of.
func (f *Follower) MasterEnd() int64 { return f.master.Load() }

const stableAfter = 10 * time.Second // a connection that lived so long resets the back-off

// Run follows until ctx ends or the log refuses bytes for good.
func (f *Follower) Run(ctx context.Context) error {
	for failures := 0; ; failures++ {
		began := time.Now()
		err := f.once(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // asked to stop: the connection's error is how it stopped
		}
		f.status.Store(&FollowerStatus{Addr: f.Status().Addr, Reason: err.Error()})
		f.event(Event{Kind: "closed", Addr: f.Status().Addr, Reason: err.Error()})
		if time.Since(began) > stableAfter {
			failures = 0
		}
		wait := group.Backoff(failures)
		f.logger.Warn("not following the master", "error", err, "retry_in", wait)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

func (f *Follower) once(ctx context.Context) error {
	up, err := f.find(ctx)
	if err != nil {
		return fmt.Errorf("find the master: %w", err)
	}
	conn, err := f.cfg.Dial(ctx, up.Addr)
	if err != nil {
		return fmt.Errorf("connect to the master's HA port %s: %w", up.Addr, err)
	}
	s := &following{
		conn: conn, reader: bufio.NewReaderSize(conn, 64<<10), sink: f.sink, origin: time.Now(), owner: f,
		wake: make(chan struct{}, 1), dialect: group.Plain,
	}
	if up.Ours {
		s.dialect = group.Ours
	}
	if err := s.agree(Hello{Session: up.Session, BrokerID: int64(f.cfg.ID)}); err != nil {
		return errors.Join(err, conn.Close())
	}
	s.state = group.NewFollower(s.dialect, f.cfg.Timing, f.sink.Appended().Load(), f.sink.Durable().Load(), s.now())
	f.status.Store(&FollowerStatus{Addr: up.Addr, Connected: true, Dialect: s.dialect, Since: s.origin})
	f.logger.Info("following the master", "master_ha_addr", up.Addr, "dialect", int(s.dialect), "from", f.sink.Appended().Load())
	f.event(Event{Kind: "connected", Addr: up.Addr})
	return s.run(ctx)
}

// following is one connection to a master.
type following struct {
	conn    net.Conn
	reader  *bufio.Reader
	sink    Sink
	owner   *Follower
	origin  time.Time
	dialect group.Dialect
	begun   int32        // the epoch that pushed bytes belong to, of this connection; used by the reader only
	epoch   atomic.Int32 // of the newest bytes taken
	confirm atomic.Int64 // what the master's consumers may see

	mu    sync.Mutex
	state *group.Follower
	wake  chan struct{}
}

func (s *following) now() time.Duration { return time.Since(s.origin) }

// hello opens our dialect and takes the master's epoch history.
func (s *following) hello(h Hello) error {
	if _, err := s.conn.Write(AppendHello(nil, h)); err != nil {
		return fmt.Errorf("say hello: %w", err)
	}
	header := make([]byte, handshakeAckSize)
	if err := s.conn.SetReadDeadline(time.Now().Add(helloWait)); err != nil {
		return err
	}
	if _, err := io.ReadFull(s.reader, header); err != nil {
		return fmt.Errorf("read the master's history: %w", err)
	}
	n, err := HandshakeAckBodySize(header)
	if err != nil {
		return err
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(s.reader, body); err != nil {
		return fmt.Errorf("read the master's history: %w", err)
	}
	ack, err := DecodeHandshakeAck(slices.Concat(header, body))
	if err != nil {
		return err
	}
	if err := s.reconcile(ack); err != nil {
		return err
	}
	s.epoch.Store(ack.LastEpoch)
	s.owner.master.Store(ack.MaxOffset)
	return s.conn.SetReadDeadline(time.Time{})
}

func (s *following) run(ctx context.Context) error {
	kick := func(int64) {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
	defer s.sink.Durable().Subscribe(kick)()
	defer s.sink.Appended().Subscribe(kick)()
	defer s.held().Subscribe(func(int64) { s.show() })()
	s.show()
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.read(gctx) })
	g.Go(func() error { return s.report(gctx) })
	g.Go(func() error {
		<-gctx.Done()
		return errors.Join(context.Cause(gctx), s.conn.Close())
	})
	err := g.Wait()
	if ctx.Err() != nil { // else the read that failed because of it might be named
		return context.Cause(ctx)
	}
	return err
}

// read appends what the master pushes. Bytes enter the log only when header and body are complete.
func (s *following) read(ctx context.Context) error {
	size := pushHeaderSize
	if s.dialect != group.Plain {
		size = autoPushSize
	}
	header := make([]byte, size)
	var body []byte
	for {
		if s.reader.Buffered() < size {
			s.sink.Kick(false) // what came so far goes to disk while more is on the way
		}
		if _, err := io.ReadFull(s.reader, header); err != nil {
			return fmt.Errorf("read from the master: %w", err)
		}
		p, err := s.decode(header)
		if err != nil {
			return err
		}
		s.mu.Lock()
		err = s.state.Push(s.now(), p.Offset, int(p.BodySize))
		s.mu.Unlock()
		if err != nil {
			return err
		}
		s.owner.touch(true)
		if p.BodySize == 0 {
			s.show()
			continue
		}
		if cap(body) < int(p.BodySize) {
			body = make([]byte, p.BodySize)
		}
		body = body[:p.BodySize]
		if _, err := io.ReadFull(s.reader, body); err != nil {
			return fmt.Errorf("read from the master: %w", err)
		}
		if err := s.append(ctx, body, p); err != nil {
			return err
		}
		s.owner.count(len(body))
		s.show()
	}
}

func (s *following) decode(header []byte) (AutoPush, error) {
	if s.dialect == group.Plain {
		p, err := DecodePush(header)
		return AutoPush{Push: p}, err
	}
	p, err := DecodeAutoPush(header)
	if err == nil {
		s.confirm.Store(p.Confirm)
	}
	return p, err
}

func (s *following) append(ctx context.Context, body []byte, p AutoPush) error {
	offset := p.Offset
	if s.dialect != group.Plain && p.Epoch != s.begun {
		if err := s.begin(p); err != nil {
			return err
		}
	}
	if offset != 0 && s.sink.Appended().Load() == 0 {
		if err := s.sink.StartAt(offset); err != nil {
			return err
		}
	}
	if err := s.sink.AppendRaw(body, offset, func() error { return context.Cause(ctx) }); err != nil {
		return fmt.Errorf("append %d bytes of the master's log at %d: %w", len(body), offset, err)
	}
	end := offset + int64(len(body))
	s.mu.Lock()
	s.state.Appended(end)
	s.mu.Unlock()
	if end > s.owner.master.Load() {
		s.owner.master.Store(end)
	}
	return nil
}

// report tells the master what was received and flushed, at once when it moved and as a heartbeat otherwise.
func (s *following) report(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var frame []byte
	for {
		s.mu.Lock()
		s.state.Flushed(s.sink.Durable().Load())
		in, silent := s.state.Expired(s.now())
		due, again := s.state.ReportDue(s.now())
		received, flushed := s.state.Report()
		if due {
			s.state.Reported(s.now())
		}
		s.mu.Unlock()
		if silent != nil {
			return silent
		}
		if due {
			frame = s.encode(frame[:0], received, flushed)
			if _, err := s.conn.Write(frame); err != nil {
				return fmt.Errorf("report to the master: %w", err)
			}
			s.owner.touch(false)
			continue
		}
		timer.Reset(min(in, again))
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.wake:
		case <-timer.C:
		}
	}
}

func (s *following) encode(dst []byte, received, flushed int64) []byte {
	if s.dialect == group.Ours {
		return AppendOurReport(dst, OurReport{Epoch: s.epoch.Load(), Received: received, Flushed: flushed})
	}
	return AppendReport(dst, Report{MaxOffset: received})
}

func (f *Follower) count(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.received.add(time.Since(f.origin), int64(n))
}

// touch notes the time of the last read or write.
func (f *Follower) touch(read bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := *f.status.Load()
	if read {
		now.LastRead = time.Now()
	} else {
		now.LastWrite = time.Now()
	}
	f.status.Store(&now)
}
