// Package ha holds the rules of high availability: values and decisions, no I/O, no goroutine, no clock.
package ha

// BrokerID identifies a broker within its group.
type BrokerID int64

// MasterEpoch counts masterships of one broker group; it only grows and is at least 1.
type MasterEpoch int32

// Authority names the broker allowed to write and the epoch it was elected in. Equality is exact on both.
type Authority struct {
	BrokerID BrokerID
	Epoch    MasterEpoch
}

// Durability says what is proved about an appended record at the moment of the answer.
type Durability uint8

// Durabilities, weakest first (HA.md §1.2).
const (
	Memory Durability = iota
	Local
	Replicated
)

// Acknowledgement is the right to answer success for all offsets below End. It is made by DecideReplication or
// AcceptInMemory only; the response writer needs one, so that a success nobody decided does not compile (D5).
type Acknowledgement interface {
	Durability() Durability
	End() int64
	// DurableReplicas counts brokers whose fsync covers End, self included; ReceivedReplicas those that hold it at all.
	DurableReplicas() int
	ReceivedReplicas() int
	Epoch() MasterEpoch
	sealed()
}
