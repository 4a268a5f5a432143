package ha

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// EpochEntry says at which physical offset the log of an epoch begins. Its end is the start of the next entry.
type EpochEntry struct {
	Epoch MasterEpoch
	Start int64
}

// History is the epoch history of one log: epochs strictly grow, starts never fall. It is a value; methods return new
// ones. The zero value is the history of an empty log (RocketMQ EpochFileCache).
type History struct{ entries []EpochEntry }

// ErrBadHistory refuses entries that do not grow.
var ErrBadHistory = errors.New("ha: epoch history does not grow")

// NewHistory checks and copies entries.
func NewHistory(entries []EpochEntry) (History, error) {
	for i, e := range entries {
		if e.Epoch <= 0 || e.Start < 0 || i > 0 && (e.Epoch <= entries[i-1].Epoch || e.Start < entries[i-1].Start) {
			return History{}, fmt.Errorf("%w: entry %d is epoch %d from %d", ErrBadHistory, i, e.Epoch, e.Start)
		}
	}
	return History{entries: slices.Clone(entries)}, nil
}

// Entries returns a copy, oldest first.
func (h History) Entries() []EpochEntry { return slices.Clone(h.entries) }

// Last returns the newest epoch, 0 for an empty history.
func (h History) Last() MasterEpoch {
	if len(h.entries) == 0 {
		return 0
	}
	return h.entries[len(h.entries)-1].Epoch
}

// Append begins epoch at start. Epochs that wrote nothing (same start) are dropped, so that histories of replicas which
// heard of different empty epochs stay equal.
func (h History) Append(e EpochEntry) (History, error) {
	if e.Epoch <= h.Last() || e.Start < 0 || len(h.entries) > 0 && e.Start < h.entries[len(h.entries)-1].Start {
		return h, fmt.Errorf("%w: epoch %d from %d after epoch %d", ErrBadHistory, e.Epoch, e.Start, h.Last())
	}
	kept := slices.Clone(h.entries)
	if n := len(kept); n > 0 && kept[n-1].Start == e.Start {
		kept = kept[:n-1]
	}
	return History{entries: append(kept, e)}, nil
}

// TruncateTo forgets what begins at or behind end: the log was cut there.
func (h History) TruncateTo(end int64) History {
	kept := slices.Clone(h.entries)
	for n := len(kept); n > 0 && kept[n-1].Start >= end; n = len(kept) {
		kept = kept[:n-1]
	}
	return History{entries: kept}
}

// TrimBefore forgets epochs that end at or before begin: the log's head was removed by retention. The epoch that covers
// begin stays, with its own start.
func (h History) TrimBefore(begin int64) History {
	first := 0
	for first+1 < len(h.entries) && h.entries[first+1].Start <= begin {
		first++
	}
	return History{entries: slices.Clone(h.entries[first:])}
}

// At returns the entry that covers offset and the exclusive end of that epoch (MaxInt64 for the newest).
func (h History) At(offset int64) (e EpochEntry, end int64, ok bool) {
	for i, v := range slices.Backward(h.entries) {
		if v.Start <= offset {
			end = math.MaxInt64
			if i+1 < len(h.entries) {
				end = h.entries[i+1].Start
			}
			return v, end, true
		}
	}
	return EpochEntry{}, 0, false
}

// ConsistentPoint returns the exclusive end up to which the log (h, end) surely equals the master's (master, masterEnd):
// the smaller of the two ends of the newest epoch that both began at the same offset (RocketMQ
// EpochFileCache.findConsistentPoint, KIP-101). ok is false when they have no epoch in common: then nothing may be guessed.
func (h History) ConsistentPoint(end int64, master History, masterEnd int64) (point int64, ok bool) {
	ends := func(all []EpochEntry, i int, logEnd int64) int64 {
		if i+1 < len(all) {
			return all[i+1].Start
		}
		return logEnd
	}
	for i, v := range slices.Backward(h.entries) {
		j, found := slices.BinarySearchFunc(master.entries, v.Epoch,
			func(e EpochEntry, want MasterEpoch) int { return int(e.Epoch) - int(want) })
		if found && master.entries[j].Start == v.Start {
			return min(ends(h.entries, i, end), ends(master.entries, j, masterEnd)), true
		}
	}
	return 0, false
}
