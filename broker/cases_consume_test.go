package broker_test

import (
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/protocol"
)

// expireHead sends five messages to topic T, lets them expire with the files they lie in, and leaves other to keep.
func expireHead(t *testing.T) *node {
	t.Helper()
	cfg := config(t)
	cfg.Store.CommitLogFileSize, cfg.Store.MaxMessageSize = 64<<10, 16<<10
	cfg.Store.Retention.DeleteInterval = 0
	var shift atomic.Int64
	cfg.Store.Now = func() time.Time { return time.Now().Add(time.Duration(shift.Load())) }
	n := start(t, cfg)
	n.createTopic("T", 1)
	n.createTopic("Other", 1)
	for i := range 5 {
		n.send("T", fmt.Sprint(i), nil)
	}
	for range 12 {
		n.send("Other", strings.Repeat("x", 10<<10), nil)
	}
	shift.Store(int64(100 * time.Hour))
	require.Eventually(t, func() bool {
		n.must(&protocol.DeleteExpiredCommitLogRequest{}, nil, nil)
		n.must(&protocol.CleanExpiredConsumeQueueRequest{}, nil, nil)
		answer := n.must(&protocol.GetMinOffsetRequest{Topic: "T"}, nil, nil)
		return answer.Ext.Get("offset") == "5"
	}, 10*time.Second, 20*time.Millisecond)
	return n
}

// Cases 96 and 97: all messages of a queue have expired. A pull below its beginning is told PULL_OFFSET_MOVED with the offset
// to go on at, which every client obeys; the message that comes next is read there.
func TestCase97APullOfAnExpiredQueueIsToldWhereToGoOn(t *testing.T) {
	n := expireHead(t)
	for _, offset := range []int64{0, 4} {
		answer := n.ask(&protocol.PullMessageRequest{ConsumerGroup: "g", Topic: "T", QueueOffset: offset, MaxMsgNums: 32, SysFlag: 4, Subscription: "*"}, nil)
		require.Equal(t, protocol.PullOffsetMoved, protocol.ResponseCode(answer.Code), "%s", answer.Remark)
		require.Equal(t, []string{"5", "5", "5"}, []string{answer.Ext.Get("nextBeginOffset"), answer.Ext.Get("minOffset"), answer.Ext.Get("maxOffset")})
	}
	answer := n.ask(&protocol.PullMessageRequest{ConsumerGroup: "g", Topic: "T", QueueOffset: 5, MaxMsgNums: 32, SysFlag: 4, Subscription: "*"}, nil)
	require.Equal(t, protocol.PullNotFound, protocol.ResponseCode(answer.Code))
	n.send("T", "new", nil)
	require.Equal(t, "new", string(n.pull("g", "T", 5)[0].Body))
}

// Case 98: where a new group begins. "0" is said for a young queue, so that its first messages are not skipped; otherwise
// the client's own consumeFromWhere decides. docs/cases.md has the table.
func TestCase98WhereANewGroupBegins(t *testing.T) {
	n := start(t, config(t))
	for name, messages := range map[string]int{"Empty": 0, "One": 1, "Young": 100} {
		n.createTopic(name, 1)
		for range messages {
			n.send(name, "x", nil)
		}
		if messages > 0 {
			require.Eventually(t, func() bool { return n.maxOffset(name) == int64(messages) }, 5*time.Second, time.Millisecond)
		}
	}
	no := false
	for _, c := range []struct {
		topic string
		zero  *bool
		want  string
	}{{"Empty", nil, "decide"}, {"One", nil, "0"}, {"Young", nil, "0"}, {"Young", &no, "decide"}} {
		answer := n.ask(&protocol.QueryConsumerOffsetRequest{ConsumerGroup: "new", Topic: c.topic, SetZeroIfNotFound: c.zero}, nil)
		got := answer.Ext.Get("offset")
		if protocol.ResponseCode(answer.Code) == protocol.QueryNotFound {
			got = "decide"
		}
		require.Equal(t, c.want, got, c.topic)
	}
	n.stop()
	expired := expireHead(t)
	answer := expired.ask(&protocol.QueryConsumerOffsetRequest{ConsumerGroup: "new", Topic: "T"}, nil)
	require.Equal(t, protocol.QueryNotFound, protocol.ResponseCode(answer.Code))
}

// Case 100: reset by time lands on the first message not before that time, also where many share one; now is the end; an
// empty queue is 0; the answer has the offsets, and they hold for the next pull.
func TestCase100ResetByTime(t *testing.T) {
	cfg := config(t)
	var now atomic.Int64
	now.Store(1_800_000_000_000)
	cfg.Store.Now = func() time.Time { return time.UnixMilli(now.Load()) }
	n := start(t, cfg)
	n.createTopic("T", 1)
	n.createTopic("Empty", 1)
	for range 3 { // 20 messages of one time each
		for range 20 {
			n.send("T", "x", nil)
		}
		now.Add(1000)
	}
	require.Eventually(t, func() bool { return n.maxOffset("T") == 60 }, 5*time.Second, time.Millisecond)
	n.must(&protocol.UpdateAndCreateSubscriptionGroupRequest{}, protocol.SubscriptionGroupConfig{GroupName: "g", ConsumeEnable: true, RetryQueueNums: 1}, nil)
	for _, c := range []struct{ at, want int64 }{
		{0, 0}, {1_800_000_000_000, 0}, {1_800_000_000_001, 20}, {1_800_000_001_000, 20}, {1_800_000_002_000, 40}, {1_800_000_002_001, 60}, {1_900_000_000_000, 60}, {-1, 60},
	} {
		n.must(&protocol.UpdateConsumerOffsetRequest{ConsumerGroup: "g", Topic: "T", CommitOffset: 60}, nil, nil)
		answer := n.must(&protocol.ResetOffsetRequest{Group: "g", Topic: "T", Timestamp: c.at, IsForce: true}, nil, nil)
		require.Contains(t, strings.ReplaceAll(string(answer.Body), " ", ""), fmt.Sprintf(":%d}", c.want), "reset to %d", c.at)
		told := n.ask(&protocol.PullMessageRequest{ConsumerGroup: "g", Topic: "T", QueueOffset: 60, MaxMsgNums: 1, SysFlag: 4, Subscription: "*"}, nil)
		require.Equal(t, fmt.Sprint(c.want), told.Ext.Get("nextBeginOffset"), "reset to %d", c.at)
	}
	answer := n.must(&protocol.ResetOffsetRequest{Group: "g", Topic: "Empty", Timestamp: -1, IsForce: true}, nil, nil)
	require.Contains(t, strings.ReplaceAll(string(answer.Body), " ", ""), ":0}")
	require.Contains(t, n.refused(&protocol.ResetOffsetRequest{Group: "g", Topic: "none", Timestamp: -1}, nil, protocol.TopicNotExist), "none")
}

// Case 101: a topic and a group are deleted after use, asked about, pulled once more, and made again. Nothing of the old ones
// is left in any file or table.
func TestCase101NothingOfADeletedTopicIsLeft(t *testing.T) {
	n := start(t, config(t))
	for round := range 2 {
		n.createTopic("Gone", 2)
		n.must(&protocol.UpdateAndCreateSubscriptionGroupRequest{}, protocol.SubscriptionGroupConfig{GroupName: "gone", ConsumeEnable: true, RetryQueueNums: 1}, nil)
		for i := range 10 {
			h := n.send("Gone", fmt.Sprintf("%d-%d", round, i), nil)
			require.EqualValues(t, i, h.QueueOffset)
		}
		require.Eventually(t, func() bool { return n.maxOffset("Gone") == 10 }, 5*time.Second, time.Millisecond)
		records := n.pull("gone", "Gone", 0)
		require.Len(t, records, 10)
		for i, r := range records {
			require.Equal(t, fmt.Sprintf("%d-%d", round, i), string(r.Body))
		}
		n.must(&protocol.UpdateConsumerOffsetRequest{ConsumerGroup: "gone", Topic: "Gone", CommitOffset: 10}, nil, nil)
		var stats protocol.ConsumeStats
		n.must(&protocol.GetConsumeStatsRequest{ConsumerGroup: "gone", Topic: "Gone"}, nil, &stats)
		for _, w := range stats.OffsetTable {
			require.GreaterOrEqual(t, w.BrokerOffset, w.ConsumerOffset, "lag below 0")
		}
		n.must(&protocol.DeleteTopicRequest{Topic: "Gone"}, nil, nil)
		n.must(&protocol.DeleteSubscriptionGroupRequest{GroupName: "gone", CleanOffset: true}, nil, nil)
		n.ask(&protocol.GetMaxOffsetRequest{Topic: "Gone"}, nil)
		n.ask(&protocol.PullMessageRequest{ConsumerGroup: "other", Topic: "Gone", MaxMsgNums: 1, SysFlag: 4, Subscription: "*"}, nil)
		n.restart()
		require.NotContains(t, n.table().TopicConfigTable, "Gone")
		require.NotContains(t, n.table().TopicConfigTable, "%RETRY%gone")
		var offsets protocol.ConsumerOffsetSerializeWrapper
		n.must(&protocol.GetAllConsumerOffsetRequest{}, nil, &offsets)
		for key := range offsets.OffsetTable {
			require.NotContains(t, strings.ToLower(key), "gone")
		}
		require.NoError(t, filepath.WalkDir(n.cfg.Store.RootDir, func(path string, _ fs.DirEntry, err error) error {
			require.NotContains(t, strings.ToLower(filepath.Base(path)), "gone")
			return err
		}))
	}
}

// Cases 89 and 105: a message of exactly the maximum size, with properties, goes every way: delayed, in a transaction, given
// back until it is dead. One behind it is never held up.
func TestCase89And105MaximumSizeOnEveryWay(t *testing.T) {
	cfg := config(t)
	cfg.Store.MaxMessageSize, cfg.Produce.MaxMessageSize = 64<<10, 64<<10
	n := start(t, cfg)
	n.createTopic("T", 1)
	n.must(&protocol.UpdateAndCreateSubscriptionGroupRequest{}, protocol.SubscriptionGroupConfig{
		GroupName: "g", ConsumeEnable: true, RetryQueueNums: 1, RetryMaxTimes: 1,
	}, nil)
	n.heartbeat("c1", consumer("g", "T", "%RETRY%g"))
	body := strings.Repeat("m", 64<<10)
	many := func(more map[string]string) map[string]string {
		p := map[string]string{message.Keys: strings.Repeat("k", 200), message.Tags: "tag"}
		for i := range 100 {
			p[fmt.Sprintf("user%d", i)] = strings.Repeat("v", 100)
		}
		maps.Copy(p, more)
		return p
	}
	answer := n.ask(&protocol.SendMessageRequest{ProducerGroup: "pg", Topic: "T", DefaultTopic: "TBW102", DefaultTopicQueueNums: 1}, []byte(body+"m"))
	require.Equal(t, protocol.MessageIllegal, protocol.ResponseCode(answer.Code), "%s", answer.Remark)

	n.send("T", body, many(map[string]string{message.DelayTimeLevel: "1"}))
	n.send("T", "behind", map[string]string{message.DelayTimeLevel: "1"})
	records := n.pull("g", "T", 0)
	require.Equal(t, body, string(records[0].Body), "delayed")
	require.Eventually(t, func() bool { return n.maxOffset("T") == 2 }, 5*time.Second, 10*time.Millisecond)

	h := n.send("T", body, many(map[string]string{message.TransactionPrepared: "true", message.ProducerGroup: "pg", message.UniqueKey: "u"}))
	_, offset, err := message.ParseOffsetID(h.MsgID)
	require.NoError(t, err)
	n.must(&protocol.EndTransactionRequest{ProducerGroup: "pg", TranStateTableOffset: h.QueueOffset, CommitLogOffset: offset, CommitOrRollback: 8, MsgID: "u"}, nil, nil)
	records = n.pull("g", "T", 2)
	require.Equal(t, body, string(records[0].Body), "committed")

	for topic := "T"; ; topic = "%RETRY%g" {
		at := int64(0)
		if topic == "T" {
			at = 2
		}
		records = n.pull("g", topic, at)
		require.Len(t, records, 1)
		n.must(&protocol.ConsumerSendMsgBackRequest{Offset: records[0].PhysicalOffset, Group: "g", DelayLevel: 1, OriginMsgID: "x"}, nil, nil)
		if topic != "T" {
			break
		}
	}
	dead := n.pull("g", "%DLQ%g", 0)
	require.Len(t, dead, 1)
	require.Equal(t, body, string(dead[0].Body))
	require.Equal(t, strings.Repeat("v", 100), message.ParseProperties(dead[0].Properties)["user99"])
}
