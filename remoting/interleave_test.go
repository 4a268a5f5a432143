package remoting

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/protocol"
)

// numbered makes a body that says whose it is and proves it: owner, sequence, filler made of both, checksum.
func numbered(owner, sequence uint32, size int) []byte {
	b := binary.BigEndian.AppendUint32(nil, owner)
	b = binary.BigEndian.AppendUint32(b, sequence)
	rnd := rand.New(rand.NewPCG(uint64(owner), uint64(sequence)))
	for range size {
		b = append(b, byte(rnd.Uint32()))
	}
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

func checkNumbered(b []byte, owner, sequence uint32) error {
	if len(b) < 12 || binary.BigEndian.Uint32(b) != owner || binary.BigEndian.Uint32(b[4:]) != sequence {
		return fmt.Errorf("body of another request: %d bytes", len(b))
	}
	end := len(b) - 4
	if crc32.ChecksumIEEE(b[:end]) != binary.BigEndian.Uint32(b[end:]) {
		return fmt.Errorf("body of %d/%d is damaged", owner, sequence)
	}
	return nil
}

// Bodies never mix between connections or requests: read buffers are overwritten after use, so a slice that is used after
// its time is seen as damage. The wire is cut in random pieces; some connections break off in the middle of a frame.
func TestBodiesNeverMixBetweenConnections(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	const codeInline, codeBlocking, codeKept = 50001, 50002, 50003
	kept := make(chan func(), 1000)
	router, err := NewRouter([]Route{
		Inline(codeInline, Data, func(x *Exchange) { x.Respond(&Reply{Body: x.Command.Body}) }),
		Inline(codeKept, Data, func(x *Exchange) {
			own := bytes.Clone(x.Command.Body)
			kept <- func() { x.Respond(&Reply{Parts: [][]byte{own[:len(own)/2], own[len(own)/2:]}}) }
		}),
		HandleCode(codeBlocking, Data, func(_ context.Context, c Call[struct{}]) (*Reply, error) {
			return &Reply{Body: c.Body, Ext: c.Command.Ext}, nil
		}),
	})
	require.NoError(t, err)
	s := NewServer(ServerConfig{}, router, nil, nil, slog.New(slog.DiscardHandler))
	s.end.poison = true
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		for respond := range kept {
			respond()
		}
	}()

	var wg sync.WaitGroup
	for owner := range uint32(8) {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(owner)))
			for round := range 6 {
				if err := interleave(t.Context(), l.Addr().String(), owner, rnd, round%2 == 1); err != nil {
					t.Errorf("connection of %d: %v", owner, err)
				}
			}
		})
	}
	wg.Wait()
	cancel()
	require.NoError(t, <-served)
	close(kept)
	<-answered
}

// interleave sends requests of all three kinds and checks every answer; breakOff ends with half a frame.
func interleave(ctx context.Context, addr string, owner uint32, rnd *rand.Rand, breakOff bool) error {
	nc, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer func() { _ = nc.Close() }() // broken off or done
	const requests = 60
	var stream []byte
	for i := range uint32(requests) {
		size := rnd.IntN(3000)
		if rnd.IntN(10) == 0 {
			size = rnd.IntN(300_000)
		}
		body := numbered(owner, i, size)
		stream = protocol.AppendFrame(stream, &protocol.Command{
			Code: 50001 + rnd.Int32N(3), Version: 479, Opaque: int32(i), Body: body, Serialization: protocol.Serialization(rnd.IntN(2)),
			Ext: protocol.ExtFields(nil).Add("p", "\x01escaped\x02"),
		})
	}
	if breakOff {
		stream = append(stream, 0, 0, 16, 0, 0, 0)
	}
	failed := make(chan error, 1)
	go func() {
		for rest := stream; len(rest) > 0; {
			n := min(len(rest), 1+rnd.IntN(40_000))
			if _, err := nc.Write(rest[:n]); err != nil {
				failed <- err
				return
			}
			rest = rest[n:]
		}
		failed <- nil
	}()
	for range requests {
		var head [4]byte
		if _, err := io.ReadFull(nc, head[:]); err != nil {
			return err
		}
		b := make([]byte, binary.BigEndian.Uint32(head[:]))
		if _, err := io.ReadFull(nc, b); err != nil {
			return err
		}
		var c protocol.Command
		if err := protocol.DecodeFrame(b, &c); err != nil {
			return err
		}
		if err := checkNumbered(c.Body, owner, uint32(c.Opaque)); err != nil {
			return err
		}
		if p, has := c.Ext.Lookup("p"); has && string(p) != "\x01escaped\x02" {
			return fmt.Errorf("ext field is damaged: %q", p)
		}
	}
	return <-failed
}

// However the bytes of a connection are cut, the same frames come out.
func FuzzFramesSplitAnywhere(f *testing.F) {
	var stream []byte
	for i := range int32(4) {
		stream = protocol.AppendFrame(stream, &protocol.Command{Code: i, Opaque: i, Body: make([]byte, 100*i)})
	}
	f.Add(stream, uint64(1))
	f.Add(append(stream, 0, 0, 0, 1), uint64(2))
	f.Add(protocol.AppendFrame(nil, &protocol.Command{Body: make([]byte, 200_000)}), uint64(3))
	f.Fuzz(func(t *testing.T, stream []byte, seed uint64) {
		whole, wholeErr := frames(stream, func() int { return len(stream) })
		rnd := rand.New(rand.NewPCG(seed, 0))
		pieces, piecesErr := frames(stream, func() int { return 1 + rnd.IntN(1+rnd.IntN(9000)) })
		require.Equal(t, whole, pieces)
		require.Equal(t, wholeErr, piecesErr)
	})
}

// frames reads stream in pieces of the given sizes; the text of the error says why it ended.
func frames(stream []byte, size func() int) (found []string, end string) {
	client, server := net.Pipe()
	defer func() { _ = client.Close() }() // both ends are of no use any more
	c := newConn(context.Background(), newEndpoint(Limits{}, nil, nil), server)
	defer c.Close(nil)
	defer c.in.drop()
	c.in.src = &pieceReader{stream, size}
	for {
		for {
			frame, err := c.in.next()
			if err != nil {
				return found, err.Error()
			}
			if frame == nil {
				break
			}
			found = append(found, string(frame))
		}
		if err := c.in.fill(); err != nil {
			return found, err.Error()
		}
	}
}

type pieceReader struct {
	rest []byte
	size func() int
}

func (p *pieceReader) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.rest[:min(len(p.rest), max(1, p.size()))])
	p.rest = p.rest[n:]
	return n, nil
}

func TestPartlyReceivedLargeFramesAreBoundedTogether(t *testing.T) {
	s := NewServer(ServerConfig{Limits: Limits{LargeReadBytesMax: 3 << 20}}, nil, nil, nil, slog.New(slog.DiscardHandler))
	closed := make(chan error, 8)
	s.end.onClose = func(c *Conn) { closed <- context.Cause(c.Context()) }
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	var conns []net.Conn
	for range 4 {
		nc, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
		require.NoError(t, err)
		conns = append(conns, nc)
		frame := protocol.AppendFrame(nil, &protocol.Command{Body: make([]byte, 2<<20)})
		_, _ = nc.Write(frame[:1100<<10]) // fails on the one that is closed
	}
	require.ErrorIs(t, <-closed, ErrReadMemory)
	for _, nc := range conns {
		require.NoError(t, nc.Close())
	}
	cancel()
	require.NoError(t, <-served)
	require.Zero(t, s.end.largeReads.Load())
}
