package consumequeue_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/vfs"
	"github.com/quorate/quorate/store/consumequeue"
)

const unitsPerFile = 50

func crashable(t testing.TB) *vfs.Crashable {
	t.Helper()
	fsys := vfs.NewCrashable()
	require.NoError(t, fsys.MkdirAll("/store"))
	require.NoError(t, fsys.SyncDir("/"))
	return fsys
}

func config(fsys vfs.FS) consumequeue.Config {
	cfg := consumequeue.DefaultConfig()
	cfg.FS, cfg.Dir = fsys, "/store/consumequeue"
	cfg.FileSize = unitsPerFile * consumequeue.UnitSize
	cfg.TailBytesMax = 16 * consumequeue.UnitSize
	cfg.OpenFilesMax = 2
	return cfg
}

func open(t testing.TB, cfg consumequeue.Config, b consumequeue.Bounds) (*consumequeue.Table, []consumequeue.Damage) {
	t.Helper()
	table, damage, err := consumequeue.Open(cfg, b, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return table, damage
}

func clean() consumequeue.Bounds { return consumequeue.Bounds{Trusted: consumequeue.TrustAll} }

// unit is the unit of the n-th record of a made-up log of 100-byte records.
func unit(n int64) consumequeue.Unit {
	return consumequeue.Unit{PhysicalOffset: n * 100, Size: 100, TagsCode: -n}
}

func add(t testing.TB, table *consumequeue.Table, topic string, id int32, offset int64, u consumequeue.Unit) {
	t.Helper()
	outcome, err := table.Append([]byte(topic), id, offset, u)
	require.NoError(t, err)
	require.Equal(t, consumequeue.Added, outcome)
}

func read(t testing.TB, q *consumequeue.Queue, from int64, n int) []consumequeue.Unit {
	t.Helper()
	var units consumequeue.Units
	require.NoError(t, q.Read(from, n, &units))
	list := make([]consumequeue.Unit, 0, units.Len())
	for i := range units.Len() {
		list = append(list, units.At(i))
	}
	return list
}

func bounds(t testing.TB, q *consumequeue.Queue, wantMin, wantMax int64) {
	t.Helper()
	minOffset, maxOffset := q.Bounds()
	require.Equal(t, [2]int64{wantMin, wantMax}, [2]int64{minOffset, maxOffset})
}

func TestUnitsReadBackFromMemoryAndFiles(t *testing.T) {
	fsys := crashable(t)
	table, _ := open(t, config(fsys), clean())
	const n = 3*unitsPerFile + 7
	for i := range int64(n) {
		add(t, table, "T", 1, i, unit(i))
		if i%31 == 0 {
			require.NoError(t, table.WriteBack())
		}
	}
	check := func(q *consumequeue.Queue) {
		bounds(t, q, 0, n)
		all := read(t, q, 0, 1000)
		require.Len(t, all, n)
		for i, u := range all {
			require.Equal(t, unit(int64(i)), u)
		}
		require.Equal(t, []consumequeue.Unit{unit(n - 1)}, read(t, q, n-1, 32))
		require.Empty(t, read(t, q, n, 32))
		require.Empty(t, read(t, q, -1, 32))
		require.EqualValues(t, n*100, q.MaxPhysical())
	}
	check(table.Lookup("T", 1))
	require.NoError(t, table.Sync())
	require.Zero(t, table.Pending())
	check(table.Lookup("T", 1))
	for range 2 { // an idle queue lets go of its tail
		require.NoError(t, table.WriteBack())
	}
	check(table.Lookup("T", 1))
	require.NoError(t, table.Close())

	entries, err := fsys.ReadDir("/store/consumequeue/T/1")
	require.NoError(t, err)
	require.Len(t, entries, 4)
	for _, e := range entries {
		require.EqualValues(t, unitsPerFile*consumequeue.UnitSize, e.Size, "full length at once")
	}
	table, damage := open(t, config(fsys), clean())
	require.Empty(t, damage)
	check(table.Lookup("T", 1))
	require.Equal(t, map[string][]int32{"T": {1}}, table.Topics())
}

func TestRepeatedDispatchChangesNothing(t *testing.T) {
	table, _ := open(t, config(crashable(t)), clean())
	for i := range int64(10) {
		add(t, table, "T", 0, i, unit(i))
	}
	for i := range int64(10) {
		outcome, err := table.Append([]byte("T"), 0, i, unit(i))
		require.NoError(t, err)
		require.Equal(t, consumequeue.Repeated, outcome)
	}
	bounds(t, table.Lookup("T", 0), 0, 10)
	outcome, err := table.Append([]byte("T"), 0, 5, unit(20))
	require.NoError(t, err)
	require.Equal(t, consumequeue.OutOfOrder, outcome, "another record at a taken offset")
	outcome, err = table.Append([]byte("T"), 0, 12, unit(21))
	require.NoError(t, err)
	require.Equal(t, consumequeue.AfterGap, outcome)
	units := read(t, table.Lookup("T", 0), 9, 10)
	require.Len(t, units, 4)
	require.True(t, units[1].Filler())
	require.True(t, units[2].Filler())
	require.Equal(t, unit(21), units[3])
	outcome, err = table.Append([]byte("T"), 0, 0, unit(22))
	require.NoError(t, err)
	require.Equal(t, consumequeue.Restarted, outcome, "its topic was deleted and made again")
	bounds(t, table.Lookup("T", 0), 0, 1)
	require.Equal(t, []consumequeue.Unit{unit(22)}, read(t, table.Lookup("T", 0), 0, 9))
}

func TestAQueueThatBeginsLaterIsFilledUp(t *testing.T) {
	fsys := crashable(t)
	table, _ := open(t, config(fsys), clean())
	const first = 2*unitsPerFile + 30
	for i := int64(first); i < first+10; i++ {
		add(t, table, "T", 0, i, unit(i))
	}
	check := func(table *consumequeue.Table) {
		q := table.Lookup("T", 0)
		bounds(t, q, first, first+10)
		require.Equal(t, unit(first), read(t, q, first, 1)[0])
		require.True(t, read(t, q, first-1, 1)[0].Filler())
	}
	check(table)
	require.NoError(t, table.Sync())
	table, _ = open(t, config(fsys), clean())
	check(table)
	b, err := vfs.ReadFile(fsys, fmt.Sprintf("/store/consumequeue/T/0/%020d", 2*unitsPerFile*consumequeue.UnitSize))
	require.NoError(t, err)
	require.Equal(t, []byte{0, 0, 0, 0, 0, 0, 0, 0, 0x7F, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0}, b[29*20:30*20])
}

// A crash may leave only units of records that retention has removed since.
func TestAQueueWhoseUnitsAllExpiredGoesOnAtTheNextRecord(t *testing.T) {
	for name, next := range map[string]int64{"in the same file": 40, "in the next file": 60, "files later": 7*unitsPerFile + 3} {
		t.Run(name, func(t *testing.T) {
			fsys := crashable(t)
			table, _ := open(t, config(fsys), clean())
			for i := range int64(30) {
				add(t, table, "T", 0, i, unit(i))
			}
			require.NoError(t, table.Sync())
			table, damage := open(t, config(fsys), consumequeue.Bounds{LogMin: next * 100, Trusted: consumequeue.TrustAll})
			require.Empty(t, damage)
			bounds(t, table.Lookup("T", 0), 30, 30)
			for i := next; i < next+5; i++ {
				outcome, err := table.Append([]byte("T"), 0, i, unit(i))
				require.NoError(t, err)
				require.Contains(t, []consumequeue.Outcome{consumequeue.Added, consumequeue.Restarted}, outcome)
			}
			bounds(t, table.Lookup("T", 0), next, next+5)
			require.Equal(t, unit(next), read(t, table.Lookup("T", 0), next, 1)[0])
			require.NoError(t, table.Sync())
			table, damage = open(t, config(fsys), consumequeue.Bounds{LogMin: next * 100, Trusted: consumequeue.TrustAll})
			require.Empty(t, damage)
			bounds(t, table.Lookup("T", 0), next, next+5)
		})
	}
}

func TestEmptyQueueCostsNothingOnDisk(t *testing.T) {
	fsys := crashable(t)
	table, _ := open(t, config(fsys), clean())
	q := table.Queue("T", 3)
	require.False(t, q.Exists())
	require.NoError(t, table.Sync())
	require.Empty(t, table.Topics())
	_, err := fsys.Stat("/store/consumequeue")
	require.Error(t, err)
}

func TestWaitersWakeWithTheWholeBatch(t *testing.T) {
	table, _ := open(t, config(crashable(t)), clean())
	arrived := table.Queue("T", 0).Arrived()
	add(t, table, "T", 0, 0, unit(0))
	add(t, table, "T", 0, 1, unit(1))
	require.Zero(t, arrived.Load())
	table.Announce()
	require.EqualValues(t, 2, arrived.Load())
	require.NoError(t, table.DeleteTopic("T"))
	require.ErrorIs(t, arrived.Wait(context.Background(), 3), consumequeue.ErrDeleted)
	require.Nil(t, table.Lookup("T", 0))
	add(t, table, "T", 0, 0, unit(5))
	bounds(t, table.Lookup("T", 0), 0, 1)
}

func TestDeletedTopicLeavesNoFiles(t *testing.T) {
	fsys := crashable(t)
	table, _ := open(t, config(fsys), clean())
	for i := range int64(120) {
		add(t, table, "T", int32(i%3), i/3, unit(i))
	}
	require.NoError(t, table.Sync())
	require.NoError(t, table.DeleteTopic("T"))
	after := fsys.Crash(fsys.Ops(), func() bool { return false })
	entries, err := after.ReadDir("/store/consumequeue")
	require.NoError(t, err)
	require.Empty(t, entries)
	require.NoError(t, table.Close())
}

func TestCutRemovesWhatLiesBehind(t *testing.T) {
	for cut := range int64(130) {
		fsys := crashable(t)
		table, _ := open(t, config(fsys), clean())
		for i := range int64(120) {
			add(t, table, "T", 0, i, unit(i))
			if i == 90 {
				require.NoError(t, table.WriteBack())
			}
		}
		require.NoError(t, table.CutAbove(cut*100))
		want := min(cut, 120)
		bounds(t, table.Lookup("T", 0), 0, want)
		// It goes on where it was cut, and the files say the same.
		add(t, table, "T", 0, want, unit(500))
		require.NoError(t, table.Sync())
		table, damage := open(t, config(fsys.Kill()), clean())
		require.Empty(t, damage)
		bounds(t, table.Lookup("T", 0), 0, want+1)
		require.Equal(t, unit(500), read(t, table.Lookup("T", 0), want, 1)[0])
	}
}

func TestRetentionRaisesTheMinimumAndRemovesFiles(t *testing.T) {
	fsys := crashable(t)
	table, _ := open(t, config(fsys), clean())
	for i := range int64(170) {
		add(t, table, "T", 0, i, unit(i))
	}
	require.NoError(t, table.Sync())
	for _, logBegin := range []int64{0, 1, 49, 50, 51, 149, 150, 169, 170, 500} {
		_, err := table.RaiseMin(logBegin * 100)
		require.NoError(t, err)
		want := min(logBegin, 170)
		bounds(t, table.Lookup("T", 0), want, 170)
		files, err := fsys.ReadDir("/store/consumequeue/T/0")
		require.NoError(t, err)
		require.Len(t, files, int(4-min(want/unitsPerFile, 3)))
		again, damage := open(t, config(fsys.Kill()), consumequeue.Bounds{LogMin: logBegin * 100, Trusted: consumequeue.TrustAll})
		require.Empty(t, damage)
		bounds(t, again.Lookup("T", 0), want, 170)
	}
	add(t, table, "T", 0, 170, unit(600))
	bounds(t, table.Lookup("T", 0), 170, 171)
}

func TestDamagedFilesAreReportedForRebuild(t *testing.T) {
	const n = 3*unitsPerFile + 10
	name := func(file int) string {
		return fmt.Sprintf("/store/consumequeue/T/0/%020d", file*unitsPerFile*consumequeue.UnitSize)
	}
	for file := range 4 {
		for _, how := range []string{"remove", "zero", "truncate"} {
			t.Run(how+strconv.Itoa(file), func(t *testing.T) {
				fsys := crashable(t)
				table, _ := open(t, config(fsys), clean())
				for i := range int64(n) {
					add(t, table, "T", 0, i, unit(i))
				}
				require.NoError(t, table.Sync())
				if how == "remove" {
					require.NoError(t, fsys.Remove(name(file)))
				} else {
					f, err := fsys.Open(name(file))
					require.NoError(t, err)
					require.NoError(t, f.Truncate(0))
					if how == "zero" {
						require.NoError(t, f.Truncate(unitsPerFile*consumequeue.UnitSize))
					}
				}
				b := clean()
				b.Known = map[consumequeue.Key]consumequeue.Known{{Topic: "T", ID: 0}: {End: n}}
				table, damage := open(t, config(fsys), b)
				if how == "remove" && file == 0 {
					// Cannot be told from retention: the log says whether these records are gone.
					bounds(t, table.Lookup("T", 0), unitsPerFile, n)
					return
				}
				require.Len(t, damage, 1)
				require.LessOrEqual(t, damage[0].From, int64(file*unitsPerFile*100))
				for i := damage[0].From / 100; i < n; i++ {
					_, err := table.Append([]byte("T"), 0, i, unit(i))
					require.NoError(t, err)
				}
				bounds(t, table.Lookup("T", 0), 0, n)
				for i, u := range read(t, table.Lookup("T", 0), 0, n) {
					require.Equal(t, unit(int64(i)), u)
				}
			})
		}
	}
}

func TestOffsetByTime(t *testing.T) {
	table, _ := open(t, config(crashable(t)), clean())
	times := []int64{10, 10, 10, 30, 30, 40}
	for i := range int64(len(times)) {
		add(t, table, "T", 0, i, unit(i))
	}
	storeTime := func(u consumequeue.Unit) int64 { return times[u.PhysicalOffset/100] }
	for _, c := range []struct{ at, lower, upper int64 }{
		{9, 0, 0}, {10, 0, 2}, {11, 3, 2}, {29, 3, 2}, {30, 3, 4}, {35, 5, 4}, {40, 5, 5}, {41, 6, 5},
	} {
		lower, err := table.Lookup("T", 0).OffsetByTime(c.at, false, storeTime)
		require.NoError(t, err)
		require.Equal(t, c.lower, lower, "lower of %d", c.at)
		upper, err := table.Lookup("T", 0).OffsetByTime(c.at, true, storeTime)
		require.NoError(t, err)
		require.Equal(t, c.upper, upper, "upper of %d", c.at)
	}
	none, err := table.Queue("T", 9).OffsetByTime(10, false, storeTime)
	require.NoError(t, err)
	require.Zero(t, none)
}

func TestFullDiskKeepsUnitsAndGoesOnWhenSpaceReturns(t *testing.T) {
	fsys := crashable(t)
	cfg := config(fsys)
	cfg.PendingBytesMax = 20 * consumequeue.UnitSize
	table, _ := open(t, cfg, clean())
	fsys.SetFault(func(kind, _ string) error {
		if kind == "write" || kind == "create" {
			return syscall.ENOSPC
		}
		return nil
	})
	var n int64
	for ; n < 100; n++ {
		if _, err := table.Append([]byte("T"), 0, n, unit(n)); err != nil {
			require.ErrorIs(t, err, syscall.ENOSPC)
			break
		}
	}
	require.Less(t, n, int64(21), "memory is bounded")
	require.Error(t, table.WriteBack())
	fsys.SetFault(nil)
	for ; n < 100; n++ {
		add(t, table, "T", 0, n, unit(n))
	}
	require.NoError(t, table.Sync())
	table, _ = open(t, cfg, clean())
	for i, u := range read(t, table.Lookup("T", 0), 0, 200) {
		require.Equal(t, unit(int64(i)), u)
	}
	bounds(t, table.Lookup("T", 0), 0, 100)
}

func TestManyFilesAreSyncedAtOnceAndErrorsReported(t *testing.T) {
	fsys := crashable(t)
	table, _ := open(t, config(fsys), clean())
	for i := range int64(100) {
		add(t, table, "T", int32(i), 0, unit(i))
	}
	require.NoError(t, table.Sync())
	left, err := fsys.Crash(fsys.Ops(), func() bool { return false }).ReadDir("/store/consumequeue/T")
	require.NoError(t, err)
	require.Len(t, left, 100)
	boom := errors.New("boom")
	fsys.SetFault(func(kind, _ string) error {
		if kind == "sync" {
			return boom
		}
		return nil
	})
	add(t, table, "T", 0, 1, unit(100))
	require.ErrorIs(t, table.Sync(), boom)
}

// TestCrashAnywhereRecovers places a power cut before every operation and checks the ends that the next start finds
// against what was synced, then dispatches the rest again.
func TestCrashAnywhereRecovers(t *testing.T) {
	fsys := crashable(t)
	table, _ := open(t, config(fsys), clean())
	type point struct {
		ops    int
		synced int64
	}
	base := fsys.Ops()
	points := []point{{0, 0}}
	rng := rand.New(rand.NewPCG(1, 2))
	const n = 200
	next := map[int32]int64{}
	offsets := make([]int64, n)
	ids := make([]int32, n)
	for i := range int64(n) {
		id := int32(rng.IntN(3) % 2)
		ids[i], offsets[i] = id, next[id]
		next[id]++
		add(t, table, "T", id, offsets[i], unit(i))
		switch rng.IntN(20) {
		case 0:
			require.NoError(t, table.WriteBack())
		case 1:
			require.NoError(t, table.Sync())
			points = append(points, point{fsys.Ops(), i + 1})
		}
	}
	for at := base; at <= fsys.Ops(); at++ {
		synced := int64(0)
		for _, p := range points {
			if p.ops <= at {
				synced = p.synced
			}
		}
		for seed := range uint64(6) {
			r := rand.New(rand.NewPCG(seed, uint64(at)))
			keep := func() bool { return seed == 0 || (seed > 1 && r.IntN(2) == 0) }
			after := fsys.Crash(at, keep)
			known := map[consumequeue.Key]consumequeue.Known{}
			for i := range synced {
				known[consumequeue.Key{Topic: "T", ID: ids[i]}] = consumequeue.Known{End: offsets[i] + 1}
			}
			table, damage := open(t, config(after), consumequeue.Bounds{Trusted: synced * 100, Known: known})
			require.Empty(t, damage, "op %d seed %d", at, seed)
			for i := synced; i < n; i++ {
				_, err := table.Append([]byte("T"), ids[i], offsets[i], unit(i))
				require.NoError(t, err)
			}
			require.NoError(t, table.Sync())
			table, _ = open(t, config(after.Crash(after.Ops(), func() bool { return false })), clean())
			for i := range int64(n) {
				got := read(t, table.Lookup("T", ids[i]), offsets[i], 1)
				require.Equal(t, []consumequeue.Unit{unit(i)}, got, "op %d seed %d record %d", at, seed, i)
			}
			for id, end := range next {
				bounds(t, table.Lookup("T", id), 0, end)
			}
		}
	}
}

func TestJavaQueuesOpen(t *testing.T) {
	for version, want := range map[string]map[string]int64{
		"5.5.0": {"FixtureTopic/0": 0, "FixtureTopic/1": 0, "FixtureOrder/0": 4},
		"4.9.7": {"FixtureTopic/0": 0, "FixtureTopic/1": 0, "FixtureOrder/0": 4},
	} {
		t.Run(version, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "java-"+version, "consumequeue"))))
			cfg := consumequeue.DefaultConfig()
			cfg.FS, cfg.Dir, cfg.FileSize = vfs.OS(), dir, 6000
			table, damage := open(t, cfg, clean())
			require.Empty(t, damage)
			for name, units := range want {
				id, err := strconv.Atoi(filepath.Base(name))
				require.NoError(t, err)
				q := table.Lookup(filepath.Dir(name), int32(id))
				require.NotNil(t, q, name)
				_, end := q.Bounds()
				require.Positive(t, end, name)
				if units > 0 {
					require.Equal(t, units, end, name)
				}
				var last int64
				for _, u := range read(t, q, 0, 1000) {
					require.True(t, u.Valid())
					require.GreaterOrEqual(t, u.PhysicalOffset, last)
					last = u.End()
				}
				require.Equal(t, last, q.MaxPhysical())
			}
			require.NoError(t, table.Close())
		})
	}
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x00\x7f\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00"), int64(100), uint8(1))
	f.Add(make([]byte, 400), int64(0), uint8(2))
	f.Fuzz(func(t *testing.T, content []byte, trusted int64, files uint8) {
		fsys := crashable(t)
		cfg := config(fsys)
		require.NoError(t, fsys.MkdirAll(cfg.Dir+"/T/0"))
		for i := range int(files % 4) {
			part := content[min(len(content), i*int(cfg.FileSize)):]
			part = part[:min(len(part), int(cfg.FileSize))]
			require.NoError(t, vfs.WriteFile(fsys, fmt.Sprintf("%s/T/0/%020d", cfg.Dir, i*int(cfg.FileSize)), part))
		}
		table, _, err := consumequeue.Open(cfg, consumequeue.Bounds{Trusted: trusted}, slog.New(slog.DiscardHandler))
		if err != nil {
			return
		}
		q := table.Lookup("T", 0)
		minOffset, end := q.Bounds()
		require.LessOrEqual(t, minOffset, end)
		_, err = table.Append([]byte("T"), 0, end, consumequeue.Unit{PhysicalOffset: 1 << 50, Size: 10})
		require.NoError(t, err)
		require.NoError(t, table.Sync())
		require.NoError(t, table.CutAbove(trusted))
	})
}

func BenchmarkAppend(b *testing.B) {
	for _, queues := range []int{4, 10_000} {
		b.Run(fmt.Sprintf("%d_queues", queues), func(b *testing.B) {
			cfg := consumequeue.DefaultConfig()
			cfg.FS, cfg.Dir = vfs.OS(), b.TempDir()
			table, _ := open(b, cfg, clean())
			topic := []byte("BenchmarkTopic")
			b.ReportAllocs()
			last := time.Now()
			for i := 0; b.Loop(); i++ {
				u := consumequeue.Unit{PhysicalOffset: int64(i) * 1100, Size: 1100, TagsCode: 7}
				if _, err := table.Append(topic, int32(i%queues), int64(i/queues), u); err != nil {
					b.Fatal(err)
				}
				if i%1000 == 0 && time.Since(last) > time.Second {
					last = time.Now()
					if err := table.WriteBack(); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
