package offset_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/broker/group"
	"github.com/quorate/quorate/broker/internal/rig"
	"github.com/quorate/quorate/broker/offset"
	"github.com/quorate/quorate/broker/topic"
	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/protocol"
)

func start(t *testing.T) *rig.Rig {
	t.Helper()
	r := rig.New(t, rig.Options{Async: true, Groups: func(s *group.Reloadable) { s.AutoCreate = false }})
	require.NoError(t, r.Topics.Put(topic.Config{Name: "T", ReadQueues: 2, WriteQueues: 2, Perm: 6}))
	for _, name := range []string{"g", "h"} {
		require.NoError(t, r.Groups.Put(group.Default(name)))
	}
	return r
}

func fill(t *testing.T, r *rig.Rig, queue int32, n int) {
	t.Helper()
	for i := range n {
		a := r.Invoke(t, &protocol.SendMessageRequestV2{
			ProducerGroup: "pg", Topic: "T", DefaultTopic: topic.Template, DefaultTopicQueueNums: 2, QueueID: queue,
		}, fmt.Appendf(nil, "m%d", i))
		require.Equal(t, int32(0), a.Code, "%s", a.Remark)
	}
	r.Dispatched(t)
}

func query(t *testing.T, r *rig.Rig, name string, zero *bool) (protocol.ResponseCode, string) {
	t.Helper()
	a := r.Invoke(t, &protocol.QueryConsumerOffsetRequest{ConsumerGroup: name, Topic: "T", SetZeroIfNotFound: zero}, nil)
	return protocol.ResponseCode(a.Code), a.Ext.Get("offset")
}

// CASES 98: where a new group starts. 0 means everything, 22 that the client's consumeFromWhere decides.
func TestWhereANewGroupStarts(t *testing.T) {
	r := start(t)
	no := false
	code, _ := query(t, r, "new", nil)
	require.Equal(t, protocol.QueryNotFound, code, "an empty topic")
	fill(t, r, 0, 1)
	code, at := query(t, r, "new", nil)
	require.Equal(t, []any{protocol.Success, "0"}, []any{code, at}, "a young topic: its first message is in memory")
	code, _ = query(t, r, "new", &no)
	require.Equal(t, protocol.QueryNotFound, code)
	r.Offsets.Commit("g", "T", 0, 1)
	code, at = query(t, r, "g", &no)
	require.Equal(t, []any{protocol.Success, "1"}, []any{code, at})
}

func TestUpdateChecksInOrder(t *testing.T) {
	r := start(t)
	for _, c := range []struct {
		group, topic string
		queue        int32
		offset       int64
		code         protocol.ResponseCode
	}{
		{"nobody", "nothing", -1, -1, 26}, {"g", "nothing", -1, -1, 17}, {"g", "T", -1, 0, 29}, {"g", "T", 0, 7, 0},
	} {
		a := r.Invoke(t, &protocol.UpdateConsumerOffsetRequest{ConsumerGroup: c.group, Topic: c.topic, QueueID: c.queue, CommitOffset: c.offset}, nil)
		require.Equal(t, c.code, protocol.ResponseCode(a.Code), "%+v: %s", c, a.Remark)
	}
	require.Equal(t, int64(7), r.Offsets.Query("g", "T", 0), "no range is checked")

	r.Offsets.SetReset("g", "T", 0, 3)
	a := r.Invoke(t, &protocol.UpdateConsumerOffsetRequest{ConsumerGroup: "g", Topic: "T", CommitOffset: 9}, nil)
	require.Equal(t, int32(0), a.Code)
	require.Equal(t, "Offset has been previously reset", string(a.Remark))
	require.Equal(t, int64(3), r.Offsets.Query("g", "T", 0))
}

func reset(t *testing.T, r *rig.Rig, q protocol.ResetOffsetRequest) (map[protocol.MessageQueue]int64, *protocol.Command) {
	t.Helper()
	q.Topic, q.Group = "T", "g"
	a := r.Invoke(t, &q, nil)
	var body offset.ResetBody
	if a.Code == 0 {
		require.NoError(t, fastjson.Unmarshal(a.Body, &body))
	}
	return body.OffsetTable, a
}

func at(queue int32, q0 int64) map[protocol.MessageQueue]int64 {
	return map[protocol.MessageQueue]int64{{BrokerName: "broker-a", QueueID: queue, Topic: "T"}: q0}
}

// CASES 100: the first message at or after the time; before all is min, now is max, an empty queue keeps 0.
func TestResetByTimeIsExact(t *testing.T) {
	r := start(t)
	before := time.Now().UnixMilli() - 1000
	fill(t, r, 0, 5)
	r.Offsets.Commit("g", "T", 0, 3)
	got, a := reset(t, r, protocol.ResetOffsetRequest{Timestamp: before, IsForce: true})
	require.Equal(t, int32(0), a.Code, "%s", a.Remark)
	require.Equal(t, map[protocol.MessageQueue]int64{
		{BrokerName: "broker-a", QueueID: 0, Topic: "T"}: 0, {BrokerName: "broker-a", QueueID: 1, Topic: "T"}: 0,
	}, got)
	require.Equal(t, int64(0), r.Offsets.Query("g", "T", 0))

	got, _ = reset(t, r, protocol.ResetOffsetRequest{Timestamp: -1, IsForce: true})
	require.Equal(t, int64(5), got[protocol.MessageQueue{BrokerName: "broker-a", QueueID: 0, Topic: "T"}])
	zero := int32(0)
	got, _ = reset(t, r, protocol.ResetOffsetRequest{Timestamp: time.Now().UnixMilli() + 60_000, QueueID: &zero, IsForce: true})
	require.Equal(t, at(0, 5), got, "a time after all messages is the end")

	// Without force a group is only moved back.
	r.Offsets.Commit("g", "T", 0, 2)
	got, _ = reset(t, r, protocol.ResetOffsetRequest{Timestamp: -1, QueueID: &zero})
	require.Equal(t, at(0, 2), got)

	two, nine := int64(4), int64(9)
	got, _ = reset(t, r, protocol.ResetOffsetRequest{QueueID: &zero, Offset: &two, IsForce: true})
	require.Equal(t, at(0, 4), got)
	_, a = reset(t, r, protocol.ResetOffsetRequest{QueueID: &zero, Offset: &nine, IsForce: true})
	require.Equal(t, protocol.SystemError, protocol.ResponseCode(a.Code), "beyond the end")
}

func TestResetOfUnknownNamesIsRefused(t *testing.T) {
	r := start(t)
	a := r.Invoke(t, &protocol.ResetOffsetRequest{Topic: "nothing", Group: "g", Timestamp: -1}, nil)
	require.Equal(t, protocol.TopicNotExist, protocol.ResponseCode(a.Code))
	a = r.Invoke(t, &protocol.ResetOffsetRequest{Topic: "T", Group: "nobody", Timestamp: -1}, nil)
	require.Equal(t, protocol.SubscriptionGroupNotExist, protocol.ResponseCode(a.Code))
}

func TestCloneAllCorrectionAndTimeSpan(t *testing.T) {
	r := start(t)
	fill(t, r, 0, 5)
	r.Offsets.Commit("g", "T", 0, 3)
	r.Offsets.Commit("g", "T", 1, 0)
	a := r.Invoke(t, &protocol.CloneGroupOffsetRequest{SrcGroup: "g", DestGroup: "h", Topic: "T"}, nil)
	require.Equal(t, int32(0), a.Code)
	require.Equal(t, int64(3), r.Offsets.Query("h", "T", 0))

	var all offset.Content
	a = r.Invoke(t, &protocol.GetAllConsumerOffsetRequest{}, nil)
	require.NoError(t, fastjson.Unmarshal(a.Body, &all))
	require.Equal(t, map[string]map[int32]int64{"T@g": {0: 3, 1: 0}, "T@h": {0: 3, 1: 0}}, all.OffsetTable)

	r.Offsets.Commit("h", "T", 0, 1)
	a = r.Invoke(t, &protocol.QueryCorrectionOffsetRequest{FilterGroups: "nobody", CompareGroup: "g", Topic: "T"}, nil)
	require.JSONEq(t, `{"correctionOffsets":{"0":1,"1":0}}`, string(a.Body), "fastjson reads quoted integer keys too")

	a = r.Invoke(t, &protocol.QueryConsumeTimeSpanRequest{Topic: "T", Group: "g"}, nil)
	require.Equal(t, int32(0), a.Code, "%s", a.Remark)
	require.Contains(t, string(a.Body), `"queueId":0`)
	require.NotContains(t, string(a.Body), `"queueId":1`, "an empty queue spans no time")
}

// CASES 101.
func TestARemovedGroupLeavesNothing(t *testing.T) {
	r := start(t)
	fill(t, r, 0, 3)
	r.Offsets.Commit("g", "T", 0, 3)
	r.Offsets.RemoveGroup("g")
	require.NoError(t, r.Offsets.Persist())
	text, err := r.Store.ReadConfigFile("consumerOffset.json")
	require.NoError(t, err)
	require.NotContains(t, string(text), "T@g")
}
