package metasync_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/broker/delay"
	"github.com/quorate/quorate/broker/group"
	"github.com/quorate/quorate/broker/metasync"
	"github.com/quorate/quorate/broker/offset"
	"github.com/quorate/quorate/broker/topic"
	"github.com/quorate/quorate/protocol"
)

var quiet = slog.New(slog.DiscardHandler)

// files are small files in memory.
type files struct {
	mu  sync.Mutex
	all map[string][]byte
}

func (f *files) ReadConfigFile(name string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b, ok := f.all[name]; ok {
		return b, nil
	}
	return nil, fs.ErrNotExist
}

func (f *files) WriteConfigFile(name string, content []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all[name] = content
	return nil
}

// requests are what one round asks.
const requests = 4

// master answers by request code; a missing answer is a failure.
type master struct {
	mu      sync.Mutex
	answers map[protocol.RequestCode]*protocol.Command
	asked   int
	round   chan struct{} // closed with the first question of a second round
}

func (m *master) Invoke(_ context.Context, _ string, cmd *protocol.Command) (*protocol.Command, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.asked++; m.asked == requests+1 {
		close(m.round)
	}
	if a := m.answers[protocol.RequestCode(cmd.Code)]; a != nil {
		return a, nil
	}
	return nil, errors.New("connection refused")
}

func (m *master) says(code protocol.RequestCode, body string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answers[code] = &protocol.Command{Body: []byte(body)}
}

type replica struct {
	*metasync.Syncer
	master  *master
	files   *files
	topics  *topic.Table
	groups  *group.Table
	offsets *offset.Table
	delays  *delay.Schedule
}

func newReplica(t *testing.T) *replica {
	t.Helper()
	r := &replica{files: &files{all: map[string][]byte{}}, master: &master{answers: map[protocol.RequestCode]*protocol.Command{}}}
	var err error
	r.topics, err = topic.Open(topic.DefaultSettings(), topic.DefaultReloadable(), r.files, time.Now)
	require.NoError(t, err)
	r.groups, err = group.Open(group.DefaultReloadable(), r.files, time.Now, quiet)
	require.NoError(t, err)
	r.offsets = offset.NewTable(r.files, 1, time.Now)
	r.delays, err = delay.New(delay.DefaultConfig(), delay.Deps{Files: r.files, Logger: quiet})
	require.NoError(t, err)
	r.Syncer = metasync.New(metasync.Deps{
		Invoker: r.master, Master: func() string { return "master:10911" }, Topics: r.topics, Groups: r.groups, Offsets: r.offsets, Delays: r.delays, Logger: quiet,
	})
	return r
}

// follow runs one round and ends.
func (r *replica) follow(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	r.master.mu.Lock()
	r.master.round, r.master.asked = make(chan struct{}), 0
	r.master.mu.Unlock()
	go func() { done <- r.Run(ctx) }()
	go func() { // else the second round is 3 s away
		for ctx.Err() == nil {
			r.Soon()
			time.Sleep(time.Millisecond)
		}
	}()
	<-r.master.round // the second round has begun: the first is over
	cancel()
	require.NoError(t, <-done)
}

const (
	topicsBody  = `{"dataVersion":{"counter":7,"stateVersion":0,"timestamp":5},"topicConfigTable":{"Master":{"perm":6,"readQueueNums":3,"topicName":"Master","writeQueueNums":3}}}`
	groupsBody  = `{"dataVersion":{"counter":9,"stateVersion":0,"timestamp":5},"forbiddenTable":{"g":{"T":4}},"subscriptionGroupTable":{"g":{"groupName":"g","retryMaxTimes":3}}}`
	offsetsBody = `{"dataVersion":{"counter":1,"stateVersion":0,"timestamp":5},"offsetTable":{"T@g":{0:5,1:7}}}`
	delaysBody  = `{"dataVersion":{"counter":1,"stateVersion":0,"timestamp":5},"offsetTable":{1:40,3:2}}`
)

func (r *replica) hasOwn(t *testing.T) {
	t.Helper()
	require.NoError(t, r.topics.Put(topic.Config{Name: "Own", ReadQueues: 1, WriteQueues: 1, Perm: 6}))
	require.NoError(t, r.groups.Put(group.Default("own")))
	r.offsets.Commit("own", "Own", 0, 12)
	r.offsets.Commit("g", "T", 0, 9)
	_, err := r.delays.Adopt([]byte(`{"offsetTable":{1:100,2:6}}`), false)
	require.NoError(t, err)
}

// I23: what the master says is taken, what it does not mention stays, and a failing or empty answer changes nothing.
func TestNothingIsLostToWhatAPeerDoesNotMention(t *testing.T) {
	for name, master := range map[string]map[protocol.RequestCode]string{
		"fails":       {},
		"empty":       {21: "", 201: "", 43: "", 45: ""},
		"empty table": {21: `{"topicConfigTable":{}}`, 201: `{"subscriptionGroupTable":{}}`, 43: `{"offsetTable":{}}`, 45: `{"offsetTable":{}}`},
		"garbage":     {21: `{"topicConf`, 201: "<html>", 43: `{"offsetTable":{"T":{0:1}}}`, 45: "["},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReplica(t)
			r.hasOwn(t)
			for code, body := range master {
				r.master.says(code, body)
			}
			r.follow(t)
			r.follow(t)
			require.NotNil(t, r.topics.Get("Own"))
			require.NotNil(t, r.groups.Lookup([]byte("own")))
			require.EqualValues(t, 12, r.offsets.Query("own", "Own", 0))
			require.EqualValues(t, 9, r.offsets.Query("g", "T", 0))
			next, err := r.delays.Encoded()
			require.NoError(t, err)
			require.Contains(t, string(next), `"1":100`)
			require.Positive(t, r.master.asked)
		})
	}
}

func TestAReplicaTakesWhatItsMasterSays(t *testing.T) {
	r := newReplica(t)
	r.hasOwn(t)
	for code, body := range map[protocol.RequestCode]string{21: topicsBody, 201: groupsBody, 43: offsetsBody, 45: delaysBody} {
		r.master.says(code, body)
	}
	r.follow(t)
	require.EqualValues(t, 3, r.topics.Get("Master").ReadQueues)
	require.NotNil(t, r.topics.Get("Own"))
	require.EqualValues(t, 7, r.topics.Snapshot().Version.Counter, "the next answer of this version is no news")
	require.EqualValues(t, 3, r.groups.Lookup([]byte("g")).RetryMaxTimes)
	require.True(t, r.groups.ReadForbidden([]byte("g"), []byte("T")))
	require.EqualValues(t, 5, r.offsets.Query("g", "T", 0), "the master may have been told to go back")
	require.EqualValues(t, 7, r.offsets.Query("g", "T", 1))
	require.EqualValues(t, 12, r.offsets.Query("own", "Own", 0))
	again, err := delay.New(delay.DefaultConfig(), delay.Deps{Files: r.files, Logger: quiet})
	require.NoError(t, err)
	next, err := again.Encoded()
	require.NoError(t, err)
	for _, level := range []string{`"1":40`, `"2":6`, `"3":2`} {
		require.Contains(t, string(next), level, "on disk")
	}
}

// I17, I18: progress of a master that comes back merges by maximum, whatever the age of either side.
func TestAMasterThatComesBackNeverGoesBack(t *testing.T) {
	r := newReplica(t)
	r.hasOwn(t)
	r.master.says(43, offsetsBody)
	r.master.says(45, delaysBody)
	require.NoError(t, r.Return(t.Context(), "replica:1"))
	require.EqualValues(t, 9, r.offsets.Query("g", "T", 0))
	require.EqualValues(t, 7, r.offsets.Query("g", "T", 1))
	next, err := r.delays.Encoded()
	require.NoError(t, err)
	for _, level := range []string{`"1":100`, `"2":6`, `"3":2`} {
		require.Contains(t, string(next), level)
	}
}
