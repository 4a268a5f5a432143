package replication

import (
	"fmt"
	"math"

	"github.com/quorate/quorate/ha"
	"github.com/quorate/quorate/ha/group"
	"github.com/quorate/quorate/internal/watermark"
)

// agree makes the replica's log a beginning of the master's, as far as the dialect can tell, before anything is reported.
func (s *following) agree(h Hello) error {
	if s.dialect == group.Ours {
		return s.hello(h)
	}
	s.confirm.Store(math.MaxInt64) // RocketMQ's master does not say what its consumers may see
	// What comes from here on belongs to no epoch that anybody knows.
	return s.sink.SetHistory(ha.History{})
}

// reconcile cuts what the master does not have, durably, and makes the history fit.
func (s *following) reconcile(ack HandshakeAck) error {
	entries := make([]ha.EpochEntry, 0, len(ack.Epochs))
	for _, e := range ack.Epochs {
		entries = append(entries, ha.EpochEntry{Epoch: ha.MasterEpoch(e.Epoch), Start: e.Start})
	}
	master, err := ha.NewHistory(entries)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBadFrame, err)
	}
	mine, end := s.sink.History(), s.sink.Appended().Load()
	if mine.Last() == 0 && end > 0 {
		return s.adopt(master, end)
	}
	keep, err := group.Reconcile(mine, end, master, ack.MaxOffset, 0)
	if err != nil {
		return err
	}
	if keep == end {
		return s.sink.SetHistory(mine.TruncateTo(end)) // an epoch without a byte may have another number there
	}
	s.owner.event(Event{Kind: "truncated", Addr: s.conn.RemoteAddr().String(), Reason: fmt.Sprintf("the log is the master's up to %d and ended at %d", keep, end)})
	s.owner.logger.Warn("the end of the log is not the master's and is cut", "keep", keep, "end", end)
	return s.sink.TruncateTo(keep)
}

// adopt takes over a log without a history, of a replica that followed by RocketMQ's protocol: there an end within the
// master's log counts as the same log. That is believed for the time before the master kept a history, its first epoch,
// and never a reason to cut.
func (s *following) adopt(master ha.History, end int64) error {
	first, until, ok := master.At(0)
	if !ok || first.Start != 0 || end > until {
		return fmt.Errorf("%w: this replica has no epoch history and its log ends at %d, the master's first epoch at %d; "+
			"remove the replica's store to copy it anew", group.ErrDiverged, end, until)
	}
	return s.sink.SetHistory(master.TruncateTo(end))
}

// begin records the epoch of pushed bytes before they are appended.
func (s *following) begin(p AutoPush) error {
	last, end := s.sink.History().Last(), s.sink.Appended().Load()
	switch epoch := ha.MasterEpoch(p.Epoch); {
	case epoch == last:
	case epoch < last, p.EpochStart > p.Offset, end > 0 && p.EpochStart != p.Offset:
		return fmt.Errorf("%w: epoch %d from %d at offset %d, the log's last epoch is %d", group.ErrMismatch, p.Epoch, p.EpochStart, p.Offset, last)
	default:
		if err := s.sink.BeginEpoch(ha.EpochEntry{Epoch: epoch, Start: p.EpochStart}); err != nil {
			return fmt.Errorf("record epoch %d: %w", p.Epoch, err)
		}
	}
	s.begun = p.Epoch
	s.epoch.Store(p.Epoch)
	return nil
}

// held is how far this replica itself would show its log.
func (s *following) held() *watermark.Watermark {
	if s.owner.cfg.SyncFlush {
		return s.sink.Durable()
	}
	return s.sink.Written()
}

// show lets consumers of this replica see what the master's may, as far as it is here.
func (s *following) show() { s.sink.Confirmed().Advance(min(s.confirm.Load(), s.held().Load())) }
