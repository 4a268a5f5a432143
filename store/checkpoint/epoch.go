package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/ha"
	"github.com/quorate/quorate/internal/vfs"
)

// Epochs is the epoch history of a log, kept in RocketMQ's epochFileCheckpoint. Each change is durable when it returns.
// Safe for concurrent use.
type Epochs struct {
	fsys vfs.FS
	name string

	mu      sync.Mutex
	current atomic.Pointer[ha.History]
}

// OpenEpochs reads the file, or its backup when the file is missing, cut off or damaged. Without either the history is
// empty: nobody has kept one for this log.
func OpenEpochs(fsys vfs.FS, name string) (*Epochs, error) {
	x := &Epochs{fsys: fsys, name: name}
	x.current.Store(&ha.History{})
	var bad error
	for _, n := range []string{name, name + backupSuffix} {
		content, err := vfs.ReadFile(fsys, n)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", n, err)
		}
		if strings.Trim(string(content), " \t\r\n\x00") == "" {
			continue
		}
		h, err := DecodeEpochs(content)
		if err == nil {
			x.current.Store(&h)
			return x, nil
		}
		bad = fmt.Errorf("read %s: %w", n, err)
	}
	return x, bad
}

// History is the history as it is now.
func (x *Epochs) History() ha.History { return *x.current.Load() }

// Begin starts an epoch; it must come after all others. The oldest go when there are more than a handshake can tell.
func (x *Epochs) Begin(e ha.EpochEntry) error {
	return x.change(func(h ha.History) (ha.History, error) {
		next, err := h.Append(e)
		if err != nil {
			return h, err
		}
		if entries := next.Entries(); len(entries) > epochsMax {
			return ha.NewHistory(entries[len(entries)-epochsMax:])
		}
		return next, nil
	})
}

// TruncateTo forgets what begins at or behind end.
func (x *Epochs) TruncateTo(end int64) error {
	return x.change(func(h ha.History) (ha.History, error) { return h.TruncateTo(end), nil })
}

// TrimBefore forgets epochs that end at or before begin.
func (x *Epochs) TrimBefore(begin int64) error {
	return x.change(func(h ha.History) (ha.History, error) { return h.TrimBefore(begin), nil })
}

// Replace puts another history in place of this one.
func (x *Epochs) Replace(h ha.History) error {
	return x.change(func(ha.History) (ha.History, error) { return h, nil })
}

func (x *Epochs) change(fn func(ha.History) (ha.History, error)) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.History()
	next, err := fn(old)
	if err != nil {
		return err
	}
	if equalHistory(old, next) {
		return nil
	}
	// No backup: the one that is there may hold epochs that are taken back here, and must not return.
	if err := x.removeBackup(); err != nil {
		return err
	}
	if err := ReplaceOnly(x.fsys, x.name, EncodeEpochs(next)); err != nil {
		return err
	}
	x.current.Store(&next)
	return nil
}

func (x *Epochs) removeBackup() error {
	if err := x.fsys.Remove(x.name + backupSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", x.name+backupSuffix, err)
	}
	return nil
}

func equalHistory(a, b ha.History) bool {
	x, y := a.Entries(), b.Entries()
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if x[i] != y[i] {
			return false
		}
	}
	return true
}
