package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"path"
	"time"

	"github.com/quorate/quorate/internal/vfs"
	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/store/checkpoint"
	"github.com/quorate/quorate/store/commitlog"
	"github.com/quorate/quorate/store/consumequeue"
	"github.com/quorate/quorate/store/index"
	"github.com/quorate/quorate/store/segment"
)

// Names under the root. queueEndsName is ours; RocketMQ does not look at it.
const (
	lockName       = "lock"
	abortName      = "abort"
	checkpointName = "checkpoint"
	queueEndsName  = "quorate-queue-ends"
	configDir      = "config"
)

// Open takes the files under cfg.RootDir, locks them and recovers. Its time grows with what a checkpoint does not cover,
// not with the size of the log. It starts no goroutine that outlives it.
func Open(cfg Config, logger *slog.Logger) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Store{
		cfg: cfg, logger: logger.With(slog.String("component", "store")), fsys: cfg.FS,
		kick: make(chan struct{}, 1), soon: make(chan struct{}, 1), manual: make(chan struct{}, 1),
		buf: make([]byte, dispatchChunk),
	}
	s.batch.WithTags = cfg.IndexTags
	s.dispatchOne = s.dispatchRecord
	if s.fsys == nil {
		s.fsys = vfs.OS()
	}
	if err := s.open(cfg.FS == nil); err != nil {
		return nil, errors.Join(err, s.closeFiles())
	}
	return s, nil
}

func (s *Store) open(lock bool) error {
	begun := time.Now()
	if err := s.makeRoot(); err != nil {
		return fmt.Errorf("make store directory: %w", err)
	}
	if lock {
		l, err := checkpoint.Acquire(s.cfg.path(lockName))
		if errors.Is(err, checkpoint.ErrLocked) {
			return errors.Join(ErrStoreLocked, err)
		}
		if err != nil {
			return err
		}
		s.lock = l
	}
	aborted, err := checkpoint.Aborted(s.fsys, s.cfg.path(abortName))
	if err != nil {
		return fmt.Errorf("look for abort marker: %w", err)
	}
	if err := checkpoint.SetAborted(s.fsys, s.cfg.path(abortName)); err != nil {
		return err
	}
	r := recovery{s: s, aborted: aborted}
	if err := r.run(); err != nil {
		if errors.Is(err, commitlog.ErrCorrupt) {
			err = errors.Join(ErrCorrupt, err)
			if !aborted {
				// Nothing was cut or appended. With the marker left, the next start would take the damage for a tail that a
				// power loss tore, and cut.
				err = errors.Join(err, checkpoint.ClearAborted(s.fsys, s.cfg.path(abortName)))
			}
		}
		return fmt.Errorf("recover store %s: %w", s.cfg.RootDir, err)
	}
	if err := s.openEpochs(); err != nil {
		return err
	}
	if behind := max(r.saved.PhysicTime, r.found.LastStoreTimestamp) - s.cfg.Now().UnixMilli(); behind > 0 {
		s.clockBehind = true
		s.logger.Warn("the clock is behind the last message in the log: new messages get the time of the last one of their queue",
			slog.Duration("behind", time.Duration(behind)*time.Millisecond))
	}
	s.checkDisk()
	s.logger.Info("store opened", slog.String("root", s.cfg.RootDir), slog.Bool("clean_stop", !aborted),
		slog.Int64("begin", s.log.Begin()), slog.Int64("end", s.log.Appended().Load()),
		slog.Int64("scanned_bytes", r.found.End-r.found.From), slog.Int64("records", r.found.Records),
		slog.Duration("took", time.Since(begun)))
	return nil
}

func (s *Store) makeRoot() error {
	if err := s.fsys.MkdirAll(s.cfg.RootDir); err != nil {
		return err
	}
	return s.fsys.SyncDir(path.Dir(s.cfg.RootDir))
}

// recovery is one start: what the checkpoint says, what the files hold, what has to be dispatched again.
type recovery struct {
	s       *Store
	aborted bool

	saved  checkpoint.Checkpoint
	source checkpoint.Source
	begin  int64 // of the log
	files  int64 // end of the log's files
	from   int64 // the scan begins here
	queues int64 // records from here on are dispatched to queues: what lies before they hold, or had deleted
	held   int64 // records that end above are not dispatched
	found  commitlog.Recovered
}

func (r *recovery) run() error {
	s := r.s
	file, saved, source, err := checkpoint.Open(s.fsys, s.cfg.path(checkpointName))
	if err != nil {
		return err
	}
	s.checkpoint, r.saved, r.source = file, saved, source
	if source == checkpoint.Ours {
		s.written = saved
		s.checkpointOffset.Store(saved.Dispatched)
	}
	if s.log, err = commitlog.Open(s.cfg.logConfig(), s.fsys, s.logger); err != nil {
		return err
	}
	if err := r.logBounds(); err != nil {
		return err
	}
	trusted, err := r.plan()
	if err != nil {
		return err
	}
	if err := r.openQueues(trusted); err != nil {
		return err
	}
	if err := r.openIndex(); err != nil {
		return err
	}
	if err := r.scan(); err != nil {
		return err
	}
	return r.finish()
}

// logBounds finds the ends of the log's files; the Log itself tells only after its recovery.
func (r *recovery) logBounds() error {
	dir := r.s.cfg.logConfig().Dir
	entries, err := r.s.fsys.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("list commit log: %w", err)
	}
	first := true
	for _, e := range entries {
		at, ok := segment.ParseName(e.Name)
		if !ok || e.Dir {
			continue
		}
		if first {
			r.begin, first = at, false
		}
		r.files = at + r.s.cfg.CommitLogFileSize
	}
	return nil
}

// plan decides from where on the log is scanned, and up to which offset units of the queues are believed.
func (r *recovery) plan() (trusted int64, err error) {
	switch {
	case r.source == checkpoint.Ours:
		r.from, trusted = max(r.saved.Dispatched, r.begin), consumequeue.TrustAll
		if r.aborted {
			trusted = r.saved.Dispatched
		}
	case !r.aborted:
		// RocketMQ stopped cleanly, or nothing is known: what the queues hold is whole; openQueues sets from.
		r.from, trusted = math.MaxInt64, consumequeue.TrustAll
	default:
		// RocketMQ was killed: its checkpoint knows times.
		if r.source == checkpoint.Damaged {
			r.s.logger.Warn("checkpoint is damaged; queues and index are built anew from the whole log")
		}
		if r.from, err = r.fileByTime(min(r.saved.PhysicTime, r.saved.LogicsTime) - javaSlackMillis); err != nil {
			return 0, err
		}
		trusted = r.from
	}
	if r.from != math.MaxInt64 && r.from > r.files {
		return 0, &commitlog.CorruptError{Offset: r.from, Reason: fmt.Sprintf(
			"the checkpoint covers the log up to there, its files end at %d", r.files)}
	}
	return trusted, nil
}

// javaSlackMillis is what StoreCheckpoint.getMinTimestamp takes off.
const javaSlackMillis = 3000

// fileByTime is the begin of the last file whose first record was stored at or before ms, or of the first file.
func (r *recovery) fileByTime(ms int64) (int64, error) {
	size := r.s.cfg.CommitLogFileSize
	for at := r.files - size; at > r.begin; at -= size {
		stored, ok, err := r.firstStoreTime(at)
		if err != nil {
			return 0, err
		}
		if ok && stored <= ms {
			return at, nil
		}
	}
	return r.begin, nil
}

func (r *recovery) firstStoreTime(begin int64) (ms int64, ok bool, err error) {
	f, err := r.s.fsys.Open(path.Join(r.s.cfg.logConfig().Dir, segment.Name(begin)))
	if err != nil {
		return 0, false, fmt.Errorf("look at commit log file: %w", err)
	}
	var head [headBytesTime]byte
	n, err := f.ReadAt(head[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, false, errors.Join(fmt.Errorf("look at commit log file: %w", err), f.Close())
	}
	ms, ok = storeTimeOf(head[:n])
	return ms, ok, f.Close()
}

// back moves the beginning of the scan back. Offsets that come from queues or index are not proven to begin a record, a
// file's beginning does.
func (r *recovery) back(offset int64) {
	if offset < r.from {
		size := r.s.cfg.CommitLogFileSize
		r.from = max(offset/size*size, r.begin)
	}
}

func (r *recovery) openQueues(trusted int64) error {
	s := r.s
	bounds := consumequeue.Bounds{LogMin: r.begin, Trusted: trusted}
	if r.source == checkpoint.Ours {
		bounds.Known, bounds.Complete = r.queueEnds()
	}
	table, damages, err := consumequeue.Open(s.cfg.queueConfig(s.fsys), bounds, s.logger)
	if err != nil {
		return err
	}
	s.queues = table
	newest, some := int64(0), false
	table.Each(func(q *consumequeue.Queue) {
		newest = max(newest, q.MaxPhysical())
		some = some || q.Exists()
	})
	none := bounds.Known != nil && len(bounds.Known) == 0 // there were none: their topics had been deleted
	if !some && !none && r.begin < r.files {
		r.back(r.begin)
	} else if r.source != checkpoint.Ours {
		if newest > r.files {
			s.logger.Warn("queues know more than the log has; they are cut to its end", slog.Int64("queues_end", newest), slog.Int64("files_end", r.files))
		}
		r.back(max(min(newest, r.files-1), r.begin))
	}
	if r.from == math.MaxInt64 { // an empty log
		r.from = r.begin
	}
	for _, d := range damages {
		s.logger.Warn("consume queue is built anew from the log", slog.String("topic", d.Topic), slog.Int("queue", int(d.ID)),
			slog.String("reason", d.Reason), slog.Int64("from", d.From))
		r.back(d.From)
	}
	r.queues = r.from
	return nil
}

// queueEnds reads what the queues were like. Without the file nothing is known. It is complete after a clean stop.
func (r *recovery) queueEnds() (known map[consumequeue.Key]consumequeue.Known, complete bool) {
	content, err := vfs.ReadFile(r.s.fsys, r.s.cfg.path(queueEndsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false
	}
	var dispatched int64
	var ends []checkpoint.QueueEnd
	if err == nil {
		dispatched, ends, err = checkpoint.DecodeEnds(content)
	}
	if err != nil {
		r.s.logger.Warn("queue ends cannot be read; missing queue files may go unnoticed", slog.Any("error", err))
		return nil, false
	}
	if dispatched > r.saved.Dispatched {
		return nil, false
	}
	known = make(map[consumequeue.Key]consumequeue.Known, len(ends))
	for _, e := range ends {
		known[consumequeue.Key{Topic: e.Topic, ID: e.ID}] = consumequeue.Known{First: e.First, Min: e.Min, End: e.End}
	}
	return known, !r.aborted && dispatched == r.saved.Dispatched
}

func (r *recovery) openIndex() error {
	s := r.s
	if !s.cfg.IndexEnable {
		return nil
	}
	x, err := index.Open(s.cfg.indexConfig(s.fsys), index.Bounds{
		LogBegin: r.begin, LogEnd: max(r.files, 0), Clean: !r.aborted, Foreign: r.source != checkpoint.Ours,
	}, s.logger)
	if err != nil {
		return err
	}
	s.index = x
	switch {
	case r.source != checkpoint.Ours:
		r.back(x.Resume())
	case x.Newest() < r.saved.IndexTime:
		s.logger.Warn("index lost files; it is built anew from the log", slog.Int64("from", x.Resume()))
		r.back(x.Resume())
	default:
		r.from = min(r.from, max(r.saved.Indexed, r.begin))
	}
	return nil
}

// scan walks the log and dispatches what is not known to be in queues and index.
func (r *recovery) scan() error {
	s := r.s
	r.held = math.MaxInt64
	if s.cfg.HoldConfirmed && r.source == checkpoint.Ours {
		r.held = max(r.saved.Dispatched, r.saved.Confirm)
	}
	s.queues.Each(func(q *consumequeue.Queue) {
		_, end := q.Bounds()
		s.counters.raise([]byte(q.Topic()), q.ID(), end)
	})
	sameBoot := r.source == checkpoint.Ours && s.cfg.Boot != 0 && r.saved.Boot == s.cfg.Boot
	progress := time.Now()
	found, err := s.log.Recover(commitlog.Recovery{
		From: r.from, Durable: min(r.saved.Durable, r.files), PowerLoss: r.aborted && !sameBoot, CheckCRC: s.cfg.CheckCRC,
	}, func(offset int64, record *message.Record) error {
		if time.Since(progress) > progressEvery {
			progress = time.Now()
			s.logger.Info("recovering", slog.Int64("offset", offset), slog.Int64("files_end", r.files))
		}
		return r.take(record)
	})
	r.found = found
	if err != nil {
		return err
	}
	return r.submit()
}

const progressEvery = 3 * time.Second

func (r *recovery) take(record *message.Record) error {
	s := r.s
	if indexed(record) && record.PhysicalOffset >= r.queues { // of those before, the queues know, or they are deleted
		s.counters.raise(record.Topic, record.QueueID, record.QueueOffset+1)
	}
	if record.PhysicalOffset+int64(record.Size) > r.held {
		return nil
	}
	if err := s.dispatch(record, record.PhysicalOffset >= r.queues); err != nil {
		return err
	}
	if s.batch.Len() >= submitKeys {
		return r.submit()
	}
	return nil
}

// submitKeys is how many keys a start hands to the index at once.
const submitKeys = 4096

func (r *recovery) submit() error {
	if r.s.index == nil {
		return nil
	}
	if err := r.s.index.Submit(context.Background(), &r.s.batch); err != nil {
		return err
	}
	return r.s.index.Apply()
}

// finish makes queues, index and watermarks end where the log ends.
func (r *recovery) finish() error {
	s := r.s
	end := r.found.End
	if err := s.queues.CutAbove(end); err != nil {
		return err
	}
	confirmed := min(end, max(r.held, s.log.Begin()))
	if s.index != nil {
		if err := s.index.CutAbove(end); err != nil {
			return err
		}
		s.batch.Cover(confirmed)
		if err := r.submit(); err != nil {
			return err
		}
	}
	s.queues.Announce()
	s.dispatched.Advance(confirmed)
	s.confirmed.Advance(confirmed)
	return nil
}

// closeFiles gives back whatever is open.
func (s *Store) closeFiles() error {
	var errs []error
	if s.index != nil {
		errs = append(errs, s.index.Close())
	}
	if s.queues != nil {
		errs = append(errs, s.queues.Close())
	}
	if s.log != nil {
		errs = append(errs, s.log.Close())
	}
	if s.checkpoint != nil {
		errs = append(errs, s.checkpoint.Close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Release())
	}
	return errors.Join(errs...)
}

// Close gives the files back. After a clean Run, or without one, it first checkpoints, and removes the abort marker: the
// next start has nothing to recover.
func (s *Store) Close() error {
	err := s.WriteFailed()
	if err == nil {
		err = s.takeCheckpoint(true)
	}
	if err == nil {
		err = checkpoint.ClearAborted(s.fsys, s.cfg.path(abortName))
	}
	if err != nil {
		s.logger.Warn("store closes without a checkpoint; the next start recovers", slog.Any("error", err))
	}
	s.confirmed.Close(commitlog.ErrClosed)
	s.dispatched.Close(commitlog.ErrClosed)
	return s.closeFiles()
}
