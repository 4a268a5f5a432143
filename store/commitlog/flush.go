package commitlog

import (
	"context"
	"errors"
	"time"

	"github.com/quorate/quorate/store/segment"
)

// runWriter writes out whatever was appended as soon as it is woken, and with SyncFlush syncs it: what was appended in
// the meantime is the next group. There is no timer.
func (l *Log) runWriter(ctx context.Context) {
	pending := func() bool { return l.WriteFailed() == nil && l.written.Load() < l.appended.Load() }
	for ctx.Err() == nil && l.writer.park(ctx, pending) {
		for pending() && ctx.Err() == nil {
			l.ioMu.Lock()
			l.writePending()
			if l.cfg.SyncFlush {
				l.syncWritten()
			}
			l.ioMu.Unlock()
			l.roomMade()
		}
	}
}

// writePending writes everything appended and moves Written. ioMu is held. Followers of Written run in here.
func (l *Log) writePending() {
	if l.WriteFailed() != nil {
		return
	}
	from, to := l.written.Load(), l.appended.Load()
	for at := from; at < to; {
		s := l.files.Find(at)
		if s == nil {
			l.fail("write", errors.New("no file for appended bytes"))
			return
		}
		p := l.tail.unwritten(at, min(to, s.End()))
		if err := s.WriteAt(p, at); err != nil {
			l.fail("write", err)
			return
		}
		at += int64(len(p))
	}
	if to > from {
		l.written.Advance(to)
		if l.waiting.Load() > 0 {
			l.roomMade()
		}
		if l.syncIdle.Load() || to-l.durable.Load() >= syncSoonBytes {
			l.syncer.wake()
		}
	}
}

// syncWritten makes durable what is written by now, and moves Durable. ioMu is held with SyncFlush, else syncMu.
func (l *Log) syncWritten() {
	if l.WriteFailed() != nil {
		return
	}
	from, to := l.durable.Load(), l.written.Load()
	if from >= to {
		return
	}
	for _, s := range l.files.Segments() {
		if s.End() <= from || s.Begin() >= to {
			continue
		}
		if err := s.Sync(); err != nil && !errors.Is(err, segment.ErrNotFound) {
			l.fail("fdatasync", err)
			return
		}
	}
	l.flushes.Add(1)
	l.durable.Advance(to)
	l.roomMade()
}

// runSyncer is the flush of ASYNC_FLUSH: a sync FlushInterval after something was written, earlier when asked for or when
// much is waiting. It sleeps while nothing is unsynced.
func (l *Log) runSyncer(ctx context.Context) {
	unsynced := func() bool { return l.WriteFailed() == nil && l.durable.Load() < l.written.Load() }
	soon := func() bool { return l.syncNow.Load() || l.written.Load()-l.durable.Load() >= syncSoonBytes }
	for {
		l.syncIdle.Store(true)
		woken := l.syncer.park(ctx, unsynced)
		l.syncIdle.Store(false) // from here on only soon is worth a wake
		if !woken {
			return
		}
		if !unsynced() {
			continue
		}
		interval, cancel := context.WithTimeout(ctx, l.cfg.FlushInterval)
		for !soon() && l.syncer.park(interval, soon) {
			continue // woken by more writes
		}
		cancel()
		if ctx.Err() != nil {
			return
		}
		l.syncNow.Store(false)
		l.syncMu.Lock()
		l.syncWritten()
		l.syncMu.Unlock()
	}
}

// RequestFlush asks for a sync soon, without waiting for the interval of ASYNC_FLUSH.
func (l *Log) RequestFlush() {
	l.syncNow.Store(true)
	l.writer.wake()
	l.syncer.wake()
}

// Flush writes out and syncs everything appended so far, in the caller's goroutine.
func (l *Log) Flush() error {
	l.flushAll()
	return l.WriteFailed()
}

func (l *Log) flushAll() {
	l.ioMu.Lock()
	l.writePending()
	if l.cfg.SyncFlush {
		l.syncWritten()
	}
	l.ioMu.Unlock()
	if !l.cfg.SyncFlush {
		l.syncMu.Lock()
		l.syncWritten()
		l.syncMu.Unlock()
	}
	l.writer.wake() // for a Kick that found ioMu taken
}

// runPreparer keeps files ready ahead of the end: made, of full length, and filled with zeros.
func (l *Log) runPreparer(ctx context.Context) {
	for ctx.Err() == nil {
		err := l.prepare(ctx)
		switch {
		case l.WriteFailed() != nil:
			<-ctx.Done() // nothing will be appended any more
		case err == nil:
			at := l.zeroed.Load() - l.cfg.ZeroAhead + l.cfg.step()
			l.prepareAt.Store(at)
			l.preparer.park(ctx, func() bool { return l.appended.Load() >= at })
			l.prepareAt.Store(maxOffset)
		case isDiskFull(err):
			if l.diskFull.Swap(&err) == nil {
				l.logger.Warn("no space ahead of the log; appends will be refused until there is", "error", err)
			}
			l.roomMade()
			sleep(ctx, diskFullRetry)
		default:
			l.fail("prepare file", err)
			<-ctx.Done()
		}
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

// prepare fills with zeros up to ZeroAhead in front of the end, step by step.
func (l *Log) prepare(ctx context.Context) error {
	for ctx.Err() == nil && l.WriteFailed() == nil {
		done, err := l.prepareStep()
		if done || err != nil {
			return err
		}
		if l.diskFull.Swap(nil) != nil {
			l.logger.Info("space ahead of the log again; appends go on")
		}
		l.roomMade()
	}
	return nil
}

func (l *Log) prepareStep() (done bool, err error) {
	l.prepareMu.Lock()
	defer l.prepareMu.Unlock()
	at := l.zeroed.Load()
	target := l.appended.Load() + l.cfg.ZeroAhead
	if at >= target {
		return true, nil
	}
	s := l.files.Find(at)
	if s == nil {
		if s, err = l.files.Grow(at); err != nil {
			return false, err
		}
	}
	to := min(at-at%segment.ZeroStep+segment.ZeroStep, s.End())
	if l.zeroFill {
		err = s.Zero(at, to)
	} else {
		err = s.Reserve(at, to)
	}
	if err != nil {
		return false, err
	}
	l.zeroed.Store(to)
	return false, nil
}
