package message

import "net/netip"

// OffsetID returns the offset message id of a record: hex of store address and CommitLog offset (PROTOCOL §4.6).
func OffsetID(storeHost netip.AddrPort, physicalOffset int64) string { panic("unbuilt") }

// ParseOffsetID is the inverse of OffsetID.
func ParseOffsetID(id string) (storeHost netip.AddrPort, physicalOffset int64, err error) {
	panic("unbuilt")
}

// NewUniqueKey returns a fresh client-style UNIQ_KEY for a message that came without one.
func NewUniqueKey() string { panic("unbuilt") }

// JavaHash is Java's String.hashCode over UTF-16 code units of UTF-8 text (tags codes, index keys).
func JavaHash(s []byte) int32 { panic("unbuilt") }
