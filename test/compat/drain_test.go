package compat

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"

	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/stretchr/testify/require"
)

// drainTopic reads every message of a topic, queue by queue, from the broker that the test runs against.
func drainTopic(t *testing.T, c *cluster, topic string) []*primitive.MessageExt {
	t.Helper()
	a, err := invoke(t.Context(), c.nameServer, 105, map[string]string{"topic": topic, "acceptStandardJsonOnly": "true"}, nil)
	require.NoError(t, err)
	require.Zero(t, a.Code, a.Remark)
	var route struct {
		QueueDatas []struct{ ReadQueueNums int }
	}
	require.NoError(t, json.Unmarshal(a.Body, &route))
	var out []*primitive.MessageExt
	for _, q := range route.QueueDatas {
		for id := range q.ReadQueueNums {
			out = append(out, drainQueue(t, c.broker, topic, id)...)
		}
	}
	return out
}

// drainQueue reads one queue from its first offset to its last.
func drainQueue(t *testing.T, broker, topic string, queue int) []*primitive.MessageExt {
	t.Helper()
	var out []*primitive.MessageExt
	for offset := int64(0); ; {
		a, err := invoke(t.Context(), broker, 11, map[string]string{
			"consumerGroup": "drain", "topic": topic, "queueId": strconv.Itoa(queue), "queueOffset": strconv.FormatInt(offset, 10),
			"maxMsgNums": "32", "sysFlag": "4", "commitOffset": "0", "suspendTimeoutMillis": "0", "subscription": "*",
			"subVersion": "0", "expressionType": "TAG",
		}, nil)
		require.NoError(t, err)
		const found, notFound, retry, moved = 0, 19, 20, 21
		next, err := strconv.ParseInt(a.Ext["nextBeginOffset"], 10, 64)
		switch {
		case a.Code == found:
			require.NoError(t, err)
			out = append(out, primitive.DecodeMessage(a.Body)...)
		case a.Code == notFound, a.Code == moved && (err != nil || next <= offset):
			return out
		case a.Code == retry, a.Code == moved:
		default:
			require.FailNow(t, fmt.Sprintf("pull %s/%d at %d: code %d %s", topic, queue, offset, a.Code, a.Remark))
		}
		if next <= offset {
			return out
		}
		offset = next
	}
}
