package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/store/commitlog"
	"github.com/quorate/quorate/store/consumequeue"
	"github.com/quorate/quorate/store/index"
)

// Bounds of dispatch.
const (
	dispatchChunk = 256 << 10 // of the log, read and dispatched at once
	// complaintsMax bounds the log lines about records that fit no queue.
	complaintsMax = 20
	dispatchRetry = time.Second
)

// scheduleTopic is where delayed messages wait (TopicValidator.RMQ_SYS_SCHEDULE_TOPIC).
const scheduleTopic = "SCHEDULE_TOPIC_XXXX"

// indexed tells whether a record has a place in a queue: half messages and rolled back ones have none.
func indexed(r *message.Record) bool {
	t := r.SysFlag.Transaction()
	return t != message.TransactionPreparedFlag && t != message.TransactionRollback
}

// dispatch adds one record to its queue, if that is asked for, and its keys to the batch. It may be repeated.
func (s *Store) dispatch(r *message.Record, toQueue bool) error {
	names := index.NamesOf(r.Properties)
	if toQueue && indexed(r) {
		if err := s.dispatchUnit(r, names); err != nil {
			return err
		}
	}
	if s.index != nil {
		s.batch.AddNamed(r, names)
	}
	s.last = lastRecord{r.PhysicalOffset, r.StoreTimestamp}
	return nil
}

func (s *Store) dispatchUnit(r *message.Record, names index.Names) error {
	if !validTopic(r.Topic) {
		s.complain(r, "topic cannot name a directory")
		return nil
	}
	outcome, err := s.queues.Append(r.Topic, r.QueueID, r.QueueOffset, consumequeue.Unit{
		PhysicalOffset: r.PhysicalOffset, Size: r.Size, TagsCode: s.tagsCode(r, names),
	})
	if err != nil {
		return err
	}
	switch outcome {
	case consumequeue.Added, consumequeue.Repeated:
	case consumequeue.AfterGap:
		s.complain(r, "queue offsets before it are missing")
	case consumequeue.Restarted:
		s.complain(r, "queue begins anew")
	case consumequeue.OutOfOrder:
		s.complain(r, "queue offset belongs to another record, or is far ahead")
	}
	return nil
}

func validTopic(topic []byte) bool {
	if len(topic) == 0 || len(topic) > nameBytesMax || string(topic) == "." || string(topic) == ".." {
		return false
	}
	for _, c := range topic {
		if c == '/' || c == 0 {
			return false
		}
	}
	return true
}

func (s *Store) complain(r *message.Record, what string) {
	if s.complaints.Add(1) > complaintsMax {
		return
	}
	_, end := s.QueueBounds(string(r.Topic), r.QueueID)
	s.logger.Warn("record does not continue its queue", slog.String("what", what), slog.String("topic", string(r.Topic)),
		slog.Int("queue", int(r.QueueID)), slog.Int64("queue_offset", r.QueueOffset), slog.Int64("queue_end", end),
		slog.Int64("offset", r.PhysicalOffset))
}

// tagsCode is what the queue unit says about the tags: their hash, or the delivery time of a delayed message.
func (s *Store) tagsCode(r *message.Record, names index.Names) int64 {
	if len(names.Delay) > 0 && len(s.cfg.DelayLevels) > 0 && string(r.Topic) == scheduleTopic {
		if level, err := strconv.Atoi(string(names.Delay)); err == nil && level > 0 {
			level = min(level, len(s.cfg.DelayLevels))
			return r.StoreTimestamp + s.cfg.DelayLevels[level-1].Milliseconds()
		}
	}
	if len(names.Tags) > 0 {
		return int64(message.JavaHash(names.Tags))
	}
	return 0
}

func (s *Store) dispatchRecord(r *message.Record) error { return s.dispatch(r, true) }

// runDispatch follows Confirmed until ctx ends.
func (s *Store) runDispatch(ctx context.Context) error {
	standing := false
	uncut, done := s.untilCut(ctx)
	defer func() { done() }()
	for seen := int64(0); ; {
		// A replica's confirmed end may lie within a record, whose rest is waited for.
		err := s.confirmed.Wait(uncut, max(s.dispatched.Load(), seen)+1)
		if ctx.Err() != nil || errors.Is(err, commitlog.ErrClosed) {
			return nil
		}
		if err != nil || uncut.Err() != nil { // the log was cut; what comes in its place is waited for
			done()
			uncut, done = s.untilCut(ctx) //nolint:fatcontext // made from ctx anew, not from the one before
			seen = 0
			continue
		}
		limit := s.confirmed.Load()
		err = s.dispatchAll(ctx)
		switch {
		case err == nil:
			standing, seen = false, limit
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errUnreadable):
			return err
		default:
			if !standing {
				s.logger.Warn("dispatch stands still; it is tried again", slog.Any("error", err))
				standing = true
			}
			sleep(ctx, dispatchRetry)
		}
	}
}

// untilCut is ctx, which also ends when the log is cut: offsets known before mean nothing then.
func (s *Store) untilCut(ctx context.Context) (context.Context, context.CancelFunc) {
	s.dispatchMu.Lock()
	defer s.dispatchMu.Unlock()
	uncut, cancel := context.WithCancel(ctx)
	s.recut = cancel
	return uncut, cancel
}

// rewind takes Confirmed and Dispatched back to offset. dispatchMu is held.
func (s *Store) rewind(offset int64) {
	s.dispatched.Rewind(offset, commitlog.ErrCut)
	s.confirmed.Rewind(offset, commitlog.ErrCut)
	s.last = lastRecord{}
	if s.recut != nil {
		s.recut()
	}
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// errUnreadable: confirmed bytes are no records. Nothing behind them can be dispatched.
var errUnreadable = errors.New("confirmed bytes of the log are no record")

// dispatchAll dispatches what is confirmed, piece by piece, up to a record that is confirmed in part only.
func (s *Store) dispatchAll(ctx context.Context) error {
	for {
		moved, err := s.dispatchPiece(ctx)
		if err != nil || !moved {
			return err
		}
	}
}

// dispatchPiece dispatches the records in one read of the log, and lets those who wait see them together.
func (s *Store) dispatchPiece(ctx context.Context) (moved bool, err error) {
	s.dispatchMu.Lock()
	defer s.dispatchMu.Unlock()
	at, limit := s.dispatched.Load(), s.confirmed.Load()
	if at >= limit {
		return false, nil
	}
	next, err := s.dispatchFrom(ctx, at, limit)
	return next > at, err
}

func (s *Store) dispatchFrom(ctx context.Context, at, limit int64) (next int64, err error) {
	n, err := s.log.Read(s.buf[:min(int64(len(s.buf)), limit-at)], at)
	if err != nil {
		return at, err
	}
	next, need, err := s.dispatchBytes(s.buf[:n], at)
	if next > at {
		s.queues.Announce()
		s.dispatched.Advance(next)
		s.submit(ctx, next)
		signal(s.kick)
		if next-s.checkpointed() >= s.cfg.CheckpointBytes {
			signal(s.soon)
		}
	}
	if err == nil && next == at && need > len(s.buf) {
		s.buf = make([]byte, need) // a record larger than a piece; bounded by what an append takes
		return s.dispatchLarge(ctx, at, limit, need)
	}
	if err == nil && len(s.buf) > dispatchChunk && next > at {
		s.buf = make([]byte, dispatchChunk)
	}
	return next, err
}

func (s *Store) dispatchLarge(ctx context.Context, at, limit int64, need int) (next int64, err error) {
	if limit-at < int64(need) {
		return at, nil
	}
	n, err := s.log.Read(s.buf[:need], at)
	if err != nil {
		return at, err
	}
	next, _, err = s.dispatchBytes(s.buf[:n], at)
	if next > at {
		s.queues.Announce()
		s.dispatched.Advance(next)
		s.submit(ctx, next)
		signal(s.kick)
	}
	return next, err
}

// dispatchBytes dispatches the whole records in b, which was read at offset at.
func (s *Store) dispatchBytes(b []byte, at int64) (next int64, need int, err error) {
	return s.walk(b, at, s.dispatchOne)
}

// walk calls each for the whole records in b, which was read at offset at. need is the size of the record that b holds only
// in part.
func (s *Store) walk(b []byte, at int64, each func(r *message.Record) error) (next int64, need int, err error) {
	var r message.Record
	for len(b) >= message.BlankSize {
		size, magic := message.RecordHead(b)
		if magic == message.MagicBlank {
			end := at/s.cfg.CommitLogFileSize*s.cfg.CommitLogFileSize + s.cfg.CommitLogFileSize
			if end > s.log.Appended().Load() {
				return at, 0, nil // a replica has not all of the filler yet
			}
			return end, 0, nil
		}
		if !message.IsRecordMagic(magic) || size < message.RecordSizeMin || int64(size) > s.cfg.CommitLogFileSize {
			return at, 0, fmt.Errorf("%w: offset %d, size %d, magic %08x", errUnreadable, at, size, magic)
		}
		if int(size) > len(b) {
			return at, int(size), nil
		}
		if r, err = message.DecodeRecord(b[:size], false); err != nil {
			return at, 0, fmt.Errorf("%w: offset %d: %w", errUnreadable, at, err)
		}
		if err := each(&r); err != nil {
			return at, 0, err
		}
		at, b = at+int64(size), b[size:]
	}
	return at, 0, nil
}

// submit hands the collected keys to the index.
func (s *Store) submit(ctx context.Context, end int64) {
	if s.index == nil {
		return
	}
	s.batch.Cover(end)
	if s.indexOff.Load() {
		s.batch.Drop()
		return
	}
	// When ctx ends first, the batch keeps its keys for the last round.
	_ = s.index.Submit(ctx, &s.batch)
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
