package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/protocol"
)

// run drives one load: it warms up, opens the measured window, reports progress, and gathers the result.
type run struct {
	cfg      Config
	counters counters
	progress func(Progress)
}

// worker is one connection's load; it returns when ctx ends or its share is done.
type worker func(ctx context.Context) error

func (r *run) drive(ctx context.Context, workers []worker, firstBroker string, result *Result) error {
	pid := r.cfg.TargetPID
	if pid == 0 {
		pid = listenerPID(firstBroker)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.counters.measuring.Store(r.cfg.WarmUp == 0) // else what is answered before the clock runs would count for nothing
	before, self, began := readUsage(pid), readUsage(0), time.Now()
	group, loadCtx := errgroup.WithContext(ctx)
	for _, w := range workers {
		group.Go(func() error { return w(loadCtx) })
	}
	done := make(chan error, 1)
	go func() { done <- group.Wait() }()
	stopped, err := r.wait(ctx, done, r.cfg.WarmUp, true)
	if err == nil && !stopped {
		if r.cfg.WarmUp > 0 {
			before, self, began = readUsage(pid), readUsage(0), time.Now()
			r.counters.measuring.Store(true)
		}
		stopped, err = r.wait(ctx, done, r.cfg.Duration, false)
		r.counters.measuring.Store(false)
		r.fill(result, time.Since(began))
		if n := result.Messages; n > 0 {
			result.LoadCPU = micros(readUsage(0).cpu-self.cpu) / float64(n)
			result.Target = before.use(pid, n, result.Duration)
		}
	}
	cancel()
	if !stopped {
		err = errors.Join(err, <-done)
	}
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return err
}

// wait lets the load run for a while and reports each interval. It says whether the load ended by itself.
func (r *run) wait(ctx context.Context, done <-chan error, length time.Duration, warming bool) (ended bool, err error) {
	if length == 0 {
		return false, nil
	}
	end := time.NewTimer(length)
	defer end.Stop()
	tick := time.NewTicker(r.cfg.Interval)
	defer tick.Stop()
	began, last := time.Now(), time.Now()
	messages, failed := r.counters.all.Load(), r.counters.allFailed.Load()
	for {
		select {
		case err := <-done:
			return true, err
		case <-ctx.Done():
			return false, nil
		case <-end.C:
			return false, nil
		case now := <-tick.C:
			m, f := r.counters.all.Load(), r.counters.allFailed.Load()
			if r.progress != nil {
				r.progress(Progress{
					Elapsed: now.Sub(began), Warming: warming, Messages: m - messages, Failed: f - failed,
					Rate: float64(m-messages) / now.Sub(last).Seconds(),
				})
			}
			messages, failed, last = m, f, now
		}
	}
}

func (r *run) fill(result *Result, length time.Duration) {
	c := &r.counters
	result.Settings, result.Machine = r.cfg, machine()
	result.Connections, result.InFlight = r.cfg.Connections, r.cfg.InFlight
	result.Topics, result.Queues = r.cfg.Topics, r.cfg.Queues
	result.Duration = length
	result.Messages, result.Requests = c.messages.Load(), c.requests.Load()
	result.Bytes, result.Failed = c.bytes.Load(), c.failed.Load()
	result.Errors = c.failures()
	result.Rate = float64(result.Messages) / length.Seconds()
	if s, ok := c.durability.Load().(string); ok {
		result.Durability = s
	}
}

// limitReached reports whether the run has its messages.
func (r *run) limitReached() bool {
	return r.cfg.Messages > 0 && r.counters.all.Load() >= r.cfg.Messages
}

// prepare returns the addresses of the brokers that serve the topics, creating topics that none has.
func prepare(ctx context.Context, cfg *Config, create bool) (brokers []string, flushMode string, err error) {
	if len(cfg.Brokers) > 0 {
		return cfg.Brokers, "", nil
	}
	c, err := client.New(client.Config{NameServers: cfg.NameServers}, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, "", fmt.Errorf("bench: %w", err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	found := map[string]bool{}
	for i := range cfg.Topics {
		route, err := c.Route(ctx, cfg.topic(i))
		if errors.Is(err, client.ErrNoRoute) && create {
			route, err = createTopic(ctx, c, cfg, cfg.topic(i))
		}
		if err != nil {
			return nil, "", fmt.Errorf("bench: topic %s: %w", cfg.topic(i), err)
		}
		for _, b := range route.BrokerDatas {
			if addr := b.BrokerAddrs[0]; addr != "" {
				found[addr] = true
			}
		}
		for _, q := range route.QueueDatas {
			cfg.Queues = min(cfg.Queues, max(int(q.WriteQueueNums), 1))
		}
	}
	for addr := range found {
		brokers = append(brokers, addr)
	}
	if len(brokers) == 0 {
		return nil, "", fmt.Errorf("bench: topic %s: no broker of it can be written to", cfg.topic(0))
	}
	slices.Sort(brokers)
	return brokers, flushDiskType(ctx, c, brokers[0]), nil
}

// createTopic creates a topic at every broker that new topics may be created at.
func createTopic(ctx context.Context, c *client.Client, cfg *Config, topic string) (*client.Route, error) {
	template, err := c.Route(ctx, "TBW102")
	if err != nil {
		return nil, fmt.Errorf("it does not exist, and none can be created: %w", err)
	}
	for _, b := range template.BrokerDatas {
		req := &protocol.CreateTopicRequest{
			Topic: topic, DefaultTopic: "TBW102", ReadQueueNums: int32(cfg.Queues), WriteQueueNums: int32(cfg.Queues), Perm: 6,
			TopicFilterType: "SINGLE_TAG",
		}
		if _, err := c.Invoke(ctx, b.BrokerAddrs[0], req, nil, nil); err != nil {
			return nil, fmt.Errorf("create it at %s: %w", b.BrokerName, err)
		}
	}
	return c.WaitForRoute(ctx, topic)
}

// flushDiskType asks the broker for its flush mode, which decides what a rate means. A broker that does not tell is "".
func flushDiskType(ctx context.Context, c *client.Client, addr string) string {
	body, err := c.Invoke(ctx, addr, &protocol.GetBrokerConfigRequest{}, nil, nil)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(body)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "flushDiskType="); ok {
			return v
		}
	}
	return ""
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
