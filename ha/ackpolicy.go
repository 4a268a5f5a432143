package ha

import "fmt"

type policyKind uint8

const (
	localDurable policyKind = iota
	replicaCount
	allInSyncSet
)

// AckPolicy says who must have fsynced a range before it is acknowledged. The zero value is LocalDurable.
type AckPolicy struct {
	kind policyKind
	n    int
}

// LocalDurable asks for the master's own fsync.
func LocalDurable() AckPolicy { return AckPolicy{} }

// ReplicaCount asks for n distinct members, the master included; n is at least 2, since 1 is LocalDurable.
func ReplicaCount(n int) (AckPolicy, error) {
	if n < 2 {
		return AckPolicy{}, fmt.Errorf("%w: %d", ErrInvalidReplicaCount, n)
	}
	return AckPolicy{kind: replicaCount, n: n}, nil
}

// AllInSyncSet asks for every member of the sync-state set.
func AllInSyncSet() AckPolicy { return AckPolicy{kind: allInSyncSet} }

// AckPolicyFromCount converts RocketMQ's integer: −1 all, 1 local, n ≥ 2 a count.
func AckPolicyFromCount(n int) (AckPolicy, error) {
	switch {
	case n == -1:
		return AllInSyncSet(), nil
	case n == 1:
		return LocalDurable(), nil
	case n >= 2:
		return ReplicaCount(n)
	default:
		return AckPolicy{}, fmt.Errorf("%w: %d", ErrInvalidAckPolicy, n)
	}
}

// String names the policy as operators see it.
func (p AckPolicy) String() string {
	switch p.kind {
	case replicaCount:
		return fmt.Sprintf("replica-count(%d)", p.n)
	case allInSyncSet:
		return "all-in-sync-set"
	default:
		return "local-durable"
	}
}

// Copies is how many members p asks for in a set of the given size.
func (p AckPolicy) Copies(setSize int) int {
	switch p.kind {
	case replicaCount:
		return p.n
	case allInSyncSet:
		return setSize
	default:
		return 1
	}
}
