// Command bench measures the product beside its ceiling and its peers, on one machine and in one run: passes are
// interleaved, the machine is probed before each, and figures are ratios with their spread. See README.md for the rows.
//
//	bench [-peers] [-passes 5] [-d 3s] [ROW…]   compare; no row is all of them
//	bench rows                                  list the rows
//	bench probe|send|pull|ceiling|nats          the parts by themselves
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/quorate/quorate/test/bench/ceiling"
	"github.com/quorate/quorate/test/bench/load"
	"github.com/quorate/quorate/test/bench/probe"
	"github.com/quorate/quorate/test/process"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	parts := map[string]func(context.Context, []string) error{
		"ceiling": ceilingPart, "nats": natsPart, "send": sendPart, "pull": pullPart, "probe": probePart,
		"rows": func(context.Context, []string) error {
			for _, r := range rows {
				fmt.Printf("%-5s %s\n", r.id, r.what)
			}
			for _, f := range figures {
				fmt.Printf("%-5s %s\n", f.id, f.what)
			}
			return nil
		},
	}
	if len(args) > 0 && parts[args[0]] != nil {
		return parts[args[0]](ctx, args[1:])
	}
	return comparePart(ctx, args)
}

func comparePart(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	c := &comparison{out: os.Stdout}
	f.BoolVar(&c.peers, "peers", false, "also NATS JetStream, and the Java broker where Maven is")
	f.IntVar(&c.passes, "passes", 5, "passes per row")
	f.DurationVar(&c.length, "d", 3*time.Second, "length of one pass of one system")
	dir := f.String("dir", "", "folder on the disk to measure; default a temporary one")
	if err := f.Parse(args); err != nil {
		return err
	}
	work, clean, err := workDir(*dir)
	if err != nil {
		return err
	}
	defer clean()
	c.dir = work
	if c.binary, err = process.Build(ctx, work, "-trimpath"); err != nil {
		return err
	}
	var wanted []row
	var wantedFigures []figure
	for _, id := range f.Args() {
		known := false
		for _, r := range rows {
			if r.id == id {
				wanted, known = append(wanted, r), true
			}
		}
		for _, g := range figures {
			if g.id == id {
				wantedFigures, known = append(wantedFigures, g), true
			}
		}
		if !known {
			return fmt.Errorf("no row %s; `bench rows` lists them", id)
		}
	}
	if f.NArg() == 0 {
		wanted, wantedFigures = rows, figures
	}
	if err := c.run(ctx, wanted); err != nil {
		return err
	}
	for _, g := range wantedFigures {
		fmt.Fprintf(c.out, "%s  %s\n", g.id, g.what)
		if err := g.measure(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", g.id, err)
		}
	}
	return nil
}

func ceilingPart(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("ceiling", flag.ContinueOnError)
	addr := f.String("addr", "127.0.0.1:0", "address to listen at")
	file := f.String("file", "ceiling.log", "file to append to")
	flush := f.Bool("flush", false, "fdatasync before answers")
	if err := f.Parse(args); err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", *addr)
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	return ceiling.Serve(ctx, l, ceiling.Config{File: *file, Flush: *flush})
}

func natsPart(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("nats", flag.ContinueOnError)
	dir := f.String("dir", "nats-data", "store; it is emptied")
	always := f.Bool("always", false, "sync_interval: always")
	if err := f.Parse(args); err != nil {
		return err
	}
	return serveNATS(ctx, *dir, *always)
}

func sendPart(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("send", flag.ContinueOnError)
	addr := f.String("addr", "127.0.0.1:10911", "broker")
	topic := f.String("topic", sendTopic, "topic")
	queues := f.Int("queues", sendQueues, "queues of the topic")
	conns := f.Int("connections", 1, "connections")
	window := f.Int("window", 64, "requests in flight on each")
	body := f.Int("body", bodyBytes, "bytes of a body")
	batch := f.Int("batch", 1, "messages per request")
	d := f.Duration("d", 3*time.Second, "duration")
	if err := f.Parse(args); err != nil {
		return err
	}
	r, err := load.Run(ctx, *addr, load.Shape{Connections: *conns, Window: *window}, *d, func(i int) load.Codec {
		return load.NewSend(load.Send{Topic: *topic, Queues: *queues, Body: *body, Batch: *batch, Group: i})
	})
	printResult(r, *batch)
	return err
}

func pullPart(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("pull", flag.ContinueOnError)
	addr := f.String("addr", "127.0.0.1:10911", "broker")
	d := f.Duration("d", 3*time.Second, "duration")
	var cfg load.PullConfig
	f.StringVar(&cfg.Topic, "topic", sendTopic, "topic")
	f.StringVar(&cfg.Group, "group", "bench", "consumer group")
	f.IntVar(&cfg.Queues, "queues", sendQueues, "queues of the topic")
	f.IntVar(&cfg.Connections, "connections", 1, "connections")
	f.IntVar(&cfg.Max, "max", 32, "messages per pull")
	f.BoolVar(&cfg.Wrap, "wrap", true, "start again at the end of a queue")
	if err := f.Parse(args); err != nil {
		return err
	}
	r, err := load.Pull(ctx, *addr, cfg, *d)
	printResult(r, 1)
	return err
}

func printResult(r load.Result, batch int) {
	fmt.Printf("%.0f msg/s, p50 %.0f µs, p99 %.0f µs, p99.9 %.0f µs", r.Rate*float64(batch), us(r.Percentile(50)), us(r.Percentile(99)), us(r.Percentile(99.9)))
	if r.Refused > 0 {
		fmt.Printf(", %d refused: %s", r.Refused, r.Refusal)
	}
	fmt.Println()
}

func probePart(_ context.Context, args []string) error {
	f := flag.NewFlagSet("probe", flag.ContinueOnError)
	dir := f.String("dir", os.TempDir(), "folder on the disk to measure")
	n := f.Int("n", 3, "how often")
	if err := f.Parse(args); err != nil {
		return err
	}
	var trips, flushes []float64
	for range *n {
		p, err := probe.Take(*dir, 2*time.Second)
		if err != nil {
			return err
		}
		trips, flushes = append(trips, us(p.RoundTrip)), append(flushes, us(p.Flush))
	}
	slices.Sort(trips)
	slices.Sort(flushes)
	fmt.Printf("L %v µs, F %v µs\n", spreadOf(trips), spreadOf(flushes))
	return nil
}
