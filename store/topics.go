package store

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/quorate/quorate/store/checkpoint"
	"github.com/quorate/quorate/store/consumequeue"
)

// Topics lists topics that have consume queues, with the queue ids.
func (s *Store) Topics() map[string][]int32 { return s.queues.Topics() }

// DeleteTopic removes the consume queues of a topic, durably, and wakes who waits for them. Records stay in the log until
// retention takes them. Its queues begin at 0 again.
func (s *Store) DeleteTopic(topic string) error {
	if !validName(topic) {
		return fmt.Errorf("%w: topic %q cannot name a directory", ErrMessageIllegal, topic)
	}
	s.checkpointMu.Lock()
	defer s.checkpointMu.Unlock()
	if err := s.forgetEnds(topic); err != nil {
		return fmt.Errorf("delete topic %s: %w", topic, err)
	}
	s.dispatchMu.Lock()
	s.counters.forget(topic)
	err := s.queues.DeleteTopic(topic)
	s.dispatchMu.Unlock()
	if err != nil {
		return fmt.Errorf("delete topic %s: %w", topic, err)
	}
	// A start after a crash must not dispatch the topic's records again. When no queue is left it must know that, too: else
	// it takes them for lost and builds all anew.
	left := 0
	s.queues.Each(func(q *consumequeue.Queue) {
		if q.Known().End > 0 {
			left++
		}
	})
	if err := s.checkpointLocked(left == 0); err != nil {
		return fmt.Errorf("delete topic %s: %w", topic, err)
	}
	return nil
}

// forgetEnds takes a topic out of the queue ends before its queues go, for a start would miss them otherwise.
func (s *Store) forgetEnds(topic string) error {
	s.dispatchMu.Lock()
	ends, _ := s.queueEnds(0, true)
	dispatched := s.dispatched.Load()
	s.dispatchMu.Unlock()
	kept := ends[:0]
	for _, e := range ends {
		if e.Topic != topic {
			kept = append(kept, e)
		}
	}
	if dispatched > s.written.Dispatched {
		// The ends hold for a checkpoint that is still to come: until then nothing is known.
		dispatched = 1<<63 - 1
	}
	return checkpoint.ReplaceOnly(s.fsys, s.cfg.path(queueEndsName), checkpoint.EncodeEnds(dispatched, kept))
}

// systemTopics are never unused (TopicValidator).
var systemTopics = map[string]bool{
	"TBW102": true, scheduleTopic: true, "BenchmarkTest": true, "RMQ_SYS_TRANS_HALF_TOPIC": true,
	"RMQ_SYS_TRACE_TOPIC": true, "RMQ_SYS_TRANS_OP_HALF_TOPIC": true, "TRANS_CHECK_MAX_TIME_TOPIC": true,
	"SELF_TEST_TOPIC": true, "OFFSET_MOVED_EVENT": true, "CHECKPOINT_TOPIC": true,
}

// CleanUnusedTopics removes the consume queues of topics not in keep, except system topics (CLEAN_UNUSED_TOPIC), and
// returns how many topics went.
func (s *Store) CleanUnusedTopics(keep map[string]bool) (int, error) {
	removed := 0
	var errs []error
	for topic := range s.queues.Topics() {
		if keep[topic] || systemTopics[topic] || strings.HasPrefix(topic, "rmq_sys_") || strings.HasPrefix(topic, "%LMQ%") {
			continue
		}
		s.logger.Info("queues of a topic that no table knows are removed", slog.String("topic", topic))
		if err := s.DeleteTopic(topic); err != nil {
			errs = append(errs, err)
			continue
		}
		removed++
	}
	return removed, errors.Join(errs...)
}

// ReadConfigFile returns the content of config/name, or of its backup when it is missing, empty or cut off. It fails with
// fs.ErrNotExist when there is neither.
func (s *Store) ReadConfigFile(name string) ([]byte, error) {
	if !validName(name) {
		return nil, fmt.Errorf("config file: %q is no file name", name)
	}
	content, fromBackup, err := checkpoint.Read(s.fsys, s.cfg.path(configDir)+"/"+name)
	if fromBackup {
		s.logger.Error("config file is unusable, its backup is used", slog.String("file", name))
	}
	return content, err
}

// WriteConfigFile replaces config/name as RocketMQ's ConfigManager does, keeping the old one as .bak, durably: a crash
// leaves the old or the new content.
func (s *Store) WriteConfigFile(name string, content []byte) error {
	if !validName(name) {
		return fmt.Errorf("config file: %q is no file name", name)
	}
	s.filesMu.Lock()
	defer s.filesMu.Unlock()
	return checkpoint.Replace(s.fsys, s.cfg.path(configDir)+"/"+name, content)
}
