package remoting_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Request codes of the test server; far from real ones.
const (
	codeEcho   protocol.RequestCode = 40001 // inline, answers with the body
	codeHandle protocol.RequestCode = 40002 // goroutine, answers with the body and header
	codePanic  protocol.RequestCode = 40003
	codeFail   protocol.RequestCode = 40004
	codeHold   protocol.RequestCode = 40005 // yields and waits until released
	codeMain   protocol.RequestCode = 40006 // main port only
	codeParts  protocol.RequestCode = 40007
	codeLater  protocol.RequestCode = 40008 // answered by the test
)

type echoHeader struct {
	Name  string `ext:"name,required"`
	Count int32  `ext:"count"`
}

func (*echoHeader) Code() protocol.RequestCode { return codeHandle }

type empty struct{}

// fixture is a server with routes that the tests need.
type fixture struct {
	release chan struct{} // lets held requests go on
	holding atomic.Int64
	later   chan *remoting.Exchange
	parts   func() *remoting.Reply
	closed  chan error
}

func newFixture() *fixture {
	return &fixture{release: make(chan struct{}), later: make(chan *remoting.Exchange, 1000), closed: make(chan error, 10000)}
}

func panicOnPurpose() {
	panic("on purpose") // what the server does then is tested
}

var errPlain = errors.New("plain error")

func (f *fixture) router(tb testing.TB) *remoting.Router {
	tb.Helper()
	r, err := remoting.NewRouter([]remoting.Route{
		remoting.Inline(codeEcho, remoting.Data, func(x *remoting.Exchange) { x.Respond(&remoting.Reply{Body: x.Command.Body}) }),
		remoting.Inline(codeLater, remoting.Data, func(x *remoting.Exchange) { f.later <- x }),
		remoting.Inline(codePanic, remoting.Query, func(*remoting.Exchange) { panicOnPurpose() }),
		remoting.Inline(codeMain, remoting.Query, func(x *remoting.Exchange) { x.Respond(&remoting.Reply{}) }).OnMainPortOnly(),
		remoting.Inline(codeParts, remoting.Data, func(x *remoting.Exchange) { x.Respond(f.parts()) }),
		remoting.Handle(remoting.Query, func(_ context.Context, c remoting.Call[echoHeader]) (*remoting.Reply, error) {
			return &remoting.Reply{Header: c.Header, Body: c.Body, Remark: "done"}, nil
		}),
		remoting.HandleCode(codeFail, remoting.Query, func(_ context.Context, c remoting.Call[empty]) (*remoting.Reply, error) {
			switch string(c.Body) {
			case "plain":
				return nil, errPlain
			case "wire":
				return nil, fmt.Errorf("wrapped: %w", protocol.Errorf(protocol.TopicNotExist, "no %s", "topic"))
			case "panic":
				panicOnPurpose()
			case "silent":
				return remoting.NoReply, nil
			}
			return nil, nil
		}),
		remoting.HandleCode(codeHold, remoting.Admin, func(ctx context.Context, c remoting.Call[empty]) (*remoting.Reply, error) {
			if string(c.Body) == "yield" {
				if !c.Yield() {
					return &remoting.Reply{Remark: "no hold"}, nil
				}
				defer c.Resume()
			}
			f.holding.Add(1)
			defer f.holding.Add(-1)
			select {
			case <-f.release:
				return &remoting.Reply{Remark: "released"}, nil
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}),
	})
	require.NoError(tb, err)
	return r
}

func (f *fixture) server(tb testing.TB, cfg remoting.ServerConfig) *remoting.Server {
	tb.Helper()
	return remoting.NewServer(cfg, f.router(tb), func(err error) *remoting.Reply {
		if errors.Is(err, errPlain) {
			return &remoting.Reply{Code: protocol.QueryNotFound, Remark: "mapped"}
		}
		return nil
	}, func(c *remoting.Conn) { f.closed <- context.Cause(c.Context()) }, slog.New(slog.DiscardHandler))
}

// serve runs s on l until the test ends.
func serve(tb testing.TB, s *remoting.Server, l net.Listener) (stop func()) {
	tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(tb, <-done)
	})
	tb.Cleanup(stop)
	return stop
}

func listen(tb testing.TB) net.Listener {
	tb.Helper()
	l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	return l
}

func newClient(tb testing.TB, cfg remoting.ClientConfig) *remoting.Client {
	tb.Helper()
	c := remoting.NewClient(cfg, nil)
	tb.Cleanup(func() { require.NoError(tb, c.Close()) })
	return c
}

func request(code protocol.RequestCode, body string) *protocol.Command {
	return &protocol.Command{Code: int32(code), Version: protocol.ServerVersion, Body: []byte(body)}
}

// overEveryNetwork runs fn against a server over TCP and over the in-process network.
func overEveryNetwork(t *testing.T, cfg remoting.ServerConfig, fn func(t *testing.T, f *fixture, c *remoting.Client, addr string)) {
	t.Helper()
	t.Run("tcp", func(t *testing.T) {
		f, l := newFixture(), listen(t)
		serve(t, f.server(t, cfg), l)
		fn(t, f, newClient(t, remoting.ClientConfig{}), l.Addr().String())
	})
	t.Run("loopback", func(t *testing.T) {
		f, network := newFixture(), remoting.NewLoopback()
		l, err := network.Listen("127.0.0.1:1")
		require.NoError(t, err)
		serve(t, f.server(t, cfg), l)
		fn(t, f, newClient(t, remoting.ClientConfig{Dial: network.Dial}), "127.0.0.1:1")
	})
}

func TestRequestsAreAnswered(t *testing.T) {
	overEveryNetwork(t, remoting.ServerConfig{}, func(t *testing.T, _ *fixture, c *remoting.Client, addr string) {
		t.Helper()
		ctx := t.Context()
		for _, kind := range []protocol.Serialization{protocol.JSON, protocol.RocketMQ} {
			cmd := request(codeEcho, "hello")
			cmd.Serialization = kind
			answer, err := c.Invoke(ctx, addr, cmd)
			require.NoError(t, err)
			require.Equal(t, "hello", string(answer.Body))
			require.True(t, answer.Response())
			require.Equal(t, protocol.Go, answer.Language)

			var out echoHeader
			req := protocol.NewRequest(&echoHeader{Name: "n", Count: 7}, []byte("body"))
			req.Serialization = kind
			answer, err = c.Invoke(ctx, addr, req)
			require.NoError(t, err)
			require.Equal(t, "done", string(answer.Remark))
			require.Equal(t, "body", string(answer.Body))
			require.NoError(t, protocol.DecodeHeader(answer.Ext, &out))
			require.Equal(t, echoHeader{"n", 7}, out)
		}
		var out echoHeader
		body, err := remoting.InvokeTyped(ctx, c, addr, &echoHeader{Name: "typed"}, []byte("b"), &out)
		require.NoError(t, err)
		require.Equal(t, "b", string(body))
		require.Equal(t, "typed", out.Name)
		big := bytes.Repeat([]byte("0123456789abcdef"), 900_000) // 14 MB
		answer, err := c.Invoke(ctx, addr, request(codeEcho, string(big)))
		require.NoError(t, err)
		require.True(t, bytes.Equal(big, answer.Body))
	})
}

func TestFailuresHaveTheirCodes(t *testing.T) {
	overEveryNetwork(t, remoting.ServerConfig{Fast: true}, func(t *testing.T, _ *fixture, c *remoting.Client, addr string) {
		t.Helper()
		missing := protocol.NewRequest(&echoHeader{}, nil)
		missing.Ext = nil
		for _, tc := range []struct {
			cmd    *protocol.Command
			code   protocol.ResponseCode
			remark string
		}{
			{request(codeFail, ""), protocol.Success, ""},
			{request(codeFail, "plain"), protocol.QueryNotFound, "mapped"},
			{request(codeFail, "wire"), protocol.TopicNotExist, "no topic"},
			{request(codeFail, "panic"), protocol.SystemError, "internal error"},
			{request(codePanic, ""), protocol.SystemError, "internal error"},
			{request(49999, ""), protocol.RequestCodeNotSupported, " request type 49999 not supported"},
			{request(codeMain, ""), protocol.RequestCodeNotSupported, " request type 40006 not supported"},
			{missing, protocol.InvalidParameter, "the header field name is missing"},
		} {
			answer, err := c.Invoke(t.Context(), addr, tc.cmd)
			require.NoError(t, err)
			require.Equal(t, int32(tc.code), answer.Code, string(tc.cmd.Body))
			require.Equal(t, tc.remark, string(answer.Remark))
		}
		_, err := remoting.InvokeTyped(t.Context(), c, addr, &echoHeader{Name: "n"}, nil, nil)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err = c.Invoke(ctx, addr, request(codeFail, "silent"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestOnewayRequestsGetNoAnswer(t *testing.T) {
	f, l := newFixture(), listen(t)
	serve(t, f.server(t, remoting.ServerConfig{}), l)
	c := dial(t, l)
	released := 0
	f.parts = func() *remoting.Reply {
		return &remoting.Reply{Parts: [][]byte{[]byte("x")}, Done: func() { released++ }}
	}
	for _, code := range []protocol.RequestCode{codeEcho, codeParts, codePanic, 49999} {
		cmd := request(code, "x")
		cmd.Flag = protocol.FlagOneway
		c.write(cmd)
	}
	last := request(codeEcho, "last")
	last.Opaque = 99
	c.write(last)
	require.Equal(t, int32(99), c.read().Opaque)
	require.Equal(t, 1, released)
}

// rawConn speaks frames over a plain socket.
type rawConn struct {
	t testing.TB
	net.Conn
}

func dial(tb testing.TB, l net.Listener) *rawConn {
	tb.Helper()
	nc, err := new(net.Dialer).DialContext(tb.Context(), "tcp", l.Addr().String())
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = nc.Close() }) // may be closed already
	require.NoError(tb, nc.SetDeadline(time.Now().Add(20*time.Second)))
	return &rawConn{tb, nc}
}

func (c *rawConn) write(cmds ...*protocol.Command) {
	c.t.Helper()
	var b []byte
	for _, cmd := range cmds {
		b = protocol.AppendFrame(b, cmd)
	}
	_, err := c.Write(b)
	require.NoError(c.t, err)
}

func (c *rawConn) read() *protocol.Command {
	c.t.Helper()
	cmd, err := c.tryRead()
	require.NoError(c.t, err)
	return cmd
}

func (c *rawConn) tryRead() (*protocol.Command, error) {
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(c, b); err != nil {
		return nil, err
	}
	cmd := new(protocol.Command)
	return cmd, protocol.DecodeFrame(b, cmd)
}

func TestFramesMayArriveInAnyPieces(t *testing.T) {
	f, l := newFixture(), listen(t)
	serve(t, f.server(t, remoting.ServerConfig{}), l)
	c := dial(t, l)
	var stream []byte
	const frames = 40
	for i := range int32(frames) {
		cmd := request(codeEcho, string(bytes.Repeat([]byte{byte('a' + i)}, int(i*i*97%9000))))
		cmd.Opaque = i
		stream = protocol.AppendFrame(stream, cmd)
	}
	go func() {
		rest := stream
		for n := 1; len(rest) > 0; n = n*7%1999 + 1 {
			n = min(n, len(rest))
			if _, err := c.Write(rest[:n]); err != nil {
				return
			}
			rest = rest[n:]
		}
	}()
	for i := range int32(frames) {
		answer := c.read()
		require.Equal(t, i, answer.Opaque)
		require.Len(t, answer.Body, int(i*i*97%9000))
		require.Equal(t, int(i*i*97%9000), bytes.Count(answer.Body, []byte{byte('a' + i)}))
	}
}

func TestPartsAreWrittenInOrderAndReleasedOnce(t *testing.T) {
	overEveryNetwork(t, remoting.ServerConfig{}, func(t *testing.T, f *fixture, c *remoting.Client, addr string) {
		t.Helper()
		var released atomic.Int64
		f.parts = func() *remoting.Reply {
			return &remoting.Reply{
				Parts: [][]byte{[]byte("one,"), nil, bytes.Repeat([]byte("2"), 300_000), []byte(",three")},
				Done:  func() { released.Add(1) },
			}
		}
		want := "one," + string(bytes.Repeat([]byte("2"), 300_000)) + ",three"
		const requests = 50
		var wg sync.WaitGroup
		for range requests {
			wg.Go(func() {
				answer, err := c.Invoke(t.Context(), addr, request(codeParts, ""))
				if err != nil || string(answer.Body) != want {
					t.Errorf("wrong answer: %v", err)
				}
			})
		}
		wg.Wait()
		require.Eventually(t, func() bool { return released.Load() == requests }, 5*time.Second, time.Millisecond)
		f.parts = func() *remoting.Reply {
			return &remoting.Reply{Parts: [][]byte{make([]byte, protocol.FrameBytesMax)}, Done: func() { released.Add(1) }}
		}
		answer, err := c.Invoke(t.Context(), addr, request(codeParts, ""))
		require.NoError(t, err)
		require.Equal(t, int32(protocol.SystemError), answer.Code)
		require.Contains(t, string(answer.Remark), "larger than a frame")
		require.Eventually(t, func() bool { return released.Load() == requests+1 }, 5*time.Second, time.Millisecond)
	})
}

func TestAdmissionBoundsWorkAndHoldsApart(t *testing.T) {
	f, network := newFixture(), remoting.NewLoopback()
	l, err := network.Listen("127.0.0.1:1")
	require.NoError(t, err)
	serve(t, f.server(t, remoting.ServerConfig{Limits: remoting.Limits{AdminMax: 2, HoldsMax: 3}}), l)
	c := newClient(t, remoting.ClientConfig{Dial: network.Dial})
	results := make(chan string, 100)
	invoke := func(body string) {
		go func() {
			answer, err := c.Invoke(context.Background(), "127.0.0.1:1", request(codeHold, body))
			if err != nil {
				results <- err.Error()
				return
			}
			results <- string(answer.Remark)
		}()
	}
	holding := func(n int64) {
		t.Helper()
		require.Eventually(t, func() bool { return f.holding.Load() == n }, 5*time.Second, time.Millisecond)
	}
	for held := range int64(3) { // more than AdminMax: those that wait do not count as work
		invoke("yield")
		holding(held + 1)
	}
	invoke("yield")
	require.Equal(t, "no hold", <-results)
	invoke("work")
	invoke("work")
	holding(5)
	invoke("work")
	require.Equal(t, "[OVERLOAD]system busy, start flow control for a while", <-results)
	close(f.release)
	for range 5 {
		require.Equal(t, "released", <-results)
	}
	invoke("work")
	require.Equal(t, "released", <-results)
}

func TestClosedConnectionFailsAllPendingRequestsAtOnce(t *testing.T) {
	overEveryNetwork(t, remoting.ServerConfig{}, func(t *testing.T, f *fixture, c *remoting.Client, addr string) {
		t.Helper()
		const requests = 20
		errs := make(chan error, requests)
		for range requests {
			go func() {
				_, err := c.Invoke(context.Background(), addr, request(codeLater, ""))
				errs <- err
			}()
		}
		var asked []*remoting.Exchange
		for range requests {
			asked = append(asked, <-f.later)
		}
		asked[0].Conn.Close(errPlain)
		for range requests {
			require.ErrorIs(t, <-errs, remoting.ErrClosed)
		}
		require.ErrorIs(t, <-f.closed, errPlain)
		for _, x := range asked {
			x.Respond(&remoting.Reply{}) // an answer to nobody is dropped
		}
		answer, err := c.Invoke(context.Background(), addr, request(codeEcho, "again"))
		require.NoError(t, err, "the client connects anew on demand")
		require.Equal(t, "again", string(answer.Body))
	})
}

func TestServerSendsRequestsToTheClient(t *testing.T) {
	network, f := remoting.NewLoopback(), newFixture()
	l, err := network.Listen("127.0.0.1:1")
	require.NoError(t, err)
	serve(t, f.server(t, remoting.ServerConfig{Limits: remoting.Limits{InvokesMax: 2}}), l)
	told := make(chan string, 1)
	clientRouter, err := remoting.NewRouter([]remoting.Route{
		remoting.HandleCode(307, remoting.Query, func(_ context.Context, c remoting.Call[empty]) (*remoting.Reply, error) {
			return &remoting.Reply{Body: append([]byte("info for "), c.Body...)}, nil
		}),
		remoting.HandleCode(40, remoting.Query, func(_ context.Context, c remoting.Call[empty]) (*remoting.Reply, error) {
			told <- string(c.Body)
			return nil, nil
		}),
		remoting.Inline(308, remoting.Query, func(x *remoting.Exchange) { x.Respond(remoting.NoReply) }),
	})
	require.NoError(t, err)
	c := newClient(t, remoting.ClientConfig{Dial: network.Dial, Router: clientRouter})
	go func() { _, _ = c.Invoke(context.Background(), "127.0.0.1:1", request(codeLater, "")) }() // ends with the client
	x := <-f.later

	answer, err := x.Conn.Invoke(t.Context(), request(307, "broker"))
	require.NoError(t, err)
	require.Equal(t, "info for broker", string(answer.Body))
	require.NoError(t, x.Conn.InvokeOneway(request(40, "changed")))
	require.Equal(t, "changed", <-told)

	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error, 3)
	for range 3 {
		go func() {
			_, err := x.Conn.Invoke(ctx, request(308, ""))
			errs <- err
		}()
	}
	require.ErrorIs(t, <-errs, remoting.ErrTooManyInvokes)
	cancel()
	require.ErrorIs(t, <-errs, context.Canceled)
	require.ErrorIs(t, <-errs, context.Canceled)
	x.Respond(&remoting.Reply{})
}

func TestServerDrainsBeforeItStops(t *testing.T) {
	for _, version := range []int32{protocol.Version5_3_1, protocol.Version5_3_1 + 1} {
		f, l := newFixture(), listen(t)
		stop := serve(t, f.server(t, remoting.ServerConfig{}), l)
		c := dial(t, l)
		c.write(request(codeHold, ""))
		require.Eventually(t, func() bool { return f.holding.Load() == 1 }, 5*time.Second, time.Millisecond)
		stopped := make(chan struct{})
		go func() { stop(); close(stopped) }()
		require.Eventually(t, func() bool {
			nc, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
			if err == nil {
				_ = nc.Close() // only wanted to know
			}
			return err != nil
		}, 5*time.Second, time.Millisecond, "no connection is accepted any more")
		cmd := request(codeEcho, "late")
		cmd.Version, cmd.Opaque = version, 5
		require.Eventually(t, func() bool {
			c.write(cmd)
			answer := c.read()
			return version <= protocol.Version5_3_1 || answer.Code == int32(protocol.GoAway)
		}, 5*time.Second, time.Millisecond)
		close(f.release)
		require.Equal(t, "released", string(c.read().Remark))
		_, err := c.tryRead()
		require.ErrorIs(t, err, io.EOF)
		<-stopped
	}
}

func TestHostileBytesCloseOnlyTheirConnection(t *testing.T) {
	f, l := newFixture(), listen(t)
	serve(t, f.server(t, remoting.ServerConfig{}), l)
	good := dial(t, l)
	for name, tc := range map[string]struct {
		bytes []byte
		cause string
	}{
		"http1":          {[]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "looks like HTTP"},
		"http post":      {[]byte("POST / HTTP/1.1\r\n"), "looks like HTTP"},
		"http2":          {[]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "looks like HTTP/2"},
		"tls hello":      {[]byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), "looks like TLS"},
		"redis":          {[]byte("*1\r\n$4\r\nPING\r\n"), "looks like Redis"},
		"length 0":       {make([]byte, 8), "frame length 0"},
		"length 3":       {[]byte{0, 0, 0, 3, 0, 0, 0, 1}, "frame length 3"},
		"length -1":      {bytes.Repeat([]byte{0xff}, 8), "frame length -1"},
		"length max":     {[]byte{0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 1}, "frame length 2147483647"},
		"header > frame": {[]byte{0, 0, 0, 10, 0, 0, 0, 20}, "header length 20"},
		"bad json":       {append([]byte{0, 0, 0, 6, 0, 0, 0, 2}, "xx"...), "JSON header"},
		"proxy garbage":  {[]byte("PROXY TCP4 nonsense\r\n"), "PROXY header"},
		"proxy endless":  {append([]byte("PROXY "), bytes.Repeat([]byte("x"), 200)...), "PROXY header"},
		"proxy v2 huge":  {[]byte("\r\n\r\n\x00\r\nQUIT\n\x21\x11\xff\xff"), "PROXY header"},
	} {
		c := dial(t, l)
		_, err := c.Write(tc.bytes)
		require.NoError(t, err, name)
		_, err = c.tryRead()
		require.Error(t, err, name)
		require.NotErrorIs(t, err, context.DeadlineExceeded, name)
		require.ErrorContains(t, <-f.closed, tc.cause, name)
	}
	good.write(request(codeEcho, "still here"))
	require.Equal(t, "still here", string(good.read().Body))
}

func TestProxyHeaderNamesTheClient(t *testing.T) {
	f, l := newFixture(), listen(t)
	serve(t, f.server(t, remoting.ServerConfig{}), l)
	for header, want := range map[string]string{
		"PROXY TCP4 192.0.2.7 198.51.100.1 5678 10911\r\n":  "192.0.2.7:5678",
		"PROXY TCP6 2001:db8::7 2001:db8::1 5678 10911\r\n": "[2001:db8::7]:5678",
		"PROXY UNKNOWN\r\n": "",
		"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0f\xc0\x00\x02\x08\xc6\x33\x64\x01\x16\x2e\x2a\x9f\x01\x02\x03": "192.0.2.8:5678",
		"\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00": "",
	} {
		c := dial(t, l)
		_, err := c.Write(protocol.AppendFrame([]byte(header), request(codeLater, "")))
		require.NoError(t, err)
		x := <-f.later
		if want == "" {
			want = c.Conn.LocalAddr().String()
		}
		require.Equal(t, want, x.Conn.RemoteAddr().String())
		x.Respond(&remoting.Reply{Remark: "ok"})
		require.Equal(t, "ok", string(c.read().Remark))
	}
}

func TestSlowReaderIsClosedWithACauseAndBoundedMemory(t *testing.T) {
	f, l := newFixture(), listen(t)
	serve(t, f.server(t, remoting.ServerConfig{Limits: remoting.Limits{WriteQueueBytesMax: 8 << 20}}), l)
	c := dial(t, l)
	var batch remoting.Batch
	for range 100 {
		c.write(request(codeLater, ""))
	}
	var released atomic.Int64
	body := make([]byte, 1<<20)
	for range 100 {
		batch.Respond(<-f.later, &remoting.Reply{Parts: [][]byte{body}, Done: func() { released.Add(1) }})
		batch.Flush()
	}
	require.ErrorIs(t, <-f.closed, remoting.ErrSlowReader)
	require.Eventually(t, func() bool { return released.Load() == 100 }, 5*time.Second, time.Millisecond)
}

func TestServerStopsReadingWhileAnswersPileUp(t *testing.T) {
	f, l := newFixture(), listen(t)
	serve(t, f.server(t, remoting.ServerConfig{Limits: remoting.Limits{WriteQueueBytesPause: 1 << 20}}), l)
	c := dial(t, l)
	const requests = 2000
	body := string(make([]byte, 64<<10)) // 128 MB in all, far more than the queue limit
	go func() {
		for i := range int32(requests) {
			cmd := request(codeEcho, body)
			cmd.Opaque = i
			if _, err := c.Write(protocol.AppendFrame(nil, cmd)); err != nil {
				return
			}
		}
	}()
	for i := range int32(requests) {
		require.Equal(t, i, c.read().Opaque)
	}
}

func TestTimeLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		send  []byte
		cause error
		after time.Duration
	}{
		"idle":          {protocol.AppendFrame(nil, request(codeEcho, "x")), remoting.ErrIdle, 120 * time.Second},
		"silent":        {nil, remoting.ErrIdle, 120 * time.Second},
		"partial frame": {[]byte{0, 0}, remoting.ErrSlowWriter, 60 * time.Second},
		"frame and a piece of another": {
			append(protocol.AppendFrame(nil, request(codeEcho, "x")), 0, 0, 1), remoting.ErrSlowWriter, 60 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, network := newFixture(), remoting.NewLoopback()
				l, err := network.Listen("127.0.0.1:1")
				require.NoError(t, err)
				ctx, cancel := context.WithCancel(t.Context())
				served := make(chan error, 1)
				server := f.server(t, remoting.ServerConfig{})
				go func() { served <- server.Serve(ctx, l) }()
				nc, err := network.Dial(ctx, "127.0.0.1:1")
				require.NoError(t, err)
				go func() { _, _ = io.Copy(io.Discard, nc) }() // ends with the connection
				start := time.Now()
				if len(tc.send) > 0 {
					_, err = nc.Write(tc.send)
					require.NoError(t, err)
				}
				require.ErrorIs(t, <-f.closed, tc.cause)
				require.GreaterOrEqual(t, time.Since(start), tc.after)
				require.LessOrEqual(t, time.Since(start), tc.after+30*time.Second)
				require.NoError(t, nc.Close())
				cancel()
				require.NoError(t, <-served)
			})
		})
	}
}

func TestPeerThatReadsNothingIsClosedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, network := newFixture(), remoting.NewLoopback()
		l, err := network.Listen("127.0.0.1:1")
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		server := f.server(t, remoting.ServerConfig{})
		go func() { served <- server.Serve(ctx, l) }()
		nc, err := network.Dial(ctx, "127.0.0.1:1")
		require.NoError(t, err)
		_, err = nc.Write(protocol.AppendFrame(nil, request(codeEcho, "x")))
		require.NoError(t, err)
		require.ErrorIs(t, <-f.closed, remoting.ErrSlowReader)
		require.NoError(t, nc.Close())
		cancel()
		require.NoError(t, <-served)
	})
}

func TestConnectionsAreBounded(t *testing.T) {
	f, l := newFixture(), listen(t)
	s := f.server(t, remoting.ServerConfig{ConnectionsMax: 2})
	serve(t, s, l)
	a, b := dial(t, l), dial(t, l)
	for _, c := range []*rawConn{a, b} {
		c.write(request(codeEcho, "x"))
		c.read()
	}
	_, err := dial(t, l).tryRead()
	require.Error(t, err)
	require.NoError(t, a.Close())
	require.Eventually(t, func() bool { return s.Connections() == 1 }, 5*time.Second, time.Millisecond)
	c := dial(t, l)
	c.write(request(codeEcho, "x"))
	c.read()
}

// flakyListener fails a few times as if no file descriptor were free.
type flakyListener struct {
	net.Listener
	failures int
}

func (l *flakyListener) Accept() (net.Conn, error) {
	if l.failures > 0 {
		l.failures--
		return nil, errors.New("accept: too many open files")
	}
	return l.Listener.Accept()
}

func TestAcceptFailuresDoNotEndTheServer(t *testing.T) {
	f, l := newFixture(), listen(t)
	serve(t, f.server(t, remoting.ServerConfig{}), &flakyListener{l, 3})
	c := dial(t, l)
	c.write(request(codeEcho, "x"))
	require.Equal(t, "x", string(c.read().Body))
}

func TestRouterRefusesDoubleRegistration(t *testing.T) {
	route := remoting.Inline(10, remoting.Data, func(*remoting.Exchange) {})
	_, err := remoting.NewRouter([]remoting.Route{route}, []remoting.Route{route})
	require.ErrorContains(t, err, "request code 10 is routed twice")
	r, err := remoting.NewRouter([]remoting.Route{route})
	require.NoError(t, err)
	require.True(t, r.Serves(10))
	require.False(t, r.Serves(11))
	require.False(t, r.Serves(200050))
}
