package compat

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/test/javapeer"
)

// exchangedQueues are the queues that fillStore writes to, by topic; one of a delayed message is among them.
var exchangedQueues = map[string][]int{"Exchanged": {0, 1}, "ExchangedOther": {0}, "SCHEDULE_TOPIC_XXXX": {17}}

// storeContents reads all that fillStore put into a broker, one line for each message, so that two brokers can be compared.
func storeContents(t *testing.T, c *cluster) []string {
	t.Helper()
	var lines []string
	for topic, queues := range exchangedQueues {
		for _, id := range queues {
			for _, m := range drainQueue(t, c.broker, topic, id) {
				lines = append(lines, messageLine(topic, id, m))
			}
		}
	}
	return lines
}

func messageLine(topic string, queue int, m *primitive.MessageExt) string {
	properties := m.GetProperties()
	delete(properties, "MIN_OFFSET") // added to what is pulled, by some versions
	delete(properties, "MAX_OFFSET")
	text, err := json.Marshal(properties)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s/%d@%d log %d id %s born %d stored %d flag %d/%d again %d prepared %d crc %d body %q %s",
		topic, queue, m.QueueOffset, m.CommitLogOffset, m.OffsetMsgId, m.BornTimestamp, m.StoreTimestamp, m.Flag, m.SysFlag,
		m.ReconsumeTimes, m.PreparedTransactionOffset, m.BodyCRC, m.Body, text)
}

// fillStore puts messages of several kinds into a broker, enough to roll its small segments a few times.
func fillStore(t *testing.T, c *cluster) {
	t.Helper()
	createTopic(t, c, "Exchanged", 2)
	createTopic(t, c, "ExchangedOther", 1)
	a, err := invoke(t.Context(), c.broker, 200, map[string]string{"group": "exchange-group"}, []byte(`{"groupName":"exchange-group","consumeEnable":true,"retryQueueNums":1,"retryMaxTimes":16}`))
	require.NoError(t, err)
	require.Zero(t, a.Code, a.Remark)
	p := newProducer(t, c, producer.WithCompressMsgBodyOverHowmuch(1024))
	for i := range 120 {
		m := newMessage("Exchanged", fmt.Sprintf("body-%d %s", i, strings.Repeat("x", i*5))).
			WithTag("Tag" + strconv.Itoa(i%3)).WithKeys([]string{fmt.Sprint("key-", i), "common"})
		m.WithProperty("colour", "grün")
		send(t, p, m)
	}
	var batch []*primitive.Message
	for i := range 5 {
		batch = append(batch, newMessage("ExchangedOther", fmt.Sprint("batch-", i)).WithTag("B"))
	}
	send(t, p, batch...)
	send(t, p, newMessage("ExchangedOther", strings.Repeat("compressible ", 500)))
	send(t, p, newMessage("ExchangedOther", "late").WithDelayTimeLevel(18))
	for q := range 2 {
		a, err := invoke(t.Context(), c.broker, 15, map[string]string{
			"consumerGroup": "exchange-group", "topic": "Exchanged", "queueId": fmt.Sprint(q), "commitOffset": fmt.Sprint(10 + q),
		}, nil)
		require.NoError(t, err)
		require.Zero(t, a.Code, a.Remark)
	}
}

// requireAlive checks that a broker on a taken-over store answers by key, knows the progress, and takes new messages
// behind the old ones.
func requireAlive(t *testing.T, c *cluster) {
	t.Helper()
	for q := range 2 {
		a, err := invoke(t.Context(), c.broker, 14, map[string]string{"consumerGroup": "exchange-group", "topic": "Exchanged", "queueId": fmt.Sprint(q)}, nil)
		require.NoError(t, err)
		require.Zero(t, a.Code, a.Remark)
		require.Equal(t, fmt.Sprint(10+q), a.Ext["offset"])
	}
	a, err := invoke(t.Context(), c.broker, 12, map[string]string{
		"topic": "Exchanged", "key": "key-77", "maxNum": "32", "beginTimestamp": "0", "endTimestamp": strconv.FormatInt(time.Now().UnixMilli()+1000, 10),
	}, nil)
	require.NoError(t, err)
	require.Zero(t, a.Code, a.Remark)
	found := primitive.DecodeMessage(a.Body)
	require.Len(t, found, 1)
	require.Contains(t, string(found[0].Body), "body-77 ")
	before := len(drainQueue(t, c.broker, "Exchanged", 0))
	m := newMessage("Exchanged", "from the new owner")
	m.Queue = newQueue("Exchanged", c.brokerName, 0)
	r := send(t, newProducer(t, c, producer.WithQueueSelector(producer.NewManualQueueSelector())), m)
	require.EqualValues(t, before, r.QueueOffset)
	require.Len(t, drainQueue(t, c.broker, "Exchanged", 0), before+1)
}

// A store written by one product, stopped cleanly or killed, is opened by the other, and each message reads back the same.
func TestStoresAreExchanged(t *testing.T) {
	needsProduct(t)
	for _, version := range []string{javapeer.V5, javapeer.V4} {
		for _, end := range []string{"stopped", "killed"} {
			t.Run("ours opened by Java "+version+" "+end, func(t *testing.T) {
				peer := openJava(t, version)
				ns := startNameServer(t)
				dir := filepath.Join(t.TempDir(), "broker")
				ours := startOurBroker(t, ns.nameServer, dir, nil)
				waitRegistered(t, ns.nameServer, ours.brokerName)
				fillStore(t, ours)
				want := storeContents(t, ours)
				finish(t, ours, end)
				java := startJavaBroker(t, peer, ns.nameServer, dir, nil)
				compareContents(t, want, java)
				requireAlive(t, java)
			})
			t.Run("Java's "+version+" opened by us "+end, func(t *testing.T) {
				peer := openJava(t, version)
				ns := startNameServer(t)
				dir := filepath.Join(t.TempDir(), "broker")
				java := startJavaBroker(t, peer, ns.nameServer, dir, nil)
				fillStore(t, java)
				want := storeContents(t, java)
				finish(t, java, end)
				ours := startOurBroker(t, ns.nameServer, dir, nil)
				waitRegistered(t, ns.nameServer, ours.brokerName)
				compareContents(t, want, ours)
				requireAlive(t, ours)
			})
		}
	}
}

func finish(t *testing.T, c *cluster, how string) {
	t.Helper()
	if how == "stopped" {
		c.stop()
		return
	}
	// Progress is written every 5 s, by the Java broker not before its tenth second; kill -9 may cost what came after.
	eventually(t, 30*time.Second, "progress is on disk", func() bool {
		b, err := os.ReadFile(filepath.Join(c.store, "config", "consumerOffset.json"))
		return err == nil && strings.Contains(string(b), "Exchanged@exchange-group")
	})
	c.kill()
}

// compareContents waits for the index of a recovered store, which a Java broker builds behind its start.
func compareContents(t *testing.T, want []string, c *cluster) {
	t.Helper()
	require.Len(t, want, 127)
	eventually(t, 30*time.Second, "the recovered broker serves as many messages", func() bool {
		return len(storeContents(t, c)) >= len(want)
	})
	got := storeContents(t, c)
	slices.Sort(want)
	slices.Sort(got)
	require.Equal(t, want, got)
}
