package replication_test

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ha"
	"github.com/quorate/quorate/ha/group"
	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/replication"
)

// copyOf copies what n holds up to end, with its history, as a replica that followed it.
func copyOf(t *testing.T, n *node, end int64) *node {
	t.Helper()
	c := openLog(t, true)
	require.NoError(t, c.AppendRaw(n.bytes(t, 0, end), 0, nil))
	c.Kick(false)
	require.NoError(t, c.Durable().Wait(t.Context(), end))
	require.NoError(t, c.SetHistory(n.History().TruncateTo(end)))
	return c
}

func other(t *testing.T, n *node, text string) int64 {
	t.Helper()
	m := message.Message{
		Topic: "t", Body: bytes.Repeat([]byte(text), 50),
		BornHost: netip.MustParseAddrPort("127.0.0.1:1"), StoreHost: netip.MustParseAddrPort("127.0.0.1:2"),
	}
	at, err := n.Append(&m, nil, &n.queue)
	require.NoError(t, err)
	n.Kick(false)
	require.NoError(t, n.Durable().Wait(t.Context(), at.End))
	return at.End
}

// A master that lost its unsynced end comes back, and writes other bytes where the replica still holds the old ones: the
// replica cuts to where they agree, and ends byte-equal. Without epochs it would keep them, for its end lies within the
// master's log.
func TestReplicaCutsWhatTheMasterLost(t *testing.T) {
	lost := openLog(t, true)
	require.NoError(t, lost.BeginEpoch(ha.EpochEntry{Epoch: 1}))
	agreed := lost.write(t, 10)
	master := &master{node: copyOf(t, lost, agreed)}
	other(t, lost, "lost")
	replica := copyOf(t, lost, lost.Appended().Load())

	master.serve(t, true, true, 2, 1)
	end := other(t, master.node, "new, and more than was there before")
	require.Greater(t, end, replica.Appended().Load())
	f, _ := master.followedBy(t, replica, 1, true)
	require.NoError(t, master.await(t, end, 2, true).Err)
	require.Equal(t, master.bytes(t, 0, end), replica.bytes(t, 0, end))
	require.Equal(t, master.History(), replica.History())
	require.True(t, f.Status().Connected)
}

// HA.md 59: masters that began epochs and wrote nothing stop nobody from following.
func TestEpochsWithoutAByteAreNoDivergence(t *testing.T) {
	m := startMaster(t, true, true, 2, 1)
	end := m.write(t, 3)
	require.NoError(t, m.Durable().Wait(t.Context(), end))
	replica := copyOf(t, m.node, end)
	for epoch := range 9 { // the replica heard of other empty epochs than the master kept
		require.NoError(t, replica.BeginEpoch(ha.EpochEntry{Epoch: ha.MasterEpoch(2 + epoch), Start: end}))
	}
	for range 10 {
		require.NoError(t, m.BeginEpoch(ha.EpochEntry{Epoch: m.History().Last() + 1, Start: end}))
	}
	end = m.write(t, 3)
	m.followedBy(t, replica, 1, true)
	require.NoError(t, m.await(t, end, 2, true).Err)
	require.Equal(t, m.History(), replica.History())
}

func TestLogsWithoutACommonEpochAreLeftAlone(t *testing.T) {
	m := startMaster(t, true, true, 2, 1)
	m.write(t, 20)
	stranger := openLog(t, true)
	require.NoError(t, stranger.BeginEpoch(ha.EpochEntry{Epoch: 7, Start: 0}))
	end := other(t, stranger, "another group's")
	f, _ := m.followedBy(t, stranger, 1, true)
	require.Eventually(t, func() bool { return f.Status().Reason != "not started" && !f.Status().Connected }, 5*time.Second, 5*time.Millisecond)
	require.Contains(t, f.Status().Reason, group.ErrDiverged.Error())
	require.Equal(t, end, stranger.Appended().Load())
}

// A replica without a history followed by RocketMQ's protocol. Its log counts as the master's up to the end of the
// master's first epoch, and beyond it nothing is believed.
func TestReplicaWithoutHistory(t *testing.T) {
	for _, within := range []bool{true, false} {
		m := startMaster(t, true, true, 2, 1)
		half := m.write(t, 10)
		require.NoError(t, m.Durable().Wait(t.Context(), half))
		replica := copyOf(t, m.node, half)
		require.NoError(t, replica.SetHistory(ha.History{}))
		if within {
			require.NoError(t, m.BeginEpoch(ha.EpochEntry{Epoch: 2, Start: half}))
		} else {
			require.NoError(t, m.SetHistory(mustHistory(t, ha.EpochEntry{Epoch: 1}, ha.EpochEntry{Epoch: 2, Start: half - 200})))
		}
		end := m.write(t, 10)
		f, _ := m.followedBy(t, replica, 1, true)
		if within {
			require.NoError(t, m.await(t, end, 2, true).Err)
			require.Equal(t, m.History(), replica.History())
			continue
		}
		require.Eventually(t, func() bool { return f.Status().Reason != "not started" && !f.Status().Connected }, 5*time.Second, 5*time.Millisecond)
		require.Contains(t, f.Status().Reason, "remove the replica's store")
		require.Equal(t, half, replica.Appended().Load())
	}
}

func mustHistory(t *testing.T, entries ...ha.EpochEntry) ha.History {
	t.Helper()
	h, err := ha.NewHistory(entries)
	require.NoError(t, err)
	return h
}

// I12: a replica of ours shows what its master's consumers may see, soon after; RocketMQ's protocol does not say, so that a
// replica shows all it holds.
func TestReplicaShowsWhatTheMasterConfirmed(t *testing.T) {
	m := startMaster(t, true, true, 3, 1) // nobody is there to be the third copy
	end := m.write(t, 10)
	ours, plain := openLog(t, true), openLog(t, true)
	m.followedBy(t, ours, 1, true)
	require.NoError(t, ours.Durable().Wait(t.Context(), end))
	require.Zero(t, ours.Confirmed().Load())
	m.term.SetQuorum(ha.QuorumPolicy{InSyncReplicas: 2})
	require.NoError(t, m.Confirmed().Wait(t.Context(), end)) // once the replica's report of its fsync is there
	require.NoError(t, ours.Confirmed().Wait(t.Context(), end))

	m.followedBy(t, plain, 2, false)
	require.NoError(t, plain.Confirmed().Wait(t.Context(), end))
	require.Zero(t, plain.History().Last())
}

func TestANonMasterTurnsReplicasAway(t *testing.T) {
	m := startMaster(t, true, true, 2, 1)
	m.progress.Store(true)
	conn := dialRaw(t, m)
	_, err := conn.Write(replication.AppendReport(nil, replication.Report{}))
	require.NoError(t, err)
	m.closedFor(t, replication.ErrNotMaster)
}
