package replication_test

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ha"
	"github.com/quorate/quorate/replication"
)

// A replica that stopped keeps its connection and owes an acknowledgement: it counts no more, and again when it goes on.
func TestAStalledReplicaCountsNoMore(t *testing.T) {
	timing.Stall = 100 * time.Millisecond
	defer func() { timing.Stall = 0 }()
	m := startMaster(t, true, false, 2, 1)
	m.term.SetQuorum(ha.QuorumPolicy{Mode: ha.ActingQuorum, InSyncReplicas: 2, AutoInSync: true, MaxGapNotInSync: 1 << 20})
	end := m.write(t, 1)
	require.NoError(t, m.Durable().Wait(t.Context(), end))
	conn := dialRaw(t, m)
	_, err := conn.Write(replication.AppendReport(nil, replication.Report{MaxOffset: end}))
	require.NoError(t, err)
	copies := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool {
			need, err := m.term.Need()
			return err == nil && need.Copies == n
		}, time.Second, 5*time.Millisecond, "never %d copies", n)
	}
	copies(2)
	more := m.write(t, 1)
	copies(1)
	m.mu.Lock()
	require.Equal(t, "stalled", m.events[len(m.events)-1].Kind)
	m.mu.Unlock()
	_, err = io.ReadFull(conn, make([]byte, 12+int(more-end)))
	require.NoError(t, err)
	_, err = conn.Write(replication.AppendReport(nil, replication.Report{MaxOffset: more}))
	require.NoError(t, err)
	copies(2)
}
