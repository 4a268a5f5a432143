package client

import (
	"bytes"
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/broker/group"
	"github.com/quorate/quorate/broker/internal/memlog"
	"github.com/quorate/quorate/broker/topic"
	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
)

// conn is a client's connection that keeps what it is told.
type conn struct {
	id     uint64
	answer func(*protocol.Command) (*protocol.Command, error)

	mu     sync.Mutex
	told   []string // groups of code 40
	closed bool
}

func (c *conn) ID() uint64                 { return c.id }
func (c *conn) RemoteAddr() netip.AddrPort { return netip.MustParseAddrPort("10.0.0.1:5000") }

func (c *conn) Close(error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}

func (c *conn) Invoke(_ context.Context, cmd *protocol.Command) (*protocol.Command, error) {
	return c.answer(cmd)
}

func (c *conn) InvokeOneway(cmd *protocol.Command) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = append(c.told, cmd.Ext.Get("consumerGroup"))
	return nil
}

// notices counts and forgets the change notices.
func (c *conn) notices() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.told)
	c.told = nil
	return n
}

type rig struct {
	*testing.T
	*Registry
	topics *topic.Table
	groups *group.Table
	log    *bytes.Buffer
}

func newRig(t *testing.T, change func(*Config)) *rig {
	t.Helper()
	files := memlog.New()
	topics, err := topic.Open(topic.DefaultSettings(), topic.DefaultReloadable(), files, time.Now)
	require.NoError(t, err)
	groups, err := group.Open(group.DefaultReloadable(), files, time.Now, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	cfg := DefaultConfig()
	if change != nil {
		change(&cfg)
	}
	log := &bytes.Buffer{}
	return &rig{t, New(cfg, groups, topics, slog.New(slog.NewTextHandler(log, nil))), topics, groups, log}
}

// beatOf sends a heartbeat of one consumer group with topic:expression:version subscriptions.
func (r *rig) beatOf(c *conn, clientID, group string, subs ...protocol.SubscriptionData) bool {
	r.Helper()
	return r.beatWith(c, clientID, &protocol.HeartbeatData{ConsumerDataSet: []protocol.ConsumerData{{
		GroupName: group, ConsumeType: protocol.ConsumePassively, MessageModel: protocol.Clustering, SubscriptionDataSet: subs,
	}}})
}

func (r *rig) beatWith(c *conn, clientID string, b *protocol.HeartbeatData) bool {
	r.Helper()
	b.ClientID = clientID
	changed, err := r.beat(Member{Conn: c, ClientID: clientID, LastUpdate: time.Now().UnixMilli()}, b)
	require.NoError(r, err)
	return changed
}

func sub(topic, expression string, version int64) protocol.SubscriptionData {
	return protocol.SubscriptionData{Topic: topic, SubString: expression, SubVersion: version}
}

func (r *rig) ids(group string) (out []string) {
	_, members, _ := r.Consumers(group)
	for _, m := range members {
		out = append(out, m.ClientID)
	}
	return out
}

func TestMembersAreToldWhenTheGroupChanges(t *testing.T) {
	r := newRig(t, nil)
	a, b := &conn{id: 1}, &conn{id: 2}
	r.beatOf(a, "a", "g", sub("T", "*", 1))
	require.Equal(t, 1, a.notices(), "it joined")
	require.NotNil(t, r.topics.Get("%RETRY%g"))
	r.beatOf(a, "a", "g", sub("T", "*", 1))
	require.Zero(t, a.notices(), "nothing new")
	r.beatOf(b, "b", "g", sub("T", "*", 1))
	require.Equal(t, []int{1, 1}, []int{a.notices(), b.notices()})
	r.beatOf(a, "a", "g", sub("T", "TagA", 2))
	require.Zero(t, a.notices(), "a newer expression of a known topic is not told")
	require.Equal(t, "TagA", r.Subscription([]byte("g"), []byte("T")).SubString)
	r.beatOf(a, "a", "g", sub("T", "TagB", 1))
	require.Equal(t, "TagA", r.Subscription([]byte("g"), []byte("T")).SubString, "an older one does not replace it")
	r.beatOf(a, "a", "g", sub("T", "TagA", 2), sub("U", "*", 1))
	require.Equal(t, 1, b.notices(), "a new topic is")
	r.beatOf(a, "a", "g", sub("T", "TagA", 2))
	require.Equal(t, 1, b.notices(), "and a dropped one")
	require.Nil(t, r.Subscription([]byte("g"), []byte("U")))
	r.Closed(a)
	require.Equal(t, 1, b.notices())
	require.Equal(t, []string{"b"}, r.ids("g"))
	r.Closed(b)
	require.False(t, r.Online([]byte("g")))
	require.Nil(t, r.Subscription([]byte("g"), []byte("T")))
	require.Zero(t, r.Connected())
}

func TestBroadcastAndSwitchedOffGroupsAreNotTold(t *testing.T) {
	r := newRig(t, nil)
	a := &conn{id: 1}
	r.beatWith(a, "a", &protocol.HeartbeatData{ConsumerDataSet: []protocol.ConsumerData{{GroupName: "bc", MessageModel: protocol.Broadcasting}}})
	require.Zero(t, a.notices())
	c := group.Default("quiet")
	c.NotifyIDsChangedEnable = false
	require.NoError(t, r.groups.Put(c))
	r.beatOf(a, "a", "quiet", sub("T", "*", 1))
	require.Zero(t, a.notices())
	off := newRig(t, func(c *Config) { c.NotifyChanges = false })
	off.beatOf(a, "a", "g", sub("T", "*", 1))
	require.Zero(t, a.notices())
}

func TestPullConsumersAreDroppedWhenRejected(t *testing.T) {
	r := newRig(t, func(c *Config) { c.RejectPull, c.RegisterProducers = true, false })
	a := &conn{id: 1}
	r.beatWith(a, "a", &protocol.HeartbeatData{
		ConsumerDataSet: []protocol.ConsumerData{{GroupName: "pull", ConsumeType: protocol.ConsumeActively}},
		ProducerDataSet: []protocol.ProducerData{{GroupName: "pg"}},
	})
	require.Empty(t, r.ids("pull"))
	require.Empty(t, r.Producers("pg"))
}

func TestLightHeartbeats(t *testing.T) {
	r := newRig(t, nil)
	a := &conn{id: 1}
	full := func(print int32, light bool, subs ...protocol.SubscriptionData) bool {
		return r.beatWith(a, "a", &protocol.HeartbeatData{HeartbeatFingerprint: new(print), WithoutSub: new(light), ConsumerDataSet: []protocol.ConsumerData{{
			GroupName: "g", ConsumeType: protocol.ConsumePassively, MessageModel: protocol.Clustering, SubscriptionDataSet: subs,
		}}})
	}
	require.True(t, r.beatOf(a, "a", "old", sub("T", "*", 1)), "a heartbeat without fingerprint always asks")
	require.True(t, full(7, true), "nothing is known of the group: the client must say it")
	require.False(t, full(7, false, sub("T", "TagA", 1)))
	require.False(t, full(7, true))
	require.Equal(t, "TagA", r.Subscription([]byte("g"), []byte("T")).SubString, "a light heartbeat keeps what is known")
	require.True(t, full(8, true), "another fingerprint asks for all")
}

// CASES 132: consumers that came by the light heartbeat leave with their connection like any other.
func TestLightHeartbeatMembersLeaveWithTheirConnection(t *testing.T) {
	r := newRig(t, nil)
	other := &conn{id: 9999}
	r.beatOf(other, "other", "g", sub("T", "*", 1))
	other.notices()
	for i := range 1000 {
		c := &conn{id: uint64(i + 1)}
		r.beatWith(c, "a", &protocol.HeartbeatData{HeartbeatFingerprint: new(int32(7)), WithoutSub: new(true), ConsumerDataSet: []protocol.ConsumerData{{GroupName: "g"}}})
		require.Equal(t, []string{"a", "other"}, r.ids("g"))
		r.Closed(c)
		require.Equal(t, []string{"other"}, r.ids("g"))
		require.Equal(t, 2, other.notices(), "told of coming and going")
	}
	require.Equal(t, 1, r.Connected())
}

// CASES 118: members of one group that subscribe differently are accepted, and both are named in a warning.
func TestDifferentSubscriptionsInOneGroupAreReported(t *testing.T) {
	r := newRig(t, nil)
	a, b := &conn{id: 1}, &conn{id: 2}
	r.beatOf(a, "client-a", "g", sub("T", "TagA || TagB", 1))
	r.beatOf(b, "client-b", "g", sub("T", "TagB||TagA", 1))
	require.Zero(t, r.Conflicts(), "the same tags in another order are the same")
	r.beatOf(b, "client-b", "g", sub("T", "TagC", 2))
	require.Equal(t, int64(1), r.Conflicts())
	require.Contains(t, r.log.String(), "client-a")
	require.Contains(t, r.log.String(), "client-b")
	require.Contains(t, r.log.String(), "TagC")
	r.log.Reset()
	for range 100 {
		r.beatOf(a, "client-a", "g", sub("T", "TagA || TagB", 1))
		r.beatOf(b, "client-b", "g", sub("T", "TagC", 2))
	}
	require.Empty(t, r.log.String(), "said once, counted always")
	require.Equal(t, int64(201), r.Conflicts())
	r.Closed(a)
	r.beatOf(b, "client-b", "g", sub("T", "TagC", 2))
	require.Equal(t, int64(201), r.Conflicts())
}

func TestConnectionsWithoutHeartbeatAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Registry.Run(ctx) }()
		dead, alive := &conn{id: 1}, &conn{id: 2}
		r.beatOf(dead, "dead", "g", sub("T", "*", 1))
		r.beatWith(dead, "dead", &protocol.HeartbeatData{ProducerDataSet: []protocol.ProducerData{{GroupName: "pg"}}})
		for range 6 {
			r.beatOf(alive, "alive", "g", sub("T", "*", 1))
			time.Sleep(30 * time.Second)
		}
		synctest.Wait()
		require.True(t, dead.closed)
		require.False(t, alive.closed)
		require.Equal(t, []string{"alive"}, r.ids("g"))
		require.Empty(t, r.ProducerGroups())
		cancel()
		require.NoError(t, <-done)
	})
}

// CASES 116: queues of an orderly consumer that is gone can be taken at once; of one that is silent after a minute.
func TestQueueLocksEndWithTheirOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		a, b := &conn{id: 1}, &conn{id: 2}
		r.beatOf(a, "a", "g", sub("T", "*", 1))
		r.beatOf(b, "b", "g", sub("T", "*", 1))
		q := []Queue{{"T", "b", 0}, {"T", "b", 1}}
		take := func(client string) int { return len(r.locks.take("g", client, q, time.Now())) }
		require.Equal(t, 2, take("a"))
		require.Zero(t, take("b"))
		require.True(t, r.OrderLocked("g"))
		require.False(t, r.OrderLocked("h"))

		r.Closed(a)
		require.False(t, r.OrderLocked("g"))
		require.Equal(t, 2, take("b"), "closed: at once")

		r.locks.give("g", "a", q)
		require.Zero(t, take("a"), "only the owner gives back")
		r.locks.give("g", "b", q[:1])
		require.Equal(t, 1, take("a"), "unlocked: at once")

		for range 3 {
			time.Sleep(59 * time.Second)
			require.Equal(t, []int{1, 1}, []int{take("a"), take("b")}, "asking again keeps it")
		}
		time.Sleep(lockLife)
		require.Equal(t, 1, take("b"))
		time.Sleep(lockLife + time.Millisecond)
		require.False(t, r.OrderLocked("g"))
		require.Equal(t, 2, take("a"), "silent: after a minute")
		time.Sleep(2 * lockLife)
		r.locks.expire(time.Now())
		require.Empty(t, r.locks.queues, "nothing is kept of dead locks")
	})
}

// A client that came back on a new connection before its old one was found dead keeps its locks when that one closes.
func TestLocksStayWithAClientThatHasReconnected(t *testing.T) {
	r := newRig(t, nil)
	old, fresh := &conn{id: 1}, &conn{id: 2}
	r.beatOf(old, "a", "g", sub("T", "*", 1))
	require.Len(t, r.locks.take("g", "a", []Queue{{"T", "b", 0}}, time.Now()), 1)
	r.beatOf(fresh, "a", "g", sub("T", "*", 1))
	h := &Handlers{Registry: r.Registry}
	reply, err := h.consumerList(t.Context(), remoting.Call[protocol.GetConsumerListByGroupRequest]{Header: &protocol.GetConsumerListByGroupRequest{ConsumerGroup: "g"}})
	require.NoError(t, err)
	require.JSONEq(t, `{"consumerIdList":["a"]}`, string(reply.Body), "one client, listed once")
	r.Closed(old)
	require.True(t, r.OrderLocked("g"))
	r.Closed(fresh)
	require.False(t, r.OrderLocked("g"))
}

func TestGoHeartbeatsAreUnderstood(t *testing.T) {
	var b protocol.HeartbeatData
	require.NoError(t, fastjson.Unmarshal([]byte(`{"clientID":"c","consumerDataSet":[{"groupName":"g","consumeType":"CONSUME_PASSIVELY","messageModel":"CLUSTERING",`+
		`"consumeFromWhere":"CONSUME_FROM_LAST_OFFSET","subscriptionDataSet":[{"classFilterMode":false,"topic":"T","subString":"TagA","tagsSet":["TagA"],`+
		`"codeSet":["2598919"],"subVersion":1796008289713000000,"expressionType":"TAG"}],"unitMode":false}],"producerDataSet":[]}`), &b))
	r := newRig(t, nil)
	require.True(t, r.beatWith(&conn{id: 1}, "c", &b))
	s := r.Subscription([]byte("g"), []byte("T"))
	require.Equal(t, []int64{2598919}, s.Codes)
	require.Equal(t, int64(1796008289713000000), s.Version)
}

func TestRequestsAreCarriedToTheConsumerAndBack(t *testing.T) {
	r := newRig(t, nil)
	var got *protocol.Command
	c := &conn{id: 1, answer: func(cmd *protocol.Command) (*protocol.Command, error) {
		got = cmd
		return &protocol.Command{Code: 0, Body: []byte(`{"messageQueueTable":{{"brokerName":"b","queueId":1,"topic":"T"}:5}}`)}, nil
	}}
	r.beatOf(c, "c", "g", sub("T", "*", 1))
	h := &Handlers{Registry: r.Registry}
	reply, err := h.runningInfo(t.Context(), remoting.Call[protocol.GetConsumerRunningInfoRequest]{Header: &protocol.GetConsumerRunningInfoRequest{ConsumerGroup: "g", ClientID: "c", JstackEnable: true}})
	require.NoError(t, err)
	require.Equal(t, "true", got.Ext.Get("jstackEnable"))
	require.Contains(t, string(reply.Body), "messageQueueTable")

	reply, err = h.consumerStatus(t.Context(), remoting.Call[protocol.GetConsumerStatusRequest]{Header: &protocol.GetConsumerStatusRequest{Topic: "T", Group: "g"}})
	require.NoError(t, err)
	require.Equal(t, int32(protocol.CodeGetConsumerStatusFromClient), got.Code)
	var status protocol.GetConsumerStatusBody
	require.NoError(t, fastjson.Unmarshal(reply.Body, &status))
	require.Equal(t, int64(5), status.ConsumerTable["c"][protocol.MessageQueue{Topic: "T", BrokerName: "b", QueueID: 1}])

	for want, err := range map[protocol.ResponseCode]error{protocol.ConsumeMsgTimeout: context.DeadlineExceeded, protocol.ConsumerNotOnline: remoting.ErrClosed} {
		c.answer = func(*protocol.Command) (*protocol.Command, error) { return nil, err }
		_, err := h.runningInfo(t.Context(), remoting.Call[protocol.GetConsumerRunningInfoRequest]{Header: &protocol.GetConsumerRunningInfoRequest{ConsumerGroup: "g", ClientID: "c"}})
		var e *protocol.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, want, e.Code)
	}
}

func TestSubscriptionLookupAllocatesNothing(t *testing.T) {
	r := newRig(t, nil)
	r.beatOf(&conn{id: 1}, "c", "g", sub("T", "*", 1))
	g, topic := []byte("g"), []byte("T")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if r.Subscription(g, topic) == nil || !r.Online(g) {
			panic("not found")
		}
	}))
}

func TestManyClientsAtOnce(t *testing.T) {
	r := newRig(t, nil)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			c := &conn{id: uint64(i + 1)}
			for j := range 20 {
				r.beatOf(c, strconv.Itoa(i), "g"+strconv.Itoa(j%3), sub("T", "*", 1))
				_ = r.Subscription([]byte("g0"), []byte("T"))
				_ = r.GroupsOfTopic("T")
			}
			if i%2 == 0 {
				r.Closed(c)
			}
		})
	}
	wg.Wait()
	require.Equal(t, 25, r.Connected())
	ids := r.ids("g0")
	require.Len(t, slices.Compact(ids), 25)
}

func BenchmarkSubscription(b *testing.B) {
	r := newRig(&testing.T{}, nil)
	r.beatOf(&conn{id: 1}, "c", "g", sub("T", "*", 1))
	g, topic := []byte("g"), []byte("T")
	b.ReportAllocs()
	for b.Loop() {
		_ = r.Subscription(g, topic)
	}
}
