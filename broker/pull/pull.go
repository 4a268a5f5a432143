package pull

import (
	"fmt"
	"strconv"
	"time"

	"github.com/quorate/quorate/broker/group"
	"github.com/quorate/quorate/broker/topic"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
	"github.com/quorate/quorate/store"
)

// Bits of a pull's sysFlag (RocketMQ PullSysFlag).
const (
	flagCommit       = 1
	flagSuspend      = 2
	flagSubscription = 4
	flagLite         = 16
)

// Reasons of a refusal, as forbiddenType of the answer (RocketMQ ForbiddenType).
const (
	forbiddenBroker    = 1
	forbiddenGroup     = 2
	forbiddenTopic     = 3
	forbiddenBroadcast = 4
	forbiddenRead      = 5
)

// op is one pull, from the request until its answer is written. Pooled.
type op struct {
	h     *Handlers
	x     *remoting.Exchange
	view  protocol.PullView // aliases the request, or own after detach
	lite  bool
	topic *topic.Config
	group *group.Config
	own   []byte

	filter tags
	all    bool // filter takes everything
	offset int64
	result store.GetResult

	reply   remoting.Reply
	parts   [][]byte
	ext     protocol.ExtFields
	scratch [8 * 20]byte // values of ext
	used    int
}

func (h *Handlers) pull(x *remoting.Exchange) { h.start(x, false) }

func (h *Handlers) litePull(x *remoting.Exchange) { h.start(x, true) }

func (h *Handlers) start(x *remoting.Exchange, lite bool) {
	o := h.ops.Get().(*op)
	o.x, o.lite = x, lite
	if err := protocol.DecodePull(x.Command.Ext, &o.view); err != nil {
		o.fail(err)
		return
	}
	if err := o.check(); err != nil {
		o.fail(err)
		return
	}
	o.run()
}

// refusal is an error of check that says why in the header too.
type refusal struct {
	code      protocol.ResponseCode
	forbidden int32
	remark    string
}

// Error returns the remark.
func (r *refusal) Error() string { return r.remark }

func refuse(code protocol.ResponseCode, forbidden int32, format string, args ...any) error {
	return &refusal{code, forbidden, fmt.Sprintf(format, args...)}
}

// check judges a pull in RocketMQ's order (PullMessageProcessor.processRequest) and builds its filter.
func (o *op) check() error {
	h, v := o.h, &o.view
	live := h.live.Load()
	if h.deps.Replica && !live.SlaveRead {
		return refuse(protocol.SystemBusy, 0, "this broker is a replica that serves no reads (slaveReadEnable)")
	}
	if live.BrokerPermission&topic.PermRead == 0 {
		return refuse(protocol.NoPermission, forbiddenBroker, "the broker's permission is %d: pulling is forbidden", live.BrokerPermission)
	}
	if o.lite && !live.LitePull {
		return refuse(protocol.NoPermission, forbiddenBroker, "lite pull is forbidden (litePullMessageEnable)")
	}
	if o.group = h.deps.Groups.Lookup(v.ConsumerGroup); o.group == nil {
		o.group = h.deps.Groups.Find(string(v.ConsumerGroup)) // may create it, which happens once in the life of a group
	}
	if o.group == nil {
		return refuse(protocol.SubscriptionGroupNotExist, 0, "subscription group %q does not exist", v.ConsumerGroup)
	}
	if !o.group.ConsumeEnable {
		return refuse(protocol.NoPermission, forbiddenGroup, "subscription group %q may not consume", v.ConsumerGroup)
	}
	if o.topic = h.deps.Topics.Lookup(v.Topic); o.topic == nil {
		if h.deps.Missing != nil {
			h.deps.Missing()
		}
		return refuse(protocol.TopicNotExist, 0, "topic %q does not exist, apply first please", v.Topic)
	}
	if o.topic.Perm&topic.PermRead == 0 {
		return refuse(protocol.NoPermission, forbiddenTopic, "topic %q may not be read", v.Topic)
	}
	if v.QueueID < 0 || v.QueueID >= o.topic.ReadQueues {
		return refuse(protocol.InvalidParameter, 0, "queueId %d of topic %q is illegal: it has %d read queues", v.QueueID, v.Topic, o.topic.ReadQueues)
	}
	if v.SysFlag&flagSubscription != 0 {
		return o.expression(v.ExpressionType, v.Subscription)
	}
	return o.subscription()
}

// expression takes the filter that the request itself carries.
func (o *op) expression(kind, text []byte) error {
	switch {
	case len(kind) == 0 || string(kind) == "TAG":
		var ok bool
		if o.all, ok = o.filter.parse(text); !ok {
			return refuse(protocol.SubscriptionParseFailed, 0, "subscription %q of group %q cannot be parsed", text, o.view.ConsumerGroup)
		}
		return nil
	case string(kind) == "SQL92":
		return errSQL()
	default:
		return refuse(protocol.SubscriptionParseFailed, 0, "expression type %q of group %q is unknown", kind, o.view.ConsumerGroup)
	}
}

func errSQL() error {
	return refuse(protocol.SystemError, 0, "the broker does not support consumers that filter by SQL92 (enablePropertyFilter=false)")
}

// subscription takes the filter that the group's heartbeats said.
func (o *op) subscription() error {
	h, v := o.h, &o.view
	if !h.deps.Clients.Online(v.ConsumerGroup) {
		return refuse(protocol.SubscriptionNotExist, 0, "consumer group %q is not online", v.ConsumerGroup)
	}
	if !o.group.ConsumeBroadcastEnable {
		if g, _, ok := h.deps.Clients.Consumers(o.group.Name); ok && g.MessageModel == protocol.Broadcasting {
			return refuse(protocol.NoPermission, forbiddenBroadcast, "consumer group %q may not consume by broadcast", v.ConsumerGroup)
		}
	}
	if h.deps.Groups.ReadForbidden(v.ConsumerGroup, v.Topic) {
		return refuse(protocol.NoPermission, forbiddenRead, "consumer group %q may not read topic %q", v.ConsumerGroup, v.Topic)
	}
	s := h.deps.Clients.Subscription(v.ConsumerGroup, v.Topic)
	if s == nil {
		return refuse(protocol.SubscriptionNotExist, 0, "consumer group %q does not subscribe topic %q", v.ConsumerGroup, v.Topic)
	}
	if s.Version < v.SubVersion {
		return refuse(protocol.SubscriptionNotLatest, 0, "the subscription of group %q for topic %q is not the latest", v.ConsumerGroup, v.Topic)
	}
	if s.ExpressionType == "SQL92" {
		return errSQL()
	}
	o.all = o.filter.subscribe(s)
	return nil
}

// run answers at once where something is to be said, and holds the pull where not.
func (o *op) run() {
	h, v := o.h, &o.view
	o.offset = v.QueueOffset
	if h.live.Load().ServerSideReset && !h.deps.Replica {
		if target, ok := h.deps.Progress.TakeReset(o.group.Name, o.topic.Name, v.QueueID); ok {
			o.moved(target, store.OffsetReset)
			return
		}
	}
	if v.QueueOffset < 0 && !h.deps.Replica {
		// A client whose query for its offset failed pulls from −1; answering with the queue's begin would make it repeat
		// everything and overwrite the good offset (CASES 94).
		if committed := h.deps.Progress.Query(o.group.Name, o.topic.Name, v.QueueID); committed >= 0 {
			o.moved(committed, store.OffsetTooSmall)
			return
		}
	}
	if err := o.get(); err != nil {
		o.fail(err)
		return
	}
	h.deps.Progress.CommitPull(o.group.Name, o.topic.Name, v.QueueID, o.result.NextBegin)
	if v.SysFlag&flagCommit != 0 && !h.deps.Replica {
		h.deps.Progress.Commit(o.group.Name, o.topic.Name, v.QueueID, v.CommitOffset)
	}
	if v.SysFlag&flagSuspend != 0 && o.code() == protocol.PullNotFound && o.hold() {
		return
	}
	o.respond()
}

// get reads from o.offset.
func (o *op) get() error {
	v := &o.view
	count := min(max(int(v.MaxMsgNums), countMinimum), countMax)
	size := bytesMax
	if v.HasMaxMsgBytes {
		size = min(max(int(v.MaxMsgBytes), bytesMin), bytesMax)
	}
	var f store.Filter
	if !o.all {
		f = &o.filter
	}
	if err := o.h.deps.Queues.Get(o.topic.Name, v.QueueID, o.offset, count, size, f, &o.result); err != nil {
		o.h.deps.Logger.Error("messages not read", "topic", o.topic.Name, "queue_id", v.QueueID, "offset", o.offset, "error", err)
		return protocol.Errorf(protocol.SystemError, "store getMessage returned an error")
	}
	if o.h.deps.Replica {
		o.uncorrected()
	}
	return nil
}

// uncorrected keeps a consumer where it is: what a replica does not have may be at its master (offsetCheckInSlave=false).
func (o *op) uncorrected() {
	switch o.result.Status {
	case store.OffsetTooSmall, store.OffsetOverflowBadly, store.OffsetOverflowOne, store.NoMessageInQueue, store.NoMatchedLogicQueue:
		o.result.NextBegin = o.offset
	default: // the next offset is right as it is
	}
}

// code is the response code of the result (PROTOCOL §3.7).
func (o *op) code() protocol.ResponseCode {
	switch o.result.Status {
	case store.Found:
		return protocol.Success
	case store.MessageWasRemoving, store.NoMatchedMessage:
		return protocol.PullRetryImmediately
	case store.OffsetOverflowBadly:
		if o.h.deps.Replica {
			return protocol.PullRetryImmediately // at the broker that the answer suggests
		}
		return protocol.PullOffsetMoved
	case store.NoMatchedLogicQueue, store.NoMessageInQueue:
		if o.offset != 0 {
			return protocol.PullOffsetMoved
		}
		return protocol.PullNotFound
	case store.OffsetFoundNull, store.OffsetOverflowOne:
		return protocol.PullNotFound
	default:
		return protocol.PullOffsetMoved
	}
}

// moved tells the client to go on elsewhere.
func (o *op) moved(next int64, status store.GetStatus) {
	minOffset, maxOffset := o.h.deps.Queues.QueueBounds(o.topic.Name, o.view.QueueID)
	o.result = store.GetResult{Status: status, NextBegin: next, MinOffset: minOffset, MaxOffset: maxOffset, Views: o.result.Views[:0]}
	o.respond()
}

// respond answers with the result.
func (o *op) respond() {
	h, r := o.h, &o.result
	code := o.code()
	if code == protocol.Success {
		h.deps.Meter.Pulled(o.view.ConsumerGroup, o.view.Topic, int64(r.Count), int64(r.Bytes), time.Since(o.x.Received))
	} else {
		h.deps.Meter.Missed()
	}
	for i := range r.Views {
		o.parts = append(o.parts, r.Views[i].Bytes)
	}
	o.reply.Code, o.reply.Remark, o.reply.Parts = code, statusNames[r.Status], o.parts
	o.reply.Ext = o.header()
	x := o.x
	x.Respond(&o.reply) // calls written, now or later
}

// fail answers an error; the header's four offsets are always there, since the Java client does not decode without.
func (o *op) fail(err error) {
	code, text, forbidden := protocol.SystemError, "internal error", int32(0)
	switch e := err.(type) { //nolint:errorlint // both types are made here and are not wrapped
	case *refusal:
		code, text, forbidden = e.code, e.remark, e.forbidden
	case *protocol.Error:
		code, text = e.Code, e.Remark
	}
	o.reply.Code, o.reply.Remark, o.reply.Parts = code, text, nil
	o.ext = o.header()
	if forbidden > 0 {
		o.number(keyForbidden, int64(forbidden))
	}
	o.reply.Ext = o.ext
	x := o.x
	x.Respond(&o.reply)
}

// Keys of the answer (RocketMQ PullMessageResponseHeader).
var (
	keySuggest   = []byte("suggestWhichBrokerId")
	keyNext      = []byte("nextBeginOffset")
	keyMin       = []byte("minOffset")
	keyMax       = []byte("maxOffset")
	keyTopicFlag = []byte("topicSysFlag")
	keyGroupFlag = []byte("groupSysFlag")
	keyForbidden = []byte("forbiddenType")
)

// statusNames are the remarks of answers (RocketMQ GetMessageStatus).
var statusNames = [...]string{
	store.Found: "FOUND", store.NoMatchedMessage: "NO_MATCHED_MESSAGE", store.MessageWasRemoving: "MESSAGE_WAS_REMOVING",
	store.OffsetFoundNull: "OFFSET_FOUND_NULL", store.OffsetOverflowBadly: "OFFSET_OVERFLOW_BADLY",
	store.OffsetOverflowOne: "OFFSET_OVERFLOW_ONE", store.OffsetTooSmall: "OFFSET_TOO_SMALL",
	store.NoMatchedLogicQueue: "NO_MATCHED_LOGIC_QUEUE", store.NoMessageInQueue: "NO_MESSAGE_IN_QUEUE",
	store.OffsetReset: "OFFSET_RESET",
}

func (o *op) header() protocol.ExtFields {
	o.ext, o.used = o.ext[:0], 0
	suggest := int64(0)
	if o.group != nil && o.h.live.Load().SlaveRead {
		suggest = o.group.BrokerID
		if o.result.SuggestFromReplica {
			suggest = o.group.WhichBrokerWhenSlow
		}
	}
	o.number(keySuggest, suggest)
	o.number(keyNext, o.result.NextBegin)
	o.number(keyMin, o.result.MinOffset)
	o.number(keyMax, o.result.MaxOffset)
	if o.topic != nil && o.group != nil {
		o.number(keyTopicFlag, int64(o.topic.SysFlag))
		o.number(keyGroupFlag, int64(o.group.SysFlag))
	}
	return o.ext
}

func (o *op) number(key []byte, v int64) {
	b := strconv.AppendInt(o.scratch[o.used:o.used:len(o.scratch)], v, 10)
	o.used += len(b)
	o.ext = append(o.ext, protocol.ExtField{Key: key, Value: b})
}

// written gives the messages back once the answer is on the wire, or dropped with its connection.
func (o *op) written() {
	for i := range o.result.Views {
		o.result.Views[i].Release()
	}
	clear(o.result.Views)
	clear(o.parts)
	o.filter.reset()
	done := o.reply.Done
	*o = op{
		h: o.h, own: o.own[:0], filter: o.filter, result: store.GetResult{Views: o.result.Views[:0]}, parts: o.parts[:0], ext: o.ext[:0],
	}
	o.reply.Done = done
	o.h.ops.Put(o)
}
