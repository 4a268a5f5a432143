package group

import (
	"errors"
	"fmt"

	"github.com/quorate/quorate/ha"
)

// ErrDiverged means that two logs have no epoch in common: where they agree cannot be known, and nothing is cut on a guess.
var ErrDiverged = errors.New("the logs have no epoch in common")

// Reconcile says from where a replica's log goes on after the master told its history: everything from the returned offset
// on is cut, for it was never acknowledged or is not the master's. begin is the master's first retained byte.
func Reconcile(mine ha.History, end int64, master ha.History, masterEnd, begin int64) (keep int64, err error) {
	if end == 0 {
		return 0, nil // an empty log begins where the master does
	}
	point, ok := mine.ConsistentPoint(end, master, masterEnd)
	switch {
	case !ok:
		return end, fmt.Errorf("%w: mine ends with epoch %d, the master's with %d", ErrDiverged, mine.Last(), master.Last())
	case point < begin:
		return end, fmt.Errorf("%w: they agree up to %d, the master begins at %d", ErrBelow, point, begin)
	}
	return point, nil
}
