package replication

import (
	"encoding/binary"
	"fmt"
)

// State is the connection state that each AutoSwitchHA frame starts with (RocketMQ HAConnectionState ordinals).
type State int32

// States on the wire.
const (
	StateReady     State = 0
	StateHandshake State = 1
	StateTransfer  State = 2
	StateSuspend   State = 3
	StateShutdown  State = 4
)

// Handshake is what an AutoSwitchHA replica sends first (PROTOCOL §6.2, AutoSwitchHAClient):
//
//	┌─────────────┬──────────────────────────┬────────────────────┬──────────────┐
//	│ state=1 i32 │ isSyncFromLastFile   i16 │ isAsyncLearner i16 │ brokerId i64 │
//	└─────────────┴──────────────────────────┴────────────────────┴──────────────┘
type Handshake struct {
	FromLastFile bool
	AsyncLearner bool
	BrokerID     int64
}

// AppendHandshake appends the 16 bytes of h.
func AppendHandshake(dst []byte, h Handshake) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(StateHandshake))
	dst = binary.BigEndian.AppendUint16(dst, flag16(h.FromLastFile))
	dst = binary.BigEndian.AppendUint16(dst, flag16(h.AsyncLearner))
	return binary.BigEndian.AppendUint64(dst, uint64(h.BrokerID))
}

// DecodeHandshake decodes 16 bytes whose state is StateHandshake.
func DecodeHandshake(b []byte) (Handshake, error) {
	if len(b) < handshakeSize {
		return Handshake{}, errShort
	}
	if err := wantState(b, StateHandshake); err != nil {
		return Handshake{}, err
	}
	h := Handshake{
		FromLastFile: binary.BigEndian.Uint16(b[4:]) == 1,
		AsyncLearner: binary.BigEndian.Uint16(b[6:]) == 1,
		BrokerID:     int64(binary.BigEndian.Uint64(b[8:])),
	}
	if h.BrokerID < 0 {
		return Handshake{}, fmt.Errorf("%w: broker id %d", ErrBadFrame, h.BrokerID)
	}
	return h, nil
}

// EpochStart is one entry of an epoch history on the wire: the epoch and the physical offset it began at.
type EpochStart struct {
	Epoch int32
	Start int64
}

// HandshakeAck is the master's answer: its end of log, its last epoch and its whole epoch history (at most 1000 entries).
//
//	┌─────────────┬──────────────────┬───────────────┬───────────────┬──────────────────────────────┐
//	│ state=1 i32 │ bodySize=12n i32 │ maxOffset i64 │ lastEpoch i32 │ n × { epoch i32, start i64 } │
//	└─────────────┴──────────────────┴───────────────┴───────────────┴──────────────────────────────┘
type HandshakeAck struct {
	MaxOffset int64
	LastEpoch int32
	Epochs    []EpochStart
}

// AppendHandshakeAck appends header and entries of a.
func AppendHandshakeAck(dst []byte, a HandshakeAck) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(StateHandshake))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(a.Epochs)*epochEntrySize))
	dst = binary.BigEndian.AppendUint64(dst, uint64(a.MaxOffset))
	dst = binary.BigEndian.AppendUint32(dst, uint32(a.LastEpoch))
	for _, e := range a.Epochs {
		dst = binary.BigEndian.AppendUint32(dst, uint32(e.Epoch))
		dst = binary.BigEndian.AppendUint64(dst, uint64(e.Start))
	}
	return dst
}

// HandshakeAckBodySize checks the 20-byte header and says how many bytes of entries follow.
func HandshakeAckBodySize(header []byte) (int, error) {
	if len(header) < handshakeAckSize {
		return 0, errShort
	}
	if err := wantState(header, StateHandshake); err != nil {
		return 0, err
	}
	n := int32(binary.BigEndian.Uint32(header[4:]))
	if n < 0 || n%epochEntrySize != 0 || n > epochEntriesMax*epochEntrySize {
		return 0, fmt.Errorf("%w: epoch list of %d bytes", ErrBadFrame, n)
	}
	return int(n), nil
}

// DecodeHandshakeAck decodes header and entries. Epochs and starts must grow.
func DecodeHandshakeAck(b []byte) (HandshakeAck, error) {
	n, err := HandshakeAckBodySize(b)
	if err != nil {
		return HandshakeAck{}, err
	}
	if len(b) < handshakeAckSize+n {
		return HandshakeAck{}, errShort
	}
	a := HandshakeAck{
		MaxOffset: int64(binary.BigEndian.Uint64(b[8:])),
		LastEpoch: int32(binary.BigEndian.Uint32(b[16:])),
		Epochs:    make([]EpochStart, 0, n/epochEntrySize),
	}
	for at := handshakeAckSize; at < handshakeAckSize+n; at += epochEntrySize {
		e := EpochStart{int32(binary.BigEndian.Uint32(b[at:])), int64(binary.BigEndian.Uint64(b[at+4:]))}
		if k := len(a.Epochs); e.Epoch <= 0 || e.Start < 0 || k > 0 && (e.Epoch <= a.Epochs[k-1].Epoch || e.Start < a.Epochs[k-1].Start) {
			return HandshakeAck{}, fmt.Errorf("%w: epoch entry %d starts at %d", ErrBadFrame, e.Epoch, e.Start)
		}
		a.Epochs = append(a.Epochs, e)
	}
	return a, nil
}

// AppendAutoReport appends a replica's transfer report: state 2 and the exclusive end of its log.
func AppendAutoReport(dst []byte, r Report) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(StateTransfer))
	return AppendReport(dst, r)
}

// DecodeAutoReport decodes the 12 bytes of a transfer report.
func DecodeAutoReport(b []byte) (Report, error) {
	if len(b) < autoReportSize {
		return Report{}, errShort
	}
	if err := wantState(b, StateTransfer); err != nil {
		return Report{}, err
	}
	return DecodeReport(b[4:])
}

// AutoPush is the header of one AutoSwitchHA transfer. A body lies in one file and in one epoch.
//
//	┌─────────────┬──────────────┬────────────┬───────────┬────────────────┬───────────────────┬──────┐
//	│ state=2 i32 │ bodySize i32 │ offset i64 │ epoch i32 │ epochStart i64 │ confirmOffset i64 │ body │
//	└─────────────┴──────────────┴────────────┴───────────┴────────────────┴───────────────────┴──────┘
//
// BodySize 0 is a heartbeat; its offset is the next to send and may be −1.
type AutoPush struct {
	Push
	Epoch      int32
	EpochStart int64
	Confirm    int64
}

// AppendAutoPush appends the 36-byte header of p.
func AppendAutoPush(dst []byte, p AutoPush) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(StateTransfer))
	dst = binary.BigEndian.AppendUint32(dst, uint32(p.BodySize))
	dst = binary.BigEndian.AppendUint64(dst, uint64(p.Offset))
	dst = binary.BigEndian.AppendUint32(dst, uint32(p.Epoch))
	dst = binary.BigEndian.AppendUint64(dst, uint64(p.EpochStart))
	return binary.BigEndian.AppendUint64(dst, uint64(p.Confirm))
}

// DecodeAutoPush decodes a 36-byte header and bounds its body size.
func DecodeAutoPush(b []byte) (AutoPush, error) {
	if len(b) < autoPushSize {
		return AutoPush{}, errShort
	}
	if err := wantState(b, StateTransfer); err != nil {
		return AutoPush{}, err
	}
	p := AutoPush{
		Push:       Push{BodySize: int32(binary.BigEndian.Uint32(b[4:])), Offset: int64(binary.BigEndian.Uint64(b[8:]))},
		Epoch:      int32(binary.BigEndian.Uint32(b[16:])),
		EpochStart: int64(binary.BigEndian.Uint64(b[20:])),
		Confirm:    int64(binary.BigEndian.Uint64(b[28:])),
	}
	return p, checkBody(p.Offset, p.BodySize)
}

// FrameState returns the state that an AutoSwitchHA frame starts with; b has at least 4 bytes.
func FrameState(b []byte) State { return State(int32(binary.BigEndian.Uint32(b))) }

func wantState(b []byte, want State) error {
	if got := FrameState(b); got != want {
		return fmt.Errorf("%w: state %d where %d is due", ErrBadFrame, got, want)
	}
	return nil
}

func flag16(b bool) uint16 {
	if b {
		return 1
	}
	return 0
}
