package load

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// PullConfig is a read load: each connection pulls one queue from its start to its end, over and over.
type PullConfig struct {
	Topic       string
	Queues      int
	Connections int
	Max         int // messages per pull
	Group       string
	Wrap        bool // start again at the end; otherwise a connection stops there
}

// Pull runs the load; Acked and Rate count messages, Latency is of pulls.
func Pull(ctx context.Context, addr string, cfg PullConfig, d time.Duration) (Result, error) {
	results := make([]Result, cfg.Connections)
	errs := make([]error, cfg.Connections)
	stop := time.Now().Add(d)
	began := time.Now()
	var group sync.WaitGroup
	for i := range cfg.Connections {
		group.Go(func() { results[i], errs[i] = pullQueue(ctx, addr, cfg, i, stop) })
	}
	group.Wait()
	out := Result{Duration: time.Since(began), Latency: hdrhistogram.New(1000, int64(time.Minute), 3)}
	for _, r := range results {
		out.Acked += r.Acked
		out.Refused += r.Refused
		out.Refusal += r.Refusal
		if r.Latency != nil {
			out.Latency.Merge(r.Latency)
		}
	}
	out.Rate = float64(out.Acked) / out.Duration.Seconds()
	return out, errors.Join(errs...)
}

func pullQueue(ctx context.Context, addr string, cfg PullConfig, i int, stop time.Time) (Result, error) {
	out := Result{Latency: hdrhistogram.New(1000, int64(time.Minute), 3)}
	c, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return out, err
	}
	defer c.Close()
	r := bufio.NewReaderSize(c, 256<<10)
	var in, frame []byte
	for offset, opaque := 0, 1; time.Now().Before(stop); opaque++ {
		frame = AppendPull(frame[:0], cfg, i%cfg.Queues, offset, opaque, 0)
		began := time.Now()
		if _, err := c.Write(frame); err != nil {
			return out, err
		}
		head, body, err := readFrame(r, &in)
		if err != nil {
			return out, err
		}
		code, _ := number(head, `"code":`)
		next, ok := number(head, `"nextBeginOffset":`)
		switch {
		case !ok:
			return out, fmt.Errorf("pull refused: %s", head)
		case code == 0 && next > offset && len(body) > 0:
			_ = out.Latency.RecordValue(min(max(int64(time.Since(began)), 1000), int64(time.Minute))) // within the bounds
			out.Acked += int64(next - offset)
			offset = next
		case cfg.Wrap:
			offset = 0
		default:
			return out, nil
		}
	}
	return out, nil
}

// AppendPull writes PULL_MESSAGE (11); hold is how long the broker may wait when there is nothing.
func AppendPull(dst []byte, cfg PullConfig, queue, offset, opaque int, hold time.Duration) []byte {
	flag := 4 // with subscription
	if hold > 0 {
		flag |= 2 // may be held
	}
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	dst = fmt.Appendf(dst, `{"code":11,"extFields":{"consumerGroup":"%s","topic":"%s","queueId":"%d","queueOffset":"%d","maxMsgNums":"%d","sysFlag":"%d","commitOffset":"0","suspendTimeoutMillis":"%d","subscription":"*","subVersion":"1","expressionType":"TAG"},"flag":0,"language":"JAVA","opaque":%d,"serializeTypeCurrentRPC":"JSON","version":399}`,
		cfg.Group, cfg.Topic, queue, offset, cfg.Max, flag, hold.Milliseconds(), opaque)
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
	binary.BigEndian.PutUint32(dst[start+4:], uint32(len(dst)-start-8))
	return dst
}
