package ha

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// RocketMQ's HAServerTest: four replicas at 123, 123, 124, 125.
func TestGapRuleIsStrict(t *testing.T) {
	const gap = 1000
	ends := []int64{123, 123, 124, 125}
	for _, c := range []struct {
		put  int64
		want int
	}{{gap, 5}, {gap + 122, 5}, {gap + 123, 3}, {gap + 124, 2}, {gap + 125, 1}, {0, 5}} {
		require.Equal(t, c.want, InSyncByGap(c.put, gap, ends), "put %d", c.put)
	}
	require.Equal(t, 2, InSyncByGap(10, gap, []int64{-1}), "a fresh connection has acknowledged −1")
	require.Equal(t, 1, InSyncByGap(gap, gap, []int64{-1}))
}

func TestRequiredCopies(t *testing.T) {
	const gap = 256 << 20
	acting := func(inSync, min int, auto bool) QuorumPolicy {
		return QuorumPolicy{Mode: ActingQuorum, InSyncReplicas: inSync, MinInSync: min, AutoInSync: auto, MaxGapNotInSync: gap}
	}
	near := func(n int) []int64 { return make([]int64, n) }
	for _, c := range []struct {
		name   string
		policy QuorumPolicy
		view   QuorumView
		copies int // 0: refused
	}{
		{"63 defaults do not wait", QuorumPolicy{}, QuorumView{Alive: 1}, 1},
		{"81 need 0 is 1", QuorumPolicy{InSyncReplicas: 0}, QuorumView{}, 1},
		{"65 plain asks for what is configured whoever is there", QuorumPolicy{InSyncReplicas: 2}, QuorumView{Alive: 1}, 2},
		{"76 auto without acting mode degrades nothing", QuorumPolicy{InSyncReplicas: 2, AutoInSync: true}, QuorumView{Alive: 1}, 2},
		{"69 acting, auto off, replica gone: refused", acting(2, 1, false), QuorumView{Alive: 1}, 0},
		{"70 auto, min 1: degrades to the master", acting(2, 1, true), QuorumView{Alive: 1}, 1},
		{"70 auto, min 2: refused", acting(2, 2, true), QuorumView{Alive: 1}, 0},
		{"71 replica back: 2 again", acting(2, 1, true), QuorumView{Alive: 2, ReplicaEnds: near(1)}, 2},
		{"74 alive 1 caps two connections", acting(3, 1, true), QuorumView{Alive: 1, ReplicaEnds: near(2)}, 1},
		{"74 alive 3 with one connection is 2", acting(3, 1, true), QuorumView{Alive: 3, ReplicaEnds: near(1)}, 2},
		{"75 configured 3, in sync 2, min 1: 2", acting(3, 1, true), QuorumView{Alive: 2, ReplicaEnds: near(1)}, 2},
		{"75 configured 2, min 3, in sync 2: refused", acting(2, 3, true), QuorumView{Alive: 2, ReplicaEnds: near(1)}, 0},
		{"75 configured 2, min 3, in sync 3: 3", acting(2, 3, true), QuorumView{Alive: 3, ReplicaEnds: near(2)}, 3},
		{"behind by the gap is out of sync", acting(2, 1, true), QuorumView{Alive: 2, PutEnd: gap, ReplicaEnds: near(1)}, 1},
		{"77 Controller: set below min is refused", QuorumPolicy{Mode: ControllerQuorum, InSyncReplicas: 1, MinInSync: 2}, QuorumView{SyncStateSet: 1}, 0},
		{"78 Controller, all of three", QuorumPolicy{Mode: ControllerQuorum, AllInSyncSet: true}, QuorumView{SyncStateSet: 3}, 3},
		{"78 Controller, all of one", QuorumPolicy{Mode: ControllerQuorum, AllInSyncSet: true}, QuorumView{SyncStateSet: 1}, 1},
		{"79 auto and gap do not touch Controller mode", QuorumPolicy{Mode: ControllerQuorum, InSyncReplicas: 2, AutoInSync: true}, QuorumView{SyncStateSet: 1, Alive: 1}, 2},
		{"80 all-ack has no effect in acting mode", QuorumPolicy{Mode: ActingQuorum, InSyncReplicas: 1, AllInSyncSet: true, MaxGapNotInSync: gap}, QuorumView{Alive: 1}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			need, err := RequiredCopies(c.policy, c.view)
			if c.copies == 0 {
				require.ErrorIs(t, err, ErrInSyncNotEnough)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.copies, need.Copies)
			require.Equal(t, c.policy.AllInSyncSet && c.policy.Mode == ControllerQuorum, need.All)
		})
	}
}

// The specification's formula, written down a second time: need = max(min(inSync configured, in sync), min).
func TestAutoDegradationFollowsTheFormula(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		p := QuorumPolicy{Mode: ActingQuorum, InSyncReplicas: 1 + rng.IntN(4), MinInSync: 1 + rng.IntN(4), AutoInSync: true, MaxGapNotInSync: 10}
		v := QuorumView{Alive: 1 + rng.IntN(5), PutEnd: int64(rng.IntN(40))}
		for range rng.IntN(4) {
			v.ReplicaEnds = append(v.ReplicaEnds, int64(rng.IntN(42)-1))
		}
		inSync := 1
		for _, e := range v.ReplicaEnds {
			if v.PutEnd-e < 10 {
				inSync++
			}
		}
		inSync = min(inSync, v.Alive)
		want := max(min(inSync, p.InSyncReplicas), p.MinInSync)
		need, err := RequiredCopies(p, v)
		require.Equal(t, want, need.Copies)
		require.Equal(t, want > inSync, err != nil)
		require.Equal(t, want < p.InSyncReplicas, need.Degraded)
	}
}
