package bench

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latencies are recorded in nanoseconds with 3 significant digits, from a microsecond to five minutes; what is outside
// is counted at the bound.
const (
	latencyMin    = int64(time.Microsecond)
	latencyMax    = int64(5 * time.Minute)
	latencyDigits = 3
	// failureKindsMax bounds how many different failures are told apart.
	failureKindsMax = 20
)

// counters are shared by all connections of a run; histograms are not.
type counters struct {
	measuring          atomic.Bool
	messages, requests atomic.Int64 // measured
	bytes, failed      atomic.Int64
	all, allFailed     atomic.Int64 // with those of the warm-up, for progress and for the message limit
	durability         atomic.Value // string

	mu    sync.Mutex
	kinds map[string]int64
}

func (c *counters) fail(text string) {
	c.allFailed.Add(1)
	if !c.measuring.Load() {
		return
	}
	c.failed.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kinds == nil {
		c.kinds = map[string]int64{}
	}
	if _, known := c.kinds[text]; !known && len(c.kinds) >= failureKindsMax {
		text = "others"
	}
	c.kinds[text]++
}

func (c *counters) failures() []Failure {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Failure
	for _, text := range slices.Sorted(maps.Keys(c.kinds)) {
		out = append(out, Failure{Text: text, Count: c.kinds[text]})
	}
	slices.SortStableFunc(out, func(a, b Failure) int { return cmp.Compare(b.Count, a.Count) })
	return out
}

// recorder belongs to one goroutine.
type recorder struct{ h *hdrhistogram.Histogram }

func newRecorder() *recorder {
	return &recorder{h: hdrhistogram.New(latencyMin, latencyMax, latencyDigits)}
}

func (r *recorder) add(d time.Duration) {
	_ = r.h.RecordValue(min(max(int64(d), latencyMin), latencyMax)) // cannot fail within the bounds
}

// Percentiles are of a latency, in microseconds.
type Percentiles struct {
	Count int64   `json:"count"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p99_9"`
	P9999 float64 `json:"p99_99"`
	Max   float64 `json:"max"`
}

// merge adds up recorders; the histogram is what `-o hdr` prints.
func merge(rs []*recorder) *hdrhistogram.Histogram {
	sum := newRecorder().h
	for _, r := range rs {
		sum.Merge(r.h)
	}
	return sum
}

func percentiles(h *hdrhistogram.Histogram) Percentiles {
	at := func(p float64) float64 { return float64(h.ValueAtPercentile(p)) / 1e3 }
	return Percentiles{
		Count: h.TotalCount(), Mean: h.Mean() / 1e3, P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), P9999: at(99.99),
		Max: float64(h.Max()) / 1e3,
	}
}
