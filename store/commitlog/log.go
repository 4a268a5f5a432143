// Package commitlog is the one log of a broker: RocketMQ's CommitLog files, appended to under one lock, written out and
// flushed in groups, read from memory or by positioned reads, recovered after a crash. It moves three watermarks, Appended
// (in memory), Written (survives the process) and Durable (survives the machine), and knows nothing of queues, consumers
// or replicas: who may append, and which queue offset a record gets, is handed in.
package commitlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/quorate/quorate/internal/vfs"
	"github.com/quorate/quorate/internal/watermark"
	"github.com/quorate/quorate/store/segment"
)

// Errors of a Log. Match with errors.Is.
var (
	ErrTooLarge    = errors.New("commitlog: record too large")     // above maxMessageSize, or above a whole file
	ErrWriteFailed = errors.New("commitlog: write failed earlier") // latched: ends only by a reopen; wraps the cause
	ErrDiskFull    = errors.New("commitlog: disk full")            // refused before a byte was taken; ends by itself
	ErrBusy        = errors.New("commitlog: busy")                 // no room within AppendWaitMax
	ErrClosed      = errors.New("commitlog: closed")               // not recovered, or shut down
	ErrNotFound    = errors.New("commitlog: offset not in log")    // below the first file, at or above the end, or no record starts there
	ErrCorrupt     = errors.New("commitlog: corrupt")              // see CorruptError
	ErrCut         = errors.New("commitlog: cut")                  // what a waiter waited for was taken away by TruncateTo
	ErrNotNext     = errors.New("commitlog: not the next offset")  // AppendRaw elsewhere than at the end
)

// Bounds that are not configuration.
const (
	// recordOverheadMax is what a record may need beside its body: properties, topic, hosts (RocketMQ allows 64 KiB).
	recordOverheadMax = 64 << 10
	// UnsyncedBytesMax is how far the log may run ahead of the disk. Appends wait at it. Recovery relies on it: valid
	// records farther behind a bad one than this cannot be what a power cut left.
	UnsyncedBytesMax = 256 << 20
	// syncSoonBytes: with so much not yet synced, an asynchronous flush does not wait for its interval.
	syncSoonBytes = 64 << 20
	// AppendWaitMax is how long an append waits for room in memory or on disk (RocketMQ osPageCacheBusyTimeOutMills).
	AppendWaitMax = time.Second
	// diskFullRetry is how often a full disk is tried again.
	diskFullRetry = time.Second
)

// Config of a Log; leaf fields carry RocketMQ's key.
type Config struct {
	Dir            string        `conf:"storePathCommitLog"`
	FileSize       int64         `conf:"mappedFileSizeCommitLog"`
	MaxMessageSize int           `conf:"maxMessageSize"`         // of a body, and of all records of a batch
	FlushInterval  time.Duration `conf:"flushIntervalCommitLog"` // ASYNC_FLUSH only
	SyncFlush      bool          // flushDiskType=SYNC_FLUSH
	// TailBytes is how much of the newest log stays in memory. It is raised to what the largest record needs.
	TailBytes int64
	// ZeroAhead is how far the files are prepared ahead of the end, in steps of segment.ZeroStep, so that a full disk is met
	// before a message needs it. With SyncFlush they are filled with zeros: then a sync has no block to account for, and
	// costs 1.4 to 2.2 times less. Without, space is reserved: nobody waits for the sync, and zeros would be written twice.
	ZeroAhead int64
	Now       func() time.Time
}

// DefaultConfig is RocketMQ's where it has the key. Dir is left to the caller.
func DefaultConfig() Config {
	return Config{
		FileSize: 1 << 30, MaxMessageSize: 4 << 20, FlushInterval: 500 * time.Millisecond,
		TailBytes: 16 << 20, ZeroAhead: 16 << 20, Now: time.Now,
	}
}

// Validate checks each field and their relations.
func (c Config) Validate() error {
	switch {
	case c.Dir == "":
		return errors.New("storePathCommitLog is empty")
	case c.FileSize < 4096:
		return fmt.Errorf("mappedFileSizeCommitLog=%d: at least 4096", c.FileSize)
	case c.MaxMessageSize < 1 || c.MaxMessageSize > math.MaxInt32-recordOverheadMax:
		return fmt.Errorf("maxMessageSize=%d: 1 to %d", c.MaxMessageSize, math.MaxInt32-recordOverheadMax)
	case c.FlushInterval <= 0:
		return fmt.Errorf("flushIntervalCommitLog=%s: above 0", c.FlushInterval)
	case c.TailBytes < 0 || c.ZeroAhead < 0:
		return errors.New("TailBytes and ZeroAhead must not be negative")
	case c.Now == nil:
		return errors.New("no clock")
	}
	return nil
}

// unitMax is the most that one append can take: a record or batch, at most a whole file with its filler.
func (c Config) unitMax() int64 {
	return min(int64(c.MaxMessageSize)+recordOverheadMax, c.FileSize)
}

// step is how much is prepared at once.
func (c Config) step() int64 { return min(segment.ZeroStep, c.FileSize) }

// Log is safe for concurrent use, except that Recover, StartAt and TruncateTo say more.
//
// Locks, in the order in which they may be taken together: ioMu, syncMu, prepareMu, mu.
type Log struct {
	cfg    Config
	logger *slog.Logger
	fsys   vfs.FS
	files  *segment.Queue
	tail   *tail

	appended, written, durable watermark.Watermark

	mu   sync.Mutex // the append lock: offsets, bytes and authority are decided under it
	next int64      // end of the log: what the next append gets
	open bool       // appends are taken: recovered and not shutting down. Without Run they find no room
	room *sync.Cond // on mu: room in memory or on disk was made, or there will be none

	ready    bool         // recovered
	waiting  atomic.Int64 // appends that wait for room
	zeroed   atomic.Int64 // the files are zero-filled up to here; appends stay below
	diskFull atomic.Pointer[error]
	failed   atomic.Pointer[error]

	ioMu      sync.Mutex // one at a time writes out (and, with SyncFlush, syncs)
	syncMu    sync.Mutex // one at a time syncs without SyncFlush
	prepareMu sync.Mutex // one step of preparing

	writer, syncer, preparer parker
	prepareAt                atomic.Int64 // an end of log at or above this wakes the preparer

	zeroFill bool // prepare by writing zeros, not only by taking space

	crossing          []byte      // scratch under mu: a record that crosses blocks of the tail
	syncNow, syncIdle atomic.Bool // RequestFlush was called; the syncer waits for something to do

	flushes, records atomic.Uint64
}

const maxOffset = math.MaxInt64

// Open opens the files. It starts no goroutine; nothing can be read or appended before Recover.
func Open(cfg Config, fsys vfs.FS, logger *slog.Logger) (*Log, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("commitlog: %w", err)
	}
	logger = logger.With(slog.String("component", "commitlog"))
	files, err := segment.OpenQueue(fsys, cfg.Dir, cfg.FileSize, logger)
	if err != nil {
		if errors.Is(err, segment.ErrLayout) {
			err = errors.Join(ErrCorrupt, err)
		}
		return nil, fmt.Errorf("open commit log: %w", err)
	}
	if begin, _ := files.Bounds(); begin%cfg.FileSize != 0 {
		err := fmt.Errorf("%w: first file %s is no multiple of mappedFileSizeCommitLog=%d", ErrCorrupt, segment.Name(begin), cfg.FileSize)
		return nil, errors.Join(err, files.Close())
	}
	cfg.ZeroAhead = max(cfg.ZeroAhead, 2*cfg.unitMax()+cfg.step())
	l := &Log{cfg: cfg, logger: logger, fsys: fsys, files: files, tail: newTail(cfg.TailBytes, 2*cfg.unitMax())}
	l.zeroFill = cfg.SyncFlush
	l.room = sync.NewCond(&l.mu)
	l.writer.ch, l.syncer.ch, l.preparer.ch = make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)
	return l, nil
}

// Run writes out, flushes and prepares files until ctx ends; then it refuses appends, flushes what is appended and
// returns. A failed write does not end it: reads go on.
func (l *Log) Run(ctx context.Context) error {
	l.mu.Lock()
	if !l.ready {
		l.mu.Unlock()
		return fmt.Errorf("run before recovery: %w", ErrClosed)
	}
	l.mu.Unlock()

	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() { l.runWriter(work) })
	wg.Go(func() { l.runPreparer(work) })
	if !l.cfg.SyncFlush {
		wg.Go(func() { l.runSyncer(work) })
	}
	<-ctx.Done()
	l.mu.Lock()
	l.open = false
	l.room.Broadcast()
	l.mu.Unlock()
	stop()
	wg.Wait()
	l.flushAll()
	return nil
}

// Close gives the files back. Waiters on the watermarks fail with ErrClosed. Call it after Run has returned.
func (l *Log) Close() error {
	l.mu.Lock()
	l.open, l.ready = false, false
	l.room.Broadcast()
	l.mu.Unlock()
	l.appended.Close(ErrClosed)
	l.written.Close(ErrClosed)
	l.durable.Close(ErrClosed)
	return l.files.Close()
}

// Appended is the end of the log in memory: what Read serves.
func (l *Log) Appended() *watermark.Watermark { return &l.appended }

// Written is the end of what the operating system has: it survives a kill of the process, not a power cut.
func (l *Log) Written() *watermark.Watermark { return &l.written }

// Durable is the end of what fdatasync has covered. After a failure it never moves again.
func (l *Log) Durable() *watermark.Watermark { return &l.durable }

// Begin is the offset of the first byte that is kept.
func (l *Log) Begin() int64 {
	if begin, end := l.files.Bounds(); begin < end {
		return begin
	}
	return l.appended.Load()
}

// WriteFailed returns why writes are latched off, or nil. It matches ErrWriteFailed.
func (l *Log) WriteFailed() error {
	if err := l.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// Stats are counters since Open.
type Stats struct{ Flushes, Records uint64 }

// Stats returns current figures.
func (l *Log) Stats() Stats { return Stats{Flushes: l.flushes.Load(), Records: l.records.Load()} }

// fail latches the log: a storage error is never retried into success. What was appended and not yet durable will not be
// acknowledged any more; reads go on.
func (l *Log) fail(op string, cause error) {
	err := fmt.Errorf("%w: %s: %w", ErrWriteFailed, op, cause)
	if !l.failed.CompareAndSwap(nil, &err) {
		return
	}
	l.logger.Error("commit log takes no more writes", slog.String("operation", op), slog.Any("error", cause))
	l.written.Close(err)
	l.durable.Close(err)
	l.mu.Lock()
	l.room.Broadcast()
	l.mu.Unlock()
}

func isDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// roomMade wakes appends that wait.
func (l *Log) roomMade() {
	if l.waiting.Load() > 0 {
		l.mu.Lock()
		l.room.Broadcast()
		l.mu.Unlock()
	}
}
