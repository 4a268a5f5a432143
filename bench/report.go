package bench

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"
)

// String is the live line of one interval.
func (p Progress) String() string {
	s := fmt.Sprintf("%6.1f s  %9.0f msg/s", p.Elapsed.Seconds(), p.Rate)
	if p.Failed > 0 {
		s += fmt.Sprintf("  %d failed", p.Failed)
	}
	if p.Warming {
		s += "  (warming up)"
	}
	return s
}

// WriteText prints the result for people.
func (r *Result) WriteText(w io.Writer) error {
	p := &printer{w: w}
	p.f("%s, %s\n", r.Kind, r.Machine)
	p.f("  %d connections × %d in flight, %d topics × %d queues", r.Connections, r.InFlight, r.Topics, r.Queues)
	if r.BodyBytes > 0 {
		p.f(", %d-byte bodies, %d per request", r.BodyBytes, r.Batch)
	}
	p.f("\n")
	if r.FlushMode != "" {
		p.f("  broker flushes: %s", r.FlushMode)
		if r.Durability != "" {
			p.f("; its answers prove: %s", r.Durability)
		}
		p.f("\n")
	}
	p.f("  %d messages in %.2f s: %.0f msg/s, %.1f MB/s; %d failed\n",
		r.Messages, r.Duration.Seconds(), r.Rate, float64(r.Bytes)/1e6/max(r.Duration.Seconds(), 1e-9), r.Failed)
	for _, f := range r.Errors {
		p.f("    %d × %s\n", f.Count, f.Text)
	}
	p.latency("latency", r.Latency)
	if r.EndToEnd != nil {
		p.latency("end to end", *r.EndToEnd)
	}
	if t := r.Target; t != nil {
		p.f("  broker (pid %d): %.1f µs CPU per message, %.2f cores, %.0f MB anonymous, %.0f MB file pages\n",
			t.PID, t.CPU, t.CoreShare, float64(t.AnonymousRSS)/1e6, float64(t.FileRSS)/1e6)
	}
	p.f("  this program: %.1f µs CPU per message\n", r.LoadCPU)
	return p.err
}

type printer struct {
	w   io.Writer
	err error
}

func (p *printer) f(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

func (p *printer) latency(name string, l Percentiles) {
	if l.Count == 0 {
		return
	}
	p.f("  %s: mean %.0f µs, p50 %.0f, p90 %.0f, p99 %.0f, p99.9 %.0f, p99.99 %.0f, max %.0f\n",
		name, l.Mean, l.P50, l.P90, l.P99, l.P999, l.P9999, l.Max)
}

// WriteJSON prints the result as one JSON object.
func (r *Result) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// csvHeader names the columns of WriteCSV. Add new ones at the end.
var csvHeader = []string{
	"time", "kind", "connections", "in_flight", "topics", "queues", "body_bytes", "batch", "flush_mode", "seconds", "messages", "failed",
	"messages_per_second", "p50_us", "p99_us", "p99_9_us", "max_us", "target_cpu_us_per_message", "target_anonymous_rss_bytes",
	"load_cpu_us_per_message",
}

// WriteCSV prints the result as one line, after the names of the columns when header is set.
func (r *Result) WriteCSV(w io.Writer, at time.Time, header bool) error {
	c := csv.NewWriter(w)
	f := func(v float64) string { return strconv.FormatFloat(v, 'f', 3, 64) }
	cpu, rss := "", ""
	if r.Target != nil {
		cpu, rss = f(r.Target.CPU), strconv.FormatInt(r.Target.AnonymousRSS, 10)
	}
	rows := [][]string{{
		at.UTC().Format(time.RFC3339), r.Kind, strconv.Itoa(r.Connections), strconv.Itoa(r.InFlight), strconv.Itoa(r.Topics), strconv.Itoa(r.Queues),
		strconv.Itoa(r.BodyBytes), strconv.Itoa(r.Batch), r.FlushMode, f(r.Duration.Seconds()), strconv.FormatInt(r.Messages, 10),
		strconv.FormatInt(r.Failed, 10), f(r.Rate), f(r.Latency.P50), f(r.Latency.P99), f(r.Latency.P999), f(r.Latency.Max), cpu, rss, f(r.LoadCPU),
	}}
	if header {
		rows = append([][]string{csvHeader}, rows...)
	}
	return c.WriteAll(rows)
}
