package replication_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ha"
	"github.com/quorate/quorate/ha/group"
	"github.com/quorate/quorate/internal/vfs"
	"github.com/quorate/quorate/internal/watermark"
	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/replication"
	"github.com/quorate/quorate/store/commitlog"
)

var (
	quiet  = slog.New(slog.DiscardHandler)
	timing = group.Timing{Heartbeat: 200 * time.Millisecond, Housekeeping: 2 * time.Second}
)

// node is a running CommitLog on a directory of its own.
type node struct {
	*commitlog.Log
	confirmed watermark.Watermark
	queue     commitlog.QueueCounter
	mu        sync.Mutex
	history   ha.History
}

func (n *node) Confirmed() *watermark.Watermark { return &n.confirmed }

func openLog(t *testing.T, syncFlush bool) *node {
	t.Helper()
	cfg := commitlog.DefaultConfig()
	cfg.Dir, cfg.FileSize, cfg.MaxMessageSize, cfg.TailBytes, cfg.ZeroAhead = t.TempDir(), 64<<10, 16<<10, 64<<10, 8<<10
	cfg.SyncFlush = syncFlush
	l, err := commitlog.Open(cfg, vfs.OS(), quiet)
	require.NoError(t, err)
	_, err = l.Recover(commitlog.Recovery{}, func(int64, *message.Record) error { return nil })
	require.NoError(t, err)
	run(t, l.Run)
	return &node{Log: l}
}

// run runs fn until the test ends.
func run(t *testing.T, fn func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := fn(ctx); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	})
	stop = func() { cancel(); wg.Wait() }
	t.Cleanup(stop)
	return stop
}

func (n *node) write(t *testing.T, count int) int64 {
	t.Helper()
	var end int64
	for i := range count {
		m := message.Message{
			Topic: "t", Body: bytes.Repeat([]byte{byte('a' + i%26)}, 100+i*37%3000),
			BornHost: netip.MustParseAddrPort("127.0.0.1:1"), StoreHost: netip.MustParseAddrPort("127.0.0.1:2"),
		}
		at, err := n.Append(&m, nil, &n.queue)
		require.NoError(t, err)
		end = at.End
	}
	n.Kick(false)
	return end
}

func (n *node) bytes(t *testing.T, begin, end int64) []byte {
	t.Helper()
	all := make([]byte, end-begin)
	for at := begin; at < end; {
		k, err := n.Read(all[at-begin:], at)
		require.NoError(t, err)
		require.Positive(t, k)
		at += int64(k)
	}
	return all
}

func (n *node) History() ha.History {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.history
}

func (n *node) BeginEpoch(e ha.EpochEntry) (err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.history, err = n.history.Append(e)
	return err
}

func (n *node) SetHistory(h ha.History) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.history = h
	return nil
}

func (n *node) TruncateTo(offset int64) error {
	n.confirmed.Rewind(offset, commitlog.ErrCut)
	if err := n.Log.TruncateTo(offset); err != nil {
		return err
	}
	return n.SetHistory(n.History().TruncateTo(offset))
}

// master is a node that serves the HA port.
type master struct {
	*node
	term   *replication.Term
	server *replication.Server
	addr   string
	mu     sync.Mutex
	events []replication.Event

	progress atomic.Bool // none: it is no master
}

func (m *master) note(e replication.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events = append(m.events, e)
}

func (m *master) closedFor(t *testing.T, reason error) {
	t.Helper()
	require.Eventually(t, func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, e := range m.events {
			if e.Kind == "closed" && bytes.Contains([]byte(e.Reason), []byte(reason.Error())) {
				return true
			}
		}
		return false
	}, 5*time.Second, 5*time.Millisecond, "never closed with: %v", reason)
}

func startMaster(t *testing.T, syncFlush, durable bool, copies int, members ...ha.BrokerID) *master {
	t.Helper()
	m := &master{node: openLog(t, syncFlush)}
	return m.serve(t, syncFlush, durable, copies, members...)
}

// serve is a start of the master: it begins an epoch of its own.
func (m *master) serve(t *testing.T, syncFlush, durable bool, copies int, members ...ha.BrokerID) *master {
	t.Helper()
	err := m.BeginEpoch(ha.EpochEntry{Epoch: m.History().Last() + 1, Start: m.Appended().Load()})
	require.NoError(t, err)
	m.term, err = replication.NewTerm(replication.Config{
		Authority: ha.Authority{BrokerID: 0, Epoch: 1}, SyncFlush: syncFlush, Durable: durable, Sync: true,
		Quorum: ha.QuorumPolicy{InSyncReplicas: copies},
	}, m.node)
	require.NoError(t, err)
	t.Cleanup(func() { m.term.End(errors.New("test over")) })
	m.server = replication.NewServer(replication.ServerConfig{Timing: timing, BatchBytes: 32 << 10}, m.node, m.node,
		func(netip.Addr) []ha.BrokerID { return append([]ha.BrokerID{}, members...) },
		func() replication.Progress {
			if m.progress.Load() {
				return nil
			}
			return m.term
		}, m.note, quiet)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	m.addr = l.Addr().String()
	run(t, func(ctx context.Context) error { return m.server.Serve(ctx, l) })
	return m
}

func (m *master) followedBy(t *testing.T, n *node, id ha.BrokerID, ours bool) (*replication.Follower, func()) {
	t.Helper()
	sessions := uint64(id) << 32
	find := func(context.Context) (replication.Upstream, error) {
		if !ours {
			return replication.Upstream{Addr: m.addr}, nil
		}
		sessions++
		m.server.Grant(sessions, id)
		return replication.Upstream{Addr: m.addr, Ours: true, Session: sessions}, nil
	}
	dial := func(ctx context.Context, addr string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	}
	f := replication.NewFollower(replication.FollowerConfig{ID: id, Timing: timing, Dial: dial}, n, find, func(replication.Event) {}, quiet)
	return f, run(t, f.Run)
}

func (m *master) await(t *testing.T, end int64, copies int, flush bool) replication.Outcome {
	t.Helper()
	pass, err := m.term.Admit()
	require.NoError(t, err)
	return m.term.Await(context.Background(), replication.Wait{
		Pass: pass, End: end, Flush: flush, Need: ha.Need{Copies: copies}, Deadline: time.Now().Add(10 * time.Second),
	})
}

func TestReplicaBecomesByteEqual(t *testing.T) {
	for _, ours := range []bool{false, true} {
		t.Run(fmt.Sprintf("ours=%v", ours), func(t *testing.T) {
			m := startMaster(t, true, ours, 2, 1)
			m.write(t, 20)
			replica := openLog(t, true)
			m.followedBy(t, replica, 1, ours)
			end := m.write(t, 200)
			o := m.await(t, end, 2, true)
			require.NoError(t, o.Err)
			require.Equal(t, 2, o.Proved.ReceivedReplicas)
			if ours {
				require.Equal(t, ha.Replicated, o.Proved.Durability)
				require.Equal(t, 2, o.Proved.DurableReplicas)
				require.GreaterOrEqual(t, replica.Durable().Load(), end)
			} else {
				require.Equal(t, ha.Local, o.Proved.Durability, "received is no proof of a replica's disk")
				require.Equal(t, 1, o.Proved.DurableReplicas)
			}
			begin := replica.Begin()
			if ours {
				require.Zero(t, begin, "from the first retained byte")
			}
			require.Equal(t, m.bytes(t, begin, end), replica.bytes(t, begin, end))
			status := m.server.Status()
			require.Len(t, status, 1)
			require.Equal(t, ha.BrokerID(1), status[0].ID)
			require.Equal(t, end, status[0].Received)
		})
	}
}

// CASES 51: an empty RocketMQ-style replica begins at the master's newest file, which is not at 0.
func TestEmptyPlainReplicaStartsAtTheLastFile(t *testing.T) {
	m := startMaster(t, false, false, 1, 1)
	end := m.write(t, 200)
	require.Greater(t, end, m.FileSize())
	replica := openLog(t, false)
	m.followedBy(t, replica, 1, false)
	require.NoError(t, replica.Appended().Wait(t.Context(), end))
	begin := end - end%m.FileSize()
	require.Equal(t, m.bytes(t, begin, end), replica.bytes(t, begin, end))
}

func TestReplicaResumesInTheMiddle(t *testing.T) {
	m := startMaster(t, true, true, 2, 1)
	replica := openLog(t, true)
	_, stop := m.followedBy(t, replica, 1, true)
	end := m.write(t, 50)
	require.NoError(t, replica.Appended().Wait(t.Context(), end))
	stop()
	require.Eventually(t, func() bool { return len(m.server.Status()) == 0 }, 5*time.Second, 5*time.Millisecond)
	end = m.write(t, 50)
	_, _ = m.followedBy(t, replica, 1, true)
	require.NoError(t, m.await(t, end, 2, true).Err)
	require.Equal(t, m.bytes(t, 0, end), replica.bytes(t, 0, end))
}

func dialRaw(t *testing.T, m *master) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", m.addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() }) // the server may have closed it first
	require.NoError(t, c.SetDeadline(time.Now().Add(5*time.Second)))
	return c
}

// I9, R5: whatever a peer says, nothing that it was not sent is acknowledged.
func TestForgedAcknowledgementsMoveNothing(t *testing.T) {
	m := startMaster(t, true, false, 2, 1)
	end := m.write(t, 5)
	require.NoError(t, m.Durable().Wait(t.Context(), end))
	for _, c := range []struct {
		name string
		say  []byte
		want error
	}{
		{"ahead of the master", replication.AppendReport(nil, replication.Report{MaxOffset: 1 << 40}), group.ErrAhead},
		{"negative", bytes.Repeat([]byte{0xff}, 8), replication.ErrBadFrame},
		{"an ack of what was never sent", replication.AppendReport(replication.AppendReport(nil, replication.Report{MaxOffset: end}), replication.Report{MaxOffset: end + 1}), group.ErrUnsent},
		{"a lower one", replication.AppendReport(replication.AppendReport(nil, replication.Report{MaxOffset: end}), replication.Report{MaxOffset: end - 1}), group.ErrBackwards},
		{"a hello nobody granted", replication.AppendHello(nil, replication.Hello{Session: 42, BrokerID: 1}), replication.ErrNoSession},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := dialRaw(t, m)
			_, err := conn.Write(c.say)
			require.NoError(t, err)
			m.closedFor(t, c.want)
		})
	}
}

// R13: acks count per broker, not per connection.
func TestASecondConnectionOfOneReplicaReplacesTheFirst(t *testing.T) {
	m := startMaster(t, true, false, 3, 1)
	end := m.write(t, 5)
	for range 2 {
		conn := dialRaw(t, m)
		_, err := conn.Write(replication.AppendReport(nil, replication.Report{MaxOffset: end}))
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			s := m.server.Status()
			return len(s) == 1 && s[0].Received == end && s[0].Addr == conn.LocalAddr().String()
		}, 5*time.Second, 5*time.Millisecond)
	}
	m.closedFor(t, replication.ErrReplaced)
	pass, err := m.term.Admit()
	require.NoError(t, err)
	o := m.term.Await(t.Context(), replication.Wait{Pass: pass, End: end, Flush: true, Need: ha.Need{Copies: 3}, Deadline: time.Now().Add(300 * time.Millisecond)})
	require.ErrorIs(t, o.Err, replication.ErrReplicaTimeout)
	require.Equal(t, 2, o.Proved.ReceivedReplicas)
}

func TestSilentReplicaIsClosed(t *testing.T) {
	m := startMaster(t, true, false, 2, 1)
	end := m.write(t, 1)
	conn := dialRaw(t, m)
	_, err := conn.Write(replication.AppendReport(nil, replication.Report{MaxOffset: end}))
	require.NoError(t, err)
	m.closedFor(t, group.ErrSilent)
}
