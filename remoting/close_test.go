package remoting

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Two close a connection at once: one has claimed it and not yet named its cause when the reader, which met the end of
// the stream, is through. The reader waits for the cause; without that it met a nil one and ended the process.
func TestAConnectionClosedByTwoAtOnceHasACause(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	peer, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
	require.NoError(t, err)
	nc, err := l.Accept()
	require.NoError(t, err)

	closed := make(chan error, 1)
	end := newEndpoint(Limits{}, nil, nil)
	end.onClose = func(c *Conn) { closed <- context.Cause(c.Context()) }
	c := newConn(t.Context(), end, nc)
	errGone := errors.New("gone")
	require.True(t, c.out.close(errGone), "the first closer has claimed the connection")
	require.NoError(t, peer.Close())
	served := make(chan any, 1)
	go func() {
		defer func() { served <- recover() }()
		c.serve()
	}()
	select {
	case failed := <-served:
		t.Fatalf("served to the end without a cause: %v", failed)
	case <-time.After(200 * time.Millisecond): // it waits, as it should
	}
	c.cancel(errGone)
	require.Nil(t, <-served)
	require.ErrorIs(t, <-closed, errGone)
	require.NoError(t, errors.Join(nc.Close(), l.Close()))
}
