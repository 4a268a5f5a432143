package checkpoint_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ha"
	"github.com/quorate/quorate/internal/vfs"
	"github.com/quorate/quorate/store/checkpoint"
)

func history(t testing.TB, entries ...ha.EpochEntry) ha.History {
	t.Helper()
	h, err := ha.NewHistory(entries)
	require.NoError(t, err)
	return h
}

func TestEpochFilesOfRocketMQReadAndWriteTheSameBytes(t *testing.T) {
	for name, want := range map[string]ha.History{
		"master":        history(t, ha.EpochEntry{Epoch: 1}, ha.EpochEntry{Epoch: 2, Start: 14991}),
		"replica":       history(t, ha.EpochEntry{Epoch: 1}, ha.EpochEntry{Epoch: 2, Start: 14991}),
		"master-killed": history(t, ha.EpochEntry{Epoch: 1}),
	} {
		t.Run(name, func(t *testing.T) {
			content, err := os.ReadFile("testdata/java-5.5.0-auto/" + name + ".epochFileCheckpoint")
			require.NoError(t, err)
			h, err := checkpoint.DecodeEpochs(content)
			require.NoError(t, err)
			require.Equal(t, want, h)
			require.Equal(t, string(content), string(checkpoint.EncodeEpochs(h)))
		})
	}
}

func TestEpochFileRefusesWhatIsNotWhole(t *testing.T) {
	for _, text := range []string{"", "1", "1\n", "x\n0\n1-0\n", "2\n0\n1-0\n", "1\n7\n1-0\n", "1\n0\n1_0\n", "2\n0\n2-0\n1-5\n", "1\n-4\n1-0\n", "5000\n0\n1-0\n"} {
		_, err := checkpoint.DecodeEpochs([]byte(text))
		require.ErrorIs(t, err, checkpoint.ErrBadEpochs, "%q", text)
	}
	h, err := checkpoint.DecodeEpochs([]byte("1\n0\n3-9\n"))
	require.NoError(t, err, "a checksum of 0 is not checked")
	require.Equal(t, ha.MasterEpoch(3), h.Last())
}

func TestEpochsAreDurableWhenAChangeReturns(t *testing.T) {
	fsys := vfs.NewCrashable()
	require.NoError(t, fsys.MkdirAll("/s"))
	require.NoError(t, fsys.SyncDir("/"))
	open := func() *checkpoint.Epochs {
		x, err := checkpoint.OpenEpochs(fsys, "/s/epochFileCheckpoint")
		require.NoError(t, err)
		return x
	}
	x := open()
	require.Zero(t, x.History().Last())
	require.NoError(t, x.Begin(ha.EpochEntry{Epoch: 1}))
	require.NoError(t, x.Begin(ha.EpochEntry{Epoch: 2, Start: 700}))
	require.Error(t, x.Begin(ha.EpochEntry{Epoch: 2, Start: 900}), "epochs only grow")
	require.Equal(t, x.History(), open().History())
	require.NoError(t, x.TruncateTo(700))
	require.Equal(t, history(t, ha.EpochEntry{Epoch: 1}), open().History(), "no backup brings an epoch back that was cut")
}

func TestDamagedEpochFileFallsBackToRocketMQsBackup(t *testing.T) {
	fsys := vfs.NewCrashable()
	require.NoError(t, fsys.MkdirAll("/s"))
	require.NoError(t, vfs.WriteFile(fsys, "/s/e.bak", checkpoint.EncodeEpochs(history(t, ha.EpochEntry{Epoch: 4, Start: 9}))))
	require.NoError(t, vfs.WriteFile(fsys, "/s/e", []byte("1\n77\n4-")))
	x, err := checkpoint.OpenEpochs(fsys, "/s/e")
	require.NoError(t, err)
	require.Equal(t, ha.MasterEpoch(4), x.History().Last())
}

func FuzzDecodeEpochs(f *testing.F) {
	f.Add([]byte("2\n915945464\n1-0\n2-14991\n"))
	f.Add([]byte("1\r\n0\r\n1-0\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := checkpoint.DecodeEpochs(b)
		if err != nil {
			return
		}
		again, err := checkpoint.DecodeEpochs(checkpoint.EncodeEpochs(h))
		require.NoError(t, err)
		require.Equal(t, h.Entries(), again.Entries())
	})
}
