package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/store/consumequeue"
)

// Read copies log bytes from offset on into p (commitlog.Log.Read): what a replica is sent.
func (s *Store) Read(p []byte, offset int64) (int, error) { return s.log.Read(p, offset) }

// AppendRaw appends bytes of another broker's log at offset, which must be the end of this one. They may cut records.
// Nothing is written out before Kick. It is how a replica follows. Before this store takes messages of its own, ReadyToAppend must be called.
func (s *Store) AppendRaw(p []byte, offset int64, allowed func() error) error {
	if err := s.refusal(); err != nil {
		return err
	}
	s.raw.Store(true)
	if err := s.log.AppendRaw(p, offset, allowed); err != nil {
		return appendError(err)
	}
	s.appendedBytes.Add(uint64(len(p)))
	return nil
}

// StartAt makes an empty log begin at offset, a multiple of the file size. Nobody may append meanwhile.
func (s *Store) StartAt(offset int64) error {
	s.dispatchMu.Lock()
	defer s.dispatchMu.Unlock()
	if err := s.log.StartAt(offset); err != nil {
		return err
	}
	s.rewind(0)
	s.dispatched.Advance(offset)
	s.confirmed.Advance(offset)
	return nil
}

// ReadyToAppend makes the next offsets of all queues follow what the log holds, dispatched or not. Nobody may append
// meanwhile.
func (s *Store) ReadyToAppend() error {
	s.dispatchMu.Lock()
	defer s.dispatchMu.Unlock()
	return s.recount()
}

// recount sets the counters from the queues and from the records that are not dispatched yet. dispatchMu is held.
func (s *Store) recount() error {
	s.counters.reset()
	s.queues.Each(func(q *consumequeue.Queue) {
		_, end := q.Bounds()
		s.counters.raise([]byte(q.Topic()), q.ID(), end)
	})
	buf := make([]byte, dispatchChunk)
	for at, end := s.dispatched.Load(), s.log.Appended().Load(); at < end; {
		n, err := s.log.Read(buf, at)
		if err != nil {
			return fmt.Errorf("read the undispatched part of the log: %w", err)
		}
		next, need, err := s.walk(buf[:n], at, func(r *message.Record) error {
			if indexed(r) {
				s.counters.raise(r.Topic, r.QueueID, r.QueueOffset+1)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if next == at {
			if need <= len(buf) {
				return nil // the last record is there only in part
			}
			buf = make([]byte, need)
		}
		at = next
	}
	return nil
}

// FileSize is mappedFileSizeCommitLog.
func (s *Store) FileSize() int64 { return s.log.FileSize() }

// TruncateTo takes everything from offset on out of log, queues, index and epoch history, for good: when it returns, no crash brings it
// back. offset is a record boundary or the end of a file, and not below Begin. Who waits for what is cut fails with
// commitlog.ErrCut or consumequeue.ErrCut. Nobody may append meanwhile, and whoever moves Confirmed must stand still.
func (s *Store) TruncateTo(offset int64) error {
	s.checkpointMu.Lock()
	defer s.checkpointMu.Unlock()
	s.dispatchMu.Lock()
	defer s.dispatchMu.Unlock()
	s.rewind(offset)
	if err := s.lowerCheckpoint(offset); err != nil {
		s.fail("truncate", err)
		return err
	}
	if err := s.log.TruncateTo(offset); err != nil {
		return err
	}
	if err := s.truncateDerived(offset); err != nil {
		s.fail("truncate", err)
		return err
	}
	if err := s.epochs.TruncateTo(max(offset, 1)); err != nil {
		s.fail("truncate", err)
		return err
	}
	s.earliest.Store(nil)
	return s.recount()
}

// lowerCheckpoint makes the checkpoint cover nothing that is going to be cut, and forgets the queue ends, before a byte
// goes: a crash from here on recovers from what is left, and drops queue units behind it.
func (s *Store) lowerCheckpoint(offset int64) error {
	err := s.fsys.Remove(s.cfg.path(queueEndsName))
	if err == nil {
		err = s.fsys.SyncDir(path.Clean(s.cfg.RootDir))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget queue ends: %w", err)
	}
	s.endsWritten = -1
	c := s.written
	c.Dispatched, c.Durable, c.Indexed = min(c.Dispatched, offset), min(c.Durable, offset), min(c.Indexed, offset)
	if c == s.written {
		return nil
	}
	if err := s.checkpoint.Write(c); err != nil {
		return err
	}
	s.written = c
	s.checkpointOffset.Store(c.Dispatched)
	return nil
}

func (s *Store) truncateDerived(offset int64) error {
	if err := s.queues.CutAbove(offset); err != nil {
		return err
	}
	if s.index == nil {
		return nil
	}
	if err := s.index.Apply(); err != nil {
		return err
	}
	return s.index.CutAbove(offset)
}
