package message

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net/netip"
)

// Magic numbers of a CommitLog record (PROTOCOL §4.2, RocketMQ MessageVersion and CommitLog.BLANK_MAGIC_CODE).
const (
	MagicV1    uint32 = 0xDAA320A7 // topic length in one byte
	MagicV2    uint32 = 0xDAA320AB // topic length in two bytes, for topics above TopicBytesMaxV1
	MagicBlank uint32 = 0xCBD43194 // filler up to the end of the file
)

// Limits of the record format.
const (
	TopicBytesMaxV1 = 127
	TopicBytesMax   = 32767
	// BlankSize is what a filler needs: its size and magic. Every file keeps that much free behind its last record.
	BlankSize = 8
	// RecordSizeMin is a v1 record with IPv4 hosts and nothing in it.
	RecordSizeMin = 91
	// BodyBytesMax keeps any record within a positive 32-bit size.
	BodyBytesMax = 1<<31 - 1 - 2*TopicBytesMax - PropertiesBytesMax - 256
)

/*
A record, big-endian; positions with both hosts IPv4, each IPv6 host moves what follows by 12:

	0 size i32 | 4 magic u32 | 8 body crc i32 | 12 queue id i32 | 16 flag i32 | 20 queue offset i64
	28 physical offset i64 | 36 sysFlag i32 | 40 born time i64 | 48 born host 4+4 or 16+4
	56 store time i64 | 64 store host 4+4 or 16+4 | 72 reconsume times i32 | 76 prepared offset i64
	84 body length i32 | body | topic length i8 (v2: i16) | topic | properties length i16 | properties
*/
const (
	atMagic          = 4
	atBodyCRC        = 8
	atQueueID        = 12
	atFlag           = 16
	atQueueOffset    = 20
	atPhysicalOffset = 28
	atSysFlag        = 36
	atBornTimestamp  = 40
	atBornHost       = 48
)

// crcMask: Java keeps the checksum positive (UtilAll.crc32).
const crcMask = 0x7FFFFFFF

// Errors of encoding and decoding. Match with errors.Is.
var (
	ErrTopicIllegal      = errors.New("message: topic empty or too long")
	ErrPropertiesTooLong = errors.New("message: properties too long")
	ErrBodyTooLong       = errors.New("message: body too long")

	ErrNoRecord   = errors.New("message: no record starts here")        // the magic is neither v1 nor v2
	ErrBlank      = errors.New("message: end-of-file filler")           // the magic is MagicBlank
	ErrIncomplete = errors.New("message: record incomplete")            // fewer bytes than the size says
	ErrMalformed  = errors.New("message: record malformed")             // lengths do not add up
	ErrChecksum   = errors.New("message: record body checksum differs") //
)

func isV6(a netip.Addr) bool { return a.Is6() && !a.Is4In6() }

// as4 is the IPv4 address of a, 0.0.0.0 for the zero Addr.
func as4(a netip.Addr) [4]byte {
	if !a.IsValid() {
		return [4]byte{}
	}
	return a.Unmap().As4()
}

// RecordSize returns the encoded size of m in bytes, or an error when topic, properties or body exceed the format.
func RecordSize(m *Message) (int, error) {
	if len(m.Topic) == 0 || len(m.Topic) > TopicBytesMax {
		return 0, fmt.Errorf("%w: %d bytes, at most %d", ErrTopicIllegal, len(m.Topic), TopicBytesMax)
	}
	if len(m.Properties) > PropertiesBytesMax {
		return 0, fmt.Errorf("%w: %d bytes, at most %d", ErrPropertiesTooLong, len(m.Properties), PropertiesBytesMax)
	}
	if len(m.Body) > BodyBytesMax {
		return 0, fmt.Errorf("%w: %d bytes, at most %d", ErrBodyTooLong, len(m.Body), BodyBytesMax)
	}
	size := RecordSizeMin + len(m.Body) + len(m.Topic) + len(m.Properties)
	if len(m.Topic) > TopicBytesMaxV1 {
		size++
	}
	if isV6(m.BornHost.Addr()) {
		size += 12
	}
	if isV6(m.StoreHost.Addr()) {
		size += 12
	}
	return size, nil
}

// AppendRecord appends the CommitLog record of m to dst (PROTOCOL §4.2), with the given positions and store time. The
// caller has checked sizes with RecordSize. The address bits of the flag follow the hosts. It does not allocate when dst
// has room.
func AppendRecord(dst []byte, m *Message, physicalOffset, queueOffset, storeTimestamp int64) []byte {
	begin := len(dst)
	magic := MagicV1
	if len(m.Topic) > TopicBytesMaxV1 {
		magic = MagicV2
	}
	dst = binary.BigEndian.AppendUint32(dst, 0)
	dst = binary.BigEndian.AppendUint32(dst, magic)
	dst = binary.BigEndian.AppendUint32(dst, BodyChecksum(m.Body))
	dst = binary.BigEndian.AppendUint32(dst, uint32(m.QueueID))
	dst = binary.BigEndian.AppendUint32(dst, uint32(m.Flag))
	dst = binary.BigEndian.AppendUint64(dst, uint64(queueOffset))
	dst = binary.BigEndian.AppendUint64(dst, uint64(physicalOffset))
	dst = binary.BigEndian.AppendUint32(dst, uint32(hostFlags(m)))
	dst = binary.BigEndian.AppendUint64(dst, uint64(m.BornTimestamp))
	dst = appendHost(dst, m.BornHost)
	dst = binary.BigEndian.AppendUint64(dst, uint64(storeTimestamp))
	dst = appendHost(dst, m.StoreHost)
	dst = binary.BigEndian.AppendUint32(dst, uint32(m.ReconsumeTimes))
	dst = binary.BigEndian.AppendUint64(dst, uint64(m.PreparedTransactionOffset))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(m.Body)))
	dst = append(dst, m.Body...)
	if magic == MagicV2 {
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(m.Topic)))
	} else {
		dst = append(dst, byte(len(m.Topic)))
	}
	dst = append(dst, m.Topic...)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(m.Properties)))
	dst = append(dst, m.Properties...)
	binary.BigEndian.PutUint32(dst[begin:], uint32(len(dst)-begin))
	return dst
}

// AppendBlank appends a filler's 8 bytes: it says that size bytes up to the end of the file hold nothing.
func AppendBlank(dst []byte, size int32) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(size))
	return binary.BigEndian.AppendUint32(dst, MagicBlank)
}

// BodyChecksum is the checksum a record carries for its body as stored.
func BodyChecksum(body []byte) uint32 { return crc32.ChecksumIEEE(body) & crcMask }

func hostFlags(m *Message) SysFlag {
	f := m.SysFlag &^ (FlagBornHostV6 | FlagStoreHostV6)
	if isV6(m.BornHost.Addr()) {
		f |= FlagBornHostV6
	}
	if isV6(m.StoreHost.Addr()) {
		f |= FlagStoreHostV6
	}
	return f
}

func appendHost(dst []byte, host netip.AddrPort) []byte {
	if addr := host.Addr(); isV6(addr) {
		raw := addr.As16()
		dst = append(dst, raw[:]...)
	} else {
		raw := as4(addr)
		dst = append(dst, raw[:]...)
	}
	return binary.BigEndian.AppendUint32(dst, uint32(host.Port()))
}

// RecordHead returns the size and magic that stand at the start of b, zeros when b is shorter than BlankSize.
func RecordHead(b []byte) (size int32, magic uint32) {
	if len(b) < BlankSize {
		return 0, 0
	}
	return int32(binary.BigEndian.Uint32(b)), binary.BigEndian.Uint32(b[atMagic:])
}

// RecordOffset returns the physical offset that the record at the start of b says it has, −1 when b is too short.
func RecordOffset(b []byte) int64 {
	if len(b) < atSysFlag {
		return -1
	}
	return int64(binary.BigEndian.Uint64(b[atPhysicalOffset:]))
}

// IsRecordMagic tells whether a record (not a filler) starts with magic.
func IsRecordMagic(magic uint32) bool { return magic == MagicV1 || magic == MagicV2 }

// DecodeRecord decodes the first record of b. Every length is checked against b; it never panics. With checkCRC the body
// checksum is verified. The result aliases b. A filler gives ErrBlank, and Record.Size then holds the filler's size.
func DecodeRecord(b []byte, checkCRC bool) (Record, error) {
	size, magic := RecordHead(b)
	switch {
	case len(b) < BlankSize:
		return Record{}, ErrIncomplete
	case magic == MagicBlank:
		return Record{Size: size}, ErrBlank
	case !IsRecordMagic(magic):
		return Record{}, ErrNoRecord
	case size < RecordSizeMin:
		return Record{}, ErrMalformed
	case int(size) > len(b):
		return Record{Size: size}, ErrIncomplete
	}
	r := Record{
		Size:           size,
		BodyCRC:        binary.BigEndian.Uint32(b[atBodyCRC:]),
		QueueID:        int32(binary.BigEndian.Uint32(b[atQueueID:])),
		Flag:           int32(binary.BigEndian.Uint32(b[atFlag:])),
		QueueOffset:    int64(binary.BigEndian.Uint64(b[atQueueOffset:])),
		PhysicalOffset: int64(binary.BigEndian.Uint64(b[atPhysicalOffset:])),
		SysFlag:        SysFlag(binary.BigEndian.Uint32(b[atSysFlag:])),
		BornTimestamp:  int64(binary.BigEndian.Uint64(b[atBornTimestamp:])),
	}
	c := cursor{rest: b[atBornHost:size:size]}
	r.BornHost = c.host(r.SysFlag&FlagBornHostV6 != 0)
	r.StoreTimestamp = int64(c.u64())
	r.StoreHost = c.host(r.SysFlag&FlagStoreHostV6 != 0)
	r.ReconsumeTimes = int32(c.u32())
	r.PreparedTransactionOffset = int64(c.u64())
	r.Body = c.take(int(int32(c.u32())))
	if magic == MagicV2 {
		r.Topic = c.take(int(int16(c.u16())))
	} else {
		r.Topic = c.take(int(int8(c.u8())))
	}
	r.Properties = c.take(int(int16(c.u16())))
	if c.bad || len(c.rest) != 0 {
		return Record{Size: size}, ErrMalformed
	}
	if checkCRC && len(r.Body) > 0 && BodyChecksum(r.Body) != r.BodyCRC {
		return r, ErrChecksum
	}
	return r, nil
}

// Message returns the message that encodes to r again, given r's positions and store time. It aliases r's bytes.
func (r *Record) Message() Message {
	return Message{
		Topic: string(r.Topic), QueueID: r.QueueID, Flag: r.Flag, SysFlag: r.SysFlag, Properties: r.Properties, Body: r.Body,
		BornTimestamp: r.BornTimestamp, BornHost: r.BornHost, StoreHost: r.StoreHost, ReconsumeTimes: r.ReconsumeTimes,
		PreparedTransactionOffset: r.PreparedTransactionOffset,
	}
}

// cursor reads fields from the front of rest. After the first length that does not fit, bad is set and all reads are zero.
type cursor struct {
	rest []byte
	bad  bool
}

func (c *cursor) take(n int) []byte {
	if c.bad || n < 0 || n > len(c.rest) {
		c.bad = true
		return nil
	}
	b := c.rest[:n:n]
	c.rest = c.rest[n:]
	return b
}

func (c *cursor) u8() byte {
	if b := c.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) u16() uint16 {
	if b := c.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (c *cursor) u32() uint32 {
	if b := c.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (c *cursor) u64() uint64 {
	if b := c.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// host reads an address and its port. RocketMQ writes the port as i32; the upper half is always zero.
func (c *cursor) host(v6 bool) netip.AddrPort {
	n := 4
	if v6 {
		n = 16
	}
	raw := c.take(n)
	port := uint16(c.u32())
	if c.bad {
		return netip.AddrPort{}
	}
	if v6 {
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(raw)), port)
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(raw)), port)
}
