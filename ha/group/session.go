// Package group is the pure core of one replica of a broker group: it takes what happened and when, and says what to do.
// It starts no goroutine, reads no clock and touches no socket or file; package replication is its shell, and the
// simulator drives the same code by an event queue (D4). Times are durations on one monotonic clock of the caller.
package group

import (
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/ha"
)

// Dialect is how two brokers speak on the HA port.
type Dialect uint8

// Dialects. Only two Quorate brokers that agreed over remoting beforehand speak Ours (D3).
const (
	Plain Dialect = iota // RocketMQ DefaultHA: acks are received offsets, the replica has no name
	Auto                 // RocketMQ AutoSwitchHA: acks are received offsets under an epoch
	Ours                 // AutoSwitchHA with broker id, session, received and flushed offset in each report
)

// Timing are the intervals of a replication session.
type Timing struct {
	Heartbeat    time.Duration // haSendHeartbeatInterval: silence before a heartbeat or an unasked report is sent
	Housekeeping time.Duration // haHousekeepingInterval: silence of the peer before the session is closed
	// Stall is how long a replica may owe an acknowledgement without any progress before it counts no more
	// (haReplicaStallTimeoutMillis); 0: for ever.
	Stall time.Duration
}

// Reasons why a session ends. Match with errors.Is.
var (
	ErrAhead      = errors.New("replica is ahead of the master's log")
	ErrBelow      = errors.New("replica asks for bytes the master no longer has")
	ErrUnsent     = errors.New("replica acknowledges bytes it was never sent")
	ErrBackwards  = errors.New("replica acknowledges less than before")
	ErrFlushAhead = errors.New("replica claims to have flushed more than it received")
	ErrSilent     = errors.New("peer is silent")
	ErrMismatch   = errors.New("pushed bytes do not begin at the end of the log")
)

// LogBounds are the master's log at the start of a session, in physical offsets, ends exclusive.
type LogBounds struct {
	Min      int64 // first retained byte
	End      int64
	LastFile int64 // begin of the newest file
}

// Session is the master's side of one replica's connection: where it stands, what it was sent, and which of its
// acknowledgements are evidence (I9). Not safe for concurrent use.
type Session struct {
	ID      ha.BrokerID
	Dialect Dialect

	timing    Timing
	started   bool
	next      int64 // first byte not sent yet
	received  int64
	flushed   int64
	lastRead  time.Duration
	lastWrite time.Duration

	durable    bool          // acknowledgements count by the replica's fsync
	progressed time.Duration // last acknowledgement, or when the first byte since was sent
	stalled    bool

	rate   int64 // bytes per second, 0: unlimited
	second time.Duration
	spent  int64 // bytes in this second
}

// NewSession is a connection that was accepted at now. bytesPerSecond is maxHaTransferByteInSecond where
// haFlowControlEnable, else 0.
func NewSession(id ha.BrokerID, d Dialect, t Timing, bytesPerSecond int64, now time.Duration) *Session {
	return &Session{ID: id, Dialect: d, timing: t, rate: bytesPerSecond, lastRead: now, lastWrite: now, second: now, received: -1, flushed: -1}
}

// Started reports whether the replica has said where it stands: nothing is sent before.
func (s *Session) Started() bool { return s.started }

// Received and Flushed are the acknowledged exclusive ends, −1 before the first report. Flushed stays −1 for RocketMQ's
// replicas, whose acknowledgements say nothing about their disk.
func (s *Session) Received() int64 { return s.received }

// Flushed: see Received.
func (s *Session) Flushed() int64 { return s.flushed }

// Next is the first byte that was not sent yet.
func (s *Session) Next() int64 { return s.next }

// Start takes the replica's first report. An empty RocketMQ replica starts at the master's last file, as it does under a
// RocketMQ master; one of ours at the first retained byte, so that it ends up with everything. fromLastFile is
// isSyncFromLastFile of the handshake.
func (s *Session) Start(now time.Duration, end int64, fromLastFile bool, log LogBounds) error {
	s.lastRead = now
	switch {
	case end == 0 && (s.Dialect == Plain || fromLastFile):
		s.next = max(log.LastFile, log.Min)
	case end == 0:
		s.next = log.Min
	case end > log.End:
		return fmt.Errorf("%w: it ends at %d, the master at %d", ErrAhead, end, log.End)
	case end < log.Min:
		return fmt.Errorf("%w: it ends at %d, the master begins at %d", ErrBelow, end, log.Min)
	default:
		s.next = end
	}
	s.started = true
	s.received, s.progressed = end, now
	if s.Dialect == Ours {
		s.flushed = 0
	}
	return nil
}

// Report takes an acknowledgement; flushed is −1 where the dialect has none. It says whether the replica made progress. An
// error means that the session must be closed: what was reported is no evidence, and nothing has moved.
func (s *Session) Report(now time.Duration, received, flushed int64) (progress bool, err error) {
	s.lastRead = now
	switch {
	case received > s.next:
		return false, fmt.Errorf("%w: %d, sent up to %d", ErrUnsent, received, s.next)
	case received < s.received:
		return false, fmt.Errorf("%w: received %d after %d", ErrBackwards, received, s.received)
	case flushed > received:
		return false, fmt.Errorf("%w: flushed %d, received %d", ErrFlushAhead, flushed, received)
	case s.Dialect == Ours && flushed < s.flushed:
		return false, fmt.Errorf("%w: flushed %d after %d", ErrBackwards, flushed, s.flushed)
	}
	progress = received > s.received || s.Dialect == Ours && flushed > s.flushed
	before := s.counted()
	s.received = received
	if s.Dialect == Ours {
		s.flushed = flushed
	}
	if s.counted() > before {
		s.progressed, s.stalled = now, false
	}
	return progress, nil
}

// CountFlushed makes the replica's fsync its progress, where the dialect tells it.
func (s *Session) CountFlushed() { s.durable = s.Dialect == Ours }

func (s *Session) counted() int64 {
	if s.durable {
		return s.flushed
	}
	return s.received
}

// Stalled reports whether the replica owes an acknowledgement for longer than Timing.Stall without any progress: its
// acknowledgements are to be forgotten until it makes progress again. first is true once for each time. Else in is how long
// until then, 0 while it owes nothing.
func (s *Session) Stalled(now time.Duration) (stalled, first bool, in time.Duration) {
	if s.timing.Stall <= 0 || !s.started || s.counted() >= s.next {
		return s.stalled, false, 0
	}
	due, in := elapsed(now, s.progressed, s.timing.Stall)
	if !due {
		return s.stalled, false, in
	}
	first = !s.stalled
	s.stalled = true
	return true, first, 0
}

// Send says how many of the available bytes from Next on may leave now: all of them, or what the rate still allows in
// this second. 0 with a positive wait means: try again then.
func (s *Session) Send(now time.Duration, available int64) (bytes int64, wait time.Duration) {
	if !s.started || available <= 0 {
		return 0, 0
	}
	if s.rate <= 0 {
		return available, 0
	}
	if now-s.second >= time.Second {
		s.second, s.spent = now, 0
	}
	if s.spent >= s.rate {
		return 0, time.Second - (now - s.second)
	}
	return min(available, s.rate-s.spent), 0
}

// Sent records that bytes from Next on were handed to the connection.
func (s *Session) Sent(now time.Duration, bytes int64) {
	if bytes > 0 && s.counted() >= s.next {
		s.progressed = now
	}
	s.next += bytes
	s.spent += bytes
	s.lastWrite = now
}

// HeartbeatDue says whether a heartbeat is due, and else how long until then.
func (s *Session) HeartbeatDue(now time.Duration) (due bool, in time.Duration) {
	return elapsed(now, s.lastWrite, s.timing.Heartbeat)
}

// Expired is ErrSilent when the replica has not been heard for the housekeeping interval, else how long until then.
func (s *Session) Expired(now time.Duration) (in time.Duration, err error) {
	due, in := elapsed(now, s.lastRead, s.timing.Housekeeping)
	if due {
		return 0, fmt.Errorf("%w: nothing heard for %v", ErrSilent, now-s.lastRead)
	}
	return in, nil
}

func elapsed(now, since, interval time.Duration) (due bool, in time.Duration) {
	if d := now - since; d < interval {
		return false, interval - d
	}
	return true, 0
}
