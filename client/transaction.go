package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
)

// TransactionState is how the sender's own transaction ended.
type TransactionState int32

// States; the numbers are those of END_TRANSACTION.
const (
	Unknown  TransactionState = 0
	Commit   TransactionState = 8
	Rollback TransactionState = 12
)

// SendTransaction stores m as a half message that nobody sees, calls local, and ends it as local says. With Unknown the
// broker asks ProducerConfig.Check later; Client.Run has to be running for that.
func (p *Producer) SendTransaction(ctx context.Context, m *Message, local func(SendResult) TransactionState) (SendResult, TransactionState, error) {
	if m.DelayLevel > 0 {
		return SendResult{}, Unknown, errors.New("a message is either delayed or transactional")
	}
	half, err := p.send(ctx, m, []string{message.TransactionPrepared, "true", message.ProducerGroup, p.group})
	if err != nil {
		return SendResult{}, Unknown, err
	}
	state := Rollback
	if half.Status == SendOK {
		state = local(half)
	}
	if state == Unknown {
		return half, state, nil
	}
	storeHost, offset, err := message.ParseOffsetID(half.OffsetID)
	if err != nil {
		return half, Unknown, fmt.Errorf("half message: %w", err)
	}
	// The master that stored the half message, by name; its stored address is what is left once the route has gone.
	addr := storeHost.String()
	if r, err := p.client.Route(ctx, m.Topic); err == nil && r.addr(half.Queue.BrokerName, false) != "" {
		addr = r.addr(half.Queue.BrokerName, false)
	}
	_, err = p.client.Invoke(ctx, addr, &protocol.EndTransactionRequest{
		Topic: m.Topic, ProducerGroup: p.group, TranStateTableOffset: half.Offset, CommitLogOffset: offset,
		CommitOrRollback: int32(state), MsgID: half.ID, TransactionID: half.ID,
	}, nil, nil)
	if err != nil {
		return half, Unknown, fmt.Errorf("end transaction %s: %w", half.ID, err)
	}
	return half, state, nil
}

// checkTransaction answers CHECK_TRANSACTION_STATE with an END_TRANSACTION.
func (c *Client) checkTransaction(ctx context.Context, call remoting.Call[protocol.CheckTransactionStateRequest]) (*remoting.Reply, error) {
	records, err := DecodeRecords("", call.Body)
	if err != nil || len(records) != 1 {
		return nil, fmt.Errorf("transaction check: %d records, %w", len(records), err)
	}
	m := records[0]
	c.mu.Lock()
	p := c.producers[m.Properties[message.ProducerGroup]]
	c.mu.Unlock()
	if p == nil || p.cfg.Check == nil {
		return remoting.NoReply, nil
	}
	state := p.cfg.Check(ctx, m)
	if state == Unknown {
		return remoting.NoReply, nil // the broker asks again
	}
	fromCheck := true
	_, err = c.Invoke(ctx, m.StoreHost, &protocol.EndTransactionRequest{
		Topic: m.Topic, ProducerGroup: p.group, TranStateTableOffset: call.Header.TranStateTableOffset,
		CommitLogOffset: call.Header.CommitLogOffset, CommitOrRollback: int32(state), FromTransactionCheck: &fromCheck,
		MsgID: call.Header.MsgID, TransactionID: call.Header.TransactionID,
	}, nil, nil)
	if err != nil {
		c.logger.Warn("checked transaction not ended", "id", call.Header.TransactionID, "error", err)
	}
	return remoting.NoReply, nil
}

// callbacks are the requests that brokers send to a client.
func (c *Client) callbacks() []remoting.Route {
	return []remoting.Route{
		remoting.Handle(remoting.Query, c.checkTransaction),
		remoting.Handle(remoting.Query, c.membersChanged),
	}
}

func (c *Client) membersChanged(_ context.Context, call remoting.Call[protocol.NotifyConsumerIDsChangedRequest]) (*remoting.Reply, error) {
	c.mu.Lock()
	co := c.consumers[call.Header.ConsumerGroup]
	c.mu.Unlock()
	if co != nil {
		co.rebalanceSoon()
	}
	return remoting.NoReply, nil
}
