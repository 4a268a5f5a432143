package consumequeue

import (
	"encoding/binary"
	"fmt"
	"strconv"
)

// UnitSize is the length of one unit in bytes.
const UnitSize = 20

/*
A unit, big-endian (RocketMQ ConsumeQueue, CQ_STORE_UNIT_SIZE). Unit n of a queue lies at byte n*20 of the queue; a file
is named by the byte it begins at, in 20 digits.

	0 physical offset i64 | 8 record size i32 | 12 tags code i64
*/
const (
	atSize     = 8
	atTagsCode = 12
)

// fillerSize marks a unit that stands for no record: what lies before the first unit of a queue that did not begin at 0.
const fillerSize = 0x7FFFFFFF

// Unit is one entry of a queue: where its record lies in the log, how long it is, and its tags code.
type Unit struct {
	PhysicalOffset int64
	Size           int32
	TagsCode       int64
}

// Filler reports whether the unit stands for no record.
func (u Unit) Filler() bool { return u.Size == fillerSize }

// Valid reports whether the unit was written at all: unwritten space reads as zeros.
func (u Unit) Valid() bool { return u.PhysicalOffset >= 0 && u.Size > 0 }

// End is the physical end of the unit's record, exclusive; of a filler, its offset.
func (u Unit) End() int64 {
	if u.Filler() {
		return u.PhysicalOffset
	}
	return u.PhysicalOffset + int64(u.Size)
}

func appendUnit(dst []byte, u Unit) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(u.PhysicalOffset))
	dst = binary.BigEndian.AppendUint32(dst, uint32(u.Size))
	return binary.BigEndian.AppendUint64(dst, uint64(u.TagsCode))
}

// decodeUnit reads the unit at the front of b, which holds at least UnitSize bytes.
func decodeUnit(b []byte) Unit {
	return Unit{
		PhysicalOffset: int64(binary.BigEndian.Uint64(b)),
		Size:           int32(binary.BigEndian.Uint32(b[atSize:])),
		TagsCode:       int64(binary.BigEndian.Uint64(b[atTagsCode:])),
	}
}

// fileName names the file that begins at byte begin of its queue.
func fileName(begin int64) string { return fmt.Sprintf("%020d", begin) }

// parseFileName is the inverse of fileName; ok is false for a name that no queue file has.
func parseFileName(name string) (begin int64, ok bool) {
	if len(name) != 20 {
		return 0, false
	}
	begin, err := strconv.ParseInt(name, 10, 64)
	return begin, err == nil && begin >= 0
}
