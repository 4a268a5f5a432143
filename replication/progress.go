package replication

import "github.com/quorate/quorate/ha"

// Report takes what a replica holds and what its fsync covers, both exclusive ends. Offsets of one session only grow, so
// a lower one is ignored. An end beyond the master's own log is no evidence of anything and is refused (I9).
func (t *Term) Report(id ha.BrokerID, received, durable int64) error {
	t.mu.Lock()
	t.sync()
	err := t.core.Report(id, received, durable)
	t.mu.Unlock()
	if err != nil {
		return err
	}
	t.advance()
	return nil
}

// Forget drops the progress of a replica whose session ended: its acknowledgements count for nothing until it reports anew.
func (t *Term) Forget(id ha.BrokerID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.core.Forget(id)
}

// SetSyncStateSet replaces the set acks are judged against: the committed one, united with a pending one (I10).
func (t *Term) SetSyncStateSet(set ha.SyncStateSet) error {
	t.mu.Lock()
	err := t.core.SetSyncStateSet(set)
	t.mu.Unlock()
	if err != nil {
		return err
	}
	t.advance()
	return nil
}

// SetQuorum replaces the policy for later writes; those already waiting keep the number they were admitted with.
func (t *Term) SetQuorum(q ha.QuorumPolicy) {
	t.mu.Lock()
	t.core.SetQuorum(q)
	t.mu.Unlock()
	t.advance()
}

// advance looks at what a moved watermark or a report satisfies: consumers first, then the waiting writes, in the
// goroutine that made the progress.
func (t *Term) advance() {
	t.mu.Lock()
	t.sync()
	confirm, out := t.core.Settle(t.cfg.Clock())
	t.mu.Unlock()
	t.log.Confirmed().Advance(confirm)
	t.answer(out)
}
