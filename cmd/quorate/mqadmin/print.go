package mqadmin

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/quorate/quorate/client"
)

// window is a part of one queue.
type window struct {
	queue    client.Queue
	from, to int64 // to is exclusive
}

// windows are the queues of the topic between --beginTimestamp and --endTimestamp.
func (c *call) windows(ctx context.Context, mc *client.Client, pick func(client.Queue) bool) ([]window, error) {
	queues, err := mc.Queues(ctx, c.v.Get("topic", ""))
	if err != nil {
		return nil, err
	}
	var all []window
	for _, q := range queues {
		if !pick(q) {
			continue
		}
		w := window{queue: q}
		if w.from, w.to, err = mc.Bounds(ctx, q); err != nil {
			return nil, err
		}
		for long, into := range map[string]*int64{"beginTimestamp": &w.from, "endTimestamp": &w.to} {
			text := c.v.Get(long, "")
			if text == "" {
				continue
			}
			ms, err := parseTimestamp(text)
			if err != nil {
				return nil, err
			}
			if *into, err = mc.OffsetAt(ctx, q, time.UnixMilli(ms)); err != nil {
				return nil, err
			}
		}
		all = append(all, w)
	}
	return all, nil
}

// read calls fn for each message of a window.
func read(ctx context.Context, mc *client.Client, w window, expression string, fn func(*client.Received)) error {
	for offset := w.from; offset < w.to; {
		r, err := mc.Pull(ctx, client.PullRequest{Group: toolsConsumer, Queue: w.queue, Offset: offset, Expression: expression})
		if err != nil {
			return err
		}
		for _, m := range r.Messages {
			if m.Offset < w.to {
				fn(m)
			}
		}
		if r.Next <= offset {
			return nil
		}
		offset = r.Next
	}
	return nil
}

func (c *call) printBody(m *client.Received, withBody bool) {
	body := "NOT PRINT BODY"
	if withBody {
		body = string(m.Body)
	}
	c.printf("MSGID: %s MessageExt [brokerName=%s, queueId=%d, storeSize=%d, queueOffset=%d, sysFlag=%d, bornTimestamp=%d, bornHost=/%s, storeTimestamp=%d, storeHost=/%s, msgId=%s, commitLogOffset=%d, reconsumeTimes=%d, preparedTransactionOffset=%d, toString()=Message{topic='%s', flag=%d, properties=%s}] BODY: %s\n",
		m.UniqueKey, m.Queue.BrokerName, m.Queue.QueueID, len(m.Body), m.Offset, int32(m.SysFlag), m.Born.UnixMilli(), m.BornHost,
		m.Stored.UnixMilli(), m.StoreHost, m.OffsetID, m.PhysicalOffset, m.ReconsumeTimes, m.PreparedOffset, m.Topic, m.Flag,
		mapText(m.Properties), body)
}

func printMsg(ctx context.Context, c *call) error {
	withBody, err := c.flag("printBody", true)
	if err != nil {
		return err
	}
	return c.withClient(func(mc *client.Client) error {
		windows, err := c.windows(ctx, mc, func(client.Queue) bool { return true })
		if err != nil {
			return err
		}
		for _, w := range windows {
			c.printf("minOffset=%d, maxOffset=%d, %s\n", w.from, w.to, queueText(w.queue))
			if err := read(ctx, mc, w, c.v.Get("subExpression", ""), func(m *client.Received) { c.printBody(m, withBody) }); err != nil {
				return err
			}
			c.printf("--------------------------------------------------------\n")
		}
		return nil
	})
}

// queueText is MessageQueue.toString.
func queueText(q client.Queue) string {
	return fmt.Sprintf("MessageQueue [topic=%s, brokerName=%s, queueId=%d]", q.Topic, q.BrokerName, q.QueueID)
}

func printMsgByQueue(ctx context.Context, c *call) error {
	queue, errQueue := number[int32](c, "queueId", 0)
	show, errShow := c.flag("print", false)
	withBody, errBody := c.flag("printBody", false)
	byTag, errTag := c.flag("calculate", false)
	if err := errors.Join(errQueue, errShow, errBody, errTag); err != nil {
		return err
	}
	counts := map[string]int{}
	return c.withClient(func(mc *client.Client) error {
		windows, err := c.windows(ctx, mc, func(q client.Queue) bool { return q.BrokerName == c.v.Get("brokerName", "") && q.QueueID == queue })
		if err != nil {
			return err
		}
		for _, w := range windows {
			err := read(ctx, mc, w, c.v.Get("subExpression", ""), func(m *client.Received) {
				counts[m.Tags]++
				if show {
					c.printBody(m, withBody)
				}
			})
			if err != nil {
				return err
			}
		}
		if byTag {
			for _, tag := range sortedKeys(counts) {
				c.printf("Tag: %-30s Count: %d\n", tag, counts[tag])
			}
		}
		return nil
	})
}

func consumeMessage(ctx context.Context, c *call) error {
	count, errCount := number[int64](c, "MessageNumber", 128)
	queue, errQueue := number[int32](c, "queueId", -1)
	offset, errOffset := number[int64](c, "offset", -1)
	if err := errors.Join(errCount, errQueue, errOffset); err != nil {
		return err
	}
	broker := c.v.Get("brokerName", "")
	return c.withClient(func(mc *client.Client) error {
		windows, err := c.windows(ctx, mc, func(q client.Queue) bool {
			return (broker == "" || q.BrokerName == broker) && (queue < 0 || q.QueueID == queue)
		})
		if err != nil {
			return err
		}
		for _, w := range windows {
			if offset >= 0 {
				w.from = max(w.from, offset)
			}
			if count < math.MaxInt64-w.from {
				w.to = min(w.to, w.from+count)
			}
			read, err := c.consumeWindow(ctx, mc, w)
			if err != nil {
				return err
			}
			if count -= read; count <= 0 {
				break
			}
		}
		return nil
	})
}

func (c *call) consumeWindow(ctx context.Context, mc *client.Client, w window) (int64, error) {
	var n int64
	err := read(ctx, mc, w, "", func(m *client.Received) {
		n++
		c.printf("Consume ok\n")
		c.printBody(m, true)
	})
	return n, err
}
