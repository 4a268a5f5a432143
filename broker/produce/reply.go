package produce

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/quorate/quorate/broker/write"
	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
)

// replyPushTimeout bounds the wait for the requester (ReplyMessageProcessor.pushReplyMessage).
const replyPushTimeout = 3 * time.Second

func (h *Handlers) reply(ctx context.Context, c remoting.Call[protocol.SendReplyMessageRequest]) (*remoting.Reply, error) {
	return h.pushReply(ctx, &c.Header.SendMessageRequest, c.Body, c.Conn, c.Received)
}

func (h *Handlers) replyV2(ctx context.Context, c remoting.Call[protocol.SendReplyMessageV2Request]) (*remoting.Reply, error) {
	r := &c.Header.SendMessageRequestV2
	return h.pushReply(ctx, &protocol.SendMessageRequest{
		ProducerGroup: r.ProducerGroup, Topic: r.Topic, DefaultTopic: r.DefaultTopic,
		DefaultTopicQueueNums: r.DefaultTopicQueueNums, QueueID: r.QueueID, SysFlag: r.SysFlag, BornTimestamp: r.BornTimestamp,
		Flag: r.Flag, Properties: r.Properties, ReconsumeTimes: r.ReconsumeTimes, UnitMode: r.UnitMode,
	}, c.Body, c.Conn, c.Received)
}

// pushReply is SEND_REPLY_MESSAGE: the answer to a request message goes straight to the producer that waits for it, and,
// where storeReplyMessageEnable, into the log as well. The code says how the push ended, whatever the log did.
func (h *Handlers) pushReply(ctx context.Context, r *protocol.SendMessageRequest, body []byte, conn *remoting.Conn, received time.Time) (*remoting.Reply, error) {
	live := h.live.Load()
	if live.AcceptFrom > time.Now().UnixMilli() {
		return nil, protocol.Errorf(protocol.SystemError, "admission: broker accepts sends only from %d on", live.AcceptFrom)
	}
	o := h.ops.Get().(*op)
	defer o.free()
	o.slow, o.body = true, body
	o.view = protocol.SendView{
		ProducerGroup: []byte(r.ProducerGroup), Topic: []byte(r.Topic), DefaultTopic: []byte(r.DefaultTopic),
		DefaultTopicQueueNums: r.DefaultTopicQueueNums, QueueID: r.QueueID, SysFlag: r.SysFlag, BornTimestamp: r.BornTimestamp,
		Flag: r.Flag, Properties: []byte(r.Properties),
	}
	if err := o.prepare(); err != nil {
		code, text := wire(err)
		return nil, protocol.Errorf(code, "%s: %s", write.Admission, text)
	}
	m := message.Message{
		Topic: o.topic.Name, QueueID: o.queue, Flag: r.Flag, SysFlag: message.SysFlag(r.SysFlag), Body: body,
		Properties: message.Properties(r.Properties), BornTimestamp: r.BornTimestamp, BornHost: conn.RemoteAddr(),
		StoreHost: h.cfg.StoreHost,
	}
	if r.ReconsumeTimes != nil {
		m.ReconsumeTimes = *r.ReconsumeTimes
	}
	m.Properties = m.Properties.Set(message.Cluster, h.cfg.Cluster).Set(message.MsgRegion, live.RegionID).
		Set(message.TraceSwitch, flagText(live.TraceOn))

	reply := &remoting.Reply{Remark: ""}
	if err := h.push(ctx, r, &m, conn); err != nil {
		reply.Code, reply.Remark = protocol.SystemError, err.Error()
	}
	header := &protocol.SendMessageResponse{MsgID: "0", QueueID: o.queue}
	reply.Ext = protocol.ExtFields{}.Add(message.MsgRegion, live.RegionID).Add(message.TraceSwitch, flagText(live.TraceOn))
	if h.cfg.StoreReplies {
		o.props = append(o.props[:0], m.Properties...)
		m.Properties = o.props
		result := h.deps.Writer.Write(ctx, write.Request{Message: &m, Received: received})
		if code := CodeOf(result.Err); !stored(code) {
			h.deps.Logger.Warn("reply message not stored", "topic", m.Topic, "error", result.Err)
		}
		if result.Stored() {
			header.MsgID = message.OffsetID(h.cfg.StoreHost, result.Appended.Begin)
			header.QueueOffset = result.Appended.QueueOffset
			p := result.Outcome.Proved
			reply.Ext = reply.Ext.Add(string(keyDurability), p.Durability.String()).
				Add(string(keyDurable), strconv.Itoa(p.DurableReplicas)).
				Add(string(keyReceived), strconv.Itoa(p.ReceivedReplicas)).Add(string(keyEpoch), strconv.Itoa(int(p.Epoch)))
		}
	}
	reply.Header = header
	return reply, nil
}

// push hands the reply to the requester and waits for its word.
func (h *Handlers) push(ctx context.Context, r *protocol.SendMessageRequest, m *message.Message, conn *remoting.Conn) error {
	id := m.Properties.Get(message.ReplyToClient)
	if id == "" {
		return fmt.Errorf("property %s is missing: nobody to answer", message.ReplyToClient)
	}
	member, ok := h.deps.Clients.FindProducer("", id)
	if !ok {
		return fmt.Errorf("no producer with client id %q is connected", id)
	}
	now := strconv.FormatInt(time.Now().UnixMilli(), 10)
	properties := append(message.Properties(nil), m.Properties...).Set(message.PushReplyTime, now)
	notice := protocol.NewRequest(&protocol.ReplyMessageRequest{
		ProducerGroup: r.ProducerGroup, Topic: r.Topic, DefaultTopic: r.DefaultTopic,
		DefaultTopicQueueNums: r.DefaultTopicQueueNums, QueueID: m.QueueID, SysFlag: r.SysFlag, BornTimestamp: r.BornTimestamp,
		Flag: r.Flag, Properties: string(properties), ReconsumeTimes: r.ReconsumeTimes,
		UnitMode: r.UnitMode != nil && *r.UnitMode, BornHost: conn.RemoteAddr().String(), StoreHost: h.cfg.StoreHost.String(),
		StoreTimestamp: time.Now().UnixMilli(),
	}, m.Body)
	ctx, cancel := context.WithTimeout(ctx, replyPushTimeout)
	defer cancel()
	answer, err := member.Conn.Invoke(ctx, notice)
	if err != nil {
		return fmt.Errorf("push reply message to %q fail: %w", id, err)
	}
	if answer.Code != int32(protocol.Success) {
		return fmt.Errorf("push reply message to %q fail: code %d %s", id, answer.Code, answer.Remark)
	}
	return nil
}
