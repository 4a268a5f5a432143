package vfs_test

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/vfs"
)

func TestBothSystemsBehaveAlike(t *testing.T) {
	for name, fsys := range map[string]vfs.FS{"os": vfs.OS(), "crashable": vfs.NewCrashable()} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir() + "/store"
			require.NoError(t, fsys.MkdirAll(root+"/a/b"))
			_, err := fsys.Open(root + "/a/none")
			require.ErrorIs(t, err, fs.ErrNotExist)

			f, err := fsys.Create(root + "/a/file")
			require.NoError(t, err)
			_, err = fsys.Create(root + "/a/file")
			require.ErrorIs(t, err, fs.ErrExist)
			require.NoError(t, f.Truncate(100))
			_, err = f.WriteAt([]byte("hello"), 98)
			require.NoError(t, err)
			size, err := f.Size()
			require.NoError(t, err)
			require.EqualValues(t, 103, size)
			require.NoError(t, f.Truncate(10))
			require.NoError(t, f.Truncate(20))
			require.NoError(t, f.Sync())
			require.NoError(t, fsys.SyncDir(root+"/a"))
			require.NoError(t, fsys.SyncAll(root))
			require.NoError(t, f.Close())

			require.NoError(t, vfs.WriteFile(fsys, root+"/a/b/x", []byte("x")))
			require.NoError(t, fsys.Rename(root+"/a/b/x", root+"/a/file"))
			b, err := vfs.ReadFile(fsys, root+"/a/file")
			require.NoError(t, err)
			require.Equal(t, "x", string(b))

			entries, err := fsys.ReadDir(root + "/a")
			require.NoError(t, err)
			require.Len(t, entries, 2)
			require.True(t, entries[0].Dir)
			require.Equal(t, "file", entries[1].Name)
			require.EqualValues(t, 1, entries[1].Size)

			require.Error(t, fsys.Remove(root+"/a"), "not empty")
			require.NoError(t, vfs.RemoveTree(fsys, root+"/a"))
			_, err = fsys.Stat(root + "/a")
			require.ErrorIs(t, err, fs.ErrNotExist)
			require.NoError(t, vfs.RemoveTree(fsys, root+"/a"))

			u, err := fsys.Usage(root)
			require.NoError(t, err)
			require.Positive(t, u.Total)
		})
	}
}

func TestPowerCutKeepsWhatWasSynced(t *testing.T) {
	c := vfs.NewCrashable()
	require.NoError(t, c.MkdirAll("/d"))
	require.NoError(t, c.SyncDir("/"))
	f, err := c.Create("/d/f")
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("one"), 0)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	beforeDirSync := c.Ops()
	require.NoError(t, c.SyncDir("/d"))
	_, err = f.WriteAt([]byte("two"), 3)
	require.NoError(t, err)

	dropAll := func() bool { return false }
	_, err = c.Crash(beforeDirSync, dropAll).Stat("/d/f")
	require.ErrorIs(t, err, fs.ErrNotExist, "its name was not durable yet")
	b, err := vfs.ReadFile(c.Crash(c.Ops(), dropAll), "/d/f")
	require.NoError(t, err)
	require.Equal(t, "one", string(b))

	twin := c.Kill()
	b, err = vfs.ReadFile(twin, "/d/f")
	require.NoError(t, err)
	require.Equal(t, "onetwo", string(b))
	b, err = vfs.ReadFile(twin.Crash(twin.Ops(), dropAll), "/d/f")
	require.NoError(t, err)
	require.Equal(t, "onetwo", string(b), "what a crash left is durable for the next one")
}

func TestARenameIsOneChange(t *testing.T) {
	c := vfs.NewCrashable()
	require.NoError(t, c.MkdirAll("/d"))
	require.NoError(t, vfs.WriteFile(c, "/d/f", []byte("old")))
	require.NoError(t, c.SyncAll("/"))
	require.NoError(t, vfs.WriteFile(c, "/d/f.tmp", []byte("new")))
	require.NoError(t, c.Rename("/d/f.tmp", "/d/f"))
	for at := 0; at <= c.Ops(); at++ {
		for _, kept := range []bool{false, true} {
			b, err := vfs.ReadFile(c.Crash(at, func() bool { return kept }), "/d/f")
			if err == nil {
				require.Contains(t, []string{"", "old", "new"}, string(b))
			}
		}
	}
	require.NoError(t, c.SyncDir("/d"))
	b, err := vfs.ReadFile(c.Crash(c.Ops(), func() bool { return false }), "/d/f")
	require.NoError(t, err)
	require.Equal(t, "new", string(b))
}
