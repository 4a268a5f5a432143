package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quorate/quorate/test/bench/load"
	"github.com/quorate/quorate/test/bench/probe"
	"github.com/quorate/quorate/test/javapeer"
)

// measured runs f and returns its rate and the product's CPU per message.
func measured(p *remotingSystem, f func() (load.Result, error)) (r load.Result, cpu time.Duration, err error) {
	before, err := cpuOf(p.PIDs())
	if err != nil {
		return r, 0, err
	}
	if r, err = f(); err != nil {
		return r, 0, err
	}
	if r.Refused > 0 {
		return r, 0, fmt.Errorf("%d refused: %s", r.Refused, r.Refusal)
	}
	after, err := cpuOf(p.PIDs())
	return r, (after - before) / time.Duration(max(r.Acked, 1)), err
}

// pulls compares reads with the Java broker, interleaved.
func pulls(ctx context.Context, c *comparison) error {
	product, stop, err := c.product(ctx, false, nil)
	if err != nil {
		return err
	}
	systems := []*remotingSystem{product}
	defer func() {
		for _, s := range systems[1:] {
			_ = s.Stop() // the figure is taken
		}
	}()
	if c.peers && javapeer.Missing() == "" {
		peer, err := javapeer.Open(ctx, javapeer.V5)
		if err != nil {
			return errors.Join(err, stop())
		}
		java, err := startJava(ctx, peer, c.dir, false)
		if err != nil {
			return errors.Join(err, stop())
		}
		systems = append(systems, java)
	}
	for _, s := range systems {
		if _, err := s.Send(ctx, wide, bodyBytes, 1, c.length); err != nil {
			return errors.Join(err, stop())
		}
	}
	for _, connections := range []int{1, 16} {
		rates, cpus := map[string][]float64{}, map[string][]float64{}
		for range c.passes {
			for _, s := range systems {
				cfg := load.PullConfig{Topic: sendTopic, Queues: sendQueues, Connections: connections, Max: 32, Group: "bench", Wrap: true}
				r, cpu, err := measured(s, func() (load.Result, error) { return load.Pull(ctx, s.broker, cfg, c.length) })
				if err != nil {
					return errors.Join(err, stop())
				}
				rates[s.letter], cpus[s.letter] = append(rates[s.letter], r.Rate), append(cpus[s.letter], us(cpu))
			}
		}
		for _, s := range systems {
			c.say("%2d connections  %s  %.0f msg/s, %.2f µs CPU", connections, s.letter, middle(rates[s.letter]), middle(cpus[s.letter]))
		}
		if len(systems) > 1 {
			c.say("               P/J rate %v (least 1.5 / 1, aim 3 / 1.3), CPU %v (least 0.4)",
				spreadOf(ratios(rates["P"], rates["J"])), spreadOf(ratios(cpus["P"], cpus["J"])))
		}
	}
	return stop()
}

func ratios(a, b []float64) []float64 {
	var out []float64
	for i := range a {
		out = append(out, a[i]/b[i])
	}
	return out
}

func storeToConsumer(ctx context.Context, c *comparison) error {
	return c.with(ctx, false, nil, func(p *remotingSystem) error {
		look, err := probe.Take(c.dir, time.Second)
		if err != nil {
			return err
		}
		took, err := load.Wake(ctx, p.broker, sendTopic, 1, 500)
		if err != nil {
			return err
		}
		c.say("p50 %.0f µs = %.1f L, p99 %.0f µs", us(took[len(took)/2]), float64(took[len(took)/2])/float64(look.RoundTrip), us(took[len(took)*99/100]))
		return nil
	})
}

// growHolds has many pulls held on queues that get nothing while one queue's consumer is woken again and again.
func growHolds(ctx context.Context, c *comparison) error {
	return c.with(ctx, false, nil, func(p *remotingSystem) error {
		var base time.Duration
		for _, holds := range []int{1, 1000, 10000} {
			took, err := load.Wake(ctx, p.broker, sendTopic, holds, 300)
			if err != nil {
				return err
			}
			p50 := took[len(took)/2]
			if base == 0 {
				base = p50
			}
			c.say("%5d held: p50 %.0f µs (%.2f ×)", holds, us(p50), float64(p50)/float64(base))
		}
		return nil
	})
}

func coldReader(ctx context.Context, c *comparison) error {
	return c.with(ctx, false, nil, func(p *remotingSystem) error {
		if err := fillLog(ctx, p, fillBytes); err != nil {
			return err
		}
		alone, err := p.Send(ctx, load.Shape{Connections: 1, Window: 16}, bodyBytes, 1, c.length)
		if err != nil {
			return err
		}
		if err := dropCache(p.data); err != nil {
			return err
		}
		var readers sync.WaitGroup
		var readErr error
		var read load.Result
		readers.Go(func() {
			read, readErr = load.Pull(ctx, p.broker, load.PullConfig{Topic: sendTopic, Queues: sendQueues, Connections: 1, Max: 32, Group: "cold"}, c.length)
		})
		beside, err := p.Send(ctx, load.Shape{Connections: 1, Window: 16}, bodyBytes, 1, c.length)
		readers.Wait()
		if err := errors.Join(err, readErr); err != nil {
			return err
		}
		c.say("alone p50 %.0f µs p99 %.0f µs; beside a cold reader at %.0f msg/s p50 %.2f ×, p99 %.2f ×", us(alone.Percentile(50)), us(alone.Percentile(99)),
			read.Rate, float64(beside.Percentile(50))/float64(alone.Percentile(50)), float64(beside.Percentile(99))/float64(alone.Percentile(99)))
		return nil
	})
}

// series prints a figure along one axis, relative to its first point.
func (c *comparison) series(p *remotingSystem, names []string, prepare func(i int) error, at func(i int) (load.Result, error)) error {
	var rate, cpu float64
	for i, name := range names {
		if prepare != nil {
			if err := prepare(i); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		r, spent, err := measured(p, func() (load.Result, error) { return at(i) })
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if i == 0 {
			rate, cpu = r.Rate, us(spent)
		}
		c.say("%-12s %9.0f msg/s (%.2f ×), %.1f µs CPU (%.2f ×), p99 %.1f ms", name, r.Rate, r.Rate/rate, us(spent), us(spent)/cpu, us(r.Percentile(99))/1e3)
	}
	return nil
}

func growTopics(ctx context.Context, c *comparison) error {
	counts := []int{1, 100, 2500}
	return c.with(ctx, false, nil, func(p *remotingSystem) error {
		prepare := func(i int) error { return fillTopics(ctx, p.broker, counts[i], sendQueues) }
		return c.series(p, []string{"1×4", "100×4", "2500×4"}, prepare, func(i int) (load.Result, error) {
			return load.Run(ctx, p.broker, load.Shape{Connections: 1, Window: 64}, c.length, func(int) load.Codec {
				return load.NewSpread("Grow-", counts[i], sendQueues, bodyBytes)
			})
		})
	})
}

func growConnections(ctx context.Context, c *comparison) error {
	counts := []int{64, 1, 256, 1000}
	return c.with(ctx, false, nil, func(p *remotingSystem) error {
		return c.series(p, []string{"64", "1", "256", "1000"}, nil, func(i int) (load.Result, error) {
			return p.Send(ctx, load.Shape{Connections: counts[i], Window: 1}, bodyBytes, 1, c.length)
		})
	})
}

func growGroups(ctx context.Context, c *comparison) error {
	counts := []int{0, 1, 4, 16}
	return c.with(ctx, false, nil, func(p *remotingSystem) error {
		return c.series(p, []string{"0 groups", "1", "4", "16"}, nil, func(i int) (load.Result, error) {
			tail, cancel := context.WithCancel(ctx)
			defer cancel()
			var readers sync.WaitGroup
			var delivered int64
			var mu sync.Mutex
			for g := range counts[i] {
				readers.Go(func() {
					n := load.Tail(tail, p.broker, sendTopic, sendQueues, fmt.Sprint("tail-", g))
					mu.Lock()
					defer mu.Unlock()
					delivered += n
				})
			}
			r, err := p.Send(ctx, load.Shape{Connections: 1, Window: 64}, bodyBytes, 1, c.length)
			cancel()
			readers.Wait()
			if err == nil && counts[i] > 0 {
				c.say("%-12s %.2f of what was sent reached each group within the time", "", float64(delivered)/float64(counts[i])/float64(r.Acked))
			}
			return r, err
		})
	})
}

func growBodies(ctx context.Context, c *comparison) error {
	bodies := []int{128, 1 << 10, 64 << 10, 1 << 20}
	return c.with(ctx, false, map[string]string{"maxMessageSize": "4194304"}, func(p *remotingSystem) error {
		return c.series(p, []string{"128 B", "1 KiB", "64 KiB", "1 MiB"}, nil, func(i int) (load.Result, error) {
			shape := wide
			if bodies[i] > 1<<10 {
				shape.Window = 4
			}
			return p.Send(ctx, shape, bodies[i], 1, c.length)
		})
	})
}
