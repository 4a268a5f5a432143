package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/quorate/quorate/test/bench/load"
	"github.com/quorate/quorate/test/process"
)

// figure is a row that is no comparison of rates: memory, starts, recovery, growth. It starts what it needs and prints
// what it finds; goals are in the text.
type figure struct {
	id      string
	what    string
	measure func(context.Context, *comparison) error
}

var figures = []figure{
	{"M3", "idle CPU with 100 connections (aim 0.2 % of a core)", idleCPU},
	{"M5", "anonymous memory, standalone, idle and under load (least 60 / 250 MB, aim 30 / 120)", memory},
	{"M7", "memory per idle connection and per queue (least 64 / 8 KB, aim 24 / 3)", memoryPer},
	{"M8", "start to ready, empty store (least 1 s, aim 0.25 s)", startTime},
	{"M9", "size of the binary and of an empty store (aim 25 MB)", sizes},
	{"R1", "restart after a clean stop, any size of log (aim 0.5 s)", restartClean},
	{"R2", "restart after kill -9 (least 3 s per GB scanned, aim 1)", restartKilled},
	{"R3", "queues rebuilt from the log (aim 300 MB/s)", rebuild},
	{"T12", "pull 32, page cache, 1 and 16 connections", pulls},
	{"L6", "store to consumer, held pull, idle broker (aim 4 L)", storeToConsumer},
	{"L7", "producer while a cold consumer reads 1 GB (aim p50 1.3 ×, p99 2 ×)", coldReader},
	{"G1", "topics × queues: 1×4, 100×4, 2500×4 (aim CPU 1.1, 1.3)", growTopics},
	{"G2", "connections: 1, 64, 256, 1000 (aim 0.85 of the rate at 64)", growConnections},
	{"G3", "consumer groups that tail one topic: 0, 1, 4, 16 (aim rate 0.8, 0.6, 0.3)", growGroups},
	{"G4", "held pulls: 1, 1000, 10000 (aim p50 1.5 ×)", growHolds},
	{"G5", "bodies: 128 B, 1 KiB, 64 KiB, 1 MiB", growBodies},
}

// product starts the product on a fresh folder for one figure; stop ends it and removes the folder.
func (c *comparison) product(ctx context.Context, sync bool, set map[string]string) (p *remotingSystem, stop func() error, err error) {
	dir, err := os.MkdirTemp(c.dir, "figure-")
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	if p, err = startProduct(ctx, c.binary, dir, sync, set); err != nil {
		return nil, nil, err
	}
	return p, func() error { return errors.Join(p.Stop(), os.RemoveAll(dir)) }, nil
}

// with runs f against a fresh product.
func (c *comparison) with(ctx context.Context, sync bool, set map[string]string, f func(*remotingSystem) error) error {
	p, stop, err := c.product(ctx, sync, set)
	if err != nil {
		return err
	}
	return errors.Join(f(p), stop())
}

func (c *comparison) say(format string, args ...any) { fmt.Fprintf(c.out, "    "+format+"\n", args...) }

var wide = load.Shape{Connections: 4, Window: 64}

func connect(addr string, n int) ([]net.Conn, error) {
	conns := make([]net.Conn, 0, n)
	for range n {
		conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
		if err != nil {
			closeAll(conns)
			return nil, err
		}
		conns = append(conns, conn)
	}
	return conns, nil
}

func closeAll(conns []net.Conn) {
	for _, conn := range conns {
		conn.Close()
	}
}

func idleCPU(ctx context.Context, c *comparison) error {
	return c.with(ctx, false, nil, func(p *remotingSystem) error {
		conns, err := connect(p.broker, 100)
		if err != nil {
			return err
		}
		defer closeAll(conns)
		const watch = 10 * time.Second
		time.Sleep(time.Second)
		before, err := process.ReadUsage(p.main.PID())
		if err != nil {
			return err
		}
		time.Sleep(watch)
		after, err := process.ReadUsage(p.main.PID())
		if err != nil {
			return err
		}
		c.say("%.2f %% of a core over %v", 100*float64(after.CPU-before.CPU)/float64(watch), watch)
		return nil
	})
}

func memory(ctx context.Context, c *comparison) error {
	return c.with(ctx, false, nil, func(p *remotingSystem) error {
		time.Sleep(time.Second)
		idle, err := process.ReadUsage(p.main.PID())
		if err != nil {
			return err
		}
		var most int64
		done := make(chan struct{})
		go func() {
			defer close(done)
			for ctx.Err() == nil {
				u, err := process.ReadUsage(p.main.PID())
				if err != nil {
					return
				}
				most = max(most, u.AnonymousRSS)
				select {
				case done <- struct{}{}:
					return
				case <-time.After(100 * time.Millisecond):
				}
			}
		}()
		_, err = p.Send(ctx, wide, bodyBytes, 1, 3*c.length)
		if err == nil {
			_, err = load.Pull(ctx, p.broker, load.PullConfig{Topic: sendTopic, Queues: sendQueues, Connections: 4, Max: 32, Group: "bench", Wrap: true}, c.length)
		}
		<-done
		<-done
		if err != nil {
			return err
		}
		c.say("idle %.1f MB, under load at most %.1f MB", mb(idle.AnonymousRSS), mb(most))
		return nil
	})
}

func mb(n int64) float64 { return float64(n) / 1e6 }

func memoryPer(ctx context.Context, c *comparison) error {
	return c.with(ctx, false, nil, func(p *remotingSystem) error {
		const conns, topics, queues = 1000, 2000, 8
		before, err := process.ReadUsage(p.main.PID())
		if err != nil {
			return err
		}
		held, err := connect(p.broker, conns)
		if err != nil {
			return err
		}
		time.Sleep(time.Second)
		after, err := process.ReadUsage(p.main.PID())
		closeAll(held)
		if err != nil {
			return err
		}
		c.say("%.1f KB per idle connection (%d of them)", float64(after.AnonymousRSS-before.AnonymousRSS)/conns/1e3, conns)
		time.Sleep(time.Second)
		before, err = process.ReadUsage(p.main.PID())
		if err != nil {
			return err
		}
		if err := fillTopics(ctx, p.broker, topics, queues); err != nil {
			return err
		}
		time.Sleep(time.Second)
		if after, err = process.ReadUsage(p.main.PID()); err != nil {
			return err
		}
		c.say("%.1f KB per queue with one message (%d of them)", float64(after.AnonymousRSS-before.AnonymousRSS)/topics/queues/1e3, topics*queues)
		return nil
	})
}

// fillTopics sends one message to each queue of topics Grow-0, Grow-1, …, which creates them.
func fillTopics(ctx context.Context, broker string, topics, queues int) error {
	for i := range topics {
		r, err := load.Run(ctx, broker, load.Shape{Connections: 1, Window: queues}, 20*time.Millisecond, func(int) load.Codec {
			return load.NewSend(load.Send{Topic: fmt.Sprintf("Grow-%d", i), Queues: queues, Body: 100, Batch: 1})
		})
		if err != nil {
			return err
		}
		if r.Refused > 0 {
			return fmt.Errorf("topic %d refused: %s", i, r.Refusal)
		}
	}
	return nil
}

func startTime(ctx context.Context, c *comparison) error {
	var took []float64
	for range c.passes {
		err := c.with(ctx, false, nil, func(p *remotingSystem) error {
			took = append(took, p.standalone.Ready.Seconds())
			return nil
		})
		if err != nil {
			return err
		}
	}
	c.say("%v s", spreadOf(took))
	return nil
}

func sizes(ctx context.Context, c *comparison) error {
	info, err := os.Stat(c.binary)
	if err != nil {
		return err
	}
	c.say("binary %.1f MB", mb(info.Size()))
	return c.with(ctx, false, nil, func(p *remotingSystem) error {
		time.Sleep(time.Second)
		var allocated int64
		err := filepath.WalkDir(p.data, func(_ string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			info, err := d.Info()
			if err == nil {
				allocated += blocks(info)
			}
			return err
		})
		c.say("empty store takes %.1f MB of disk", mb(allocated))
		return err
	})
}
