// Package store is the storage engine of a broker: it opens, recovers, appends, reads and cleans. Formats are RocketMQ's.
// It decides nothing about acknowledgement: it moves the watermarks Appended, Durable, Confirmed and Dispatched.
package store

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/quorate/quorate/internal/watermark"
	"github.com/quorate/quorate/message"
)

// Errors of appends and reads. Match with errors.Is.
var (
	ErrMessageIllegal    = errors.New("store: message illegal")     // topic, body or properties exceed the format or a limit
	ErrPropertiesTooLong = errors.New("store: properties too long") //
	ErrNotWritable       = errors.New("store: not writable")        // write-failed latch, disk full, shutting down: the wrapped text says which
	ErrDiskFull          = errors.New("store: disk full")           // wraps ErrNotWritable's case for admission
	ErrQueueNotFound     = errors.New("store: queue not found")     //
	ErrRecordNotFound    = errors.New("store: record not found")    // no record starts at that offset
	ErrStoreLocked       = errors.New("store: locked by another process")
	ErrCorrupt           = errors.New("store: corrupt") // corruption in the middle, never cut
)

// Config of a store; leaf fields carry RocketMQ's key.
type Config struct {
	RootDir              string `conf:"storePathRootDir"`
	CommitLogFileSize    int64  `conf:"mappedFileSizeCommitLog"`
	ConsumeQueueFileSize int64  `conf:"mappedFileSizeConsumeQueue"`
	SyncFlush            bool   // flushDiskType=SYNC_FLUSH
	// the owner adds the other keys of PROTOCOL §10.2
	Now func() time.Time
}

// Appended is where an append landed. For a batch: the first record's offsets and Count records.
type Appended struct {
	Begin, End     int64 // physical offsets, end exclusive
	QueueOffset    int64
	StoreTimestamp int64
	Count          int
	RecordOffsets  []int64 // physical offset of each record of a batch; nil for a single message
}

// Store is safe for concurrent use.
type Store struct{}

// Open takes the files under cfg.RootDir, locks them and recovers. It starts no goroutine.
func Open(cfg Config, logger *slog.Logger) (*Store, error) { panic("unbuilt") }

// Run flushes, dispatches, prepares segments and cleans until ctx ends; it then flushes what is appended and checkpoints.
func (s *Store) Run(ctx context.Context) error { panic("unbuilt") }

// Close gives the files back; after a clean Run it removes the abort file.
func (s *Store) Close() error { panic("unbuilt") }

// Append assigns offsets under the append lock and copies m into the log. allowed is called under that lock before a byte
// is taken; its error is returned as it is. Append does not wait for any flush. It does not allocate.
func (s *Store) Append(m *message.Message, allowed func() error) (Appended, error) { panic("unbuilt") }

// AppendBatch appends all messages of one (topic, queue) contiguously, all or none.
func (s *Store) AppendBatch(ms []message.Message, allowed func() error) (Appended, error) {
	panic("unbuilt")
}

// Appended is the end of the log in memory; Durable what fsync covers; Confirmed what consumers may see; Dispatched what
// queues and index cover.
func (s *Store) Appended() *watermark.Watermark   { panic("unbuilt") }
func (s *Store) Durable() *watermark.Watermark    { panic("unbuilt") }
func (s *Store) Confirmed() *watermark.Watermark  { panic("unbuilt") }
func (s *Store) Dispatched() *watermark.Watermark { panic("unbuilt") }

// WriteFailed returns the reason why writes are latched off, or nil. The latch ends only by a reopen.
func (s *Store) WriteFailed() error { panic("unbuilt") }

// RequestFlush asks for a flush soon (ASYNC_FLUSH callers that want one); SYNC_FLUSH flushes by itself on append.
func (s *Store) RequestFlush() { panic("unbuilt") }

// View borrows record bytes. Release exactly once; the bytes are invalid afterwards.
type View struct{ Bytes []byte }

// Release gives the bytes back.
func (v View) Release() { panic("unbuilt") }

// GetStatus is the outcome of a Get (RocketMQ GetMessageStatus).
type GetStatus int

// Statuses, as PROTOCOL §3.7 names them.
const (
	Found GetStatus = iota
	NoMatchedMessage
	MessageWasRemoving
	OffsetFoundNull
	OffsetOverflowBadly
	OffsetOverflowOne
	OffsetTooSmall
	NoMatchedLogicQueue
	NoMessageInQueue
	OffsetReset
)

// Filter decides about candidates of a Get. Nil takes all. TagsCode sees the consume-queue entry; Record the record bytes (exact tags).
type Filter interface {
	MatchTagsCode(code int64) bool
	MatchRecord(record []byte) bool
}

// GetResult is what a Get found. The caller releases every view.
type GetResult struct {
	Status             GetStatus
	NextBegin          int64
	MinOffset          int64
	MaxOffset          int64
	Views              []View
	Bytes              int
	Count              int
	SuggestFromReplica bool
}

// Get reads records of one queue from offset on: at most maxCount and maxBytes (and RocketMQ's transfer limits), at least
// one when one matches. Only confirmed and dispatched records are seen. into is reused when it has capacity.
func (s *Store) Get(topic string, queueID int32, offset int64, maxCount, maxBytes int, f Filter, into *GetResult) error {
	panic("unbuilt")
}

// QueueArrived is the watermark of one queue's max offset: a held pull waits on it. It closes when the queue is deleted.
// A queue that does not exist yet has one too.
func (s *Store) QueueArrived(topic string, queueID int32) *watermark.Watermark { panic("unbuilt") }

// QueueBounds returns min and max (exclusive) offset; 0, 0 for an unknown queue.
func (s *Store) QueueBounds(topic string, queueID int32) (minOffset, maxOffset int64) {
	panic("unbuilt")
}

// OffsetByTime finds the queue offset for a store time; upper picks the last record at or before it, else the first at or after (RocketMQ BoundaryType).
func (s *Store) OffsetByTime(topic string, queueID int32, timestamp int64, upper bool) int64 {
	panic("unbuilt")
}

// RecordAt returns the record that starts at a physical offset.
func (s *Store) RecordAt(offset int64) (View, error) { panic("unbuilt") }

// StoreTime returns the store timestamp of a queue offset, or −1.
func (s *Store) StoreTime(topic string, queueID int32, offset int64) int64 { panic("unbuilt") }

// QueueEntry is one consume-queue unit.
type QueueEntry struct {
	PhysicalOffset int64
	Size           int32
	TagsCode       int64
}

// QueueEntries reads up to len(into) entries from offset and returns how many.
func (s *Store) QueueEntries(topic string, queueID int32, offset int64, into []QueueEntry) (int, error) {
	panic("unbuilt")
}

// QueryResult is the answer of a key query.
type QueryResult struct {
	Views            []View
	LastUpdateTime   int64
	LastUpdateOffset int64
}

// Query finds records by key through the index.
func (s *Store) Query(topic, key string, maxNum int, begin, end int64) (QueryResult, error) {
	panic("unbuilt")
}

// InMemory reports whether a queue offset's record is still served from memory (QUERY_CONSUMER_OFFSET's rule).
func (s *Store) InMemory(topic string, queueID int32, offset int64) bool { panic("unbuilt") }

// DeleteTopic removes the consume queues of a topic.
func (s *Store) DeleteTopic(topic string) error { panic("unbuilt") }

// CleanUnusedTopics removes the consume queues of topics not in keep, except system topics (CLEAN_UNUSED_TOPIC).
func (s *Store) CleanUnusedTopics(keep map[string]bool) (int, error) { panic("unbuilt") }

// DeleteExpired runs the retention now (DELETE_EXPIRED_COMMITLOG, CLEAN_EXPIRED_CONSUMEQUEUE).
func (s *Store) DeleteExpired() error { panic("unbuilt") }

// Topics lists topics that have consume queues.
func (s *Store) Topics() map[string][]int32 { panic("unbuilt") }

// Stats are figures for runtime info and metrics.
type Stats struct {
	MinOffset, AppendedOffset, DurableOffset, ConfirmedOffset, DispatchedOffset int64
	EarliestStoreTime                                                           int64
	CommitLogDiskRatio, ConsumeQueueDiskRatio                                   float64 // 0..1
	CommitLogDir                                                                string
	Writable                                                                    bool
	NotWritableReason                                                           string
	Flushes, FlushedRecords, AppendedRecords, AppendedBytes                     uint64
}

// Stats returns current figures.
func (s *Store) Stats() Stats { panic("unbuilt") }

// ReadConfigFile reads config/name (or its .bak), WriteConfigFile replaces it as RocketMQ's ConfigManager does, durably.
func (s *Store) ReadConfigFile(name string) ([]byte, error)        { panic("unbuilt") }
func (s *Store) WriteConfigFile(name string, content []byte) error { panic("unbuilt") }
