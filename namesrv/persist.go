package namesrv

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/quorate/quorate/internal/vfs"
)

// replaceFile gives a file new content, durably, or leaves it as it was: the old or the new content is there after any crash.
func replaceFile(fsys vfs.FS, path string, content []byte) error {
	dir := filepath.Dir(path)
	if err := makeDir(fsys, dir); err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	temp := path + ".tmp"
	if err := fsys.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) { // left by a crash
		return fmt.Errorf("replace %s: %w", path, err)
	}
	err := vfs.WriteFile(fsys, temp, content)
	if err == nil {
		err = fsys.Rename(temp, path)
	}
	if err == nil {
		err = fsys.SyncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	return nil
}

// makeDir makes a directory and its parents, durably.
func makeDir(fsys vfs.FS, dir string) error {
	if _, err := fsys.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if err := makeDir(fsys, parent); err != nil {
		return err
	}
	if err := fsys.MkdirAll(dir); err != nil {
		return err
	}
	return fsys.SyncDir(parent)
}

// readFile returns nil when the file is missing.
func readFile(fsys vfs.FS, path string) ([]byte, error) {
	content, err := vfs.ReadFile(fsys, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return content, nil
}
