package memnet_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/memnet"
)

// connected returns both ends of a connection from host a to host b.
func connected(t *testing.T, n *memnet.Network) (a, b net.Conn) {
	t.Helper()
	l, err := n.Listen("b:1")
	require.NoError(t, err)
	accepted := make(chan net.Conn)
	go func() {
		c, err := l.Accept()
		if err != nil {
			c = nil
		}
		accepted <- c
	}()
	a, err = n.Dialer("a")(t.Context(), "b:1")
	require.NoError(t, err)
	b = <-accepted
	require.NotNil(t, b)
	require.NoError(t, l.Close())
	require.Equal(t, "b:1", a.RemoteAddr().String())
	require.Equal(t, a.LocalAddr(), b.RemoteAddr())
	return a, b
}

func write(t *testing.T, c net.Conn, text string) {
	t.Helper()
	n, err := c.Write([]byte(text))
	require.NoError(t, err)
	require.Equal(t, len(text), n)
}

func read(t *testing.T, c net.Conn, size int) string {
	t.Helper()
	b := make([]byte, size)
	_, err := io.ReadFull(c, b)
	require.NoError(t, err)
	return string(b)
}

func closeAll(t *testing.T, conns ...net.Conn) {
	t.Helper()
	for _, c := range conns {
		require.NoError(t, c.Close())
	}
}

func TestBytesArriveInOrderAndCloseIsSeenAfterThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := connected(t, memnet.New())
		write(t, a, "one")
		write(t, a, "two")
		require.NoError(t, a.Close())
		all, err := io.ReadAll(b)
		require.NoError(t, err)
		require.Equal(t, "onetwo", string(all))
		_, err = b.Write([]byte("x"))
		require.ErrorIs(t, err, memnet.ErrReset)
		_, err = a.Read(make([]byte, 1))
		require.ErrorIs(t, err, net.ErrClosed)
		closeAll(t, b)
	})
}

func TestACutLinkIsSilentUntilHealed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		a, b := connected(t, n)
		n.CutOneWay("a", "b")
		write(t, a, "lost?")
		require.NoError(t, b.SetReadDeadline(time.Now().Add(time.Hour)))
		_, err := b.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		write(t, b, "back")
		require.Equal(t, "back", read(t, a, 4), "the other way is whole")

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = n.Dialer("a")(ctx, "b:1")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = n.Dialer("b")(ctx, "a:1")
		require.Error(t, err)

		n.Heal("a", "b")
		require.NoError(t, b.SetReadDeadline(time.Time{}))
		require.Equal(t, "lost?", read(t, b, 5))
		closeAll(t, a, b)
	})
}

func TestDelayIsLatencyNotThroughput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		n.Delay("a", "b", 50*time.Millisecond)
		start := time.Now()
		a, b := connected(t, n)
		require.Equal(t, 50*time.Millisecond, time.Since(start))
		start = time.Now()
		for range 100 {
			write(t, a, "x")
		}
		read(t, b, 100)
		require.Equal(t, 50*time.Millisecond, time.Since(start))
		closeAll(t, a, b)
	})
}

func TestResetEndsBothEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		a, b := connected(t, n)
		n.Cut("a", "b")
		write(t, a, "stuck")
		failed := make(chan error)
		go func() {
			_, err := b.Read(make([]byte, 1))
			failed <- err
		}()
		synctest.Wait()
		n.Reset("b", "a")
		require.ErrorIs(t, <-failed, memnet.ErrReset)
		_, err := a.Write([]byte("x"))
		require.ErrorIs(t, err, memnet.ErrReset)
		closeAll(t, a, b)
	})
}

func TestAWriterWaitsForAReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := connected(t, memnet.New())
		payload := bytes.Repeat([]byte("0123456789"), 100_000)
		require.NoError(t, a.SetWriteDeadline(time.Now().Add(time.Second)))
		n, err := a.Write(payload)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Positive(t, n)
		require.Less(t, n, len(payload))
		require.NoError(t, a.SetWriteDeadline(time.Time{}))
		written := make(chan error, 1)
		go func() {
			_, err := a.Write(payload[n:])
			written <- err
		}()
		require.Equal(t, string(payload), read(t, b, len(payload)))
		require.NoError(t, <-written)
		closeAll(t, a, b)
	})
}

func TestNobodyListens(t *testing.T) {
	n := memnet.New()
	_, err := n.Dialer("a")(t.Context(), "b:1")
	require.ErrorIs(t, err, memnet.ErrRefused)
	l, err := n.Listen("b:1")
	require.NoError(t, err)
	_, err = n.Listen("b:1")
	require.ErrorContains(t, err, "in use")
	require.NoError(t, l.Close())
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}
