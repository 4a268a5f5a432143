// Package transaction decides half messages: END_TRANSACTION commits or rolls one back, and the check asks a producer of
// its group about one that stays undecided. A half message is a record of RMQ_SYS_TRANS_HALF_TOPIC; that it is decided says
// an op record in RMQ_SYS_TRANS_OP_HALF_TOPIC, which names its queue offset. Making a half message of a send belongs to
// package produce.
//
// Each check appends the half message again, so that its place in the half queue changes; what stays is its first queue
// offset, kept in TRAN_PREPARED_QUEUE_OFFSET. A decision is about that first offset: whichever place an END_TRANSACTION
// names, only the first decisive one has an effect.
package transaction

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/broker/client"
	"github.com/quorate/quorate/broker/delay"
	"github.com/quorate/quorate/broker/topic"
	"github.com/quorate/quorate/broker/write"
	"github.com/quorate/quorate/internal/watermark"
	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/store"
)

// group holds the progress of the check on both topics (MixAll.CID_SYS_RMQ_TRANS).
const group = "CID_RMQ_SYS_TRANS"

// Log is what decisions and checks read (store.Store).
type Log interface {
	QueueBounds(topic string, queueID int32) (minOffset, maxOffset int64)
	QueueEntries(topic string, queueID int32, offset int64, into []store.QueueEntry) (int, error)
	RecordAt(offset int64) (store.View, error)
}

// Durability tells how far the log is safe on disk (store.Store).
type Durability interface {
	Appended() *watermark.Watermark
	Durable() *watermark.Watermark
	Confirmed() *watermark.Watermark // what RecordAt reads
	RequestFlush()
}

// Files keeps small files under config/ (store.Store).
type Files interface {
	ReadConfigFile(name string) ([]byte, error)
	WriteConfigFile(name string, content []byte) error
}

// Writer puts a message into the log (write.Pipeline).
type Writer interface {
	Write(ctx context.Context, r write.Request) write.Result
}

// Progress keeps consumer offsets (offset.Table).
type Progress interface {
	Query(group, topic string, queueID int32) int64
	Commit(group, topic string, queueID int32, offset int64) (movedBack int64)
}

// Producers knows who is connected (client.Registry).
type Producers interface {
	Producers(group string) []client.Member
}

// Topics makes the topic of messages given up (topic.Table).
type Topics interface {
	Ensure(c topic.Config) (*topic.Config, error)
}

// Config of transactions.
type Config struct {
	CheckInterval time.Duration `conf:"transactionCheckInterval,ms" bounds:"1..86400000"`
	Timeout       time.Duration `conf:"transactionTimeOut,ms" bounds:"0..86400000"`
	CheckMax      int32         `conf:"transactionCheckMax" bounds:"1..10000"`
	OpBytesMax    int           `conf:"transactionOpMsgMaxSize" bounds:"32..1048576"`
	// Reserved is the age at which an undecided message is left to the retention of the log; the key is the store's.
	Reserved time.Duration `conf:"fileReservedTime,h" bounds:"0..876000"`
}

// DefaultConfig has RocketMQ's defaults.
func DefaultConfig() Config {
	return Config{CheckInterval: 30 * time.Second, Timeout: 6 * time.Second, CheckMax: 15, OpBytesMax: 4096, Reserved: 72 * time.Hour}
}

// Deps are what transactions work with.
type Deps struct {
	Log        Log
	Durability Durability
	Files      Files
	Writer     Writer
	Progress   Progress
	Producers  Producers
	Topics     Topics
	Levels     delay.Levels
	Host       netip.AddrPort // of records the broker itself makes
	Logger     *slog.Logger
}

// decision about a half message.
type decision int32

const (
	undecided decision = 0
	commit    decision = decision(message.TransactionCommit)
	rollback  decision = decision(message.TransactionRollback)
	givenUp   decision = -1 // or decided by an earlier run, whose op record does not say how
	elsewhere decision = -2 // it lies at a later place
)

func (d decision) String() string {
	switch d {
	case commit:
		return "committed"
	case rollback:
		return "rolled back"
	case givenUp, elsewhere:
		return "decided or given up"
	default:
		return "undecided"
	}
}

// place is where a half message lies at present.
type place struct{ queueOffset, physical int64 }

// Transactions serves END_TRANSACTION at any time and checks while Run runs. Safe for concurrent use.
type Transactions struct {
	cfg  Config
	deps Deps

	mu sync.Mutex
	// halfNext is the first half offset that may be undecided: all below are decided or have a later place.
	halfNext int64
	// opNext is the next op record to read; resolved has the offsets at or above halfNext that need no check any more.
	opNext   int64
	resolved map[int64]decision
	// moved maps the first offset of a half message that was appended again to its present place; firstOf is its inverse.
	moved   map[int64]place
	firstOf map[int64]int64
	// opsRead are the op records at or above the stored op offset, with the highest half offset each names.
	opsRead []opRead
	// questions are the checks of the round under way; Run's goroutine alone uses them.
	questions []question
	// busy has the first offsets about which a decision is being carried out.
	busy map[int64]decision

	ops         chan int64
	loaded      chan struct{}
	quarantined atomic.Int64
	waiting     atomic.Pointer[map[string]int64] // undecided messages by topic, as the last round counted them
	metrics     metrics
}

// opRead is an op record and the highest half offset it names.
type opRead struct{ offset, highest int64 }

// opsWaitingMax bounds the decisions whose op record is not written yet; further ones wait.
const opsWaitingMax = 8192

// New starts nothing. Decisions wait until Load has read what the log knows.
func New(cfg Config, deps Deps) *Transactions {
	return &Transactions{
		cfg: cfg, deps: deps, resolved: map[int64]decision{}, moved: map[int64]place{}, firstOf: map[int64]int64{},
		busy: map[int64]decision{},
		ops:  make(chan int64, opsWaitingMax), loaded: make(chan struct{}),
	}
}

// Run writes op records and checks undecided messages until ctx ends. Load comes first.
func (t *Transactions) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { t.writeOps(ctx) })
	defer wg.Wait()
	tick := time.NewTicker(t.cfg.CheckInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastFlushTimeout)
			defer cancel()
			return t.save(last)
		case <-tick.C:
			t.round(ctx)
		}
	}
}

// lastFlushTimeout bounds the wait for the log's flush at the stop.
const lastFlushTimeout = 5 * time.Second

// Quarantined counts half messages that could not be read and are not checked.
func (t *Transactions) Quarantined() int64 { return t.quarantined.Load() }

// claim reserves a half message for one decision. prior is what was decided before, undecided if the caller now holds it.
// The place is where the message lies now.
func (t *Transactions) claim(first int64, at place, want decision) (prior decision, now place, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if d, ok := t.busy[first]; ok {
		return d, at, nil
	}
	if to, ok := t.moved[first]; ok {
		if d, done := t.resolved[to.queueOffset]; done {
			return d, to, nil
		}
		at = to
	} else if d, done := t.resolved[at.queueOffset]; done {
		return d, at, nil
	} else if at.queueOffset < t.halfNext {
		return undecided, at, errLongDecided
	}
	t.busy[first] = want
	return undecided, at, nil
}

var errLongDecided = errors.New("transaction: decided or given up before")

// settle ends a claim: with d the message is decided, with undecided it is as before. It returns the places that an op
// record must name: the claimed one, and the one to which a check moved the message meanwhile.
func (t *Transactions) settle(first int64, at place, d decision) (decided []int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.busy, first)
	if d == undecided {
		return nil
	}
	if at.queueOffset >= t.halfNext {
		t.resolved[at.queueOffset] = d
	}
	decided = []int64{at.queueOffset}
	if to, ok := t.moved[first]; ok && to != at {
		t.resolved[to.queueOffset] = d
		decided = append(decided, to.queueOffset)
	}
	return decided
}

// writeOps writes op records for decisions, as many in one as have come while the last was written. RocketMQ waits up to
// transactionOpBatchInterval for more; a crash in that time made a committed message be asked about, and committed, again.
func (t *Transactions) writeOps(ctx context.Context) {
	for {
		select {
		case offset := <-t.ops:
			t.writeOp(ctx, t.collect(offset))
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastFlushTimeout)
			defer cancel()
			for len(t.ops) > 0 {
				t.writeOp(last, t.collect(<-t.ops))
			}
			return
		}
	}
}
