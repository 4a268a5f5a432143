package index_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/vfs"
	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/store/index"
)

func crashable(t testing.TB) *vfs.Crashable {
	t.Helper()
	fsys := vfs.NewCrashable()
	require.NoError(t, fsys.MkdirAll("/store"))
	require.NoError(t, fsys.SyncDir("/"))
	return fsys
}

func config(fsys vfs.FS) index.Config {
	cfg := index.DefaultConfig()
	cfg.FS, cfg.Dir, cfg.Slots, cfg.Entries = fsys, "/store/index", 64, 256
	now := time.Date(2026, 11, 30, 7, 16, 46, 0, time.UTC)
	cfg.Now = func() time.Time { now = now.Add(time.Millisecond); return now }
	return cfg
}

func open(t testing.TB, cfg index.Config, b index.Bounds) *index.Index {
	t.Helper()
	x, err := index.Open(cfg, b, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return x
}

func clean() index.Bounds { return index.Bounds{LogEnd: math.MaxInt64, Clean: true} }

// record is the n-th record of a made-up log of 100-byte records, stored a second apart.
func record(n int64, keys string) message.Record {
	p := message.MakeProperties(map[string]string{message.UniqueKey: fmt.Sprintf("U%d", n), message.Keys: keys})
	return message.Record{
		PhysicalOffset: n * 100, Size: 100, Topic: []byte("T"), Properties: p, StoreTimestamp: 1_000_000 + n*1000,
	}
}

func submit(t testing.TB, x *index.Index, records ...message.Record) {
	t.Helper()
	var b index.Batch
	for i := range records {
		b.Add(&records[i])
	}
	require.NoError(t, x.Submit(context.Background(), &b))
	require.NoError(t, x.Apply())
}

func query(t testing.TB, x *index.Index, key string) []int64 {
	t.Helper()
	found, err := x.Query("T", key, false, 64, 0, math.MaxInt64)
	require.NoError(t, err)
	return found.Offsets
}

func javaRecords(t *testing.T, version string) []message.Record {
	t.Helper()
	dir := filepath.Join("testdata", "java-"+version, "commitlog")
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	var records []message.Record
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		require.NoError(t, err)
		for {
			r, err := message.DecodeRecord(b, true)
			if err != nil {
				break
			}
			records = append(records, r)
			b = b[r.Size:]
		}
	}
	require.Greater(t, len(records), 30)
	return records
}

func TestJavaLogGivesJavaIndexByteForByte(t *testing.T) {
	for _, version := range []string{"5.5.0", "4.9.7"} {
		t.Run(version, func(t *testing.T) {
			fsys := crashable(t)
			x := open(t, config(fsys), clean())
			b := index.Batch{WithTags: version == "5.5.0"}
			for _, r := range javaRecords(t, version) {
				b.Add(&r)
			}
			require.NoError(t, x.Submit(context.Background(), &b))
			require.NoError(t, x.Apply())
			_, _, err := x.Sync()
			require.NoError(t, err)
			ours, err := fsys.ReadDir("/store/index")
			require.NoError(t, err)
			require.Len(t, ours, 1)
			got, err := vfs.ReadFile(fsys, "/store/index/"+ours[0].Name)
			require.NoError(t, err)
			theirs, err := filepath.Glob(filepath.Join("testdata", "java-"+version, "index", "*"))
			require.NoError(t, err)
			want, err := os.ReadFile(theirs[0])
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
}

func TestJavaIndexAnswersAfterAKill(t *testing.T) {
	for _, version := range []string{"5.5.0", "4.9.7"} {
		t.Run(version, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "java-"+version))))
			theirs, err := filepath.Glob(filepath.Join(dir, "index", "*"))
			require.NoError(t, err)
			before, err := os.ReadFile(theirs[0])
			require.NoError(t, err)
			cfg := config(vfs.OS())
			cfg.Dir = dir + "/index"
			records := javaRecords(t, version)
			last := records[len(records)-1]
			x := open(t, cfg, index.Bounds{LogEnd: last.PhysicalOffset + int64(last.Size), Foreign: true})
			after, err := os.ReadFile(theirs[0])
			require.NoError(t, err)
			require.Equal(t, before, after, "checked and made anew, byte for byte")
			b := index.Batch{WithTags: version == "5.5.0"}
			for _, r := range records {
				if r.PhysicalOffset >= x.Resume() {
					b.Add(&r) // the last one again
				}
			}
			require.NoError(t, x.Submit(context.Background(), &b))
			require.NoError(t, x.Apply())
			for _, r := range records {
				unique, ok := r.Properties.Lookup(message.UniqueKey)
				if !ok || r.SysFlag.Transaction() == message.TransactionRollback {
					continue
				}
				found, err := x.Query(string(r.Topic), string(unique), false, 64, 0, math.MaxInt64)
				require.NoError(t, err)
				require.Contains(t, found.Offsets, r.PhysicalOffset)
			}
			if version == "5.5.0" {
				found, err := x.Query("FixtureTopic", "TagA", true, 64, 0, math.MaxInt64)
				require.NoError(t, err)
				require.Contains(t, found.Offsets, int64(0))
			}
			_, _, err = x.Sync()
			require.NoError(t, err)
			again, err := os.ReadFile(theirs[0])
			require.NoError(t, err)
			require.Equal(t, before, again, "nothing was added twice")
			require.NoError(t, x.Close())
		})
	}
}

func TestEveryKeyFindsItsRecordNewestFirst(t *testing.T) {
	fsys := crashable(t)
	x := open(t, config(fsys), clean())
	const n = 600 // 3 keys each: 8 files
	for i := range int64(n) {
		submit(t, x, record(i, fmt.Sprintf("k%d  shared", i)))
		if i%97 == 0 {
			_, _, err := x.Sync()
			require.NoError(t, err)
		}
	}
	check := func(x *index.Index) {
		for i := range int64(n) {
			require.Contains(t, query(t, x, fmt.Sprintf("U%d", i)), i*100)
			require.Contains(t, query(t, x, fmt.Sprintf("k%d", i)), i*100)
		}
		shared, err := x.Query("T", "shared", false, 10, 0, math.MaxInt64)
		require.NoError(t, err)
		require.Len(t, shared.Offsets, 10)
		for i, at := range shared.Offsets {
			require.EqualValues(t, (n-1-i)*100, at)
		}
		require.EqualValues(t, (n-1)*100, shared.LastOffset)
		require.EqualValues(t, 1_000_000+(n-1)*1000, shared.LastTime)
		inTime, err := x.Query("T", "shared", false, 64, 1_000_000+100*1000, 1_000_000+104*1000)
		require.NoError(t, err)
		require.Equal(t, []int64{10400, 10300, 10200, 10100, 10000}, inTime.Offsets)
	}
	check(x)
	covered, newest, err := x.Sync()
	require.NoError(t, err)
	require.EqualValues(t, n*100, covered)
	require.EqualValues(t, 1_000_000+(n-1)*1000, newest)
	for range 3 { // gives its memory back
		_, _, err := x.Sync()
		require.NoError(t, err)
	}
	check(x)
	require.NoError(t, x.Close())
	x = open(t, config(fsys.Crash(fsys.Ops(), func() bool { return false })), clean())
	require.EqualValues(t, (n-1)*100, x.Resume())
	check(x)
	submit(t, x, record(n-1, fmt.Sprintf("k%d  shared", n-1)), record(n, ""))
	require.Contains(t, query(t, x, fmt.Sprintf("U%d", n)), int64(n*100))
	files, err := fsys.ReadDir("/store/index")
	require.NoError(t, err)
	require.Len(t, files, 8)
	removed, err := x.Expire(n * 100 / 2)
	require.NoError(t, err)
	require.Equal(t, 3, removed)
	require.Empty(t, query(t, x, "U1"))
	require.Contains(t, query(t, x, fmt.Sprintf("U%d", n/2)), int64(n/2*100))
	require.NoError(t, x.Close())
}

func TestCutTakesKeysBack(t *testing.T) {
	for _, cut := range []int64{0, 1, 50, 84, 85, 86, 127, 128, 199, 200, 300} {
		fsys := crashable(t)
		x := open(t, config(fsys), clean())
		for i := range int64(200) {
			submit(t, x, record(i, fmt.Sprintf("k%d k%d", i, i%10)))
		}
		if cut%2 == 0 {
			_, _, err := x.Sync()
			require.NoError(t, err)
		}
		require.NoError(t, x.CutAbove(cut*100))
		for i := range int64(200) {
			got := query(t, x, fmt.Sprintf("U%d", i))
			require.Equal(t, i < cut, contains(got, i*100), "cut %d key %d", cut, i)
		}
		// The log goes on with other records at the same offsets.
		for i := cut; i < cut+20; i++ {
			r := record(i, "other")
			submit(t, x, r)
		}
		require.Contains(t, query(t, x, "other"), cut*100)
		_, _, err := x.Sync()
		require.NoError(t, err)
		require.NoError(t, x.Close())
	}
}

func contains(list []int64, v int64) bool {
	return slices.Contains(list, v)
}

// TestCrashAnywhereLosesNoKey places a power cut before every operation, submits again from Resume on, and compares with
// an index that saw no crash.
func TestCrashAnywhereLosesNoKey(t *testing.T) {
	cfg := func(fsys vfs.FS) index.Config {
		c := config(fsys)
		c.Entries, c.Slots = 64, 16
		return c
	}
	fsys := crashable(t)
	base := fsys.Ops()
	x := open(t, cfg(fsys), clean())
	const n = 60
	records := make([]message.Record, n)
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range int64(n) {
		records[i] = record(i, fmt.Sprintf("k%d shared", i))
		submit(t, x, records[i])
		if rng.IntN(4) == 0 {
			_, _, err := x.Sync()
			require.NoError(t, err)
		}
	}
	for at := base; at <= fsys.Ops(); at++ {
		for seed := range uint64(5) {
			r := rand.New(rand.NewPCG(seed, uint64(at)))
			keep := func() bool { return seed == 0 || (seed > 1 && r.IntN(2) == 0) }
			after := fsys.Crash(at, keep)
			x := open(t, cfg(after), index.Bounds{LogEnd: n * 100})
			for i := x.Resume() / 100; i < n; i++ {
				submit(t, x, records[i])
			}
			for i := range int64(n) {
				require.Contains(t, query(t, x, fmt.Sprintf("U%d", i)), i*100, "op %d seed %d", at, seed)
			}
			shared := query(t, x, "shared")
			require.Len(t, shared, n, "op %d seed %d", at, seed)
			_, _, err := x.Sync()
			require.NoError(t, err)
		}
	}
}

func TestPendingKeysAreBounded(t *testing.T) {
	cfg := config(crashable(t))
	cfg.PendingMax = 10
	x := open(t, cfg, clean())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var b index.Batch
	refused := false
	for i := range int64(20) {
		r := record(i, "")
		b.Add(&r)
		if err := x.Submit(ctx, &b); err != nil {
			require.ErrorIs(t, err, context.Canceled)
			refused = true
			break
		}
	}
	require.True(t, refused)
	require.NoError(t, x.Apply())
	require.NoError(t, x.Submit(ctx, &b))
}

func TestErrorsKeepKeysPending(t *testing.T) {
	fsys := crashable(t)
	x := open(t, config(fsys), clean())
	boom := errors.New("boom")
	fsys.SetFault(func(kind, _ string) error {
		if kind == "create" {
			return boom
		}
		return nil
	})
	var b index.Batch
	r := record(0, "")
	b.Add(&r)
	require.NoError(t, x.Submit(context.Background(), &b))
	require.ErrorIs(t, x.Apply(), boom)
	require.Zero(t, x.Covered())
	fsys.SetFault(nil)
	require.NoError(t, x.Apply())
	require.EqualValues(t, 100, x.Covered())
	require.Equal(t, []int64{0}, query(t, x, "U0"))
	fsys.SetFault(func(kind, _ string) error {
		if kind == "sync" {
			return boom
		}
		return nil
	})
	_, _, err := x.Sync()
	require.ErrorIs(t, err, boom)
}

func FuzzOpen(f *testing.F) {
	f.Add(make([]byte, 40), true, int64(100))
	files, err := filepath.Glob("testdata/*/index/*")
	if err != nil || len(files) == 0 {
		f.Fatal("no fixtures", err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, false, int64(13000))
		f.Add(b, true, int64(5000))
	}
	f.Fuzz(func(t *testing.T, content []byte, foreign bool, logEnd int64) {
		fsys := crashable(t)
		require.NoError(t, fsys.MkdirAll("/store/index"))
		require.NoError(t, vfs.WriteFile(fsys, "/store/index/20261130071646171", content))
		x, err := index.Open(config(fsys), index.Bounds{LogEnd: logEnd, Foreign: foreign}, slog.New(slog.DiscardHandler))
		if err != nil {
			return
		}
		for _, key := range []string{"U1", "key-1", ""} {
			_, err := x.Query("T", key, false, 64, 0, math.MaxInt64)
			require.NoError(t, err)
		}
		submit(t, x, record(x.Resume()/100+1, "a b"))
		_, _, err = x.Sync()
		require.NoError(t, err)
	})
}

func BenchmarkIndex(b *testing.B) {
	cfg := index.DefaultConfig()
	cfg.FS, cfg.Dir = vfs.OS(), b.TempDir()
	x := open(b, cfg, clean())
	batch := index.Batch{WithTags: true}
	r := record(0, "")
	keys := make([]message.Properties, 1024)
	for i := range keys {
		keys[i] = message.MakeProperties(map[string]string{
			message.UniqueKey: fmt.Sprintf("AC11000100002A9F00000000000%05d", i*7919), message.Tags: "TagA", "WAIT": "true",
		})
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r.PhysicalOffset = int64(i) * 1100
		r.Properties = keys[i%len(keys)]
		batch.Add(&r)
		if i%64 == 0 {
			if err := x.Submit(context.Background(), &batch); err != nil {
				b.Fatal(err)
			}
			if err := x.Apply(); err != nil {
				b.Fatal(err)
			}
		}
	}
}
