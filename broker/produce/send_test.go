package produce_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/broker/group"
	"github.com/quorate/quorate/broker/internal/rig"
	"github.com/quorate/quorate/broker/produce"
	"github.com/quorate/quorate/broker/topic"
	"github.com/quorate/quorate/broker/write"
	"github.com/quorate/quorate/internal/vfs"
	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/store"
)

func sendTo(name string, change ...func(*protocol.SendMessageRequestV2)) *protocol.SendMessageRequestV2 {
	r := &protocol.SendMessageRequestV2{
		ProducerGroup: "pg", Topic: name, DefaultTopic: topic.Template, DefaultTopicQueueNums: 4, QueueID: 1,
		BornTimestamp: 1700000000000, Flag: 7, Properties: "KEYS\x01k1\x02TAGS\x01TagA\x02UNIQ_KEY\x01U1\x02WAIT\x01true\x02",
	}
	for _, c := range change {
		c(r)
	}
	return r
}

func properties(pairs ...string) string {
	var p message.Properties
	for i := 0; i < len(pairs); i += 2 {
		p = p.Append(pairs[i], pairs[i+1])
	}
	return string(p)
}

func put(t *testing.T, r *rig.Rig, c topic.Config) {
	t.Helper()
	require.NoError(t, r.Topics.Put(c))
}

func plain(name string) topic.Config {
	return topic.Config{Name: name, ReadQueues: 4, WriteQueues: 4, Perm: 6}
}

// last decodes the newest record of a queue.
func last(t *testing.T, r *rig.Rig, name string, queue int32) message.Record {
	t.Helper()
	r.Dispatched(t)
	_, end := r.Store.QueueBounds(name, queue)
	require.Positive(t, end, "nothing in %s queue %d", name, queue)
	entries := make([]store.QueueEntry, 1)
	n, err := r.Store.QueueEntries(name, queue, end-1, entries)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	v, err := r.Store.RecordAt(entries[0].PhysicalOffset)
	require.NoError(t, err)
	defer v.Release()
	own := append([]byte(nil), v.Bytes...)
	record, err := message.DecodeRecord(own, true)
	require.NoError(t, err)
	return record
}

func TestSendIsStoredAsItCameAndAnsweredWithWhatIsProved(t *testing.T) {
	r := rig.New(t, rig.Options{})
	put(t, r, plain("T"))
	for i, request := range []protocol.Request{
		sendTo("T"),
		&protocol.SendMessageRequest{
			ProducerGroup: "pg", Topic: "T", DefaultTopic: topic.Template, DefaultTopicQueueNums: 4, QueueID: 1,
			BornTimestamp: 1700000000000, Flag: 7, Properties: "KEYS\x01k1\x02TAGS\x01TagA\x02UNIQ_KEY\x01U1\x02WAIT\x01true\x02",
		},
	} {
		a := r.Invoke(t, request, []byte("hello"))
		require.Equal(t, int32(protocol.Success), a.Code, "%s", a.Remark)
		got := map[string]string{}
		for _, f := range a.Ext {
			got[string(f.Key)] = string(f.Value)
		}
		record := last(t, r, "T", 1)
		require.Equal(t, map[string]string{
			"msgId": message.OffsetID(rig.Host, record.PhysicalOffset), "queueId": "1", "queueOffset": fmt.Sprint(i),
			"transactionId": "U1", "MSG_REGION": "DefaultRegion", "TRACE_ON": "true",
			"durability": "local", "durableReplicas": "1", "receivedReplicas": "1", "masterEpoch": "1",
		}, got)
		require.Equal(t, "hello", string(record.Body))
		require.Equal(t, []any{int32(7), int64(1700000000000), rig.Host, int64(i)},
			[]any{record.Flag, record.BornTimestamp, record.StoreHost, record.QueueOffset})
		require.Equal(t, map[string]string{
			"KEYS": "k1", "TAGS": "TagA", "UNIQ_KEY": "U1", "WAIT": "true", "MSG_REGION": "DefaultRegion", "TRACE_ON": "true",
			"CLUSTER": "DefaultCluster",
		}, message.ParseProperties(record.Properties))
	}
}

func TestAsyncFlushSaysMemory(t *testing.T) {
	r := rig.New(t, rig.Options{Async: true})
	put(t, r, plain("T"))
	a := r.Invoke(t, sendTo("T"), []byte("x"))
	require.Equal(t, int32(protocol.Success), a.Code)
	require.Equal(t, []string{"memory", "0", "1", "1"}, []string{
		a.Ext.Get("durability"), a.Ext.Get("durableReplicas"), a.Ext.Get("receivedReplicas"), a.Ext.Get("masterEpoch"),
	})
}

// The order of PROTOCOL §3.1: each case would also fail every check behind the one it names.
func TestSendChecksInOrder(t *testing.T) {
	r := rig.New(t, rig.Options{})
	put(t, r, plain("T"))
	ordered := plain("Ordered")
	ordered.Order = true
	put(t, r, ordered)
	put(t, r, topic.Config{Name: "Compacted", ReadQueues: 1, WriteQueues: 1, Perm: 6, Attributes: map[string]string{"cleanup.policy": "COMPACTION"}})
	put(t, r, topic.Config{Name: "ReadOnly", ReadQueues: 1, WriteQueues: 0, Perm: 4})
	_, err := r.Topics.CreateOnSend("%RETRY%unknown", topic.Template, 1, 0)
	require.NoError(t, err)
	noGroups := rig.New(t, rig.Options{Groups: func(s *group.Reloadable) { s.AutoCreate = false }, Topics: func(s *topic.Reloadable) { s.AutoCreate = false }})
	_, err = noGroups.Topics.CreateOnSend("%RETRY%unknown", topic.Template, 1, 0)
	require.NoError(t, err)
	put(t, noGroups, plain("Known"))

	for _, c := range []struct {
		name    string
		rig     *rig.Rig
		live    func(*produce.Reloadable)
		request *protocol.SendMessageRequestV2
		body    string
		code    protocol.ResponseCode
		remark  string
	}{
		{"no body", r, nil, sendTo("bad topic!"), "", protocol.SystemError, "no body"},
		{"not yet", r, func(l *produce.Reloadable) { l.AcceptFrom = time.Now().Add(time.Hour).UnixMilli() }, sendTo("bad topic!"), "x", protocol.SystemError, "startAcceptSendRequestTimeStamp"},
		{"read-only broker, ordered topic", r, func(l *produce.Reloadable) { l.BrokerPermission = 4 }, sendTo("Ordered"), "x", protocol.NoPermission, "ordered topic"},
		{"read-only broker, other topic", r, func(l *produce.Reloadable) { l.BrokerPermission = 4 }, sendTo("T"), "x", protocol.Success, ""},
		{"topic name", r, nil, sendTo("bad topic!"), "x", protocol.InvalidParameter, "illegal characters"},
		{"topic name too long", r, nil, sendTo(strings.Repeat("a", 128)), "x", protocol.InvalidParameter, "127"},
		{"system topic", r, nil, sendTo(topic.Schedule), "x", protocol.NoPermission, "forbidden"},
		{"unknown topic, unknown template", r, nil, sendTo("New", func(q *protocol.SendMessageRequestV2) { q.DefaultTopic = "nope" }), "x", protocol.TopicNotExist, "does not exist"},
		{"queue id", r, nil, sendTo("T", func(q *protocol.SendMessageRequestV2) { q.QueueID = 4 }), "x", protocol.InvalidParameter, "queueId 4"},
		{"no write queue to choose from", r, nil, sendTo("ReadOnly", func(q *protocol.SendMessageRequestV2) { q.QueueID = -1 }), "x", protocol.InvalidParameter, "no write queue"},
		{"retry topic of an unknown group", noGroups, nil, sendTo("%RETRY%unknown", func(q *protocol.SendMessageRequestV2) { q.QueueID = 0 }), "x", protocol.SubscriptionGroupNotExist, "unknown"},
		{"compacted topic without keys", r, nil, sendTo("Compacted", func(q *protocol.SendMessageRequestV2) { q.QueueID, q.Properties = 0, "" }), "x", protocol.MessageIllegal, "KEYS"},
		{"transactions refused", r, func(l *produce.Reloadable) { l.RejectTransactions = true }, sendTo("T", func(q *protocol.SendMessageRequestV2) { q.Properties = properties("TRAN_MSG", "true") }), "x", protocol.NoPermission, "rejectTransactionMessage"},
		{"timed message", r, nil, sendTo("T", func(q *protocol.SendMessageRequestV2) { q.Properties = properties("TIMER_DELIVER_MS", "1") }), "x", protocol.SystemError, "timer wheel"},
		{"properties too long", r, nil, sendTo("T", func(q *protocol.SendMessageRequestV2) { q.Properties = properties("a", strings.Repeat("b", 32767)) }), "x", protocol.MessageIllegal, ""},
		{"body too long", r, nil, sendTo("T"), strings.Repeat("x", 4<<20+1), protocol.MessageIllegal, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			live := produce.DefaultReloadable()
			if c.live != nil {
				c.live(&live)
			}
			c.rig.Send.Reload(live)
			before := c.rig.Store.Appended().Load()
			a := c.rig.Invoke(t, c.request, []byte(c.body))
			require.Equal(t, c.code, protocol.ResponseCode(a.Code), "%s", a.Remark)
			require.Contains(t, string(a.Remark), c.remark)
			if c.code == protocol.Success {
				return
			}
			require.Equal(t, before, c.rig.Store.Appended().Load())
			require.Regexp(t, "^(admission|authority|append): ", string(a.Remark), "a refusal names its stage")
			_, proved := a.Ext.Lookup("durability")
			require.False(t, proved, "a refusal before the append proves nothing")
		})
	}
}

// CASES 126.
func TestEachMissingOrWrongFieldIsNamedAndTheConnectionStays(t *testing.T) {
	r := rig.New(t, rig.Options{})
	put(t, r, plain("T"))
	whole := protocol.NewRequest(sendTo("T"), []byte("x"))
	for _, key := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		cmd := *whole
		cmd.Ext = nil
		for _, f := range whole.Ext {
			if string(f.Key) != key {
				cmd.Ext = append(cmd.Ext, f)
			}
		}
		a := r.InvokeCommand(t, &cmd)
		require.Equal(t, protocol.InvalidParameter, protocol.ResponseCode(a.Code))
		require.Contains(t, string(a.Remark), " "+key+" ")
	}
	cmd := *whole
	cmd.Ext = append(protocol.ExtFields{}, whole.Ext...).Add("e", "one")
	a := r.InvokeCommand(t, &cmd)
	require.Equal(t, protocol.InvalidParameter, protocol.ResponseCode(a.Code))
	cmd.Ext = append(protocol.ExtFields{}, whole.Ext...).Add("zz", "unknown fields are nobody's business")
	require.Equal(t, int32(0), r.InvokeCommand(t, &cmd).Code)
}

func TestUnknownTopicsAreMadeFromTheirTemplate(t *testing.T) {
	r := rig.New(t, rig.Options{})
	a := r.Invoke(t, sendTo("Fresh", func(q *protocol.SendMessageRequestV2) { q.QueueID = 3 }), []byte("x"))
	require.Equal(t, int32(0), a.Code, "%s", a.Remark)
	c := r.Topics.Get("Fresh")
	require.Equal(t, []int32{4, 4, 6}, []int32{c.ReadQueues, c.WriteQueues, c.Perm})
	require.Equal(t, "3", a.Ext.Get("queueId"))
	require.Equal(t, "x", string(last(t, r, "Fresh", 3).Body), "the borrowed body was copied before the topic was made")
}

// CASES 129.
func TestAutomaticCreationSwitchedOffCannotBeBypassed(t *testing.T) {
	r := rig.New(t, rig.Options{Topics: func(s *topic.Reloadable) { s.AutoCreate = false }})
	put(t, r, topic.Config{Name: "Existing", ReadQueues: 4, WriteQueues: 4, Perm: 7})
	for _, template := range []string{topic.Template, "broker-a", "DefaultCluster", "Existing"} {
		a := r.Invoke(t, sendTo("New", func(q *protocol.SendMessageRequestV2) { q.DefaultTopic = template }), []byte("x"))
		require.Equal(t, protocol.TopicNotExist, protocol.ResponseCode(a.Code))
		require.Nil(t, r.Topics.Get("New"))
	}
}

func TestANegativeQueueIDPicksAWriteQueue(t *testing.T) {
	r := rig.New(t, rig.Options{Async: true})
	put(t, r, topic.Config{Name: "T", ReadQueues: 8, WriteQueues: 2, Perm: 6})
	seen := map[string]bool{}
	for range 64 {
		a := r.Invoke(t, sendTo("T", func(q *protocol.SendMessageRequestV2) { q.QueueID = -1 }), []byte("x"))
		require.Equal(t, int32(0), a.Code)
		seen[a.Ext.Get("queueId")] = true
	}
	require.Equal(t, map[string]bool{"0": true, "1": true}, seen)
}

func TestTheBrokerChangesPropertiesAsRocketMQ(t *testing.T) {
	r := rig.New(t, rig.Options{})
	put(t, r, topic.Config{Name: "T", ReadQueues: 4, WriteQueues: 4, Perm: 6, FilterType: topic.MultiTag})
	a := r.Invoke(t, sendTo("T", func(q *protocol.SendMessageRequestV2) {
		q.SysFlag = int32(message.FlagCompressed)
		q.Properties = properties("POP_CK", "stale", "TAGS", "a||b")
	}), []byte("x"))
	require.Equal(t, int32(0), a.Code)
	record := last(t, r, "T", 1)
	p := message.ParseProperties(record.Properties)
	require.NotContains(t, p, "POP_CK")
	require.NotEmpty(t, p["UNIQ_KEY"])
	require.Equal(t, p["UNIQ_KEY"], a.Ext.Get("transactionId"))
	require.Equal(t, message.FlagCompressed|message.FlagMultiTags, record.SysFlag, "the body stays as the client compressed it")
}

func TestDelayedMessagesArePutAside(t *testing.T) {
	r := rig.New(t, rig.Options{})
	put(t, r, plain("T"))
	a := r.Invoke(t, sendTo("T", func(q *protocol.SendMessageRequestV2) { q.Properties = properties("DELAY", "99", "UNIQ_KEY", "U") }), []byte("x"))
	require.Equal(t, int32(0), a.Code)
	require.Equal(t, "1", a.Ext.Get("queueId"), "the answer speaks of the queue that was asked for")
	record := last(t, r, topic.Schedule, 17)
	p := message.ParseProperties(record.Properties)
	require.Equal(t, []string{"18", "T", "1"}, []string{p["DELAY"], p["REAL_TOPIC"], p["REAL_QID"]})
	entries := make([]store.QueueEntry, 1)
	_, err := r.Store.QueueEntries(topic.Schedule, 17, 0, entries)
	require.NoError(t, err)
	require.InDelta(t, time.Now().Add(2*time.Hour).UnixMilli(), entries[0].TagsCode, 60_000)
}

func TestPreparedTransactionMessagesWaitInTheHalfTopic(t *testing.T) {
	r := rig.New(t, rig.Options{})
	put(t, r, plain("T"))
	a := r.Invoke(t, sendTo("T", func(q *protocol.SendMessageRequestV2) {
		q.SysFlag = int32(message.TransactionPreparedFlag)
		q.Properties = properties("TRAN_MSG", "true", "PGROUP", "pg", "UNIQ_KEY", "U")
	}), []byte("x"))
	require.Equal(t, int32(0), a.Code)
	record := last(t, r, topic.Half, 0)
	p := message.ParseProperties(record.Properties)
	require.Equal(t, []string{"T", "1", "U", "pg", "true"}, []string{p["REAL_TOPIC"], p["REAL_QID"], p["__transactionId__"], p["PGROUP"], p["TRAN_MSG"]})
	require.Equal(t, message.TransactionNone, record.SysFlag.Transaction())
	_, end := r.Store.QueueBounds("T", 1)
	require.Zero(t, end, "no consumer sees it")
}

func TestRetriedTooOftenGoesToTheDeadLetterQueue(t *testing.T) {
	r := rig.New(t, rig.Options{})
	for _, c := range []struct {
		times, limit int32
		version      int32
		dead         bool
	}{
		{16, 100, 400, false}, {17, 16, 400, true}, {1, 0, 400, true}, {16, 0, 10, false}, {17, 100, 10, true},
	} {
		group := fmt.Sprintf("g%d-%d-%d", c.times, c.limit, c.version)
		request := sendTo("%RETRY%"+group, func(q *protocol.SendMessageRequestV2) {
			q.QueueID, q.ReconsumeTimes, q.MaxReconsumeTimes = 0, &c.times, &c.limit
			q.Properties = properties("DELAY", "3")
		})
		cmd := protocol.NewRequest(request, []byte("x"))
		cmd.Version = c.version
		a := r.InvokeCommand(t, cmd)
		require.Equal(t, int32(0), a.Code, "%s", a.Remark)
		if c.dead {
			record := last(t, r, "%DLQ%"+group, 0)
			require.Equal(t, "-1", record.Properties.Get("DELAY"))
			require.Equal(t, []int32{1, 1, 6}, []int32{
				r.Topics.Get("%DLQ%" + group).ReadQueues, r.Topics.Get("%DLQ%" + group).WriteQueues, r.Topics.Get("%DLQ%" + group).Perm,
			})
			continue
		}
		require.Nil(t, r.Topics.Get("%DLQ%"+group))
		require.Equal(t, "%RETRY%"+group, last(t, r, topic.Schedule, 2).Properties.Get("REAL_TOPIC"))
	}
}

func TestABatchIsOneAppendAndKeepsItsEntriesAsTheyAre(t *testing.T) {
	r := rig.New(t, rig.Options{})
	put(t, r, plain("T"))
	yes := true
	var body []byte
	for i := range 3 {
		body = message.AppendBatchEntry(body, message.BatchEntry{
			Flag: int32(i), Body: []byte{byte('a' + i)}, Properties: message.Properties(properties("KEYS", fmt.Sprint(i))),
		})
	}
	batch := func(change ...func(*protocol.SendMessageRequestV2)) *protocol.SendBatchMessageRequest {
		q := sendTo("T", change...)
		q.Batch = &yes
		return &protocol.SendBatchMessageRequest{SendMessageRequestV2: *q}
	}
	a := r.Invoke(t, batch(), body)
	require.Equal(t, int32(0), a.Code, "%s", a.Remark)
	ids := strings.Split(a.Ext.Get("msgId"), ",")
	require.Len(t, ids, 3)
	require.Equal(t, "0", a.Ext.Get("queueOffset"))
	require.Equal(t, "U1", a.Ext.Get("transactionId"))
	r.Dispatched(t)
	entries := make([]store.QueueEntry, 3)
	n, err := r.Store.QueueEntries("T", 1, 0, entries)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	for i, e := range entries {
		v, err := r.Store.RecordAt(e.PhysicalOffset)
		require.NoError(t, err)
		record, err := message.DecodeRecord(v.Bytes, true)
		require.NoError(t, err)
		require.Equal(t, message.OffsetID(rig.Host, e.PhysicalOffset), ids[i])
		require.Equal(t, properties("KEYS", fmt.Sprint(i)), string(record.Properties))
		require.Equal(t, []any{int32(i), int64(i)}, []any{record.Flag, record.QueueOffset})
		v.Release()
	}

	// The header field m makes a batch, the code alone does not.
	q := sendTo("T")
	a = r.Invoke(t, &protocol.SendBatchMessageRequest{SendMessageRequestV2: *q}, []byte("no batch"))
	require.Equal(t, int32(0), a.Code)
	require.Equal(t, "no batch", string(last(t, r, "T", 1).Body))

	before := r.Store.Appended().Load()
	for name, request := range map[string]*protocol.SendBatchMessageRequest{
		"delayed":     batch(func(q *protocol.SendMessageRequestV2) { q.Properties = properties("DELAY", "1") }),
		"transaction": batch(func(q *protocol.SendMessageRequestV2) { q.SysFlag = int32(message.TransactionPreparedFlag) }),
		"retry topic": batch(func(q *protocol.SendMessageRequestV2) { q.Topic, q.QueueID = "%RETRY%g", 0 }),
	} {
		a := r.Invoke(t, request, body)
		require.Equal(t, protocol.MessageIllegal, protocol.ResponseCode(a.Code), name)
	}
	a = r.Invoke(t, batch(), body[:len(body)-1])
	require.Equal(t, protocol.MessageIllegal, protocol.ResponseCode(a.Code), "a cut batch")
	require.Equal(t, before, r.Store.Appended().Load(), "a refused batch leaves nothing")
}

func TestWithoutMastershipASendIsRefusedRetryably(t *testing.T) {
	r := rig.New(t, rig.Options{})
	put(t, r, plain("T"))
	r.Demote(errors.New("this broker is a replica"))
	a := r.Invoke(t, sendTo("T"), []byte("x"))
	require.Equal(t, protocol.ServiceNotAvailable, protocol.ResponseCode(a.Code))
	require.Equal(t, "authority: this broker is a replica", string(a.Remark))
}

// disk is a file system whose log syncs can be made to fail or to hang.
func disk(t *testing.T) (fsys *vfs.Crashable, set func(fault func() error)) {
	t.Helper()
	fsys = vfs.NewCrashable()
	var fault atomic.Pointer[func() error]
	fsys.SetFault(func(kind, name string) error {
		if f := fault.Load(); f != nil && kind == "sync" && strings.Contains(name, "commitlog/") {
			return (*f)()
		}
		return nil
	})
	return fsys, func(f func() error) { fault.Store(&f) }
}

func proved(a *protocol.Command) []string {
	return []string{a.Ext.Get("durability"), a.Ext.Get("durableReplicas"), a.Ext.Get("receivedReplicas"), a.Ext.Get("masterEpoch")}
}

func TestAFailedFlushIsNeverASuccessAndSaysWhatHolds(t *testing.T) {
	fsys, fault := disk(t)
	r := rig.New(t, rig.Options{Store: func(c *store.Config) { c.FS = fsys }})
	put(t, r, plain("T"))
	require.Equal(t, int32(0), r.Invoke(t, sendTo("T"), []byte("x")).Code)
	fault(func() error { return errors.New("input/output error") })
	a := r.Invoke(t, sendTo("T"), []byte("x"))
	require.NotContains(t, []protocol.ResponseCode{0, 10, 11, 12}, protocol.ResponseCode(a.Code))
	require.Contains(t, string(a.Remark), "input/output error")
	require.Equal(t, []string{"memory", "0", "1", "1"}, proved(a))
	require.NotEmpty(t, a.Ext.Get("msgId"))

	fault(func() error { return nil })
	end := r.Store.Appended().Load()
	a = r.Invoke(t, sendTo("T"), []byte("x"))
	require.NotEqual(t, int32(0), a.Code, "a storage error is never retried into success (I5)")
	require.Regexp(t, "^(admission|authority|append): ", string(a.Remark))
	require.Equal(t, end, r.Store.Appended().Load())
}

func TestAFlushThatTakesTooLongIsCode10WithAllFields(t *testing.T) {
	fsys, fault := disk(t)
	r := rig.New(t, rig.Options{
		Store: func(c *store.Config) { c.FS = fsys },
		Write: func(c *write.Config) { c.SyncFlushTimeout = 200 * time.Millisecond },
	})
	put(t, r, plain("T"))
	require.Eventually(t, func() bool { return r.Invoke(t, sendTo("T"), []byte("x")).Code == 0 }, 10*time.Second, time.Millisecond,
		"the first file is ready")
	release := make(chan struct{})
	fault(func() error { <-release; return nil })
	a := r.Invoke(t, sendTo("T"), []byte("x"))
	close(release)
	require.Equal(t, protocol.FlushDiskTimeout, protocol.ResponseCode(a.Code), "%s", a.Remark)
	require.Equal(t, []string{"memory", "0", "1", "1"}, proved(a))
	require.NotEmpty(t, a.Ext.Get("queueOffset"))
	require.Equal(t, "U1", a.Ext.Get("transactionId"))
}
