package protocol

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// A frame (RocketMQ RemotingCommand, NettyDecoder); integers are big-endian:
//
//	┌─────────────┬───────────────┬──────────────┬────────┬──────┐
//	│ total   i32 │ serialization │ header bytes │ header │ body │
//	│ (all behind)│ u8            │ u24          │        │      │
//	└─────────────┴───────────────┴──────────────┴────────┴──────┘

// Limits of a frame.
const (
	// FrameBytesMax counts the whole frame, its 4 length bytes included (RocketMQ NettyDecoder, com.rocketmq.remoting.frameMaxLength).
	FrameBytesMax = 16 << 20
	// HeaderBytesMax is ours: RocketMQ allows a header of nearly a frame. The largest legal header is that of a send
	// whose properties take 32,767 bytes, each of which JSON may write as six (\u0001): 192 KiB, plus names. Twice that and
	// more must always pass, and no header may cost megabytes to scan.
	HeaderBytesMax = 512 << 10
	// ExtFieldsMax bounds the fields of one header; the largest known header has about thirty.
	ExtFieldsMax = 1024

	lengthBytes = 4
	markBytes   = 4
)

// ErrFrame is wrapped by every error about bytes that are not a frame. The connection they came from cannot be read on.
var ErrFrame = errors.New("malformed frame")

// FrameBytes returns the size of the frame that b begins with, its 4 length bytes included, or 0 when b holds fewer than
// the 8 bytes that are needed to judge it. It checks the total and the header length, so that a caller may size buffers by it.
func FrameBytes(b []byte) (int, error) {
	if len(b) < lengthBytes+markBytes {
		return 0, nil
	}
	total := int64(int32(binary.BigEndian.Uint32(b)))
	if total < markBytes || total+lengthBytes > FrameBytesMax {
		return 0, fmt.Errorf("%w: frame length %d outside %d..%d", ErrFrame, total, markBytes, FrameBytesMax-lengthBytes)
	}
	if _, err := headerBytes(b[lengthBytes:], int(total)); err != nil {
		return 0, err
	}
	return int(total) + lengthBytes, nil
}

// headerBytes judges the word that holds serialization and header length; total counts that word too.
func headerBytes(mark []byte, total int) (int, error) {
	if mark[0] > byte(RocketMQ) {
		return 0, fmt.Errorf("%w: serialization %d unknown", ErrFrame, mark[0])
	}
	n := int(binary.BigEndian.Uint32(mark) & 0xffffff)
	if n == 0 || n > total-markBytes || n > HeaderBytesMax {
		return 0, fmt.Errorf("%w: header length %d in a frame of %d bytes (header limit %d)", ErrFrame, n, total, HeaderBytesMax)
	}
	return n, nil
}

// DecodeFrame decodes one frame body, that is everything behind the 4-byte total length. The command borrows b, which must
// not be used otherwise (escapes in strings are resolved in place), and reuses c.Ext. Bounds are checked before anything
// is allocated. Every error wraps ErrFrame.
func DecodeFrame(b []byte, c *Command) error {
	if len(b) < markBytes || len(b)+lengthBytes > FrameBytesMax {
		return fmt.Errorf("%w: frame length %d", ErrFrame, len(b))
	}
	n, err := headerBytes(b, len(b))
	if err != nil {
		return err
	}
	*c = Command{Serialization: Serialization(b[0]), Ext: c.Ext[:0]}
	header, body := b[markBytes:markBytes+n:markBytes+n], b[markBytes+n:len(b):len(b)]
	if c.Serialization == JSON {
		err = decodeJSONHeader(header, c)
	} else {
		err = decodeBinaryHeader(header, c)
	}
	if err != nil {
		return err
	}
	if len(body) > 0 {
		c.Body = body
	}
	return nil
}

// AppendFrame appends the complete frame of c, total length included, to dst. A binary header that cannot hold c (a code or
// version above 32767, a key above 32767 bytes) is written as JSON instead. It does not enforce the limits of a frame:
// whoever sends compares the length with FrameBytesMax.
func AppendFrame(dst []byte, c *Command) []byte {
	return append(AppendFrameHead(dst, c, len(c.Body)), c.Body...)
}

// AppendFrameHead appends everything of the frame of c but its body, announcing a body of bodyBytes.
func AppendFrameHead(dst []byte, c *Command, bodyBytes int) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	kind := c.Serialization
	if kind == RocketMQ && fitsBinaryHeader(c) {
		dst = appendBinaryHeader(dst, c)
	} else {
		kind = JSON
		dst = appendJSONHeader(dst, c)
	}
	header := len(dst) - start - lengthBytes - markBytes
	binary.BigEndian.PutUint32(dst[start:], uint32(markBytes+header+bodyBytes))
	binary.BigEndian.PutUint32(dst[start+lengthBytes:], uint32(kind)<<24|uint32(header)&0xffffff)
	return dst
}

func fitsBinaryHeader(c *Command) bool {
	if c.Code != int32(int16(c.Code)) || c.Version != int32(int16(c.Version)) {
		return false
	}
	for i := range c.Ext {
		if len(c.Ext[i].Key) > math.MaxInt16 {
			return false
		}
	}
	return true
}
