package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
)

// FileSize is the length of the checkpoint file: one page, of which RocketMQ uses 48 bytes.
const FileSize = 4096

/*
The file, big-endian. The first part is RocketMQ's StoreCheckpoint; the second is ours, which RocketMQ neither reads nor
changes. Both lie in the first 512 bytes, which a disk writes whole or not at all.

	  0 physic time i64 | 8 logics time i64 | 16 index time i64 | 24 master flushed i64 | 32 confirm i64 | 40 logics offset i64
	256 magic u32 | 260 version u32 | 264 dispatched i64 | 272 durable i64 | 280 indexed i64 | 288 boot u64
	296 copy of bytes 0..48 | 344 crc32 of 256..344 u32

The copy tells whether RocketMQ wrote after us: then its part counts, and ours is void.
*/
const (
	javaSize   = 48
	atOwn      = 256
	atCopy     = 296
	atCRC      = 344
	ownMagic   = 0x51434B50 // "QCKP"
	ownVersion = 1
)

// Java is what RocketMQ keeps in the file. Times are milliseconds since the Unix epoch; 0 is "never".
type Java struct {
	PhysicTime    int64 // store time of the last record known to be durable
	LogicsTime    int64 // of the last record whose queue unit is durable
	IndexTime     int64 // of the last key in a full, durable index file
	MasterFlushed int64
	Confirm       int64 // confirmed physical offset
	LogicsOffset  int64 // offset of the last record whose queue unit is durable (5.5)
}

// Checkpoint says up to where the store's files are durable and agree.
type Checkpoint struct {
	Java
	Dispatched int64  // queues cover the log up to here, durably; a record begins here or will
	Durable    int64  // the log is durable up to here
	Indexed    int64  // the key index covers the log up to here, durably
	Boot       uint64 // names the boot of the machine under which it was written; 0: unknown
}

// Source says whom to believe.
type Source int

// Sources of a checkpoint.
const (
	None    Source = iota // no file, or one never written
	Ours                  // every field holds
	Foreign               // RocketMQ wrote last: only the Java part holds
	Damaged               // believe nothing
)

// Encode returns the bytes of a file.
func Encode(c Checkpoint) []byte {
	b := make([]byte, FileSize)
	for i, v := range []int64{c.PhysicTime, c.LogicsTime, c.IndexTime, c.MasterFlushed, c.Confirm, c.LogicsOffset} {
		binary.BigEndian.PutUint64(b[8*i:], uint64(v))
	}
	own := b[atOwn:]
	binary.BigEndian.PutUint32(own, ownMagic)
	binary.BigEndian.PutUint32(own[4:], ownVersion)
	binary.BigEndian.PutUint64(own[8:], uint64(c.Dispatched))
	binary.BigEndian.PutUint64(own[16:], uint64(c.Durable))
	binary.BigEndian.PutUint64(own[24:], uint64(c.Indexed))
	binary.BigEndian.PutUint64(own[32:], c.Boot)
	copy(b[atCopy:], b[:javaSize])
	binary.BigEndian.PutUint32(b[atCRC:], crc32.ChecksumIEEE(b[atOwn:atCRC]))
	return b
}

// Decode reads the bytes of a file.
func Decode(b []byte) (c Checkpoint, source Source) {
	if len(b) < javaSize {
		return c, None
	}
	at := func(i int) int64 { return int64(binary.BigEndian.Uint64(b[i:])) }
	java := Java{at(0), at(8), at(16), at(24), at(32), at(40)}
	if len(b) < atCRC+4 || binary.BigEndian.Uint32(b[atOwn:]) != ownMagic {
		if java == (Java{}) {
			return c, None
		}
		return Checkpoint{Java: java}, Foreign
	}
	if binary.BigEndian.Uint32(b[atCRC:]) != crc32.ChecksumIEEE(b[atOwn:atCRC]) ||
		binary.BigEndian.Uint32(b[atOwn+4:]) != ownVersion {
		return c, Damaged
	}
	if !slices.Equal(b[:javaSize], b[atCopy:atCopy+javaSize]) {
		return Checkpoint{Java: java}, Foreign
	}
	c = Checkpoint{
		Java: java, Dispatched: at(atOwn + 8), Durable: at(atOwn + 16), Indexed: at(atOwn + 24),
		Boot: uint64(at(atOwn + 32)),
	}
	if c.Dispatched < 0 || c.Durable < 0 || c.Indexed < 0 {
		return Checkpoint{}, Damaged
	}
	return c, Ours
}

/*
The queue ends, big-endian: a file of ours alone. It says how long each consume queue was at least, so that a queue that
lost files is noticed.

	magic u32 | version u32 | dispatched i64 | count u32
	count × (topic length u16 | topic | queue id i32 | first i64 | min i64 | end i64)
	crc32 u32
*/
const endsMagic = 0x51454E44 // "QEND"

// QueueEnd is what one queue was like: the first offset in its files, the first whose record the log had, and its end.
type QueueEnd struct {
	Topic           string
	ID              int32
	First, Min, End int64
}

// ErrDamaged is what DecodeEnds returns for bytes that are not whole.
var ErrDamaged = errors.New("checkpoint: queue ends damaged")

// EncodeEnds returns the bytes of a queue-ends file that holds for a checkpoint at dispatched or later.
func EncodeEnds(dispatched int64, ends []QueueEnd) []byte {
	b := binary.BigEndian.AppendUint32(nil, endsMagic)
	b = binary.BigEndian.AppendUint32(b, 1)
	b = binary.BigEndian.AppendUint64(b, uint64(dispatched))
	b = binary.BigEndian.AppendUint32(b, uint32(len(ends)))
	for _, e := range ends {
		b = binary.BigEndian.AppendUint16(b, uint16(len(e.Topic)))
		b = append(b, e.Topic...)
		b = binary.BigEndian.AppendUint32(b, uint32(e.ID))
		b = binary.BigEndian.AppendUint64(b, uint64(e.First))
		b = binary.BigEndian.AppendUint64(b, uint64(e.Min))
		b = binary.BigEndian.AppendUint64(b, uint64(e.End))
	}
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// DecodeEnds is the inverse of EncodeEnds.
func DecodeEnds(b []byte) (dispatched int64, ends []QueueEnd, err error) {
	if len(b) < 24 || binary.BigEndian.Uint32(b) != endsMagic || binary.BigEndian.Uint32(b[4:]) != 1 ||
		binary.BigEndian.Uint32(b[len(b)-4:]) != crc32.ChecksumIEEE(b[:len(b)-4]) {
		return 0, nil, ErrDamaged
	}
	dispatched = int64(binary.BigEndian.Uint64(b[8:]))
	count := binary.BigEndian.Uint32(b[16:])
	b = b[20 : len(b)-4]
	for range count {
		if len(b) < 2 {
			return 0, nil, fmt.Errorf("%w: short", ErrDamaged)
		}
		n := int(binary.BigEndian.Uint16(b))
		if b = b[2:]; len(b) < n+28 {
			return 0, nil, fmt.Errorf("%w: short", ErrDamaged)
		}
		ends = append(ends, QueueEnd{
			Topic: string(b[:n]),
			ID:    int32(binary.BigEndian.Uint32(b[n:])),
			First: int64(binary.BigEndian.Uint64(b[n+4:])),
			Min:   int64(binary.BigEndian.Uint64(b[n+12:])),
			End:   int64(binary.BigEndian.Uint64(b[n+20:])),
		})
		b = b[n+28:]
	}
	return dispatched, ends, nil
}
