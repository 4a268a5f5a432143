// Package chaos breaks the real binary while clients send, and settles afterwards what was promised against what is there.
// A run whose fault did not bite, or that acknowledged too little, fails: it proved nothing.
package chaos

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/protocol"
)

// entry is one send, from its call to what the client was told. A send without a clear answer may be in the log or not.
type entry struct {
	id           string // also the body
	queue        client.Queue
	offset       int64
	called       time.Time
	answered     time.Time
	acknowledged bool
	refused      bool // the answer says that nothing was stored
	durability   string
}

// ledger is what producers were told. Safe for concurrent use.
type ledger struct {
	mu      sync.Mutex
	entries []entry
	acked   atomic.Int64
}

func (l *ledger) add(e entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, e)
	if e.acknowledged {
		l.acked.Add(1)
	}
}

// produce sends from senders goroutines until ctx ends, never twice the same message and never again what failed.
func (l *ledger) produce(ctx context.Context, c *client.Client, topic string, senders int) {
	p := c.NewProducer(client.ProducerConfig{Group: "chaos", TopicQueues: 4})
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				e := entry{id: fmt.Sprintf("%s-%d-%d", topic, s, n), called: time.Now()}
				attempt, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
				r, err := p.Send(attempt, &client.Message{Topic: topic, Body: []byte(e.id)})
				cancel()
				e.answered = time.Now()
				if err == nil && r.Status == client.SendOK {
					e.acknowledged, e.queue, e.offset, e.durability = true, r.Queue, r.Offset, r.Durability
				} else if e.refused = refusedBeforeAppend(err); ctx.Err() == nil {
					time.Sleep(5 * time.Millisecond) // a broker that is down is not asked in a busy loop
				}
				l.add(e)
			}
		})
	}
	wg.Wait()
}

// refusedBeforeAppend tells by the stage that a refusal names whether the message can be in the log at all. "authority" is
// no proof: a broker that loses it while a send waits says so too, and the message may stay.
func refusedBeforeAppend(err error) bool {
	var refusal *protocol.Error
	return errors.As(err, &refusal) && strings.HasPrefix(refusal.Remark, "admission")
}

// found is one message as it was read back.
type found struct {
	queue  client.Queue
	offset int64
}

// settle reads every queue of the topic from its first offset to its end and compares: nothing acknowledged is missing or
// elsewhere, nothing stands twice, offsets are dense, and per queue what was acknowledged before another send was called
// stands before it (K1 of RELIABILITY §4.3).
func (l *ledger) settle(ctx context.Context, c *client.Client, topic string) error {
	there := map[string]found{}
	queues, err := c.Queues(ctx, topic)
	if err != nil {
		return err
	}
	for _, q := range queues {
		if err := l.covered(ctx, c, q); err != nil {
			return err
		}
		if err := drain(ctx, c, q, there); err != nil {
			return err
		}
	}
	return l.check(there)
}

// coverWithin is how long a queue's index may stay behind what was acknowledged: its files, too, wait for room on a disk
// that was full.
const coverWithin = 15 * time.Second

// covered waits until a queue shows its last acknowledged message. When it never does, check says what is lost.
func (l *ledger) covered(ctx context.Context, c *client.Client, q client.Queue) error {
	last := int64(-1)
	l.mu.Lock()
	for _, e := range l.entries {
		if e.acknowledged && e.queue.QueueID == q.QueueID {
			last = max(last, e.offset)
		}
	}
	l.mu.Unlock()
	for deadline := time.Now().Add(coverWithin); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		_, end, err := c.Bounds(ctx, q)
		if err != nil {
			return err
		}
		if end > last {
			return nil
		}
	}
	return nil
}

// check compares what was promised with what is there. Nothing stands there that was refused, or that nobody sent, either.
func (l *ledger) check(there map[string]found) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	sent := map[string]bool{}
	for _, e := range l.entries {
		sent[e.id] = true
		if f, ok := there[e.id]; ok && e.refused {
			return fmt.Errorf("kept: %s was refused and stands at queue %d offset %d", e.id, f.queue.QueueID, f.offset)
		}
	}
	for id, f := range there {
		if !sent[id] {
			return fmt.Errorf("phantom: %q at queue %d offset %d was never sent", id, f.queue.QueueID, f.offset)
		}
	}
	latest := map[client.Queue]entry{} // of the acknowledged ones so far: the highest offset per queue
	for _, e := range l.entries {
		if !e.acknowledged {
			continue
		}
		f, ok := there[e.id]
		switch {
		case !ok:
			return fmt.Errorf("lost: %s was acknowledged (%s) at queue %d offset %d", e.id, e.durability, e.queue.QueueID, e.offset)
		case f.queue.QueueID != e.queue.QueueID || f.offset != e.offset:
			return fmt.Errorf("moved: %s was acknowledged at queue %d offset %d and stands at %d, %d", e.id, e.queue.QueueID, e.offset, f.queue.QueueID, f.offset)
		}
		if before, ok := latest[e.queue]; ok && before.answered.Before(e.called) && before.offset >= e.offset {
			return fmt.Errorf("out of order: %s at %d was acknowledged before %s was sent, which stands at %d", before.id, before.offset, e.id, e.offset)
		}
		if e.offset > latest[e.queue].offset || latest[e.queue].id == "" {
			latest[e.queue] = e
		}
	}
	return nil
}

func drain(ctx context.Context, c *client.Client, q client.Queue, there map[string]found) error {
	first, end, err := c.Bounds(ctx, q)
	if err != nil {
		return err
	}
	for offset := first; offset < end; {
		r, err := c.Pull(ctx, client.PullRequest{Group: "chaos-reader", Queue: q, Offset: offset})
		if err != nil {
			return fmt.Errorf("read queue %d at %d: %w", q.QueueID, offset, err)
		}
		for _, m := range r.Messages {
			if m.Offset != offset {
				return fmt.Errorf("hole: queue %d has %d where %d is due", q.QueueID, m.Offset, offset)
			}
			offset++
			if f, twice := there[string(m.Body)]; twice {
				return fmt.Errorf("twice: %s stands at queue %d offset %d and at queue %d offset %d", m.Body, f.queue.QueueID, f.offset, q.QueueID, m.Offset)
			}
			there[string(m.Body)] = found{q, m.Offset}
		}
		if len(r.Messages) == 0 {
			return fmt.Errorf("queue %d ends at %d and gives nothing at %d", q.QueueID, end, offset)
		}
	}
	return nil
}

func newClient(nameServer string) (*client.Client, error) {
	return client.New(client.Config{NameServers: []string{nameServer}, RouteInterval: time.Second}, slog.New(slog.DiscardHandler))
}
