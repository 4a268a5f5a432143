package replication

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/ha"
	"github.com/quorate/quorate/ha/group"
)

// Errors of the HA port. Match with errors.Is.
var (
	ErrNoSession   = errors.New("replication: hello of a session that was not granted")
	ErrReplaced    = errors.New("replication: the replica connected anew")
	ErrConnections = errors.New("replication: too many replica connections")
	ErrStranger    = errors.New("replication: the peer is no member of the group")
)

// ServerConfig has the settings of the HA port.
type ServerConfig struct {
	Timing         group.Timing
	BatchBytes     int   // haTransferBatchSize
	BytesPerSecond int64 // maxHaTransferByteInSecond where haFlowControlEnable; 0: unlimited
	ConnectionsMax int   // default 64
	Auto           bool  // Controller mode: RocketMQ's replicas speak AutoSwitchHA, else DefaultHA
	SelfID         ha.BrokerID
	Durable        bool // replicas count by their fsync: a replica whose disk stalls has stalled
}

// Members names replicas that cannot name themselves: DefaultHA carries no id. It returns the ids of the group's brokers
// that live at an address.
type Members func(addr netip.Addr) []ha.BrokerID

// Progress takes what a replica proved, and forgets it when its session ends (Term).
type Progress interface {
	Report(id ha.BrokerID, received, durable int64) error
	Forget(id ha.BrokerID)
}

// Server accepts replicas and sends them the log. Safe for concurrent use.
type Server struct {
	cfg      ServerConfig
	source   Source
	epochs   Epochs
	members  Members
	progress func() Progress // the Term of the moment, nil when there is none
	event    func(Event)
	logger   *slog.Logger

	mu      sync.Mutex
	granted map[uint64]ha.BrokerID // sessions agreed over remoting, not yet connected
	live    map[ha.BrokerID]*liveSender
	count   int
}

type liveSender struct {
	sender *Sender
	cancel context.CancelCauseFunc
}

// Event is something an operator wants to know about a replica's connection.
type Event struct {
	Kind    string // connected, closed, stalled; at a replica also truncated
	Replica ha.BrokerID
	Addr    string
	Reason  string
}

const (
	grantedMax          = 256
	helloWait           = 10 * time.Second // a Plain replica may be silent for its heartbeat interval after connecting
	strangerID          = ha.BrokerID(-1)
	strangerWait        = 15 * time.Second // a member's registration reaches us within heartbeat, scan and poll intervals
	connectionsMaxOfAll = 64
)

// ErrNotMaster turns replicas away from a broker that is no master.
var ErrNotMaster = errors.New("replication: this broker is no master")

// NewServer starts nothing.
func NewServer(cfg ServerConfig, source Source, epochs Epochs, members Members, progress func() Progress, event func(Event), logger *slog.Logger) *Server {
	if cfg.ConnectionsMax <= 0 {
		cfg.ConnectionsMax = connectionsMaxOfAll
	}
	return &Server{
		cfg: cfg, source: source, epochs: epochs, members: members, progress: progress, event: event, logger: logger,
		granted: map[uint64]ha.BrokerID{}, live: map[ha.BrokerID]*liveSender{},
	}
}

// Grant records a session number that was given to a replica over remoting. Its connection must begin with it.
func (s *Server) Grant(session uint64, id ha.BrokerID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.granted) >= grantedMax { // replicas that asked and never came
		clear(s.granted)
	}
	s.granted[session] = id
}

// Status lists the connected replicas by id.
func (s *Server) Status() []Status {
	s.mu.Lock()
	senders := make([]*Sender, 0, len(s.live))
	for _, l := range s.live {
		senders = append(senders, l.sender)
	}
	s.mu.Unlock()
	all := make([]Status, 0, len(senders))
	for _, sender := range senders {
		all = append(all, sender.Status())
	}
	slices.SortFunc(all, func(a, b Status) int { return int(a.ID - b.ID) })
	return all
}

// Serve accepts replicas until ctx ends, then closes their connections and returns when all is quiet.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() }) // only ends Accept, whose error is looked at
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil // asked to stop: closing the listener is how
			}
			var timeout net.Error
			if errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, errTooManyFiles) {
				s.logger.Warn("replica not accepted", "error", err)
				time.Sleep(acceptPause)
				continue
			}
			return fmt.Errorf("accept replicas: %w", err)
		}
		wg.Go(func() { s.serve(ctx, conn) })
	}
}

func (s *Server) serve(ctx context.Context, conn net.Conn) {
	addr := conn.RemoteAddr().String()
	id, err := s.replicate(ctx, conn)
	closeErr := conn.Close()
	if ctx.Err() != nil {
		return
	}
	if errors.Is(closeErr, net.ErrClosed) {
		closeErr = nil
	}
	err = errors.Join(err, closeErr)
	s.logger.Warn("replica connection closed", "replica", int64(id), "remote_addr", addr, "error", err)
	s.event(Event{Kind: "closed", Replica: id, Addr: addr, Reason: err.Error()})
}

// replicate finds out who speaks which dialect and runs the sender.
func (s *Server) replicate(ctx context.Context, conn net.Conn) (ha.BrokerID, error) {
	if err := s.admit(); err != nil {
		return strangerID, err
	}
	defer s.leave()
	if s.progress() == nil {
		return strangerID, ErrNotMaster
	}
	reader := bufio.NewReaderSize(conn, 4096)
	if err := conn.SetReadDeadline(time.Now().Add(max(helloWait, 2*s.cfg.Timing.Heartbeat))); err != nil {
		return strangerID, err
	}
	first, err := reader.Peek(firstWordsBytes)
	if err != nil {
		return strangerID, fmt.Errorf("replica said nothing: %w", err)
	}
	id, dialect, learner, err := s.identify(conn, reader, first)
	if err != nil {
		return id, err
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		return id, err
	}
	return id, s.run(ctx, conn, reader, id, dialect, learner)
}

func (s *Server) admit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count >= s.cfg.ConnectionsMax {
		return fmt.Errorf("%w: %d", ErrConnections, s.count)
	}
	s.count++
	return nil
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count--
}

// identify reads the hello or handshake, if the dialect has one, and answers it.
func (s *Server) identify(conn net.Conn, reader *bufio.Reader, first []byte) (ha.BrokerID, group.Dialect, bool, error) {
	switch {
	case IsHello(first):
		buf := make([]byte, helloSize)
		if _, err := io.ReadFull(reader, buf); err != nil {
			return strangerID, group.Ours, false, err
		}
		h, err := DecodeHello(buf)
		if err != nil {
			return strangerID, group.Ours, false, err
		}
		id := ha.BrokerID(h.BrokerID)
		if !s.take(h.Session, id) {
			return id, group.Ours, false, fmt.Errorf("%w: broker %d", ErrNoSession, id)
		}
		return id, group.Ours, false, s.answerHandshake(conn)
	case s.cfg.Auto:
		buf := make([]byte, handshakeSize)
		if _, err := io.ReadFull(reader, buf); err != nil {
			return strangerID, group.Auto, false, err
		}
		h, err := DecodeHandshake(buf)
		if err != nil {
			return strangerID, group.Auto, false, err
		}
		return ha.BrokerID(h.BrokerID), group.Auto, h.AsyncLearner, s.answerHandshake(conn)
	default:
		if _, err := DecodeReport(first); err != nil {
			return strangerID, group.Plain, false, err
		}
		id, err := s.nameOf(conn)
		return id, group.Plain, false, err
	}
}

func (s *Server) take(session uint64, id ha.BrokerID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	want, ok := s.granted[session]
	if !ok || want != id {
		return false
	}
	delete(s.granted, session)
	return true
}

func (s *Server) answerHandshake(conn net.Conn) error {
	h := s.epochs.History()
	a := HandshakeAck{MaxOffset: s.source.Appended().Load(), LastEpoch: int32(h.Last())}
	for _, e := range h.Entries() {
		a.Epochs = append(a.Epochs, EpochStart{int32(e.Epoch), e.Start})
	}
	if _, err := conn.Write(AppendHandshakeAck(nil, a)); err != nil {
		return fmt.Errorf("answer handshake: %w", err)
	}
	return nil
}

// nameOf finds the id of a DefaultHA replica by its address: of several members there, the lowest that is not connected.
func (s *Server) nameOf(conn net.Conn) (ha.BrokerID, error) {
	remote, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return strangerID, fmt.Errorf("replica address: %w", err)
	}
	ids := s.members(remote.Addr().Unmap())
	slices.Sort(ids)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if s.live[id] == nil && id != s.cfg.SelfID {
			return id, nil
		}
	}
	for _, id := range ids {
		if id != s.cfg.SelfID {
			return id, nil // it connected anew while its old connection lingers: replaced
		}
	}
	return strangerID, nil
}

func (s *Server) run(ctx context.Context, conn net.Conn, reader *bufio.Reader, id ha.BrokerID, d group.Dialect, learner bool) error {
	sender := &Sender{
		conn: conn, reader: reader, source: s.source, epochs: s.epochs, batch: s.cfg.BatchBytes, origin: time.Now(),
		learner: learner, wake: make(chan struct{}, 1),
		session: group.NewSession(id, d, s.cfg.Timing, s.cfg.BytesPerSecond, 0),
	}
	if d == group.Ours {
		sender.batch = max(sender.batch, ourBatchBytes)
	}
	if s.cfg.Durable {
		sender.session.CountFlushed()
	}
	sender.stall = func() {
		id := sender.Status().ID
		s.event(Event{Kind: "stalled", Replica: id, Addr: conn.RemoteAddr().String(), Reason: "it owes an acknowledgement for " + s.cfg.Timing.Stall.String()})
		if id != strangerID {
			s.forget(id)
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	undo := func() {}
	defer func() { undo() }()
	if id != strangerID {
		undo = s.register(id, sender, cancel)
	}
	sender.report = func(received, flushed int64) error {
		if sender.session.ID == strangerID {
			if err := s.nameLate(sender); err != nil || sender.session.ID == strangerID {
				return err
			}
			undo = s.register(sender.session.ID, sender, cancel)
		}
		return s.evidence(sender, received, flushed)
	}
	s.logger.Info("replica connected", "replica", int64(id), "remote_addr", conn.RemoteAddr().String(), "dialect", int(d))
	s.event(Event{Kind: "connected", Replica: id, Addr: conn.RemoteAddr().String()})
	return sender.Run(ctx)
}

// nameLate names a replica that connected before the group's members were known. A peer that stays a stranger is closed.
func (s *Server) nameLate(sender *Sender) error {
	id, err := s.nameOf(sender.conn)
	if err != nil {
		return err
	}
	if id == strangerID && sender.now() > strangerWait {
		return fmt.Errorf("%w: no member of the group lives at %s", ErrStranger, sender.conn.RemoteAddr())
	}
	sender.mu.Lock()
	defer sender.mu.Unlock()
	sender.session.ID = id
	return nil
}

// evidence hands an acknowledgement to the Term. A learner's counts for nothing.
func (s *Server) evidence(sender *Sender, received, flushed int64) error {
	p := s.progress()
	if sender.learner || p == nil {
		return nil
	}
	return p.Report(sender.session.ID, received, max(flushed, 0))
}

// register makes sender the one connection of its replica: an older one is closed, so that acks count per broker and
// never per connection. The returned function undoes it.
func (s *Server) register(id ha.BrokerID, sender *Sender, cancel context.CancelCauseFunc) func() {
	s.mu.Lock()
	old := s.live[id]
	mine := &liveSender{sender, cancel}
	s.live[id] = mine
	s.mu.Unlock()
	if old != nil {
		old.cancel(ErrReplaced)
		s.forget(id)
	}
	return func() {
		s.mu.Lock()
		current := s.live[id] == mine
		if current {
			delete(s.live, id)
		}
		s.mu.Unlock()
		if current {
			s.forget(id)
		}
	}
}

func (s *Server) forget(id ha.BrokerID) {
	if p := s.progress(); p != nil {
		p.Forget(id)
	}
}
