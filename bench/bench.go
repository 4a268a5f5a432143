// Package bench loads a broker with sends or pulls and measures what comes of it: rate, latency, and the CPU and memory
// that the broker spends when it runs on this machine. It speaks the remoting protocol with as little as possible between
// socket and clock, so that on a small machine the load does not drown what it measures. What flags there are and how a
// result is shown is up to cmd.
//
// Latency of a send is the time from when it was due to its answer: without a rate limit it is due when there is room in
// the window, with one it is due by the schedule, so that a broker that stalls is not excused from what it delayed.
package bench

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/quorate/quorate/protocol"
)

// Bounds of what a run may ask for.
const (
	ConnectionsMax = 20_000
	InFlightMax    = 65_536
	BodyBytesMax   = 4 << 20
	TopicsMax      = 100_000
	QueuesMax      = 1_024
	BatchMax       = 1_000
)

// Config is what both kinds of load have in common. Zero values take the defaults of DefaultConfig.
type Config struct {
	NameServers   []string // "host:port"; asked for the topic's brokers
	Brokers       []string // "host:port"; when given, NameServers are not asked and topics are expected to exist or be created by a send
	Topic         string
	Topics        int // more than 1: Topic is a prefix, -0, -1, … are appended
	Queues        int // per topic and broker
	Connections   int
	InFlight      int // requests per connection without an answer
	Duration      time.Duration
	WarmUp        time.Duration // load before the clock runs
	Messages      int64         // stop after so many; 0: by time alone
	Serialization protocol.Serialization
	TargetPID     int // process whose CPU and memory are reported; 0: the local process that listens at the first broker's port
	Interval      time.Duration
}

// DefaultConfig mirrors RocketMQ's benchmark scripts: one topic, one connection with 64 requests in flight.
func DefaultConfig() Config {
	return Config{
		Topic: "BenchmarkTest", Topics: 1, Queues: 4, Connections: 1, InFlight: 64, Duration: 10 * time.Second,
		Serialization: protocol.RocketMQ, Interval: time.Second,
	}
}

// Validate checks each field's bounds.
func (c *Config) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(len(c.NameServers)+len(c.Brokers) > 0, "neither a NameServer nor a broker is given")
	check(c.Topic != "", "topic is empty")
	check(c.Topics >= 1 && c.Topics <= TopicsMax, "topics %d outside 1..%d", c.Topics, TopicsMax)
	check(c.Queues >= 1 && c.Queues <= QueuesMax, "queues %d outside 1..%d", c.Queues, QueuesMax)
	check(c.Connections >= 1 && c.Connections <= ConnectionsMax, "connections %d outside 1..%d", c.Connections, ConnectionsMax)
	check(c.InFlight >= 1 && c.InFlight <= InFlightMax, "in flight %d outside 1..%d", c.InFlight, InFlightMax)
	check(c.Duration > 0, "duration %v is not positive", c.Duration)
	check(c.WarmUp >= 0, "warm-up %v is negative", c.WarmUp)
	check(c.Messages >= 0, "messages %d is negative", c.Messages)
	check(c.Interval > 0, "interval %v is not positive", c.Interval)
	return errors.Join(errs...)
}

func (c *Config) topic(i int) string {
	if c.Topics == 1 {
		return c.Topic
	}
	return fmt.Sprintf("%s-%d", c.Topic, i)
}

// Progress is what happened in one interval.
type Progress struct {
	Elapsed  time.Duration
	Warming  bool
	Messages int64 // in the interval
	Failed   int64
	Rate     float64 // messages per second in the interval
}

// Result is the outcome of a run.
type Result struct {
	Kind        string        `json:"kind"` // "produce" or "consume"
	Settings    Config        `json:"-"`
	Machine     string        `json:"machine"`
	Connections int           `json:"connections"`
	InFlight    int           `json:"in_flight"`
	BodyBytes   int           `json:"body_bytes,omitempty"`
	Batch       int           `json:"batch,omitempty"`
	Topics      int           `json:"topics"`
	Queues      int           `json:"queues"`
	FlushMode   string        `json:"flush_mode,omitempty"` // flushDiskType of the broker, when it says
	Duration    time.Duration `json:"duration_ns"`
	Messages    int64         `json:"messages"`
	Requests    int64         `json:"requests"`
	Bytes       int64         `json:"bytes"` // of bodies
	Failed      int64         `json:"failed"`
	Errors      []Failure     `json:"errors,omitempty"`
	Rate        float64       `json:"messages_per_second"`
	Latency     Percentiles   `json:"latency_us"`
	EndToEnd    *Percentiles  `json:"end_to_end_us,omitempty"` // consume: from the send to here, for messages of this tool
	Target      *TargetUse    `json:"target,omitempty"`
	LoadCPU     float64       `json:"load_cpu_us_per_message"` // this process
	Durability  string        `json:"durability,omitempty"`    // what the last answer said that it proved
}

// Failure counts one kind of failed request.
type Failure struct {
	Text  string `json:"text"`
	Count int64  `json:"count"`
}

// TargetUse is what the broker's process spent during the run.
type TargetUse struct {
	PID          int     `json:"pid"`
	CPU          float64 `json:"cpu_us_per_message"`
	CoreShare    float64 `json:"cores_busy"`
	AnonymousRSS int64   `json:"anonymous_rss_bytes"` // at the end of the run
	FileRSS      int64   `json:"file_rss_bytes"`
}

func machine() string {
	return fmt.Sprintf("%s/%s, %d CPUs, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
}
