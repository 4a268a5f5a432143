// Package admin has every administrative operation as a Go function: each is one or a few requests to NameServers and
// brokers. It prints nothing and decides nothing; commands choose what to call and how to show it.
package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
)

// requestTimeout bounds one request (RocketMQ DefaultMQAdminExt: 5 s).
const requestTimeout = 5 * time.Second

// Client sends administrative requests. Safe for concurrent use.
type Client struct {
	remoting    *remoting.Client
	nameServers []string
}

// New uses rc for its connections and does not close it.
func New(rc *remoting.Client, nameServers []string) *Client {
	return &Client{remoting: rc, nameServers: slices.Clone(nameServers)}
}

// NameServers are the addresses in use.
func (c *Client) NameServers() []string { return slices.Clone(c.nameServers) }

// call sends one request; a JSON body of the answer is decoded into body unless that is nil.
func (c *Client) call(ctx context.Context, addr string, req protocol.Request, send []byte, header, body any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	answer, err := remoting.InvokeTyped(ctx, c.remoting, addr, req, send, header)
	if err != nil {
		return fmt.Errorf("%s at %s: %w", req.Code(), addr, err)
	}
	if body == nil || len(answer) == 0 {
		return nil
	}
	if err := fastjson.Unmarshal(answer, body); err != nil {
		return fmt.Errorf("%s at %s: answer: %w", req.Code(), addr, err)
	}
	return nil
}

// raw is call for answers that are not JSON.
func (c *Client) raw(ctx context.Context, addr string, req protocol.Request, send []byte, header any) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	answer, err := remoting.InvokeTyped(ctx, c.remoting, addr, req, send, header)
	if err != nil {
		return nil, fmt.Errorf("%s at %s: %w", req.Code(), addr, err)
	}
	return answer, nil
}

// ask sends one request to the first NameServer that answers.
func (c *Client) ask(ctx context.Context, req protocol.Request, header, body any) error {
	if len(c.nameServers) == 0 {
		return errors.New("no NameServer address")
	}
	var errs []error
	for _, addr := range c.nameServers {
		err := c.call(ctx, addr, req, nil, header, body)
		var answered *protocol.Error
		if err == nil || errors.As(err, &answered) {
			return err
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// tell sends one request to every NameServer: each has tables of its own.
func (c *Client) tell(ctx context.Context, req protocol.Request, send []byte) error {
	var errs []error
	for _, addr := range c.nameServers {
		errs = append(errs, c.call(ctx, addr, req, send, nil, nil))
	}
	return errors.Join(errs...)
}

// Is reports whether err is an answer with one of the codes.
func Is(err error, codes ...protocol.ResponseCode) bool {
	var answered *protocol.Error
	return errors.As(err, &answered) && slices.Contains(codes, answered.Code)
}

// SortedQueues are the keys of a table by queue, in order of topic, broker and id.
func SortedQueues[V any](table map[protocol.MessageQueue]V) []protocol.MessageQueue {
	return slices.SortedFunc(maps.Keys(table), func(a, b protocol.MessageQueue) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.BrokerName, b.BrokerName), cmp.Compare(a.QueueID, b.QueueID))
	})
}
