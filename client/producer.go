package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/protocol"
)

// Producer sends messages of one group. Safe for concurrent use.
type Producer struct {
	client *Client
	group  string
	cfg    ProducerConfig
	next   atomic.Uint32
}

// ProducerConfig says how a producer behaves.
type ProducerConfig struct {
	Group string
	// Retries is how often a failed send is tried again, at another broker where there is one. A send that has no answer may
	// have been stored: trying again may store it twice.
	Retries int
	// Check is asked by brokers about half messages whose end they did not hear.
	Check func(context.Context, *Received) TransactionState
	// TopicQueues is how many queues a topic gets that a send creates; default 4.
	TopicQueues int32
}

// Status is what an answer to a send says (RocketMQ SendStatus).
type Status string

// Statuses.
const (
	SendOK            Status = "SEND_OK"
	FlushDiskTimeout  Status = "FLUSH_DISK_TIMEOUT"
	FlushSlaveTimeout Status = "FLUSH_SLAVE_TIMEOUT"
	SlaveNotAvailable Status = "SLAVE_NOT_AVAILABLE"
)

// SendResult is the answer to a send that stored something.
type SendResult struct {
	Status        Status
	ID            string // the unique key
	OffsetID      string // of a batch: one per message, joined by commas
	Queue         Queue
	Offset        int64
	TransactionID string
	// What the broker says that the answer proves; empty from a broker that does not say.
	Durability      string
	DurableReplicas string
	MasterEpoch     string
}

// statusOf maps the response codes that a client takes as stored.
var statusOf = map[protocol.ResponseCode]Status{
	protocol.Success: SendOK, protocol.FlushDiskTimeout: FlushDiskTimeout, protocol.SlaveNotAvailable: SlaveNotAvailable,
	protocol.FlushSlaveTimeout: FlushSlaveTimeout,
}

// retryable are the codes after which another broker is tried (RocketMQ DefaultMQProducer.retryResponseCodes).
var retryable = []protocol.ResponseCode{
	protocol.TopicNotExist, protocol.ServiceNotAvailable, protocol.SystemError, protocol.SystemBusy, protocol.NoPermission,
	protocol.NoBuyerID, protocol.NotInCurrentUnit, protocol.GoAway,
}

// NewProducer registers a producer; its group is announced to brokers by Client.Run.
func (c *Client) NewProducer(cfg ProducerConfig) *Producer {
	if cfg.TopicQueues == 0 {
		cfg.TopicQueues = autoQueues
	}
	p := &Producer{client: c, group: cfg.Group, cfg: cfg}
	c.mu.Lock()
	c.producers[cfg.Group] = p
	c.mu.Unlock()
	c.announce()
	return p
}

// Send sends to the queues in turn.
func (p *Producer) Send(ctx context.Context, m *Message) (SendResult, error) {
	return p.send(ctx, m, nil)
}

// SendTo sends to one queue; it is not tried elsewhere.
func (p *Producer) SendTo(ctx context.Context, q Queue, m *Message) (SendResult, error) {
	out := p.single(m)
	return p.attempt(ctx, q, out)
}

// SendAsync sends in a goroutine of its own and calls done with the outcome.
func (p *Producer) SendAsync(ctx context.Context, m *Message, done func(SendResult, error)) {
	go func() { done(p.Send(ctx, m)) }()
}

// SendOneway sends without waiting for an answer: nothing tells whether it arrived.
func (p *Producer) SendOneway(ctx context.Context, m *Message) error {
	r, err := p.client.routeForSend(ctx, m.Topic)
	if err != nil {
		return err
	}
	q, err := p.pick(r, "")
	if err != nil {
		return fmt.Errorf("topic %s: %w", m.Topic, err)
	}
	out := p.single(m)
	cmd := out.command(p, q)
	cmd.Flag |= protocol.FlagOneway
	return p.client.remoting.InvokeOneway(ctx, r.addr(q.BrokerName, false), cmd)
}

// SendBatch sends messages of one topic as one request: all are stored one behind the other, or none.
func (p *Producer) SendBatch(ctx context.Context, ms []*Message) (SendResult, error) {
	if len(ms) == 0 {
		return SendResult{}, errors.New("an empty batch")
	}
	out := outgoing{topic: ms[0].Topic, batch: true}
	for _, m := range ms {
		if m.Topic != out.topic || m.DelayLevel > 0 {
			return SendResult{}, errors.New("messages of a batch have one topic and no delay")
		}
		id := message.NewUniqueKey()
		if out.id != "" {
			out.id += ","
		}
		out.id += id
		out.body = message.AppendBatchEntry(out.body, message.BatchEntry{Flag: m.Flag, Body: m.Body, Properties: m.encode(id)})
	}
	out.properties = message.MakeProperties(map[string]string{message.UniqueKey: message.NewUniqueKey()})
	return p.sendOutgoing(ctx, out)
}

func (p *Producer) send(ctx context.Context, m *Message, more []string) (SendResult, error) {
	out := p.single(m, more...)
	if slices.Contains(more, message.TransactionPrepared) {
		out.sysFlag |= message.TransactionPreparedFlag
	}
	return p.sendOutgoing(ctx, out)
}

// outgoing is a send before its queue is chosen.
type outgoing struct {
	topic, id  string
	body       []byte
	properties message.Properties
	flag       int32
	sysFlag    message.SysFlag
	batch      bool
}

func (p *Producer) single(m *Message, more ...string) outgoing {
	id := message.NewUniqueKey()
	return outgoing{topic: m.Topic, id: id, body: m.Body, properties: m.encode(id, more...), flag: m.Flag}
}

func (p *Producer) sendOutgoing(ctx context.Context, out outgoing) (SendResult, error) {
	var errs []error
	avoid := ""
	for range 1 + p.cfg.Retries {
		r, err := p.client.routeForSend(ctx, out.topic)
		if err != nil {
			return SendResult{}, errors.Join(append(errs, err)...)
		}
		q, err := p.pick(r, avoid)
		if err != nil {
			p.client.forgetRoute(out.topic)
			return SendResult{}, errors.Join(append(errs, fmt.Errorf("topic %s: %w", out.topic, err))...)
		}
		result, err := p.attemptAt(ctx, r.addr(q.BrokerName, false), q, out)
		if err == nil {
			return result, nil
		}
		errs = append(errs, err)
		var answered *protocol.Error
		if ctx.Err() != nil || errors.As(err, &answered) && !slices.Contains(retryable, answered.Code) {
			break
		}
		p.client.forgetRoute(out.topic)
		avoid = q.BrokerName
	}
	return SendResult{}, errors.Join(errs...)
}

func (p *Producer) attempt(ctx context.Context, q Queue, out outgoing) (SendResult, error) {
	r, err := p.client.routeForSend(ctx, q.Topic)
	if err != nil {
		return SendResult{}, err
	}
	return p.attemptAt(ctx, r.addr(q.BrokerName, false), q, out)
}

func (p *Producer) attemptAt(ctx context.Context, addr string, q Queue, out outgoing) (SendResult, error) {
	if addr == "" {
		return SendResult{}, fmt.Errorf("send to %s: broker %s has no master", q, q.BrokerName)
	}
	ctx, cancel := context.WithTimeout(ctx, p.client.cfg.RequestTimeout)
	defer cancel()
	answer, err := p.client.remoting.Invoke(ctx, addr, out.command(p, q))
	if err != nil {
		return SendResult{}, fmt.Errorf("send to %s at %s: %w", q, addr, err)
	}
	status, stored := statusOf[protocol.ResponseCode(answer.Code)]
	if !stored {
		return SendResult{}, fmt.Errorf("send to %s at %s: %w", q, addr, &protocol.Error{
			Code: protocol.ResponseCode(answer.Code), Remark: string(answer.Remark),
		})
	}
	result := SendResult{
		Status: status, ID: out.id, Queue: q, OffsetID: answer.Ext.Get("msgId"), TransactionID: answer.Ext.Get("transactionId"),
		Durability: answer.Ext.Get("durability"), DurableReplicas: answer.Ext.Get("durableReplicas"),
		MasterEpoch: answer.Ext.Get("masterEpoch"),
	}
	var header protocol.SendMessageResponse
	if err := protocol.DecodeHeader(answer.Ext, &header); err != nil {
		return SendResult{}, fmt.Errorf("answer to a send to %s: %w", q, err)
	}
	result.Queue.QueueID, result.Offset = header.QueueID, header.QueueOffset
	return result, nil
}

// command is the SEND_MESSAGE_V2 or SEND_BATCH_MESSAGE frame. Its header is put together by hand: it is the one header
// that load is made of.
func (o *outgoing) command(p *Producer, q Queue) *protocol.Command {
	code := protocol.CodeSendMessageV2
	if o.batch {
		code = protocol.CodeSendBatchMessage
	}
	numbers := make([]byte, 0, 64)
	number := func(n int64) []byte {
		from := len(numbers)
		numbers = strconv.AppendInt(numbers, n, 10)
		return numbers[from:len(numbers):len(numbers)]
	}
	ext := protocol.ExtFields{
		{Key: sendKeys[0:1], Value: []byte(p.group)},
		{Key: sendKeys[1:2], Value: []byte(o.topic)},
		{Key: sendKeys[2:3], Value: []byte(templateTopic)},
		{Key: sendKeys[3:4], Value: number(int64(p.cfg.TopicQueues))},
		{Key: sendKeys[4:5], Value: number(int64(q.QueueID))},
		{Key: sendKeys[5:6], Value: number(int64(o.sysFlag))},
		{Key: sendKeys[6:7], Value: number(time.Now().UnixMilli())},
		{Key: sendKeys[7:8], Value: number(int64(o.flag))},
		{Key: sendKeys[8:9], Value: o.properties},
		{Key: sendKeys[9:10], Value: number(0)},
		{Key: sendKeys[10:11], Value: wordFalse},
		{Key: sendKeys[12:13], Value: wordFalse},
		{Key: sendKeys[13:14], Value: []byte(q.BrokerName)},
	}
	if o.batch {
		ext[11].Value = wordTrue
	}
	return &protocol.Command{
		Code: int32(code), Language: protocol.Go, Version: protocol.ServerVersion, Ext: ext, Body: o.body,
	}
}

// sendKeys are the one-letter names of SendMessageRequestHeaderV2 in order.
var (
	sendKeys  = []byte("abcdefghijklmn")
	wordTrue  = []byte("true")
	wordFalse = []byte("false")
)

// pick takes the next writable queue, not of the broker to avoid if there is another.
func (p *Producer) pick(r *Route, avoid string) (Queue, error) {
	n := len(r.writable)
	if n == 0 {
		return Queue{}, errors.New("no queue can be written: no master is registered, or the topic is read-only")
	}
	at := int(p.next.Add(1))
	for i := range n {
		if q := r.writable[(at+i)%n]; q.BrokerName != avoid {
			return q, nil
		}
	}
	return r.writable[at%n], nil
}
