package broker_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/broker"
	"github.com/quorate/quorate/internal/vfs"
	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/protocol"
)

// full says that cases run at the size of the report they come from (`make cases-full`).
var full = os.Getenv("QUORATE_CASES") == "full"

// scaled is small in ordinary runs.
func scaled(small, large int) int {
	if full {
		return large
	}
	return small
}

// onCrashable is a broker whose disk can be cut off.
func onCrashable(t *testing.T) (broker.Config, *vfs.Crashable) {
	t.Helper()
	cfg, fsys := config(t), vfs.NewCrashable()
	require.NoError(t, fsys.MkdirAll("/data"))
	require.NoError(t, fsys.SyncDir("/"))
	cfg.Store.FS, cfg.Store.RootDir = fsys, "/data/store"
	cfg.Store.CommitLogFileSize, cfg.Store.ConsumeQueueFileSize = 64<<10, 6000
	cfg.Store.MaxMessageSize, cfg.Store.Boot = 16<<10, 0
	cfg.Store.FlushQueueInterval, cfg.Store.CheckpointInterval = 10*time.Millisecond, 10*time.Millisecond
	cfg.Offset.PersistInterval = 10 * time.Millisecond
	return cfg, fsys
}

func never() bool  { return false }
func always() bool { return true }

// on is the same broker on what is left of its disk.
func on(cfg broker.Config, left *vfs.Crashable) broker.Config {
	cfg.Store.FS = left
	return cfg
}

// countAfter starts a broker on what is left and counts the messages of a topic's queue 0.
func countAfter(t *testing.T, cfg broker.Config, left *vfs.Crashable, topic string) int {
	t.Helper()
	n := start(t, on(cfg, left))
	defer n.stop()
	answer := n.ask(&protocol.GetMaxOffsetRequest{Topic: topic}, nil)
	if protocol.ResponseCode(answer.Code) == protocol.TopicNotExist {
		return 0
	}
	return int(n.maxOffset(topic))
}

// atRest waits until nothing is done on the disk any more.
func atRest(t *testing.T, fsys *vfs.Crashable) {
	t.Helper()
	last := -1
	require.Eventually(t, func() bool {
		now := fsys.Ops()
		defer func() { last = now }()
		return now == last
	}, 20*time.Second, 200*time.Millisecond)
}

// Case 65: docs/durability.md says what an acknowledgement outlives, in the words that this test finds.
func TestCase65TableOfWhatAnOKOutlives(t *testing.T) {
	word := func(lost int) string {
		if lost == 0 {
			return "kept"
		}
		return "may be lost"
	}
	table := "| flushDiskType | a send with | label of the OK | after kill -9 | after a power cut at once | after a power cut once flushed |\n|---|---|---|---|---|---|\n"
	for _, mode := range []struct {
		flush string
		wait  string
	}{{"SYNC_FLUSH", "true"}, {"SYNC_FLUSH", "false"}, {"ASYNC_FLUSH", "true"}} {
		cfg, fsys := onCrashable(t)
		cfg.SyncFlush, cfg.Store.FlushInterval = mode.flush == "SYNC_FLUSH", time.Hour
		cfg.Store.CheckpointInterval = time.Hour
		n := start(t, cfg)
		n.createTopic("T", 1)
		var label string
		messages := 20
		if mode.wait == "false" { // a flush that has run by luck promises nothing: none runs
			messages = 1
			n.broken = true
			atRest(t, fsys) // the files that are made ahead are made: what fails is the flush
			fsys.SetFault(func(kind, name string) error {
				if kind == "sync" && strings.Contains(name, "commitlog") {
					return syscall.EIO
				}
				return nil
			})
		}
		for i := range messages {
			answer := n.must(&protocol.SendMessageRequest{
				ProducerGroup: "pg", Topic: "T", DefaultTopic: "TBW102", DefaultTopicQueueNums: 1,
				Properties: string(message.MakeProperties(map[string]string{message.WaitStoreMsgOK: mode.wait})),
			}, fmt.Appendf(nil, "%d", i), nil)
			label = answer.Ext.Get("durability")
		}
		killed, cut := fsys.Kill(), fsys.Crash(fsys.Ops(), never)
		n.stop() // which flushes
		later := fsys.Crash(fsys.Ops(), never)
		if n.broken { // the same once more, on a disk that works
			healthy, disk := onCrashable(t)
			healthy.SyncFlush = true
			again := start(t, healthy)
			again.createTopic("T", 1)
			again.send("T", "x", map[string]string{message.WaitStoreMsgOK: "false"})
			again.stop()
			later = disk.Crash(disk.Ops(), never)
		}
		lost := func(left *vfs.Crashable) string { return word(messages - countAfter(t, cfg, left, "T")) }
		table += fmt.Sprintf("| %s | WAIT=%s | %s | %s | %s | %s |\n", mode.flush, mode.wait, label, lost(killed), lost(cut), lost(later))
	}
	text, err := os.ReadFile("../docs/durability.md")
	require.NoError(t, err)
	require.Contains(t, string(text), table, "docs/durability.md must hold this table:\n%s", table)
}

// Case 76: power is cut at every kind of step of the rewrites of topics, groups, offsets and delay progress, while they grow
// and shrink. The next start finds the last or the previous version, never an empty table.
func TestCase76MetadataOutlivesPowerCutsAtEveryStep(t *testing.T) {
	cfg, fsys := onCrashable(t)
	cfg.SyncFlush = true
	n := start(t, cfg)
	type fact struct {
		ops  int
		name string
		is   bool
	}
	var topics, groups []fact
	begin := fsys.Ops()
	n.createTopic("Base", 1)
	base := fsys.Ops()
	for i := range 12 {
		name := fmt.Sprintf("T%d%s", i, strings.Repeat("x", i*31%90))
		n.createTopic(name, 1)
		topics = append(topics, fact{fsys.Ops(), name, true})
		n.must(&protocol.UpdateAndCreateSubscriptionGroupRequest{}, protocol.SubscriptionGroupConfig{GroupName: "g" + name, ConsumeEnable: true, RetryQueueNums: 1}, nil)
		groups = append(groups, fact{fsys.Ops(), "g" + name, true})
		n.send("Base", name, nil)
		n.must(&protocol.UpdateConsumerOffsetRequest{ConsumerGroup: "g" + name, Topic: "Base", CommitOffset: int64(i)}, nil, nil)
		time.Sleep(5 * time.Millisecond) // so that offsets are persisted in between
		if i%3 == 2 {
			n.must(&protocol.DeleteTopicRequest{Topic: name}, nil, nil)
			topics = append(topics, fact{fsys.Ops(), name, false})
			n.must(&protocol.DeleteSubscriptionGroupRequest{GroupName: "g" + name, CleanOffset: true}, nil, nil)
			groups = append(groups, fact{fsys.Ops(), "g" + name, false})
		}
	}
	end := fsys.Ops()
	n.stop()
	state := func(facts []fact, at int) map[string]bool { // of what was acknowledged; what may be under way is left out
		known := map[string]bool{}
		for i, f := range facts {
			if f.ops <= at {
				known[f.name] = f.is
			} else if i < len(facts) {
				delete(known, f.name) // changed later: may be either
			}
		}
		return known
	}
	rng := rand.New(rand.NewPCG(7, 6))
	cuts := scaled(40, 1000)
	for i := range cuts {
		at := begin + (end-begin)*i/cuts
		keep := []func() bool{never, always, func() bool { return rng.IntN(2) == 0 }}[i%3]
		c := on(cfg, fsys.Crash(at, keep))
		b, err := broker.New(c, broker.Deps{Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err, "cut before operation %d", at)
		require.NoError(t, b.Close())
		again := start(t, on(cfg, fsys.Crash(at, keep)))
		have := again.table().TopicConfigTable
		if at >= base {
			require.Contains(t, have, "Base", "cut before operation %d", at)
		}
		for name, is := range state(topics, at) {
			_, found := have[name]
			require.Equal(t, is, found, "topic %s, cut before operation %d", name, at)
		}
		var list protocol.SubscriptionGroupWrapper
		again.must(&protocol.GetAllSubscriptionGroupRequest{}, nil, &list)
		for name, is := range state(groups, at) {
			_, found := list.SubscriptionGroupTable[name]
			require.Equal(t, is, found, "group %s, cut before operation %d", name, at)
		}
		again.stop()
	}
}

// Case 67, the part of the metadata: a failed sync of the file that a change lies in refuses the change.
func TestCase67AChangeWhoseSyncFailsIsRefused(t *testing.T) {
	for file, change := range map[string]func(*node) *protocol.Command{
		"topics.json": func(n *node) *protocol.Command {
			return n.ask(&protocol.CreateTopicRequest{Topic: "New", DefaultTopic: "TBW102", ReadQueueNums: 1, WriteQueueNums: 1, Perm: 6, TopicFilterType: "SINGLE_TAG"}, nil)
		},
		"subscriptionGroup.json": func(n *node) *protocol.Command {
			return n.ask(&protocol.UpdateAndCreateSubscriptionGroupRequest{}, protocol.SubscriptionGroupConfig{GroupName: "New", RetryQueueNums: 1})
		},
	} {
		cfg, fsys := onCrashable(t)
		cfg.SyncFlush = true
		n := start(t, cfg)
		var failed atomic.Bool
		fsys.SetFault(func(kind, name string) error {
			if (kind == "sync" || kind == "syncdir" || kind == "syncall") && strings.Contains(name, "config") && failed.CompareAndSwap(false, true) {
				return syscall.EIO
			}
			return nil
		})
		answer := change(n)
		require.True(t, failed.Load(), file)
		require.NotEqual(t, protocol.Success, protocol.ResponseCode(answer.Code), file)
		n.stop()
	}
}

// Case 180, the part of one broker: a record that is readable has its topic, from the first moment the port answers. The
// topic was made by the send itself, and the power goes right after its OK.
func TestCase180ARecordThatIsReadableHasItsTopic(t *testing.T) {
	cfg, fsys := onCrashable(t)
	cfg.SyncFlush = true
	n := start(t, cfg)
	n.send("Made", "x", nil)
	left := []*vfs.Crashable{fsys.Crash(fsys.Ops(), never), fsys.Kill()}
	n.stop()
	for _, l := range left {
		again := start(t, on(cfg, l))
		began := time.Now()
		records := again.pull("g", "Made", 0)
		require.Len(t, records, 1)
		require.Less(t, time.Since(began), 2*time.Second)
		again.stop()
	}
}

// Case 2: with SYNC_FLUSH a consumer never sees a message that a power cut can take, and never an offset beyond it.
func TestCase2NoConsumerSeesWhatAPowerCutTakes(t *testing.T) {
	cfg, fsys := onCrashable(t)
	cfg.SyncFlush = true
	n := start(t, cfg)
	n.createTopic("T", 1)
	n.send("T", "first", nil)
	require.Len(t, n.pull("g", "T", 0), 1)
	atRest(t, fsys)
	fsys.SetFault(func(kind, name string) error {
		if kind == "sync" && strings.Contains(name, "commitlog") {
			return syscall.EIO
		}
		return nil
	})
	answer := n.ask(&protocol.SendMessageRequest{ProducerGroup: "pg", Topic: "T", DefaultTopic: "TBW102", DefaultTopicQueueNums: 1}, []byte("second"))
	n.broken = true
	require.NotEqual(t, protocol.Success, protocol.ResponseCode(answer.Code))
	require.Greater(t, n.b.Store().Appended().Load(), n.b.Store().Durable().Load(), "appended and not flushed")
	answer = n.ask(&protocol.PullMessageRequest{ConsumerGroup: "g", Topic: "T", QueueOffset: 1, MaxMsgNums: 32, SysFlag: 4, Subscription: "*"}, nil)
	require.Equal(t, protocol.PullNotFound, protocol.ResponseCode(answer.Code))
	require.EqualValues(t, 1, n.maxOffset("T"))
	left := fsys.Crash(fsys.Ops(), never)
	n.stop()
	again := start(t, on(cfg, left))
	require.EqualValues(t, 1, again.maxOffset("T"))
	require.EqualValues(t, 1, again.send("T", "third", nil).QueueOffset)
	require.Equal(t, "third", string(again.pull("g", "T", 1)[0].Body))
}

// Case 86: the wall clock steps back ten years and forth a day under load. Sends never fail as busy, messages come, and store
// times never fall within a queue.
func TestCase86ClockSteps(t *testing.T) {
	cfg := config(t)
	var shift atomic.Int64
	cfg.Store.Now = func() time.Time { return time.Now().Add(time.Duration(shift.Load())) }
	n := start(t, cfg)
	n.createTopic("T", 1)
	const year = 365 * 24 * time.Hour
	sent := 0
	for _, step := range []time.Duration{0, -time.Hour, 24 * time.Hour, -10 * year, 0} {
		shift.Store(int64(step))
		for range 5 {
			n.send("T", fmt.Sprint(sent), nil)
			sent++
		}
		if step == -10*year {
			n.restart()
		}
	}
	last := int64(0)
	for offset := range int64(sent) {
		records := n.pull("g", "T", offset)
		require.NotEmpty(t, records)
		require.Equal(t, fmt.Sprint(offset), string(records[0].Body))
		require.GreaterOrEqual(t, records[0].StoreTimestamp, last, "message %d", offset)
		last = records[0].StoreTimestamp
	}
}
