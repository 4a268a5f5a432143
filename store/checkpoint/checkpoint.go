// Package checkpoint keeps the small files of a store: the checkpoint, the queue ends, the abort marker, the lock, and any
// small file that is replaced as a whole. After a crash at any moment each has its old or its new content. What the
// numbers mean, and when to write them, is the store's business.
package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/vfs"
)

// File is the checkpoint file. Not safe for concurrent use.
type File struct {
	fsys vfs.FS
	name string
	f    vfs.File
}

// slackMillis is how much later than its last write a checkpoint's times may be before they cannot be true.
const slackMillis = 60_000

// Open opens or makes the file and reads it. A file made now is durable with its name when Write has returned.
func Open(fsys vfs.FS, name string) (*File, Checkpoint, Source, error) {
	f, err := fsys.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return &File{fsys: fsys, name: name}, Checkpoint{}, None, nil
	}
	if err != nil {
		return nil, Checkpoint{}, None, fmt.Errorf("open checkpoint: %w", err)
	}
	content, err := vfs.ReadFile(fsys, name)
	if err != nil {
		return nil, Checkpoint{}, None, errors.Join(fmt.Errorf("read checkpoint: %w", err), f.Close())
	}
	info, err := fsys.Stat(name)
	if err != nil {
		return nil, Checkpoint{}, None, errors.Join(fmt.Errorf("read checkpoint: %w", err), f.Close())
	}
	c, source := Decode(content)
	if latest := info.ModTime.UnixMilli() + slackMillis; source == Foreign && max(c.PhysicTime, c.LogicsTime) > latest {
		c, source = Checkpoint{}, Damaged
	}
	return &File{fsys: fsys, name: name, f: f}, c, source, nil
}

// Write replaces the content, durably. The bytes that count lie in one sector, so they change together.
func (x *File) Write(c Checkpoint) error {
	if x.f == nil {
		return x.create(c)
	}
	if _, err := x.f.WriteAt(Encode(c), 0); err != nil {
		return fmt.Errorf("write checkpoint: %w", err)
	}
	if err := x.f.Sync(); err != nil {
		return fmt.Errorf("sync checkpoint: %w", err)
	}
	return nil
}

func (x *File) create(c Checkpoint) error {
	f, err := x.fsys.Create(x.name)
	if err != nil {
		return fmt.Errorf("create checkpoint: %w", err)
	}
	x.f = f
	if err := x.Write(c); err != nil {
		return err
	}
	if err := x.fsys.SyncDir(path.Dir(x.name)); err != nil {
		return fmt.Errorf("create checkpoint: %w", err)
	}
	return nil
}

// Close gives the file back.
func (x *File) Close() error {
	if x.f == nil {
		return nil
	}
	return x.f.Close()
}

// Aborted reports whether the abort marker is there: the last run did not end cleanly.
func Aborted(fsys vfs.FS, name string) (bool, error) {
	_, err := fsys.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// SetAborted makes the abort marker, durably. Its text is the process id, as RocketMQ's.
func SetAborted(fsys vfs.FS, name string) error {
	err := vfs.WriteFile(fsys, name, []byte(strconv.Itoa(os.Getpid())))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make abort marker: %w", err)
	}
	if err := fsys.SyncDir(path.Dir(name)); err != nil {
		return fmt.Errorf("make abort marker: %w", err)
	}
	return nil
}

// ClearAborted removes the abort marker, durably.
func ClearAborted(fsys vfs.FS, name string) error {
	if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove abort marker: %w", err)
	}
	if err := fsys.SyncDir(path.Dir(name)); err != nil {
		return fmt.Errorf("remove abort marker: %w", err)
	}
	return nil
}

// Suffixes of a small file's companions. Backup is RocketMQ's (ConfigManager).
const (
	backupSuffix = ".bak"
	tempSuffix   = ".tmp"
)

// Replace makes content the content of name, durably; the old content stays as name.bak. After a crash at any moment Read
// gives the old or the new content. One caller at a time per name.
func Replace(fsys vfs.FS, name string, content []byte) error {
	if err := writeTemp(fsys, name, content); err != nil {
		return err
	}
	err := fsys.Rename(name, name+backupSuffix)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("replace %s: %w", name, err)
	}
	return commitTemp(fsys, name)
}

// ReplaceOnly is Replace without a backup.
func ReplaceOnly(fsys vfs.FS, name string, content []byte) error {
	if err := writeTemp(fsys, name, content); err != nil {
		return err
	}
	return commitTemp(fsys, name)
}

func writeTemp(fsys vfs.FS, name string, content []byte) error {
	if err := makeDir(fsys, path.Dir(name)); err != nil {
		return fmt.Errorf("replace %s: %w", name, err)
	}
	temp := name + tempSuffix
	if err := fsys.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("replace %s: %w", name, err)
	}
	if err := vfs.WriteFile(fsys, temp, content); err != nil {
		return fmt.Errorf("replace %s: %w", name, err)
	}
	return nil
}

// makeDir makes a directory, durably, in a parent that is there.
func makeDir(fsys vfs.FS, dir string) error {
	_, err := fsys.Stat(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := fsys.MkdirAll(dir); err != nil {
		return err
	}
	return fsys.SyncDir(path.Dir(dir))
}

func commitTemp(fsys vfs.FS, name string) error {
	if err := fsys.Rename(name+tempSuffix, name); err != nil {
		return fmt.Errorf("replace %s: %w", name, err)
	}
	if err := fsys.SyncDir(path.Dir(name)); err != nil {
		return fmt.Errorf("replace %s: %w", name, err)
	}
	return nil
}

// Read returns the content of name, or of its backup when name is missing, empty or cut off. fromBackup tells that the
// backup was used although name is there: somebody should look. Without either it fails with fs.ErrNotExist.
func Read(fsys vfs.FS, name string) (content []byte, fromBackup bool, err error) {
	content, err = vfs.ReadFile(fsys, name)
	if err == nil && whole(name, content) {
		return content, false, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, false, fmt.Errorf("read %s: %w", name, err)
	}
	missing := err != nil
	backup, backupErr := vfs.ReadFile(fsys, name+backupSuffix)
	if backupErr == nil && whole(name, backup) {
		return backup, !missing, nil
	}
	if backupErr != nil && !errors.Is(backupErr, fs.ErrNotExist) {
		return nil, false, fmt.Errorf("read %s: %w", name+backupSuffix, backupErr)
	}
	if missing {
		return nil, false, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	return content, false, nil // the caller's parser says what is wrong with it
}

// whole tells whether content may be complete: an interrupted write in place, as older brokers do it, leaves nothing,
// zeros, or half an object.
func whole(name string, content []byte) bool {
	text := strings.Trim(string(content), " \t\r\n\x00")
	if text == "" {
		return false
	}
	if !strings.HasSuffix(name, ".json") {
		return true
	}
	return text[0] == '{' && text[len(text)-1] == '}' && strings.IndexByte(text, 0) < 0
}
