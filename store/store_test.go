package store_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/vfs"
	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/store"
)

const root = "/data/store"

func crashable(t testing.TB) *vfs.Crashable {
	t.Helper()
	fsys := vfs.NewCrashable()
	require.NoError(t, fsys.MkdirAll("/data"))
	require.NoError(t, fsys.SyncDir("/"))
	return fsys
}

// config is a store of small files, so that a few messages roll them.
func config(fsys vfs.FS) store.Config {
	cfg := store.DefaultConfig()
	cfg.FS, cfg.RootDir = fsys, root
	cfg.CommitLogFileSize, cfg.ConsumeQueueFileSize = 16384, 6000
	cfg.IndexSlots, cfg.IndexEntries = 64, 256
	cfg.MaxMessageSize = 8192
	cfg.SyncFlush = true
	cfg.FlushQueueInterval = time.Millisecond
	var seconds atomic.Int64
	cfg.Now = func() time.Time { return time.UnixMilli(1_800_000_000_000 + 1000*seconds.Add(1)) }
	return cfg
}

func open(t testing.TB, cfg store.Config) *store.Store {
	t.Helper()
	s, err := store.Open(cfg, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return s
}

// running is a store that runs as a lone broker's: what is durable is confirmed.
type running struct {
	*store.Store
	stop func()
}

func run(t testing.TB, cfg store.Config) running {
	t.Helper()
	s := open(t, cfg)
	r := running{Store: s, stop: start(t, s, cfg.SyncFlush)}
	t.Cleanup(r.stop)
	return r
}

// start runs s until the returned function is called.
func start(t testing.TB, s *store.Store, sync bool) func() {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	source := s.Durable()
	if !sync {
		source = s.Appended()
	}
	unsubscribe := source.Subscribe(func(offset int64) { s.Confirmed().Advance(offset) })
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stopped := false
	return func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		require.NoError(t, <-done)
		unsubscribe()
	}
}

// close stops and closes.
func (r running) close(t testing.TB) {
	t.Helper()
	r.stop()
	require.NoError(t, r.Close())
}

// settled waits until everything appended is dispatched.
func (r running) settled(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	require.NoError(t, r.Dispatched().Wait(ctx, r.Appended().Load()))
}

var host = netip.MustParseAddrPort("127.0.0.1:10911")

func testMessage(topic string, queue int32, n int) *message.Message {
	return &message.Message{
		Topic: topic, QueueID: queue, BornHost: host, StoreHost: host, BornTimestamp: 1,
		Body: fmt.Appendf(nil, "body-%d-%0*d", n, 20+n*37%400, n),
		Properties: message.MakeProperties(map[string]string{
			message.UniqueKey: fmt.Sprintf("U%s%d-%d", topic, queue, n), message.Keys: fmt.Sprintf("k%d even%d", n, n%2),
			message.Tags: fmt.Sprintf("Tag%d", n%3),
		}),
	}
}

func appendOne(t testing.TB, s *store.Store, m *message.Message) store.Appended {
	t.Helper()
	at, err := s.Append(m, nil)
	require.NoError(t, err)
	return at
}

// records decodes all records of a Get.
func records(t testing.TB, g *store.GetResult) []message.Record {
	t.Helper()
	var list []message.Record
	for _, v := range g.Views {
		for b := v.Bytes; len(b) > 0; {
			r, err := message.DecodeRecord(b, true)
			require.NoError(t, err)
			list = append(list, r)
			b = b[r.Size:]
		}
	}
	require.Len(t, list, g.Count)
	return list
}

// readAll reads a whole queue by Gets, and checks that offsets are dense.
func readAll(t testing.TB, s *store.Store, topic string, queue int32) []message.Record {
	t.Helper()
	var all []message.Record
	next, _ := s.QueueBounds(topic, queue)
	for {
		var g store.GetResult
		require.NoError(t, s.Get(topic, queue, next, 32, 1<<20, nil, &g))
		if g.Status != store.Found {
			require.Contains(t, []store.GetStatus{store.OffsetOverflowOne, store.NoMatchedLogicQueue}, g.Status)
			return all
		}
		for _, r := range records(t, &g) {
			require.Equal(t, next, r.QueueOffset)
			next++
			all = append(all, r) // the views are given back to nobody: they stay valid
		}
		require.Equal(t, next, g.NextBegin)
	}
}

func TestWhatIsAppendedIsReadBack(t *testing.T) {
	cfg := config(crashable(t))
	s := run(t, cfg)
	const n = 200
	for i := range n {
		m := testMessage("T", int32(i%3), i/3)
		at := appendOne(t, s.Store, m)
		require.EqualValues(t, i/3, at.QueueOffset)
	}
	batch := make([]message.Message, 5)
	for i := range batch {
		batch[i] = *testMessage("T", 0, 67+i)
	}
	at, err := s.AppendBatch(batch, nil)
	require.NoError(t, err)
	require.Len(t, at.RecordOffsets, 5)
	s.settled(t)
	check := func(s *store.Store) {
		for q := range int32(3) {
			all := readAll(t, s, "T", q)
			want := (n-int(q)-1)/3 + 1
			if q == 0 {
				want += 5
			}
			require.Len(t, all, want, "queue %d", q)
			for i, r := range all {
				m := testMessage("T", q, i)
				require.Equal(t, m.Body, r.Body)
				require.Equal(t, m.Properties, r.Properties)
				require.Equal(t, "T", string(r.Topic))
				require.Equal(t, r.StoreTimestamp, s.StoreTime("T", q, int64(i)))
				byTime := s.OffsetByTime("T", q, r.StoreTimestamp, false)
				require.LessOrEqual(t, byTime, int64(i))
				require.Equal(t, r.StoreTimestamp, s.StoreTime("T", q, byTime))
				v, err := s.RecordAt(r.PhysicalOffset)
				require.NoError(t, err)
				v.Release()
			}
		}
		require.ElementsMatch(t, []int32{0, 1, 2}, s.Topics()["T"])
		_, err := s.RecordAt(1)
		require.ErrorIs(t, err, store.ErrRecordNotFound)
		_, err = s.RecordAt(s.Appended().Load())
		require.ErrorIs(t, err, store.ErrRecordNotFound)
	}
	check(s.Store)
	s.close(t)
	again := run(t, cfg)
	check(again.Store)
	require.EqualValues(t, 72, appendOne(t, again.Store, testMessage("T", 0, 72)).QueueOffset)
	again.close(t)
}

func TestNothingUnconfirmedIsSeen(t *testing.T) {
	cfg := config(crashable(t))
	s := open(t, cfg)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	at := appendOne(t, s, testMessage("T", 0, 0))
	second := appendOne(t, s, testMessage("T", 0, 1))
	require.NoError(t, s.Durable().Wait(ctx, second.End))
	var g store.GetResult
	require.NoError(t, s.Get("T", 0, 0, 32, 1<<20, nil, &g))
	require.Equal(t, store.NoMatchedLogicQueue, g.Status)
	_, err := s.RecordAt(at.Begin)
	require.ErrorIs(t, err, store.ErrRecordNotFound)
	arrived := s.QueueArrived("T", 0)
	s.Confirmed().Advance(at.End)
	require.NoError(t, arrived.Wait(ctx, 1))
	require.NoError(t, s.Get("T", 0, 0, 32, 1<<20, nil, &g))
	require.Equal(t, store.Found, g.Status)
	require.Equal(t, 1, g.Count)
	g.Release()
	cancel()
	require.NoError(t, <-done)
	require.NoError(t, s.Close())
}

type tagFilter struct{ code int64 }

func (f tagFilter) MatchTagsCode(code int64) bool { return code == f.code }

func (f tagFilter) MatchRecord(record []byte) bool {
	r, err := message.DecodeRecord(record, false)
	return err == nil && int64(message.JavaHash(r.Properties.Get(message.Tags))) == f.code
}

func TestGetStatusesAndLimits(t *testing.T) {
	cfg := config(crashable(t))
	s := run(t, cfg)
	for i := range 60 {
		appendOne(t, s.Store, testMessage("T", 0, i))
	}
	s.settled(t)
	get := func(offset int64, maxCount, maxBytes int, f store.Filter) store.GetResult {
		t.Helper()
		var g store.GetResult
		require.NoError(t, s.Get("T", 0, offset, maxCount, maxBytes, f, &g))
		records(t, &g)
		require.EqualValues(t, 60, g.MaxOffset)
		return g
	}
	for _, c := range []struct {
		offset int64
		status store.GetStatus
		next   int64
	}{{-1, store.OffsetTooSmall, 0}, {60, store.OffsetOverflowOne, 60}, {61, store.OffsetOverflowBadly, 60}, {59, store.Found, 60}} {
		g := get(c.offset, 32, 1<<20, nil)
		require.Equal(t, c.status, g.Status, "offset %d", c.offset)
		require.Equal(t, c.next, g.NextBegin, "offset %d", c.offset)
	}
	require.Equal(t, 32, get(0, 100, 1<<20, nil).Count, "maxTransferCountOnMessageInMemory")
	require.Equal(t, 7, get(0, 7, 1<<20, nil).Count)
	require.Equal(t, 1, get(0, 7, 1, nil).Count, "one at least")
	g := get(0, 32, 1000, nil)
	require.LessOrEqual(t, g.Bytes, 1000)
	require.Greater(t, g.Bytes, 500)

	var none store.GetResult
	require.NoError(t, s.Get("T", 7, 0, 32, 1000, nil, &none))
	require.Equal(t, store.NoMatchedLogicQueue, none.Status)
	require.Equal(t, "NO_MATCHED_LOGIC_QUEUE", none.Status.String())

	tag1 := tagFilter{int64(message.JavaHash("Tag1"))}
	g = get(0, 32, 1<<20, tag1)
	require.Equal(t, 20, g.Count)
	require.EqualValues(t, 60, g.NextBegin)
	g = get(0, 5, 1<<20, tag1)
	require.Equal(t, 5, g.Count)
	require.EqualValues(t, 14, g.NextBegin, "behind the last one looked at")
	g = get(2, 32, 1<<20, tagFilter{99})
	require.Equal(t, store.NoMatchedMessage, g.Status)
	require.EqualValues(t, 60, g.NextBegin)

	far := cfg
	far.Read.PhysicalMemory = 100
	s.close(t)
	s = run(t, far)
	g = get(0, 32, 1<<20, nil)
	require.Equal(t, 8, g.Count, "maxTransferCountOnMessageInDisk")
	require.True(t, g.SuggestFromReplica)
	require.False(t, s.InMemory("T", 0, 0))
	require.False(t, s.InMemory("T", 0, 70), "one that is not there")
	s.close(t)
}

func TestKeysAreFoundExactlyAndOnce(t *testing.T) {
	cfg := config(crashable(t))
	s := run(t, cfg)
	// Case 74: "AaTopic#BB" and "BBTopic#Aa" have one hash.
	for i, m := range []struct{ topic, key string }{{"AaTopic", "BB"}, {"BBTopic", "Aa"}, {"AaTopic", "AaBB"}, {"AaTopic", "BBAa"}} {
		at := testMessage(m.topic, 0, i)
		at.Properties = message.MakeProperties(map[string]string{message.Keys: m.key + "  " + m.key + " x", message.UniqueKey: m.key})
		appendOne(t, s.Store, at)
	}
	for i := range 100 {
		appendOne(t, s.Store, testMessage("T", 0, i))
	}
	check := func(s running) {
		s.settled(t)
		for _, c := range []struct {
			topic, key string
			want       int
		}{{"AaTopic", "BB", 1}, {"BBTopic", "Aa", 1}, {"AaTopic", "AaBB", 1}, {"AaTopic", "BBAa", 1}, {"AaTopic", "BBBB", 0}, {"AaTopic", "x", 3}, {"T", "even0", 50}, {"T", "UT0-7", 1}} {
			result := eventually(t, s, c.topic, c.key, c.want)
			for _, v := range result.Views {
				r, err := message.DecodeRecord(v.Bytes, true)
				require.NoError(t, err)
				require.Equal(t, c.topic, string(r.Topic))
			}
			result.Release()
		}
		tags, err := s.QueryTag("T", "Tag1", 64, 0, 1<<62)
		require.NoError(t, err)
		require.Len(t, tags.Views, 33)
		tags.Release()
	}
	check(s)
	s.stop()
	// Not closed: as after a kill.
	killed := cfg
	killed.FS = cfg.FS.(*vfs.Crashable).Kill()
	s = run(t, killed)
	check(s)
	s.close(t)
}

// eventually waits for the index, which is some way behind the queues.
func eventually(t testing.TB, s running, topic, key string, want int) store.QueryResult {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		result, err := s.Query(topic, key, 64, 0, 1<<62)
		require.NoError(t, err)
		if len(result.Views) == want && s.Stats().IndexedOffset >= s.Dispatched().Load() {
			return result
		}
		result.Release()
		require.True(t, time.Now().Before(deadline), "%s#%s: %d found, %d wanted", topic, key, len(result.Views), want)
		time.Sleep(time.Millisecond)
	}
}

func TestDeletedTopicBeginsAnew(t *testing.T) {
	fsys := crashable(t)
	cfg := config(fsys)
	s := run(t, cfg)
	for i := range 20 {
		appendOne(t, s.Store, testMessage("T", 0, i))
		appendOne(t, s.Store, testMessage("Keep", 0, i))
	}
	s.settled(t)
	arrived := s.QueueArrived("T", 0)
	waited := make(chan error, 1)
	go func() { waited <- arrived.Wait(context.Background(), 100) }()
	require.NoError(t, s.DeleteTopic("T"))
	require.Error(t, <-waited, "who waits wakes")
	require.NotContains(t, s.Topics(), "T")

	for _, left := range []vfs.FS{fsys.Kill(), fsys.Crash(fsys.Ops(), func() bool { return false })} {
		after := cfg
		after.FS = left
		again := open(t, after)
		require.NotContains(t, again.Topics(), "T", "a crash brings nothing back")
		require.Len(t, readAll(t, again, "Keep", 0), 20)
		require.NoError(t, again.Close())
	}
	require.EqualValues(t, 0, appendOne(t, s.Store, testMessage("T", 0, 0)).QueueOffset)
	s.settled(t)
	require.Len(t, readAll(t, s.Store, "T", 0), 1)
	removed, err := s.CleanUnusedTopics(map[string]bool{"Keep": true})
	require.NoError(t, err)
	require.Equal(t, 1, removed)
	require.Equal(t, map[string][]int32{"Keep": {0}}, s.Topics())
	s.close(t)
	require.ErrorIs(t, s.DeleteTopic("../x"), store.ErrMessageIllegal)
}

func TestIllegalTopicsNeverBecomePaths(t *testing.T) {
	s := run(t, config(crashable(t)))
	for _, topic := range []string{"", ".", "..", "a/b", "../../etc", "a\x00b", fmt.Sprintf("%0300d", 0)} {
		m := testMessage("T", 0, 0)
		m.Topic = topic
		_, err := s.Append(m, nil)
		require.ErrorIs(t, err, store.ErrMessageIllegal, "%q", topic)
		_, err = s.ReadConfigFile(topic)
		require.Error(t, err)
		require.Error(t, s.WriteConfigFile(topic, nil))
	}
	m := testMessage("T", 0, 0)
	m.Body = make([]byte, 9000)
	_, err := s.Append(m, nil)
	require.ErrorIs(t, err, store.ErrMessageIllegal)
	s.close(t)
}

func TestASecondStoreIsRefused(t *testing.T) {
	cfg := config(nil)
	cfg.RootDir = t.TempDir() + "/store"
	s := run(t, cfg)
	_, err := store.Open(cfg, slog.New(slog.DiscardHandler))
	require.ErrorIs(t, err, store.ErrStoreLocked)
	s.close(t)
	run(t, cfg).close(t)
}
