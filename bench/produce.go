package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"

	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/protocol"
)

// ProduceConfig is a load of sends.
type ProduceConfig struct {
	Config
	Group         string
	BodyBytes     int
	Batch         int     // messages per request; above 1 SEND_BATCH_MESSAGE
	Rate          float64 // messages per second over all connections; 0: as fast as answers come
	Keys          bool    // each message gets a key
	PropertyBytes int     // size of one user property; 0: none
	Tags          int     // so many different tags in turn; 0: none
	DelayLevel    int
	Oneway        bool // no answers: the rate is what was written, latencies are empty
}

// DefaultProduceConfig is the shape of RocketMQ's benchmark producer, with 1 KiB bodies.
func DefaultProduceConfig() ProduceConfig {
	return ProduceConfig{Config: DefaultConfig(), Group: "benchmark_producer", BodyBytes: 1024, Batch: 1}
}

// Validate checks each field's bounds.
func (c *ProduceConfig) Validate() error {
	errs := []error{c.Config.Validate()}
	if c.BodyBytes < 1 || c.BodyBytes > BodyBytesMax {
		errs = append(errs, fmt.Errorf("body of %d bytes outside 1..%d", c.BodyBytes, BodyBytesMax))
	}
	if c.Batch < 1 || c.Batch > BatchMax {
		errs = append(errs, fmt.Errorf("batch %d outside 1..%d", c.Batch, BatchMax))
	}
	if c.Rate < 0 {
		errs = append(errs, fmt.Errorf("rate %v is negative", c.Rate))
	}
	if c.DelayLevel < 0 || c.DelayLevel > 18 {
		errs = append(errs, fmt.Errorf("delay level %d outside 0..18", c.DelayLevel))
	}
	if c.PropertyBytes < 0 || c.PropertyBytes > message.PropertiesBytesMax/2 {
		errs = append(errs, fmt.Errorf("property of %d bytes outside 0..%d", c.PropertyBytes, message.PropertiesBytesMax/2))
	}
	if c.Batch > 1 && c.DelayLevel > 0 {
		errs = append(errs, errors.New("a batch cannot be delayed"))
	}
	return errors.Join(errs...)
}

// Produce runs the load until its duration is over, its messages are sent, or ctx ends. progress may be nil; it is called
// from one goroutine. The histogram holds nanoseconds.
func Produce(ctx context.Context, cfg ProduceConfig, progress func(Progress)) (Result, *hdrhistogram.Histogram, error) {
	result := Result{Kind: "produce", BodyBytes: cfg.BodyBytes, Batch: cfg.Batch}
	if err := cfg.Validate(); err != nil {
		return result, nil, err
	}
	brokers, flushMode, err := prepare(ctx, &cfg.Config, true)
	if err != nil {
		return result, nil, err
	}
	result.FlushMode = flushMode
	r := &run{cfg: cfg.Config, progress: progress}
	senders := make([]*sender, cfg.Connections)
	dialers, dialCtx := errgroup.WithContext(ctx)
	dialers.SetLimit(connectionsAtOnce)
	for i := range senders {
		dialers.Go(func() error {
			w, err := dial(dialCtx, brokers[i%len(brokers)])
			if err == nil {
				senders[i] = newSender(w, &cfg, r, i)
			}
			return err
		})
	}
	if err := dialers.Wait(); err != nil {
		return result, nil, err
	}
	workers := make([]worker, len(senders))
	recorders := make([]*recorder, len(senders))
	for i, s := range senders {
		workers[i], recorders[i] = s.run, s.recorder
	}
	err = r.drive(ctx, workers, brokers[0], &result)
	h := merge(recorders)
	result.Latency = percentiles(h)
	return result, h, err
}

// sender keeps one connection's window full. The writer owns everything but what the reader is named for.
type sender struct {
	*wire
	cfg      *ProduceConfig
	load     *run
	recorder *recorder // reader's
	slots    chan int32
	due      []atomic.Int64 // by slot: nanoseconds since start, written before the request and read after its answer
	start    time.Time
	pending  atomic.Int64
	finished atomic.Bool // the writer has sent its last request
	template protocol.Command
	queueAt  int // indexes of the fields that change
	topicAt  int
	bornAt   int
	propAt   int
	body     []byte
	turn     int
}

func newSender(w *wire, cfg *ProduceConfig, r *run, index int) *sender {
	s := &sender{
		wire: w, cfg: cfg, load: r, recorder: newRecorder(), slots: make(chan int32, cfg.InFlight), due: make([]atomic.Int64, cfg.InFlight),
		start: time.Now(), turn: index,
	}
	for i := range cfg.InFlight {
		s.slots <- int32(i)
	}
	batch := cfg.Batch > 1
	header := protocol.SendMessageRequestV2{
		ProducerGroup: cfg.Group, Topic: cfg.topic(0), DefaultTopic: "TBW102", DefaultTopicQueueNums: int32(cfg.Queues), Properties: "x", Batch: &batch,
	}
	var req protocol.Request = &header
	if batch {
		req = &protocol.SendBatchMessageRequest{SendMessageRequestV2: header}
	}
	s.template = *protocol.NewRequest(req, nil)
	s.template.Serialization = cfg.Serialization
	if cfg.Oneway {
		s.template.Flag |= protocol.FlagOneway
	}
	s.topicAt, s.queueAt = fieldIndex(&s.template, "b"), fieldIndex(&s.template, "e")
	s.bornAt, s.propAt = fieldIndex(&s.template, "g"), fieldIndex(&s.template, "i")
	s.body = make([]byte, cfg.BodyBytes)
	for i := range s.body {
		s.body[i] = 'a' + byte(i%26)
	}
	return s
}

func (s *sender) run(ctx context.Context) error {
	defer s.conn.Close()
	stop := context.AfterFunc(ctx, func() { // unblocks a write to a peer that reads no more
		_ = s.conn.SetWriteDeadline(time.Now().Add(drainTimeout))
	})
	defer stop()
	var reader errgroup.Group
	if !s.cfg.Oneway {
		reader.Go(s.receive)
	}
	err := s.send(ctx)
	s.finished.Store(true)
	if s.pending.Load() == 0 {
		s.conn.Close()
	} else if derr := s.conn.SetReadDeadline(time.Now().Add(drainTimeout)); derr != nil {
		err = errors.Join(err, derr)
	}
	return errors.Join(err, reader.Wait())
}

// send writes requests while the window has room and, when it is full, flushes what is buffered.
func (s *sender) send(ctx context.Context) error {
	var out []byte
	sched := newSchedule(s.cfg)
	for {
		slot, err := s.acquire(ctx)
		if err != nil || slot < 0 {
			return err
		}
		due, err := sched.next(ctx, s.w)
		if err != nil || ctx.Err() != nil || s.load.limitReached() {
			return errors.Join(err, s.w.Flush())
		}
		s.due[slot].Store(int64(due.Sub(s.start)))
		out = s.frame(out[:0], slot, due)
		s.pending.Add(1)
		if _, err := s.w.Write(out); err != nil {
			return fmt.Errorf("send: %w", err)
		}
		if s.cfg.Oneway {
			s.count(nil)
			s.slots <- slot
		}
	}
}

// acquire takes a slot of the window; −1 says that the run is over.
func (s *sender) acquire(ctx context.Context) (int32, error) {
	select {
	case slot := <-s.slots:
		return slot, nil
	default:
	}
	if err := s.w.Flush(); err != nil {
		return -1, fmt.Errorf("send: %w", err)
	}
	select {
	case slot := <-s.slots:
		return slot, nil
	case <-ctx.Done():
		return -1, nil
	}
}

func (s *sender) frame(dst []byte, slot int32, due time.Time) []byte {
	cmd := &s.template
	cmd.Opaque = slot
	s.turn++
	if s.cfg.Topics > 1 {
		setField(cmd, s.topicAt, []byte(s.cfg.topic(s.turn%s.cfg.Topics)))
	}
	var scratch [2][20]byte
	setField(cmd, s.queueAt, strconv.AppendInt(scratch[0][:0], int64(s.turn/s.cfg.Topics%s.cfg.Queues), 10))
	setField(cmd, s.bornAt, strconv.AppendInt(scratch[1][:0], due.UnixMilli(), 10))
	properties := s.properties()
	setField(cmd, s.propAt, properties)
	stamp(s.body, due)
	if s.cfg.Batch == 1 {
		cmd.Body = s.body
		return protocol.AppendFrame(dst, cmd)
	}
	var body []byte
	for range s.cfg.Batch {
		body = message.AppendBatchEntry(body, message.BatchEntry{Body: s.body, Properties: s.properties()})
	}
	cmd.Body = body
	return protocol.AppendFrame(dst, cmd)
}

// properties are what a client sends with each message: a unique key and WAIT, and what the load asks for.
func (s *sender) properties() message.Properties {
	p := make(message.Properties, 0, 128+s.cfg.PropertyBytes)
	p = p.Append("UNIQ_KEY", message.NewUniqueKey()).Append("WAIT", "true")
	if s.cfg.Keys {
		p = p.Append("KEYS", strconv.Itoa(s.turn))
	}
	if s.cfg.Tags > 0 {
		p = p.Append("TAGS", "tag"+strconv.Itoa(s.turn%s.cfg.Tags))
	}
	if s.cfg.DelayLevel > 0 {
		p = p.Append("DELAY", strconv.Itoa(s.cfg.DelayLevel))
	}
	if s.cfg.PropertyBytes > 0 {
		p = p.Append("hello", strings.Repeat("x", s.cfg.PropertyBytes))
	}
	return p
}

func (s *sender) receive() error {
	for {
		cmd, err := s.read()
		if err != nil {
			if s.finished.Load() && (errors.Is(err, net.ErrClosed) || s.pending.Load() == 0) {
				return nil
			}
			if errors.Is(err, io.EOF) {
				err = errors.New("the broker closed the connection")
			}
			return fmt.Errorf("receive with %d unanswered: %w", s.pending.Load(), err)
		}
		if !cmd.Response() || cmd.Opaque < 0 || int(cmd.Opaque) >= len(s.due) {
			continue // a notice from the broker
		}
		took := time.Since(s.start) - time.Duration(s.due[cmd.Opaque].Load())
		if s.load.counters.measuring.Load() {
			s.recorder.add(took)
		}
		s.count(cmd)
		s.slots <- cmd.Opaque
		if s.pending.Add(-1) == 0 && s.finished.Load() {
			return s.conn.Close()
		}
	}
}

// count books one answer, or a oneway send when there is none.
func (s *sender) count(cmd *protocol.Command) {
	c := &s.load.counters
	if cmd != nil && cmd.Code != int32(protocol.Success) {
		c.fail(fmt.Sprintf("code %d %s", cmd.Code, cmd.Remark))
		return
	}
	n := int64(s.cfg.Batch)
	c.all.Add(n)
	if !c.measuring.Load() {
		return
	}
	c.messages.Add(n)
	c.requests.Add(1)
	c.bytes.Add(n * int64(s.cfg.BodyBytes))
	if cmd != nil && c.durability.Load() == nil {
		c.durability.Store(cmd.Ext.Get("durability"))
	}
}
