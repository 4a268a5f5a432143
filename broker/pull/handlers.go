// Package pull answers the requests that read messages and offsets: pull with its hold, view, query, and the offset
// searches. A held pull is one goroutine that waits for its queue's watermark.
package pull

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/broker/client"
	"github.com/quorate/quorate/broker/group"
	"github.com/quorate/quorate/broker/topic"
	"github.com/quorate/quorate/internal/watermark"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
	"github.com/quorate/quorate/store"
)

// Reloadable has the keys of pulls; all may change while the broker runs.
type Reloadable struct {
	LongPolling      bool          `conf:"longPollingEnable"`
	ShortPolling     time.Duration `conf:"shortPollingTimeMills,ms" bounds:"1..600000"`
	LitePull         bool          `conf:"litePullMessageEnable"`
	SlaveRead        bool          `conf:"slaveReadEnable"`
	ServerSideReset  bool          `conf:"useServerSideResetOffset"`
	BrokerPermission int32         `conf:"brokerPermission" bounds:"0..7"`
	QueryNumDefault  int32         `conf:"defaultQueryMaxNum" bounds:"1..1048576"` // of a query by unique key
	QueryNumMax      int32         `conf:"maxMsgsNumBatch" bounds:"1..1048576"`
}

// DefaultReloadable has RocketMQ's defaults.
func DefaultReloadable() Reloadable {
	return Reloadable{
		LongPolling: true, ShortPolling: time.Second, LitePull: true, ServerSideReset: true,
		BrokerPermission: topic.PermRead | topic.PermWrite, QueryNumDefault: 32, QueryNumMax: 64,
	}
}

// Bounds of a pull. A client that wants less says so; one that wants more gets RocketMQ's hard limit.
const (
	bytesMin     = 100
	bytesMax     = 128 << 20
	suspendMax   = 5 * time.Minute // a hold ends then whatever the client asks for
	countMax     = 1 << 15
	countMinimum = 1
)

// Topics is the topic table (topic.Table).
type Topics interface {
	Lookup(name []byte) *topic.Config
}

// Groups is the subscription-group table (group.Table).
type Groups interface {
	Lookup(name []byte) *group.Config
	Find(name string) *group.Config
	ReadForbidden(group, topic []byte) bool
}

// Clients knows what groups subscribe (client.Registry).
type Clients interface {
	Subscription(group, topic []byte) *client.Subscription
	Online(group []byte) bool
	Consumers(group string) (client.ConsumerGroup, []client.Member, bool)
}

// Progress keeps consumer offsets (offset.Table).
type Progress interface {
	Query(group, topic string, queueID int32) int64
	Commit(group, topic string, queueID int32, offset int64) (movedBack int64)
	CommitPull(group, topic string, queueID int32, offset int64)
	TakeReset(group, topic string, queueID int32) (int64, bool)
}

// Queues reads messages by queue offset (store.Store).
type Queues interface {
	Get(topic string, queueID int32, offset int64, maxCount, maxBytes int, f store.Filter, into *store.GetResult) error
	QueueArrived(topic string, queueID int32) *watermark.Watermark
	QueueBounds(topic string, queueID int32) (minOffset, maxOffset int64)
}

// Log answers everything else about stored messages (store.Store).
type Log interface {
	OffsetByTime(topic string, queueID int32, timestamp int64, upper bool) int64
	StoreTime(topic string, queueID int32, offset int64) int64
	RecordAt(offset int64) (store.View, error)
	Query(topic, key string, maxNum int, begin, end int64) (store.QueryResult, error)
	QueueEntries(topic string, queueID int32, offset int64, into []store.QueueEntry) (int, error)
}

// Meter counts (meter.Table).
type Meter interface {
	Pulled(group, topic []byte, count, size int64, took time.Duration)
	Missed()
}

// Deps are what pulls work with.
type Deps struct {
	Topics   Topics
	Groups   Groups
	Clients  Clients
	Progress Progress
	Queues   Queues
	Log      Log
	Meter    Meter
	Replica  bool // this broker follows a master, whose consumer offsets are the group's
	// Missing is told when a topic that is asked for is not known here; nil at a master. It must not block.
	Missing func()
	Logger  *slog.Logger
}

// Handlers serves the requests that read. Safe for concurrent use.
type Handlers struct {
	deps  Deps
	live  atomic.Pointer[Reloadable]
	ops   sync.Pool
	holds sync.WaitGroup
	held  atomic.Int64
}

// New starts nothing.
func New(live Reloadable, deps Deps) *Handlers {
	h := &Handlers{deps: deps}
	h.live.Store(&live)
	h.ops.New = func() any {
		o := &op{h: h}
		o.reply.Done = o.written // bound once: a method value made per pull would be an allocation
		return o
	}
	return h
}

// ServerSideReset tells whether a reset of progress is kept here until the group's next pull (useServerSideResetOffset).
func (h *Handlers) ServerSideReset() bool { return h.live.Load().ServerSideReset }

// Reload replaces the keys that may change at run time.
func (h *Handlers) Reload(r Reloadable) { h.live.Store(&r) }

// Held counts the pulls that wait for a message.
func (h *Handlers) Held() int64 { return h.held.Load() }

// Run waits until ctx ends and then for the held pulls, which end with their connections.
func (h *Handlers) Run(ctx context.Context) error {
	<-ctx.Done()
	h.holds.Wait()
	return nil
}

// Routes lists every request code this package answers. A pull that finds something at once is answered on the
// connection's reader goroutine.
func (h *Handlers) Routes() []remoting.Route {
	return []remoting.Route{
		remoting.Inline(protocol.CodePullMessage, remoting.Data, h.pull).OnMainPortOnly(),
		remoting.Inline(protocol.CodeLitePullMessage, remoting.Data, h.litePull).OnMainPortOnly(),
		remoting.Handle(remoting.Query, h.view),
		remoting.Handle(remoting.Query, h.query),
		remoting.Handle(remoting.Query, h.consumeQueue),
		remoting.Handle(remoting.Query, h.searchOffset),
		remoting.Handle(remoting.Query, h.maxOffset),
		remoting.Handle(remoting.Query, h.minOffset),
		remoting.Handle(remoting.Query, h.earliest),
	}
}
