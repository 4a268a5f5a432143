package client

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
	"github.com/quorate/quorate/store"
)

// Times to wait for a consumer's answer (Broker2Client).
const (
	askTimeout    = 10 * time.Second
	statusTimeout = 5 * time.Second
)

// Progress knows which groups have consumed what (offset.Table).
type Progress interface {
	Groups(topic string) []string
	Topics(group string) []string
}

// Records reads one record (store.Store).
type Records interface {
	RecordAt(offset int64) (store.View, error)
}

// Handlers serve the requests about clients.
type Handlers struct {
	Registry   *Registry
	Progress   Progress
	Records    Records
	BrokerName string
}

// Routes of the requests about clients.
func (h *Handlers) Routes() []remoting.Route {
	r := h.Registry
	return []remoting.Route{
		remoting.Handle(remoting.Query, r.heartbeat),
		remoting.Handle(remoting.Query, r.unregister),
		remoting.Handle(remoting.Query, r.checkConfig),
		remoting.Handle(remoting.Query, r.lockQueues),
		remoting.Handle(remoting.Query, r.unlockQueues),
		remoting.Handle(remoting.Query, h.consumerList),
		remoting.Handle(remoting.Admin, h.consumerConnections),
		remoting.Handle(remoting.Admin, h.producerConnections),
		remoting.Handle(remoting.Admin, h.allProducers),
		remoting.Handle(remoting.Admin, h.runningInfo),
		remoting.Handle(remoting.Admin, h.consumeDirectly),
		remoting.Handle(remoting.Admin, h.consumerStatus),
		remoting.Handle(remoting.Admin, h.consumersOfTopic),
		remoting.Handle(remoting.Admin, h.topicsOfGroup),
		remoting.Handle(remoting.Admin, h.subscriptionOfGroup),
	}
}

func (h *Handlers) consumerList(_ context.Context, call remoting.Call[protocol.GetConsumerListByGroupRequest]) (*remoting.Reply, error) {
	_, members, ok := h.Registry.Consumers(call.Header.ConsumerGroup)
	if !ok {
		return nil, protocol.Errorf(protocol.SystemError, "no consumer for this group, %s", call.Header.ConsumerGroup)
	}
	ids := make([]string, 0, len(members))
	for _, m := range members {
		ids = append(ids, m.ClientID)
	}
	// A client that reconnected before its old connection was found dead is one client: twice in the list, it would
	// shift the shares of all others.
	return jsonReply(protocol.GetConsumerListByGroupResponseBody{ConsumerIDList: slices.Compact(ids)})
}

func (h *Handlers) consumerConnections(_ context.Context, call remoting.Call[protocol.GetConsumerConnectionListRequest]) (*remoting.Reply, error) {
	name := call.Header.ConsumerGroup
	g, members, ok := h.Registry.Consumers(name)
	if !ok {
		return nil, protocol.Errorf(protocol.ConsumerNotOnline, "the consumer group[%s] not online", name)
	}
	b := protocol.ConsumerConnection{
		ConnectionSet: connections(members), ConsumeFromWhere: g.FromWhere, ConsumeType: g.ConsumeType, MessageModel: g.MessageModel,
		SubscriptionTable: map[string]protocol.SubscriptionData{},
	}
	for _, s := range h.Registry.Subscriptions(name) {
		b.SubscriptionTable[s.Topic] = dataOf(s)
	}
	return jsonReply(b)
}

func (h *Handlers) producerConnections(_ context.Context, call remoting.Call[protocol.GetProducerConnectionListRequest]) (*remoting.Reply, error) {
	members := h.Registry.Producers(call.Header.ProducerGroup)
	if len(members) == 0 {
		return nil, protocol.Errorf(protocol.SystemError, "the producer group[%s] not exist", call.Header.ProducerGroup)
	}
	return jsonReply(protocol.ProducerConnection{ConnectionSet: connections(members)})
}

func connections(members []Member) []protocol.Connection {
	out := make([]protocol.Connection, 0, len(members))
	for _, m := range members {
		out = append(out, protocol.Connection{ClientAddr: m.Conn.RemoteAddr().String(), ClientID: m.ClientID, Language: m.Language, Version: m.Version})
	}
	return out
}

// allProducers is GET_ALL_PRODUCER_INFO. The address is as Java prints a socket address, which tools show unchanged.
func (h *Handlers) allProducers(context.Context, remoting.Call[protocol.GetAllProducerInfoRequest]) (*remoting.Reply, error) {
	b := protocol.ProducerTableInfo{Data: map[string][]protocol.ProducerInfo{}}
	for _, g := range h.Registry.ProducerGroups() {
		for _, m := range h.Registry.Producers(g) {
			b.Data[g] = append(b.Data[g], protocol.ProducerInfo{
				ClientID: m.ClientID, RemoteIP: "/" + m.Conn.RemoteAddr().String(), Language: m.Language, Version: m.Version, LastUpdateTimestamp: m.LastUpdate,
			})
		}
	}
	return jsonReply(b)
}

func (h *Handlers) runningInfo(ctx context.Context, call remoting.Call[protocol.GetConsumerRunningInfoRequest]) (*remoting.Reply, error) {
	return h.forward(ctx, call.Header.ConsumerGroup, call.Header.ClientID, protocol.NewRequest(call.Header, call.Body))
}

// consumeDirectly is CONSUME_MESSAGE_DIRECTLY: the consumer gets the record itself with the request.
func (h *Handlers) consumeDirectly(ctx context.Context, call remoting.Call[protocol.ConsumeMessageDirectlyResultRequest]) (*remoting.Reply, error) {
	_, offset, err := message.ParseOffsetID(call.Header.MsgID)
	if err != nil {
		return nil, protocol.Errorf(protocol.InvalidParameter, "msgId: %v", err)
	}
	view, err := h.Records.RecordAt(offset)
	if err != nil {
		return nil, protocol.Errorf(protocol.SystemError, "no message with id %s", call.Header.MsgID)
	}
	body := slices.Clone(view.Bytes)
	view.Release()
	header := *call.Header
	header.BrokerName = h.BrokerName
	return h.forward(ctx, header.ConsumerGroup, header.ClientID, protocol.NewRequest(&header, body))
}

// forward carries a request to one consumer and its answer back.
func (h *Handlers) forward(ctx context.Context, group, clientID string, cmd *protocol.Command) (*remoting.Reply, error) {
	m, ok := h.Registry.FindConsumer(group, clientID)
	if !ok {
		return nil, protocol.Errorf(protocol.SystemError, "the consumer <%s> <%s> not online", group, clientID)
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	answer, err := m.Conn.Invoke(ctx, cmd)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, protocol.Errorf(protocol.ConsumeMsgTimeout, "the consumer <%s> <%s> did not answer within %s", group, clientID, askTimeout)
	case err != nil:
		return nil, protocol.Errorf(protocol.ConsumerNotOnline, "the consumer <%s> <%s> not online", group, clientID)
	}
	return &remoting.Reply{Code: protocol.ResponseCode(answer.Code), Remark: string(answer.Remark), Ext: answer.Ext, Body: answer.Body}, nil
}

// consumerStatus is INVOKE_BROKER_TO_GET_CONSUMER_STATUS: it asks each consumer of a group, or the one named, how far it is.
func (h *Handlers) consumerStatus(ctx context.Context, call remoting.Call[protocol.GetConsumerStatusRequest]) (*remoting.Reply, error) {
	req := call.Header
	_, members, ok := h.Registry.Consumers(req.Group)
	if !ok {
		return nil, protocol.Errorf(protocol.SystemError, "no any consumer online in the consumer group: [%s]", req.Group)
	}
	all := protocol.GetConsumerStatusBody{
		MessageQueueTable: fastjson.Map[protocol.MessageQueue, int64]{},
		ConsumerTable:     map[string]fastjson.Map[protocol.MessageQueue, int64]{},
	}
	for _, m := range members {
		if req.ClientAddr != "" && req.ClientAddr != m.ClientID {
			continue
		}
		one, err := h.statusOf(ctx, m, req)
		if err != nil {
			h.Registry.logger.Warn("consumer did not say its status", "group", req.Group, "client", m.ClientID, "error", err)
			continue
		}
		all.ConsumerTable[m.ClientID] = one.MessageQueueTable
	}
	return jsonReply(all)
}

func (h *Handlers) statusOf(ctx context.Context, m Member, req *protocol.GetConsumerStatusRequest) (one protocol.GetConsumerStatusBody, err error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	ask := &protocol.GetConsumerStatusFromClientRequest{GetConsumerStatusRequest: protocol.GetConsumerStatusRequest{Topic: req.Topic, Group: req.Group}}
	answer, err := m.Conn.Invoke(ctx, protocol.NewRequest(ask, nil))
	if err != nil {
		return one, err
	}
	if answer.Code != int32(protocol.Success) {
		return one, protocol.Errorf(protocol.ResponseCode(answer.Code), "%s", answer.Remark)
	}
	return one, fastjson.Unmarshal(answer.Body, &one)
}

func (h *Handlers) consumersOfTopic(_ context.Context, call remoting.Call[protocol.QueryTopicConsumeByWhoRequest]) (*remoting.Reply, error) {
	groups := append(h.Registry.GroupsOfTopic(call.Header.Topic), h.Progress.Groups(call.Header.Topic)...)
	slices.Sort(groups)
	return jsonReply(protocol.GroupList{GroupList: append([]string{}, slices.Compact(groups)...)})
}

func (h *Handlers) topicsOfGroup(_ context.Context, call remoting.Call[protocol.QueryTopicsByConsumerRequest]) (*remoting.Reply, error) {
	topics := slices.Clone(h.Progress.Topics(call.Header.Group))
	slices.Sort(topics)
	return jsonReply(protocol.TopicList{TopicList: append([]string{}, topics...)})
}

func (h *Handlers) subscriptionOfGroup(_ context.Context, call remoting.Call[protocol.QuerySubscriptionByConsumerRequest]) (*remoting.Reply, error) {
	b := protocol.QuerySubscriptionResponseBody{Group: call.Header.Group, Topic: call.Header.Topic}
	if s := h.Registry.Subscription([]byte(call.Header.Group), []byte(call.Header.Topic)); s != nil {
		data := dataOf(s)
		b.SubscriptionData = &data
	}
	return jsonReply(b)
}
