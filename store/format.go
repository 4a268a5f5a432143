package store

import (
	"encoding/binary"

	"github.com/quorate/quorate/message"
)

// Positions in a CommitLog record (message/record.go has the drawing): the store time stands behind the born host, which is
// 12 bytes longer when it is IPv6.
const (
	atSysFlag     = 36
	atStoreTime   = 56
	v6Extra       = 12
	headBytesTime = atStoreTime + v6Extra + 8
)

// storeTimeOf reads the store time from the first bytes of a record.
func storeTimeOf(head []byte) (ms int64, ok bool) {
	if len(head) < headBytesTime {
		return 0, false
	}
	if _, magic := message.RecordHead(head); !message.IsRecordMagic(magic) {
		return 0, false
	}
	at := atStoreTime
	if message.SysFlag(binary.BigEndian.Uint32(head[atSysFlag:]))&message.FlagBornHostV6 != 0 {
		at += v6Extra
	}
	return int64(binary.BigEndian.Uint64(head[at:])), true
}
