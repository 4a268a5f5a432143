package ha

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

const (
	brokerA = BrokerID(1)
	brokerB = BrokerID(2)
	brokerC = BrokerID(3)
	brokerD = BrokerID(4)
)

func set(t testing.TB, ids ...BrokerID) SyncStateSet {
	t.Helper()
	s, err := NewSyncStateSet(ids...)
	require.NoError(t, err)
	return s
}

func count(t testing.TB, n int) AckPolicy {
	t.Helper()
	p, err := ReplicaCount(n)
	require.NoError(t, err)
	return p
}

func at(id BrokerID, end int64) ReplicaAck { return ReplicaAck{id, end} }

// HA.md §10, behaviours 1–6.
func TestInvalidValuesCannotBeBuilt(t *testing.T) {
	for _, v := range []int32{math.MinInt32, -1, 0} {
		_, err := NewMasterEpoch(v)
		require.ErrorIs(t, err, ErrInvalidMasterEpoch)
		_, err = NewSyncStateSetEpoch(v)
		require.ErrorIs(t, err, ErrInvalidSyncStateSetEpoch)
		_, err = NewAuthority(1, v)
		require.ErrorIs(t, err, ErrInvalidMasterEpoch)
	}
	for _, v := range []int32{1, math.MaxInt32} {
		_, err := NewMasterEpoch(v)
		require.NoError(t, err)
		_, err = NewSyncStateSetEpoch(v)
		require.NoError(t, err)
	}
	_, err := NewAuthority(-1, 1)
	require.ErrorIs(t, err, ErrInvalidBrokerID)
	_, err = BrokerIDFromUint64(math.MaxInt64 + 1)
	require.ErrorIs(t, err, ErrInvalidBrokerID)

	_, err = NewSyncStateSet()
	require.ErrorIs(t, err, ErrEmptySyncStateSet)
	_, err = NewSyncStateSet(1, -1)
	require.ErrorIs(t, err, ErrInvalidBrokerID)
	require.Equal(t, []BrokerID{1, 2}, set(t, 2, 1, 2).IDs())

	valid := Observation{Current: Authority{brokerA, 5}, Set: set(t, brokerA)}
	_, err = NewObservation(valid)
	require.NoError(t, err)
	broken := valid
	broken.Set = set(t, brokerB)
	_, err = NewObservation(broken)
	require.ErrorIs(t, err, ErrLeaderMissing)
	for _, break1 := range []func(*Observation){
		func(o *Observation) { o.Required = -1 },
		func(o *Observation) { o.LocalDurable = -1 },
		func(o *Observation) { o.Acks = []ReplicaAck{at(brokerB, -1)} },
	} {
		broken = valid
		break1(&broken)
		_, err = NewObservation(broken)
		require.ErrorIs(t, err, ErrInvalidOffset)
	}

	for _, n := range []int{0, 1} {
		_, err = ReplicaCount(n)
		require.ErrorIs(t, err, ErrInvalidReplicaCount)
	}
	for n, want := range map[int]string{-1: "all-in-sync-set", 1: "local-durable", 2: "replica-count(2)"} {
		p, err := AckPolicyFromCount(n)
		require.NoError(t, err)
		require.Equal(t, want, p.String())
	}
	for _, n := range []int{0, -2} {
		_, err = AckPolicyFromCount(n)
		require.ErrorIs(t, err, ErrInvalidAckPolicy)
	}
}

// The truth table of HA.md §2 and behaviours 7–17: A leads under epoch 5, the append ends at 100.
func TestDecideReplicationTruthTable(t *testing.T) {
	abc, ab, onlyA := set(t, brokerA, brokerB, brokerC), set(t, brokerA, brokerB), set(t, brokerA)
	all, local := AllInSyncSet(), LocalDurable()
	for _, c := range []struct {
		name      string
		requested Authority
		local     int64
		policy    AckPolicy
		set       SyncStateSet
		acks      []ReplicaAck
		want      Verdict
		label     Durability
		replicas  int
	}{
		{"7 older epoch", Authority{brokerA, 4}, 0, local, abc, nil, RejectStale, 0, 0},
		{"older epoch of another broker", Authority{brokerB, 4}, 100, local, abc, nil, RejectStale, 0, 0},
		{"8 same epoch, other broker", Authority{brokerB, 5}, 100, local, abc, nil, RejectMismatch, 0, 0},
		{"8 future epoch", Authority{brokerA, 6}, 100, local, abc, nil, RejectMismatch, 0, 0},
		{"future epoch of another broker", Authority{brokerB, 6}, 0, local, abc, nil, RejectMismatch, 0, 0},
		{"9 local behind, replicas far ahead", Authority{brokerA, 5}, 99, all, abc, []ReplicaAck{at(brokerB, 900), at(brokerC, 900)}, Wait, 0, 0},
		{"10 local durable", Authority{brokerA, 5}, 100, local, abc, nil, Acknowledge, Local, 1},
		{"11 count 2, exactly required", Authority{brokerA, 5}, 100, count(t, 2), abc, []ReplicaAck{at(brokerB, 100)}, Acknowledge, Replicated, 2},
		{"11 count 2, one short", Authority{brokerA, 5}, 100, count(t, 2), abc, []ReplicaAck{at(brokerB, 99)}, Wait, 0, 0},
		{"12 count 3, B twice", Authority{brokerA, 5}, 100, count(t, 3), abc, []ReplicaAck{at(brokerB, 100), at(brokerB, 100)}, Wait, 0, 0},
		{"a low duplicate does not cancel a high one", Authority{brokerA, 5}, 100, count(t, 2), abc, []ReplicaAck{at(brokerB, 100), at(brokerB, 3)}, Acknowledge, Replicated, 2},
		{"13 stranger", Authority{brokerA, 5}, 100, count(t, 2), onlyA, []ReplicaAck{at(brokerB, 100)}, Wait, 0, 0},
		{"14 the master's own id in the acks", Authority{brokerA, 5}, 100, count(t, 2), abc, []ReplicaAck{at(brokerA, 100)}, Wait, 0, 0},
		{"15 all of one is local", Authority{brokerA, 5}, 100, all, onlyA, nil, Acknowledge, Local, 1},
		{"all of one, behind", Authority{brokerA, 5}, 99, all, onlyA, nil, Wait, 0, 0},
		{"16 all of three, one missing", Authority{brokerA, 5}, 100, all, abc, []ReplicaAck{at(brokerB, 100)}, Wait, 0, 0},
		{"16 all of three", Authority{brokerA, 5}, 100, all, abc, []ReplicaAck{at(brokerB, 100), at(brokerC, 150)}, Acknowledge, Replicated, 3},
		{"stranger ignored", Authority{brokerA, 5}, 100, all, ab, []ReplicaAck{at(brokerB, 100), at(brokerD, 5)}, Acknowledge, Replicated, 2},
		{"17 count 3 of a set of 2: never a downgrade", Authority{brokerA, 5}, 100, count(t, 3), ab, []ReplicaAck{at(brokerB, 100)}, Wait, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := DecideReplication(Observation{
				Current: Authority{brokerA, 5}, Requested: c.requested, Policy: c.policy,
				Required: 100, LocalDurable: c.local, Acks: c.acks, Set: c.set,
			})
			require.Equal(t, c.want, d.Verdict)
			if d.Verdict == Acknowledge {
				require.Equal(t, c.label, d.Ack.Durability())
				require.Equal(t, int64(100), d.Ack.End(), "the required offset, never a larger watermark")
				require.Equal(t, c.replicas, d.Ack.DurableReplicas())
				require.Equal(t, MasterEpoch(5), d.Ack.Epoch())
			} else {
				require.Equal(t, ReplicationAcknowledgement{}, d.Ack)
			}
		})
	}
}

func TestNobodyIsMasterUnderTheZeroEpoch(t *testing.T) {
	d := DecideReplication(Observation{Set: set(t, 0)})
	require.Equal(t, RejectMismatch, d.Verdict)
	_, v := AcceptInMemory(AcceptMode{}, Holding{Set: set(t, 0)})
	require.Equal(t, RejectMismatch, v)
}

// oracle is DecideReplication written from the specification's words, the slow way.
func oracle(o Observation, policyCount int) (Verdict, Durability) {
	if o.Requested.Epoch < o.Current.Epoch {
		return RejectStale, 0
	}
	if o.Requested.Epoch != o.Current.Epoch || o.Requested.BrokerID != o.Current.BrokerID {
		return RejectMismatch, 0
	}
	if o.LocalDurable < o.Required {
		return Wait, 0
	}
	holders := map[BrokerID]bool{o.Current.BrokerID: true}
	for _, a := range o.Acks {
		if slices.Contains(o.Set.IDs(), a.BrokerID) && a.DurableOffset >= o.Required {
			holders[a.BrokerID] = true
		}
	}
	switch {
	case policyCount == 1:
		return Acknowledge, Local
	case policyCount >= 2:
		if len(holders) >= policyCount {
			return Acknowledge, Replicated
		}
	default:
		for _, m := range o.Set.IDs() {
			if !holders[m] {
				return Wait, 0
			}
		}
		if o.Set.Size() == 1 {
			return Acknowledge, Local
		}
		return Acknowledge, Replicated
	}
	return Wait, 0
}

func randomObservation(rng *rand.Rand) (Observation, int) {
	authority := func() Authority {
		return Authority{BrokerID(1 + rng.IntN(3)), MasterEpoch(1 + rng.IntN(3))}
	}
	n := []int{-1, 1, 2, 3, 4}[rng.IntN(5)]
	policy, _ := AckPolicyFromCount(n)
	o := Observation{Current: authority(), Policy: policy, Required: int64(rng.IntN(4)), LocalDurable: int64(rng.IntN(5))}
	o.Requested = o.Current
	if rng.IntN(4) == 0 {
		o.Requested = authority()
	}
	ids := []BrokerID{o.Current.BrokerID}
	for range rng.IntN(4) {
		ids = append(ids, BrokerID(1+rng.IntN(4)))
	}
	o.Set, _ = NewSyncStateSet(ids...)
	for range rng.IntN(5) {
		o.Acks = append(o.Acks, ReplicaAck{BrokerID(1 + rng.IntN(5)), int64(rng.IntN(5))})
	}
	return o, n
}

// Behaviour 18.
func TestDecisionsArePureAndEqualTheOracle(t *testing.T) {
	rng := rand.New(rand.NewPCG(18, 18))
	for range 50_000 {
		o, n := randomObservation(rng)
		before := o
		before.Acks = slices.Clone(o.Acks)
		d := DecideReplication(o)
		require.Equal(t, d, DecideReplication(o))
		require.Empty(t, cmp.Diff(before, o, cmp.AllowUnexported(SyncStateSet{}, AckPolicy{})))
		verdict, label := oracle(o, n)
		require.Equal(t, verdict, d.Verdict, "%+v", o)
		require.Equal(t, label, d.Ack.Durability())

		frontier := AckFrontier(o, nil)
		if o.Requested == o.Current {
			for required := int64(1); required < 6; required++ { // an append is never empty
				probe := o
				probe.Required = required
				require.Equal(t, required <= frontier, DecideReplication(probe).Verdict == Acknowledge,
					"frontier %d required %d of %+v", frontier, required, o)
			}
		} else {
			require.Zero(t, frontier)
		}
	}
}

func FuzzDecideReplicationEqualsTheOracle(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) {
		o, n := randomObservation(rand.New(rand.NewPCG(a, b)))
		verdict, label := oracle(o, n)
		d := DecideReplication(o)
		require.Equal(t, verdict, d.Verdict)
		require.Equal(t, label, d.Ack.Durability())
	})
}

func TestAcceptInMemoryIsOnlyEverMemory(t *testing.T) {
	abc := set(t, brokerA, brokerB, brokerC)
	now := Authority{brokerA, 5}
	h := Holding{Current: now, Requested: now, Required: 100, Written: 100, Acks: []ReplicaAck{at(brokerB, 100), at(brokerD, 100)}, Set: abc}
	for received, want := range map[int]Verdict{0: Acknowledge, 1: Acknowledge, 2: Acknowledge, 3: Wait} {
		a, v := AcceptInMemory(AcceptMode{Received: received}, h)
		require.Equal(t, want, v)
		require.Equal(t, Memory, a.Durability())
		require.Zero(t, a.DurableReplicas())
	}
	h.Written = 99
	_, v := AcceptInMemory(AcceptMode{}, h)
	require.Equal(t, Wait, v)
	h.Written, h.Requested = 100, Authority{brokerA, 4}
	_, v = AcceptInMemory(AcceptMode{}, h)
	require.Equal(t, RejectStale, v)
	h.Requested = Authority{brokerB, 5}
	_, v = AcceptInMemory(AcceptMode{}, h)
	require.Equal(t, RejectMismatch, v)
}

func BenchmarkDecideReplication(b *testing.B) {
	b.ReportAllocs()
	p, _ := ReplicaCount(2)
	s, _ := NewSyncStateSet(1, 2, 3)
	o := Observation{
		Current: Authority{1, 5}, Requested: Authority{1, 5}, Policy: p, Required: 100, LocalDurable: 100,
		Acks: []ReplicaAck{{2, 90}, {3, 100}}, Set: s,
	}
	for b.Loop() {
		if DecideReplication(o).Verdict != Acknowledge {
			b.Fatal("not acknowledged")
		}
	}
}
