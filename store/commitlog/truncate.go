package commitlog

import (
	"errors"
	"fmt"
)

// cut removes everything from offset on, durably: files behind first, newest first, so that a crash leaves a shorter run.
func (l *Log) cut(offset int64) error {
	for {
		files := l.files.Segments()
		if len(files) == 0 || files[len(files)-1].Begin() <= offset {
			break
		}
		if err := l.files.RemoveLast(); err != nil {
			return err
		}
	}
	s := l.files.Find(offset)
	if s == nil {
		return nil
	}
	if _, dirty, err := l.look(offset, maxOffset); err != nil || !dirty {
		return err
	}
	return s.Cut(offset)
}

// syncFrom makes [from, to) durable: after a kill it may be in memory of the system only.
func (l *Log) syncFrom(from, to int64) error {
	for _, s := range l.files.Segments() {
		if s.End() <= from || s.Begin() >= to {
			continue
		}
		if err := s.Sync(); err != nil {
			return err
		}
	}
	return nil
}

// TruncateTo takes everything from offset on out of the log, for good: when it returns, no crash brings it back. offset
// must not be below Begin, and is a record boundary or the end of a file. Who waits on a watermark above it fails with
// ErrCut. Nobody may append meanwhile, and the owner of the queue counters sets them anew. It may be called while Run runs.
// A crash inside leaves the old log, or a shorter piece of it that still covers offset; calling it again is harmless.
func (l *Log) TruncateTo(offset int64) error {
	err := l.truncate(offset)
	if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrWriteFailed) {
		// What is on disk now is unknown; only a reopen may look.
		l.fail("truncate", err)
		err = fmt.Errorf("truncate commit log to %d: %w", offset, l.WriteFailed())
	}
	l.writer.wake() // for a Kick that found ioMu taken
	l.preparer.wake()
	return err
}

func (l *Log) truncate(offset int64) error {
	l.ioMu.Lock()
	defer l.ioMu.Unlock()
	l.writePending() // what stays must be in the files before the memory is forgotten
	if err := l.WriteFailed(); err != nil {
		return err
	}
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	l.prepareMu.Lock()
	defer l.prepareMu.Unlock()
	end := l.appended.Load()
	if offset < l.Begin() || offset > end {
		return fmt.Errorf("%w: truncate to %d, the log is %d to %d", ErrNotFound, offset, l.Begin(), end)
	}
	if offset == end {
		return nil
	}
	if err := l.cut(offset); err != nil {
		return err
	}
	if err := l.syncFrom(l.durable.Load(), offset); err != nil {
		return err
	}
	l.rewind(offset)
	l.continueAt(offset)
	return nil
}

func (l *Log) rewind(offset int64) {
	l.appended.Rewind(offset, ErrCut)
	l.written.Rewind(offset, ErrCut)
	l.durable.Rewind(offset, ErrCut)
}

// StartAt makes an empty log go on at offset, a multiple of the file size: a replica that begins where its master's log
// does. It may be called while Run runs; nobody may append meanwhile.
func (l *Log) StartAt(offset int64) error {
	if offset < 0 || offset%l.cfg.FileSize != 0 {
		return fmt.Errorf("commitlog: start at %d: no multiple of the file size", offset)
	}
	l.ioMu.Lock()
	defer l.ioMu.Unlock()
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	l.prepareMu.Lock()
	defer l.prepareMu.Unlock()
	if end := l.appended.Load(); end != l.Begin() {
		return fmt.Errorf("commitlog: start at %d: the log has bytes up to %d", offset, end)
	}
	for len(l.files.Segments()) > 0 {
		if err := l.files.RemoveLast(); err != nil {
			return fmt.Errorf("start commit log at %d: %w", offset, err)
		}
	}
	l.rewind(0)
	l.continueAt(offset)
	return nil
}

// continueAt sets all ends to offset, which they do not exceed. Nothing appends or writes.
func (l *Log) continueAt(offset int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ready {
		l.open, l.ready = true, true
	}
	l.next = offset
	l.zeroed.Store(offset)
	l.tail.reset(offset)
	l.appended.Advance(offset)
	l.written.Advance(offset)
	l.durable.Advance(offset)
}
