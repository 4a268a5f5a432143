// Package message is the message model and its binary forms: properties, ids and the CommitLog record, which is also
// the body of a pull answer and the payload of replication. It knows nothing of files or sockets.
package message

import "net/netip"

// Message is one message on its way into the log. Byte slices are borrowed: an append copies them into the log, so the
// owner may reuse them as soon as the append has returned. Times are milliseconds since the Unix epoch.
type Message struct {
	Topic      string
	QueueID    int32
	Flag       int32 // the user's flag, opaque to the broker
	SysFlag    SysFlag
	Properties Properties // encoded form, PROTOCOL §4.3
	Body       []byte

	BornTimestamp  int64
	BornHost       netip.AddrPort
	StoreHost      netip.AddrPort
	ReconsumeTimes int32

	// PreparedTransactionOffset is the CommitLog offset of the half message of a committed transaction message.
	PreparedTransactionOffset int64

	// TagsCode overrides the consume-queue tags code when HasTagsCode is set (delay topic: delivery time in ms).
	TagsCode    int64
	HasTagsCode bool
}

// Record is one decoded CommitLog record. Its byte slices and Topic alias the decoded buffer.
type Record struct {
	Size                      int32 // whole record in bytes
	BodyCRC                   uint32
	QueueID                   int32
	Flag                      int32
	QueueOffset               int64
	PhysicalOffset            int64
	SysFlag                   SysFlag
	BornTimestamp             int64
	BornHost                  netip.AddrPort
	StoreTimestamp            int64
	StoreHost                 netip.AddrPort
	ReconsumeTimes            int32
	PreparedTransactionOffset int64
	Body                      []byte
	Topic                     []byte
	Properties                Properties
}
