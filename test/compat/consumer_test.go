package compat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/stretchr/testify/require"
)

func sendMany(t *testing.T, c *cluster, topic string, n int) []string {
	t.Helper()
	p := newProducer(t, c)
	var bodies []string
	for i := range n {
		body := fmt.Sprintf("%s-%03d", topic, i)
		send(t, p, newMessage(topic, body))
		bodies = append(bodies, body)
	}
	return bodies
}

func consumeConcurrently(t *testing.T, c *cluster) {
	createTopic(t, c, "Concurrent", 4)
	var in inbox
	startConsumer(t, c, "Concurrent", "*", collect(&in))
	want := sendMany(t, c, "Concurrent", 100)
	eventually(t, 30*time.Second, "all come", func() bool { return in.len() >= len(want) })
	time.Sleep(300 * time.Millisecond) // a second copy would come right behind
	require.ElementsMatch(t, want, in.bodies())
}

func consumeOrderly(t *testing.T, c *cluster) {
	createTopic(t, c, "Orderly", 2)
	p := newProducer(t, c, producer.WithQueueSelector(producer.NewHashQueueSelector()))
	for i := range 40 {
		m := newMessage("Orderly", fmt.Sprint(i))
		m.WithShardingKey(fmt.Sprint("key-", i%4))
		send(t, p, m)
	}
	var in inbox
	var once sync.Once
	startConsumer(t, c, "Orderly", "*", func(_ context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		suspended := false
		once.Do(func() { suspended = true }) // one refusal: the queue waits and gives the same message again
		if suspended {
			return consumer.SuspendCurrentQueueAMoment, nil
		}
		in.add(ms...)
		return consumer.ConsumeSuccess, nil
	}, consumer.WithConsumerOrder(true), consumer.WithMaxReconsumeTimes(5))
	eventually(t, 60*time.Second, "all come", func() bool { return in.len() >= 40 })
	next := map[int]int64{}
	for _, m := range in.all() {
		require.Equal(t, next[m.Queue.QueueId], m.QueueOffset, "queue %d", m.Queue.QueueId)
		next[m.Queue.QueueId]++
	}
}

func consumeBroadcast(t *testing.T, c *cluster) {
	createTopic(t, c, "Broadcast", 2)
	group := unique("broadcast")
	inboxes := make([]inbox, 2)
	for i := range inboxes {
		startConsumer(t, c, "Broadcast", "*", collect(&inboxes[i]), consumer.WithGroupName(group),
			consumer.WithConsumerModel(consumer.BroadCasting))
	}
	want := sendMany(t, c, "Broadcast", 10)
	for i := range inboxes {
		eventually(t, 30*time.Second, "each gets all", func() bool { return inboxes[i].len() >= len(want) })
		require.ElementsMatch(t, want, inboxes[i].bodies())
	}
}

func shareQueues(t *testing.T, c *cluster) {
	createTopic(t, c, "Shared", 4)
	group := unique("shared")
	inboxes := make([]inbox, 2)
	for i := range inboxes {
		startConsumer(t, c, "Shared", "*", collect(&inboxes[i]), consumer.WithGroupName(group))
	}
	p := newProducer(t, c)
	// Both get something once each has been given queues; the change notice makes that quick.
	i := 0
	eventually(t, 60*time.Second, "both consumers get messages", func() bool {
		send(t, p, newMessage("Shared", fmt.Sprint(i)))
		i++
		return inboxes[0].len() > 0 && inboxes[1].len() > 0
	})
	eventually(t, 30*time.Second, "all come", func() bool { return inboxes[0].len()+inboxes[1].len() >= i })
}

func tagFilter(t *testing.T, c *cluster) {
	createTopic(t, c, "Tags", 1)
	p := newProducer(t, c)
	// "AaAa" and "BBBB" have the same hash code, which is all that the queue's index knows of a tag.
	for _, tag := range []string{"AaAa", "BBBB", "Other", "AaAa"} {
		send(t, p, newMessage("Tags", tag).WithTag(tag))
	}
	var in inbox
	startConsumer(t, c, "Tags", "AaAa || Third", collect(&in))
	eventually(t, 20*time.Second, "both come", func() bool { return in.len() >= 2 })
	time.Sleep(300 * time.Millisecond)
	require.Equal(t, []string{"AaAa", "AaAa"}, in.bodies())
}

func retryThenDeadLetter(t *testing.T, c *cluster) {
	createTopic(t, c, "Retry", 1)
	group := unique("retry")
	var in inbox
	startConsumer(t, c, "Retry", "*", func(_ context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		in.add(ms...)
		return consumer.ConsumeRetryLater, nil
	}, consumer.WithGroupName(group), consumer.WithMaxReconsumeTimes(1))
	send(t, newProducer(t, c), newMessage("Retry", "refused").WithKeys([]string{"the-key"}))
	dead := "%DLQ%" + group
	eventually(t, 90*time.Second, "it is in the dead-letter queue", func() bool {
		_, err := routeBody(t.Context(), c.nameServer, dead)
		return err == nil && len(drainTopic(t, c, dead)) == 1
	})
	var times []int32
	for _, m := range in.all() {
		times = append(times, m.ReconsumeTimes)
	}
	require.Equal(t, []int32{0, 1}, times)
	m := drainTopic(t, c, dead)[0]
	require.Equal(t, "refused", string(m.Body))
	require.Equal(t, "the-key", m.GetKeys())
	require.Equal(t, "Retry", m.GetProperty("RETRY_TOPIC"))
}

func pullFrom(t *testing.T, c *cluster) {
	createTopic(t, c, "Pull", 1)
	want := sendMany(t, c, "Pull", 20)
	name := unique("pull")
	pc, err := rocketmq.NewPullConsumer(
		consumer.WithNsResolver(resolver(c)), consumer.WithGroupName(name), consumer.WithInstance(name))
	require.NoError(t, err)
	require.NoError(t, pc.Subscribe("Pull", consumer.MessageSelector{Type: consumer.TAG, Expression: "*"}))
	require.NoError(t, pc.Start())
	t.Cleanup(func() { _ = pc.Shutdown() }) // as in newProducer
	queue := &primitive.MessageQueue{Topic: "Pull", BrokerName: c.brokerName}
	r, err := pc.PullFrom(t.Context(), queue, 5, 8)
	require.NoError(t, err)
	require.Equal(t, primitive.PullFound, r.Status)
	require.EqualValues(t, 13, r.NextBeginOffset)
	require.EqualValues(t, 0, r.MinOffset)
	require.EqualValues(t, 20, r.MaxOffset)
	var got []string
	for _, m := range r.GetMessageExts() {
		got = append(got, string(m.Body))
	}
	require.Equal(t, want[5:13], got)
	r, err = pc.PullFrom(t.Context(), queue, 1000, 8)
	require.NoError(t, err)
	require.Equal(t, primitive.PullOffsetIllegal, r.Status)
	require.EqualValues(t, 20, r.NextBeginOffset)
}

func offsetsSurvive(t *testing.T, c *cluster) {
	createTopic(t, c, "Offsets", 2)
	group := unique("offsets")
	first := sendMany(t, c, "Offsets", 10)
	var one inbox
	pc := startConsumer(t, c, "Offsets", "*", collect(&one), consumer.WithGroupName(group))
	eventually(t, 30*time.Second, "the first ten come", func() bool { return one.len() >= len(first) })
	require.NoError(t, pc.Shutdown())
	p := newProducer(t, c)
	var second []string
	for i := range 10 {
		second = append(second, fmt.Sprint("second-", i))
		send(t, p, newMessage("Offsets", second[i]))
	}
	var two inbox
	startConsumer(t, c, "Offsets", "*", collect(&two), consumer.WithGroupName(group))
	eventually(t, 30*time.Second, "the second ten come", func() bool { return two.len() >= len(second) })
	require.ElementsMatch(t, second, two.bodies())
}

func adminClient(t *testing.T, c *cluster) {
	a, err := admin.NewAdmin(admin.WithResolver(resolver(c)))
	require.NoError(t, err)
	t.Cleanup(func() { _ = a.Close() }) // closes what the test is done with
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	require.NoError(t, a.CreateTopic(ctx, admin.WithTopicCreate("Administered"), admin.WithBrokerAddrCreate(c.broker),
		admin.WithReadQueueNums(3), admin.WithWriteQueueNums(3)))
	eventually(t, 40*time.Second, "the topic is listed with its queues", func() bool {
		list, err := a.FetchAllTopicList(ctx)
		if err != nil || !slices.Contains(list.TopicList, "Administered") {
			return false
		}
		queues, err := a.FetchPublishMessageQueues(ctx, "Administered")
		return err == nil && len(queues) == 3
	})
	groups, err := a.GetAllSubscriptionGroup(ctx, c.broker, 5*time.Second)
	require.NoError(t, err)
	require.Contains(t, groups.SubscriptionGroupTable, "TOOLS_CONSUMER")
	require.NoError(t, a.DeleteTopic(ctx, admin.WithTopicDelete("Administered"), admin.WithBrokerAddrDelete(c.broker),
		admin.WithNameSrvAddr([]string{c.nameServer})))
	eventually(t, 40*time.Second, "the topic is gone", func() bool {
		list, err := a.FetchAllTopicList(ctx)
		return err == nil && !slices.Contains(list.TopicList, "Administered")
	})
	p := newProducer(t, c)
	_, err = p.SendSync(ctx, newMessage("Administered%bad name", "x"))
	require.Error(t, err, "a name that the product cannot store is refused")
	require.False(t, errors.Is(err, context.DeadlineExceeded), "and at once")
}
