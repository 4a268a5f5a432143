// Package produce answers the requests that put messages into the broker: send, batch send, reply and send-back. It checks
// in RocketMQ's order, turns the request into a message, hands it to the write pipeline and answers from its completion.
package produce

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
	"github.com/quorate/quorate/broker/group"
	"github.com/quorate/quorate/broker/topic"
	"github.com/quorate/quorate/broker/write"
	"github.com/quorate/quorate/ha"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
	"github.com/quorate/quorate/replication"
	"github.com/quorate/quorate/store"
)

// Config has the keys of sends that need a restart.
type Config struct {
	Cluster        string `conf:"brokerClusterName"`
	MaxMessageSize int    `conf:"maxMessageSize"`
	StoreReplies   bool   `conf:"storeReplyMessageEnable"`
	// SlaveNotAvailable says whose answer a send gets that timed out while the master had no replica at all: RocketMQ 5's,
	// FLUSH_SLAVE_TIMEOUT, or RocketMQ 4's, SLAVE_NOT_AVAILABLE.
	SlaveNotAvailable string `conf:"compatSlaveNotAvailable" enum:"4x|5x"`
	StoreHost         netip.AddrPort
	Levels            delay.Levels
}

// Reloadable has the keys of sends that may change while the broker runs.
type Reloadable struct {
	RegionID           string `conf:"regionId"`
	TraceOn            bool   `conf:"traceOn"`
	BrokerPermission   int32  `conf:"brokerPermission" bounds:"0..7"`
	RejectTransactions bool   `conf:"rejectTransactionMessage"`
	AcceptFrom         int64  `conf:"startAcceptSendRequestTimeStamp" bounds:"0..9223372036854775807"` // ms since the epoch; sends before it are refused
}

// DefaultReloadable has RocketMQ's defaults.
func DefaultReloadable() Reloadable {
	return Reloadable{RegionID: "DefaultRegion", TraceOn: true, BrokerPermission: topic.PermRead | topic.PermWrite}
}

// Topics is the topic table (topic.Table).
type Topics interface {
	Lookup(name []byte) *topic.Config
	CreateOnSend(name, template string, queues, sysFlag int32) (*topic.Config, error)
	Ensure(c topic.Config) (*topic.Config, error)
}

// Groups is the subscription-group table (group.Table).
type Groups interface {
	Lookup(name []byte) *group.Config
	Find(name string) *group.Config
}

// Clients knows who is connected (client.Registry).
type Clients interface {
	OrderLocked(group string) bool
	FindProducer(group, clientID string) (client.Member, bool)
}

// Writer is the way into the log (write.Pipeline).
type Writer interface {
	Submit(r write.Request, done write.Done)
	Kick()
	Write(ctx context.Context, r write.Request) write.Result
}

// Records reads a record back for a send-back (store.Store).
type Records interface {
	RecordAt(offset int64) (store.View, error)
}

// Meter counts (meter.Table).
type Meter interface {
	Stored(topic []byte, count, size int64, took time.Duration)
	Refused()
	SentBack(group, topic []byte)
}

// Deps are what sends work with.
type Deps struct {
	Topics  Topics
	Groups  Groups
	Clients Clients
	Writer  Writer
	Records Records
	Meter   Meter
	// NoReplica reports whether the master has no replica; nil where there is none to have.
	NoReplica func() bool
	Replica   bool // this broker follows a master: nothing is made for a send that cannot be taken
	Logger    *slog.Logger
}

// Handlers serves the requests that write messages. Safe for concurrent use.
type Handlers struct {
	cfg  Config
	deps Deps
	live atomic.Pointer[Reloadable]
	ops  sync.Pool
	slow sync.WaitGroup // sends that create a topic or a group, which writes files

	answers sync.Pool
	running sync.RWMutex
	waiting chan *answers // nil: Run does not run
}

// New starts nothing.
func New(cfg Config, live Reloadable, deps Deps) *Handlers {
	h := &Handlers{cfg: cfg, deps: deps}
	h.live.Store(&live)
	h.ops.New = func() any { return &op{h: h} }
	h.answers.New = func() any { return &answers{h: h} }
	return h
}

// BatchEnd has the sends of one read of a connection written out together.
func (h *Handlers) BatchEnd() { h.deps.Writer.Kick() }

// Reload replaces the keys that may change at run time.
func (h *Handlers) Reload(r Reloadable) { h.live.Store(&r) }

// Routes lists every request code this package answers. Sends run on the connection's reader goroutine.
func (h *Handlers) Routes() []remoting.Route {
	return []remoting.Route{
		remoting.Inline(protocol.CodeSendMessage, remoting.Data, h.sendV1),
		remoting.Inline(protocol.CodeSendMessageV2, remoting.Data, h.sendV2),
		remoting.Inline(protocol.CodeSendBatchMessage, remoting.Data, h.sendV2),
		remoting.Handle(remoting.Data, h.reply),
		remoting.Handle(remoting.Data, h.replyV2),
		remoting.Handle(remoting.Data, h.sendBack),
	}
}

// codeOf is CodeOf, or what RocketMQ 4 would say where that is asked for.
func (h *Handlers) codeOf(e *write.Error) protocol.ResponseCode {
	code := CodeOf(e)
	if code == protocol.FlushSlaveTimeout && h.cfg.SlaveNotAvailable == "4x" && h.deps.NoReplica != nil && h.deps.NoReplica() {
		return protocol.SlaveNotAvailable
	}
	return code
}

// CodeOf is the response code of a write that failed (PROTOCOL §6.6).
func CodeOf(e *write.Error) protocol.ResponseCode {
	switch {
	case e == nil:
		return protocol.Success
	case errors.Is(e, replication.ErrFlushTimeout):
		return protocol.FlushDiskTimeout
	case errors.Is(e, replication.ErrReplicaTimeout):
		return protocol.FlushSlaveTimeout
	case errors.Is(e, store.ErrMessageIllegal), errors.Is(e, store.ErrPropertiesTooLong):
		return protocol.MessageIllegal
	case errors.Is(e, replication.ErrWaitsFull), errors.Is(e, store.ErrBusy):
		return protocol.SystemBusy
	case errors.Is(e, ha.ErrInSyncNotEnough):
		return protocol.SystemError
	case errors.Is(e, store.ErrNotWritable), errors.Is(e, store.ErrDiskFull), errors.Is(e, replication.ErrFenced),
		e.Stage == write.Authority:
		return protocol.ServiceNotAvailable
	default:
		return protocol.SystemError
	}
}

// stored reports whether a write with this code counts as stored for a producer: it treats 10, 11 and 12 as results.
func stored(code protocol.ResponseCode) bool {
	return code == protocol.Success || code == protocol.FlushDiskTimeout || code == protocol.FlushSlaveTimeout ||
		code == protocol.SlaveNotAvailable
}
