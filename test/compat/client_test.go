package compat

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/stretchr/testify/require"
)

// Small builders around the official Go client. Instances and groups get names of their own: the client keeps one
// process-wide client per instance name, and the progress of broadcast groups in files under the home folder.

var serial atomic.Int64

func unique(prefix string) string { return fmt.Sprintf("%s-%d-%d", prefix, os.Getpid(), serial.Add(1)) }

func resolver(c *cluster) primitive.NsResolver {
	return primitive.NewPassthroughResolver([]string{c.nameServer})
}

func newProducer(t *testing.T, c *cluster, opts ...producer.Option) rocketmq.Producer {
	t.Helper()
	name := unique("producer")
	all := append([]producer.Option{
		producer.WithNsResolver(resolver(c)), producer.WithGroupName(name), producer.WithInstanceName(name),
		producer.WithSendMsgTimeout(5 * time.Second),
	}, opts...)
	p, err := rocketmq.NewProducer(all...)
	require.NoError(t, err)
	require.NoError(t, p.Start())
	t.Cleanup(func() { _ = p.Shutdown() }) // a test may have stopped the broker it would say good-bye to
	return p
}

func newMessage(topic, body string) *primitive.Message {
	return primitive.NewMessage(topic, []byte(body))
}

func newQueue(topic, broker string, id int) *primitive.MessageQueue {
	return &primitive.MessageQueue{Topic: topic, BrokerName: broker, QueueId: id}
}

func send(t *testing.T, p rocketmq.Producer, messages ...*primitive.Message) *primitive.SendResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, err := p.SendSync(ctx, messages...)
	require.NoError(t, err)
	require.Equal(t, primitive.SendOK, r.Status)
	return r
}

// createTopic makes a topic with the admin client, so that a consumer finds it at once.
func createTopic(t *testing.T, c *cluster, topic string, queues int) {
	t.Helper()
	a, err := invoke(t.Context(), c.broker, 17, map[string]string{
		"topic": topic, "defaultTopic": "TBW102", "readQueueNums": fmt.Sprint(queues), "writeQueueNums": fmt.Sprint(queues),
		"perm": "6", "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
	}, nil)
	require.NoError(t, err)
	require.Zero(t, a.Code, a.Remark)
	eventually(t, 40*time.Second, "topic "+topic+" has a route", func() bool {
		body, err := routeBody(t.Context(), c.nameServer, topic)
		return err == nil && strings.Contains(body, c.brokerName)
	})
}

// inbox collects what a consumer was given.
type inbox struct {
	mu       sync.Mutex
	messages []*primitive.MessageExt
}

func (in *inbox) add(ms ...*primitive.MessageExt) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.messages = append(in.messages, ms...)
}

func (in *inbox) all() []*primitive.MessageExt {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.messages)
}

func (in *inbox) bodies() []string {
	var out []string
	for _, m := range in.all() {
		out = append(out, string(m.Body))
	}
	return out
}

func (in *inbox) len() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.messages)
}

type listener = func(context.Context, ...*primitive.MessageExt) (consumer.ConsumeResult, error)

// startConsumer starts a push consumer from the first offset with all that expression selects.
func startConsumer(t *testing.T, c *cluster, topic, expression string, f listener, opts ...consumer.Option) rocketmq.PushConsumer {
	t.Helper()
	name := unique("consumer")
	all := append([]consumer.Option{
		consumer.WithNsResolver(resolver(c)), consumer.WithGroupName(name), consumer.WithInstance(name),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
	}, opts...)
	pc, err := rocketmq.NewPushConsumer(all...)
	require.NoError(t, err)
	require.NoError(t, pc.Subscribe(topic, consumer.MessageSelector{Type: consumer.TAG, Expression: expression}, f))
	require.NoError(t, pc.Start())
	t.Cleanup(func() { _ = pc.Shutdown() }) // as above
	return pc
}

func collect(in *inbox) listener {
	return func(_ context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		in.add(ms...)
		return consumer.ConsumeSuccess, nil
	}
}
