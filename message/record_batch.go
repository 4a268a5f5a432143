package message

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// BatchEntry is one message of a batch body (PROTOCOL §3.1).
type BatchEntry struct {
	Flag       int32
	Body       []byte
	Properties Properties
}

// batchEntrySizeMin: size, magic, crc, flag, body length (i32 each), properties length (i16). There is no count in front
// of the entries. Clients write 0 for magic and crc, and neither is looked at.
const batchEntrySizeMin = 5*4 + 2

// ErrBatch reports a batch body that is not one, or one with too many entries.
var ErrBatch = errors.New("message: batch malformed")

// DecodeBatch decodes a client batch block. Entries alias b. At most limit entries are accepted.
func DecodeBatch(b []byte, limit int) ([]BatchEntry, error) { return AppendBatchEntries(nil, b, limit) }

// AppendBatchEntries is DecodeBatch into dst, which need not be allocated anew for each batch.
func AppendBatchEntries(dst []BatchEntry, b []byte, limit int) ([]BatchEntry, error) {
	for n := 0; len(b) > 0; n++ {
		if n >= limit {
			return dst, fmt.Errorf("%w: more than %d entries", ErrBatch, limit)
		}
		if len(b) < batchEntrySizeMin {
			return dst, fmt.Errorf("%w: entry %d: %d bytes left", ErrBatch, n, len(b))
		}
		size := int(int32(binary.BigEndian.Uint32(b)))
		if size < batchEntrySizeMin || size > len(b) {
			return dst, fmt.Errorf("%w: entry %d: size %d of %d bytes", ErrBatch, n, size, len(b))
		}
		c := cursor{rest: b[12:size:size]}
		e := BatchEntry{Flag: int32(c.u32())}
		e.Body = c.take(int(int32(c.u32())))
		e.Properties = c.take(int(int16(c.u16())))
		if c.bad || len(c.rest) != 0 {
			return dst, fmt.Errorf("%w: entry %d: lengths do not add up to %d", ErrBatch, n, size)
		}
		dst = append(dst, e)
		b = b[size:]
	}
	return dst, nil
}

// AppendBatchEntry appends one entry in the client's batch form. Properties must not exceed PropertiesBytesMax.
func AppendBatchEntry(dst []byte, e BatchEntry) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(batchEntrySizeMin+len(e.Body)+len(e.Properties)))
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(e.Flag))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(e.Body)))
	dst = append(dst, e.Body...)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(e.Properties)))
	return append(dst, e.Properties...)
}
