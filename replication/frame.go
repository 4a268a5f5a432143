package replication

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The HA port carries a raw TCP stream, one connection per replica, opened by the replica (PROTOCOL §6.1, RocketMQ
// DefaultHAService, DefaultHAConnection, DefaultHAClient):
//
//	replica → master   ┌────────────────┐
//	                   │ maxOffset  i64 │   end of the replica's log; the first one asks where to start
//	                   └────────────────┘
//	master → replica   ┌────────────────┬──────────────┬───────────────┐
//	                   │ offset     i64 │ bodySize i32 │ body          │   bodySize 0: heartbeat, offset = next to send
//	                   └────────────────┴──────────────┴───────────────┘
const (
	reportSize       = 8
	pushHeaderSize   = 12
	pushOffsetAt     = 0
	pushBodySizeAt   = 8
	bodyBytesMax     = 4 << 20 // a Java replica's read buffer holds 4 MiB; nothing larger is sent or believed
	epochEntriesMax  = 1000
	epochEntrySize   = 12
	autoReportSize   = 12
	autoPushSize     = 36
	handshakeSize    = 16
	handshakeAckSize = 20
)

// Errors of HA frames: each closes the connection.
var (
	ErrBadFrame = errors.New("replication: bad frame")
	errShort    = fmt.Errorf("%w: short", ErrBadFrame)
)

// Report is what a DefaultHA replica says: the exclusive end of its log. RocketMQ means received, not flushed.
type Report struct{ MaxOffset int64 }

// AppendReport appends the 8 bytes of r.
func AppendReport(dst []byte, r Report) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(r.MaxOffset))
}

// DecodeReport decodes one report. A negative offset is refused: it cannot be a log's end.
func DecodeReport(b []byte) (Report, error) {
	if len(b) < reportSize {
		return Report{}, errShort
	}
	r := Report{MaxOffset: int64(binary.BigEndian.Uint64(b))}
	if r.MaxOffset < 0 {
		return Report{}, fmt.Errorf("%w: replica reports offset %d", ErrBadFrame, r.MaxOffset)
	}
	return r, nil
}

// Push is the header of one DefaultHA transfer: BodySize bytes of CommitLog from Offset on follow it.
type Push struct {
	Offset   int64
	BodySize int32
}

// AppendPush appends the 12-byte header of p.
func AppendPush(dst []byte, p Push) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(p.Offset))
	return binary.BigEndian.AppendUint32(dst, uint32(p.BodySize))
}

// DecodePush decodes a 12-byte header and bounds its body size.
func DecodePush(b []byte) (Push, error) {
	if len(b) < pushHeaderSize {
		return Push{}, errShort
	}
	p := Push{
		Offset:   int64(binary.BigEndian.Uint64(b[pushOffsetAt:])),
		BodySize: int32(binary.BigEndian.Uint32(b[pushBodySizeAt:])),
	}
	return p, checkBody(p.Offset, p.BodySize)
}

func checkBody(offset int64, size int32) error {
	switch {
	case size < 0 || size > bodyBytesMax:
		return fmt.Errorf("%w: body of %d bytes, at most %d", ErrBadFrame, size, bodyBytesMax)
	case size > 0 && (offset < 0 || offset+int64(size) < offset):
		return fmt.Errorf("%w: body at offset %d", ErrBadFrame, offset)
	}
	return nil
}
