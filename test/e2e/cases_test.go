package e2e

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorate/quorate/admin"
	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/protocol"
)

// cases are written once and run over every network. They run side by side: each has a topic and a group of its own.
var cases = map[string]func(*testing.T, world){
	"a send tells where the message is and what that proves":   sendProves,
	"order per queue is kept and nothing is lost or twice":     order,
	"a batch is stored together":                               batch,
	"a oneway send arrives":                                    oneway,
	"a first send creates the topic":                           autoCreate,
	"tags are filtered exactly, colliding hashes too":          tags,
	"a held pull answers when a message comes":                 hold,
	"a delayed message comes late":                             delayed,
	"a committed transaction is seen, a rolled back one not":   transaction,
	"an unknown transaction is asked about":                    transactionCheck,
	"a failed message comes again, then is dead":               retry,
	"an orderly consumer gets a failed message again in place": orderly,
	"members share the queues":                                 share,
	"a group goes on where it was":                             resume,
	"messages are found by id, unique key and key":             query,
	"progress can be moved":                                    reset,
	"a topic can be changed and deleted":                       topicAdmin,
	"refusals name their reason":                               refusals,
	"a running broker takes a new configuration":               reconfigure,
}

func sendProves(t *testing.T, w world) {
	c := w.connect(t)
	topic := w.topic(t, c, 1)
	p := c.NewProducer(client.ProducerConfig{Group: topic})
	for i := range int64(3) {
		r, err := p.Send(t.Context(), &client.Message{Topic: topic, Body: []byte("x")})
		if err != nil {
			t.Fatal(err)
		}
		if r.Status != client.SendOK || r.Offset != i || r.Durability != "local" || r.DurableReplicas != "1" || r.MasterEpoch != "1" {
			t.Fatalf("send %d: %+v", i, r)
		}
		if _, _, err := message.ParseOffsetID(r.OffsetID); err != nil {
			t.Fatal(err)
		}
	}
}

func order(t *testing.T, w world) {
	const perQueue = 100
	c := w.connect(t)
	topic := w.topic(t, c, 4)
	box, _ := consume(t, c, client.ConsumerConfig{Group: "G" + topic, Subscriptions: map[string]string{topic: "*"}}, nil)
	p := c.NewProducer(client.ProducerConfig{Group: topic})
	queues, err := c.Queues(t.Context(), topic)
	if err != nil || len(queues) != 4 {
		t.Fatal(queues, err)
	}
	var wg sync.WaitGroup
	for _, q := range queues {
		wg.Go(func() {
			for i := range perQueue {
				if _, err := p.SendTo(t.Context(), q, &client.Message{Topic: topic, Body: fmt.Appendf(nil, "%d", i)}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	next := map[client.Queue]int{}
	for _, m := range box.wait(t, 4*perQueue) {
		if want := fmt.Sprint(next[m.Queue]); string(m.Body) != want || m.Offset != int64(next[m.Queue]) {
			t.Fatalf("%s: got %s at %d, want %s", m.Queue, m.Body, m.Offset, want)
		}
		next[m.Queue]++
	}
}

func batch(t *testing.T, w world) {
	c := w.connect(t)
	topic := w.topic(t, c, 2)
	var ms []*client.Message
	for i := range 5 {
		ms = append(ms, &client.Message{Topic: topic, Body: fmt.Appendf(nil, "b%d", i), Tags: "B"})
	}
	r, err := c.NewProducer(client.ProducerConfig{Group: topic}).SendBatch(t.Context(), ms)
	if err != nil || strings.Count(r.OffsetID, ",") != 4 {
		t.Fatal(r, err)
	}
	got, err := c.Pull(t.Context(), client.PullRequest{Group: "G" + topic, Queue: r.Queue, Offset: r.Offset})
	if err != nil || len(got.Messages) != 5 {
		t.Fatal(len(got.Messages), err)
	}
	for i, m := range got.Messages {
		if string(m.Body) != fmt.Sprintf("b%d", i) || m.Tags != "B" || m.Offset != r.Offset+int64(i) {
			t.Errorf("%d: %+v", i, m)
		}
	}
}

func oneway(t *testing.T, w world) {
	c := w.connect(t)
	topic := w.topic(t, c, 1)
	if err := c.NewProducer(client.ProducerConfig{Group: topic}).SendOneway(t.Context(), &client.Message{Topic: topic, Body: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	q := client.Queue{Topic: topic, BrokerName: "broker-a"}
	r, err := c.Pull(t.Context(), client.PullRequest{Group: "G" + topic, Queue: q, Hold: 10 * time.Second})
	if err != nil || len(r.Messages) != 1 {
		t.Fatal(r, err)
	}
}

func autoCreate(t *testing.T, w world) {
	c := w.connect(t)
	topic := fmt.Sprintf("Auto%d", time.Now().UnixNano())
	if _, err := c.Route(t.Context(), topic); !errors.Is(err, client.ErrNoRoute) {
		t.Fatal(err)
	}
	if _, err := c.NewProducer(client.ProducerConfig{Group: topic}).Send(t.Context(), &client.Message{Topic: topic, Body: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.WaitForRoute(within(t, 10*time.Second), topic); err != nil {
		t.Fatal(err)
	}
}

func tags(t *testing.T, w world) {
	c := w.connect(t)
	topic := w.topic(t, c, 1)
	p := c.NewProducer(client.ProducerConfig{Group: topic})
	// Aa and BB have the same hash in Java.
	for _, tag := range []string{"Aa", "BB", "C", "", "Aa"} {
		if _, err := p.Send(t.Context(), &client.Message{Topic: topic, Body: []byte("tag " + tag), Tags: tag}); err != nil {
			t.Fatal(err)
		}
	}
	q := client.Queue{Topic: topic, BrokerName: "broker-a"}
	for expression, want := range map[string]int{"Aa": 2, "BB": 1, "Aa || C": 3, "*": 5, "none": 0} {
		n := 0
		for offset := int64(0); offset < 5; {
			r, err := c.Pull(t.Context(), client.PullRequest{Group: "G" + topic, Queue: q, Offset: offset, Expression: expression})
			if err != nil {
				t.Fatal(err)
			}
			n += len(r.Messages)
			offset = max(r.Next, offset+1)
		}
		if n != want {
			t.Errorf("%s: %d messages, want %d", expression, n, want)
		}
	}
}

func hold(t *testing.T, w world) {
	c := w.connect(t)
	topic := w.topic(t, c, 1)
	q := client.Queue{Topic: topic, BrokerName: "broker-a"}
	began := time.Now()
	r, err := c.Pull(t.Context(), client.PullRequest{Group: "G" + topic, Queue: q, Hold: 300 * time.Millisecond})
	if err != nil || len(r.Messages) != 0 || time.Since(began) < 250*time.Millisecond {
		t.Fatalf("%+v, %v after %s", r, err, time.Since(began))
	}
	answered := make(chan error, 1)
	go func() {
		r, err := c.Pull(t.Context(), client.PullRequest{Group: "G" + topic, Queue: q, Hold: 20 * time.Second})
		if err == nil && len(r.Messages) != 1 {
			err = fmt.Errorf("%d messages", len(r.Messages))
		}
		answered <- err
	}()
	if _, err := c.NewProducer(client.ProducerConfig{Group: topic}).Send(t.Context(), &client.Message{Topic: topic, Body: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-answered:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the pull is still held")
	}
}

func delayed(t *testing.T, w world) {
	c := w.connect(t)
	topic := w.topic(t, c, 1)
	began := time.Now()
	if _, err := c.NewProducer(client.ProducerConfig{Group: topic}).Send(t.Context(), &client.Message{Topic: topic, Body: []byte("late"), DelayLevel: 1}); err != nil {
		t.Fatal(err)
	}
	r, err := c.Pull(t.Context(), client.PullRequest{Group: "G" + topic, Queue: client.Queue{Topic: topic, BrokerName: "broker-a"}, Hold: 20 * time.Second})
	if err != nil || len(r.Messages) != 1 || string(r.Messages[0].Body) != "late" {
		t.Fatal(r, err)
	}
	if took := time.Since(began); took < time.Second-time.Millisecond { // brokers count whole milliseconds
		t.Errorf("came after %s", took)
	}
}

func transaction(t *testing.T, w world) {
	c := w.connect(t)
	topic := w.topic(t, c, 1)
	p := c.NewProducer(client.ProducerConfig{Group: topic})
	for body, state := range map[string]client.TransactionState{"rolled back": client.Rollback, "committed": client.Commit} {
		_, got, err := p.SendTransaction(t.Context(), &client.Message{Topic: topic, Body: []byte(body)}, func(client.SendResult) client.TransactionState { return state })
		if err != nil || got != state {
			t.Fatal(got, err)
		}
	}
	q := client.Queue{Topic: topic, BrokerName: "broker-a"}
	r, err := c.Pull(t.Context(), client.PullRequest{Group: "G" + topic, Queue: q, Hold: 10 * time.Second})
	if err != nil || len(r.Messages) != 1 || string(r.Messages[0].Body) != "committed" {
		t.Fatal(r, err)
	}
	r, err = c.Pull(t.Context(), client.PullRequest{Group: "G" + topic, Queue: q, Offset: r.Next, Hold: 500 * time.Millisecond})
	if err != nil || len(r.Messages) != 0 {
		t.Fatal("something else became visible:", r, err)
	}
}

func transactionCheck(t *testing.T, w world) {
	c := w.connect(t)
	topic := w.topic(t, c, 1)
	var mu sync.Mutex
	asked := 0
	p := c.NewProducer(client.ProducerConfig{Group: topic, Check: func(_ context.Context, _ *client.Received) client.TransactionState {
		mu.Lock()
		defer mu.Unlock()
		if asked++; asked == 1 {
			return client.Unknown
		}
		return client.Commit
	}})
	_, _, err := p.SendTransaction(t.Context(), &client.Message{Topic: topic, Body: []byte("later")}, func(client.SendResult) client.TransactionState { return client.Unknown })
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Pull(within(t, 40*time.Second), client.PullRequest{Group: "G" + topic, Queue: client.Queue{Topic: topic, BrokerName: "broker-a"}, Hold: 30 * time.Second})
	if err != nil || len(r.Messages) != 1 || string(r.Messages[0].Body) != "later" {
		t.Fatal(r, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if asked < 2 {
		t.Errorf("asked %d times", asked)
	}
}

func retry(t *testing.T, w world) {
	c := w.connect(t)
	topic := w.topic(t, c, 1)
	group := "G" + topic
	g := admin.NewGroup(group)
	g.RetryMaxTimes = 1
	if err := w.admin(t).PutGroup(t.Context(), w.broker, g); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var times []int32
	consume(t, c, client.ConsumerConfig{Group: group, Subscriptions: map[string]string{topic: "*"}, Max: 1}, func(m *client.Received) error {
		mu.Lock()
		defer mu.Unlock()
		times = append(times, m.ReconsumeTimes)
		return errors.New("not today")
	})
	if _, err := c.NewProducer(client.ProducerConfig{Group: topic}).Send(t.Context(), &client.Message{Topic: topic, Body: []byte("poison")}); err != nil {
		t.Fatal(err)
	}
	dead := client.Queue{Topic: admin.DeadLetterPrefix + group, BrokerName: "broker-a"}
	if _, err := c.WaitForRoute(within(t, 40*time.Second), dead.Topic); err != nil {
		t.Fatal(err)
	}
	r, err := c.Pull(t.Context(), client.PullRequest{Group: group, Queue: dead, Hold: 10 * time.Second})
	if err != nil || len(r.Messages) != 1 || string(r.Messages[0].Body) != "poison" {
		t.Fatal(r, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(times, []int32{0, 1}) {
		t.Errorf("delivered with reconsume times %v", times)
	}
}

func orderly(t *testing.T, w world) {
	c := w.connect(t)
	topic := w.topic(t, c, 1)
	p := c.NewProducer(client.ProducerConfig{Group: topic})
	for i := range 3 {
		if _, err := p.Send(t.Context(), &client.Message{Topic: topic, Body: fmt.Appendf(nil, "%d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	failures := 1
	box, _ := consume(t, c, client.ConsumerConfig{Group: "G" + topic, Subscriptions: map[string]string{topic: "*"}, Orderly: true, Max: 1}, func(m *client.Received) error {
		if string(m.Body) == "1" && failures > 0 {
			failures--
			return errors.New("once")
		}
		return nil
	})
	for i, m := range box.wait(t, 3) {
		if string(m.Body) != fmt.Sprint(i) {
			t.Fatalf("message %d is %s", i, m.Body)
		}
	}
}

func share(t *testing.T, w world) {
	first, second := w.connect(t), w.connect(t)
	topic := w.topic(t, first, 4)
	cfg := client.ConsumerConfig{Group: "G" + topic, Subscriptions: map[string]string{topic: "*"}}
	a, _ := consume(t, first, cfg, nil)
	b, _ := consume(t, second, cfg, nil)
	p := first.NewProducer(client.ProducerConfig{Group: topic})
	deadline := time.Now().Add(30 * time.Second)
	for sent := 0; ; sent++ {
		if _, err := p.Send(t.Context(), &client.Message{Topic: topic, Body: []byte("x")}); err != nil {
			t.Fatal(err)
		}
		if len(a.wait(t, 0)) > 0 && len(b.wait(t, 0)) > 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %d messages: %d and %d", sent, len(a.wait(t, 0)), len(b.wait(t, 0)))
		}
	}
}

func resume(t *testing.T, w world) {
	c := w.connect(t)
	topic := w.topic(t, c, 1)
	p := c.NewProducer(client.ProducerConfig{Group: topic})
	cfg := client.ConsumerConfig{Group: "G" + topic, Subscriptions: map[string]string{topic: "*"}}
	for _, body := range []string{"one", "two"} {
		box, stop := consume(t, c, cfg, nil)
		if _, err := p.Send(t.Context(), &client.Message{Topic: topic, Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
		if got := box.wait(t, 1); len(got) != 1 || string(got[0].Body) != body {
			t.Fatalf("got %d, first %s, want %s", len(got), got[0].Body, body)
		}
		stop()
	}
	offset, ok, err := c.Committed(t.Context(), cfg.Group, client.Queue{Topic: topic, BrokerName: "broker-a"})
	if err != nil || !ok || offset != 2 {
		t.Fatal(offset, ok, err)
	}
}

func query(t *testing.T, w world) {
	c, a := w.connect(t), w.admin(t)
	topic := w.topic(t, c, 2)
	p := c.NewProducer(client.ProducerConfig{Group: topic})
	var last client.SendResult
	for i := range 3 {
		r, err := p.Send(t.Context(), &client.Message{Topic: topic, Body: fmt.Appendf(nil, "%d", i), Keys: []string{"k" + topic, fmt.Sprint("n", i)}})
		if err != nil {
			t.Fatal(err)
		}
		last = r
	}
	records, err := a.ViewMessage(t.Context(), topic, last.OffsetID)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := client.DecodeRecords("", records); err != nil || len(got) != 1 || string(got[0].Body) != "2" || got[0].UniqueKey != last.ID {
		t.Fatal(got, err)
	}
	for _, q := range []struct {
		key    string
		unique bool
		want   int
	}{{"k" + topic, false, 3}, {"n1", false, 1}, {last.ID, true, 1}, {"nobody", false, 0}} {
		n := 0
		for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); { // the index follows the log
			n = 0
			found, err := a.QueryMessages(t.Context(), topic, q.key, q.unique, admin.QueryLimits{Max: 32, End: math.MaxInt64})
			if err != nil {
				t.Fatal(err)
			}
			for broker, records := range found {
				got, err := client.DecodeRecords(broker, records)
				if err != nil {
					t.Fatal(err)
				}
				n += len(got)
			}
			if n == q.want {
				break
			}
		}
		if n != q.want {
			t.Errorf("%s: %d messages, want %d", q.key, n, q.want)
		}
	}
}

func reset(t *testing.T, w world) {
	c, a := w.connect(t), w.admin(t)
	topic := w.topic(t, c, 1)
	group := "G" + topic
	p := c.NewProducer(client.ProducerConfig{Group: topic})
	q := client.Queue{Topic: topic, BrokerName: "broker-a"}
	for range 5 {
		if _, err := p.Send(t.Context(), &client.Message{Topic: topic, Body: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
	box, stop := consume(t, c, client.ConsumerConfig{Group: group, Subscriptions: map[string]string{topic: "*"}}, nil)
	box.wait(t, 5)
	stop()
	set, err := a.ResetOffsets(t.Context(), group, topic, 0, true)
	if err != nil || len(set) != 1 || set[q] != 0 {
		t.Fatal(set, err)
	}
	stats, err := a.BrokerConsumeStats(t.Context(), w.broker, group, topic)
	if err != nil || stats.OffsetTable[q].BrokerOffset != 5 {
		t.Fatal(stats, err)
	}
}

func topicAdmin(t *testing.T, w world) {
	c, a := w.connect(t), w.admin(t)
	topic := w.topic(t, c, 2)
	config := admin.NewTopic(topic)
	config.ReadQueueNums, config.WriteQueueNums, config.Perm = 3, 3, protocol.PermRead
	if err := a.PutTopic(t.Context(), w.broker, config, ""); err != nil {
		t.Fatal(err)
	}
	got, err := a.TopicConfig(t.Context(), w.broker, topic)
	if err != nil || got.ReadQueueNums != 3 || got.Perm != protocol.PermRead {
		t.Fatal(got, err)
	}
	if err := a.DeleteTopic(t.Context(), "DefaultCluster", topic); err != nil {
		t.Fatal(err)
	}
	if _, err := a.TopicConfig(t.Context(), w.broker, topic); code(err) != protocol.TopicNotExist {
		t.Fatal(err)
	}
	topics, err := a.Topics(t.Context())
	if err != nil || slices.Contains(topics, topic) {
		t.Fatal("still listed", err)
	}
}

func refusals(t *testing.T, w world) {
	c, a := w.connect(t), w.admin(t)
	topic := w.topic(t, c, 1)
	p := c.NewProducer(client.ProducerConfig{Group: topic})
	q := client.Queue{Topic: topic, BrokerName: "broker-a"}
	_, err := p.SendTo(t.Context(), q, &client.Message{Topic: topic, Body: make([]byte, 5<<20)})
	if code(err) != protocol.MessageIllegal {
		t.Errorf("a body over the limit: %v", err)
	}
	_, err = p.SendTo(t.Context(), client.Queue{Topic: topic, BrokerName: "broker-a", QueueID: 7}, &client.Message{Topic: topic, Body: []byte("x")})
	if code(err) != protocol.InvalidParameter {
		t.Errorf("a queue that is not there: %v", err)
	}
	if err := a.PutTopic(t.Context(), w.broker, admin.NewTopic("no such name!"), ""); code(err) != protocol.InvalidParameter {
		t.Errorf("a topic of an illegal name: %v", err)
	}
	if _, err := a.GroupConfig(t.Context(), w.broker, "nobody"); err != nil && code(err) != protocol.SubscriptionGroupNotExist {
		t.Errorf("a group that is not there: %v", err)
	}
	if err := a.SetBrokerConfig(t.Context(), w.broker, "storePathRootDir", "/elsewhere"); code(err) != protocol.NoPermission {
		t.Errorf("a key that needs a restart: %v", err)
	}
}

func reconfigure(t *testing.T, w world) {
	a := w.admin(t)
	if err := a.SetBrokerConfig(t.Context(), w.broker, "shortPollingTimeMills", "900"); err != nil {
		t.Fatal(err)
	}
	text, err := a.BrokerConfig(t.Context(), w.broker)
	if err != nil || !strings.Contains(text, "shortPollingTimeMills=900\n") {
		t.Fatalf("%v\n%s", err, text)
	}
}
