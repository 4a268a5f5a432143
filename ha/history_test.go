package ha

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func history(t *testing.T, pairs ...int64) History {
	t.Helper()
	var entries []EpochEntry
	for i := 0; i < len(pairs); i += 2 {
		entries = append(entries, EpochEntry{MasterEpoch(pairs[i]), pairs[i+1]})
	}
	h, err := NewHistory(entries)
	require.NoError(t, err)
	return h
}

func TestHistoryRefusesWhatDoesNotGrow(t *testing.T) {
	for _, bad := range [][]EpochEntry{{{0, 0}}, {{1, -1}}, {{2, 0}, {2, 5}}, {{2, 0}, {1, 5}}, {{1, 5}, {2, 4}}} {
		_, err := NewHistory(bad)
		require.ErrorIs(t, err, ErrBadHistory)
	}
	h := history(t, 1, 0, 3, 100)
	_, err := h.Append(EpochEntry{3, 200})
	require.ErrorIs(t, err, ErrBadHistory)
	_, err = h.Append(EpochEntry{4, 99})
	require.ErrorIs(t, err, ErrBadHistory)
}

func TestEmptyEpochsArePrunedOnAppend(t *testing.T) {
	h, err := history(t, 1, 0, 2, 50).Append(EpochEntry{5, 50})
	require.NoError(t, err)
	require.Equal(t, history(t, 1, 0, 5, 50), h)
}

func TestConsistentPoint(t *testing.T) {
	for _, c := range []struct {
		name      string
		mine      History
		end       int64
		master    History
		masterEnd int64
		point     int64
		ok        bool
	}{
		{"same epoch, I am behind", history(t, 1, 0), 80, history(t, 1, 0), 100, 80, true},
		{"same epoch, I am ahead: cut", history(t, 1, 0), 120, history(t, 1, 0), 100, 100, true},
		{"old master with an unacknowledged tail", history(t, 1, 0), 150, history(t, 1, 0, 2, 100), 300, 100, true},
		{"KIP-279: double failover, common epoch is not the newest of either", history(t, 1, 0, 2, 100), 160, history(t, 1, 0, 3, 120), 300, 100, true},
		{"same epoch number, other start: older one decides", history(t, 1, 0, 2, 90), 200, history(t, 1, 0, 2, 100), 200, 90, true},
		{"nothing in common", history(t, 1, 0), 10, history(t, 2, 0), 10, 0, false},
		{"empty log", History{}, 0, history(t, 1, 0), 10, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			point, ok := c.mine.ConsistentPoint(c.end, c.master, c.masterEnd)
			require.Equal(t, c.ok, ok)
			require.Equal(t, c.point, point)
		})
	}
}

// Logs are made as runs of (epoch, length); the consistent point must never exceed the true common prefix, whenever each
// epoch was written by one master only.
func TestConsistentPointNeverKeepsADivergentByte(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 9))
	for range 5000 {
		var logs [2][]MasterEpoch // byte → epoch that wrote it
		var histories [2]History
		shared := rng.IntN(3)
		epoch := MasterEpoch(0)
		write := func(k int, e MasterEpoch, n int) {
			h, err := histories[k].Append(EpochEntry{e, int64(len(logs[k]))})
			require.NoError(t, err)
			histories[k] = h
			for range n {
				logs[k] = append(logs[k], e)
			}
		}
		for range shared {
			epoch++
			n, extra := rng.IntN(4), rng.IntN(3)
			write(0, epoch, n)
			write(1, epoch, n)
			if rng.IntN(2) == 0 { // the master of this epoch has a tail the other never got
				for range extra {
					logs[1] = append(logs[1], epoch)
				}
				if extra > 0 {
					break
				}
			}
		}
		for range rng.IntN(3) {
			epoch++
			write(rng.IntN(2), epoch, rng.IntN(4))
		}
		common := 0
		for common < min(len(logs[0]), len(logs[1])) && logs[0][common] == logs[1][common] {
			common++
		}
		point, ok := histories[0].ConsistentPoint(int64(len(logs[0])), histories[1], int64(len(logs[1])))
		if ok {
			require.LessOrEqual(t, point, int64(common), "%v %v", logs[0], logs[1])
		}
	}
}

func TestTruncateTrimAndAt(t *testing.T) {
	h := history(t, 1, 0, 2, 100, 4, 250)
	require.Equal(t, history(t, 1, 0, 2, 100), h.TruncateTo(250))
	require.Equal(t, h, h.TruncateTo(251))
	require.Equal(t, History{entries: []EpochEntry{}}, h.TruncateTo(0))
	require.Equal(t, history(t, 2, 100, 4, 250), h.TrimBefore(100))
	require.Equal(t, h, h.TrimBefore(99))
	require.Equal(t, history(t, 4, 250), h.TrimBefore(1000))
	e, end, ok := h.At(249)
	require.True(t, ok)
	require.Equal(t, EpochEntry{2, 100}, e)
	require.Equal(t, int64(250), end)
	_, end, _ = h.At(1 << 40)
	require.Equal(t, int64(math.MaxInt64), end)
	_, _, ok = h.TrimBefore(100).At(5)
	require.False(t, ok)
}
