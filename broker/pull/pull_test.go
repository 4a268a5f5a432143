package pull_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/broker/group"
	"github.com/quorate/quorate/broker/internal/rig"
	"github.com/quorate/quorate/broker/pull"
	"github.com/quorate/quorate/broker/topic"
	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
	"github.com/quorate/quorate/store"
)

const (
	commit    = 1
	suspend   = 2
	inRequest = 4 // the request carries its subscription
)

func from(offset int64, change ...func(*protocol.PullMessageRequest)) *protocol.PullMessageRequest {
	r := &protocol.PullMessageRequest{
		ConsumerGroup: "g", Topic: "T", QueueOffset: offset, MaxMsgNums: 32, SysFlag: inRequest, Subscription: "*", SuspendTimeoutMillis: 20_000,
	}
	for _, c := range change {
		c(r)
	}
	return r
}

func flags(f int32) func(*protocol.PullMessageRequest) {
	return func(r *protocol.PullMessageRequest) { r.SysFlag = f }
}

func tagged(expression string) func(*protocol.PullMessageRequest) {
	return func(r *protocol.PullMessageRequest) { r.Subscription = expression }
}

func start(tb testing.TB, o rig.Options) *rig.Rig {
	tb.Helper()
	o.Async = true
	r := rig.New(tb, o)
	require.NoError(tb, r.Topics.Put(topic.Config{Name: "T", ReadQueues: 4, WriteQueues: 4, Perm: 6, SysFlag: 2}))
	return r
}

// fill stores one message per tag into queue 0.
func fill(tb testing.TB, r *rig.Rig, tags ...string) {
	tb.Helper()
	for i, tag := range tags {
		var p message.Properties
		if tag != "" {
			p = p.Append(message.Tags, tag)
		}
		a := r.Invoke(tb, &protocol.SendMessageRequestV2{
			ProducerGroup: "pg", Topic: "T", DefaultTopic: topic.Template, DefaultTopicQueueNums: 4, Properties: string(p),
		}, fmt.Appendf(nil, "%s-%d", tag, i))
		require.Equal(tb, int32(0), a.Code, "%s", a.Remark)
	}
	r.Dispatched(tb)
}

// bodies decodes the messages of an answer.
func bodies(tb testing.TB, a *protocol.Command) (out []string) {
	tb.Helper()
	for b := a.Body; len(b) > 0; {
		record, err := message.DecodeRecord(b, true)
		require.NoError(tb, err)
		out = append(out, string(record.Body))
		b = b[record.Size:]
	}
	return out
}

// offsets are next, min and max of an answer; the Java client needs all four fields on every code.
func offsets(tb testing.TB, a *protocol.Command) [3]int64 {
	tb.Helper()
	var h protocol.PullMessageResponse
	require.NoError(tb, protocol.DecodeHeader(a.Ext, &h))
	for _, key := range []string{"suggestWhichBrokerId", "nextBeginOffset", "minOffset", "maxOffset"} {
		_, ok := a.Ext.Lookup(key)
		require.True(tb, ok, "%s is missing", key)
	}
	return [3]int64{h.NextBeginOffset, h.MinOffset, h.MaxOffset}
}

func TestPullAnswersRecordsAsTheyAre(t *testing.T) {
	r := start(t, rig.Options{})
	fill(t, r, "a", "b", "c")
	a := r.Invoke(t, from(1), nil)
	require.Equal(t, int32(0), a.Code)
	require.Equal(t, "FOUND", string(a.Remark))
	require.Equal(t, []string{"b-1", "c-2"}, bodies(t, a))
	require.Equal(t, [3]int64{3, 0, 3}, offsets(t, a))
	require.Equal(t, []string{"2", "0"}, []string{a.Ext.Get("topicSysFlag"), a.Ext.Get("groupSysFlag")})
	require.Equal(t, int64(3), r.Offsets.Pulled("g", "T", 0))
	require.Equal(t, int64(-1), r.Offsets.Query("g", "T", 0), "a pull without the commit flag commits nothing")

	a = r.Invoke(t, &protocol.LitePullMessageRequest{PullMessageRequest: *from(0, func(q *protocol.PullMessageRequest) { q.MaxMsgNums = 1 })}, nil)
	require.Equal(t, []string{"a-0"}, bodies(t, a))
}

// The order of PROTOCOL §3.7.
func TestPullChecksInOrder(t *testing.T) {
	r := start(t, rig.Options{Groups: func(s *group.Reloadable) { s.AutoCreate = false }})
	require.NoError(t, r.Topics.Put(topic.Config{Name: "WriteOnly", ReadQueues: 1, WriteQueues: 1, Perm: 2}))
	disabled := group.Default("disabled")
	disabled.ConsumeEnable = false
	narrow := group.Default("narrow") // no broadcast
	narrow.ConsumeBroadcastEnable = false
	for _, c := range []group.Config{group.Default("g"), group.Default("barred"), disabled, narrow} {
		require.NoError(t, r.Groups.Put(c))
	}
	require.NoError(t, r.Groups.SetReadForbidden("barred", "T", true))
	beat(t, r, "g", protocol.Clustering, protocol.SubscriptionData{Topic: "T", SubString: "*", SubVersion: 5}, protocol.SubscriptionData{Topic: "S", SubString: "a", SubVersion: 5, ExpressionType: "SQL92"})
	beat(t, r, "narrow", protocol.Broadcasting, protocol.SubscriptionData{Topic: "T", SubString: "*"})
	beat(t, r, "barred", protocol.Clustering, protocol.SubscriptionData{Topic: "T", SubString: "*"})
	group := func(name string) func(*protocol.PullMessageRequest) {
		return func(q *protocol.PullMessageRequest) { q.ConsumerGroup = name }
	}
	named := func(name string) func(*protocol.PullMessageRequest) {
		return func(q *protocol.PullMessageRequest) { q.Topic = name }
	}
	for _, c := range []struct {
		name      string
		live      func(*pull.Reloadable)
		request   protocol.Request
		code      protocol.ResponseCode
		forbidden string
	}{
		{"broker not readable", func(l *pull.Reloadable) { l.BrokerPermission = 2 }, from(0, group("nobody")), 16, "1"},
		{"lite pull disabled", func(l *pull.Reloadable) { l.LitePull = false }, &protocol.LitePullMessageRequest{PullMessageRequest: *from(0, group("nobody"))}, 16, "1"},
		{"lite pull disabled does not concern pull", func(l *pull.Reloadable) { l.LitePull = false }, from(0), 19, ""},
		{"group missing", nil, from(0, group("nobody"), named("nothing")), 26, ""},
		{"group disabled", nil, from(0, group("disabled"), named("nothing")), 16, "2"},
		{"topic missing", nil, from(0, named("nothing")), 17, ""},
		{"topic not readable", nil, from(0, named("WriteOnly"), func(q *protocol.PullMessageRequest) { q.QueueID = 9 }), 16, "3"},
		{"queue id", nil, from(0, tagged("||"), func(q *protocol.PullMessageRequest) { q.QueueID = 4 }), 29, ""},
		{"negative queue id", nil, from(0, func(q *protocol.PullMessageRequest) { q.QueueID = -1 }), 29, ""},
		{"expression", nil, from(0, tagged("||")), 23, ""},
		{"expression type", nil, from(0, func(q *protocol.PullMessageRequest) { q.ExpressionType = "XPATH" }), 23, ""},
		{"SQL92", nil, from(0, func(q *protocol.PullMessageRequest) { q.ExpressionType = "SQL92" }), 1, ""},
		{"group offline", nil, from(0, flags(0), group("disabled"), func(q *protocol.PullMessageRequest) { q.ConsumerGroup = "TOOLS_CONSUMER" }), 24, ""},
		{"broadcast disabled", nil, from(0, flags(0), group("narrow")), 16, "4"},
		{"reading forbidden", nil, from(0, flags(0), group("barred")), 16, "5"},
		{"not subscribed", nil, from(0, flags(0), named("TBW102")), 24, ""},
		{"subscription too old", nil, from(0, flags(0), func(q *protocol.PullMessageRequest) { q.SubVersion = 6 }), 25, ""},
		{"all well", nil, from(0, flags(0), func(q *protocol.PullMessageRequest) { q.SubVersion = 5 }), 19, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			live := pull.DefaultReloadable()
			if c.live != nil {
				c.live(&live)
			}
			r.Pull.Reload(live)
			a := r.Invoke(t, c.request, nil)
			require.Equal(t, c.code, protocol.ResponseCode(a.Code), "%s", a.Remark)
			require.Equal(t, c.forbidden, a.Ext.Get("forbiddenType"))
			offsets(t, a)
			require.NotEmpty(t, a.Remark)
		})
	}
}

// beat makes a group online.
func beat(tb testing.TB, r *rig.Rig, name, model string, subs ...protocol.SubscriptionData) {
	tb.Helper()
	body, err := fastjson.Marshal(protocol.HeartbeatData{
		ClientID: "c-" + name,
		ConsumerDataSet: []protocol.ConsumerData{{
			GroupName: name, ConsumeType: protocol.ConsumePassively, MessageModel: model,
			ConsumeFromWhere: protocol.ConsumeFromLastOffset, SubscriptionDataSet: subs,
		}},
	})
	require.NoError(tb, err)
	a := r.Invoke(tb, &protocol.HeartbeatRequest{}, body)
	require.Equal(tb, int32(0), a.Code, "%s", a.Remark)
}

func TestStatusesCodesAndNextOffsets(t *testing.T) {
	r := start(t, rig.Options{})
	fill(t, r, "a", "b", "c")
	for _, c := range []struct {
		name    string
		request *protocol.PullMessageRequest
		code    protocol.ResponseCode
		remark  string
		offsets [3]int64
	}{
		{"at the end", from(3), 19, "OFFSET_OVERFLOW_ONE", [3]int64{3, 0, 3}},
		{"beyond the end", from(9), 21, "OFFSET_OVERFLOW_BADLY", [3]int64{3, 0, 3}},
		{"below the begin", from(-1), 21, "OFFSET_TOO_SMALL", [3]int64{0, 0, 3}},
		{"nothing matches", from(0, tagged("zzz")), 20, "NO_MATCHED_MESSAGE", [3]int64{3, 0, 3}},
		{"no such queue yet, from 0", from(0, func(q *protocol.PullMessageRequest) { q.QueueID = 1 }), 19, "NO_MATCHED_LOGIC_QUEUE", [3]int64{0, 0, 0}},
		{"no such queue yet, from 7 (gotcha 17)", from(7, func(q *protocol.PullMessageRequest) { q.QueueID = 1 }), 21, "NO_MATCHED_LOGIC_QUEUE", [3]int64{0, 0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := r.Invoke(t, c.request, nil)
			require.Equal(t, c.code, protocol.ResponseCode(a.Code))
			require.Contains(t, []string{c.remark, "NO_MESSAGE_IN_QUEUE"}, string(a.Remark))
			require.Equal(t, c.offsets, offsets(t, a))
			require.Empty(t, a.Body)
		})
	}
}

// CASES 94.
func TestAPullFromMinusOneDoesNotRewindAGroup(t *testing.T) {
	r := start(t, rig.Options{})
	fill(t, r, "a", "b", "c")
	r.Offsets.Commit("g", "T", 0, 2)
	a := r.Invoke(t, from(-1), nil)
	require.Equal(t, protocol.PullOffsetMoved, protocol.ResponseCode(a.Code))
	require.Equal(t, int64(2), offsets(t, a)[0])
}

func TestAServerSideResetIsToldOnceAndKept(t *testing.T) {
	r := start(t, rig.Options{})
	fill(t, r, "a", "b", "c")
	r.Offsets.Commit("g", "T", 0, 3)
	r.Offsets.SetReset("g", "T", 0, 1)
	a := r.Invoke(t, from(3, flags(inRequest|commit|suspend), func(q *protocol.PullMessageRequest) { q.CommitOffset = 3 }), nil)
	require.Equal(t, protocol.PullOffsetMoved, protocol.ResponseCode(a.Code))
	require.Equal(t, "OFFSET_RESET", string(a.Remark))
	require.Equal(t, [3]int64{1, 0, 3}, offsets(t, a))
	require.Equal(t, int64(1), r.Offsets.Query("g", "T", 0), "the offset that the old position brought along does not undo the reset")
	a = r.Invoke(t, from(1), nil)
	require.Equal(t, []string{"b-1", "c-2"}, bodies(t, a))
}

func TestAPullCommitsWhatItBringsAlong(t *testing.T) {
	r := start(t, rig.Options{})
	fill(t, r, "a", "b", "c")
	r.Invoke(t, from(2, flags(inRequest|commit), func(q *protocol.PullMessageRequest) { q.CommitOffset = 2 }), nil)
	require.Equal(t, int64(2), r.Offsets.Query("g", "T", 0))
}

func TestTagsAreComparedExactly(t *testing.T) {
	r := start(t, rig.Options{})
	require.Equal(t, message.JavaHash("Aa"), message.JavaHash("BB"), "a real collision")
	fill(t, r, "Aa", "BB", "", "c", "Ünï")
	for expression, want := range map[string][]string{
		"Aa": {"Aa-0"}, "BB || c": {"BB-1", "c-3"}, "*": {"Aa-0", "BB-1", "-2", "c-3", "Ünï-4"}, "": {"Aa-0", "BB-1", "-2", "c-3", "Ünï-4"},
		"Ünï": {"Ünï-4"}, "|| c ||": {"c-3"},
	} {
		a := r.Invoke(t, from(0, tagged(expression)), nil)
		require.Equal(t, int32(0), a.Code, expression)
		require.Equal(t, want, bodies(t, a), expression)
		require.Equal(t, int64(5), offsets(t, a)[0], "what does not match is passed for good (CASES 122)")
	}
}

func TestTheSubscriptionOfTheHeartbeatFilters(t *testing.T) {
	r := start(t, rig.Options{})
	fill(t, r, "Aa", "BB", "c", "Ünï")
	beat(t, r, "g", protocol.Clustering, protocol.SubscriptionData{
		Topic: "T", SubString: "Aa || Ünï", TagsSet: []string{"Aa", "Ünï"}, CodeSet: []int32{2112, 1}, SubVersion: 1,
	})
	a := r.Invoke(t, from(0, flags(0)), nil)
	require.Equal(t, []string{"Aa-0", "Ünï-3"}, bodies(t, a), "Go clients hash bytes, Java characters: names decide")
}

// hold sends a pull and returns where its answer comes.
func hold(t *testing.T, r *rig.Rig, c *remoting.Client, q *protocol.PullMessageRequest) <-chan *protocol.Command {
	t.Helper()
	before := r.Pull.Held()
	out := make(chan *protocol.Command, 1)
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	wg.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if a, err := c.Invoke(ctx, r.Addr, protocol.NewRequest(q, nil)); err == nil {
			out <- a
		}
		close(out)
	})
	require.Eventually(t, func() bool { return r.Pull.Held() == before+1 }, 10*time.Second, time.Millisecond)
	return out
}

func TestAHeldPullIsWokenByAMessage(t *testing.T) {
	r := start(t, rig.Options{})
	fill(t, r, "a")
	answer := hold(t, r, r.Client, from(1, flags(inRequest|suspend|commit), func(q *protocol.PullMessageRequest) { q.CommitOffset = 1 }))
	require.Equal(t, int64(1), r.Offsets.Query("g", "T", 0), "committed at once")
	fill(t, r, "b")
	a := <-answer
	require.Equal(t, []string{"b-0"}, bodies(t, a))
	require.Equal(t, [3]int64{2, 0, 2}, offsets(t, a))
	require.Zero(t, r.Pull.Held())
	require.Equal(t, int64(2), r.Offsets.Pulled("g", "T", 0))
}

// Gotcha 17, and a queue that begins while it is waited for.
func TestAPullOfAQueueThatDoesNotExistYetIsHeld(t *testing.T) {
	r := start(t, rig.Options{})
	answer := hold(t, r, r.Client, from(0, flags(inRequest|suspend)))
	fill(t, r, "a")
	require.Equal(t, []string{"a-0"}, bodies(t, <-answer))
}

func TestAHeldPullWaitsForATagThatMatches(t *testing.T) {
	r := start(t, rig.Options{})
	answer := hold(t, r, r.Client, from(0, flags(inRequest|suspend), tagged("wanted")))
	fill(t, r, "other", "other", "wanted")
	a := <-answer
	require.Equal(t, []string{"wanted-2"}, bodies(t, a))
	require.Equal(t, int64(3), offsets(t, a)[0])
}

func TestAHoldEndsAtItsTime(t *testing.T) {
	r := start(t, rig.Options{})
	fill(t, r, "a")
	short := func(q *protocol.PullMessageRequest) { q.SuspendTimeoutMillis = 50 }
	a := r.Invoke(t, from(1, flags(inRequest|suspend), short), nil)
	require.Equal(t, protocol.PullNotFound, protocol.ResponseCode(a.Code))
	require.Equal(t, [3]int64{1, 0, 1}, offsets(t, a))

	// Nothing matched meanwhile: the client goes on behind it.
	answer := hold(t, r, r.Client, from(1, flags(inRequest|suspend), tagged("wanted"), func(q *protocol.PullMessageRequest) { q.SuspendTimeoutMillis = 1000 }))
	fill(t, r, "other")
	a = <-answer
	require.Equal(t, protocol.PullRetryImmediately, protocol.ResponseCode(a.Code))
	require.Equal(t, [3]int64{2, 0, 2}, offsets(t, a))

	live := pull.DefaultReloadable()
	live.LongPolling, live.ShortPolling = false, 30*time.Millisecond
	r.Pull.Reload(live)
	begin := time.Now()
	a = r.Invoke(t, from(2, flags(inRequest|suspend)), nil)
	require.Equal(t, protocol.PullNotFound, protocol.ResponseCode(a.Code))
	require.Less(t, time.Since(begin), 10*time.Second, "short polling ignores what the client asks for")
}

func TestAHoldEndsWithItsConnection(t *testing.T) {
	r := start(t, rig.Options{TCP: true})
	fill(t, r, "a")
	c := remoting.NewClient(remoting.ClientConfig{}, r.Logger)
	hold(t, r, c, from(1, flags(inRequest|suspend)))
	require.NoError(t, c.Close())
	require.Eventually(t, func() bool { return r.Pull.Held() == 0 }, 10*time.Second, time.Millisecond)
}

// CASES 101.
func TestAHoldEndsWithItsTopicAndARecreatedTopicStartsAnew(t *testing.T) {
	r := start(t, rig.Options{})
	fill(t, r, "a", "b")
	answer := hold(t, r, r.Client, from(2, flags(inRequest|suspend)))
	require.NoError(t, r.Topics.Delete("T"))
	require.NoError(t, r.Store.DeleteTopic("T"))
	r.Offsets.RemoveTopic("T")
	a := <-answer
	require.Equal(t, protocol.TopicNotExist, protocol.ResponseCode(a.Code))
	offsets(t, a)
	require.NoError(t, r.Topics.Put(topic.Config{Name: "T", ReadQueues: 4, WriteQueues: 4, Perm: 6}))
	fill(t, r, "c")
	a = r.Invoke(t, from(0), nil)
	require.Equal(t, []string{"c-0"}, bodies(t, a))
	require.Equal(t, [3]int64{1, 0, 1}, offsets(t, a))
}

// CASES 113: a pull parked just as a message arrives is not forgotten.
func TestNoArrivalIsMissedWhileParking(t *testing.T) {
	r := start(t, rig.Options{})
	rounds := 300
	if testing.Short() {
		rounds = 50
	}
	var slowest time.Duration
	for i := range rounds {
		answer := make(chan *protocol.Command, 1)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			if a, err := r.Client.Invoke(ctx, r.Addr, protocol.NewRequest(from(int64(i), flags(inRequest|suspend)), nil)); err == nil {
				answer <- a
			}
			close(answer)
		}()
		a := r.Invoke(t, &protocol.SendMessageRequestV2{ProducerGroup: "pg", Topic: "T", DefaultTopic: topic.Template, DefaultTopicQueueNums: 4}, []byte("x"))
		require.Equal(t, int32(0), a.Code)
		begin := time.Now()
		a = <-answer
		slowest = max(slowest, time.Since(begin))
		require.NotNil(t, a)
		require.Len(t, bodies(t, a), 1)
	}
	require.Less(t, slowest, 5*time.Second, "the suspend time is 20 s: a missed arrival would show")
}

func TestFlushedButUnconfirmedMessagesAreNotSeen(t *testing.T) {
	r := rig.New(t, rig.Options{}) // SYNC_FLUSH
	require.NoError(t, r.Topics.Put(topic.Config{Name: "T", ReadQueues: 4, WriteQueues: 4, Perm: 6}))
	r.Term.End(nil) // nobody confirms any more
	_, err := r.Store.Append(&message.Message{
		Topic: "T", Body: []byte("x"), BornHost: rig.Host, StoreHost: rig.Host, BornTimestamp: 1,
	}, func() error { return nil })
	require.NoError(t, err)
	require.NoError(t, r.Store.Durable().Wait(t.Context(), r.Store.Appended().Load()))
	a := r.Invoke(t, from(0), nil)
	require.Equal(t, protocol.PullNotFound, protocol.ResponseCode(a.Code))
	a = r.Invoke(t, &protocol.GetMaxOffsetRequest{Topic: "T"}, nil)
	require.Equal(t, "0", a.Ext.Get("offset"))
}

func TestQueriesAndOffsetSearches(t *testing.T) {
	r := start(t, rig.Options{})
	begin := time.Now().UnixMilli()
	a := r.Invoke(t, &protocol.SendMessageRequestV2{
		ProducerGroup: "pg", Topic: "T", DefaultTopic: topic.Template, DefaultTopicQueueNums: 4,
		Properties: string(message.Properties(nil).Append(message.Keys, "k1 k2").Append(message.UniqueKey, "U1").Append(message.Tags, "a")),
	}, []byte("keyed"))
	require.Equal(t, int32(0), a.Code)
	_, physical, err := message.ParseOffsetID(a.Ext.Get("msgId"))
	require.NoError(t, err)
	fill(t, r, "b")

	a = r.Invoke(t, &protocol.ViewMessageRequest{Offset: physical}, nil)
	require.Equal(t, []string{"keyed"}, bodies(t, a))
	a = r.Invoke(t, &protocol.ViewMessageRequest{Offset: physical + 1}, nil)
	require.Equal(t, protocol.SystemError, protocol.ResponseCode(a.Code))

	query := func(key, unique string, num int32) *protocol.Command {
		cmd := protocol.NewRequest(&protocol.QueryMessageRequest{
			Topic: "T", Key: key, MaxNum: num, BeginTimestamp: begin - 1000, EndTimestamp: begin + 3_600_000,
		}, nil)
		cmd.Ext = cmd.Ext.Add("_UNIQUE_KEY_QUERY", unique)
		return r.InvokeCommand(t, cmd)
	}
	require.Eventually(t, func() bool { return query("k2", "false", 10).Code == 0 }, 10*time.Second, 5*time.Millisecond, "the index follows")
	require.Equal(t, []string{"keyed"}, bodies(t, query("k1", "false", 10)))
	require.Equal(t, []string{"keyed"}, bodies(t, query("U1", "true", 0)))
	require.Equal(t, protocol.QueryNotFound, protocol.ResponseCode(query("k9", "false", 10).Code))

	offset := func(q protocol.Request, field string) string {
		a := r.Invoke(t, q, nil)
		require.Equal(t, int32(0), a.Code)
		return a.Ext.Get(field)
	}
	require.Equal(t, "2", offset(&protocol.GetMaxOffsetRequest{Topic: "T"}, "offset"))
	require.Equal(t, "0", offset(&protocol.GetMinOffsetRequest{Topic: "T"}, "offset"))
	require.Equal(t, "0", offset(&protocol.GetMaxOffsetRequest{Topic: "unknown"}, "offset"))
	require.Equal(t, "0", offset(&protocol.SearchOffsetRequest{Topic: "T", Timestamp: begin - 1000}, "offset"))
	require.Equal(t, "2", offset(&protocol.SearchOffsetRequest{Topic: "T", Timestamp: begin + 3_600_000}, "offset"))
	require.NotEqual(t, "-1", offset(&protocol.GetEarliestMsgStoretimeRequest{Topic: "T"}, "timestamp"))

	beat(t, r, "g", protocol.Clustering, protocol.SubscriptionData{Topic: "T", SubString: "a", TagsSet: []string{"a"}, SubVersion: 1})
	a = r.Invoke(t, &protocol.QueryConsumeQueueRequest{Topic: "T", Count: 10, ConsumerGroup: "g"}, nil)
	require.Equal(t, int32(0), a.Code, "%s", a.Remark)
	var body protocol.QueryConsumeQueueResponseBody
	require.NoError(t, fastjson.Unmarshal(a.Body, &body))
	require.Equal(t, []bool{true, false}, []bool{body.QueueData[0].Eval, body.QueueData[1].Eval})
	require.Equal(t, physical, body.QueueData[0].PhysicOffset)
	require.Equal(t, []int64{0, 2}, []int64{body.MinQueueIndex, body.MaxQueueIndex})
	a = r.Invoke(t, &protocol.QueryConsumeQueueRequest{Topic: "unknown", Count: 10}, nil)
	require.Equal(t, protocol.SystemError, protocol.ResponseCode(a.Code))
}

func TestAPullIsBoundedByCountAndBytes(t *testing.T) {
	r := start(t, rig.Options{Store: func(c *store.Config) { c.Read.MemoryCountMax = 8 }})
	tags := make([]string, 20)
	for i := range tags {
		tags[i] = "a"
	}
	fill(t, r, tags...)
	require.Len(t, bodies(t, r.Invoke(t, from(0), nil)), 8)
	require.Len(t, bodies(t, r.Invoke(t, from(0, func(q *protocol.PullMessageRequest) { q.MaxMsgNums = 3 }), nil)), 3)
	one := int32(1)
	require.Len(t, bodies(t, r.Invoke(t, from(0, func(q *protocol.PullMessageRequest) { q.MaxMsgBytes = &one }), nil)), 1)
}
