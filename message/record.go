package message

// RecordSize returns the encoded size of m in bytes, or an error when topic, properties or body exceed the format.
func RecordSize(m *Message) (int, error) { panic("unbuilt") }

// AppendRecord appends the CommitLog record of m to dst (PROTOCOL §4.2), with the given positions and store time.
// The caller has checked sizes with RecordSize. It does not allocate when dst has room.
func AppendRecord(dst []byte, m *Message, physicalOffset, queueOffset, storeTimestamp int64) []byte {
	panic("unbuilt")
}

// DecodeRecord decodes the first record of b. Every length is checked against b; it never panics. With checkCRC the body
// checksum is verified. The result aliases b.
func DecodeRecord(b []byte, checkCRC bool) (Record, error) { panic("unbuilt") }

// BatchEntry is one message of a batch body (PROTOCOL §3.1).
type BatchEntry struct {
	Flag       int32
	Body       []byte
	Properties Properties
}

// DecodeBatch decodes a client batch block. Entries alias b. At most max entries are accepted.
func DecodeBatch(b []byte, max int) ([]BatchEntry, error) { panic("unbuilt") }

// AppendBatchEntry appends one entry in the client's batch form.
func AppendBatchEntry(dst []byte, e BatchEntry) []byte { panic("unbuilt") }
