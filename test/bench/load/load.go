// Package load drives a server with as many requests in flight as asked for, with as little between socket and clock as
// possible, and measures each answer. What is on the wire is a Codec's business, so that different servers are driven by
// the same loop.
package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Codec writes requests and reads answers of one connection. It is used by one writer and one reader at a time, which
// share nothing.
type Codec interface {
	// Append appends the request of a slot; turn counts the connection's requests.
	Append(dst []byte, slot, turn int) []byte
	// Read reads one answer and says which slot it is for; refusal is what the server said when it did not take it.
	Read(r *bufio.Reader) (slot int, refusal string, err error)
}

// Shape is how much is in flight.
type Shape struct{ Connections, Window int }

func (s Shape) String() string { return fmt.Sprintf("%d×%d", s.Connections, s.Window) }

// Result of one pass.
type Result struct {
	Acked    int64
	Refused  int64
	Refusal  string // one of them
	Duration time.Duration
	Rate     float64 // answers per second
	Latency  *hdrhistogram.Histogram
}

// Percentile of the latency.
func (r *Result) Percentile(p float64) time.Duration {
	if r.Latency == nil || r.Latency.TotalCount() == 0 {
		return 0
	}
	return time.Duration(r.Latency.ValueAtPercentile(p))
}

const (
	bufferBytes  = 64 << 10
	drainTimeout = 10 * time.Second
	dialTimeout  = 5 * time.Second
	dialsAtOnce  = 64
)

// Run loads addr for d. newCodec is called once per connection.
func Run(ctx context.Context, addr string, shape Shape, d time.Duration, newCodec func(connection int) Codec) (Result, error) {
	lanes := make([]*lane, shape.Connections)
	errs := make([]error, shape.Connections)
	var group sync.WaitGroup
	gate := make(chan struct{}, dialsAtOnce)
	for i := range lanes {
		group.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			c, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", addr)
			if err != nil {
				errs[i] = err
				return
			}
			lanes[i] = newLane(c, newCodec(i), shape.Window)
		})
	}
	group.Wait()
	defer func() {
		for _, l := range lanes {
			if l != nil {
				l.conn.Close()
			}
		}
	}()
	if err := errors.Join(errs...); err != nil {
		return Result{}, err
	}
	began := time.Now()
	stop := began.Add(d)
	for i, l := range lanes {
		group.Go(func() { errs[i] = l.run(stop) })
	}
	group.Wait()
	// Answers behind the end are drained but not counted: the rate is of the time that was asked for.
	out := Result{Duration: d, Latency: hdrhistogram.New(1000, int64(time.Minute), 3)}
	for _, l := range lanes {
		out.Acked += l.acked.Load()
		out.Refused += l.refused
		if out.Refusal == "" {
			out.Refusal = l.refusal
		}
		out.Latency.Merge(l.latency)
	}
	out.Rate = float64(out.Acked) / d.Seconds()
	return out, errors.Join(errs...)
}

type lane struct {
	conn    net.Conn
	codec   Codec
	slots   chan int
	sentAt  []atomic.Int64 // by slot, nanoseconds since start
	start   time.Time
	sent    atomic.Int64
	closed  atomic.Bool
	acked   atomic.Int64
	refused int64
	refusal string
	latency *hdrhistogram.Histogram
}

func newLane(c net.Conn, codec Codec, window int) *lane {
	l := &lane{
		conn: c, codec: codec, slots: make(chan int, window), sentAt: make([]atomic.Int64, window), start: time.Now(),
		latency: hdrhistogram.New(1000, int64(time.Minute), 3),
	}
	for i := range window {
		l.slots <- i
	}
	return l
}

func (l *lane) run(stop time.Time) error {
	done := make(chan error, 1)
	go func() { done <- l.receive(stop) }()
	w := bufio.NewWriterSize(l.conn, bufferBytes)
	var frame []byte
	for turn := 0; time.Now().Before(stop); turn++ {
		var slot int
		select {
		case slot = <-l.slots:
		default:
			if err := w.Flush(); err != nil {
				return errors.Join(err, <-done)
			}
			select {
			case slot = <-l.slots:
			case err := <-done:
				return err
			}
		}
		frame = l.codec.Append(frame[:0], slot, turn)
		l.sentAt[slot].Store(int64(time.Since(l.start)))
		l.sent.Add(1)
		if _, err := w.Write(frame); err != nil {
			return errors.Join(err, <-done)
		}
	}
	err := w.Flush()
	_ = l.conn.SetReadDeadline(time.Now().Add(drainTimeout)) // a connection that is gone fails in the reader
	l.closed.Store(true)
	// A nudge in case the last answer came before closed was set: the reader only looks when it has read something.
	if len(l.slots) == cap(l.slots) {
		l.conn.Close()
	}
	return errors.Join(err, <-done)
}

func (l *lane) receive(stop time.Time) error {
	r := bufio.NewReaderSize(l.conn, bufferBytes)
	for received := int64(0); ; {
		slot, refusal, err := l.codec.Read(r)
		if err != nil {
			if l.closed.Load() && received == l.sent.Load() {
				return nil
			}
			return fmt.Errorf("answer %d of %d: %w", received, l.sent.Load(), err)
		}
		now := time.Now()
		received++
		if slot < 0 || slot >= len(l.sentAt) {
			return fmt.Errorf("answer for slot %d of %d", slot, len(l.sentAt))
		}
		switch {
		case refusal != "":
			l.refused++
			l.refusal = refusal
		case now.Before(stop):
			l.acked.Add(1)
			took := int64(now.Sub(l.start)) - l.sentAt[slot].Load()
			_ = l.latency.RecordValue(min(max(took, 1000), int64(time.Minute))) // within the bounds
		}
		l.slots <- slot
		if l.closed.Load() && received == l.sent.Load() {
			return nil
		}
	}
}
