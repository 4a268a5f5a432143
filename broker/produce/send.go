package produce

import (
	"bytes"
	"errors"
	"slices"

	"github.com/quorate/quorate/broker/topic"
	"github.com/quorate/quorate/broker/write"
	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
	"github.com/quorate/quorate/replication"
)

// op is one send on its way from the request to its answer. Pooled: the buffers below grow to what sends need.
type op struct {
	h     *Handlers
	x     *remoting.Exchange
	view  protocol.SendView // aliases the request, or own after detach
	body  []byte
	topic *topic.Config // as asked for
	queue int32         // as answered, also when the message goes elsewhere
	slow  bool          // runs in a goroutine of its own, so that it may write files

	msg     message.Message
	batch   []message.Message
	entries []message.BatchEntry
	props   message.Properties // working copy, still needed for the answer
	name    []byte             // of the topic, for the meter
	own     []byte             // copy of the request, once detached
	size    int64

	reply   remoting.Reply
	ext     protocol.ExtFields
	scratch []byte // values of ext
}

// opBufferBytesMax bounds the buffers that a pooled op keeps.
const opBufferBytesMax = 64 << 10

func (h *Handlers) sendV1(x *remoting.Exchange) { h.send(x, protocol.DecodeSendV1) }

func (h *Handlers) sendV2(x *remoting.Exchange) { h.send(x, protocol.DecodeSendV2) }

func (h *Handlers) send(x *remoting.Exchange, decode func(protocol.ExtFields, *protocol.SendView) error) {
	o := h.ops.Get().(*op)
	o.x = x
	if err := decode(x.Command.Ext, &o.view); err != nil {
		o.refuse(err)
		return
	}
	o.body = x.Command.Body
	o.run()
}

// run checks, converts and submits. It may be called a second time, in a goroutine, when the first try found that a topic
// or a group has to be made.
func (o *op) run() {
	switch err := o.prepare(); {
	case errors.Is(err, errNeedsFiles):
		o.detach()
	case err != nil:
		o.refuse(err)
	case o.view.Batch:
		o.submitBatch()
	default:
		o.submit()
	}
}

// detach copies the request, which is only borrowed from the connection, and goes on in a goroutine: creating a topic
// waits for the disk, which the connection's reader must not.
func (o *op) detach() {
	v := &o.view
	size := len(o.body)
	fields := [...]*[]byte{&v.ProducerGroup, &v.Topic, &v.DefaultTopic, &v.Properties, &v.BrokerName, &o.body}
	for _, f := range fields {
		size += len(*f)
	}
	o.own = slices.Grow(o.own[:0], size)
	for _, f := range fields {
		start := len(o.own)
		o.own = append(o.own, *f...)
		*f = o.own[start:len(o.own):len(o.own)]
	}
	o.slow = true
	o.h.slow.Go(o.run)
}

// submit hands over a single message.
func (o *op) submit() {
	h, m := o.h, &o.msg
	live := h.live.Load()
	m.Topic, m.QueueID = o.topic.Name, o.queue
	m.Flag, m.SysFlag = o.view.Flag, message.SysFlag(o.view.SysFlag)
	m.Body = o.body
	m.BornTimestamp, m.BornHost, m.StoreHost = o.view.BornTimestamp, o.x.Conn.RemoteAddr(), h.cfg.StoreHost
	m.ReconsumeTimes = o.view.ReconsumeTimes
	if o.topic.FilterType == topic.MultiTag {
		m.SysFlag |= message.FlagMultiTags
	}
	m.Properties = append(o.props[:0], o.view.Properties...).Without(message.PopCheckpoint)
	if err := o.redirect(); err != nil {
		if errors.Is(err, errNeedsFiles) {
			o.detach()
			return
		}
		o.refuse(err)
		return
	}
	p := m.Properties
	p = p.Set(message.MsgRegion, live.RegionID).Set(message.TraceSwitch, flagText(live.TraceOn)).Set(message.Cluster, h.cfg.Cluster)
	if !p.Has(message.UniqueKey) {
		p = p.Append(message.UniqueKey, message.NewUniqueKey())
	}
	m.Properties = p
	half, err := o.prepared(live)
	if err != nil {
		o.refuse(err)
		return
	}
	if err := timed(m.Properties); err != nil {
		o.refuse(err)
		return
	}
	if !half {
		h.cfg.Levels.Park(m, o.x.Received)
	}
	wait, _ := p.Lookup(message.WaitStoreMsgOK)
	o.props = m.Properties
	o.size = int64(len(o.body) + len(m.Properties))
	staged := !o.slow
	if staged { // on the reader goroutine, which has more requests at hand perhaps
		o.x.AtBatchEnd(h)
	}
	h.deps.Writer.Submit(write.Request{Message: m, Received: o.x.Received, NoWait: isFalse(wait), Staged: staged}, o)
}

// Written answers from the completion of the write.
func (o *op) Written(r *write.Result, g *replication.Group) {
	h := o.h
	code := h.codeOf(r.Err)
	if stored(code) {
		h.deps.Meter.Stored(o.name, max(1, int64(len(o.batch))), o.size, took(o.x.Received))
	} else {
		h.deps.Meter.Refused()
	}
	if !r.Stored() {
		o.answer(code, r.Err.Error(), nil, g)
		return
	}
	remark := ""
	if r.Err != nil {
		remark = r.Err.Error()
		if code == protocol.SystemError {
			h.deps.Logger.Error("send stored and not acknowledged", "topic", o.topic.Name, "stage", string(r.Err.Stage), "error", r.Err.Err)
		}
	}
	o.answer(code, remark, o.header(r), g)
}

// refuse answers before anything was appended; the remark names the stage.
func (o *op) refuse(err error) {
	o.h.deps.Meter.Refused()
	code, text := wire(err)
	o.answer(code, string(write.Admission)+": "+text, nil, nil)
}

func (o *op) answer(code protocol.ResponseCode, remark string, ext protocol.ExtFields, g *replication.Group) {
	o.reply = remoting.Reply{Code: code, Remark: remark, Ext: ext}
	x := o.x
	if g == nil {
		x.Respond(&o.reply)
	} else {
		o.h.respond(x, &o.reply, g)
	}
	o.free()
}

func (o *op) free() {
	clear(o.batch)
	clear(o.entries)
	kept := op{
		h: o.h, batch: o.batch[:0], entries: o.entries[:0], props: o.props[:0], name: o.name[:0], own: o.own[:0],
		ext: o.ext[:0], scratch: o.scratch[:0],
	}
	if cap(kept.own) > opBufferBytesMax {
		kept.own = nil
	}
	if cap(kept.entries) > batchEntriesKept {
		kept.batch, kept.entries, kept.scratch = nil, nil, nil
	}
	*o = kept
	o.h.ops.Put(o)
}

func isFalse(value []byte) bool { return bytes.EqualFold(value, []byte("false")) }

func flagText(b bool) string {
	if b {
		return "true"
	}
	return "false"
}
