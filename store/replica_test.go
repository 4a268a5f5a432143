package store_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ha"
	"github.com/quorate/quorate/store"
)

// TestTruncationIsForGood cuts a log at each kind of place, crashes at every operation of the cut, and goes on with other
// messages: what was cut never comes back (R1), and offsets continue where the rest ends (I13).
func TestTruncationIsForGood(t *testing.T) {
	for _, dispatched := range []bool{true, false} {
		fsys := crashable(t)
		cfg := config(fsys)
		s := open(t, cfg)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		var at []store.Appended
		for i := range 120 {
			at = append(at, appendOne(t, s, testMessage("T", int32(i%2), i/2)))
		}
		last := at[len(at)-1]
		require.NoError(t, s.Durable().Wait(ctx, last.End))
		if dispatched {
			s.Confirmed().Advance(last.End)
			require.NoError(t, s.Dispatched().Wait(ctx, last.End))
		} else {
			s.Confirmed().Advance(at[20].Begin)
			require.NoError(t, s.Dispatched().Wait(ctx, at[20].Begin))
		}
		const kept = 71
		before := fsys.Ops()
		require.NoError(t, s.TruncateTo(at[kept].Begin))
		after := fsys.Ops()
		check := func(s *store.Store, what string) {
			total := 0
			for q := range int32(2) {
				for i, r := range readAll(t, s, "T", q) {
					require.Equal(t, testMessage("T", q, i).Body, r.Body, what)
					total++
				}
			}
			require.GreaterOrEqual(t, total, kept, what) // a crash inside may leave more: the cut is repeated
		}
		for ops := before; ops <= after; ops++ {
			for _, all := range []bool{true, false} {
				c := cfg
				c.FS = fsys.Crash(ops, func() bool { return all })
				again, err := store.Open(c, slog.New(slog.DiscardHandler))
				require.NoError(t, err)
				check(again, fmt.Sprintf("op %d of %d..%d, all %t, dispatched %t", ops, before, after, all, dispatched))
				if ops == after {
					require.Equal(t, at[kept].Begin, again.Appended().Load())
				}
				require.NoError(t, again.Close())
			}
		}
		next := appendOne(t, s, testMessage("T", 1, 35))
		require.Equal(t, at[kept].Begin, next.Begin)
		require.EqualValues(t, 35, next.QueueOffset)
		require.EqualValues(t, 36, appendOne(t, s, testMessage("T", 0, 36)).QueueOffset)
		wait, stop := context.WithTimeout(ctx, 10*time.Second)
		require.NoError(t, s.Durable().Wait(wait, s.Appended().Load()))
		s.Confirmed().Advance(s.Appended().Load())
		require.NoError(t, s.Dispatched().Wait(wait, s.Appended().Load()))
		stop()
		require.Len(t, readAll(t, s, "T", 0), 37)
		require.Len(t, readAll(t, s, "T", 1), 36)
		cancel()
		require.NoError(t, <-done)
		require.NoError(t, s.Close())
	}
}

// TestAReplicaFollowsAndTakesOver copies a log in odd pieces and then appends to the copy.
func TestAReplicaFollowsAndTakesOver(t *testing.T) {
	master := run(t, config(crashable(t)))
	for i := range 100 {
		appendOne(t, master.Store, testMessage("T", int32(i%2), i/2))
	}
	master.settled(t)
	replica := run(t, config(crashable(t)))
	buf := make([]byte, 777)
	for at := int64(0); at < master.Appended().Load(); {
		n, err := master.Read(buf, at)
		require.NoError(t, err)
		require.NoError(t, replica.AppendRaw(buf[:n], at, nil))
		at += int64(n)
	}
	replica.Kick(false)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	require.NoError(t, replica.Durable().Wait(ctx, master.Appended().Load()))
	require.NoError(t, replica.ReadyToAppend())
	replica.settled(t)
	require.EqualValues(t, 50, appendOne(t, replica.Store, testMessage("T", 0, 50)).QueueOffset)
	replica.settled(t)
	require.Len(t, readAll(t, replica.Store, "T", 0), 51)
	require.Len(t, readAll(t, replica.Store, "T", 1), 50)
	replica.close(t)
	master.close(t)
}

// A replica's confirmed end lies anywhere within a record, its log is cut while dispatch waits, and what comes in place of
// the old end is dispatched. It also restarts with half a record at its end.
func TestAReplicaDispatchesWholeRecordsAcrossCutsAndRestarts(t *testing.T) {
	master := run(t, config(crashable(t)))
	var at []store.Appended
	for i := range 100 {
		at = append(at, appendOne(t, master.Store, testMessage("T", 0, i)))
	}
	master.settled(t)
	end := master.Appended().Load()
	all := make([]byte, end)
	for pos := int64(0); pos < end; {
		n, err := master.Read(all[pos:], pos)
		require.NoError(t, err)
		pos += int64(n)
	}
	cfg := config(crashable(t))
	cfg.HoldConfirmed = true
	s := open(t, cfg)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	follow := func(from, to int64) {
		for from < to {
			next := min(from+333, to)
			require.NoError(t, s.AppendRaw(all[from:next], from, nil))
			s.Kick(false)
			s.Confirmed().Advance(next)
			from = next
		}
	}
	follow(0, at[60].Begin+40)
	require.NoError(t, s.Dispatched().Wait(ctx, at[60].Begin))
	require.NoError(t, s.TruncateTo(at[30].Begin))
	follow(at[30].Begin, at[50].Begin+7) // less than was confirmed before the cut
	require.NoError(t, s.Dispatched().Wait(ctx, at[50].Begin))
	require.Len(t, readAll(t, s, "T", 0), 50)
	require.NoError(t, s.Durable().Wait(ctx, at[50].Begin+7))
	cancel()
	require.NoError(t, <-done)
	require.NoError(t, s.Close())

	s = open(t, cfg)
	require.Equal(t, at[50].Begin, s.Appended().Load(), "half a record is no record")
	ctx, cancel = context.WithCancel(context.Background())
	defer cancel()
	go func() { done <- s.Run(ctx) }()
	follow(at[50].Begin, end)
	require.NoError(t, s.Dispatched().Wait(ctx, end))
	require.Len(t, readAll(t, s, "T", 0), 100)
	cancel()
	require.NoError(t, <-done)
	require.NoError(t, s.Close())
}

// An epoch that begins behind the end of the log was lost with its bytes; TruncateTo forgets those that it cuts.
func TestEpochsFollowTheLog(t *testing.T) {
	fsys := crashable(t)
	s := run(t, config(fsys))
	first := appendOne(t, s.Store, testMessage("T", 0, 0))
	second := appendOne(t, s.Store, testMessage("T", 0, 1))
	s.settled(t)
	require.NoError(t, s.BeginEpoch(ha.EpochEntry{Epoch: 1}))
	require.NoError(t, s.BeginEpoch(ha.EpochEntry{Epoch: 2, Start: first.End}))
	require.NoError(t, s.BeginEpoch(ha.EpochEntry{Epoch: 3, Start: second.End}))
	require.NoError(t, s.BeginEpoch(ha.EpochEntry{Epoch: 4, Start: second.End + 1}))
	s.close(t)
	s = run(t, config(fsys))
	require.Equal(t, ha.MasterEpoch(3), s.History().Last())
	require.NoError(t, s.TruncateTo(first.End))
	require.Equal(t, ha.MasterEpoch(1), s.History().Last())
	s.close(t)
}
