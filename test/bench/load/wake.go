package load

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"slices"
	"time"
)

// Wake measures the way of a message to a consumer whose pull is held: from before the send to after the pull's answer.
// holds−1 more pulls are held meanwhile, on queues of the same topic that get nothing. The result is sorted.
func Wake(ctx context.Context, addr, topic string, holds, rounds int) ([]time.Duration, error) {
	const queues = 8
	send := NewSend(Send{Topic: topic, Queues: queues, Body: 256, Batch: 1})
	sender, err := dialOne(ctx, addr)
	if err != nil {
		return nil, err
	}
	defer sender.Close()
	answers := bufio.NewReader(sender)
	for turn := range queues { // makes the topic and all its queues
		if _, err := sender.Write(send.Append(nil, 0, turn)); err != nil {
			return nil, err
		}
		if _, refusal, err := send.Read(answers); err != nil || refusal != "" {
			return nil, fmt.Errorf("send: %s %w", refusal, err)
		}
	}
	receiver, err := dialOne(ctx, addr)
	if err != nil {
		return nil, err
	}
	defer receiver.Close()
	others, err := dialOne(ctx, addr)
	if err != nil {
		return nil, err
	}
	defer others.Close()
	const holdTime = 30 * time.Second
	cfg := PullConfig{Topic: topic, Max: 32, Group: "wake"}
	ends, err := queueEnds(receiver, cfg, queues)
	if err != nil {
		return nil, err
	}
	for i := range holds - 1 {
		q := 1 + i%(queues-1)
		if _, err := others.Write(AppendPull(nil, cfg, q, ends[q], i, holdTime)); err != nil {
			return nil, err
		}
	}
	time.Sleep(300 * time.Millisecond) // they are held
	got := bufio.NewReader(receiver)
	var in []byte
	var took []time.Duration
	for offset, round := ends[0], 0; round < rounds; round++ {
		if _, err := receiver.Write(AppendPull(nil, cfg, 0, offset, round, holdTime)); err != nil {
			return nil, err
		}
		time.Sleep(2 * time.Millisecond) // it is held
		began := time.Now()
		if _, err := sender.Write(send.Append(nil, 0, queues*round)); err != nil {
			return nil, err
		}
		head, _, err := readFrame(got, &in)
		if err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
		next, ok := number(head, `"nextBeginOffset":`)
		if !ok || next != offset+1 {
			return nil, fmt.Errorf("pull at %d answered: %s", offset, head)
		}
		offset = next
		if _, refusal, err := send.Read(answers); err != nil || refusal != "" {
			return nil, fmt.Errorf("send: %s %w", refusal, err)
		}
	}
	slices.Sort(took)
	return took, nil
}

func dialOne(ctx context.Context, addr string) (net.Conn, error) {
	return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", addr)
}

// queueEnds asks with pulls far behind the end, whose answers name it.
func queueEnds(c net.Conn, cfg PullConfig, queues int) ([]int, error) {
	r := bufio.NewReader(c)
	var in []byte
	ends := make([]int, queues)
	for q := range queues {
		if _, err := c.Write(AppendPull(nil, cfg, q, 1<<40, q, 0)); err != nil {
			return nil, err
		}
		head, _, err := readFrame(r, &in)
		if err != nil {
			return nil, err
		}
		end, ok := number(head, `"maxOffset":`)
		if !ok {
			return nil, fmt.Errorf("pull answered: %s", head)
		}
		ends[q] = end
	}
	return ends, nil
}

// Tail reads what comes to a topic from now on, as one consumer group over one connection per queue, until ctx ends; it
// returns how many messages that were.
func Tail(ctx context.Context, addr, topic string, queues int, group string) int64 {
	counts := make(chan int64, queues)
	for q := range queues {
		go func() {
			n, _ := tailQueue(ctx, addr, PullConfig{Topic: topic, Max: 32, Group: group}, q) // it ends with an error when ctx does
			counts <- n
		}()
	}
	var sum int64
	for range queues {
		sum += <-counts
	}
	return sum
}

func tailQueue(ctx context.Context, addr string, cfg PullConfig, queue int) (n int64, err error) {
	c, err := dialOne(ctx, addr)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	ends, err := queueEnds(c, cfg, queue+1)
	if err != nil {
		return 0, err
	}
	r := bufio.NewReaderSize(c, 256<<10)
	var in []byte
	for offset, opaque := ends[queue], 0; ; opaque++ {
		if _, err := c.Write(AppendPull(nil, cfg, queue, offset, opaque, 10*time.Second)); err != nil {
			return n, err
		}
		head, body, err := readFrame(r, &in)
		if err != nil {
			return n, err
		}
		next, ok := number(head, `"nextBeginOffset":`)
		if !ok {
			return n, fmt.Errorf("pull answered: %s", head)
		}
		if len(body) > 0 {
			n += int64(next - offset)
		}
		offset = next
	}
}

// spread sends to many topics in turn.
type spread struct{ sends []*Send }

// NewSpread is Send over topics prefix+0, prefix+1, …
func NewSpread(prefix string, topics, queues, body int) Codec {
	s := &spread{}
	for i := range topics {
		s.sends = append(s.sends, NewSend(Send{Topic: fmt.Sprint(prefix, i), Queues: queues, Body: body, Batch: 1}))
	}
	return s
}

func (s *spread) Append(dst []byte, slot, turn int) []byte {
	return s.sends[turn%len(s.sends)].Append(dst, slot, turn/len(s.sends))
}

func (s *spread) Read(r *bufio.Reader) (int, string, error) { return s.sends[0].Read(r) }
