package group

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ha"
)

func TestEveryReportingReplicaIsAMemberOfAStaticGroupOnce(t *testing.T) {
	m, err := NewMaster(MasterConfig{Authority: ha.Authority{BrokerID: 0, Epoch: 1}, Sync: true, Quorum: ha.QuorumPolicy{InSyncReplicas: 2}})
	require.NoError(t, err)
	m.Progress(100, 100, 100)
	require.NoError(t, m.Report(7, 100, 100))
	require.NoError(t, m.Report(7, 10, 10))
	require.Equal(t, []ha.BrokerID{0, 7}, m.judged().IDs())
	require.NoError(t, m.Report(9, 50, 0))
	require.Equal(t, []ha.BrokerID{0, 7, 9}, m.judged().IDs())
}

// Behaviour 38: a renewal does not invalidate an append in flight; behaviour 37: an expiry does, even when a new grant
// follows at once.
func TestARenewalKeepsAWaitAndAnExpiryFencesIt(t *testing.T) {
	m, err := NewMaster(MasterConfig{Authority: ha.Authority{BrokerID: 1, Epoch: 4}, SyncFlush: true, Lease: true})
	require.NoError(t, err)
	_, err = m.Admit(0)
	require.ErrorIs(t, err, ErrLeaseExpired, "a lease begins expired")
	require.Nil(t, m.Extend(0, 8*time.Second))
	pass, err := m.Admit(time.Second)
	require.NoError(t, err)
	m.Progress(10, 10, 0)
	_, decided := m.Submit(time.Second, Wait{Pass: pass, End: 10, Flush: true}, nil)
	require.False(t, decided)
	require.Nil(t, m.Extend(2*time.Second, 10*time.Second))
	m.Progress(10, 10, 10)
	_, answered := m.Settle(9 * time.Second)
	require.NotNil(t, answered)
	require.True(t, answered.Outcome.Acknowledged(10))

	late, err := m.Admit(9 * time.Second)
	require.NoError(t, err)
	m.Progress(20, 20, 10)
	_, decided = m.Submit(9*time.Second, Wait{Pass: late, End: 20, Flush: true}, nil)
	require.False(t, decided)
	fenced := m.Extend(10*time.Second, 18*time.Second) // exactly at the deadline the lease is over
	require.NotNil(t, fenced)
	require.ErrorIs(t, fenced.Outcome.Err, ErrFenced)
	require.ErrorIs(t, m.Valid(11*time.Second, late), ErrFenced)
}
