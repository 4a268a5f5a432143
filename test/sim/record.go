package sim

import (
	"encoding/binary"
)

// A record is its length, its id and padding: enough to tell records apart and to cut them anywhere.
const recordHead = 12

func appendRecord(dst []byte, id uint64, size int) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(size))
	dst = binary.BigEndian.AppendUint64(dst, id)
	for i := recordHead; i < size; i++ {
		dst = append(dst, byte(id))
	}
	return dst
}

// wholeRecords cuts a torn tail.
func wholeRecords(b []byte) []byte {
	at := 0
	for len(b)-at >= recordHead {
		size := int(binary.BigEndian.Uint32(b[at:]))
		if size < recordHead || at+size > len(b) {
			break
		}
		at += size
	}
	return b[:at:at]
}

// ids lists the records of a log by end offset.
func ids(b []byte) map[int64]uint64 {
	found := map[int64]uint64{}
	for at := 0; len(b)-at >= recordHead; {
		size := int(binary.BigEndian.Uint32(b[at:]))
		if size < recordHead || at+size > len(b) {
			break
		}
		found[int64(at+size)] = binary.BigEndian.Uint64(b[at+4:])
		at += size
	}
	return found
}
