package index

import (
	"encoding/binary"
	"time"
)

/*
A file, big-endian (RocketMQ IndexFile, IndexHeader): header, hash slots, entries.

	header  0 begin time i64 | 8 end time i64 | 16 begin offset i64 | 24 end offset i64 | 32 used slots i32 | 36 next entry i32
	slot    i32, the number of the newest entry of its chain; 0: none
	entry   0 key hash i32 | 4 physical offset i64 | 12 seconds since begin time i32 | 16 previous entry of the chain i32

Entry 0 is never used, so the first number is 1 and "next entry" of an empty file is 1 (or 0, as Java leaves it on disk).
*/
const (
	headerSize = 40
	slotSize   = 4
	entrySize  = 20
)

// header is the head of a file.
type header struct {
	beginTime, endTime     int64
	beginOffset, endOffset int64
	usedSlots, next        int32
}

func (h header) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.beginTime))
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.endTime))
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.beginOffset))
	dst = binary.BigEndian.AppendUint64(dst, uint64(h.endOffset))
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.usedSlots))
	return binary.BigEndian.AppendUint32(dst, uint32(h.next))
}

// decodeHeader reads the head of a file; b holds headerSize bytes.
func decodeHeader(b []byte) header {
	return header{
		beginTime:   int64(binary.BigEndian.Uint64(b)),
		endTime:     int64(binary.BigEndian.Uint64(b[8:])),
		beginOffset: int64(binary.BigEndian.Uint64(b[16:])),
		endOffset:   int64(binary.BigEndian.Uint64(b[24:])),
		usedSlots:   int32(binary.BigEndian.Uint32(b[32:])),
		next:        int32(binary.BigEndian.Uint32(b[36:])),
	}
}

// entry is one key of one record.
type entry struct {
	hash     int32
	physical int64
	seconds  int32
	prev     int32
}

func (e entry) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(e.hash))
	dst = binary.BigEndian.AppendUint64(dst, uint64(e.physical))
	dst = binary.BigEndian.AppendUint32(dst, uint32(e.seconds))
	return binary.BigEndian.AppendUint32(dst, uint32(e.prev))
}

// decodeEntry reads an entry; b holds entrySize bytes.
func decodeEntry(b []byte) entry {
	return entry{
		hash:     int32(binary.BigEndian.Uint32(b)),
		physical: int64(binary.BigEndian.Uint64(b[4:])),
		seconds:  int32(binary.BigEndian.Uint32(b[12:])),
		prev:     int32(binary.BigEndian.Uint32(b[16:])),
	}
}

func slotAt(page []byte, i int) int32 { return int32(binary.BigEndian.Uint32(page[i*slotSize:])) }

func setSlot(page []byte, i int, n int32) { binary.BigEndian.PutUint32(page[i*slotSize:], uint32(n)) }

// nameLayout: yyyyMMddHHmmssSSS in local time; Go wants a point before the milliseconds.
const nameLayout = "20060102150405.000"

// fileName names a file made at t.
func fileName(t time.Time) string {
	s := t.Format(nameLayout)
	return s[:14] + s[15:]
}

func isFileName(name string) bool {
	if len(name) != 17 {
		return false
	}
	_, err := time.Parse(nameLayout, name[:14]+"."+name[14:])
	return err == nil
}

// nextName is a name behind previous for a file made at t: names give the order of the files.
func nextName(t time.Time, previous string) string {
	name := fileName(t)
	if name > previous {
		return name
	}
	last, err := time.ParseInLocation(nameLayout, previous[:14]+"."+previous[14:], t.Location())
	if err != nil {
		return name // previous passed isFileName
	}
	return fileName(last.Add(time.Millisecond))
}
