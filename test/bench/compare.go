package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/test/bench/load"
	"github.com/quorate/quorate/test/bench/probe"
	"github.com/quorate/quorate/test/javapeer"
	"github.com/quorate/quorate/test/process"
)

// bound is a ratio that a row has to reach: the product's rate divided by another system's, or by a multiple of the probes.
type bound struct {
	against      string // C, J or N
	least, aim   float64
	cpu          bool // of CPU per message, where less is better
	latencyTails bool // of p99/p50, where less is better
}

// row is one line of the comparison: a load, and what the product has to reach in it.
type row struct {
	id     string
	what   string
	sync   bool
	shape  load.Shape
	batch  int
	bounds []bound
}

const bodyBytes = 1024

var rows = []row{
	{
		id: "T1", what: "page cache, 1 connection, 64 in flight", shape: load.Shape{Connections: 1, Window: 64}, batch: 1,
		bounds: []bound{{against: "C", least: 0.2, aim: 0.4}, {against: "J", least: 1.5, aim: 4}, {against: "N", aim: 2}, {against: "J", cpu: true, least: 0.4, aim: 0.2}},
	},
	{
		id: "T2", what: "page cache, 64 connections, 1 in flight", shape: load.Shape{Connections: 64, Window: 1}, batch: 1,
		bounds: []bound{{against: "C", least: 0.5, aim: 0.65}, {against: "J", least: 1.3, aim: 1.9}, {against: "N", aim: 0.9}, {against: "J", cpu: true, least: 0.8, aim: 0.4}, {against: "C", cpu: true, aim: 2}},
	},
	{
		id: "T3", what: "page cache, 4 connections, 64 in flight", shape: load.Shape{Connections: 4, Window: 64}, batch: 1,
		bounds: []bound{{against: "C", least: 0.12, aim: 0.25}, {against: "J", least: 2.4, aim: 5}, {against: "J", cpu: true, least: 0.4, aim: 0.2}},
	},
	{
		id: "T4", what: "sync flush, 1 connection, 64 in flight", sync: true, shape: load.Shape{Connections: 1, Window: 64}, batch: 1,
		bounds: []bound{{against: "C", least: 0.3, aim: 0.5}, {against: "J", least: 2, aim: 3.8}, {against: "N", least: 5, aim: 15}},
	},
	{
		id: "T5", what: "sync flush, 64 connections, 1 in flight", sync: true, shape: load.Shape{Connections: 64, Window: 1}, batch: 1,
		bounds: []bound{{against: "C", least: 0.5, aim: 0.65}, {against: "J", least: 1.3, aim: 1.7}, {against: "N", least: 4, aim: 6}, {against: "C", latencyTails: true, aim: 1.5}},
	},
	{
		id: "T6", what: "sync flush, 4 connections, 64 in flight", sync: true, shape: load.Shape{Connections: 4, Window: 64}, batch: 1,
		bounds: []bound{{against: "C", least: 0.3, aim: 0.5}, {against: "J", least: 3, aim: 5}},
	},
	{id: "T10", what: "batches of 16, 16 in flight, page cache", shape: load.Shape{Connections: 1, Window: 16}, batch: 16},
	{id: "L1", what: "one request in flight, page cache", shape: load.Shape{Connections: 1, Window: 1}, batch: 1},
	{id: "L2", what: "one request in flight, sync flush", sync: true, shape: load.Shape{Connections: 1, Window: 1}, batch: 1},
}

// sample is one pass of one system.
type sample struct {
	rate     float64 // messages per second
	p50, p99 time.Duration
	cpu      time.Duration // per message
}

// pass is one round of a row over all systems, between two looks at the machine.
type pass struct {
	probe   probe.Probe
	samples map[string]sample
}

// comparison runs rows over systems, interleaved.
type comparison struct {
	out    io.Writer
	dir    string
	binary string
	passes int
	length time.Duration
	peers  bool
}

func (c *comparison) run(ctx context.Context, wanted []row) error {
	for _, sync := range []bool{false, true} {
		var mine []row
		for _, r := range wanted {
			if r.sync == sync {
				mine = append(mine, r)
			}
		}
		if len(mine) == 0 {
			continue
		}
		systems, err := c.start(ctx, sync)
		if err == nil {
			for _, r := range mine {
				if err = c.row(ctx, r, systems); err != nil {
					break
				}
			}
		}
		for _, s := range systems {
			err = errors.Join(err, s.Stop())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *comparison) start(ctx context.Context, sync bool) ([]system, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*bootTimeout)
	defer cancel()
	product, err := startProduct(ctx, c.binary, c.dir, sync, nil)
	if err != nil {
		return nil, err
	}
	systems := []system{product}
	ceiling, err := startCeiling(c.dir, sync)
	if err != nil {
		return systems, err
	}
	systems = append(systems, ceiling)
	if !c.peers {
		return systems, nil
	}
	nats, err := startNATS(c.dir, sync)
	if err != nil {
		return systems, err
	}
	systems = append(systems, nats)
	if why := javapeer.Missing(); why != "" {
		fmt.Fprintln(c.out, "SKIPPED: no Java peer:", why)
		return systems, nil
	}
	peer, err := javapeer.Open(ctx, javapeer.V5)
	if err != nil {
		return systems, err
	}
	java, err := startJava(ctx, peer, c.dir, sync)
	if err != nil {
		return systems, err
	}
	return append(systems, java), nil
}

// row repeats passes until enough of them count. A pass in which the machine was more than twice as slow as usual does not;
// if that happens too often the row is void, which is neither good nor bad.
func (c *comparison) row(ctx context.Context, r row, systems []system) error {
	var passes []pass
	tries := 0
	for limit := c.passes + c.passes*2/3 + 1; tries < limit && len(quiet(passes)) < c.passes; tries++ {
		p, err := c.pass(ctx, r, systems)
		if err != nil {
			return fmt.Errorf("%s: %w", r.id, err)
		}
		passes = append(passes, p)
	}
	good := quiet(passes)
	c.report(r, systems, good, len(passes)-len(good), len(good) < c.passes)
	return nil
}

func (c *comparison) pass(ctx context.Context, r row, systems []system) (pass, error) {
	before, err := probe.Take(c.dir, time.Second)
	if err != nil {
		return pass{}, err
	}
	p := pass{probe: before, samples: map[string]sample{}}
	for _, s := range systems {
		if r.batch > 1 && (s.Letter() == "C" || s.Letter() == "N") {
			continue // they have no batches
		}
		cpu, err := cpuOf(s.PIDs())
		if err != nil {
			return p, err
		}
		res, err := s.Send(ctx, r.shape, bodyBytes, r.batch, c.length)
		if err != nil {
			return p, fmt.Errorf("%s: %w", s.Letter(), err)
		}
		if res.Refused > 0 {
			return p, fmt.Errorf("%s refused %d requests: %s", s.Letter(), res.Refused, res.Refusal)
		}
		after, err := cpuOf(s.PIDs())
		if err != nil {
			return p, err
		}
		messages := res.Acked * int64(r.batch)
		p.samples[s.Letter()] = sample{
			rate: res.Rate * float64(r.batch), p50: res.Percentile(50), p99: res.Percentile(99), cpu: (after - cpu) / time.Duration(max(messages, 1)),
		}
	}
	return p, nil
}

func cpuOf(pids []int) (sum time.Duration, err error) {
	for _, pid := range pids {
		u, err := process.ReadUsage(pid)
		if err != nil {
			return 0, err
		}
		sum += u.CPU
	}
	return sum, nil
}

// quiet are the passes whose probes are at most twice the median of all.
func quiet(passes []pass) []pass {
	var trips, flushes []float64
	for _, p := range passes {
		trips, flushes = append(trips, float64(p.probe.RoundTrip)), append(flushes, float64(p.probe.Flush))
	}
	t, f := middle(trips), middle(flushes)
	var out []pass
	for _, p := range passes {
		if float64(p.probe.RoundTrip) <= 2*t && float64(p.probe.Flush) <= 2*f {
			out = append(out, p)
		}
	}
	return out
}

func middle(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(v))
	return s[len(s)/2]
}

// spread is a median with its extremes.
type spread struct{ median, low, high float64 }

func spreadOf(v []float64) spread {
	if len(v) == 0 {
		return spread{math.NaN(), math.NaN(), math.NaN()}
	}
	return spread{middle(v), slices.Min(v), slices.Max(v)}
}

func (s spread) String() string { return fmt.Sprintf("%.2f [%.2f..%.2f]", s.median, s.low, s.high) }

func (c *comparison) report(r row, systems []system, passes []pass, dropped int, void bool) {
	fmt.Fprintf(c.out, "%s  %s: %d passes, %d dropped\n", r.id, r.what, len(passes), dropped)
	if void {
		fmt.Fprintf(c.out, "    VOID: the machine was too unsteady\n")
	}
	of := func(f func(pass) float64) spread {
		var v []float64
		for _, p := range passes {
			if x := f(p); !math.IsNaN(x) {
				v = append(v, x)
			}
		}
		return spreadOf(v)
	}
	fmt.Fprintf(c.out, "    machine: L %.0f µs, F %.0f µs\n",
		of(func(p pass) float64 { return us(p.probe.RoundTrip) }).median, of(func(p pass) float64 { return us(p.probe.Flush) }).median)
	for _, s := range systems {
		l := s.Letter()
		if len(passes) == 0 || passes[0].samples[l].rate == 0 {
			continue
		}
		rate := of(func(p pass) float64 { return p.samples[l].rate })
		fmt.Fprintf(c.out, "    %s  %9.0f msg/s [%.0f..%.0f]  p50 %.0f µs  p99 %.0f µs  %.1f µs CPU\n", l, rate.median, rate.low, rate.high,
			of(func(p pass) float64 { return us(p.samples[l].p50) }).median, of(func(p pass) float64 { return us(p.samples[l].p99) }).median,
			of(func(p pass) float64 { return us(p.samples[l].cpu) }).median)
	}
	for _, b := range r.bounds {
		c.judge(b, of(func(p pass) float64 { return b.ratio(p) }))
	}
	if r.shape == (load.Shape{Connections: 1, Window: 1}) {
		c.lone(r, of)
	}
}

// ratio is the product's figure over the other's in one pass; NaN when the other did not run.
func (b bound) ratio(p pass) float64 {
	mine, other := p.samples["P"], p.samples[b.against]
	if other.rate == 0 {
		return math.NaN()
	}
	switch {
	case b.cpu:
		return float64(mine.cpu) / float64(other.cpu)
	case b.latencyTails:
		return (float64(mine.p99) / float64(mine.p50)) / (float64(other.p99) / float64(other.p50))
	default:
		return mine.rate / other.rate
	}
}

func (c *comparison) judge(b bound, got spread) {
	if math.IsNaN(got.median) {
		return
	}
	what, reached := "rate", func(limit float64) bool { return got.median >= limit }
	if b.cpu || b.latencyTails {
		what, reached = "CPU per message", func(limit float64) bool { return got.median <= limit }
	}
	if b.latencyTails {
		what = "p99/p50"
	}
	var verdict []string
	for _, v := range []struct {
		name  string
		limit float64
	}{{"least", b.least}, {"aim", b.aim}} {
		if v.limit > 0 {
			verdict = append(verdict, fmt.Sprintf("%s %.2g: %s", v.name, v.limit, map[bool]string{true: "reached", false: "MISSED"}[reached(v.limit)]))
		}
	}
	fmt.Fprintf(c.out, "    %s P/%s %v  (%s)\n", what, b.against, got, strings.Join(verdict, ", "))
}

// lone judges the latency of one request against the machine's own: cache 8 L at least and 4 L aimed at; with a flush F
// and 12 L, aim F and 8 L.
func (c *comparison) lone(r row, of func(func(pass) float64) spread) {
	f := func(p pass) float64 { return 0 }
	least, aim := 8.0, 4.0
	if r.sync {
		f = func(p pass) float64 { return float64(p.probe.Flush) }
		least, aim = 12, 8
	}
	trips := of(func(p pass) float64 { return (float64(p.samples["P"].p50) - f(p)) / float64(p.probe.RoundTrip) })
	verdict := map[bool]string{true: "reached", false: "MISSED"}
	fmt.Fprintf(c.out, "    p50 = %s%v L  (least %.0f: %s, aim %.0f: %s)\n", map[bool]string{true: "F + ", false: ""}[r.sync], trips,
		least, verdict[trips.median <= least], aim, verdict[trips.median <= aim])
}

func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func workDir(dir string) (string, func(), error) {
	if dir != "" {
		return dir, func() {}, os.MkdirAll(dir, 0o700)
	}
	made, err := os.MkdirTemp("", "quorate-bench-")
	return made, func() { _ = os.RemoveAll(made) }, err // what stays behind is in the temporary folder
}
