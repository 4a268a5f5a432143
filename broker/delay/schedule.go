// Package delay delivers delayed messages: those parked in SCHEDULE_TOPIC_XXXX go to their own topic when they are due. Each
// level tails its queue and sleeps until exactly its next message is due. Progress is an offset per level, kept in
// config/delayOffset.json, which is never written ahead of what is durable in the log: a crash repeats deliveries of the
// last seconds and loses none.
package delay

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/broker/write"
	"github.com/quorate/quorate/internal/watermark"
	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/store"
)

// Log is what a schedule reads (store.Store).
type Log interface {
	QueueBounds(topic string, queueID int32) (minOffset, maxOffset int64)
	QueueArrived(topic string, queueID int32) *watermark.Watermark
	QueueEntries(topic string, queueID int32, offset int64, into []store.QueueEntry) (int, error)
	RecordAt(offset int64) (store.View, error)
}

// Writer puts a message into the log (write.Pipeline).
type Writer interface {
	Write(ctx context.Context, r write.Request) write.Result
}

// Durability tells how far the log is safe on disk (store.Store).
type Durability interface {
	Appended() *watermark.Watermark
	Durable() *watermark.Watermark
	RequestFlush()
}

// Files keeps small files under config/ (store.Store).
type Files interface {
	ReadConfigFile(name string) ([]byte, error)
	WriteConfigFile(name string, content []byte) error
}

// Config of a schedule.
type Config struct {
	Levels        string        `conf:"messageDelayLevel"`
	FlushInterval time.Duration `conf:"flushDelayOffsetInterval,ms" bounds:"10..86400000"`
}

// DefaultConfig has RocketMQ's defaults.
func DefaultConfig() Config { return Config{Levels: DefaultLevels, FlushInterval: 10 * time.Second} }

// Validate names the first key out of its bounds.
func (c Config) Validate() error {
	if c.FlushInterval < 10*time.Millisecond {
		return errors.New("flushDelayOffsetInterval: must be at least 10 ms")
	}
	_, err := ParseLevels(c.Levels)
	return err
}

// Deps are what a schedule works with. Store is usually all of Log, Durability and Files.
type Deps struct {
	Log        Log
	Durability Durability
	Files      Files
	Writer     Writer
	Logger     *slog.Logger
}

// Pauses before a refused delivery is tried again.
const (
	retryPauseMin = 100 * time.Millisecond
	retryPauseMax = time.Second
)

// entriesPerRead bounds one read of a level's queue.
const entriesPerRead = 64

// Schedule delivers delayed messages while Run runs. Its figures are safe for concurrent use.
type Schedule struct {
	cfg      Config
	levels   Levels
	deps     Deps
	progress progress
	skipped  atomic.Int64
}

// New reads the progress of an earlier run. It starts nothing.
func New(cfg Config, deps Deps) (*Schedule, error) {
	levels, err := ParseLevels(cfg.Levels)
	if err != nil {
		return nil, err
	}
	s := &Schedule{cfg: cfg, levels: levels, deps: deps}
	if err := s.progress.load(deps.Files, len(levels)); err != nil {
		return nil, err
	}
	return s, nil
}

// Levels returns the delays of this broker.
func (s *Schedule) Levels() Levels { return s.levels }

// Skipped counts messages that could not be delivered since they were no longer readable.
func (s *Schedule) Skipped() int64 { return s.skipped.Load() }

// Progress returns, for a level, the offset of its next delivery and the end of its queue.
func (s *Schedule) Progress(level int) (next, end int64) {
	_, end = s.deps.Log.QueueBounds(Topic, int32(level-1))
	return s.progress.next(level), end
}

// Run delivers until ctx ends; it then writes its progress.
func (s *Schedule) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for level := 1; level <= len(s.levels); level++ {
		wg.Go(func() { s.deliver(ctx, level) })
	}
	tick := time.NewTicker(s.cfg.FlushInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := s.persist(ctx); err != nil && ctx.Err() == nil {
				s.deps.Logger.Error("progress of delayed messages not written", "error", err)
			}
		case <-ctx.Done():
			wg.Wait()
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastFlushTimeout)
			defer cancel()
			return s.persist(last)
		}
	}
}

// deliver works through one level, message by message.
func (s *Schedule) deliver(ctx context.Context, level int) { //nolint:gocognit // one loop, whose exits are its cases
	queue := int32(level - 1)
	offset := s.start(level)
	entries := make([]store.QueueEntry, entriesPerRead)
	failures := 0
	for ctx.Err() == nil {
		s.progress.set(level, offset)
		n, err := s.deps.Log.QueueEntries(Topic, queue, offset, entries)
		if low, _ := s.deps.Log.QueueBounds(Topic, queue); low > offset {
			s.deps.Logger.Warn("delayed messages were deleted before they were due", "level", level, "count", low-offset)
			s.skipped.Add(low - offset)
			offset = low
			continue
		}
		if err != nil && !errors.Is(err, store.ErrQueueNotFound) {
			if failures++; failures == 1 || failures%600 == 0 {
				s.deps.Logger.Error("delayed messages cannot be read, trying again", "level", level, "offset", offset, "error", err)
			}
			pause(ctx, min(retryPauseMin*time.Duration(failures), retryPauseMax))
			continue
		}
		if n == 0 {
			if err := s.deps.Log.QueueArrived(Topic, queue).Wait(ctx, offset+1); err != nil {
				pause(ctx, retryPauseMin) // the queue was closed: it comes back with its next message
			}
			continue
		}
		for _, e := range entries[:n] {
			if !sleepUntil(ctx, s.due(level, e.TagsCode)) {
				return
			}
			if err := s.put(ctx, e); err != nil {
				if failures++; failures == 1 || failures%600 == 0 {
					s.deps.Logger.Warn("delayed message refused, trying again", "level", level, "offset", offset, "error", err)
				}
				pause(ctx, min(retryPauseMin*time.Duration(failures), retryPauseMax))
				break // the same offset again: nothing is skipped
			}
			failures = 0
			offset++
			s.progress.set(level, offset)
		}
	}
}

// start is where a level goes on: its stored offset, within what its queue has.
func (s *Schedule) start(level int) int64 {
	low, high := s.deps.Log.QueueBounds(Topic, int32(level-1))
	return min(max(s.progress.next(level), low), high)
}

// due is when a message must go. A time later than the level allows was written under another clock or another table of
// levels: RocketMQ delivers such a message at once, and so do we.
func (s *Schedule) due(level int, tagsCode int64) time.Time {
	at := time.UnixMilli(tagsCode)
	if now := time.Now(); at.After(now.Add(s.levels.Of(level))) {
		return now
	}
	return at
}

// put delivers one entry. Nil means done with it: delivered, or beyond delivery and counted as skipped.
func (s *Schedule) put(ctx context.Context, e store.QueueEntry) error {
	view, err := s.deps.Log.RecordAt(e.PhysicalOffset)
	if errors.Is(err, store.ErrRecordNotFound) {
		s.skip("its record is gone", e)
		return nil
	}
	if err != nil {
		return err
	}
	defer view.Release()
	record, err := message.DecodeRecord(view.Bytes, false)
	if err != nil {
		s.skip("its record cannot be read", e)
		return nil
	}
	m, ok := revive(&record)
	if !ok {
		s.skip("it does not name its topic, or a closed one", e)
		return nil
	}
	r := s.deps.Writer.Write(ctx, write.Request{Message: &m, Received: time.Now(), NoWait: true})
	if r.Err != nil && r.Appended.End == 0 {
		return r.Err
	}
	return nil
}

func (s *Schedule) skip(why string, e store.QueueEntry) {
	s.skipped.Add(1)
	s.deps.Logger.Error("delayed message cannot be delivered", "reason", why, "physical_offset", e.PhysicalOffset)
}

// revive makes the message to deliver. Its property bytes stay as they were stored, DELAY, REAL_TOPIC and REAL_QID included,
// as RocketMQ leaves them.
func revive(r *message.Record) (message.Message, bool) {
	topic := r.Properties.Get(message.RealTopic)
	queue, err := strconv.ParseInt(r.Properties.Get(message.RealQueueID), 10, 32)
	if err != nil || topic == "" || topic == Topic || topic == halfTopic || queue < 0 {
		return message.Message{}, false
	}
	return message.Message{
		Topic: topic, QueueID: int32(queue), Flag: r.Flag, SysFlag: r.SysFlag, Properties: r.Properties, Body: r.Body,
		BornTimestamp: r.BornTimestamp, BornHost: r.BornHost, StoreHost: r.StoreHost, ReconsumeTimes: r.ReconsumeTimes,
		PreparedTransactionOffset: r.PreparedTransactionOffset,
	}, true
}

// halfTopic never takes a delayed message: a half message that came out of the delay topic would be checked for ever.
const halfTopic = "RMQ_SYS_TRANS_HALF_TOPIC"

func pause(ctx context.Context, d time.Duration) { sleepUntil(ctx, time.Now().Add(d)) }

// sleepUntil reports whether the time came before ctx ended. Long sleeps are cut, so that a step of the wall clock shows.
func sleepUntil(ctx context.Context, at time.Time) bool {
	for {
		left := time.Until(at)
		if left <= 0 {
			return ctx.Err() == nil
		}
		timer := time.NewTimer(min(left, time.Minute))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
}
