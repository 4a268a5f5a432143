package produce_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/broker/group"
	"github.com/quorate/quorate/broker/internal/rig"
	"github.com/quorate/quorate/broker/topic"
	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
)

// sent stores a message and returns its record.
func sent(t *testing.T, r *rig.Rig, times int32, body string) message.Record {
	t.Helper()
	a := r.Invoke(t, sendTo("T", func(q *protocol.SendMessageRequestV2) { q.ReconsumeTimes = &times }), []byte(body))
	require.Equal(t, int32(0), a.Code, "%s", a.Remark)
	return last(t, r, "T", 1)
}

func TestSendBackGoesToTheRetryTopicByWayOfADelay(t *testing.T) {
	r := rig.New(t, rig.Options{})
	put(t, r, plain("T"))
	first := sent(t, r, 0, "hello")
	a := r.Invoke(t, &protocol.ConsumerSendMsgBackRequest{Offset: first.PhysicalOffset, Group: "g"}, nil)
	require.Equal(t, int32(0), a.Code, "%s", a.Remark)
	back := last(t, r, topic.Schedule, 2) // level 3 + 0 is queue 2
	p := message.ParseProperties(back.Properties)
	require.Equal(t, map[string]string{
		"RETRY_TOPIC": "T", "REAL_TOPIC": "%RETRY%g", "REAL_QID": "0", "DELAY": "3", "WAIT": "false",
		"ORIGIN_MESSAGE_ID": message.OffsetID(rig.Host, first.PhysicalOffset),
	}, pick(p, "RETRY_TOPIC", "REAL_TOPIC", "REAL_QID", "DELAY", "WAIT", "ORIGIN_MESSAGE_ID"))
	require.Equal(t, []any{"hello", int32(1), first.BornTimestamp, first.Flag, "TagA", "U1"},
		[]any{string(back.Body), back.ReconsumeTimes, back.BornTimestamp, back.Flag, p["TAGS"], p["UNIQ_KEY"]})

	// Sent back again, it remembers where it came from first.
	level := int32(5)
	a = r.Invoke(t, &protocol.ConsumerSendMsgBackRequest{Offset: back.PhysicalOffset, Group: "g", DelayLevel: level}, nil)
	require.Equal(t, int32(0), a.Code)
	again := last(t, r, topic.Schedule, 4)
	require.Equal(t, pick(p, "RETRY_TOPIC", "ORIGIN_MESSAGE_ID"), pick(message.ParseProperties(again.Properties), "RETRY_TOPIC", "ORIGIN_MESSAGE_ID"))
	require.Equal(t, int32(2), again.ReconsumeTimes)
}

func pick(from map[string]string, keys ...string) map[string]string {
	out := map[string]string{}
	for _, k := range keys {
		out[k] = from[k]
	}
	return out
}

// CASES 104: delivered limit+1 times in all, then dead.
func TestSendBackCountsToTheLimitExactly(t *testing.T) {
	r := rig.New(t, rig.Options{})
	put(t, r, plain("T"))
	for _, limit := range []int32{0, 1, 2, 16} {
		g := group.Default("g")
		g.RetryMaxTimes = limit
		require.NoError(t, r.Groups.Put(g))
		for _, header := range []bool{false, true} {
			record := sent(t, r, 0, "x")
			deliveries := int32(1)
			for {
				request := &protocol.ConsumerSendMsgBackRequest{Offset: record.PhysicalOffset, Group: "g", DelayLevel: 1}
				if header {
					request.MaxReconsumeTimes = &limit
				}
				a := r.Invoke(t, request, nil)
				require.Equal(t, int32(0), a.Code)
				if record.ReconsumeTimes >= limit {
					break
				}
				record = last(t, r, topic.Schedule, 0)
				deliveries++
			}
			require.Equal(t, limit+1, deliveries)
			dead := last(t, r, "%DLQ%g", 0)
			require.Equal(t, limit+1, dead.ReconsumeTimes)
			require.Equal(t, "0", dead.Properties.Get("DELAY"))
		}
	}
}

// CASES 105.
func TestAMessageOfMaximumSizeCanBeSentBack(t *testing.T) {
	r := rig.New(t, rig.Options{Async: true, Store: nil})
	put(t, r, plain("T"))
	record := sent(t, r, 0, strings.Repeat("x", 3<<20))
	for range 3 {
		a := r.Invoke(t, &protocol.ConsumerSendMsgBackRequest{Offset: record.PhysicalOffset, Group: "g", DelayLevel: 1}, nil)
		require.Equal(t, int32(0), a.Code, "%s", a.Remark)
		record = last(t, r, topic.Schedule, 0)
	}
}

func TestSendBackRefusals(t *testing.T) {
	r := rig.New(t, rig.Options{Groups: func(s *group.Reloadable) { s.AutoCreate = false }})
	put(t, r, plain("T"))
	record := sent(t, r, 0, "x")
	a := r.Invoke(t, &protocol.ConsumerSendMsgBackRequest{Offset: record.PhysicalOffset, Group: "g"}, nil)
	require.Equal(t, protocol.SubscriptionGroupNotExist, protocol.ResponseCode(a.Code))
	g := group.Default("g")
	g.RetryQueueNums = 0
	require.NoError(t, r.Groups.Put(g))
	end := r.Store.Appended().Load()
	a = r.Invoke(t, &protocol.ConsumerSendMsgBackRequest{Offset: record.PhysicalOffset, Group: "g"}, nil)
	require.Equal(t, int32(0), a.Code, "a group without retries is content with nothing")
	require.Equal(t, end, r.Store.Appended().Load())
	g.RetryQueueNums = 1
	require.NoError(t, r.Groups.Put(g))
	a = r.Invoke(t, &protocol.ConsumerSendMsgBackRequest{Offset: 1 << 40, Group: "g"}, nil)
	require.Equal(t, protocol.SystemError, protocol.ResponseCode(a.Code))
	require.NoError(t, r.Topics.Put(topic.Config{Name: "%RETRY%g", ReadQueues: 1, WriteQueues: 1, Perm: 4}))
	a = r.Invoke(t, &protocol.ConsumerSendMsgBackRequest{Offset: record.PhysicalOffset, Group: "g"}, nil)
	require.Equal(t, protocol.NoPermission, protocol.ResponseCode(a.Code))
	a = r.Invoke(t, &protocol.ConsumerSendMsgBackRequest{Offset: record.PhysicalOffset, Group: "g", DelayLevel: -1}, nil)
	require.Equal(t, protocol.NoPermission, protocol.ResponseCode(a.Code))
}

func TestAReplyReachesTheProducerThatWaitsForIt(t *testing.T) {
	var pushed *protocol.ReplyMessageRequest
	var body string
	answer := &remoting.Reply{}
	router, err := remoting.NewRouter([]remoting.Route{
		remoting.Handle(remoting.Data, func(_ context.Context, c remoting.Call[protocol.ReplyMessageRequest]) (*remoting.Reply, error) {
			pushed, body = c.Header, string(c.Body)
			return answer, nil
		}),
	})
	require.NoError(t, err)
	r := rig.New(t, rig.Options{Router: router})
	put(t, r, plain("Replies"))
	beat, err := fastjson.Marshal(protocol.HeartbeatData{ClientID: "asker", ProducerDataSet: []protocol.ProducerData{{GroupName: "pg"}}})
	require.NoError(t, err)
	require.Equal(t, int32(0), r.Invoke(t, &protocol.HeartbeatRequest{}, beat).Code)

	reply := func(to string) *protocol.Command {
		q := sendTo("Replies", func(q *protocol.SendMessageRequestV2) {
			q.Properties = properties("REPLY_TO_CLIENT", to, "CORRELATION_ID", "c1", "MSG_TYPE", "reply")
		})
		return r.Invoke(t, &protocol.SendReplyMessageV2Request{SendMessageRequestV2: *q}, []byte("pong"))
	}
	a := reply("asker")
	require.Equal(t, int32(0), a.Code, "%s", a.Remark)
	require.Equal(t, "pong", body)
	p := message.ParseProperties(message.Properties(pushed.Properties))
	require.Equal(t, "c1", p["CORRELATION_ID"])
	require.NotEmpty(t, p["PUSH_REPLY_TIME"])
	require.Equal(t, rig.Host.String(), pushed.StoreHost)
	record := last(t, r, "Replies", 1)
	require.Equal(t, "pong", string(record.Body))
	require.Equal(t, []string{"local", "1", "1", "1"}, proved(a))
	require.Equal(t, message.OffsetID(rig.Host, record.PhysicalOffset), a.Ext.Get("msgId"))

	a = reply("nobody")
	require.Equal(t, protocol.SystemError, protocol.ResponseCode(a.Code))
	require.Contains(t, string(a.Remark), "nobody")
	require.Equal(t, "1", a.Ext.Get("queueOffset"), "stored all the same")

	answer = &remoting.Reply{Code: protocol.SystemError, Remark: "not mine"}
	a = reply("asker")
	require.Equal(t, protocol.SystemError, protocol.ResponseCode(a.Code))
	require.Contains(t, string(a.Remark), "not mine")
}
