package checkpoint_test

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/vfs"
	"github.com/quorate/quorate/store/checkpoint"
)

func crashable(t *testing.T) *vfs.Crashable {
	t.Helper()
	fsys := vfs.NewCrashable()
	require.NoError(t, fsys.MkdirAll("/store/config"))
	require.NoError(t, fsys.SyncAll("/"))
	return fsys
}

func sample(n int64) checkpoint.Checkpoint {
	return checkpoint.Checkpoint{
		Java:       checkpoint.Java{PhysicTime: n, LogicsTime: n + 1, IndexTime: n + 2, Confirm: n + 4, LogicsOffset: n + 5},
		Dispatched: n + 6, Durable: n + 7, Indexed: n + 8, Boot: uint64(n) + 9,
	}
}

func TestCheckpointReadsBack(t *testing.T) {
	fsys := crashable(t)
	f, _, source, err := checkpoint.Open(fsys, "/store/checkpoint")
	require.NoError(t, err)
	require.Equal(t, checkpoint.None, source)
	require.NoError(t, f.Write(sample(1)))
	require.NoError(t, f.Write(sample(2)))
	require.NoError(t, f.Close())
	b, err := vfs.ReadFile(fsys, "/store/checkpoint")
	require.NoError(t, err)
	require.Len(t, b, checkpoint.FileSize)
	_, c, source, err := checkpoint.Open(fsys, "/store/checkpoint")
	require.NoError(t, err)
	require.Equal(t, checkpoint.Ours, source)
	require.Equal(t, sample(2), c)
}

func TestJavaCheckpoints(t *testing.T) {
	for name, want := range map[string]checkpoint.Java{
		"java-5.5.0-killed": {PhysicTime: 1796023018027, LogicsTime: 1796023018027, LogicsOffset: 12979},
		"java-5.5.0-clean":  {PhysicTime: 1796023018027, LogicsTime: 1796023018027, Confirm: 12979, LogicsOffset: 12979},
		"java-4.9.7-clean":  {LogicsTime: 1796023347742},
	} {
		b, err := os.ReadFile("testdata/" + name)
		require.NoError(t, err)
		c, source := checkpoint.Decode(b)
		require.Equal(t, checkpoint.Foreign, source, name)
		require.Equal(t, checkpoint.Checkpoint{Java: want}, c, name)
		require.Equal(t, b[:48], checkpoint.Encode(c)[:48], name)
	}
	b, err := os.ReadFile("testdata/java-4.9.7-killed")
	require.NoError(t, err)
	_, source := checkpoint.Decode(b)
	require.Equal(t, checkpoint.None, source)
}

func TestOurPartIsVoidOnceJavaWrote(t *testing.T) {
	b := checkpoint.Encode(sample(1))
	b[7]++ // physic time
	c, source := checkpoint.Decode(b)
	require.Equal(t, checkpoint.Foreign, source)
	require.Zero(t, c.Dispatched)
	require.EqualValues(t, 2, c.PhysicTime)
}

func TestEveryFlippedBitOfOurPartIsNoticed(t *testing.T) {
	for i := 256; i < 348; i++ {
		for bit := range 8 {
			b := checkpoint.Encode(sample(1))
			b[i] ^= 1 << bit
			_, source := checkpoint.Decode(b)
			require.NotEqual(t, checkpoint.Ours, source)
		}
	}
}

func TestTimesFromTheFutureAreNotBelieved(t *testing.T) {
	fsys := crashable(t)
	b := make([]byte, checkpoint.FileSize)
	for i := range 16 {
		b[i] = 0x11
	}
	require.NoError(t, vfs.WriteFile(fsys, "/store/checkpoint", b))
	_, _, source, err := checkpoint.Open(fsys, "/store/checkpoint")
	require.NoError(t, err)
	require.Equal(t, checkpoint.Damaged, source)
}

func TestCrashInsideCheckpointLeavesOldOrNew(t *testing.T) {
	fsys := crashable(t)
	f, _, _, err := checkpoint.Open(fsys, "/store/checkpoint")
	require.NoError(t, err)
	require.NoError(t, f.Write(sample(1)))
	from := fsys.Ops()
	require.NoError(t, f.Write(sample(2)))
	for at := from; at <= fsys.Ops(); at++ {
		for _, kept := range []bool{false, true} {
			_, c, source, err := checkpoint.Open(fsys.Crash(at, func() bool { return kept }), "/store/checkpoint")
			require.NoError(t, err)
			require.Equal(t, checkpoint.Ours, source)
			require.Contains(t, []checkpoint.Checkpoint{sample(1), sample(2)}, c)
			if at == fsys.Ops() {
				require.Equal(t, sample(2), c)
			}
		}
	}
}

// TestCrashInsideReplaceLeavesOldOrNew is case 76: power is cut at every step of many rewrites that shrink and grow.
func TestCrashInsideReplaceLeavesOldOrNew(t *testing.T) {
	fsys := crashable(t)
	const name = "/store/config/topics.json"
	rng := rand.New(rand.NewPCG(7, 8))
	version := func(n int) string {
		return `{"v":"` + strings.Repeat(string(rune('a'+n)), 1+n*37%200) + `"}`
	}
	done := []int{fsys.Ops()}
	const versions = 12
	for n := range versions {
		require.NoError(t, checkpoint.Replace(fsys, name, []byte(version(n))))
		done = append(done, fsys.Ops())
	}
	for at := done[0]; at <= fsys.Ops(); at++ {
		finished := -1
		for n, ops := range done[1:] {
			if ops <= at {
				finished = n
			}
		}
		for seed := range 8 {
			keep := func() bool { return seed == 0 || (seed > 1 && rng.IntN(2) == 0) }
			after := fsys.Crash(at, keep)
			got, fromBackup, err := checkpoint.Read(after, name)
			if finished < 0 && err != nil {
				require.ErrorIs(t, err, fs.ErrNotExist)
			} else {
				require.NoError(t, err, "op %d", at)
				allowed := []string{version(min(finished+1, versions-1))}
				if finished >= 0 {
					allowed = append(allowed, version(finished))
				}
				require.Contains(t, allowed, string(got), "op %d", at)
				require.False(t, fromBackup)
			}
			// It goes on from there.
			require.NoError(t, checkpoint.Replace(after, name, []byte(`{"next":1}`)))
			got, _, err = checkpoint.Read(after, name)
			require.NoError(t, err)
			require.JSONEq(t, `{"next":1}`, string(got))
		}
	}
}

func TestUnusableFileFallsBackToItsBackup(t *testing.T) {
	for content, usable := range map[string]bool{
		"": false, "\n\t ": false, "\x00\x00\x00": false, `{"a":1`: false, "{\"a\":1}\n": true, "{0:1}": true, "{\"a\"\x00}": false,
	} {
		fsys := crashable(t)
		require.NoError(t, vfs.WriteFile(fsys, "/store/config/x.json", []byte(content)))
		require.NoError(t, vfs.WriteFile(fsys, "/store/config/x.json.bak", []byte(`{"b":2}`)))
		got, fromBackup, err := checkpoint.Read(fsys, "/store/config/x.json")
		require.NoError(t, err)
		require.Equal(t, !usable, fromBackup, "%q", content)
		if usable {
			require.Equal(t, content, string(got))
		} else {
			require.JSONEq(t, `{"b":2}`, string(got))
		}
	}
	_, _, err := checkpoint.Read(crashable(t), "/store/config/x.json")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestAbortMarkerIsDurableBothWays(t *testing.T) {
	fsys := crashable(t)
	drop := func() bool { return false }
	require.NoError(t, checkpoint.SetAborted(fsys, "/store/abort"))
	aborted, err := checkpoint.Aborted(fsys.Crash(fsys.Ops(), drop), "/store/abort")
	require.NoError(t, err)
	require.True(t, aborted)
	require.NoError(t, checkpoint.SetAborted(fsys, "/store/abort"))
	require.NoError(t, checkpoint.ClearAborted(fsys, "/store/abort"))
	aborted, err = checkpoint.Aborted(fsys.Crash(fsys.Ops(), drop), "/store/abort")
	require.NoError(t, err)
	require.False(t, aborted)
	require.NoError(t, checkpoint.ClearAborted(fsys, "/store/abort"))
}

func TestLockExcludesASecondStore(t *testing.T) {
	name := t.TempDir() + "/lock"
	l, err := checkpoint.Acquire(name)
	require.NoError(t, err)
	_, err = checkpoint.Acquire(name)
	require.ErrorIs(t, err, checkpoint.ErrLocked)
	require.NoError(t, l.Release())
	l, err = checkpoint.Acquire(name)
	require.NoError(t, err)
	require.NoError(t, l.Release())
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "lock", string(b))
}

func TestQueueEndsReadBack(t *testing.T) {
	want := []checkpoint.QueueEnd{{"T", 0, 0, 1, 5}, {"%RETRY%g", 7, 1, 2, 1 << 40}, {"", -1, 0, 0, 0}}
	b := checkpoint.EncodeEnds(99, want)
	dispatched, got, err := checkpoint.DecodeEnds(b)
	require.NoError(t, err)
	require.EqualValues(t, 99, dispatched)
	require.Equal(t, want, got)
	for i := range b {
		c := append([]byte(nil), b...)
		c[i] ^= 4
		_, _, err := checkpoint.DecodeEnds(c)
		require.ErrorIs(t, err, checkpoint.ErrDamaged)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(checkpoint.Encode(sample(1)))
	f.Add(checkpoint.EncodeEnds(5, []checkpoint.QueueEnd{{"T", 0, 0, 0, 5}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, source := checkpoint.Decode(b); source == checkpoint.Ours {
			require.Equal(t, b[:48], checkpoint.Encode(c)[:48])
		}
		if dispatched, ends, err := checkpoint.DecodeEnds(b); err == nil {
			again, _, err := checkpoint.DecodeEnds(checkpoint.EncodeEnds(dispatched, ends))
			require.NoError(t, err)
			require.Equal(t, dispatched, again)
		}
	})
}
