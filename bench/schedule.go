package bench

import (
	"bufio"
	"context"
	"encoding/hex"
	"strconv"
	"time"
)

// schedule says when the next request of one connection is due.
type schedule struct {
	every time.Duration // 0: at once
	at    time.Time
}

func newSchedule(cfg *ProduceConfig) *schedule {
	s := &schedule{}
	if cfg.Rate > 0 {
		s.every = time.Duration(float64(time.Second) * float64(cfg.Batch) * float64(cfg.Connections) / cfg.Rate)
		s.at = time.Now()
	}
	return s
}

// next waits until a request is due and returns that time. A request that is late is sent at once and keeps the time it
// was due, so that its latency has the delay in it. What w holds is sent before waiting.
func (s *schedule) next(ctx context.Context, w *bufio.Writer) (time.Time, error) {
	if s.every == 0 {
		return time.Now(), nil
	}
	due := s.at
	s.at = due.Add(s.every)
	if early := time.Until(due); early > 0 {
		if err := w.Flush(); err != nil {
			return due, err
		}
		timer := time.NewTimer(early)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return due, nil
}

// A body of this tool begins with a mark and the time it was due, in nanoseconds, so that a consumer on the same machine
// measures the way from end to end.
const (
	stampMark  = "quorate-bench:"
	stampBytes = len(stampMark) + 16
)

func stamp(body []byte, due time.Time) {
	if len(body) < stampBytes {
		return
	}
	copy(body, stampMark)
	var raw [8]byte
	n := uint64(due.UnixNano())
	for i := range raw {
		raw[i] = byte(n >> (56 - 8*i))
	}
	hex.Encode(body[len(stampMark):], raw[:])
}

// stamped returns when a message was due, if it is one of this tool's.
func stamped(body []byte) (time.Time, bool) {
	if len(body) < stampBytes || string(body[:len(stampMark)]) != stampMark {
		return time.Time{}, false
	}
	n, err := strconv.ParseUint(string(body[len(stampMark):stampBytes]), 16, 64)
	if err != nil {
		return time.Time{}, false
	}
	return time.Unix(0, int64(n)), true
}
