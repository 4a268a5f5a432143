// Package ops answers what operators ask about a whole broker: its configuration and runtime figures, how far consumers are
// behind, statistics, and cleaning. It owns no data: every figure comes from the package that keeps it.
package ops

import (
	"context"
	"time"

	"github.com/quorate/quorate/broker/client"
	"github.com/quorate/quorate/broker/group"
	"github.com/quorate/quorate/broker/meter"
	"github.com/quorate/quorate/broker/topic"
	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
	"github.com/quorate/quorate/store"
)

// Store is the storage engine as an operator sees it (store.Store).
type Store interface {
	Stats() store.Stats
	QueueBounds(topic string, queueID int32) (minOffset, maxOffset int64)
	StoreTime(topic string, queueID int32, offset int64) int64
	DeleteExpired() error
}

// Progress is the consumer progress (offset.Table).
type Progress interface {
	Query(group, topic string, queueID int32) int64
	Pulled(group, topic string, queueID int32) int64
	Topics(group string) []string
}

// Clients knows who subscribes what (client.Registry).
type Clients interface {
	Subscription(group, topic []byte) *client.Subscription
	Subscriptions(group string) []*client.Subscription
}

// Schedule knows how far delayed messages are (delay.Schedule).
type Schedule interface {
	Progress(level int) (next, end int64)
}

// Settings is the configuration that the broker runs with.
type Settings interface {
	// Text lists all keys as properties text, secrets as stars.
	Text() (string, error)
	Version() protocol.DataVersion
	// Update changes keys of properties text while the broker runs: all of them or none. Its errors are answers.
	Update(text []byte) error
}

// Identity is who answers.
type Identity struct {
	Cluster, Broker, Addr string
	Version               string
	Levels                int // delay levels
	Started               time.Time
	AcceptFrom            int64 // startAcceptSendRequestTimeStamp, ms
}

// Handlers serve the requests of operators about the broker.
type Handlers struct {
	Self     Identity
	Store    Store
	Topics   *topic.Table
	Groups   *group.Table
	Progress Progress
	Clients  Clients
	Schedule Schedule
	Meter    *meter.Table
	Settings Settings
}

// Routes of the requests of operators.
func (h *Handlers) Routes() []remoting.Route {
	return []remoting.Route{
		remoting.Handle(remoting.Admin, h.updateConfig),
		remoting.Handle(remoting.Admin, h.config),
		remoting.Handle(remoting.Admin, h.runtimeInfo),
		remoting.Handle(remoting.Admin, h.consumeStats),
		remoting.Handle(remoting.Admin, h.brokerConsumeStats),
		remoting.Handle(remoting.Admin, h.statistics),
		remoting.Handle(remoting.Admin, h.cleanQueues),
		remoting.Handle(remoting.Admin, h.cleanLog),
	}
}

func (h *Handlers) updateConfig(_ context.Context, call remoting.Call[protocol.UpdateBrokerConfigRequest]) (*remoting.Reply, error) {
	if err := h.Settings.Update(call.Body); err != nil {
		return nil, err
	}
	return h.versioned(nil)
}

func (h *Handlers) config(context.Context, remoting.Call[protocol.GetBrokerConfigRequest]) (*remoting.Reply, error) {
	text, err := h.Settings.Text()
	if err != nil {
		return nil, err
	}
	return h.versioned([]byte(text))
}

func (h *Handlers) versioned(body []byte) (*remoting.Reply, error) {
	version, err := fastjson.Marshal(h.Settings.Version())
	if err != nil {
		return nil, err
	}
	return &remoting.Reply{Header: &protocol.GetBrokerConfigResponse{Version: string(version)}, Body: body}, nil
}

func (h *Handlers) cleanQueues(context.Context, remoting.Call[protocol.CleanExpiredConsumeQueueRequest]) (*remoting.Reply, error) {
	return &remoting.Reply{}, h.Store.DeleteExpired()
}

func (h *Handlers) cleanLog(context.Context, remoting.Call[protocol.DeleteExpiredCommitLogRequest]) (*remoting.Reply, error) {
	return &remoting.Reply{}, h.Store.DeleteExpired()
}

// statistics is VIEW_BROKER_STATS_DATA.
func (h *Handlers) statistics(_ context.Context, call remoting.Call[protocol.ViewBrokerStatsDataRequest]) (*remoting.Reply, error) {
	r := call.Header
	name, group, _ := splitKey(r.StatsKey)
	item, ok := h.Meter.Find(r.StatsName, name, group)
	if !ok {
		return nil, protocol.Errorf(protocol.SystemError, "the stats <%s> <%s> not exist", r.StatsName, r.StatsKey)
	}
	minute, hour, day := h.Meter.Spans(item)
	span := func(f meter.Figures) protocol.BrokerStatsItem {
		return protocol.BrokerStatsItem{Sum: f.Sum, Tps: f.TPS, Avgpt: f.Average}
	}
	return jsonReply(protocol.BrokerStatsData{StatsDay: span(day), StatsHour: span(hour), StatsMinute: span(minute)})
}

func jsonReply(body any) (*remoting.Reply, error) {
	text, err := fastjson.Marshal(body)
	if err != nil {
		return nil, err
	}
	return &remoting.Reply{Body: text}, nil
}
