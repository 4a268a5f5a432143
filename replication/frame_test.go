package replication

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func stream(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return b
}

func TestCapturedStaticStreamDecodesAndEncodesToTheSameBytes(t *testing.T) {
	var again []byte
	last := int64(-1)
	for b := stream(t, "static-reports.bin"); len(b) > 0; b = b[reportSize:] {
		r, err := DecodeReport(b)
		require.NoError(t, err)
		require.GreaterOrEqual(t, r.MaxOffset, last, "a replica's end only grows")
		last = r.MaxOffset
		again = AppendReport(again, r)
	}
	require.Equal(t, stream(t, "static-reports.bin"), again)
	require.Equal(t, int64(13400), last)

	again = nil
	bodies := 0
	next := int64(0)
	for b := stream(t, "static-pushes.bin"); len(b) > 0; {
		p, err := DecodePush(b)
		require.NoError(t, err)
		require.Equal(t, next, p.Offset)
		body := b[pushHeaderSize : pushHeaderSize+int(p.BodySize)]
		again = append(AppendPush(again, p), body...)
		next += int64(p.BodySize)
		bodies += len(body)
		b = b[pushHeaderSize+int(p.BodySize):]
	}
	require.Equal(t, stream(t, "static-pushes.bin"), again)
	require.Equal(t, 13400, bodies)
}

func TestCapturedAutoSwitchStreamsDecodeAndEncodeToTheSameBytes(t *testing.T) {
	for _, name := range []string{"auto", "auto-rejoin"} {
		t.Run(name, func(t *testing.T) {
			var again []byte
			for b := stream(t, name+"-reports.bin"); len(b) > 0; {
				if FrameState(b) == StateHandshake {
					h, err := DecodeHandshake(b)
					require.NoError(t, err)
					again, b = AppendHandshake(again, h), b[handshakeSize:]
					continue
				}
				r, err := DecodeAutoReport(b)
				require.NoError(t, err)
				again, b = AppendAutoReport(again, r), b[autoReportSize:]
			}
			require.Equal(t, stream(t, name+"-reports.bin"), again)

			again = nil
			epochs, bodies := 0, 0
			for b := stream(t, name+"-pushes.bin"); len(b) > 0; {
				if FrameState(b) == StateHandshake {
					n, err := HandshakeAckBodySize(b)
					require.NoError(t, err)
					a, err := DecodeHandshakeAck(b)
					require.NoError(t, err)
					epochs += len(a.Epochs)
					again, b = AppendHandshakeAck(again, a), b[handshakeAckSize+n:]
					continue
				}
				p, err := DecodeAutoPush(b)
				require.NoError(t, err)
				body := b[autoPushSize : autoPushSize+int(p.BodySize)]
				bodies += len(body)
				again, b = append(AppendAutoPush(again, p), body...), b[autoPushSize+int(p.BodySize):]
			}
			require.Equal(t, stream(t, name+"-pushes.bin"), again)
			require.Positive(t, epochs)
			require.Positive(t, bodies)
		})
	}
}

func TestHostileHAFramesAreRefused(t *testing.T) {
	_, err := DecodeReport(bytes.Repeat([]byte{0xff}, 8))
	require.ErrorIs(t, err, ErrBadFrame)
	_, err = DecodeReport(nil)
	require.ErrorIs(t, err, ErrBadFrame)
	for _, p := range []Push{{0, -1}, {0, bodyBytesMax + 1}, {-1, 1}, {1<<63 - 1, 1}} {
		_, err = DecodePush(AppendPush(nil, p))
		require.ErrorIs(t, err, ErrBadFrame, "%+v", p)
		_, err = DecodeAutoPush(AppendAutoPush(nil, AutoPush{Push: p}))
		require.ErrorIs(t, err, ErrBadFrame, "%+v", p)
	}
	_, err = DecodeAutoPush(AppendAutoPush(nil, AutoPush{Push: Push{Offset: -1}}))
	require.NoError(t, err, "a heartbeat may say −1")
	for _, epochs := range [][]EpochStart{{{2, 0}, {1, 10}}, {{1, 10}, {2, 5}}, {{0, 0}}, {{1, -1}}} {
		_, err = DecodeHandshakeAck(AppendHandshakeAck(nil, HandshakeAck{Epochs: epochs}))
		require.ErrorIs(t, err, ErrBadFrame, "%v", epochs)
	}
	_, err = DecodeHandshakeAck(AppendHandshakeAck(nil, HandshakeAck{Epochs: make([]EpochStart, epochEntriesMax+1)}))
	require.ErrorIs(t, err, ErrBadFrame)
}

func FuzzHAFrames(f *testing.F) {
	for _, name := range []string{"static-reports.bin", "static-pushes.bin", "auto-reports.bin", "auto-pushes.bin"} {
		f.Add(stream(f, name))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := DecodeReport(b); err == nil {
			require.Equal(t, b[:reportSize], AppendReport(nil, r))
		}
		if p, err := DecodePush(b); err == nil {
			require.Equal(t, b[:pushHeaderSize], AppendPush(nil, p))
		}
		if p, err := DecodeAutoPush(b); err == nil {
			require.Equal(t, b[:autoPushSize], AppendAutoPush(nil, p))
		}
		if a, err := DecodeHandshakeAck(b); err == nil {
			require.Equal(t, b[:handshakeAckSize+len(a.Epochs)*epochEntrySize], AppendHandshakeAck(nil, a))
		}
		_, _ = DecodeHandshake(b) // only must not panic
	})
}
