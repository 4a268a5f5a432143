package produce

import (
	"strings"

	"github.com/quorate/quorate/broker/topic"
	"github.com/quorate/quorate/broker/write"
	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/protocol"
)

const (
	// batchEntriesMax bounds one batch; RocketMQ has no bound but maxMessageSize, which would allow 190,000 empty messages.
	batchEntriesMax = 1 << 16
	// batchEntriesKept bounds what a pooled op keeps.
	batchEntriesKept = 1 << 10
)

// submitBatch hands over a batch. Every entry becomes a record of its own and keeps exactly its own properties; those of
// the header belong to the batch (SendMessageProcessor.sendBatchMessage).
func (o *op) submitBatch() {
	if err := o.checkBatch(); err != nil {
		o.refuse(err)
		return
	}
	var err error
	if o.entries, err = message.AppendBatchEntries(o.entries[:0], o.body, batchEntriesMax); err != nil {
		o.refuse(protocol.Errorf(protocol.MessageIllegal, "%s", err.Error()))
		return
	}
	h := o.h
	sysFlag := message.SysFlag(o.view.SysFlag)
	if o.topic.FilterType == topic.MultiTag {
		sysFlag |= message.FlagMultiTags
	}
	o.batch = o.batch[:0]
	for i := range o.entries {
		e := &o.entries[i]
		o.batch = append(o.batch, message.Message{
			Topic: o.topic.Name, QueueID: o.queue, Flag: e.Flag, SysFlag: sysFlag, Properties: e.Properties, Body: e.Body,
			BornTimestamp: o.view.BornTimestamp, BornHost: o.x.Conn.RemoteAddr(), StoreHost: h.cfg.StoreHost,
			ReconsumeTimes: o.view.ReconsumeTimes,
		})
	}
	o.props = append(o.props[:0], o.view.Properties...) // the answer names its UNIQ_KEY
	o.size = int64(len(o.body))
	wait, _ := o.props.Lookup(message.WaitStoreMsgOK)
	h.deps.Writer.Submit(write.Request{Batch: o.batch, Received: o.x.Received, NoWait: isFalse(wait)}, o)
}

func (o *op) checkBatch() error {
	p := message.Properties(o.view.Properties)
	value, _ := p.Lookup(message.TransactionPrepared)
	switch {
	case len(o.topic.Name) > topic.NameBytesMax:
		return protocol.Errorf(protocol.MessageIllegal, "a batch needs a topic name of at most %d bytes, this has %d",
			topic.NameBytesMax, len(o.topic.Name))
	case strings.HasPrefix(o.topic.Name, topic.RetryPrefix):
		return protocol.Errorf(protocol.MessageIllegal, "a batch to the retry topic %q is not supported", o.topic.Name)
	case delayLevel(p) > 0:
		return protocol.Errorf(protocol.MessageIllegal, "a batch of delayed messages is not supported")
	case message.SysFlag(o.view.SysFlag).Transaction() != message.TransactionNone || strings.EqualFold(string(value), "true"):
		return protocol.Errorf(protocol.MessageIllegal, "a batch of transaction messages is not supported")
	case o.topic.Attributes["queue.type"] == "BatchCQ":
		return protocol.Errorf(protocol.MessageIllegal, "topic %q has queue.type=BatchCQ, which is not served", o.topic.Name)
	}
	return nil
}
