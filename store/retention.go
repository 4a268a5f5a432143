package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/quorate/quorate/internal/vfs"
	"github.com/quorate/quorate/store/segment"
)

// diskCheckInterval is how often free space is looked at. It is apart from deleting, which may be slow.
const diskCheckInterval = time.Second

// diskUse is how full the disks are, 0..1.
type diskUse struct{ log, queues float64 }

func (u diskUse) most() float64 { return max(u.log, u.queues) }

// runDiskCheck refuses appends above the warning level and allows them again below it.
func (s *Store) runDiskCheck(ctx context.Context) {
	ticker := time.NewTicker(diskCheckInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.checkDisk()
		case <-ctx.Done():
			return
		}
	}
}

func (s *Store) checkDisk() {
	use, err := s.diskUse()
	if err != nil {
		s.logger.Warn("free space is unknown", slog.Any("error", err))
		return
	}
	s.disk.Store(&use)
	limit := s.cfg.Retention.WarnRatio
	if use.most()*100 <= float64(limit) {
		if s.diskFull.Swap(nil) != nil {
			s.logger.Info("space again; appends go on", slog.Float64("used_percent", use.most()*100))
		}
		return
	}
	refusal := fmt.Errorf("%w: disk full: %.1f %% of %s used, writes stop at %d %% (diskSpaceWarningLevelRatio). "+
		"Free space or raise it: quorate node config set diskSpaceWarningLevelRatio=…%w",
		ErrNotWritable, use.most()*100, s.cfg.RootDir, limit, hidden{ErrDiskFull})
	if s.diskFull.Swap(&refusal) == nil {
		s.logger.Error("disk is full; appends are refused until space returns", slog.Float64("used_percent", use.most()*100),
			slog.Int("limit_percent", limit))
	}
}

// hidden is an error without text of its own.
type hidden struct{ error }

func (hidden) Error() string   { return "" }
func (h hidden) Unwrap() error { return h.error }

func (s *Store) diskUse() (diskUse, error) {
	root, err := s.fsys.Usage(s.cfg.RootDir)
	if err != nil {
		return diskUse{}, err
	}
	log := root
	if s.cfg.CommitLogDir != "" {
		if log, err = s.fsys.Usage(s.cfg.CommitLogDir); err != nil {
			return diskUse{}, err
		}
	}
	return diskUse{log: vfs.Usage.UsedRatio(log), queues: vfs.Usage.UsedRatio(root)}, nil
}

// runCleaner runs the retention.
func (s *Store) runCleaner(ctx context.Context) {
	ticker := time.NewTicker(s.cfg.Retention.Interval)
	defer ticker.Stop()
	for {
		manual := false
		select {
		case <-ticker.C:
		case <-s.manual:
			manual = true
		case <-ctx.Done():
			return
		}
		if err := s.clean(ctx, manual); err != nil && ctx.Err() == nil {
			s.logger.Error("retention", slog.Any("error", err))
		}
	}
}

// DeleteExpired runs the retention now, whatever the hour (DELETE_EXPIRED_COMMITLOG, CLEAN_EXPIRED_CONSUMEQUEUE): files
// older than fileReservedTime go, then what queues and index say about them.
func (s *Store) DeleteExpired() error { return s.clean(context.Background(), true) }

// why is the reason for which files may go now. The empty reason: none may.
type why struct {
	reason string
	anyAge bool
}

// decide is DefaultMessageStore.CleanCommitLogService: at the hour, on demand or above the lines.
func (r RetentionConfig) decide(now time.Time, used float64, manual bool) why {
	percent := used * 100
	hours, err := parseHours(r.DeleteWhen)
	switch {
	case r.CleanForcibly && percent > float64(r.ForceRatio):
		return why{fmt.Sprintf("%.1f %% of the disk used, above diskSpaceCleanForciblyRatio=%d", percent, r.ForceRatio), true}
	case percent > float64(r.DiskMaxUsedRatio):
		return why{fmt.Sprintf("%.1f %% of the disk used, above diskMaxUsedSpaceRatio=%d", percent, r.DiskMaxUsedRatio), false}
	case manual:
		return why{"asked for", false}
	case err == nil && slices.Contains(hours, now.Hour()):
		return why{"deleteWhen=" + r.DeleteWhen, false}
	}
	return why{}
}

// clean removes old files of the log, then what lies below its new beginning in queues and index.
func (s *Store) clean(ctx context.Context, manual bool) error {
	s.expired.Lock()
	defer s.expired.Unlock()
	use, err := s.diskUse()
	if err != nil {
		return fmt.Errorf("look at free space: %w", err)
	}
	now := s.cfg.Now()
	w := s.cfg.Retention.decide(now, use.most(), manual)
	if w.reason == "" {
		return nil
	}
	removed, err := s.removeFiles(ctx, now, w)
	if removed == 0 && !manual {
		return err
	}
	begin := s.log.Begin()
	queueFiles, queueErr := s.queues.RaiseMin(begin)
	err = errors.Join(err, queueErr)
	indexFiles := 0
	if s.index != nil {
		n, indexErr := s.index.Expire(begin)
		indexFiles, err = n, errors.Join(err, indexErr)
	}
	if removed+queueFiles+indexFiles > 0 {
		s.logger.Info("retention is done", slog.Int("log_files", removed), slog.Int("queue_files", queueFiles),
			slog.Int("index_files", indexFiles), slog.Int64("log_begin", begin))
	}
	return err
}

// removeFiles removes the oldest files of the log that w allows. The last file stays, and what is not dispatched.
func (s *Store) removeFiles(ctx context.Context, now time.Time, w why) (removed int, err error) {
	r := s.cfg.Retention
	keep := time.Duration(r.ReservedHours) * time.Hour
	files, err := s.log.Files()
	if err != nil {
		return 0, err
	}
	for i, f := range files {
		age := now.Sub(f.Modified)
		if removed >= r.DeleteBatchMax || i == len(files)-1 || ctx.Err() != nil || (!w.anyAge && age < keep) {
			break
		}
		if removed > 0 && r.DeleteInterval > 0 {
			sleep(ctx, r.DeleteInterval)
		}
		if f.Begin+s.cfg.CommitLogFileSize > s.dispatched.Load() {
			break
		}
		s.logger.Info("commit log file is removed", slog.String("file", segment.Name(f.Begin)), slog.String("reason", w.reason),
			slog.Float64("age_hours", age.Hours()), slog.Int("reserved_hours", r.ReservedHours))
		ok, err := s.log.RemoveFirst(s.dispatched.Load())
		if err != nil {
			s.logger.Error("commit log file cannot be removed; it is tried again", slog.String("file", segment.Name(f.Begin)), slog.Any("error", err))
			return removed, err
		}
		if !ok {
			break
		}
		removed++
	}
	return removed, nil //nolint:nilerr // a stop is no failure
}
