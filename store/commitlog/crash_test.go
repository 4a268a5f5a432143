package commitlog_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/vfs"
	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/store/commitlog"
)

func smallConfig() commitlog.Config {
	cfg := testConfig("/log")
	cfg.FileSize, cfg.MaxMessageSize, cfg.SyncFlush = 16<<10, 6<<10, true
	return cfg
}

// promise is what is known once the disk has seen ops operations: records of wrote below acked must be there, and only
// records of wrote may be.
type promise struct {
	ops   int
	acked int // records acknowledged as durable
	end   int64
	wrote []message.Message
}

// history runs a workload of groups of appends, each group acknowledged by Durable, with a truncation in it.
func history(t *testing.T, fsys *vfs.Crashable, groups []int, truncateAfter int) []promise {
	t.Helper()
	l := start(t, smallConfig(), fsys, commitlog.Recovery{})
	var q commitlog.QueueCounter
	var wrote []message.Message
	var ends []int64
	promises := []promise{{}}
	note := func() {
		p := promise{ops: fsys.Ops(), acked: len(wrote), wrote: append([]message.Message(nil), wrote...)}
		if len(ends) > 0 {
			p.end = ends[len(ends)-1]
		}
		promises = append(promises, p)
	}
	n := 0
	for g, size := range groups {
		for range size {
			m := msg("T", body(n))
			n++
			// In the file, but not acknowledged yet: it may be there from here on.
			wrote = append(wrote, m)
			last := promises[len(promises)-1]
			promises = append(promises, promise{ops: fsys.Ops(), acked: last.acked, end: last.end, wrote: append([]message.Message(nil), wrote...)})
			at, err := l.Append(&m, nil, &q)
			require.NoError(t, err)
			ends = append(ends, at.End)
		}
		l.Kick(false)
		require.NoError(t, l.Durable().Wait(t.Context(), ends[len(ends)-1]))
		note()
		if g == truncateAfter {
			keep := len(wrote) / 3
			// From its first moment a truncation may have removed what it is to remove.
			last := promises[len(promises)-1]
			promises = append(promises, promise{ops: fsys.Ops(), acked: keep, end: ends[keep-1], wrote: last.wrote})
			require.NoError(t, l.TruncateTo(ends[keep-1]))
			wrote, ends = wrote[:keep:keep], ends[:keep:keep]
			q.Set(int64(keep))
			note()
		}
	}
	l.stop()
	return promises
}

func requirePrefix(t *testing.T, p promise, records []message.Record, context string) {
	t.Helper()
	require.GreaterOrEqual(t, len(records), p.acked, "acknowledged records lost: %s", context)
	require.LessOrEqual(t, len(records), len(p.wrote), "records that nobody wrote: %s", context)
	for i, r := range records {
		require.True(t, bytes.Equal(p.wrote[i].Body, r.Body), "record %d: %s", i, context)
		require.EqualValues(t, i, r.QueueOffset, context)
	}
}

// recovers opens what a crash left, checks the promise, appends one more, and checks that too after a restart.
func recovers(t *testing.T, fsys *vfs.Crashable, p promise, r commitlog.Recovery, context string) {
	t.Helper()
	l, err := commitlog.Open(smallConfig(), fsys, quiet)
	require.NoError(t, err, context)
	var records []message.Record
	_, err = l.Recover(r, func(_ int64, record *message.Record) error {
		kept := *record
		kept.Body = bytes.Clone(record.Body)
		records = append(records, kept)
		return nil
	})
	require.NoError(t, err, context)
	requirePrefix(t, p, records, context)
	require.NoError(t, l.Close())

	// What recovery settled is settled: another power cut changes nothing.
	twin := fsys.Crash(fsys.Ops(), func() bool { return false })
	l, err = commitlog.Open(smallConfig(), twin, quiet)
	require.NoError(t, err, context)
	again, err := l.Recover(r, nil)
	require.NoError(t, err, context)
	require.EqualValues(t, len(records), again.Records, context)
	require.Empty(t, again.Torn, context)
	require.NoError(t, l.Close())
}

func keepers(seed uint64) map[string]func() bool {
	rng := rand.New(rand.NewPCG(seed, 1))
	half, most := rand.New(rand.NewPCG(seed, 2)), rand.New(rand.NewPCG(seed, 3))
	return map[string]func() bool{
		"all":  func() bool { return true },
		"none": func() bool { return false },
		"few":  func() bool { return rng.IntN(4) == 0 },
		"half": func() bool { return half.IntN(2) == 0 },
		"most": func() bool { return most.IntN(5) > 0 },
	}
}

// A power cut before each operation of appending, flushing, rolling to the next file and truncating, with every kind of
// loss, leaves a log that recovers to a prefix of what was written, with all that was acknowledged.
func TestPowerCutAtEveryOperation(t *testing.T) {
	fsys := vfs.NewCrashable()
	promises := history(t, fsys, []int{1, 1, 3, 7, 2, 12, 1, 5, 9, 1, 4}, 6)
	seeds, least := uint64(24), 4000
	if testing.Short() {
		seeds, least = 2, 400
	}
	states, p := 0, 0
	for at := range fsys.Ops() + 1 {
		for p+1 < len(promises) && promises[p+1].ops <= at {
			p++
		}
		for seed := range seeds {
			for name, keep := range keepers(uint64(at)*8 + seed) {
				if seed > 0 && (name == "all" || name == "none") {
					continue
				}
				context := fmt.Sprintf("power cut before operation %d, seed %d, keeping %s", at, seed, name)
				recovers(t, fsys.Crash(at, keep), bound(promises, p), commitlog.Recovery{PowerLoss: true, Durable: promises[p].end}, context)
				states++
			}
		}
		// A kill leaves all that was written, and corruption is not excused then.
		recovers(t, fsys.Crash(at, func() bool { return true }), bound(promises, p), commitlog.Recovery{Durable: promises[p].end}, fmt.Sprintf("kill before operation %d", at))
		states++
	}
	t.Logf("%d operations, %d disk states", fsys.Ops(), states)
	require.Greater(t, states, least)
}

// bound is promise p, with the records that appends at the same operation count already put in memory: they may have been
// written by the operation that follows.
func bound(promises []promise, p int) promise {
	b := promises[p]
	for q := p + 1; q < len(promises); q++ {
		if len(promises[q].wrote) < len(b.wrote) || promises[q].ops > promises[p].ops {
			break
		}
		b.wrote = promises[q].wrote
	}
	return b
}

// After a failed fdatasync the system shows bytes that never reach the disk. Nothing may be acknowledged on top of them
// unless they were written again.
func TestRestartAfterAFailedSyncDoesNotBuildOnLostBytes(t *testing.T) {
	fsys := vfs.NewCrashable()
	l := start(t, smallConfig(), fsys, commitlog.Recovery{})
	var q commitlog.QueueCounter
	first := l.append(t, &q, msg("T", body(1)))
	require.NoError(t, l.Durable().Wait(t.Context(), first.End))
	failing := fail(fsys, "sync", 1)
	lost := l.append(t, &q, msg("T", body(2)))
	require.ErrorIs(t, l.Durable().Wait(t.Context(), lost.End), commitlog.ErrWriteFailed)
	require.True(t, failing())
	l.stop()

	again := start(t, smallConfig(), fsys, commitlog.Recovery{Durable: first.End})
	require.Len(t, again.records, 2)
	next := again.append(t, &q, msg("T", body(3)))
	require.NoError(t, again.Durable().Wait(t.Context(), next.End))
	again.stop()

	twin := fsys.Crash(fsys.Ops(), func() bool { return false })
	after := start(t, smallConfig(), twin, commitlog.Recovery{Durable: next.End, PowerLoss: true})
	require.Len(t, after.records, 3)
}
