package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/admin"
	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/message"
)

// Groups of the tools, as RocketMQ's tools name theirs.
const (
	toolsProducer = "CLIENT_INNER_PRODUCER"
	toolsConsumer = "TOOLS_CONSUMER"
)

func newMessageCommand() *cobra.Command {
	cmd := noun("msg", "Messages: send, tail, get, query", newMessageSend(), newMessageTail(), newMessageGet(), newMessageQuery())
	addTargetFlag(cmd)
	return cmd
}

func newMessageSend() *cobra.Command {
	var m client.Message
	var properties []string
	var queue int32
	var broker string
	var count int
	cmd := &cobra.Command{
		Use: "send TOPIC BODY|-", Short: "Send a message; - reads the body from standard input", Args: args(2, "TOPIC BODY|-"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m.Topic, m.Body = args[0], []byte(args[1])
			if args[1] == "-" {
				body, err := io.ReadAll(cmd.InOrStdin())
				if err != nil {
					return err
				}
				m.Body = body
			}
			var err error
			if m.Properties, err = parsePairs(properties); err != nil {
				return err
			}
			return withClient(cmd, client.Config{}, func(ctx context.Context, c *client.Client) error {
				p := c.NewProducer(client.ProducerConfig{Group: toolsProducer, Retries: 2})
				for range count {
					var r client.SendResult
					var err error
					if broker != "" {
						r, err = p.SendTo(ctx, client.Queue{Topic: m.Topic, BrokerName: broker, QueueID: queue}, &m)
					} else {
						r, err = p.Send(ctx, &m)
					}
					if err != nil {
						return err
					}
					if err := printSendResult(cmd, r); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	f := cmd.Flags()
	f.StringVarP(&m.Tags, "tag", "t", "", "tag")
	f.StringSliceVarP(&m.Keys, "key", "k", nil, "keys")
	f.IntVar(&m.DelayLevel, "delay-level", 0, "deliver later: level 1 (1 s) to 18 (2 h)")
	f.StringArrayVarP(&properties, "property", "p", nil, "key=value, may be repeated")
	f.StringVarP(&broker, "broker", "b", "", "broker name of --queue")
	f.Int32VarP(&queue, "queue", "q", 0, "queue at --broker")
	f.IntVarP(&count, "count", "c", 1, "how often")
	return cmd
}

func parsePairs(words []string) (map[string]string, error) {
	pairs := map[string]string{}
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			return nil, usagef("property %q is not key=value", word)
		}
		pairs[key] = value
	}
	return pairs, nil
}

func printSendResult(cmd *cobra.Command, r client.SendResult) error {
	return say(cmd, "%s  id %s  %s queue %d offset %d  durability %s", r.Status, r.ID, r.Queue.BrokerName, r.Queue.QueueID, r.Offset, orDash(r.Durability))
}

func newMessageTail() *cobra.Command {
	var from, tags string
	var count int64
	var follow bool
	cmd := &cobra.Command{
		Use: "tail TOPIC", Short: "Print messages of a topic as they come, in no group", Args: args(1, "TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withClient(cmd, client.Config{}, func(ctx context.Context, c *client.Client) error {
				return tail(ctx, cmd, c, tailOptions{topic: args[0], from: from, tags: tags, count: count, follow: follow})
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&from, "from", "end", "start, end, now, -1h, a date and time, or milliseconds")
	f.StringVarP(&tags, "tags", "t", "", "only these tags: a || b")
	f.Int64VarP(&count, "count", "c", math.MaxInt64, "stop after so many messages")
	f.BoolVarP(&follow, "follow", "f", true, "wait for more (--follow=false stops at the end)")
	return cmd
}

type tailOptions struct {
	topic, from, tags string
	count             int64
	follow            bool
}

// tail reads all queues of a topic side by side and prints what they hold.
func tail(ctx context.Context, cmd *cobra.Command, c *client.Client, o tailOptions) error {
	queues, err := c.Queues(ctx, o.topic)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := make(chan *client.Received, 64)
	failures := make(chan error, len(queues))
	var wg sync.WaitGroup
	for _, q := range queues {
		wg.Go(func() { failures <- tailQueue(ctx, c, q, o, out) })
	}
	go func() { wg.Wait(); close(out) }()
	left := o.count
	for m := range out {
		if left > 0 {
			if err := printReceived(cmd, m); err != nil {
				return err
			}
		}
		if left--; left == 0 {
			cancel()
		}
	}
	var errs []error
	for range queues {
		if err := <-failures; err != nil && !errors.Is(err, context.Canceled) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func tailQueue(ctx context.Context, c *client.Client, q client.Queue, o tailOptions, out chan<- *client.Received) error {
	first, end, err := c.Bounds(ctx, q)
	if err != nil {
		return err
	}
	offset := end
	switch o.from {
	case "end":
	case "start":
		offset = first
	default:
		at, err := parseTime(o.from)
		if err != nil {
			return err
		}
		if offset, err = c.OffsetAt(ctx, q, at); err != nil {
			return err
		}
	}
	hold := 5 * time.Second
	if !o.follow {
		hold = 0
	}
	for o.follow || offset < end {
		r, err := c.Pull(ctx, client.PullRequest{Group: toolsConsumer, Queue: q, Offset: offset, Expression: o.tags, Hold: hold})
		if err != nil {
			return err
		}
		for _, m := range r.Messages {
			select {
			case out <- m:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if r.Next == offset && len(r.Messages) == 0 && !o.follow {
			return nil
		}
		offset = r.Next
	}
	return nil
}

func printReceived(cmd *cobra.Command, m *client.Received) error {
	var more string
	if m.Tags != "" {
		more += " tag=" + m.Tags
	}
	if len(m.Keys) > 0 {
		more += " keys=" + strings.Join(m.Keys, ",")
	}
	return say(cmd, "%s  %s:%d@%d%s  %s", m.Stored.Format("15:04:05.000"), m.Queue.BrokerName, m.Queue.QueueID, m.Offset, more, bodyText(m.Body))
}

// bodyText shows a body as text when it is text.
func bodyText(b []byte) string {
	const shown = 1024
	cut := ""
	if len(b) > shown {
		cut = fmt.Sprintf("… (%d bytes)", len(b))
		b = b[:shown]
		for len(b) > 0 && !utf8.Valid(b) && len(b) > shown-utf8.UTFMax {
			b = b[:len(b)-1]
		}
	}
	if utf8.Valid(b) {
		return string(b) + cut
	}
	return strconv.QuoteToASCII(string(b)) + cut
}

func newMessageGet() *cobra.Command {
	var topic string
	cmd := &cobra.Command{
		Use: "get ID", Short: "Show one message by offset id, or by unique key with --topic", Args: args(1, "ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withAdmin(cmd, func(ctx context.Context, a *admin.Client) error {
				found, err := findMessages(ctx, a, topic, args[0])
				if err != nil {
					return err
				}
				for _, m := range found {
					if err := printMessage(cmd, m); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVarP(&topic, "topic", "t", "", "topic; with it an id is looked up as a unique key first")
	return cmd
}

// findMessages takes either id of a message.
func findMessages(ctx context.Context, a *admin.Client, topic, id string) ([]*client.Received, error) {
	if topic != "" {
		found, err := queryMessages(ctx, a, topic, id, true, admin.QueryLimits{Max: 32, End: math.MaxInt64})
		if err != nil || len(found) > 0 {
			return found, err
		}
	}
	if _, _, err := message.ParseOffsetID(id); err != nil {
		if topic == "" {
			return nil, usagef("%q is not an offset id; a unique key needs --topic", id)
		}
		return nil, fmt.Errorf("no message of %s has the unique key %s", topic, id)
	}
	records, err := a.ViewMessage(ctx, topic, id)
	if err != nil {
		return nil, err
	}
	return client.DecodeRecords("", records)
}

// queryMessages drops what only shares the hash of the key.
func queryMessages(ctx context.Context, a *admin.Client, topic, key string, unique bool, limits admin.QueryLimits) ([]*client.Received, error) {
	byBroker, err := a.QueryMessages(ctx, topic, key, unique, limits)
	if err != nil {
		return nil, err
	}
	var all []*client.Received
	for broker, records := range byBroker {
		messages, err := client.DecodeRecords(broker, records)
		if err != nil {
			return nil, err
		}
		for _, m := range messages {
			if m.Topic == topic && (unique && m.UniqueKey == key || !unique && slices.Contains(m.Keys, key)) {
				all = append(all, m)
			}
		}
	}
	slices.SortFunc(all, func(a, b *client.Received) int { return a.Stored.Compare(b.Stored) })
	return all, nil
}

func printMessage(cmd *cobra.Command, m *client.Received) error {
	format, err := cmd.Flags().GetString("output")
	if err != nil {
		return err
	}
	if format == "json" {
		return printJSON(cmd.OutOrStdout(), m)
	}
	t := newTable("field", "value")
	t.add("offset id", m.OffsetID)
	t.add("unique key", orDash(m.UniqueKey))
	t.add("topic", m.Topic)
	t.add("queue", fmt.Sprintf("%d offset %d", m.Queue.QueueID, m.Offset))
	t.add("log offset", m.PhysicalOffset)
	t.add("born", millis(m.Born.UnixMilli())+" at "+m.BornHost)
	t.add("stored", millis(m.Stored.UnixMilli())+" at "+m.StoreHost)
	t.add("tag", orDash(m.Tags))
	t.add("keys", orDash(strings.Join(m.Keys, " ")))
	t.add("deliveries failed", m.ReconsumeTimes)
	t.add("properties", orDash(joinPairs(m.Properties)))
	t.add("body", bodyText(m.Body))
	return t.print(cmd)
}

func newMessageQuery() *cobra.Command {
	var key, begin, end string
	var limit int32
	cmd := &cobra.Command{
		Use: "query TOPIC --key KEY", Short: "Find messages by key", Args: args(1, "TOPIC --key KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if key == "" {
				return usagef("usage: quorate msg query TOPIC --key KEY")
			}
			limits := admin.QueryLimits{Max: limit, End: math.MaxInt64}
			if begin != "" {
				at, err := parseTime(begin)
				if err != nil {
					return err
				}
				limits.Begin = at.UnixMilli()
			}
			if end != "" {
				at, err := parseTime(end)
				if err != nil {
					return err
				}
				limits.End = at.UnixMilli()
			}
			return withAdmin(cmd, func(ctx context.Context, a *admin.Client) error {
				found, err := queryMessages(ctx, a, args[0], key, false, limits)
				if err != nil {
					return err
				}
				t := newTable("stored", "broker", "queue", "offset", "offset id", "unique key")
				for _, m := range found {
					t.add(millis(m.Stored.UnixMilli()), m.Queue.BrokerName, m.Queue.QueueID, m.Offset, m.OffsetID, orDash(m.UniqueKey))
				}
				return t.print(cmd)
			})
		},
	}
	f := cmd.Flags()
	f.StringVarP(&key, "key", "k", "", "the key")
	f.StringVar(&begin, "begin", "", "stored at or after")
	f.StringVar(&end, "end", "", "stored at or before")
	f.Int32VarP(&limit, "count", "c", 64, "at most so many")
	return cmd
}
