// Package store is the storage engine of a broker: it opens, recovers, appends, reads and cleans. Formats are RocketMQ's.
// It decides nothing about acknowledgement: it moves the watermarks Appended, Durable and Dispatched, and shows consumers
// what Confirmed covers, which a rule from outside moves.
package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/internal/vfs"
	"github.com/quorate/quorate/internal/watermark"
	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/store/checkpoint"
	"github.com/quorate/quorate/store/commitlog"
	"github.com/quorate/quorate/store/consumequeue"
	"github.com/quorate/quorate/store/index"
)

// Errors of appends and reads. Match with errors.Is.
var (
	ErrMessageIllegal    = errors.New("store: message illegal")     // topic, body or properties exceed the format or a limit
	ErrPropertiesTooLong = errors.New("store: properties too long") //
	ErrNotWritable       = errors.New("store: not writable")        // write-failed latch, disk full, busy, shutting down: the wrapped text says which
	ErrDiskFull          = errors.New("store: disk full")           // beside ErrNotWritable
	ErrBusy              = errors.New("store: busy")                // beside ErrNotWritable: no room within a second
	ErrQueueNotFound     = errors.New("store: queue not found")     //
	ErrRecordNotFound    = errors.New("store: record not found")    // no confirmed record starts at that offset
	ErrStoreLocked       = errors.New("store: locked by another process")
	ErrCorrupt           = errors.New("store: corrupt") // corruption in the middle, never cut
)

// Store is safe for concurrent use.
//
// Locks, in the order in which they may be taken together: checkpointMu, dispatchMu; the parts have their own below.
type Store struct {
	cfg    Config
	logger *slog.Logger
	fsys   vfs.FS

	lock       *checkpoint.Lock // nil on a file system of the caller's
	checkpoint *checkpoint.File
	log        *commitlog.Log
	queues     *consumequeue.Table
	index      *index.Index // nil with messageIndexEnable=false
	counters   counters
	epochs     *checkpoint.Epochs
	raw        atomic.Bool // bytes of another broker's log were appended: its end may lie within a record

	confirmed, dispatched watermark.Watermark

	// checkpointMu is held while a checkpoint is taken.
	checkpointMu sync.Mutex
	written      checkpoint.Checkpoint // the last one
	endsWritten  int64                 // dispatched of the last queue ends, and when
	endsAt       time.Time

	checkpointOffset atomic.Int64 // written.Dispatched

	// dispatchMu is held while a piece of the log is dispatched, so that who takes it finds queues, index batch and
	// Dispatched in agreement.
	dispatchMu sync.Mutex
	batch      index.Batch
	buf        []byte
	last       lastRecord
	recut      func() // tells runDispatch of a cut; nil before it runs
	// dispatchOne is dispatchRecord, bound once: a method value made per piece would be an allocation.
	dispatchOne func(r *message.Record) error
	complaints  atomic.Int64
	corruptAt   atomic.Int64 // the offset behind the damaged record that was last complained about

	kick     chan struct{} // something was dispatched
	soon     chan struct{} // much was: a checkpoint is due
	indexOff atomic.Bool   // the index failed; the next start makes up for it

	failed   atomic.Pointer[error]
	diskFull atomic.Pointer[error]
	disk     atomic.Pointer[diskUse]
	expired  sync.Mutex // one retention run at a time
	filesMu  sync.Mutex // one small file is replaced at a time
	manual   chan struct{}

	earliest atomic.Pointer[earliest]
	// clockBehind says that the store opened with a clock before the times in its log.
	clockBehind bool

	appendedBytes atomic.Uint64
	ran           atomic.Bool
}

// lastRecord is the last dispatched record.
type lastRecord struct{ offset, storeTime int64 }

// Appended is the end of the log in memory; Durable what fsync covers; Confirmed what consumers may see; Dispatched what
// queues cover.
func (s *Store) Appended() *watermark.Watermark { return s.log.Appended() }

// Written is the end of what survives a kill of the process.
func (s *Store) Written() *watermark.Watermark { return s.log.Written() }

// Durable is the end of what survives a power cut.
func (s *Store) Durable() *watermark.Watermark { return s.log.Durable() }

// Confirmed is the end of what consumers may see. Whoever decides about acknowledgements advances it.
func (s *Store) Confirmed() *watermark.Watermark { return &s.confirmed }

// Dispatched is the end of what the queues cover.
func (s *Store) Dispatched() *watermark.Watermark { return &s.dispatched }

// Begin is the offset of the first byte that the log keeps.
func (s *Store) Begin() int64 { return s.log.Begin() }

// WriteFailed returns the reason why writes are latched off, or nil. The latch ends only by a reopen.
func (s *Store) WriteFailed() error {
	if err := s.log.WriteFailed(); err != nil {
		return err
	}
	if err := s.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// fail latches writes off: after a failed write or sync nobody knows what is on disk, until a reopen has looked.
func (s *Store) fail(op string, cause error) {
	err := fmt.Errorf("%w: %s failed: %w", ErrNotWritable, op, cause)
	if s.failed.CompareAndSwap(nil, &err) {
		s.logger.Error("store takes no more writes", slog.String("operation", op), slog.Any("error", cause))
	}
}

// RequestFlush asks for a flush soon (ASYNC_FLUSH callers that want one); SYNC_FLUSH flushes by itself on append.
func (s *Store) RequestFlush() { s.log.RequestFlush() }

// View borrows record bytes. Release exactly once; the bytes are invalid afterwards.
type View = commitlog.View

// QueueEntry is one consume-queue unit.
type QueueEntry = consumequeue.Unit

// Stats are figures for runtime info and metrics.
type Stats struct {
	MinOffset, AppendedOffset, DurableOffset, ConfirmedOffset, DispatchedOffset int64
	IndexedOffset                                                               int64
	CheckpointOffset                                                            int64 // a start after a kill reads the log from here
	EarliestStoreTime                                                           int64 // −1 without a record
	CommitLogDiskRatio, ConsumeQueueDiskRatio                                   float64
	CommitLogDir                                                                string
	Writable                                                                    bool
	NotWritableReason                                                           string
	Flushes, FlushedRecords, AppendedRecords, AppendedBytes                     uint64
}

// Stats returns current figures.
func (s *Store) Stats() Stats {
	log := s.log.Stats()
	st := Stats{
		MinOffset: s.log.Begin(), AppendedOffset: s.log.Appended().Load(), DurableOffset: s.log.Durable().Load(),
		ConfirmedOffset: s.confirmed.Load(), DispatchedOffset: s.dispatched.Load(), EarliestStoreTime: s.earliestStoreTime(),
		CommitLogDir: s.cfg.logConfig().Dir, Writable: true,
		Flushes: log.Flushes, FlushedRecords: log.Records, AppendedRecords: log.Records, AppendedBytes: s.appendedBytes.Load(),
	}
	if s.index != nil {
		st.IndexedOffset = s.index.Covered()
	}
	s.checkpointMu.Lock()
	st.CheckpointOffset = s.written.Dispatched
	if s.index != nil {
		st.CheckpointOffset = min(st.CheckpointOffset, s.written.Indexed)
	}
	s.checkpointMu.Unlock()
	if use := s.disk.Load(); use != nil {
		st.CommitLogDiskRatio, st.ConsumeQueueDiskRatio = use.log, use.queues
	}
	if err := errors.Join(s.log.WriteFailed(), s.refusal()); err != nil {
		st.Writable, st.NotWritableReason = false, err.Error()
	}
	return st
}

// QueueArrived is the watermark of one queue's max offset: a held pull waits on it. It closes when the queue is deleted.
// A queue that does not exist yet has one too, for as long as the store is open: the caller has checked the name.
func (s *Store) QueueArrived(topic string, queueID int32) *watermark.Watermark {
	return s.queues.Queue(topic, queueID).Arrived()
}

// QueueBounds returns min and max (exclusive) offset; 0, 0 for an unknown queue.
func (s *Store) QueueBounds(topic string, queueID int32) (minOffset, maxOffset int64) {
	if q := s.queues.Lookup(topic, queueID); q != nil {
		return q.Bounds()
	}
	return 0, 0
}

// Flush writes out and syncs everything appended so far, in the caller's goroutine.
func (s *Store) Flush(context.Context) error { return s.log.Flush() }
