package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/admin"
	"github.com/quorate/quorate/client"
)

// What try sends.
const (
	tryTopic   = "quorate-try"
	tryGroup   = "quorate-try"
	tryCount   = 1000
	tryQueues  = 8
	tryTimeout = 30 * time.Second
	delayLevel = 1 // one second
	// tryRun marks the messages of one run, tryKind what each is for, tryNumber its place in its queue.
	tryRun    = "try-run"
	tryKind   = "try-kind"
	tryNumber = "try-number"
)

func newTryCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "try", Short: "Send and receive messages, and say what that proved", Args: args(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := targetOf(cmd)
			if err != nil {
				return err
			}
			if err := say(cmd, "using %s\n", t); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Minute)
			defer cancel()
			cmd.SetContext(ctx)
			// Moving queues between members is not what is tried here: the first share is taken at once.
			return withClient(cmd, client.Config{RebalanceInterval: time.Second}, func(ctx context.Context, c *client.Client) error {
				return (&trial{cmd: cmd, client: c, run: strconv.FormatInt(time.Now().UnixNano(), 36)}).all(ctx, t)
			})
		},
	}
	addTargetFlag(cmd)
	return cmd
}

// trial is one run of try.
type trial struct {
	cmd    *cobra.Command
	client *client.Client
	run    string

	mu       sync.Mutex
	received map[string][]*client.Received // by kind, in order of arrival
	arrived  map[string]time.Time          // by unique key
	news     chan struct{}
}

func (t *trial) all(ctx context.Context, to target) error {
	t.received, t.arrived, t.news = map[string][]*client.Received{}, map[string]time.Time{}, make(chan struct{}, 1)
	queues, err := t.prepare(ctx)
	if err != nil {
		return err
	}
	consumer := t.client.NewConsumer(client.ConsumerConfig{
		Group: tryGroup, Subscriptions: map[string]string{tryTopic: "*"}, From: client.FromFirst,
	}, t.collect)
	consumerCtx, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- consumer.Run(consumerCtx) }()
	producer := t.client.NewProducer(client.ProducerConfig{Group: tryGroup})
	for _, step := range []func(context.Context, *client.Producer, []client.Queue) error{t.order, t.delay, t.transaction} {
		if err = step(ctx, producer, queues); err != nil {
			break
		}
	}
	stop()
	if err := errors.Join(err, <-done); err != nil {
		return err
	}
	return say(t.cmd, `
Everything works. Your turn:
  quorate msg send hello "first message"
  quorate msg tail hello --from start
Connect a program:
  Java, Go, C++, Python 4.x   setNamesrvAddr("%[1]s")
  Spring                      rocketmq.name-server=%[1]s`, to.addrs[0])
}

// prepare makes the topic and lists its queues.
func (t *trial) prepare(ctx context.Context) ([]client.Queue, error) {
	err := withAdmin(t.cmd, func(ctx context.Context, a *admin.Client) error {
		addrs, err := a.Masters(ctx, "")
		if err != nil {
			return err
		}
		topic := admin.NewTopic(tryTopic)
		topic.ReadQueueNums, topic.WriteQueueNums = tryQueues, tryQueues
		for _, addr := range addrs {
			if err := a.PutTopic(ctx, addr, topic, ""); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	if _, err := t.client.WaitForRoute(waiting, tryTopic); err != nil {
		return nil, err
	}
	queues, err := t.client.Queues(ctx, tryTopic)
	if err != nil {
		return nil, err
	}
	brokers := map[string]bool{}
	for _, q := range queues {
		brokers[q.BrokerName] = true
	}
	return queues, say(t.cmd, "  topic %s: %d queues on %v", tryTopic, len(queues), sortedKeys(brokers))
}

// collect keeps the messages of this run.
func (t *trial) collect(_ context.Context, messages []*client.Received) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range messages {
		if m.Properties[tryRun] == t.run {
			kind := m.Properties[tryKind]
			t.received[kind] = append(t.received[kind], m)
			t.arrived[m.UniqueKey] = time.Now()
		}
	}
	select {
	case t.news <- struct{}{}:
	default: // somebody looks already
	}
	return nil
}

// wait blocks until n messages of a kind have arrived.
func (t *trial) wait(ctx context.Context, kind string, n int) ([]*client.Received, error) {
	timeout := time.NewTimer(tryTimeout)
	defer timeout.Stop()
	for {
		t.mu.Lock()
		got := slices.Clone(t.received[kind])
		t.mu.Unlock()
		if len(got) >= n {
			return got, nil
		}
		select {
		case <-t.news:
		case <-ctx.Done():
			return got, context.Cause(ctx)
		case <-timeout.C:
			return got, fmt.Errorf("%d of %d %s messages arrived within %s", len(got), n, kind, tryTimeout)
		}
	}
}

func (t *trial) message(kind string, number int) *client.Message {
	return &client.Message{
		Topic: tryTopic, Body: []byte(kind + " " + strconv.Itoa(number)), Keys: []string{t.run},
		Properties: map[string]string{tryRun: t.run, tryKind: kind, tryNumber: strconv.Itoa(number)},
	}
}

// order sends numbered messages to every queue at once, one after the other in each, and checks what arrives.
func (t *trial) order(ctx context.Context, p *client.Producer, queues []client.Queue) error {
	var mu sync.Mutex
	var latencies []time.Duration
	durabilities := map[string]int{}
	errs := make(chan error, len(queues))
	for i, q := range queues {
		go func() {
			for n := i; n < tryCount; n += len(queues) {
				began := time.Now()
				r, err := p.SendTo(ctx, q, t.message("ordered", n))
				if err != nil {
					errs <- err
					return
				}
				mu.Lock()
				latencies = append(latencies, time.Since(began))
				durabilities[orDash(r.Durability)]++
				mu.Unlock()
			}
			errs <- nil
		}()
	}
	var failed []error
	for range queues {
		failed = append(failed, <-errs)
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	slices.Sort(latencies)
	if err := say(t.cmd, "  sent %d messages                 p50 %s  p99 %s  durability %v", tryCount,
		round(latencies[len(latencies)/2]), round(latencies[len(latencies)*99/100]), slices.Sorted(maps.Keys(durabilities))); err != nil {
		return err
	}
	got, err := t.wait(ctx, "ordered", tryCount)
	if err != nil {
		return err
	}
	if err := checkOrder(got); err != nil {
		return err
	}
	return say(t.cmd, "  received %d, none missing, none twice, order per queue kept", len(got))
}

func checkOrder(got []*client.Received) error {
	seen := map[int]bool{}
	last := map[client.Queue]int{}
	for _, m := range got {
		n, err := strconv.Atoi(m.Properties[tryNumber])
		if err != nil {
			return fmt.Errorf("a message came back changed: %w", err)
		}
		if seen[n] {
			return fmt.Errorf("message %d came twice", n)
		}
		seen[n] = true
		if before, known := last[m.Queue]; known && n <= before {
			return fmt.Errorf("%s: message %d came after %d", m.Queue, n, before)
		}
		last[m.Queue] = n
	}
	if len(seen) != tryCount {
		return fmt.Errorf("%d of %d messages are missing", tryCount-len(seen), tryCount)
	}
	return nil
}

func (t *trial) delay(ctx context.Context, p *client.Producer, _ []client.Queue) error {
	m := t.message("delayed", 0)
	m.DelayLevel = delayLevel
	began := time.Now()
	if _, err := p.Send(ctx, m); err != nil {
		return err
	}
	got, err := t.wait(ctx, "delayed", 1)
	if err != nil {
		return err
	}
	t.mu.Lock()
	took := t.arrived[got[0].UniqueKey].Sub(began)
	t.mu.Unlock()
	if took < time.Second-time.Millisecond { // brokers count whole milliseconds
		return fmt.Errorf("the delayed message asked for 1 s came after %s", took)
	}
	return say(t.cmd, "  delayed message asked for 1 s came after %.3f s", took.Seconds())
}

func (t *trial) transaction(ctx context.Context, p *client.Producer, _ []client.Queue) error {
	for _, end := range []struct {
		kind  string
		state client.TransactionState
	}{{"rolled back", client.Rollback}, {"committed", client.Commit}} {
		_, state, err := p.SendTransaction(ctx, t.message(end.kind, 0), func(client.SendResult) client.TransactionState { return end.state })
		if err != nil {
			return err
		}
		if state != end.state {
			return fmt.Errorf("the transaction to be %s ended as %d", end.kind, state)
		}
	}
	if _, err := t.wait(ctx, "committed", 1); err != nil {
		return err
	}
	// The rolled-back one was ended first: had it become visible, it would be on its way. One more message through every
	// queue shows that nothing stands before it.
	for n := range tryQueues {
		if _, err := p.Send(ctx, t.message("last", n)); err != nil {
			return err
		}
	}
	if _, err := t.wait(ctx, "last", tryQueues); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.received["rolled back"]) > 0 || len(t.received["committed"]) != 1 {
		return fmt.Errorf("transaction: committed came %d times, rolled back %d times",
			len(t.received["committed"]), len(t.received["rolled back"]))
	}
	return say(t.cmd, "  transaction: committed seen, rolled back not seen")
}

// round shows a latency with two or three digits.
func round(d time.Duration) time.Duration {
	switch {
	case d < time.Millisecond:
		return d.Round(10 * time.Microsecond)
	case d < 100*time.Millisecond:
		return d.Round(100 * time.Microsecond)
	}
	return d.Round(time.Millisecond)
}
