package offset

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type memFiles struct {
	mu      sync.Mutex
	content map[string][]byte
	fail    error
}

func (f *memFiles) ReadConfigFile(name string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.content[name], nil
}

func (f *memFiles) WriteConfigFile(name string, content []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return f.fail
	}
	f.content[name] = content
	return nil
}

func newTable(t *testing.T) (*Table, *memFiles) {
	t.Helper()
	files := &memFiles{content: map[string][]byte{}}
	return NewTable(files, 2, func() time.Time { return time.UnixMilli(1_700_000_000_000) }), files
}

func TestUnknownProgressIsMinusOne(t *testing.T) {
	table, _ := newTable(t)
	table.Commit("g", "t", 2, 5)
	require.Equal(t, int64(5), table.Query("g", "t", 2))
	for _, id := range []int32{-1, 0, 1, 3, 1 << 30} {
		require.Equal(t, int64(-1), table.Query("g", "t", id))
	}
	require.Equal(t, int64(-1), table.Query("other", "t", 2))
	require.Equal(t, int64(-1), table.Pulled("g", "t", 2))
}

func TestHostileCommitsChangeNothing(t *testing.T) {
	table, _ := newTable(t)
	table.Commit("g", "t", 0, -1)
	table.Commit("g", "t", -1, 7)
	table.Commit("g", "t", queueIDMax, 7)
	table.CommitPull("g", "t", 0, -5)
	require.Empty(t, table.Content().OffsetTable)
}

func TestCommitTellsHowFarAGroupMovedBack(t *testing.T) {
	table, _ := newTable(t)
	require.Zero(t, table.Commit("g", "t", 0, 100))
	require.Equal(t, int64(90), table.Commit("g", "t", 0, 10))
	require.Zero(t, table.Commit("g", "t", 0, 11))
}

func TestMergeNeverMovesBack(t *testing.T) {
	table, _ := newTable(t)
	table.Commit("g", "t", 0, 10)
	table.MergeMax("g", "t", 0, 5)
	require.Equal(t, int64(10), table.Query("g", "t", 0))
	table.MergeMax("g", "t", 0, 12)
	table.MergeMax("g", "t", 1, 3)
	require.Equal(t, map[int32]int64{0: 12, 1: 3}, table.Offsets("g", "t"))
}

func TestResetIsTakenOnce(t *testing.T) {
	table, _ := newTable(t)
	table.SetReset("g", "t", 0, 4)
	require.True(t, table.PendingReset("g", "t", 0))
	offset, ok := table.TakeReset("g", "t", 0)
	require.True(t, ok)
	require.Equal(t, int64(4), offset)
	_, ok = table.TakeReset("g", "t", 0)
	require.False(t, ok)
	require.Equal(t, int64(4), table.Query("g", "t", 0))
}

// CASES 101: a name used again starts from nothing.
func TestRemovedTopicAndGroupLeaveNothing(t *testing.T) {
	table, files := newTable(t)
	for _, topic := range []string{"t1", "t2"} {
		for _, group := range []string{"g1", "g2"} {
			table.Commit(group, topic, 0, 9)
			table.CommitPull(group, topic, 0, 9)
			table.SetReset(group, topic, 1, 9)
		}
	}
	table.RemoveTopic("t1")
	table.RemoveGroup("g1")
	require.Equal(t, []string{"g2"}, table.Groups("t2"))
	require.Empty(t, table.Groups("t1"))
	require.Empty(t, table.Topics("g1"))
	require.Equal(t, int64(-1), table.Pulled("g1", "t2", 0))
	_, ok := table.TakeReset("g2", "t1", 1)
	require.False(t, ok)
	require.NoError(t, table.Persist())
	again := NewTable(files, 1, time.Now)
	require.NoError(t, again.Load())
	require.Equal(t, table.Content().OffsetTable, again.Content().OffsetTable)
	require.Equal(t, map[string]map[int32]int64{"t2@g2": {0: 9, 1: 9}}, again.Content().OffsetTable)
}

func TestPersistWritesOnlyChangesAndFailsLoudly(t *testing.T) {
	table, files := newTable(t)
	require.NoError(t, table.Persist())
	require.Empty(t, files.content)
	table.Commit("g", "t", 0, 1)
	files.fail = errors.New("disk is gone")
	require.ErrorContains(t, table.Persist(), "disk is gone")
	files.fail = nil
	require.NoError(t, table.Persist(), "what failed is still to be written")
	require.Contains(t, string(files.content[fileName]), "t@g")
	require.Contains(t, string(files.content[fileName]), "0:1", "integer keys are not quoted in RocketMQ's files")
}

func TestLoadsWhatRocketMQWrote(t *testing.T) {
	table, files := newTable(t)
	files.content[fileName] = []byte("{\n\t\"dataVersion\":{\n\t\t\"counter\":3,\n\t\t\"stateVersion\":0,\n\t\t\"timestamp\":1796022987630\n\t},\n" +
		"\t\"groupTopicMap\":{\n\t\t\"fixture-consumer\":[\n\t\t\t\"FixtureTopic\"\n\t\t]\n\t},\n" +
		"\t\"offsetTable\":{\n\t\t\"FixtureTopic@fixture-consumer\":{\n\t\t\t0:14,\n\t\t\t1:15\n\t\t}\n\t},\n\t\"pullOffsetTable\":{}\n}")
	require.NoError(t, table.Load())
	require.Equal(t, map[int32]int64{0: 14, 1: 15}, table.Offsets("fixture-consumer", "FixtureTopic"))
	require.Equal(t, int64(3), table.Content().DataVersion.Counter)
}

func TestDamagedFileIsNeverTakenForAnEmptyTable(t *testing.T) {
	for _, text := range []string{"{", `{"offsetTable":{"no-separator":{0:1}}}`, `[]`} {
		table, files := newTable(t)
		files.content[fileName] = []byte(text)
		require.Error(t, table.Load(), text)
	}
}

func TestConcurrentUse(t *testing.T) {
	table, _ := newTable(t)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range int64(500) {
				table.Commit("g", "t", int32(w), i)
				table.CommitPull("g", "t", int32(i%17), i)
				_ = table.Persist()
			}
		})
	}
	wg.Wait()
	for w := range int32(4) {
		require.Equal(t, int64(499), table.Query("g", "t", w))
	}
}

func BenchmarkCommitAndQuery(b *testing.B) {
	table := NewTable(&memFiles{content: map[string][]byte{}}, 500, time.Now)
	table.Commit("group", "topic", 3, 0)
	b.ReportAllocs()
	for i := int64(0); b.Loop(); i++ {
		table.Commit("group", "topic", 3, i)
		if table.Query("group", "topic", 3) != i {
			b.Fatal("lost")
		}
	}
}
