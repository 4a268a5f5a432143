// Package ha holds the rules of high availability: values and decisions, no I/O, no goroutine, no clock.
//
// A success leaves this package as an Acknowledgement, and only DecideReplication and AcceptInMemory make one (D5).
package ha

import (
	"errors"
	"fmt"
	"math"
)

// BrokerID identifies a broker within its group; it is never negative.
type BrokerID int64

// NewBrokerID checks an id from the wire.
func NewBrokerID(v int64) (BrokerID, error) {
	if v < 0 {
		return 0, fmt.Errorf("%w: %d", ErrInvalidBrokerID, v)
	}
	return BrokerID(v), nil
}

// BrokerIDFromUint64 checks an unsigned id.
func BrokerIDFromUint64(v uint64) (BrokerID, error) {
	if v > math.MaxInt64 {
		return 0, fmt.Errorf("%w: %d is out of range", ErrInvalidBrokerID, v)
	}
	return BrokerID(v), nil
}

// MasterEpoch counts masterships of one broker group; it only grows and is at least 1.
type MasterEpoch int32

// NewMasterEpoch checks an epoch from the wire.
func NewMasterEpoch(v int32) (MasterEpoch, error) {
	if v <= 0 {
		return 0, fmt.Errorf("%w: %d", ErrInvalidMasterEpoch, v)
	}
	return MasterEpoch(v), nil
}

// SyncStateSetEpoch counts versions of a sync-state set. It is never compared with a MasterEpoch: the types differ.
type SyncStateSetEpoch int32

// NewSyncStateSetEpoch checks an epoch from the wire.
func NewSyncStateSetEpoch(v int32) (SyncStateSetEpoch, error) {
	if v <= 0 {
		return 0, fmt.Errorf("%w: %d", ErrInvalidSyncStateSetEpoch, v)
	}
	return SyncStateSetEpoch(v), nil
}

// Authority names the broker allowed to write and the epoch it was elected in. Equality is exact on both parts. The zero
// value is no authority; NewAuthority makes a valid one.
type Authority struct {
	BrokerID BrokerID
	Epoch    MasterEpoch
}

// NewAuthority checks both parts.
func NewAuthority(id int64, epoch int32) (Authority, error) {
	b, err := NewBrokerID(id)
	if err != nil {
		return Authority{}, err
	}
	e, err := NewMasterEpoch(epoch)
	if err != nil {
		return Authority{}, err
	}
	return Authority{BrokerID: b, Epoch: e}, nil
}

// Durability says what is proved about an appended record at the moment of the answer.
type Durability uint8

// Durabilities, weakest first (HA.md §1.2).
const (
	Memory Durability = iota
	Local
	Replicated
)

// String is the word of the ext field "durability".
func (d Durability) String() string {
	switch d {
	case Local:
		return "local"
	case Replicated:
		return "replicated"
	default:
		return "memory"
	}
}

// Errors of constructors. Match with errors.Is.
var (
	ErrInvalidBrokerID          = errors.New("ha: invalid broker id")
	ErrInvalidMasterEpoch       = errors.New("ha: invalid master epoch")
	ErrInvalidSyncStateSetEpoch = errors.New("ha: invalid sync-state-set epoch")
	ErrInvalidOffset            = errors.New("ha: invalid offset")
	ErrEmptySyncStateSet        = errors.New("ha: empty sync-state set")
	ErrInvalidReplicaCount      = errors.New("ha: invalid replica count")
	ErrInvalidAckPolicy         = errors.New("ha: invalid ack policy")
	ErrLeaderMissing            = errors.New("ha: master missing from the sync-state set")
)
