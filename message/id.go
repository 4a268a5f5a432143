package message

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

const upperHex = "0123456789ABCDEF"

// Lengths of an offset message id in characters: 4 or 16 address bytes, 4 bytes of port, 8 bytes of offset, in hex.
const (
	offsetIDLengthV4 = 2 * (4 + 4 + 8)
	offsetIDLengthV6 = 2 * (16 + 4 + 8)
)

// ErrBadID reports a text that is no offset message id.
var ErrBadID = errors.New("message: not an offset message id")

// OffsetID returns the offset message id of a record: upper-case hex of store address, port (i32) and CommitLog offset
// (i64), 32 characters for IPv4 and 56 for IPv6 (RocketMQ MessageDecoder.createMessageId).
func OffsetID(storeHost netip.AddrPort, physicalOffset int64) string {
	return string(AppendOffsetID(make([]byte, 0, offsetIDLengthV6), storeHost, physicalOffset))
}

// AppendOffsetID is OffsetID for a buffer; it does not allocate when dst has room.
func AppendOffsetID(dst []byte, storeHost netip.AddrPort, physicalOffset int64) []byte {
	if addr := storeHost.Addr(); isV6(addr) {
		for _, b := range addr.As16() {
			dst = append(dst, upperHex[b>>4], upperHex[b&0xF])
		}
	} else {
		for _, b := range as4(addr) {
			dst = append(dst, upperHex[b>>4], upperHex[b&0xF])
		}
	}
	dst = appendHex(dst, uint64(storeHost.Port()), 8)
	return appendHex(dst, uint64(physicalOffset), 16)
}

// ParseOffsetID is the inverse of OffsetID. It takes lower-case digits as well.
func ParseOffsetID(id string) (storeHost netip.AddrPort, physicalOffset int64, err error) {
	if len(id) != offsetIDLengthV4 && len(id) != offsetIDLengthV6 {
		return netip.AddrPort{}, 0, fmt.Errorf("%w: %d characters", ErrBadID, len(id))
	}
	for i := range len(id) {
		if !isHex(id[i]) {
			return netip.AddrPort{}, 0, fmt.Errorf("%w: character %d is not hexadecimal", ErrBadID, i)
		}
	}
	tail := len(id) - 24
	var raw [16]byte
	for i := range tail / 2 {
		raw[i] = byte(mustHex(id[2*i : 2*i+2]))
	}
	addr := netip.AddrFrom16(raw)
	if tail == 8 {
		addr = netip.AddrFrom4([4]byte(raw[:4]))
	}
	port := mustHex(id[tail : tail+8])
	offset := mustHex(id[tail+8:])
	if port > 0xFFFF {
		return netip.AddrPort{}, 0, fmt.Errorf("%w: port %d", ErrBadID, port)
	}
	if offset > 1<<63-1 {
		return netip.AddrPort{}, 0, fmt.Errorf("%w: negative offset", ErrBadID)
	}
	return netip.AddrPortFrom(addr, uint16(port)), int64(offset), nil
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// mustHex parses digits that isHex has accepted, at most 16 of them.
func mustHex(s string) uint64 {
	v, err := strconv.ParseUint(s, 16, 64)
	if err != nil {
		return 0
	}
	return v
}

func appendHex(dst []byte, v uint64, digits int) []byte {
	for i := digits - 1; i >= 0; i-- {
		dst = append(dst, upperHex[v>>(4*i)&0xF])
	}
	return dst
}

// uniqueKeyPrefix names this process among all that make keys: address, pid and a random part, 20 hex digits.
var uniqueKeyPrefix = sync.OnceValue(func() string {
	dst := make([]byte, 0, 20)
	for _, b := range hostAddr() {
		dst = append(dst, upperHex[b>>4], upperHex[b&0xF])
	}
	dst = appendHex(dst, uint64(uint16(os.Getpid())), 4)
	var salt [4]byte
	_, _ = rand.Read(salt[:]) // documented never to fail
	for _, b := range salt {
		dst = append(dst, upperHex[b>>4], upperHex[b&0xF])
	}
	return string(dst)
})

// uniqueKeyCounter separates keys of one millisecond. It is package state because an id generator is: two of them with
// one prefix would hand out the same key.
var uniqueKeyCounter atomic.Uint32

// NewUniqueKey returns a fresh client-style UNIQ_KEY for a message that came without one: 32 hex digits of address, pid,
// a random part, milliseconds since the start of the month and a counter (RocketMQ MessageClientIDSetter).
func NewUniqueKey() string {
	now := time.Now()
	monthStart := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, now.Location())
	dst := make([]byte, 0, 32)
	dst = append(dst, uniqueKeyPrefix()...)
	dst = appendHex(dst, uint64(now.Sub(monthStart).Milliseconds()), 8)
	dst = appendHex(dst, uint64(uint16(uniqueKeyCounter.Add(1))), 4)
	return string(dst)
}

// hostAddr is an IPv4 address of this host, preferably one that others can reach.
func hostAddr() [4]byte {
	addrs, err := net.InterfaceAddrs()
	if err == nil {
		for _, a := range addrs {
			if ipNet, ok := a.(*net.IPNet); ok && !ipNet.IP.IsLoopback() && ipNet.IP.To4() != nil {
				return [4]byte(ipNet.IP.To4())
			}
		}
	}
	return [4]byte{127, 0, 0, 1}
}

// JavaHash is Java's String.hashCode over the UTF-16 code units of UTF-8 text: tags codes and index keys. Bytes that are
// no UTF-8 count as U+FFFD, which is what Java's decoder makes of them.
func JavaHash[T ~string | ~[]byte](s T) int32 {
	var h int32
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			h = 31*h + int32(c)
			i++
			continue
		}
		var window [utf8.UTFMax]byte
		n := copy(window[:], s[i:])
		r, size := utf8.DecodeRune(window[:n])
		i += size
		if r >= 0x10000 {
			r -= 0x10000
			h = 31*h + 0xD800 + r>>10
			r = 0xDC00 + r&0x3FF
		}
		h = 31*h + r
	}
	return h
}
