package remoting_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/memnet"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
)

// inBubble runs a server on host "broker" and a client on host "app" on fake time.
func inBubble(t *testing.T, fn func(t *testing.T, n *memnet.Network, f *fixture, c *remoting.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n, f := memnet.New(), newFixture()
		l, err := n.Listen("broker:1")
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		server := f.server(t, remoting.ServerConfig{})
		go func() { served <- server.Serve(ctx, l) }()
		c := remoting.NewClient(remoting.ClientConfig{Dial: n.Dialer("app")}, nil)
		fn(t, n, f, c)
		require.NoError(t, c.Close())
		cancel()
		require.NoError(t, <-served)
	})
}

func TestACutLinkTimesOutAndAResetReconnects(t *testing.T) {
	inBubble(t, func(t *testing.T, n *memnet.Network, _ *fixture, c *remoting.Client) {
		t.Helper()
		echo := func(patience time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_, err := c.Invoke(ctx, "broker:1", request(codeEcho, "x"))
			return err
		}
		require.NoError(t, echo(time.Second))
		n.CutOneWay("broker", "app")
		start := time.Now()
		require.ErrorIs(t, echo(3*time.Second), context.DeadlineExceeded)
		require.Equal(t, 3*time.Second, time.Since(start))
		n.Heal("broker", "app")
		require.NoError(t, echo(time.Second), "the late answer is dropped, the connection goes on")
		n.Reset("broker", "app")
		synctest.Wait()
		require.NoError(t, echo(time.Second))
		n.Cut("broker", "app")
		n.Reset("broker", "app")
		synctest.Wait()
		start = time.Now()
		require.ErrorIs(t, echo(time.Minute), context.DeadlineExceeded)
		require.Equal(t, 3*time.Second, time.Since(start), "connecting has a bound of its own")
		n.Heal("broker", "app")
		require.NoError(t, echo(time.Second))
	})
}

func TestIdleClientConnectionIsClosedAndOpenedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *memnet.Network, f *fixture, c *remoting.Client) {
		t.Helper()
		_, err := c.Invoke(t.Context(), "broker:1", request(codeEcho, "x"))
		require.NoError(t, err)
		time.Sleep(3 * time.Minute) // fake
		require.Len(t, f.closed, 1)
		_, err = c.Invoke(t.Context(), "broker:1", request(codeEcho, "x"))
		require.NoError(t, err)
	})
}

func TestGoAwayIsRetriedOnceOnANewConnection(t *testing.T) {
	var conns, asked atomic.Int64
	seen := map[uint64]bool{}
	router, err := remoting.NewRouter([]remoting.Route{
		remoting.HandleCode(1, remoting.Data, func(_ context.Context, c remoting.Call[empty]) (*remoting.Reply, error) {
			if asked.Add(1); !seen[c.Conn.ID()] {
				seen[c.Conn.ID()] = true
				conns.Add(1)
			}
			if conns.Load() == 1 || string(c.Body) == "never" {
				return nil, protocol.Errorf(protocol.GoAway, "leaving")
			}
			return nil, nil
		}),
	})
	require.NoError(t, err)
	l := listen(t)
	serve(t, remoting.NewServer(remoting.ServerConfig{}, router, nil, nil, nil), l)
	c := newClient(t, remoting.ClientConfig{})
	answer, err := c.Invoke(t.Context(), l.Addr().String(), request(1, ""))
	require.NoError(t, err)
	require.Equal(t, int32(protocol.Success), answer.Code)
	require.Equal(t, int64(2), conns.Load())
	answer, err = c.Invoke(t.Context(), l.Addr().String(), request(1, "never"))
	require.NoError(t, err)
	require.Equal(t, int32(protocol.GoAway), answer.Code)
	require.Equal(t, int64(4), asked.Load())
}

func TestNobodyAnswersTheDoor(t *testing.T) {
	l := listen(t)
	addr := l.Addr().String()
	require.NoError(t, l.Close())
	c := remoting.NewClient(remoting.ClientConfig{}, nil)
	_, err := c.Invoke(t.Context(), addr, request(codeEcho, "x"))
	require.ErrorContains(t, err, "connect to "+addr)
	require.Error(t, c.InvokeOneway(t.Context(), addr, request(codeEcho, "x")))
	require.NoError(t, c.Close())
	_, err = c.Invoke(t.Context(), addr, request(codeEcho, "x"))
	require.ErrorIs(t, err, remoting.ErrStopped)
}

func TestRequestsOfTheClientMustFitAFrame(t *testing.T) {
	f, l := newFixture(), listen(t)
	serve(t, f.server(t, remoting.ServerConfig{}), l)
	c := newClient(t, remoting.ClientConfig{Serialization: protocol.RocketMQ})
	_, err := c.Invoke(t.Context(), l.Addr().String(), &protocol.Command{Code: int32(codeEcho), Body: make([]byte, protocol.FrameBytesMax)})
	require.ErrorIs(t, err, protocol.ErrFrame)
	answer, err := c.Invoke(t.Context(), l.Addr().String(), protocol.NewRequest(&echoHeader{Name: "n"}, nil))
	require.NoError(t, err, "the connection goes on")
	require.Equal(t, int32(protocol.Success), answer.Code)
}
