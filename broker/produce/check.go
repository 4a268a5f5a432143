package produce

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/broker/group"
	"github.com/quorate/quorate/broker/topic"
	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/protocol"
)

// errNeedsFiles means that a check has to write a file first, which the reader goroutine must not.
var errNeedsFiles = errors.New("produce: needs files")

// prepare checks a send in RocketMQ's order (AbstractSendMessageProcessor.msgCheck, SendMessageProcessor) and finds topic
// and queue.
func (o *op) prepare() error {
	h, v := o.h, &o.view
	live := h.live.Load()
	if len(o.body) == 0 {
		return protocol.Errorf(protocol.SystemError, "the message has no body")
	}
	if live.AcceptFrom > time.Now().UnixMilli() {
		return protocol.Errorf(protocol.SystemError, "broker accepts sends only from %d on (startAcceptSendRequestTimeStamp)", live.AcceptFrom)
	}
	c := h.deps.Topics.Lookup(v.Topic)
	if live.BrokerPermission&topic.PermWrite == 0 && c != nil && c.Order {
		return protocol.Errorf(protocol.NoPermission, "the broker's permission is %d: sending to an ordered topic is forbidden", live.BrokerPermission)
	}
	if c == nil { // a name in the table has passed this before
		if err := topic.CheckName(v.Topic); err != nil {
			return protocol.Errorf(protocol.InvalidParameter, "%s", err.Error())
		}
	}
	if !topic.SendAllowed(v.Topic) {
		return protocol.Errorf(protocol.NoPermission, "sending to topic %q is forbidden", v.Topic)
	}
	if c == nil {
		if !o.slow {
			return errNeedsFiles
		}
		var err error
		if c, err = o.create(); err != nil {
			return err
		}
	}
	o.topic = c
	o.name = append(o.name[:0], c.Name...)
	if v.QueueID >= max(c.ReadQueues, c.WriteQueues) {
		return protocol.Errorf(protocol.InvalidParameter, "queueId %d of topic %q is illegal: it has %d read and %d write queues",
			v.QueueID, c.Name, c.ReadQueues, c.WriteQueues)
	}
	o.queue = v.QueueID
	if o.queue < 0 {
		if c.WriteQueues < 1 {
			return protocol.Errorf(protocol.InvalidParameter, "topic %q has no write queue", c.Name)
		}
		o.queue = rand.Int32N(c.WriteQueues)
	}
	return nil
}

func (o *op) create() (*topic.Config, error) {
	if o.h.deps.Replica {
		return nil, errReplica()
	}
	v := &o.view
	sysFlag := int32(0)
	if v.UnitMode {
		sysFlag = unitFlag
		if strings.HasPrefix(string(v.Topic), topic.RetryPrefix) {
			sysFlag = unitSubFlag
		}
	}
	c, err := o.h.deps.Topics.CreateOnSend(string(v.Topic), string(v.DefaultTopic), v.DefaultTopicQueueNums, sysFlag)
	switch {
	case errors.Is(err, topic.ErrAutoCreateOff), errors.Is(err, topic.ErrNoTemplate):
		return nil, protocol.Errorf(protocol.TopicNotExist, "topic %q does not exist, apply first please: %s", v.Topic, err.Error())
	case errors.Is(err, topic.ErrNoQueues):
		return nil, protocol.Errorf(protocol.InvalidParameter, "topic %q cannot be made with defaultTopicQueueNums=%d: %s",
			v.Topic, v.DefaultTopicQueueNums, err.Error())
	case err != nil:
		o.h.deps.Logger.Error("topic not created on send", "topic", string(v.Topic), "error", err)
		return nil, protocol.Errorf(protocol.TopicNotExist, "topic %q does not exist and could not be created", v.Topic)
	}
	return c, nil
}

// Bits of topicSysFlag (RocketMQ TopicSysFlag).
const (
	unitFlag    = 1
	unitSubFlag = 2
)

// maxReconsumeVersion is MQVersion.V3_4_9: clients from it on say how often they retry.
const maxReconsumeVersion = 79

// redirect sends a retry message that was consumed too often, or in order, to the dead-letter queue, and checks what only
// concerns single messages (SendMessageProcessor.handleRetryAndDLQ).
func (o *op) redirect() error {
	m := &o.msg
	name, retry := topic.GroupOfRetry(m.Topic)
	if retry {
		g, err := o.group(name)
		if err != nil {
			return err
		}
		limit := g.RetryMaxTimes
		if o.view.HasMaxReconsumeTimes && o.x.Command.Version >= maxReconsumeVersion {
			limit = o.view.MaxReconsumeTimes
		}
		if m.ReconsumeTimes > limit || o.h.deps.Clients.OrderLocked(name) {
			dead, err := o.deadLetter(name)
			if err != nil {
				return err
			}
			m.Topic, m.QueueID = dead.Name, 0
			m.Properties = m.Properties.Set(message.DelayTimeLevel, "-1")
		}
	}
	if o.topic.Attributes["cleanup.policy"] == "COMPACTION" && !m.Properties.Has(message.Keys) {
		return protocol.Errorf(protocol.MessageIllegal, "topic %q is compacted: a message needs KEYS", o.topic.Name)
	}
	return nil
}

func (o *op) group(name string) (*group.Config, error) {
	g := o.h.deps.Groups.Lookup([]byte(name))
	if g == nil && !o.slow {
		return nil, errNeedsFiles // Find may create it
	}
	if g == nil {
		g = o.h.deps.Groups.Find(name)
	}
	if g == nil {
		return nil, protocol.Errorf(protocol.SubscriptionGroupNotExist, "subscription group %q does not exist", name)
	}
	return g, nil
}

func (o *op) deadLetter(name string) (*topic.Config, error) {
	if !o.slow && o.h.deps.Topics.Lookup([]byte(topic.DeadLetter(name))) == nil {
		return nil, errNeedsFiles
	}
	return ensureDeadLetter(o.h.deps.Topics, name)
}

func ensureDeadLetter(t Topics, name string) (*topic.Config, error) {
	c, err := t.Ensure(topic.Config{Name: topic.DeadLetter(name), ReadQueues: 1, WriteQueues: 1, Perm: topic.PermRead | topic.PermWrite})
	if err != nil {
		return nil, protocol.Errorf(protocol.SystemError, "topic %q could not be created", topic.DeadLetter(name))
	}
	return c, nil
}

// prepared turns a prepared transaction message into a half message, and says whether it did. A retried message that waits
// for a delay level is none: the consumer's copy still carries the producer's property.
func (o *op) prepared(live *Reloadable) (bool, error) {
	m := &o.msg
	value, _ := m.Properties.Lookup(message.TransactionPrepared)
	if !strings.EqualFold(string(value), "true") {
		return false, nil
	}
	if m.ReconsumeTimes > 0 && delayLevel(m.Properties) > 0 {
		return false, nil
	}
	if live.RejectTransactions {
		return false, protocol.Errorf(protocol.NoPermission, "the broker refuses transaction messages (rejectTransactionMessage)")
	}
	Half(m)
	return true, nil
}

// Half makes a half message of a prepared transaction message: it waits in the half topic, where no consumer looks, and
// remembers where it belongs (RocketMQ TransactionalMessageBridge.parseHalfMessageInner, PROTOCOL §9.4).
func Half(m *message.Message) {
	p := m.Properties
	if id := p.Get(message.UniqueKey); id != "" {
		p = p.Set(message.TransactionID, id)
	}
	p = p.Set(message.RealTopic, m.Topic).Set(message.RealQueueID, strconv.Itoa(int(m.QueueID)))
	m.Properties = p
	m.Topic, m.QueueID = topic.Half, 0
	m.SysFlag &^= message.TransactionRollback
}

func delayLevel(p message.Properties) int {
	value, _ := p.Lookup(message.DelayTimeLevel)
	n, err := strconv.Atoi(string(value))
	if err != nil {
		return 0
	}
	return n
}

// timerProperties ask for delivery at an exact time (PROTOCOL §9.3).
var timerProperties = [...]string{"TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS"}

// timed refuses a message that asks for delivery at an exact time: RocketMQ's WHEEL_TIMER_NOT_ENABLE. Delivering it at once
// would be worse than refusing it. A delay level goes before.
func timed(p message.Properties) error {
	for _, name := range timerProperties {
		if p.Has(name) && delayLevel(p) <= 0 {
			return protocol.Errorf(protocol.SystemError, "timed messages (%s) are not served: the timer wheel is not enabled", name)
		}
	}
	return nil
}

// wire is the response code and text of a refusal.
func wire(err error) (protocol.ResponseCode, string) {
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return e.Code, e.Remark
	}
	return protocol.SystemError, "internal error"
}

func errReplica() error {
	return protocol.Errorf(protocol.ServiceNotAvailable, "this broker is a replica: it takes no messages")
}

func took(received time.Time) time.Duration { return time.Since(received) }
