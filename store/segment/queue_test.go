package segment_test

import (
	"io"
	"log/slog"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/vfs"
	"github.com/quorate/quorate/store/segment"
)

func open(t *testing.T, fsys vfs.FS) *segment.Queue {
	t.Helper()
	q, err := segment.OpenQueue(fsys, "/log", 4096, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return q
}

func TestQueueOfSegmentsReadsBackWhatWasWritten(t *testing.T) {
	for name, fsys := range map[string]vfs.FS{"memory": vfs.NewCrashable(), "disk": vfs.OS()} {
		t.Run(name, func(t *testing.T) {
			dir := "/log"
			if name == "disk" {
				dir = t.TempDir()
			}
			q, err := segment.OpenQueue(fsys, dir, 4096, slog.New(slog.DiscardHandler))
			require.NoError(t, err)
			for range 3 {
				_, err := q.Grow(8192)
				require.NoError(t, err)
			}
			begin, end := q.Bounds()
			require.EqualValues(t, 8192, begin)
			require.EqualValues(t, 8192+3*4096, end)
			require.NoError(t, q.Find(12288).WriteAt([]byte("hello"), 12288+4091))
			require.Error(t, q.Find(12288).WriteAt([]byte("hello"), 12288+4092), "across the end")
			require.NoError(t, q.Find(12288).Sync())
			require.NoError(t, q.Close())

			q, err = segment.OpenQueue(fsys, dir, 4096, slog.New(slog.DiscardHandler))
			require.NoError(t, err)
			require.Len(t, q.Segments(), 3)
			require.Nil(t, q.Find(8191))
			require.Nil(t, q.Find(8192+3*4096))
			b := make([]byte, 5)
			n, err := q.Find(12288).ReadAt(b, 12288+4091)
			require.NoError(t, err)
			require.Equal(t, "hello", string(b[:n]))
			n, err = q.Find(12288).ReadAt(b, 12288+4094)
			require.Equal(t, io.EOF, err)
			require.Equal(t, "lo", string(b[:n]))

			first := q.Segments()[0]
			require.NoError(t, q.RemoveFirst())
			_, err = first.ReadAt(b, 8192)
			require.ErrorIs(t, err, segment.ErrNotFound)
			require.NoError(t, q.Find(12288).Cut(12288+4093))
			_, err = q.Find(12288).ReadAt(b, 12288+4091)
			require.NoError(t, err)
			require.Equal(t, "he\x00\x00\x00", string(b))
			require.NoError(t, q.Close())
		})
	}
}

func TestNextDataSkipsHoles(t *testing.T) {
	for name, fsys := range map[string]vfs.FS{"memory": vfs.NewCrashable(), "disk": vfs.OS()} {
		t.Run(name, func(t *testing.T) {
			dir := "/log"
			if name == "disk" {
				dir = t.TempDir()
			}
			const size = 1 << 22
			q, err := segment.OpenQueue(fsys, dir, size, slog.New(slog.DiscardHandler))
			require.NoError(t, err)
			s, err := q.Grow(0)
			require.NoError(t, err)
			at, err := s.NextData(10)
			require.NoError(t, err)
			require.Contains(t, []int64{10, size}, at)
			require.NoError(t, s.WriteAt([]byte{1}, 1<<21))
			at, err = s.NextData(10)
			require.NoError(t, err)
			require.LessOrEqual(t, at, int64(1<<21))
			require.NoError(t, s.Zero(0, 3<<20))
			b := []byte{9}
			_, err = s.ReadAt(b, 1<<21)
			require.NoError(t, err)
			require.Zero(t, b[0])
			require.NoError(t, q.Close())
		})
	}
}

func TestOpenQueueRefusesFilesThatDoNotFit(t *testing.T) {
	lay := func(names map[string]int64) vfs.FS {
		fsys := vfs.NewCrashable()
		require.NoError(t, fsys.MkdirAll("/log"))
		for name, size := range names {
			f, err := fsys.Create("/log/" + name)
			require.NoError(t, err)
			require.NoError(t, f.Truncate(size))
		}
		return fsys
	}
	for name, c := range map[string]struct {
		files    map[string]int64
		segments int
		want     error
	}{
		"empty directory":     {nil, 0, nil},
		"foreign names":       {map[string]int64{segment.Name(0): 4096, "lost+found": 0, "0000000000000000409x": 7, "4096": 1}, 1, nil},
		"short last file":     {map[string]int64{segment.Name(0): 4096, segment.Name(4096): 100}, 2, nil},
		"empty last file":     {map[string]int64{segment.Name(0): 0}, 1, nil},
		"starts late":         {map[string]int64{segment.Name(40960): 4096, segment.Name(45056): 4096}, 2, nil},
		"gap":                 {map[string]int64{segment.Name(0): 4096, segment.Name(8192): 4096}, 0, segment.ErrLayout},
		"overlap":             {map[string]int64{segment.Name(0): 4096, segment.Name(2048): 4096}, 0, segment.ErrLayout},
		"short in the middle": {map[string]int64{segment.Name(0): 100, segment.Name(4096): 4096}, 0, segment.ErrLayout},
		"too long":            {map[string]int64{segment.Name(0): 8192}, 0, segment.ErrLayout},
	} {
		t.Run(name, func(t *testing.T) {
			q, err := segment.OpenQueue(lay(c.files), "/log", 4096, slog.New(slog.DiscardHandler))
			if c.want != nil {
				require.ErrorIs(t, err, c.want)
				return
			}
			require.NoError(t, err)
			require.Len(t, q.Segments(), c.segments)
			for _, s := range q.Segments() {
				require.EqualValues(t, 4096, s.End()-s.Begin())
			}
		})
	}
}

func TestGrowThatFailsLeavesNoFile(t *testing.T) {
	for _, kind := range []string{"create", "truncate", "sync", "syncdir"} {
		t.Run(kind, func(t *testing.T) {
			fsys := vfs.NewCrashable()
			q := open(t, fsys)
			_, err := q.Grow(0)
			require.NoError(t, err)
			fsys.SetFault(func(k, _ string) error {
				if k == kind {
					return syscall.ENOSPC
				}
				return nil
			})
			_, err = q.Grow(0)
			require.ErrorIs(t, err, syscall.ENOSPC)
			require.Len(t, q.Segments(), 1)
			fsys.SetFault(nil)
			_, err = q.Grow(0)
			require.NoError(t, err)
			require.Len(t, open(t, fsys).Segments(), 2)
		})
	}
}

// After a power cut at any moment of growing, cutting and removing, the files still fit together, and a cut shows all of
// the old bytes or none.
func TestQueueSurvivesAPowerCutAnywhere(t *testing.T) {
	fsys := vfs.NewCrashable()
	q := open(t, fsys)
	for i := range int64(4) {
		s, err := q.Grow(0)
		require.NoError(t, err)
		for at := s.Begin(); at < s.End(); at += 512 {
			require.NoError(t, s.WriteAt([]byte{byte(i + 1)}, at))
		}
		require.NoError(t, s.Sync())
	}
	written := fsys.Ops()
	require.NoError(t, q.RemoveFirst())
	require.NoError(t, q.RemoveLast())
	require.NoError(t, q.Find(8192).Cut(8192+1024))
	require.NoError(t, q.RemoveFirst())
	for at := range fsys.Ops() + 1 {
		for pattern := range uint64(64) {
			n := 0
			twin := fsys.Crash(at, func() bool { n++; return pattern>>(n%6)&1 == 1 })
			q, err := segment.OpenQueue(twin, "/log", 4096, slog.New(slog.DiscardHandler))
			require.NoError(t, err, "crash at %d pattern %b", at, pattern)
			s := q.Find(8192)
			if s == nil || at < written {
				continue
			}
			b := make([]byte, 4096)
			_, err = s.ReadAt(b, 8192)
			require.NoError(t, err)
			require.EqualValues(t, 3, b[0])
			require.EqualValues(t, 3, b[512])
			cut := b[1024] == 0
			for i := 1024; i < 4096; i += 512 {
				require.Equal(t, cut, b[i] == 0)
			}
		}
	}
}
