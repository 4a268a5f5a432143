package remoting_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/remoting"
)

// The reader meets the end of the stream while a handler closes the connection: both at once, and the cause is one of theirs.
func TestAConnectionClosedByTwoAtOnceHasACause(t *testing.T) {
	errGone := errors.New("gone")
	router, err := remoting.NewRouter([]remoting.Route{
		remoting.Handle(remoting.Query, func(_ context.Context, c remoting.Call[echoHeader]) (*remoting.Reply, error) {
			c.Conn.Close(errGone)
			return &remoting.Reply{}, nil
		}),
	})
	require.NoError(t, err)
	var closed, unnamed atomic.Int64
	s := remoting.NewServer(remoting.ServerConfig{}, router, nil, func(c *remoting.Conn) {
		closed.Add(1)
		if context.Cause(c.Context()) == nil {
			unnamed.Add(1)
		}
	}, slog.New(slog.DiscardHandler))
	l := listen(t)
	stop := serve(t, s, l)
	const rounds = 300
	for range rounds {
		c := dial(t, l)
		cmd := request(codeHandle, "")
		cmd.Ext = cmd.Ext.Add("name", "x")
		c.write(cmd)
		require.NoError(t, c.Close())
	}
	stop()
	require.Positive(t, closed.Load())
	require.Zero(t, unnamed.Load())
}
