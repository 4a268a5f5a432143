package broker_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/broker"
	"github.com/quorate/quorate/internal/conf"
	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/internal/vfs"
	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// node is a running broker on an in-process network, without NameServer.
type node struct {
	*testing.T
	cfg    broker.Config
	b      *broker.Broker
	client *remoting.Client
	stop   func()
	dial   remoting.Dialer
	tls    *remoting.TLSMode
	// outgoing is what the broker dials with, when it is not the loopback.
	outgoing remoting.Dialer
	broken   bool // its disk has failed: it says so when it stops
}

const mainAddr, fastAddr = "127.0.0.1:10911", "127.0.0.1:10909"

func config(t *testing.T) broker.Config {
	t.Helper()
	cfg := broker.DefaultConfig()
	cfg.Identity.Name, cfg.Identity.IP1 = "b", "127.0.0.1"
	cfg.Store.RootDir = filepath.Join(t.TempDir(), "store")
	cfg.Store.CommitLogFileSize, cfg.Store.ConsumeQueueFileSize = 1<<20, 20*1000
	cfg.Store.IndexSlots, cfg.Store.IndexEntries = 1000, 4000
	cfg.Delay.Levels = "1s 2s"
	return cfg
}

func start(t *testing.T, cfg broker.Config) *node {
	t.Helper()
	n := &node{T: t, cfg: cfg}
	n.start()
	t.Cleanup(func() { n.stop() })
	return n
}

func (n *node) start() {
	n.Helper()
	logger := slog.New(slog.DiscardHandler)
	network := remoting.NewLoopback()
	n.dial = network.Dial
	dial := n.dial
	if n.outgoing != nil {
		dial = n.outgoing
	}
	var l broker.Listeners
	var err error
	l.Main, err = network.Listen(mainAddr)
	require.NoError(n, err)
	l.Fast, err = network.Listen(fastAddr)
	require.NoError(n, err)
	n.b, err = broker.New(n.cfg, broker.Deps{Logger: logger, Dial: dial, TLS: n.tls, Unused: map[string]string{"transferMsgByHeap": "no heap"}})
	require.NoError(n, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.b.Run(ctx, l) }()
	n.client = remoting.NewClient(remoting.ClientConfig{Dial: network.Dial}, logger)
	n.stop = func() {
		n.stop = func() {}
		require.NoError(n, n.client.Close())
		cancel()
		err := errors.Join(<-done, n.b.Close())
		if n.broken {
			require.Error(n, err)
		} else {
			require.NoError(n, err)
		}
	}
}

func (n *node) restart() {
	n.Helper()
	n.stop()
	n.start()
}

// ask sends a request to the main port and returns the answer, whatever its code.
func (n *node) ask(req protocol.Request, body any) *protocol.Command {
	n.Helper()
	return n.askAt(mainAddr, req, body)
}

func (n *node) askAt(addr string, req protocol.Request, body any) *protocol.Command {
	n.Helper()
	var text []byte
	switch body := body.(type) {
	case nil:
	case []byte:
		text = body
	default:
		var err error
		text, err = fastjson.Marshal(body)
		require.NoError(n, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	answer, err := n.client.Invoke(ctx, addr, protocol.NewRequest(req, text))
	require.NoError(n, err)
	return answer
}

// must is ask for a success; its body is read into out, if given.
func (n *node) must(req protocol.Request, body, out any) *protocol.Command {
	n.Helper()
	answer := n.ask(req, body)
	require.Equal(n, protocol.Success, protocol.ResponseCode(answer.Code), "%s", answer.Remark)
	if out != nil {
		require.NoError(n, fastjson.Unmarshal(answer.Body, out))
	}
	return answer
}

func (n *node) refused(req protocol.Request, body any, code protocol.ResponseCode) string {
	n.Helper()
	answer := n.ask(req, body)
	require.Equal(n, code, protocol.ResponseCode(answer.Code), "%s", answer.Remark)
	return string(answer.Remark)
}

func (n *node) createTopic(name string, queues int32) {
	n.Helper()
	n.must(&protocol.CreateTopicRequest{
		Topic: name, DefaultTopic: "TBW102", ReadQueueNums: queues, WriteQueueNums: queues, Perm: 6, TopicFilterType: "SINGLE_TAG",
	}, nil, nil)
}

func (n *node) send(topic, body string, properties map[string]string) protocol.SendMessageResponse {
	n.Helper()
	answer := n.must(&protocol.SendMessageRequest{
		ProducerGroup: "pg", Topic: topic, DefaultTopic: "TBW102", DefaultTopicQueueNums: 4, BornTimestamp: time.Now().UnixMilli(),
		Properties: string(message.MakeProperties(properties)),
	}, []byte(body), nil)
	var h protocol.SendMessageResponse
	require.NoError(n, protocol.DecodeHeader(answer.Ext, &h))
	return h
}

// pull reads all messages of queue 0 of a topic from an offset on, waiting for the first.
func (n *node) pull(group, topic string, offset int64) (out []message.Record) {
	n.Helper()
	answer := n.ask(&protocol.PullMessageRequest{
		ConsumerGroup: group, Topic: topic, QueueOffset: offset, MaxMsgNums: 32, SysFlag: 2 | 4, SuspendTimeoutMillis: 5000, Subscription: "*",
	}, nil)
	if protocol.ResponseCode(answer.Code) != protocol.Success {
		return nil
	}
	for b := answer.Body; len(b) > 0; {
		r, err := message.DecodeRecord(b, true)
		require.NoError(n, err)
		out = append(out, r)
		b = b[r.Size:]
	}
	return out
}

func (n *node) heartbeat(clientID string, consumers ...protocol.ConsumerData) {
	n.Helper()
	n.must(&protocol.HeartbeatRequest{}, protocol.HeartbeatData{
		ClientID: clientID, ProducerDataSet: []protocol.ProducerData{{GroupName: "pg"}}, ConsumerDataSet: consumers,
	}, nil)
}

func consumer(group string, topics ...string) protocol.ConsumerData {
	c := protocol.ConsumerData{
		GroupName: group, ConsumeType: "CONSUME_PASSIVELY", MessageModel: "CLUSTERING", ConsumeFromWhere: "CONSUME_FROM_FIRST_OFFSET",
		SubscriptionDataSet: []protocol.SubscriptionData{},
	}
	for _, t := range topics {
		c.SubscriptionDataSet = append(c.SubscriptionDataSet, protocol.SubscriptionData{
			Topic: t, SubString: "*", TagsSet: []string{}, CodeSet: []int32{}, SubVersion: 1, ExpressionType: "TAG",
		})
	}
	return c
}

func TestTopicIsMadeChangedListedAndDeleted(t *testing.T) {
	n := start(t, config(t))
	n.createTopic("T", 2)
	n.createTopic("T", 2)
	version := n.table().DataVersion
	n.createTopic("T", 2)
	require.Equal(t, version, n.table().DataVersion, "what is so already is no change")
	var c protocol.TopicConfig
	n.must(&protocol.GetTopicConfigRequest{Topic: "T"}, nil, &c)
	require.Equal(t, []int32{2, 2, 6}, []int32{c.ReadQueueNums, c.WriteQueueNums, c.Perm})
	n.refused(&protocol.GetTopicConfigRequest{Topic: "none"}, nil, protocol.TopicNotExist)

	n.send("T", "hello", nil)
	require.Eventually(t, func() bool { return n.maxOffset("T") == 1 }, 5*time.Second, time.Millisecond)
	var stats protocol.TopicStatsTable
	n.must(&protocol.GetTopicStatsInfoRequest{Topic: "T"}, nil, &stats)
	require.Len(t, stats.OffsetTable, 2)
	q := stats.OffsetTable[protocol.MessageQueue{Topic: "T", BrokerName: "b", QueueID: 0}]
	require.Equal(t, int64(1), q.MaxOffset)
	require.Positive(t, q.LastUpdateTimestamp)

	n.restart()
	require.Contains(t, n.table().TopicConfigTable, "T")
	n.must(&protocol.DeleteTopicRequest{Topic: "T"}, nil, nil)
	n.refused(&protocol.GetTopicStatsInfoRequest{Topic: "T"}, nil, protocol.TopicNotExist)
	// CASES 101: the name made again starts from nothing.
	n.createTopic("T", 2)
	require.Zero(t, n.maxOffset("T"))
	n.send("T", "again", nil)
	records := n.pull("g", "T", 0)
	require.Len(t, records, 1)
	require.Equal(t, "again", string(records[0].Body))
}

func (n *node) table() (out protocol.TopicConfigSerializeWrapper) {
	n.Helper()
	n.must(&protocol.GetAllTopicConfigRequest{}, nil, &out)
	return out
}

func (n *node) maxOffset(topic string) int64 {
	n.Helper()
	answer := n.must(&protocol.GetMaxOffsetRequest{Topic: topic}, nil, nil)
	var h protocol.GetMaxOffsetResponse
	require.NoError(n, protocol.DecodeHeader(answer.Ext, &h))
	return h.Offset
}

func TestRequestsThatBreakARuleAreRefusedByName(t *testing.T) {
	n := start(t, config(t))
	topic := func(change func(*protocol.CreateTopicRequest)) *protocol.CreateTopicRequest {
		r := &protocol.CreateTopicRequest{Topic: "T", DefaultTopic: "TBW102", ReadQueueNums: 1, WriteQueueNums: 1, Perm: 6, TopicFilterType: "SINGLE_TAG"}
		change(r)
		return r
	}
	for want, r := range map[string]*protocol.CreateTopicRequest{
		"illegal characters":     topic(func(r *protocol.CreateTopicRequest) { r.Topic = "a b" }),
		"system topic":           topic(func(r *protocol.CreateTopicRequest) { r.Topic = "TBW102" }),
		"at most 127":            topic(func(r *protocol.CreateTopicRequest) { r.Topic = strings.Repeat("x", 128) }),
		"queue numbers":          topic(func(r *protocol.CreateTopicRequest) { r.ReadQueueNums = 1 << 20 }),
		"perm must be":           topic(func(r *protocol.CreateTopicRequest) { r.Perm = 8 }),
		"topicFilterType":        topic(func(r *protocol.CreateTopicRequest) { r.TopicFilterType = "x" }),
		"MIXED":                  topic(func(r *protocol.CreateTopicRequest) { r.Attributes = "+message.type=MIXED" }),
		"is not known":           topic(func(r *protocol.CreateTopicRequest) { r.Attributes = "+colour=red" }),
		"must start with":        topic(func(r *protocol.CreateTopicRequest) { r.Attributes = "colour=red" }),
		"not served":             topic(func(r *protocol.CreateTopicRequest) { r.Attributes = "+queue.type=BatchCQ" }),
		"removed from a new":     topic(func(r *protocol.CreateTopicRequest) { r.Attributes = "-message.type" }),
		"must be a whole number": topic(func(r *protocol.CreateTopicRequest) { r.Attributes = "+reserve.time=x" }),
	} {
		require.Contains(t, n.refused(r, nil, protocol.InvalidParameter), want)
	}
	for _, name := range []string{" ", "../../x", ".", "a\x00b", "a b", strings.Repeat("x", 300)} {
		n.refused(&protocol.DeleteTopicRequest{Topic: name}, nil, protocol.InvalidParameter)
	}
	for _, queues := range []int32{0, -1} {
		r := &protocol.SendMessageRequest{ProducerGroup: "pg", Topic: "none", DefaultTopic: "TBW102", DefaultTopicQueueNums: queues}
		require.Contains(t, n.refused(r, []byte("x"), protocol.InvalidParameter), "defaultTopicQueueNums")
		n.refused(&protocol.GetTopicConfigRequest{Topic: "none"}, nil, protocol.TopicNotExist)
	}
	n.refused(&protocol.DeleteTopicRequest{Topic: "SCHEDULE_TOPIC_XXXX"}, nil, protocol.InvalidParameter)
	n.refused(&protocol.UpdateAndCreateSubscriptionGroupRequest{}, []byte(`{"groupName":"a b"}`), protocol.InvalidParameter)
	n.refused(&protocol.UpdateAndCreateSubscriptionGroupRequest{}, []byte(`{`), protocol.InvalidParameter)
	n.refused(&protocol.HeartbeatRequest{}, []byte(`{"clientID":""}`), protocol.InvalidParameter)
	n.refused(&protocol.LockBatchMqRequest{}, []byte(`{"mqSet":[]}`), protocol.InvalidParameter)
	n.must(topic(func(r *protocol.CreateTopicRequest) { r.Attributes = "+message.type=FIFO" }), nil, nil)
	n.must(topic(func(r *protocol.CreateTopicRequest) { r.Attributes = "-message.type" }), nil, nil)
}

func TestTopicAndGroupTablesComeInPages(t *testing.T) {
	n := start(t, config(t))
	whole := n.table()
	seen := map[string]bool{}
	for seq := int32(0); int(seq) < len(whole.TopicConfigTable); seq += 5 {
		limit := int32(5)
		var page protocol.TopicConfigSerializeWrapper
		answer := n.must(&protocol.GetAllTopicConfigRequest{TopicSeq: &seq, MaxTopicNum: &limit}, nil, &page)
		require.Equal(t, len(whole.TopicConfigTable), int(must32(t, answer, "totalTopicNum")))
		for name := range page.TopicConfigTable {
			require.False(t, seen[name])
			seen[name] = true
		}
	}
	require.Len(t, seen, len(whole.TopicConfigTable))
	seq, limit := int32(5), int32(3)
	var page protocol.TopicConfigSerializeWrapper
	n.must(&protocol.GetAllTopicConfigRequest{TopicSeq: &seq, MaxTopicNum: &limit, DataVersion: `{"counter":99,"stateVersion":0,"timestamp":1}`}, nil, &page)
	var first protocol.TopicConfigSerializeWrapper
	zero := int32(0)
	n.must(&protocol.GetAllTopicConfigRequest{TopicSeq: &zero, MaxTopicNum: &limit}, nil, &first)
	require.Equal(t, first.TopicConfigTable, page.TopicConfigTable, "another version begins anew")

	var groups protocol.SubscriptionGroupWrapper
	n.must(&protocol.GetAllSubscriptionGroupRequest{GroupSeq: &zero, MaxGroupNum: &limit}, nil, &groups)
	require.Len(t, groups.SubscriptionGroupTable, 3)
	answer := n.must(&protocol.GetAllSubscriptionGroupRequest{}, nil, &groups)
	require.Equal(t, len(groups.SubscriptionGroupTable), int(must32(t, answer, "totalGroupNum")))
	require.Contains(t, groups.SubscriptionGroupTable, "CID_RMQ_SYS_TRANS")
}

func must32(t *testing.T, c *protocol.Command, key string) int32 {
	t.Helper()
	var n int32
	require.NoError(t, fastjson.Unmarshal([]byte(c.Ext.Get(key)), &n))
	return n
}

func TestGroupIsMadeForbiddenAndDeleted(t *testing.T) {
	n := start(t, config(t))
	n.must(&protocol.UpdateAndCreateSubscriptionGroupRequest{}, []byte(`{"groupName":"g","retryMaxTimes":3}`), nil)
	var c protocol.SubscriptionGroupConfig
	n.must(&protocol.GetSubscriptionGroupConfigRequest{Group: "g"}, nil, &c)
	require.Equal(t, []any{int32(3), true, int64(1)}, []any{c.RetryMaxTimes, c.ConsumeEnable, c.WhichBrokerWhenConsumeSlowly}, "the rest has its default")
	no := false
	var f protocol.GroupForbidden
	n.must(&protocol.UpdateGroupForbiddenRequest{Group: "g", Topic: "T", Readable: &no}, nil, &f)
	require.False(t, *f.Readable)
	n.restart()
	n.must(&protocol.UpdateGroupForbiddenRequest{Group: "g", Topic: "T"}, nil, &f)
	require.False(t, *f.Readable, "asking changes nothing")
	n.must(&protocol.DeleteSubscriptionGroupRequest{GroupName: "g", CleanOffset: true}, nil, nil)
	n.refused(&protocol.GetSubscriptionGroupConfigRequest{Group: "g"}, nil, protocol.SubscriptionGroupNotExist)
	n.must(&protocol.UpdateAndCreateSubscriptionGroupListRequest{}, []byte(`{"groupConfigList":[{"groupName":"a"},{"groupName":"b","consumeEnable":false}]}`), nil)
	n.must(&protocol.GetSubscriptionGroupConfigRequest{Group: "b"}, nil, &c)
	require.False(t, c.ConsumeEnable)
}

// CASES 129: with automatic creation off no template is a way around it.
func TestAutomaticCreationOffCannotBeBypassed(t *testing.T) {
	cfg := config(t)
	n := start(t, cfg)
	require.Contains(t, n.table().TopicConfigTable, "TBW102")
	n.stop()
	cfg.Live.Topic.AutoCreate = false
	n.cfg = cfg
	n.start()
	require.NotContains(t, n.table().TopicConfigTable, "TBW102", "nor advertised")
	n.createTopic("existing", 1)
	before := len(n.table().TopicConfigTable)
	for _, template := range []string{"TBW102", "b", "DefaultCluster", "existing"} {
		answer := n.ask(&protocol.SendMessageRequest{ProducerGroup: "pg", Topic: "unknown", DefaultTopic: template, DefaultTopicQueueNums: 4}, []byte("x"))
		require.Equal(t, protocol.TopicNotExist, protocol.ResponseCode(answer.Code), template)
	}
	require.Len(t, n.table().TopicConfigTable, before)
}

func TestDelayedMessageArrivesWhenDue(t *testing.T) {
	n := start(t, config(t))
	n.createTopic("T", 1)
	began := time.Now()
	n.send("T", "late", map[string]string{message.DelayTimeLevel: "1"})
	require.Equal(t, "late", string(n.pull("g", "T", 0)[0].Body))
	took := time.Since(began)
	require.GreaterOrEqual(t, took, time.Second)
	require.Less(t, took, 2*time.Second)
	require.Eventually(t, func() bool { // a message can be seen just before its level has moved on
		var info protocol.KVTable
		n.must(&protocol.GetBrokerRuntimeInfoRequest{}, nil, &info)
		return info.Table["scheduleMessageOffset_1"] == "1,1"
	}, 10*time.Second, time.Millisecond)
	var offsets protocol.DelayOffsetSerializeWrapper
	n.must(&protocol.GetAllDelayOffsetRequest{}, nil, &offsets)
	require.Equal(t, int64(1), offsets.OffsetTable[1])
}

func TestTransactionIsSeenOnlyOnceCommitted(t *testing.T) {
	n := start(t, config(t))
	n.createTopic("T", 1)
	half := func(body string) *protocol.EndTransactionRequest {
		h := n.send("T", body, map[string]string{message.TransactionPrepared: "true", message.ProducerGroup: "pg", message.UniqueKey: "k" + body})
		_, offset, err := message.ParseOffsetID(h.MsgID)
		require.NoError(t, err)
		return &protocol.EndTransactionRequest{ProducerGroup: "pg", TranStateTableOffset: h.QueueOffset, CommitLogOffset: offset, MsgID: "k" + body}
	}
	a, b := half("a"), half("b")
	a.CommitOrRollback, b.CommitOrRollback = 8, 12
	n.must(b, nil, nil)
	n.must(a, nil, nil)
	n.must(a, nil, nil)
	records := n.pull("g", "T", 0)
	require.Len(t, records, 1)
	require.Equal(t, "a", string(records[0].Body))
	b.CommitOrRollback = 8
	n.refused(b, nil, protocol.IllegalOperation)
	require.Equal(t, int64(1), n.maxOffset("T"))
}

func TestConsumersProducersAndLocksAreKnown(t *testing.T) {
	n := start(t, config(t))
	n.createTopic("T", 2)
	n.refused(&protocol.GetConsumerListByGroupRequest{ConsumerGroup: "g"}, nil, protocol.SystemError)
	n.heartbeat("c1", consumer("g", "T"))
	var ids protocol.GetConsumerListByGroupResponseBody
	n.must(&protocol.GetConsumerListByGroupRequest{ConsumerGroup: "g"}, nil, &ids)
	require.Equal(t, []string{"c1"}, ids.ConsumerIDList)
	require.Contains(t, n.table().TopicConfigTable, "%RETRY%g")
	var conn protocol.ConsumerConnection
	n.must(&protocol.GetConsumerConnectionListRequest{ConsumerGroup: "g"}, nil, &conn)
	require.Equal(t, "CLUSTERING", conn.MessageModel)
	require.Equal(t, "*", conn.SubscriptionTable["T"].SubString)
	var producers protocol.ProducerConnection
	n.must(&protocol.GetProducerConnectionListRequest{ProducerGroup: "pg"}, nil, &producers)
	require.Len(t, producers.ConnectionSet, 1)
	n.refused(&protocol.GetProducerConnectionListRequest{ProducerGroup: "none"}, nil, protocol.SystemError)
	var all protocol.ProducerTableInfo
	n.must(&protocol.GetAllProducerInfoRequest{}, nil, &all)
	require.Len(t, all.Data["pg"], 1)
	var groups protocol.GroupList
	n.must(&protocol.QueryTopicConsumeByWhoRequest{Topic: "T"}, nil, &groups)
	require.Equal(t, []string{"g"}, groups.GroupList)
	var sub protocol.QuerySubscriptionResponseBody
	n.must(&protocol.QuerySubscriptionByConsumerRequest{Group: "g", Topic: "T"}, nil, &sub)
	require.Equal(t, "*", sub.SubscriptionData.SubString)
	n.refused(&protocol.GetConsumerRunningInfoRequest{ConsumerGroup: "g", ClientID: "nobody"}, nil, protocol.SystemError)

	queues := []protocol.MessageQueue{{Topic: "T", BrokerName: "b", QueueID: 0}, {Topic: "T", BrokerName: "b", QueueID: 1}}
	var locked protocol.LockBatchResponseBody
	n.must(&protocol.LockBatchMqRequest{}, protocol.LockBatchRequestBody{ConsumerGroup: "g", ClientID: "c1", MQSet: queues}, &locked)
	require.ElementsMatch(t, queues, locked.LockOKMQSet)
	n.must(&protocol.LockBatchMqRequest{}, protocol.LockBatchRequestBody{ConsumerGroup: "g", ClientID: "c2", MQSet: queues}, &locked)
	require.Empty(t, locked.LockOKMQSet)
	n.must(&protocol.UnlockBatchMqRequest{}, protocol.LockBatchRequestBody{ConsumerGroup: "g", ClientID: "c1", MQSet: queues[:1]}, nil)
	n.must(&protocol.LockBatchMqRequest{}, protocol.LockBatchRequestBody{ConsumerGroup: "g", ClientID: "c2", MQSet: queues}, &locked)
	require.Equal(t, queues[:1], locked.LockOKMQSet)
	n.must(&protocol.UnregisterClientRequest{ClientID: "c1", ConsumerGroup: "g", ProducerGroup: "pg"}, nil, nil)
	n.refused(&protocol.GetConsumerListByGroupRequest{ConsumerGroup: "g"}, nil, protocol.SystemError)
}

func TestConsumeStatsShowWhatIsLeft(t *testing.T) {
	n := start(t, config(t))
	n.createTopic("T", 1)
	for range 5 {
		n.send("T", "x", nil)
	}
	n.heartbeat("c1", consumer("g", "T"))
	require.Len(t, n.pull("g", "T", 0), 5)
	n.must(&protocol.UpdateConsumerOffsetRequest{ConsumerGroup: "g", Topic: "T", CommitOffset: 3}, nil, nil)
	var stats protocol.ConsumeStats
	n.must(&protocol.GetConsumeStatsRequest{ConsumerGroup: "g"}, nil, &stats)
	w := stats.OffsetTable[protocol.MessageQueue{Topic: "T", BrokerName: "b"}]
	require.Equal(t, []int64{5, 3}, []int64{w.BrokerOffset, w.ConsumerOffset})
	require.Positive(t, w.LastTimestamp)
	var all protocol.ConsumeStatsList
	n.must(&protocol.GetConsumeStatsInBrokerRequest{}, nil, &all)
	require.Equal(t, int64(2), all.TotalDiff)
	var data protocol.BrokerStatsData
	n.must(&protocol.ViewBrokerStatsDataRequest{StatsName: "TOPIC_PUT_NUMS", StatsKey: "T"}, nil, &data)
	n.must(&protocol.ViewBrokerStatsDataRequest{StatsName: "GROUP_GET_NUMS", StatsKey: "T@g"}, nil, &data)
	n.refused(&protocol.ViewBrokerStatsDataRequest{StatsName: "TOPIC_PUT_NUMS", StatsKey: "none"}, nil, protocol.SystemError)
	var topics protocol.TopicList
	n.must(&protocol.QueryTopicsByConsumerRequest{Group: "g"}, nil, &topics)
	require.Equal(t, []string{"T"}, topics.TopicList)
}

func TestConfigurationIsShownAndChangedByAllowList(t *testing.T) {
	n := start(t, config(t))
	text := string(n.must(&protocol.GetBrokerConfigRequest{}, nil, nil).Body)
	for _, line := range []string{"brokerName=b\n", "flushDiskType=ASYNC_FLUSH\n", "autoCreateTopicEnable=true\n", "listenPort=10911\n", "transactionTimeOut=6000\n"} {
		require.Contains(t, text, line)
	}
	n.must(&protocol.UpdateBrokerConfigRequest{}, []byte("autoCreateTopicEnable=false\nbrokerPermission=6\n"), nil)
	require.Contains(t, string(n.must(&protocol.GetBrokerConfigRequest{}, nil, nil).Body), "autoCreateTopicEnable=false\n")
	answer := n.ask(&protocol.SendMessageRequest{ProducerGroup: "pg", Topic: "new", DefaultTopic: "TBW102", DefaultTopicQueueNums: 4}, []byte("x"))
	require.Equal(t, protocol.TopicNotExist, protocol.ResponseCode(answer.Code), "it has its effect at once")

	require.Contains(t, n.refused(&protocol.UpdateBrokerConfigRequest{}, []byte("brokerPermission=99"), protocol.InvalidParameter), "brokerPermission")
	require.Contains(t, n.refused(&protocol.UpdateBrokerConfigRequest{}, []byte("autoCreateTopicEnable=yes\nbrokerPermission=4"), protocol.InvalidParameter), "autoCreateTopicEnable")
	require.Contains(t, n.refused(&protocol.UpdateBrokerConfigRequest{}, []byte("listenPort=1"), protocol.NoPermission), "restart")
	require.Contains(t, n.refused(&protocol.UpdateBrokerConfigRequest{}, []byte("transferMsgByHeap=true"), protocol.NoPermission), "no heap")
	require.Contains(t, n.refused(&protocol.UpdateBrokerConfigRequest{}, []byte("nonsense=1"), protocol.InvalidParameter), "nonsense")
	require.Contains(t, string(n.must(&protocol.GetBrokerConfigRequest{}, nil, nil).Body), "brokerPermission=6\n", "all or nothing")
}

func TestRuntimeInfoHasWhatToolsRead(t *testing.T) {
	n := start(t, config(t))
	n.createTopic("T", 1)
	n.send("T", "x", nil)
	var info protocol.KVTable
	n.must(&protocol.GetBrokerRuntimeInfoRequest{}, nil, &info)
	for _, key := range []string{
		"brokerVersionDesc", "putTps", "getTransferredTps", "sendThreadPoolQueueSize", "pullThreadPoolQueueHeadWaitTimeMills", "earliestMessageTimeStamp",
		"commitLogDiskRatio", "msgPutTotalTodayNow", "msgGetTotalTodayMorning", "timerReadBehind", "bootTimestamp", "runtime", "commitLogMaxOffset",
	} {
		require.NotEmpty(t, info.Table[key], key)
	}
	require.Equal(t, "1", info.Table["msgPutTotalTodayNow"])
	require.Len(t, strings.Fields(info.Table["putTps"]), 3)
	n.must(&protocol.CleanExpiredConsumeQueueRequest{}, nil, nil)
	n.must(&protocol.DeleteExpiredCommitLogRequest{}, nil, nil)
	n.must(&protocol.CleanUnusedTopicRequest{}, nil, nil)
	require.Len(t, n.pull("g", "T", 0), 1, "cleaning took nothing in use")
	var system protocol.TopicList
	n.must(&protocol.GetSystemTopicListFromBrokerRequest{}, nil, &system)
	require.Contains(t, system.TopicList, "SCHEDULE_TOPIC_XXXX")
}

func TestFastPortServesAllButPulls(t *testing.T) {
	n := start(t, config(t))
	n.createTopic("T", 1)
	answer := n.askAt(fastAddr, &protocol.PullMessageRequest{ConsumerGroup: "g", Topic: "T", Subscription: "*", SysFlag: 4, MaxMsgNums: 1}, nil)
	require.Equal(t, protocol.RequestCodeNotSupported, protocol.ResponseCode(answer.Code))
	answer = n.askAt(fastAddr, &protocol.GetAllTopicConfigRequest{}, nil)
	require.Equal(t, protocol.Success, protocol.ResponseCode(answer.Code))
}

// CASES 104: a message that a consumer gives back is delivered limit + 1 times in all, then it is a dead letter.
func TestRetryLimitIsTheNumberOfRetries(t *testing.T) {
	for _, limit := range []int32{0, 1, 2} {
		n := start(t, config(t))
		n.createTopic("T", 1)
		n.must(&protocol.UpdateAndCreateSubscriptionGroupRequest{}, protocol.SubscriptionGroupConfig{
			GroupName: "g", ConsumeEnable: true, RetryQueueNums: 1, RetryMaxTimes: limit,
		}, nil)
		n.heartbeat("c1", consumer("g", "T", "%RETRY%g"))
		n.send("T", "poison", nil)
		topic, deliveries := "T", int64(0)
		for range limit + 1 {
			at := max(deliveries-1, 0)
			records := n.pull("g", topic, at)
			require.Len(t, records, 1, "delivery %d", deliveries)
			deliveries++
			n.must(&protocol.ConsumerSendMsgBackRequest{Offset: records[0].PhysicalOffset, Group: "g", DelayLevel: 1, OriginMsgID: "x"}, nil, nil)
			topic = "%RETRY%g"
		}
		dead := n.pull("g", "%DLQ%g", 0)
		require.Len(t, dead, 1)
		require.Equal(t, "poison", string(dead[0].Body))
		require.Equal(t, limit+1, dead[0].ReconsumeTimes)
		n.stop()
	}
}

func TestConfigurationIsValidatedByName(t *testing.T) {
	for want, change := range map[string]func(*broker.Config){
		"brokerId above 0":        func(c *broker.Config) { c.Replication.Role = broker.Slave },
		"brokerId=1":              func(c *broker.Config) { c.Identity.ID = 1 },
		"brokerName":              func(c *broker.Config) { c.Identity.Name = "" },
		"level":                   func(c *broker.Config) { c.Delay.Levels = "1x" },
		"brokerPermission=9":      func(c *broker.Config) { c.Live.Produce.BrokerPermission = 9 },
		"defaultTopicQueueNums=0": func(c *broker.Config) { c.Topic.DefaultQueues = 0 },
	} {
		cfg := broker.DefaultConfig()
		change(&cfg)
		require.ErrorContains(t, cfg.Validate(), want)
	}
	cfg := broker.DefaultConfig()
	require.NoError(t, cfg.Validate())
	require.NotEmpty(t, conf.Fields(&cfg))
	require.Contains(t, cfg.Promise(), "a power loss before that loses it")
	cfg.SyncFlush = true
	require.Contains(t, cfg.Promise(), "survives kill -9 and power loss")
	cfg.Store.FS = vfs.NewMemory(1 << 20)
	require.Contains(t, cfg.Promise(), "gone when the process is")
}

// A configuration that asks for more copies than there are brokers refuses sends instead of promising less.
func TestSyncMasterWithoutItsReplicaRefuses(t *testing.T) {
	cfg := config(t)
	cfg.Replication.Role, cfg.Live.Quorum.InSyncReplicas = broker.SyncMaster, 2
	cfg.Live.Write.ReplicaTimeout = 200 * time.Millisecond
	n := start(t, cfg)
	n.createTopic("T", 1)
	answer := n.ask(&protocol.SendMessageRequest{ProducerGroup: "pg", Topic: "T", DefaultTopic: "TBW102", DefaultTopicQueueNums: 4}, []byte("x"))
	require.NotEqual(t, protocol.Success, protocol.ResponseCode(answer.Code))
	require.NotEmpty(t, answer.Remark)
}

// CASES 106: records carry the address that clients are told, whatever the broker listens on.
func TestStoreHostIsTheAdvertisedAddress(t *testing.T) {
	cfg := config(t)
	cfg.Identity.IP1 = "10.1.2.3"
	n := start(t, cfg)
	require.Equal(t, "10.1.2.3:10911", n.b.Addr())
	h := n.send("T", "x", nil)
	host, _, err := message.ParseOffsetID(h.MsgID)
	require.NoError(t, err)
	require.Equal(t, n.b.Addr(), host.String())
}

func TestRestartKeepsTransactionsDelaysAndProgress(t *testing.T) {
	n := start(t, config(t))
	n.createTopic("T", 1)
	var ends []*protocol.EndTransactionRequest
	for _, body := range []string{"decided", "open"} {
		h := n.send("T", body, map[string]string{message.TransactionPrepared: "true", message.ProducerGroup: "pg"})
		_, offset, err := message.ParseOffsetID(h.MsgID)
		require.NoError(t, err)
		ends = append(ends, &protocol.EndTransactionRequest{
			ProducerGroup: "pg", TranStateTableOffset: h.QueueOffset, CommitLogOffset: offset, CommitOrRollback: 8, MsgID: "k",
		})
	}
	n.must(ends[0], nil, nil)
	n.send("T", "late", map[string]string{message.DelayTimeLevel: "2"})
	n.heartbeat("c1", consumer("g", "T"))
	n.must(&protocol.UpdateConsumerOffsetRequest{ConsumerGroup: "g", Topic: "T", CommitOffset: 1}, nil, nil)
	n.restart()
	n.refused(ends[0], nil, protocol.IllegalOperation)
	n.must(ends[1], nil, nil)
	require.Eventually(t, func() bool { return n.maxOffset("T") == 3 }, 5*time.Second, 10*time.Millisecond)
	var bodies []string
	for _, r := range n.pull("g", "T", 0) {
		bodies = append(bodies, string(r.Body))
	}
	require.ElementsMatch(t, []string{"decided", "open", "late"}, bodies)
	answer := n.must(&protocol.QueryConsumerOffsetRequest{ConsumerGroup: "g", Topic: "T"}, nil, nil)
	require.Equal(t, "1", answer.Ext.Get("offset"))
}

// A key that may change must not also sit where it is read once: it would change here and not there.
func TestKeysThatMayChangeAreHeldOnceOrChangedEverywhere(t *testing.T) {
	var c broker.Config
	all := map[string]int{}
	for _, f := range conf.Fields(&c) {
		all[f.Key]++
	}
	live := map[string]int{}
	for _, f := range conf.Fields(&c.Live) {
		live[f.Key]++
	}
	for key, n := range live {
		require.Equal(t, n, all[key], key)
	}
}
