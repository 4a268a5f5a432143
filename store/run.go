package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"github.com/quorate/quorate/store/checkpoint"
	"github.com/quorate/quorate/store/commitlog"
	"github.com/quorate/quorate/store/consumequeue"
)

// Run flushes, dispatches, indexes, checkpoints and cleans until ctx ends; it then takes no more appends, flushes what is
// appended, dispatches what is confirmed, and checkpoints. It returns early only when confirmed bytes cannot be read.
func (s *Store) Run(ctx context.Context) error {
	if s.ran.Swap(true) {
		return errors.New("store: Run is called once")
	}
	base := context.WithoutCancel(ctx)
	log := s.stage(base, s.log.Run)
	dispatch := s.stage(base, s.runDispatch)
	var keys *stage
	if s.index != nil {
		keys = s.stage(base, s.runIndex)
	}
	around := s.stage(base, s.runAround)
	signal(s.kick) // a first look: a start may have left much to write

	var err error
	select {
	case <-ctx.Done():
	case <-dispatch.done:
		err = dispatch.err
	}
	// Upstream first: each stage ends with everything that the one before has given it.
	err = errors.Join(err, log.stop())
	err = errors.Join(err, dispatch.stop())
	if err == nil {
		if last := s.dispatchAll(base); last != nil {
			s.logger.Warn("not everything confirmed is dispatched; the next start makes up for it", slog.Any("error", last))
		}
	}
	if keys != nil {
		_ = keys.stop() // logged and latched where it happened
	}
	_ = around.stop() // its parts have no errors
	return err
}

// stage is a part of Run with an end of its own.
type stage struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error
}

func (s *Store) stage(ctx context.Context, run func(context.Context) error) *stage {
	ctx, cancel := context.WithCancel(ctx)
	st := &stage{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(st.done)
		st.err = run(ctx)
	}()
	return st
}

func (st *stage) stop() error {
	st.cancel()
	<-st.done
	return st.err
}

// runIndex runs the index's worker. Without it queues go on, and the next start indexes what it missed.
func (s *Store) runIndex(ctx context.Context) error {
	err := s.index.Run(ctx)
	if err != nil && ctx.Err() == nil {
		s.indexOff.Store(true)
		s.fail("index", err)
	}
	return err
}

func (s *Store) runAround(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { s.runKeeper(ctx) })
	wg.Go(func() { s.runDiskCheck(ctx) })
	wg.Go(func() { s.runCleaner(ctx) })
	wg.Wait()
	return nil
}

// idleRounds is how often the keeper looks after the last dispatch: queues and index give their memory back meanwhile.
const idleRounds = 4

// runKeeper writes queue units to their files and takes checkpoints while something is dispatched. It sleeps otherwise.
func (s *Store) runKeeper(ctx context.Context) {
	for {
		select {
		case <-s.kick:
		case <-ctx.Done():
			return
		}
		last := time.Now()
		for idle := 0; idle < idleRounds; {
			timer := time.NewTimer(s.cfg.FlushQueueInterval)
			due := false
			select {
			case <-timer.C:
			case <-s.soon:
				due = true
			case <-ctx.Done():
				timer.Stop()
				return
			}
			timer.Stop()
			idle++
			if s.dispatched.Load() != s.checkpointed() || s.queues.Pending() > 0 {
				idle = 0
			}
			s.writeBack()
			if due || idle > 0 || time.Since(last) >= s.cfg.CheckpointInterval {
				last = time.Now()
				s.keep()
			}
		}
	}
}

func (s *Store) writeBack() {
	if err := s.queues.WriteBack(); err != nil {
		s.storageError("write consume queue", err)
	}
}

// keep takes a checkpoint and minds its errors.
func (s *Store) keep() {
	if s.WriteFailed() != nil {
		return // what is on disk is unknown: the last checkpoint stands
	}
	if err := s.takeCheckpoint(false); err != nil {
		s.storageError("checkpoint", err)
	}
}

// storageError tells a full disk, which heals by itself, from everything else, which is never tried again.
func (s *Store) storageError(op string, err error) {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		s.logger.Warn("no space; tried again", slog.String("operation", op), slog.Any("error", err))
	case errors.Is(err, commitlog.ErrWriteFailed), errors.Is(err, commitlog.ErrClosed):
		// Latched and logged there.
	default:
		s.fail(op, err)
	}
}

// checkpointed is where the last checkpoint stands.
func (s *Store) checkpointed() int64 { return s.checkpointOffset.Load() }

// Queue ends of many queues are written less often.
const (
	endsQueuesMax = 2000
	endsInterval  = time.Minute
)

// takeCheckpoint makes log, queues and index durable up to what is dispatched, and says so on disk: first the data, then
// the checkpoint. With all, the queue ends are written whatever they cost.
func (s *Store) takeCheckpoint(all bool) error {
	s.checkpointMu.Lock()
	defer s.checkpointMu.Unlock()
	return s.checkpointLocked(all)
}

func (s *Store) checkpointLocked(all bool) error {
	s.dispatchMu.Lock()
	dispatched, last := s.dispatched.Load(), s.last
	if s.log.Appended().Load() == s.log.Begin() {
		dispatched = 0 // an empty log may have no file by which a later start finds where it begins
	}
	ends, due := s.queueEnds(dispatched, all)
	s.dispatchMu.Unlock()

	if s.log.Durable().Load() < dispatched {
		if err := s.log.Flush(); err != nil {
			return err
		}
	}
	if err := s.queues.Sync(); err != nil {
		return err
	}
	c := s.written
	c.Dispatched, c.Durable, c.Boot = dispatched, s.log.Durable().Load(), s.cfg.Boot
	if s.raw.Load() {
		c.Durable = min(c.Durable, dispatched) // what is behind may end with a part of a record
	}
	if last.storeTime > 0 {
		c.PhysicTime, c.LogicsTime = last.storeTime, last.storeTime
		c.Confirm, c.LogicsOffset = last.offset, last.offset
	}
	c.Indexed = dispatched
	if s.index != nil {
		covered, newest, err := s.index.Sync()
		if err != nil {
			return err
		}
		c.Indexed = min(covered, dispatched)
		if newest > 0 {
			c.IndexTime = newest
		}
	}
	if c != s.written || all {
		if err := s.checkpoint.Write(c); err != nil {
			return err
		}
		s.written = c
		s.checkpointOffset.Store(dispatched)
	}
	if !due {
		return nil
	}
	if err := checkpoint.ReplaceOnly(s.fsys, s.cfg.path(queueEndsName), checkpoint.EncodeEnds(dispatched, ends)); err != nil {
		return fmt.Errorf("write queue ends: %w", err)
	}
	s.endsWritten, s.endsAt = dispatched, time.Now()
	return nil
}

// queueEnds collects how long the queues are, when that is due. dispatchMu is held: nothing is appended.
func (s *Store) queueEnds(dispatched int64, all bool) (ends []checkpoint.QueueEnd, due bool) {
	if !all && (dispatched == s.endsWritten || s.queues.Len() > endsQueuesMax && time.Since(s.endsAt) < endsInterval) {
		return nil, false
	}
	s.queues.Each(func(q *consumequeue.Queue) {
		if k := q.Known(); k.End > 0 {
			ends = append(ends, checkpoint.QueueEnd{Topic: q.Topic(), ID: q.ID(), First: k.First, Min: k.Min, End: k.End})
		}
	})
	return ends, true
}
