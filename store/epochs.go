package store

import (
	"github.com/quorate/quorate/ha"
	"github.com/quorate/quorate/store/checkpoint"
)

// epochsName is RocketMQ's storePathEpochFile under the root.
const epochsName = "epochFileCheckpoint"

// History is the epoch history of the log; empty when nobody keeps one.
func (s *Store) History() ha.History { return s.epochs.History() }

// BeginEpoch starts an epoch of the log, durably: it is called before the first byte of that epoch is appended.
func (s *Store) BeginEpoch(e ha.EpochEntry) error { return s.epochs.Begin(e) }

// SetHistory replaces the epoch history, durably: a replica takes that of the master whose log it continues.
func (s *Store) SetHistory(h ha.History) error { return s.epochs.Replace(h) }

// openEpochs reads the epoch history and makes it fit the log. An epoch that begins at the end stays: it may have had no
// bytes yet.
func (s *Store) openEpochs() (err error) {
	if s.epochs, err = checkpoint.OpenEpochs(s.fsys, s.cfg.path(epochsName)); err != nil {
		return err
	}
	if err := s.epochs.TruncateTo(s.log.Appended().Load() + 1); err != nil {
		return err
	}
	return s.epochs.TrimBefore(s.log.Begin())
}
