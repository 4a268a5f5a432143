package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"

	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/protocol"
)

// sysFlagSuspend and sysFlagSubscription are bits of a pull's sysFlag (RocketMQ PullSysFlag).
const (
	sysFlagSuspend      = 2
	sysFlagSubscription = 4
)

// ConsumeConfig is a load of pulls. Each connection reads its share of the queues in turn, one pull at a time; InFlight is
// not used.
type ConsumeConfig struct {
	Config
	Group       string
	MaxMessages int           // per pull
	Expression  string        // tags, `a || b`; "*" is all
	FromEnd     bool          // start behind the last message of each queue instead of at the first
	Hold        time.Duration // how long the broker may hold a pull that finds nothing; 0: it answers at once
	Repeat      bool          // start again at the first message after the last: a steady read load on what is there
}

// DefaultConsumeConfig reads everything there is, 32 messages at a time, and waits for more.
func DefaultConsumeConfig() ConsumeConfig {
	return ConsumeConfig{Config: DefaultConfig(), Group: "benchmark_consumer", MaxMessages: 32, Expression: "*", Hold: 15 * time.Second}
}

// Validate checks each field's bounds.
func (c *ConsumeConfig) Validate() error {
	errs := []error{c.Config.Validate()}
	if c.MaxMessages < 1 || c.MaxMessages > BatchMax {
		errs = append(errs, fmt.Errorf("max messages %d outside 1..%d", c.MaxMessages, BatchMax))
	}
	if c.Hold < 0 || c.Hold > time.Minute {
		errs = append(errs, fmt.Errorf("hold %v outside 0..1m", c.Hold))
	}
	return errors.Join(errs...)
}

// queueCursor is one queue and where its reader is.
type queueCursor struct {
	topic  string
	queue  int
	offset int64 // −1: at the end, which the first answer tells
}

// Consume runs the load until its duration is over, its messages are read, or ctx ends. progress may be nil. The
// histogram holds the nanoseconds of pulls that found something.
func Consume(ctx context.Context, cfg ConsumeConfig, progress func(Progress)) (Result, *hdrhistogram.Histogram, error) {
	result := Result{Kind: "consume"}
	if err := cfg.Validate(); err != nil {
		return result, nil, err
	}
	brokers, flushMode, err := prepare(ctx, &cfg.Config, false)
	if err != nil {
		return result, nil, err
	}
	result.FlushMode = flushMode
	r := &run{cfg: cfg.Config, progress: progress}
	pullers := make([]*puller, cfg.Connections)
	dialers, dialCtx := errgroup.WithContext(ctx)
	dialers.SetLimit(connectionsAtOnce)
	for i := range pullers {
		dialers.Go(func() error {
			w, err := dial(dialCtx, brokers[i%len(brokers)])
			if err == nil {
				pullers[i] = newPuller(w, &cfg, r, i, len(brokers))
			}
			return err
		})
	}
	if err := dialers.Wait(); err != nil {
		return result, nil, err
	}
	var workers []worker
	var pulls, ends []*recorder
	for _, p := range pullers {
		workers = append(workers, p.run)
		pulls, ends = append(pulls, p.recorder), append(ends, p.ends)
	}
	err = r.drive(ctx, workers, brokers[0], &result)
	h := merge(pulls)
	result.Latency = percentiles(h)
	if e := merge(ends); e.TotalCount() > 0 {
		p := percentiles(e)
		result.EndToEnd = &p
	}
	return result, h, err
}

type puller struct {
	*wire
	cfg      *ConsumeConfig
	load     *run
	recorder *recorder
	ends     *recorder // end-to-end
	cursors  []queueCursor
	template protocol.Command
	topicAt  int
	queueAt  int
	offsetAt int
	opaque   int32
}

// newPuller gives connection i its share of the queues; with more connections than queues, queues are read by several.
func newPuller(w *wire, cfg *ConsumeConfig, r *run, i, brokers int) *puller {
	p := &puller{wire: w, cfg: cfg, load: r, recorder: newRecorder(), ends: newRecorder()}
	start := int64(0)
	if cfg.FromEnd {
		start = -1
	}
	var all []queueCursor
	for t := range cfg.Topics {
		for q := range cfg.Queues {
			all = append(all, queueCursor{topic: cfg.topic(t), queue: q, offset: start})
		}
	}
	perBroker := max(cfg.Connections/brokers, 1)
	mine := i / brokers
	for k := range all {
		if k%perBroker == mine%perBroker {
			p.cursors = append(p.cursors, all[k])
		}
	}
	if len(p.cursors) == 0 {
		p.cursors = append(p.cursors, all[mine%len(all)])
	}
	flag := int32(sysFlagSubscription)
	if cfg.Hold > 0 && len(p.cursors) == 1 { // a held pull on one queue would keep the others waiting
		flag |= sysFlagSuspend
	}
	p.template = *protocol.NewRequest(&protocol.PullMessageRequest{
		ConsumerGroup: cfg.Group, Topic: cfg.topic(0), MaxMsgNums: int32(cfg.MaxMessages), SysFlag: flag,
		SuspendTimeoutMillis: cfg.Hold.Milliseconds(), Subscription: cfg.Expression, ExpressionType: "TAG",
	}, nil)
	p.template.Serialization = cfg.Serialization
	p.topicAt, p.queueAt = fieldIndex(&p.template, "topic"), fieldIndex(&p.template, "queueId")
	p.offsetAt = fieldIndex(&p.template, "queueOffset")
	return p
}

// idlePause spares a broker the questions of a connection whose queues are all empty.
const idlePause = 2 * time.Millisecond

func (p *puller) run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { p.conn.Close() }) // ends a held pull
	defer stop()
	defer p.conn.Close()
	var out []byte
	for empty := 0; ctx.Err() == nil && !p.load.limitReached(); {
		at := &p.cursors[int(p.opaque)%len(p.cursors)]
		found, err := p.pull(at, &out)
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			if errors.Is(err, io.EOF) {
				err = errors.New("the broker closed the connection")
			}
			return fmt.Errorf("pull %s/%d: %w", at.topic, at.queue, err)
		}
		if empty++; found {
			empty = 0
		}
		if empty >= len(p.cursors) && p.cfg.Hold > 0 && len(p.cursors) > 1 {
			empty = 0
			time.Sleep(idlePause)
		}
	}
	return nil
}

// pull asks once and moves the cursor.
func (p *puller) pull(at *queueCursor, out *[]byte) (found bool, err error) {
	p.opaque++
	cmd := &p.template
	cmd.Opaque = p.opaque
	offset := at.offset
	if offset < 0 {
		offset = 1 << 60 // the answer names the nearest offset there is: the end
	}
	setField(cmd, p.topicAt, []byte(at.topic))
	setField(cmd, p.queueAt, strconv.AppendInt(nil, int64(at.queue), 10))
	setField(cmd, p.offsetAt, strconv.AppendInt(nil, offset, 10))
	*out = protocol.AppendFrame((*out)[:0], cmd)
	began := time.Now()
	if _, err := p.conn.Write(*out); err != nil {
		return false, err
	}
	var answer *protocol.Command
	for answer == nil || !answer.Response() || answer.Opaque != p.opaque {
		if answer, err = p.read(); err != nil {
			return false, err
		}
	}
	took := time.Since(began)
	next, _ := strconv.ParseInt(answer.Ext.Get("nextBeginOffset"), 10, 64) // absent from a refusal: counted below
	switch protocol.ResponseCode(answer.Code) {
	case protocol.Success:
		if p.load.counters.measuring.Load() {
			p.recorder.add(took)
		}
		p.countRecords(answer.Body)
		at.offset = next
		return true, nil
	case protocol.PullNotFound, protocol.PullRetryImmediately, protocol.PullOffsetMoved:
		at.offset = next
		if p.cfg.Repeat {
			at.offset = 0
		}
	default:
		p.load.counters.fail(fmt.Sprintf("code %d %s", answer.Code, answer.Remark))
	}
	return false, nil
}

// countRecords walks the records of a pull without decoding more than it needs.
func (p *puller) countRecords(body []byte) {
	c := &p.load.counters
	measuring := c.measuring.Load()
	var n, bytes int64
	now := time.Now()
	for len(body) >= 8 {
		size, _ := message.RecordHead(body)
		if size <= 0 || int(size) > len(body) {
			c.fail("a pull's body is not a row of records")
			return
		}
		if n%sampleEvery == 0 && measuring {
			if record, err := message.DecodeRecord(body[:size], false); err == nil {
				if due, ok := stamped(record.Body); ok {
					p.ends.add(now.Sub(due))
				}
			}
		}
		n++
		bytes += int64(size)
		body = body[size:]
	}
	c.all.Add(n)
	if measuring {
		c.messages.Add(n)
		c.requests.Add(1)
		c.bytes.Add(bytes)
	}
}

// sampleEvery is how many messages of one pull share one end-to-end measurement, the first one's.
const sampleEvery = 8
