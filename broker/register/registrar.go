// Package register announces this broker and its topics to the NameServers: at once when it starts and when a topic changes,
// then periodically, and takes it back when it stops. It asks each NameServer every few seconds whether it still knows the
// broker, so that one which restarted has the routes again in seconds and not at the next period.
package register

import (
	"context"
	"fmt"
	"hash/crc32"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/broker/topic"
	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/internal/watermark"
	"github.com/quorate/quorate/protocol"
)

// Config of a registrar.
type Config struct {
	NameServers []string      `conf:"namesrvAddr,important"`
	Period      time.Duration `conf:"registerNameServerPeriod,ms" bounds:"1000..3600000"`
	Timeout     time.Duration `conf:"registerBrokerTimeoutMills,ms" bounds:"100..600000"`
	Force       bool          `conf:"forceRegister"`
}

// DefaultConfig has RocketMQ's defaults.
func DefaultConfig() Config {
	return Config{Period: 30 * time.Second, Timeout: 24 * time.Second, Force: true}
}

// Bounds of the period between full registrations (BrokerController), and our own times.
const (
	periodMin         = 10 * time.Second
	periodMax         = time.Minute
	probeInterval     = 5 * time.Second // between questions whether a NameServer still knows us
	retryPauseMin     = 50 * time.Millisecond
	retryPauseMax     = time.Second
	unregisterTimeout = 3 * time.Second
	awaitMax          = 3 * time.Second // of an operator's request for an announcement
)

// Identity is who announces itself.
type Identity struct {
	Cluster, Broker string
	ID              int64
	Addr, HAAddr    string // "host:port" that clients and replicas use
	Acting          bool   // enableSlaveActingMaster: the NameServer drops a member that is silent for AliveTimeout
	AliveTimeout    time.Duration
	Permission      int32 // brokerPermission at the start: bits that it lacks are announced as lacking in every topic
}

// Topics is the topic table (topic.Table).
type Topics interface {
	Snapshot() *topic.Snapshot
	Wait(ctx context.Context, count int64) error
	MarkOrdered(names []string) error
}

// Invoker sends requests to a NameServer (remoting.Client).
type Invoker interface {
	Invoke(ctx context.Context, addr string, cmd *protocol.Command) (*protocol.Command, error)
}

// Registrar announces one broker. Safe for concurrent use.
type Registrar struct {
	cfg     Config
	self    Identity
	topics  Topics
	invoker Invoker
	logger  *slog.Logger
	targets []*target
	any     chan struct{}
	all     chan struct{}
	waiting atomic.Int64
	allowed atomic.Int32 // brokerPermission
	master  atomic.Pointer[protocol.RegisterBrokerResponse]
	once    sync.Once
}

// target is one NameServer and what it knows of us.
type target struct {
	addr       string
	known      watermark.Watermark // changes of the table that it has
	registered atomic.Bool
	stale      atomic.Bool // it was told what holds no more
	ever       bool
	sent       *topic.Snapshot
	fullAt     time.Time
	failing    bool
}

// New starts nothing.
func New(cfg Config, self Identity, topics Topics, invoker Invoker, logger *slog.Logger) *Registrar {
	r := &Registrar{
		cfg: cfg, self: self, topics: topics, invoker: invoker, logger: logger, any: make(chan struct{}), all: make(chan struct{}),
	}
	for _, addr := range cfg.NameServers {
		r.targets = append(r.targets, &target{addr: addr})
	}
	r.waiting.Store(int64(len(r.targets)))
	r.allowed.Store(self.Permission)
	if len(r.targets) == 0 {
		r.once.Do(func() { close(r.any) })
		close(r.all)
	}
	return r
}

// Ready is closed once any NameServer knows the broker, All once every one does; both at once when there is none.
func (r *Registrar) Ready() <-chan struct{} { return r.any }

// All is closed once every NameServer knows the broker.
func (r *Registrar) All() <-chan struct{} { return r.all }

// Registered counts the NameServers that know the broker now.
func (r *Registrar) Registered() (now, of int) {
	for _, t := range r.targets {
		if t.registered.Load() {
			now++
		}
	}
	return now, len(r.targets)
}

// Await waits until each NameServer that knows the broker has a change of the topic table, at most 3 s.
func (r *Registrar) Await(ctx context.Context, change int64) {
	ctx, cancel := context.WithTimeout(ctx, awaitMax)
	defer cancel()
	for _, t := range r.targets {
		if t.registered.Load() {
			if err := t.known.Wait(ctx, change); err != nil {
				r.logger.Warn("NameServer does not have the latest topics yet", "namesrv", t.addr, "error", err)
			}
		}
	}
}

// Upstream are the main and the HA address of the group's master, as a NameServer last told a replica; "" before.
func (r *Registrar) Upstream() (masterAddr, haAddr string) {
	if m := r.master.Load(); m != nil {
		return m.MasterAddr, m.HAServerAddr
	}
	return "", ""
}

// Permit replaces brokerPermission. The NameServers hear of it with the next question, within seconds.
func (r *Registrar) Permit(permission int32) {
	if r.allowed.Swap(permission) != permission {
		for _, t := range r.targets {
			t.stale.Store(true)
		}
	}
}

// Run announces until ctx ends, and takes the broker back from every NameServer then.
func (r *Registrar) Run(ctx context.Context) error {
	if len(r.targets) == 0 {
		r.logger.Warn("no NameServer is configured: clients find this broker only by its address")
	}
	var wg sync.WaitGroup
	for _, t := range r.targets {
		wg.Go(func() { r.serve(ctx, t) })
	}
	<-ctx.Done()
	wg.Wait()
	return nil
}

func (r *Registrar) serve(ctx context.Context, t *target) {
	pause := retryPauseMin
	for ctx.Err() == nil {
		s := r.topics.Snapshot()
		if err := r.refresh(ctx, t, s); err != nil {
			if ctx.Err() != nil {
				break
			}
			t.registered.Store(false) // the next attempt sends everything
			if !t.failing {
				t.failing = true
				r.logger.Warn("broker not registered, trying again", "namesrv", t.addr, "error", err)
			}
			sleep(ctx, pause)
			pause = min(2*pause, retryPauseMax)
			continue
		}
		pause = retryPauseMin
		r.succeeded(t, s)
		next, cancel := context.WithTimeout(ctx, probeInterval)
		_ = r.topics.Wait(next, s.Change) // ends with a change, or with the time of the next question
		cancel()
	}
	r.unregister(context.WithoutCancel(ctx), t)
}

func (r *Registrar) succeeded(t *target, s *topic.Snapshot) {
	t.sent = s
	t.known.Advance(s.Change)
	t.failing = false
	if !t.registered.Swap(true) {
		r.logger.Info("broker registered", "namesrv", t.addr, "broker", r.self.Broker, "address", r.self.Addr)
	}
	if !t.ever {
		t.ever = true
		r.once.Do(func() { close(r.any) })
		if r.waiting.Add(-1) == 0 {
			close(r.all)
		}
	}
}

// refresh brings one NameServer up to date: with the whole table, with what changed, or by asking whether it needs anything.
func (r *Registrar) refresh(ctx context.Context, t *target, s *topic.Snapshot) error {
	if t.stale.Swap(false) || t.sent == nil || !t.registered.Load() || r.cfg.Force && time.Since(t.fullAt) >= min(max(r.cfg.Period, periodMin), periodMax) {
		return r.full(ctx, t, s)
	}
	// A NameServer that restarted meanwhile must not take a part for the whole: it is asked first.
	changed, err := r.query(ctx, t, t.sent.Version)
	if err != nil {
		return err
	}
	part := difference(s.Topics, t.sent.Topics)
	switch {
	case changed:
		return r.full(ctx, t, s)
	case s.Change == t.sent.Change:
		return nil
	case len(part) == 0:
		return r.full(ctx, t, s)
	}
	return r.register(ctx, t, s.Version, part)
}

// difference lists the topics of a that are not the same in b; a *topic.Config is immutable, so that its address tells.
func difference(a, b map[string]*topic.Config) map[string]*topic.Config {
	out := map[string]*topic.Config{}
	for name, c := range a {
		if b[name] != c {
			out[name] = c
		}
	}
	return out
}

func (r *Registrar) full(ctx context.Context, t *target, s *topic.Snapshot) error {
	if err := r.register(ctx, t, s.Version, s.Topics); err != nil {
		return err
	}
	t.fullAt = time.Now()
	return nil
}

type registerBody struct {
	FilterServers []string  `json:"filterServerList"`
	Wrapper       tableBody `json:"topicConfigSerializeWrapper"`
}

type tableBody struct {
	DataVersion    protocol.DataVersion     `json:"dataVersion"`
	MappingVersion protocol.DataVersion     `json:"mappingDataVersion"`
	Topics         map[string]*topic.Config `json:"topicConfigTable"`
	MappingDetails map[string]string        `json:"topicQueueMappingDetailMap"`
	MappingInfos   map[string]string        `json:"topicQueueMappingInfoMap"`
}

func (r *Registrar) register(ctx context.Context, t *target, version protocol.DataVersion, topics map[string]*topic.Config) error {
	body, err := fastjson.Marshal(registerBody{FilterServers: []string{}, Wrapper: tableBody{
		DataVersion: version, Topics: r.permitted(topics), MappingDetails: map[string]string{}, MappingInfos: map[string]string{},
	}})
	if err != nil {
		return fmt.Errorf("register: %w", err)
	}
	crc := int32(crc32.ChecksumIEEE(body) & 0x7FFFFFFF)
	request := &protocol.RegisterBrokerRequest{
		BrokerName: r.self.Broker, BrokerAddr: r.self.Addr, ClusterName: r.self.Cluster, HAServerAddr: r.self.HAAddr, BrokerID: r.self.ID,
		BodyCRC32: &crc,
	}
	if r.self.Acting {
		timeout := r.self.AliveTimeout.Milliseconds()
		request.EnableActingMaster, request.HeartbeatTimeoutMillis = &r.self.Acting, &timeout
	}
	answer, err := r.ask(ctx, t, request, body)
	if err != nil {
		return fmt.Errorf("register: %w", err)
	}
	if r.self.ID != 0 {
		var master protocol.RegisterBrokerResponse
		if err := protocol.DecodeHeader(answer.Ext, &master); err != nil {
			return fmt.Errorf("register: %w", err)
		}
		if master.MasterAddr != "" {
			r.master.Store(&master)
		}
	}
	if len(answer.Body) == 0 {
		return nil
	}
	var kv protocol.KVTable
	if err := fastjson.Unmarshal(answer.Body, &kv); err != nil {
		return fmt.Errorf("register: order topics: %w", err)
	}
	if err := r.topics.MarkOrdered(slices.Collect(maps.Keys(kv.Table))); err != nil {
		return fmt.Errorf("register: order topics: %w", err)
	}
	return nil
}

// permitted takes from topics what the whole broker is not permitted.
func (r *Registrar) permitted(topics map[string]*topic.Config) map[string]*topic.Config {
	const rw = topic.PermRead | topic.PermWrite
	allowed := r.allowed.Load()
	if allowed&rw == rw {
		return topics
	}
	out := make(map[string]*topic.Config, len(topics))
	for name, c := range topics {
		masked := *c
		masked.Perm &= allowed
		out[name] = &masked
	}
	return out
}

// query asks whether a NameServer has another version of our table than this; it counts as a sign of life too.
func (r *Registrar) query(ctx context.Context, t *target, version protocol.DataVersion) (changed bool, err error) {
	body, err := fastjson.Marshal(version)
	if err != nil {
		return false, err
	}
	answer, err := r.ask(ctx, t, &protocol.QueryDataVersionRequest{
		BrokerName: r.self.Broker, BrokerAddr: r.self.Addr, ClusterName: r.self.Cluster, BrokerID: r.self.ID,
	}, body)
	if err != nil {
		return false, fmt.Errorf("query data version: %w", err)
	}
	var h protocol.QueryDataVersionResponse
	if err := protocol.DecodeHeader(answer.Ext, &h); err != nil {
		return false, fmt.Errorf("query data version: %w", err)
	}
	return h.Changed, nil
}

func (r *Registrar) unregister(ctx context.Context, t *target) {
	if !t.registered.Swap(false) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, unregisterTimeout)
	defer cancel()
	_, err := r.ask(ctx, t, &protocol.UnRegisterBrokerRequest{
		BrokerName: r.self.Broker, BrokerAddr: r.self.Addr, ClusterName: r.self.Cluster, BrokerID: r.self.ID,
	}, nil)
	if err != nil {
		r.logger.Warn("broker not taken back: the NameServer finds out by itself", "namesrv", t.addr, "error", err)
	}
}

// ask invokes one request; an answer other than success is an error.
func (r *Registrar) ask(ctx context.Context, t *target, h protocol.Request, body []byte) (*protocol.Command, error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	answer, err := r.invoker.Invoke(ctx, t.addr, protocol.NewRequest(h, body))
	if err != nil {
		return nil, err
	}
	if answer.Code != int32(protocol.Success) {
		return nil, &protocol.Error{Code: protocol.ResponseCode(answer.Code), Remark: string(answer.Remark)}
	}
	return answer, nil
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
