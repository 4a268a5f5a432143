package topic

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/broker/internal/memlog"
	"github.com/quorate/quorate/internal/fastjson"
)

func open(t testing.TB, files Files, live Reloadable) *Table {
	t.Helper()
	table, err := Open(DefaultSettings(), live, files, time.Now)
	require.NoError(t, err)
	require.NoError(t, table.EnsureSystem("C", "b"))
	return table
}

func TestReadsWhatRocketMQWroteAndWritesItBack(t *testing.T) {
	for _, version := range []string{"java-5.5.0", "java-4.9.7"} {
		content, err := os.ReadFile("testdata/" + version + "/topics.json")
		require.NoError(t, err)
		files := memlog.New()
		require.NoError(t, files.WriteConfigFile(fileName, content))
		table, err := Open(DefaultSettings(), DefaultReloadable(), files, time.Now)
		require.NoError(t, err)
		require.Equal(t, int32(2), table.Get("FixtureTx").ReadQueues)
		require.Equal(t, int32(18), table.Get(Schedule).WriteQueues)
		require.Equal(t, int32(7), table.Get(Template).Perm)
		before := table.Snapshot()
		require.NoError(t, table.Put(*table.Get("FixtureTx")))
		require.Same(t, before, table.Snapshot(), "nothing changed, nothing written")
		again, err := Open(DefaultSettings(), DefaultReloadable(), files, time.Now)
		require.NoError(t, err)
		require.Equal(t, before.Version, again.Snapshot().Version)

		require.NoError(t, save(files, before))
		written, err := files.ReadConfigFile(fileName)
		require.NoError(t, err)
		require.Equal(t, canonical(t, content), canonical(t, written), "the same fields and values")
	}
}

// canonical is a table with sorted keys; RocketMQ 4 knew no attributes.
func canonical(t *testing.T, content []byte) map[string]any {
	t.Helper()
	var out map[string]any
	require.NoError(t, fastjson.Unmarshal(content, &out))
	for _, c := range out["topicConfigTable"].(map[string]any) {
		if a, ok := c.(map[string]any)["attributes"].(map[string]any); ok && len(a) == 0 {
			delete(c.(map[string]any), "attributes")
		}
	}
	delete(out["dataVersion"].(map[string]any), "stateVersion")
	return out
}

func TestChangeIsOnDiskBeforeItIsSeen(t *testing.T) {
	files := memlog.New()
	table := open(t, files, DefaultReloadable())
	before := table.Snapshot()
	files.Refuse(errors.New("disk full"))
	_, err := table.CreateOnSend("new", Template, 4, 0)
	require.ErrorContains(t, err, "disk full")
	require.Nil(t, table.Get("new"))
	require.Same(t, before, table.Snapshot())
	files.Refuse(nil)
	c, err := table.CreateOnSend("new", Template, 4, 0)
	require.NoError(t, err)
	require.Equal(t, Config{Name: "new", ReadQueues: 4, WriteQueues: 4, Perm: 6, FilterType: SingleTag, Attributes: map[string]string{}}, *c)
	require.Equal(t, before.Version.Counter+1, table.Snapshot().Version.Counter)
	require.NotNil(t, open(t, files, DefaultReloadable()).Get("new"))
}

func TestCreationOnSendFollowsItsTemplate(t *testing.T) {
	table := open(t, memlog.New(), DefaultReloadable())
	c, err := table.CreateOnSend("many", Template, 100, 0)
	require.NoError(t, err)
	require.Equal(t, int32(8), c.WriteQueues, "no more than the template has")
	require.NoError(t, table.Put(Config{Name: "plain", ReadQueues: 1, WriteQueues: 1, Perm: 6}))
	for _, template := range []string{"plain", "unknown", ""} {
		_, err = table.CreateOnSend("x", template, 4, 0)
		require.ErrorIs(t, err, ErrNoTemplate, template)
	}
	c, err = table.CreateOnSend("%RETRY%g", "", 4, 0)
	require.NoError(t, err)
	require.Equal(t, []int32{1, 6}, []int32{c.WriteQueues, c.Perm})
	_, err = table.CreateOnSend("bad name", Template, 4, 0)
	require.ErrorContains(t, err, "illegal")
	off := DefaultReloadable()
	off.AutoCreate = false
	table.Reload(off)
	_, err = table.CreateOnSend("y", Template, 4, 0)
	require.ErrorIs(t, err, ErrAutoCreateOff)
	_, err = table.CreateOnSend("%RETRY%h", "", 4, 0)
	require.NoError(t, err, "retry topics are the broker's own")
}

func TestConcurrentCreationsAllSurvive(t *testing.T) {
	files := memlog.New()
	table := open(t, files, DefaultReloadable())
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			_, err := table.CreateOnSend("t"+strconv.Itoa(i%25), Template, 4, 0)
			require.NoError(t, err)
		})
	}
	wg.Wait()
	again := open(t, files, DefaultReloadable())
	for i := range 25 {
		require.NotNil(t, again.Get("t"+strconv.Itoa(i)))
	}
	require.Equal(t, table.Snapshot().Version, again.Snapshot().Version)
}

func TestSystemTopicsAreThereFromTheStart(t *testing.T) {
	table := open(t, memlog.New(), DefaultReloadable())
	for name, want := range map[string][2]int32{
		"SELF_TEST_TOPIC": {1, 6}, "TBW102": {8, 7}, "BenchmarkTest": {1024, 6}, "C": {16, 7}, "b": {1, 7}, "OFFSET_MOVED_EVENT": {1, 6},
		"SCHEDULE_TOPIC_XXXX": {18, 6}, "C_REPLY_TOPIC": {1, 6}, "rmq_sys_REVIVE_LOG_C": {8, 6}, "rmq_sys_SYNC_BROKER_MEMBER_b": {1, 1},
		"RMQ_SYS_TRANS_HALF_TOPIC": {1, 6}, "RMQ_SYS_TRANS_OP_HALF_TOPIC": {1, 6}, "rmq_sys_wheel_timer": {1, 6},
	} {
		c := table.Get(name)
		require.NotNil(t, c, name)
		require.Equal(t, want, [2]int32{c.ReadQueues, c.Perm}, name)
		require.True(t, table.System(name), name)
	}
	require.Nil(t, table.Get(TraceDefault), "only with traceTopicEnable")
	require.False(t, table.System("mine"))
}

func TestNamesOfTopics(t *testing.T) {
	for name, ok := range map[string]bool{
		"a": true, "A_b-9|%": true, strings.Repeat("x", 127): true, "%RETRY%" + strings.Repeat("x", 248): true,
		"": false, "a b": false, "ä": false, "a.b": false, "a/b": false, strings.Repeat("x", 128): false, "%RETRY%" + strings.Repeat("x", 249): false,
	} {
		require.Equal(t, ok, CheckName(name) == nil, name)
		require.Equal(t, ok, CheckName([]byte(name)) == nil, name)
	}
	require.False(t, SendAllowed("SCHEDULE_TOPIC_XXXX"))
	require.True(t, SendAllowed("TBW102"))
}

func FuzzNames(f *testing.F) {
	f.Add("%RETRY%group")
	f.Add("a\x00b")
	f.Fuzz(func(t *testing.T, name string) {
		if CheckName(name) != nil {
			return
		}
		require.LessOrEqual(t, len(name), RetryNameBytesMax)
		require.NotContains(t, name, "/")
		require.NotContains(t, name, "..")
		require.NotContains(t, name, "@", "offsets are keyed topic@group")
	})
}

func FuzzAttributes(f *testing.F) {
	f.Add("+message.type=FIFO,-reserve.time")
	f.Fuzz(func(t *testing.T, text string) {
		changes, err := parseAttributes(text)
		if err != nil {
			return
		}
		next, err := alterAttributes(false, map[string]string{attrMessageType: "NORMAL"}, changes)
		if err == nil {
			for k := range next {
				require.Contains(t, attributes, k)
			}
		}
	})
}

func TestLookupAllocatesNothing(t *testing.T) {
	table := open(t, memlog.New(), DefaultReloadable())
	name := []byte("TBW102")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if table.Lookup(name) == nil || CheckName(name) != nil || !SendAllowed(name) {
			panic("not found")
		}
	}))
}

func BenchmarkLookup(b *testing.B) {
	table := open(b, memlog.New(), DefaultReloadable())
	name := []byte("TBW102")
	b.ReportAllocs()
	for b.Loop() {
		_ = table.Lookup(name)
	}
}
