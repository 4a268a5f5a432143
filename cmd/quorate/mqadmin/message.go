package mqadmin

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/admin"
	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/internal/javaopt"
	"github.com/quorate/quorate/protocol"
)

// Groups of RocketMQ's tools.
const (
	toolsConsumer = "TOOLS_CONSUMER"
	toolsProducer = "CLIENT_INNER_PRODUCER"
)

func messageCommands() []command {
	topic := required("t", "topic", "topic name")
	span := javaopt.Options{arg("b", "beginTimestamp", "milliseconds or yyyy-MM-dd#HH:mm:ss:SSS"), arg("e", "endTimestamp", "the same")}
	return []command{
		{"queryMsgById", "Show the message of an offset id", javaopt.Options{
			topic, required("i", "msgId", "offset ids, comma between them"), arg("g", "consumerGroup", "consumer group"),
			arg("d", "clientId", "consumer that shall consume it"), arg("s", "sendMessage", "true sends it again"), arg("u", "unitName", "ignored"),
			arg("f", "bodyFormat", "print the body; UTF-8"), arg("c", "cluster", "cluster"),
		}, queryMsgByID},
		{"queryMsgByKey", "Find messages by key", append(javaopt.Options{topic, required("k", "msgKey", "key"), arg("m", "maxNum", "at most so many"), arg("c", "cluster", "cluster")}, span...), queryMsgByKey},
		{"queryMsgByUniqueKey", "Find messages by unique key", javaopt.Options{
			topic, required("i", "msgId", "unique key"), arg("g", "consumerGroup", "consumer group"),
			arg("d", "clientId", "consumer that shall consume it"),
			{Short: "a", Long: "showAll", Text: "all of them"},
			arg("c", "cluster", "cluster"),
		}, queryMsgByUniqueKey},
		{"queryMsgByOffset", "Show the message of a queue offset", javaopt.Options{topic, required("b", "brokerName", "broker name"), required("i", "queueId", "queue id"), required("o", "offset", "offset"), arg("f", "bodyFormat", "print the body; UTF-8")}, queryMsgByOffset},
		{"printMsg", "Print the messages of a topic", append(javaopt.Options{topic, arg("c", "charsetName", "ignored: UTF-8"), arg("s", "subExpression", "tags"), arg("d", "printBody", "true or false")}, span...), printMsg},
		{"printMsgByQueue", "Print the messages of a queue", append(javaopt.Options{
			topic, required("a", "brokerName", "broker name"), required("i", "queueId", "queue id"), arg("c", "charsetName", "ignored: UTF-8"),
			arg("s", "subExpression", "tags"), arg("p", "print", "true or false"), arg("d", "printBody", "true or false"), arg("f", "calculate", "count by tag: true or false"),
		}, span...), printMsgByQueue},
		{"sendMessage", "Send a message", javaopt.Options{topic, required("p", "body", "body"), arg("k", "key", "keys"), arg("c", "tags", "tag"), arg("b", "broker", "broker name"), arg("i", "qid", "queue id"), arg("m", "msgTraceEnable", "ignored")}, sendMessage},
		{"consumeMessage", "Read messages of a topic", javaopt.Options{
			topic, arg("b", "brokerName", "broker name"), arg("i", "queueId", "queue id"), arg("o", "offset", "offset"), arg("g", "consumerGroup", "consumer group"),
			arg("c", "MessageNumber", "how many"), arg("s", "beginTimestamp", "milliseconds or yyyy-MM-dd#HH:mm:ss:SSS"), arg("e", "endTimestamp", "the same"),
		}, consumeMessage},
		{"checkMsgSendRT", "Measure sends to each queue", javaopt.Options{topic, arg("a", "amount", "sends"), arg("s", "size", "body bytes")}, checkMsgSendRT},
		{"sendMsgStatus", "Send messages to a broker and show the answers", javaopt.Options{required("b", "brokerName", "broker name, whose own topic is sent to"), arg("s", "messageSize", "body bytes"), arg("c", "count", "sends")}, sendMsgStatus},
	}
}

func queryMsgByID(ctx context.Context, c *call) error {
	topic := c.v.Get("topic", "")
	again, err := c.flag("sendMessage", false)
	if err != nil {
		return err
	}
	for id := range strings.SplitSeq(c.v.Get("msgId", ""), ",") {
		id = strings.TrimSpace(id)
		if group, clientID := c.v.Get("consumerGroup", ""), c.v.Get("clientId", ""); group != "" && clientID != "" {
			r, err := c.ConsumeDirectly(ctx, group, clientID, topic, id)
			if err != nil {
				return err
			}
			c.printDirect(r)
			continue
		}
		records, err := c.ViewMessage(ctx, topic, id)
		if err != nil {
			return err
		}
		messages, err := client.DecodeRecords("", records)
		if err != nil {
			return err
		}
		for _, m := range messages {
			if again {
				if err := c.sendAgain(ctx, m); err != nil {
					return err
				}
				continue
			}
			if err := c.printMessage(ctx, m, true); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *call) printDirect(r protocol.ConsumeMessageDirectlyResult) {
	c.printf("ConsumeMessageDirectlyResult [order=%t, autoCommit=%t, consumeResult=%s, remark=%s, spentTimeMills=%d]",
		r.Order, r.AutoCommit, r.ConsumeResult, r.Remark, r.SpentTimeMills)
}

func (c *call) sendAgain(ctx context.Context, m *client.Received) error {
	return c.withClient(func(mc *client.Client) error {
		p := mc.NewProducer(client.ProducerConfig{Group: toolsProducer})
		r, err := p.Send(ctx, &client.Message{Topic: m.Topic, Body: m.Body, Flag: m.Flag, Properties: m.Properties, Tags: m.Tags, Keys: m.Keys})
		if err != nil {
			return err
		}
		c.printf("prepare resend msg. originalMsgId=%s%s %s\n", m.OffsetID, r.Status, r.ID)
		return nil
	})
}

// printMessage shows one message as queryMsgById does.
func (c *call) printMessage(ctx context.Context, m *client.Received, withID bool) error {
	path, err := saveBody(m)
	if err != nil {
		return err
	}
	if withID {
		c.printf("%-20s %s\n", "OffsetID:", m.OffsetID)
	}
	for _, row := range []struct {
		name  string
		value any
	}{
		{"Topic:", m.Topic},
		{"Tags:", "[" + orNull(m.Tags) + "]"},
		{"Keys:", "[" + orNull(strings.Join(m.Keys, " ")) + "]"},
		{"Queue ID:", m.Queue.QueueID},
		{"Queue Offset:", m.Offset},
		{"CommitLog Offset:", m.PhysicalOffset},
		{"Reconsume Times:", m.ReconsumeTimes},
		{"Born Timestamp:", human(m.Born.UnixMilli())},
		{"Store Timestamp:", human(m.Stored.UnixMilli())},
		{"Born Host:", m.BornHost},
		{"Store Host:", m.StoreHost},
		{"System Flag:", int32(m.SysFlag)},
		{"Properties:", mapText(m.Properties)},
		{"Message Body Path:", path},
	} {
		c.printf("%-20s %v\n", row.name, row.value)
	}
	if c.v.Has("bodyFormat") {
		c.printf("%-20s %s\n", "Message Body:", m.Body)
	}
	return c.printTracks(ctx, m)
}

func orNull(s string) string {
	if s == "" {
		return "null"
	}
	return s
}

var fileName = regexp.MustCompile(`[^A-Za-z0-9._-]`)

// saveBody writes the body where mqadmin does, for scripts that read it there.
func saveBody(m *client.Received) (string, error) {
	dir := filepath.Join(os.TempDir(), "rocketmq", "msgbodys")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	name := m.UniqueKey
	if name == "" {
		name = m.OffsetID
	}
	path := filepath.Join(dir, fileName.ReplaceAllString(name, "_"))
	return path, os.WriteFile(path, m.Body, 0o600)
}

// printTracks says of every group of the topic whether it has consumed the message (RocketMQ MessageTrack).
func (c *call) printTracks(ctx context.Context, m *client.Received) error {
	groups, err := c.Consumers(ctx, m.Topic)
	if err != nil && !admin.Is(err, protocol.TopicNotExist) {
		return err
	}
	if len(groups) == 0 {
		c.printf("\n\nWARN: No Consumer")
		return nil
	}
	c.printf("\n\n")
	for _, group := range groups {
		track, reason := c.track(ctx, m, group)
		c.printf("MessageTrack [consumerGroup=%s, trackType=%s, exceptionDesc=%s]\n", group, track, orNull(reason))
	}
	return nil
}

func (c *call) track(ctx context.Context, m *client.Received, group string) (kind, reason string) {
	online, err := c.ConsumerConnections(ctx, "", group)
	switch {
	case admin.Is(err, protocol.ConsumerNotOnline):
		return "NOT_ONLINE", err.Error()
	case err != nil:
		return "UNKNOWN", err.Error()
	case online.ConsumeType == protocol.ConsumeActively:
		return "PULL", ""
	case online.MessageModel == protocol.Broadcasting:
		return "CONSUME_BROADCASTING", ""
	}
	stats, err := c.ConsumeStats(ctx, group, m.Topic)
	if err != nil {
		return "UNKNOWN", err.Error()
	}
	for q, o := range stats.OffsetTable {
		if q.Topic != m.Topic || q.QueueID != m.Queue.QueueID || m.Queue.BrokerName != "" && q.BrokerName != m.Queue.BrokerName {
			continue
		}
		if o.ConsumerOffset <= m.Offset {
			return "NOT_CONSUME_YET", ""
		}
		s := online.SubscriptionTable[m.Topic]
		if len(s.TagsSet) > 0 && !slices.Contains(s.TagsSet, m.Tags) {
			return "CONSUMED_BUT_FILTERED", ""
		}
		return "CONSUMED", ""
	}
	return "UNKNOWN", ""
}

// query finds messages whose key is really the one asked for.
func (c *call) query(ctx context.Context, topic, key string, unique bool, limits admin.QueryLimits) ([]*client.Received, error) {
	byBroker, err := c.QueryMessages(ctx, topic, key, unique, limits)
	if err != nil {
		return nil, err
	}
	var all []*client.Received
	for _, broker := range sortedKeys(byBroker) {
		messages, err := client.DecodeRecords(broker, byBroker[broker])
		if err != nil {
			return nil, err
		}
		for _, m := range messages {
			if unique && m.UniqueKey == key || !unique && slices.Contains(m.Keys, key) {
				all = append(all, m)
			}
		}
	}
	return all, nil
}

func queryMsgByKey(ctx context.Context, c *call) error {
	begin, errBegin := number[int64](c, "beginTimestamp", 0)
	end, errEnd := number[int64](c, "endTimestamp", math.MaxInt64)
	limit, errMax := number[int32](c, "maxNum", 64)
	if err := errors.Join(errBegin, errEnd, errMax); err != nil {
		return err
	}
	found, err := c.query(ctx, c.v.Get("topic", ""), c.v.Get("msgKey", ""), false, admin.QueryLimits{Max: limit, Begin: begin, End: end})
	if err != nil {
		return err
	}
	c.printf("%-50s %4s %40s\n", "#Message ID", "#QID", "#Offset")
	for _, m := range found {
		id := m.UniqueKey
		if id == "" {
			id = m.OffsetID
		}
		c.printf("%-50s %4d %40d\n", id, m.Queue.QueueID, m.Offset)
	}
	return nil
}

func queryMsgByUniqueKey(ctx context.Context, c *call) error {
	topic, key := c.v.Get("topic", ""), c.v.Get("msgId", "")
	found, err := c.query(ctx, topic, key, true, admin.QueryLimits{Max: 32, End: math.MaxInt64})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("no message of %s has the unique key %s", topic, key)
	}
	if group, clientID := c.v.Get("consumerGroup", ""), c.v.Get("clientId", ""); group != "" && clientID != "" {
		r, err := c.ConsumeDirectly(ctx, group, clientID, topic, found[0].OffsetID)
		if err != nil {
			return err
		}
		c.printDirect(r)
		return nil
	}
	if !c.v.Has("showAll") {
		found = found[:1]
	}
	for _, m := range found {
		if err := c.printMessage(ctx, m, false); err != nil {
			return err
		}
	}
	return nil
}

func queryMsgByOffset(ctx context.Context, c *call) error {
	id, errID := number[int32](c, "queueId", 0)
	offset, errOffset := number[int64](c, "offset", 0)
	if err := errors.Join(errID, errOffset); err != nil {
		return err
	}
	q := client.Queue{Topic: c.v.Get("topic", ""), BrokerName: c.v.Get("brokerName", ""), QueueID: id}
	return c.withClient(func(mc *client.Client) error {
		r, err := mc.Pull(ctx, client.PullRequest{Group: toolsConsumer, Queue: q, Offset: offset, Max: 1})
		if err != nil {
			return err
		}
		if len(r.Messages) == 0 || r.Messages[0].Offset != offset {
			return fmt.Errorf("queue %s has no message at offset %d", q, offset)
		}
		return c.printMessage(ctx, r.Messages[0], true)
	})
}

func sendMessage(ctx context.Context, c *call) error {
	m := &client.Message{Topic: c.v.Get("topic", ""), Body: []byte(c.v.Get("body", "")), Tags: c.v.Get("tags", "")}
	if key := c.v.Get("key", ""); key != "" {
		m.Keys = []string{key}
	}
	queue, err := number[int32](c, "qid", -1)
	if err != nil {
		return err
	}
	broker := c.v.Get("broker", "")
	if queue >= 0 && broker == "" {
		return fmt.Errorf("%w: -i needs -b", ErrUsage)
	}
	return c.withClient(func(mc *client.Client) error {
		p := mc.NewProducer(client.ProducerConfig{Group: toolsProducer, Retries: 2})
		var r client.SendResult
		if broker != "" {
			r, err = p.SendTo(ctx, client.Queue{Topic: m.Topic, BrokerName: broker, QueueID: max(queue, 0)}, m)
		} else {
			r, err = p.Send(ctx, m)
		}
		if err != nil {
			return err
		}
		c.printf("%-32s  %-4s  %-20s    %s\n", "#Broker Name", "#QID", "#Send Result", "#MsgId")
		c.printf("%-32s  %-4d  %-20s    %s\n", r.Queue.BrokerName, r.Queue.QueueID, r.Status, r.ID)
		return nil
	})
}

func checkMsgSendRT(ctx context.Context, c *call) error {
	amount, errAmount := number[int32](c, "amount", 100)
	size, errSize := number[int32](c, "size", 128)
	if err := errors.Join(errAmount, errSize); err != nil {
		return err
	}
	topic := c.v.Get("topic", "")
	return c.withClient(func(mc *client.Client) error {
		p := mc.NewProducer(client.ProducerConfig{Group: toolsProducer})
		m := &client.Message{Topic: topic, Body: make([]byte, size)}
		c.printf("%-32s  %-4s  %-20s    %s\n", "#Broker Name", "#QID", "#Send Result", "#RT")
		var total time.Duration
		for range amount {
			began := time.Now()
			r, err := p.Send(ctx, m)
			took := time.Since(began)
			total += took
			c.printf("%-32s  %-4d  %-20t    %d\n", r.Queue.BrokerName, r.Queue.QueueID, err == nil, took.Milliseconds())
		}
		c.printf("Avg RT: %.2f\n", float64(total.Microseconds())/1000/float64(max(amount, 1)))
		return nil
	})
}

func sendMsgStatus(ctx context.Context, c *call) error {
	size, errSize := number[int32](c, "messageSize", 128)
	count, errCount := number[int32](c, "count", 50)
	if err := errors.Join(errSize, errCount); err != nil {
		return err
	}
	return c.withClient(func(mc *client.Client) error {
		p := mc.NewProducer(client.ProducerConfig{Group: toolsProducer})
		m := &client.Message{Topic: c.v.Get("brokerName", ""), Body: make([]byte, size)}
		for range count {
			began := time.Now()
			r, err := p.Send(ctx, m)
			if err != nil {
				return err
			}
			c.printf("rt=%dms, SendResult [sendStatus=%s, msgId=%s, offsetMsgId=%s, messageQueue=MessageQueue [topic=%s, brokerName=%s, queueId=%d], queueOffset=%d]\n",
				time.Since(began).Milliseconds(), r.Status, r.ID, r.OffsetID, r.Queue.Topic, r.Queue.BrokerName, r.Queue.QueueID, r.Offset)
		}
		return nil
	})
}
