package replication

import (
	"encoding/binary"
	"fmt"
)

// Our own dialect (D3, ADR 0012): AutoSwitchHA's frames, with a hello that names the session which the master granted over
// remoting beforehand, and a report that tells flushed from received bytes. The first word can be neither a DefaultHA
// offset that a log reaches nor an AutoSwitchHA state.
//
//	replica → master, once   ┌─────────────────┬─────────────┬─────────────┬──────────────┐
//	                         │ 'Q''H''A''1' i32│ version i32 │ session u64 │ brokerId i64 │
//	                         └─────────────────┴─────────────┴─────────────┴──────────────┘
//	master → replica, once   HandshakeAck
//	replica → master         ┌─────────────┬───────────┬──────────────┬─────────────┐
//	                         │ state=2 i32 │ epoch i32 │ received i64 │ flushed i64 │
//	                         └─────────────┴───────────┴──────────────┴─────────────┘
//	master → replica         AutoPush and body
const (
	helloMagic      = 0x51484131
	helloVersion    = 1
	helloSize       = 24
	ourReportSize   = 24
	firstWordsBytes = 8 // what tells the dialects apart
)

// Hello opens a session in our dialect.
type Hello struct {
	Session  uint64
	BrokerID int64
}

// AppendHello appends the 24 bytes of h.
func AppendHello(dst []byte, h Hello) []byte {
	dst = binary.BigEndian.AppendUint32(dst, helloMagic)
	dst = binary.BigEndian.AppendUint32(dst, helloVersion)
	dst = binary.BigEndian.AppendUint64(dst, h.Session)
	return binary.BigEndian.AppendUint64(dst, uint64(h.BrokerID))
}

// IsHello reports whether a connection's first bytes are a Hello; b has at least 4 bytes.
func IsHello(b []byte) bool { return binary.BigEndian.Uint32(b) == helloMagic }

// DecodeHello decodes 24 bytes.
func DecodeHello(b []byte) (Hello, error) {
	if len(b) < helloSize {
		return Hello{}, errShort
	}
	if !IsHello(b) {
		return Hello{}, fmt.Errorf("%w: no hello", ErrBadFrame)
	}
	if v := binary.BigEndian.Uint32(b[4:]); v != helloVersion {
		return Hello{}, fmt.Errorf("%w: hello of version %d, this broker speaks %d", ErrBadFrame, v, helloVersion)
	}
	h := Hello{Session: binary.BigEndian.Uint64(b[8:]), BrokerID: int64(binary.BigEndian.Uint64(b[16:]))}
	if h.BrokerID < 0 {
		return Hello{}, fmt.Errorf("%w: broker id %d", ErrBadFrame, h.BrokerID)
	}
	return h, nil
}

// OurReport is what a replica of ours says: the exclusive ends of what it received and of what its fsync covers, under
// which epoch.
type OurReport struct {
	Epoch    int32
	Received int64
	Flushed  int64
}

// AppendOurReport appends the 24 bytes of r.
func AppendOurReport(dst []byte, r OurReport) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(StateTransfer))
	dst = binary.BigEndian.AppendUint32(dst, uint32(r.Epoch))
	dst = binary.BigEndian.AppendUint64(dst, uint64(r.Received))
	return binary.BigEndian.AppendUint64(dst, uint64(r.Flushed))
}

// DecodeOurReport decodes 24 bytes; negative offsets and a flushed end above the received one are refused.
func DecodeOurReport(b []byte) (OurReport, error) {
	if len(b) < ourReportSize {
		return OurReport{}, errShort
	}
	if err := wantState(b, StateTransfer); err != nil {
		return OurReport{}, err
	}
	r := OurReport{
		Epoch:    int32(binary.BigEndian.Uint32(b[4:])),
		Received: int64(binary.BigEndian.Uint64(b[8:])),
		Flushed:  int64(binary.BigEndian.Uint64(b[16:])),
	}
	if r.Epoch < 0 || r.Received < 0 || r.Flushed < 0 || r.Flushed > r.Received {
		return OurReport{}, fmt.Errorf("%w: report of epoch %d, received %d, flushed %d", ErrBadFrame, r.Epoch, r.Received, r.Flushed)
	}
	return r, nil
}
