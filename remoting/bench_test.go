package remoting_test

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
)

// pump keeps window requests in flight on one connection and returns when n were answered. It allocates nothing per
// request, so that what b.ReportAllocs shows is the server's.
func pump(tb testing.TB, addr string, frame []byte, n, window int) {
	tb.Helper()
	nc, err := new(net.Dialer).DialContext(tb.Context(), "tcp", addr)
	require.NoError(tb, err)
	defer func() { _ = nc.Close() }() // nothing is lost
	in := bufio.NewReaderSize(nc, 64<<10)
	out := make([]byte, 0, len(frame)*window)
	var head [4]byte
	for sent, got := 0, 0; got < n; {
		out = out[:0]
		for sent < n && sent-got < window {
			out = append(out, frame...)
			sent++
		}
		if len(out) > 0 {
			if _, err := nc.Write(out); err != nil {
				tb.Error(err)
				return
			}
		}
		for first := true; got < sent && (first || in.Buffered() > 4); first = false {
			if _, err := io.ReadFull(in, head[:]); err != nil {
				tb.Error(err)
				return
			}
			if _, err := in.Discard(int(binary.BigEndian.Uint32(head[:]))); err != nil {
				tb.Error(err)
				return
			}
			got++
		}
	}
}

// benchmarkEcho answers 1 KiB with 1 KiB, over several connections with several requests in flight on each.
func benchmarkEcho(b *testing.B, code protocol.RequestCode, connections, window int) {
	b.Helper()
	f, l := newFixture(), listen(b)
	serve(b, f.server(b, remoting.ServerConfig{}), l)
	frame := protocol.AppendFrame(nil, &protocol.Command{
		Code: int32(code), Version: 479, Body: make([]byte, 1024),
		Ext: protocol.ExtFields(nil).Add("a", "producers").Add("b", "TopicTest").Add("e", "2").Add("name", "n"),
	})
	pump(b, l.Addr().String(), frame, 1000, window)
	b.SetBytes(1024)
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for range connections {
		wg.Go(func() { pump(b, l.Addr().String(), frame, b.N/connections+1, window) })
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
}

func BenchmarkInlineEcho1x64(b *testing.B) { benchmarkEcho(b, codeEcho, 1, 64) }
func BenchmarkInlineEcho4x64(b *testing.B) { benchmarkEcho(b, codeEcho, 4, 64) }
func BenchmarkInlineEcho64x1(b *testing.B) { benchmarkEcho(b, codeEcho, 64, 1) }
func BenchmarkInlineEcho1x1(b *testing.B)  { benchmarkEcho(b, codeEcho, 1, 1) }
func BenchmarkHandleEcho1x64(b *testing.B) { benchmarkEcho(b, codeHandle, 1, 64) }

// BenchmarkCompletedElsewhere1x64 answers from one other goroutine, in batches, as the stage behind a group commit does.
func BenchmarkCompletedElsewhere1x64(b *testing.B) {
	f, l := newFixture(), listen(b)
	serve(b, f.server(b, remoting.ServerConfig{}), l)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var batch remoting.Batch
		var reply remoting.Reply
		for x := range f.later {
			batch.Respond(x, &reply)
			if len(f.later) == 0 {
				batch.Flush()
			}
		}
	}()
	frame := protocol.AppendFrame(nil, &protocol.Command{Code: int32(codeLater), Version: 479, Body: make([]byte, 1024)})
	pump(b, l.Addr().String(), frame, 1000, 64)
	b.ReportAllocs()
	b.ResetTimer()
	pump(b, l.Addr().String(), frame, b.N, 64)
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
	close(f.later)
	<-done
}

func TestInlineRequestsAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("pools are not kept under the race detector")
	}
	f, l := newFixture(), listen(t)
	serve(t, f.server(t, remoting.ServerConfig{}), l)
	frame := protocol.AppendFrame(nil, &protocol.Command{Code: int32(codeEcho), Version: 479, Body: make([]byte, 1024)})
	pump(t, l.Addr().String(), frame, 5000, 64)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const requests = 20000
	pump(t, l.Addr().String(), frame, requests, 64)
	runtime.ReadMemStats(&after)
	// A new connection and what the collector takes from the pools cost some; one per request would be 20,000.
	require.Less(t, after.Mallocs-before.Mallocs, uint64(requests/20))
}

func TestIdleConnectionsAreSmall(t *testing.T) {
	f, l := newFixture(), listen(t)
	s := f.server(t, remoting.ServerConfig{})
	serve(t, s, l)
	const connections = 200
	measure := func() uint64 {
		runtime.GC()
		runtime.GC() // twice empties the pools
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	before := measure()
	conns := make([]*rawConn, connections)
	for i := range conns {
		conns[i] = dial(t, l)
		conns[i].write(request(codeEcho, string(make([]byte, 100_000)))) // has been busy, and is then idle
		conns[i].read()
	}
	after := measure()
	perConnection := (int64(after) - int64(before)) / connections // both ends of it
	t.Logf("%d bytes", perConnection)
	require.Less(t, perConnection, int64(24<<10))
	for _, c := range conns {
		require.NoError(t, c.Close())
	}
}
