package compat

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/stretchr/testify/require"
)

// clientSet are the broker keys of the Go client's tests: check-backs that a test can wait for. The Java broker gathers
// the outcomes of transactions for up to 3 s, so a shorter time-out would have it check what was decided.
var clientSet = map[string]string{"transactionTimeOut": "4000", "transactionCheckInterval": "2000"}

// The Go client's tests share one cluster: they use topics of their own.
func TestGoClient(t *testing.T) {
	c := startCluster(t, clientSet)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *cluster)
	}{
		{"sync send is answered with its place in the queue", syncSend},
		{"async and oneway sends arrive", asyncAndOneway},
		{"a batch is stored as separate messages", batchSend},
		{"a delayed message is invisible until its time", delayedSend},
		{"a topic is created by its first message", autoCreate},
		{"a compressed body arrives whole", bigBody},
		{"transactions are committed, rolled back, or checked", transactions},
		{"a request gets its reply", requestReply},
		{"properties, keys and tags arrive as sent", propertiesArrive},
		{"a concurrent consumer gets every message once", consumeConcurrently},
		{"an orderly consumer gets each queue in order", consumeOrderly},
		{"broadcast consumers all get every message", consumeBroadcast},
		{"two consumers of a group share the queues", shareQueues},
		{"a tag expression selects on the server", tagFilter},
		{"a refused message is retried and ends in the dead-letter queue", retryThenDeadLetter},
		{"a pull consumer reads from any offset", pullFrom},
		{"offsets survive the consumer", offsetsSurvive},
		{"the admin client makes, lists and removes topics", adminClient},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, c)
		})
	}
}

func syncSend(t *testing.T, c *cluster) {
	createTopic(t, c, "SyncSend", 1)
	p := newProducer(t, c)
	for i := range 10 {
		r := send(t, p, newMessage("SyncSend", fmt.Sprint("body-", i)))
		require.EqualValues(t, i, r.QueueOffset)
		require.Equal(t, c.brokerName, r.MessageQueue.BrokerName)
		require.NotEmpty(t, r.MsgID)
		require.Len(t, r.OffsetMsgID, 32)
	}
}

func asyncAndOneway(t *testing.T, c *cluster) {
	createTopic(t, c, "AsyncSend", 2)
	p := newProducer(t, c)
	const n = 20
	results := make(chan error, n)
	for i := range n {
		err := p.SendAsync(t.Context(), func(_ context.Context, r *primitive.SendResult, err error) {
			if err == nil && r.Status != primitive.SendOK {
				err = fmt.Errorf("status %v", r.Status)
			}
			results <- err
		}, newMessage("AsyncSend", fmt.Sprint("async-", i)))
		require.NoError(t, err)
	}
	for range n {
		select {
		case err := <-results:
			require.NoError(t, err)
		case <-time.After(15 * time.Second):
			require.FailNow(t, "no answer to an asynchronous send")
		}
	}
	require.NoError(t, p.SendOneWay(t.Context(), newMessage("AsyncSend", "oneway")))
	eventually(t, 10*time.Second, "all are stored", func() bool { return len(drainTopic(t, c, "AsyncSend")) == n+1 })
}

func batchSend(t *testing.T, c *cluster) {
	createTopic(t, c, "BatchSend", 1)
	p := newProducer(t, c)
	var batch []*primitive.Message
	for i := range 16 {
		batch = append(batch, newMessage("BatchSend", fmt.Sprint("batch-", i)).WithKeys([]string{fmt.Sprint("k", i)}))
	}
	r := send(t, p, batch...)
	require.Len(t, strings.Split(r.OffsetMsgID, ","), 16)
	got := drainTopic(t, c, "BatchSend")
	require.Len(t, got, 16)
	for i, m := range got {
		require.Equal(t, fmt.Sprint("batch-", i), string(m.Body))
		require.EqualValues(t, i, m.QueueOffset)
		require.Equal(t, fmt.Sprint("k", i), m.GetKeys())
	}
}

func delayedSend(t *testing.T, c *cluster) {
	createTopic(t, c, "DelaySend", 1)
	var in inbox
	startConsumer(t, c, "DelaySend", "*", collect(&in))
	p := newProducer(t, c)
	began := time.Now()
	send(t, p, newMessage("DelaySend", "5s").WithDelayTimeLevel(2))
	send(t, p, newMessage("DelaySend", "1s").WithDelayTimeLevel(1))
	eventually(t, 30*time.Second, "both come", func() bool { return in.len() == 2 })
	require.Equal(t, []string{"1s", "5s"}, in.bodies())
	require.GreaterOrEqual(t, time.Since(began), 5*time.Second)
	for _, m := range in.all() {
		require.Equal(t, "DelaySend", m.Topic)
	}
}

func autoCreate(t *testing.T, c *cluster) {
	p := newProducer(t, c, producer.WithDefaultTopicQueueNums(2))
	send(t, p, newMessage("AutoCreated", "first"))
	eventually(t, 40*time.Second, "the route is announced", func() bool {
		_, err := routeBody(t.Context(), c.nameServer, "AutoCreated")
		return err == nil
	})
	require.Len(t, drainTopic(t, c, "AutoCreated"), 1)
}

func bigBody(t *testing.T, c *cluster) {
	createTopic(t, c, "BigBody", 1)
	p := newProducer(t, c, producer.WithCompressMsgBodyOverHowmuch(1024))
	body := strings.Repeat("compressible ", 20_000)
	send(t, p, newMessage("BigBody", body))
	var in inbox
	startConsumer(t, c, "BigBody", "*", collect(&in))
	eventually(t, 20*time.Second, "it comes", func() bool { return in.len() == 1 })
	require.Equal(t, body, string(in.all()[0].Body))
	require.Less(t, int(in.all()[0].StoreSize), len(body)/4, "stored compressed")
}

func propertiesArrive(t *testing.T, c *cluster) {
	createTopic(t, c, "Properties", 1)
	p := newProducer(t, c)
	m := newMessage("Properties", "正文 ünïcödé").WithTag("标签").WithKeys([]string{"one", "two"})
	m.WithProperty("colour", "grün, mit = und :")
	r := send(t, p, m)
	var in inbox
	startConsumer(t, c, "Properties", "*", collect(&in)) // this client's hash of a tag outside ASCII is not Java's
	eventually(t, 20*time.Second, "it comes", func() bool { return in.len() == 1 })
	got := in.all()[0]
	require.Equal(t, "正文 ünïcödé", string(got.Body))
	require.Equal(t, "标签", got.GetTags())
	require.Equal(t, "one two", got.GetKeys())
	require.Equal(t, "grün, mit = und :", got.GetProperty("colour"))
	require.Equal(t, r.MsgID, got.MsgId)
	require.Equal(t, r.OffsetMsgID, got.OffsetMsgId)
}

// ledgerListener decides local transactions by the body's first word.
type ledgerListener struct{ checked inbox }

func (l *ledgerListener) ExecuteLocalTransaction(m *primitive.Message) primitive.LocalTransactionState {
	switch string(m.Body) {
	case "commit":
		return primitive.CommitMessageState
	case "rollback":
		return primitive.RollbackMessageState
	default:
		return primitive.UnknowState
	}
}

func (l *ledgerListener) CheckLocalTransaction(m *primitive.MessageExt) primitive.LocalTransactionState {
	l.checked.add(m)
	if string(m.Body) == "unknown-rollback" {
		return primitive.RollbackMessageState
	}
	return primitive.CommitMessageState
}

func transactions(t *testing.T, c *cluster) {
	createTopic(t, c, "Transactions", 1)
	var l ledgerListener
	name := unique("transaction")
	p, err := rocketmq.NewTransactionProducer(&l,
		producer.WithNsResolver(resolver(c)), producer.WithGroupName(name), producer.WithInstanceName(name))
	require.NoError(t, err)
	require.NoError(t, p.Start())
	t.Cleanup(func() { _ = p.Shutdown() }) // as in newProducer
	var in inbox
	startConsumer(t, c, "Transactions", "*", collect(&in))
	for _, body := range []string{"rollback", "commit", "unknown-commit", "unknown-rollback"} {
		r, err := p.SendMessageInTransaction(t.Context(), newMessage("Transactions", body))
		require.NoError(t, err)
		require.Equal(t, primitive.SendOK, r.Status)
	}
	eventually(t, 60*time.Second, "the unknown ones are checked and the committed ones come", func() bool {
		return in.len() >= 2 && l.checked.len() >= 2
	})
	require.ElementsMatch(t, []string{"commit", "unknown-commit"}, in.bodies())
	t.Log("checks:", l.checked.bodies())
	for _, m := range l.checked.all() {
		require.Contains(t, []string{"unknown-commit", "unknown-rollback"}, string(m.Body))
	}
}

func requestReply(t *testing.T, c *cluster) {
	createTopic(t, c, "Request", 1)
	replies := newProducer(t, c)
	startConsumer(t, c, "Request", "*", func(ctx context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, m := range ms {
			reply, err := consumer.CreateReplyMessage(m, nil)
			if err != nil {
				return consumer.ConsumeRetryLater, err
			}
			reply.Body = []byte("re: " + string(m.Body)) // this release takes the body for properties
			if _, err := replies.SendSync(ctx, reply); err != nil {
				return consumer.ConsumeRetryLater, err
			}
		}
		return consumer.ConsumeSuccess, nil
	})
	p := newProducer(t, c)
	// The broker finds the requester by its heartbeat, which this client sends only once it knows the broker.
	send(t, p, newMessage("SyncSendWarm", "x"))
	eventually(t, 60*time.Second, "a reply comes", func() bool {
		m, err := p.Request(t.Context(), 3*time.Second, newMessage("Request", "question"))
		return err == nil && string(m.Body) == "re: question"
	})
}
