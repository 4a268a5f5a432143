package register

import (
	"context"
	"errors"
	"hash/crc32"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/broker/internal/memlog"
	"github.com/quorate/quorate/broker/topic"
	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/protocol"
)

// nameServer answers as RocketMQ's does, as far as a broker sees.
type nameServer struct {
	mu      sync.Mutex
	down    bool
	known   bool
	version protocol.DataVersion
	topics  map[string]topic.Config
	log     []protocol.RequestCode
	sizes   []int // topics per registration
	order   string
	bad     error
}

func (n *nameServer) Invoke(_ context.Context, _ string, cmd *protocol.Command) (*protocol.Command, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down {
		return nil, errors.New("connection refused")
	}
	code := protocol.RequestCode(cmd.Code)
	n.log = append(n.log, code)
	answer := &protocol.Command{Flag: protocol.FlagResponse}
	switch code {
	case protocol.CodeRegisterBroker:
		var h protocol.RegisterBrokerRequest
		var b registerBody
		n.bad = errors.Join(protocol.DecodeHeader(cmd.Ext, &h), fastjson.Unmarshal(cmd.Body, &b))
		if h.BodyCRC32 == nil || *h.BodyCRC32 != int32(crc32.ChecksumIEEE(cmd.Body)&0x7fffffff) {
			n.bad = errors.New("crc")
		}
		if !n.known && len(b.Wrapper.Topics) == 1 {
			answer.Code = int32(protocol.SystemError)
			return answer, nil
		}
		if !n.known {
			n.topics = map[string]topic.Config{}
		}
		n.known, n.version = true, b.Wrapper.DataVersion
		n.sizes = append(n.sizes, len(b.Wrapper.Topics))
		for name, c := range b.Wrapper.Topics {
			n.topics[name] = *c
		}
		answer.Body = []byte(n.order)
	case protocol.CodeQueryDataVersion:
		var v protocol.DataVersion
		n.bad = fastjson.Unmarshal(cmd.Body, &v)
		answer.Ext = answer.Ext.Add("changed", strconv.FormatBool(!n.known || v != n.version))
	case protocol.CodeUnregisterBroker:
		n.known = false
	}
	return answer, nil
}

func (n *nameServer) count(code protocol.RequestCode) (c int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, x := range n.log {
		if x == code {
			c++
		}
	}
	return c
}

// has, size and version read what it knows.
func (n *nameServer) has(name string) (c topic.Config, ok bool) {
	n.set(func() { c, ok = n.topics[name] })
	return c, ok
}

func (n *nameServer) size() (size int) {
	n.set(func() { size = len(n.topics) })
	return size
}

func (n *nameServer) isKnown() (known bool) {
	n.set(func() { known = n.known })
	return known
}

func (n *nameServer) set(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
}

func run(t *testing.T, n *nameServer, change func(*Config, *Identity)) (table *topic.Table, r *Registrar, stop func()) {
	t.Helper()
	table, err := topic.Open(topic.DefaultSettings(), topic.DefaultReloadable(), memlog.New(), time.Now)
	require.NoError(t, err)
	require.NoError(t, table.EnsureSystem("C", "b"))
	cfg, self := DefaultConfig(), Identity{Cluster: "C", Broker: "b", Addr: "1.2.3.4:10911", HAAddr: "1.2.3.4:10912", Permission: 6}
	cfg.NameServers = []string{"ns:9876"}
	if change != nil {
		change(&cfg, &self)
	}
	r = New(cfg, self, table, n, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	synctest.Wait()
	return table, r, func() {
		cancel()
		require.NoError(t, <-done)
		require.NoError(t, n.bad)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func put(t *testing.T, table *topic.Table, name string) {
	t.Helper()
	require.NoError(t, table.Put(topic.Config{Name: name, ReadQueues: 4, WriteQueues: 4, Perm: 6}))
}

func TestRegistersAtOnceAndEveryPeriodAndTakesItselfBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &nameServer{}
		table, r, stop := run(t, n, nil)
		require.True(t, isClosed(r.Ready()), "no time has passed")
		require.True(t, isClosed(r.All()))
		require.Equal(t, len(table.All()), n.size())
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		require.Equal(t, 11, n.count(protocol.CodeRegisterBroker))
		stop()
		require.Equal(t, 1, n.count(protocol.CodeUnregisterBroker))
		require.False(t, n.isKnown())
	})
}

func TestTopicChangeIsAnnouncedAtOnceAndAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &nameServer{}
		table, r, stop := run(t, n, nil)
		defer stop()
		put(t, table, "new")
		r.Await(t.Context(), table.Snapshot().Change)
		n.set(func() {
			require.Contains(t, n.topics, "new")
			require.Equal(t, 1, n.sizes[len(n.sizes)-1], "only what changed")
			require.Equal(t, table.Snapshot().Version, n.version)
		})
	})
}

// CASES 130: after a NameServer restart a partial registration must not pass for the whole.
func TestRestartedNameServerGetsTheWholeTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &nameServer{}
		table, r, stop := run(t, n, nil)
		defer stop()
		var many []topic.Config
		for i := range 1000 {
			many = append(many, topic.Config{Name: "t" + strconv.Itoa(i), ReadQueues: 1, WriteQueues: 1, Perm: 6})
		}
		require.NoError(t, table.PutAll(many))
		r.Await(t.Context(), table.Snapshot().Change)
		n.set(func() { n.known = false })
		put(t, table, "one-more")
		r.Await(t.Context(), table.Snapshot().Change)
		require.Equal(t, len(table.All()), n.size())

		n.set(func() { n.known = false })
		time.Sleep(probeInterval)
		synctest.Wait()
		require.True(t, n.isKnown(), "found out by asking, without a change")
		require.Equal(t, len(table.All()), n.size())
	})
}

func TestNameServerThatIsDownIsTriedUntilItAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &nameServer{down: true}
		table, r, stop := run(t, n, nil)
		defer stop()
		time.Sleep(time.Hour)
		require.False(t, isClosed(r.Ready()))
		began := time.Now()
		r.Await(t.Context(), table.Snapshot().Change)
		require.Zero(t, time.Since(began), "nobody waits for a server that is away")
		n.set(func() { n.down = false })
		time.Sleep(retryPauseMax)
		synctest.Wait()
		require.True(t, isClosed(r.Ready()))
		n.set(func() { n.down = true })
		time.Sleep(probeInterval + time.Second)
		now, of := r.Registered()
		require.Equal(t, []int{0, 1}, []int{now, of})
		n.set(func() { n.down = false })
		time.Sleep(retryPauseMax)
		synctest.Wait()
		now, _ = r.Registered()
		require.Equal(t, 1, now)
	})
}

func TestOrderTopicsOfTheNameServerAreMarked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &nameServer{order: `{"table":{"ordered":"b:4","unknown":"b:1"}}`}
		table, _, stop := run(t, n, nil)
		defer stop()
		put(t, table, "ordered")
		put(t, table, "plain")
		synctest.Wait()
		require.True(t, table.Get("ordered").Order)
		require.False(t, table.Get("plain").Order)
		c, _ := n.has("ordered")
		require.True(t, c.Order, "and announced")
		require.Nil(t, table.Get("unknown"))
	})
}

func TestPermissionOfTheBrokerMasksTopics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &nameServer{}
		_, _, stop := run(t, n, func(_ *Config, self *Identity) { self.Permission = 4 })
		defer stop()
		n.set(func() {
			for name, c := range n.topics {
				require.Zero(t, c.Perm&topic.PermWrite, name)
			}
		})
	})
}

func TestPermissionChangedWhileRunningIsAnnounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &nameServer{}
		_, r, stop := run(t, n, nil)
		defer stop()
		r.Permit(4)
		time.Sleep(probeInterval)
		synctest.Wait()
		n.set(func() {
			for name, c := range n.topics {
				require.Zero(t, c.Perm&topic.PermWrite, name)
			}
		})
	})
}

func TestWithoutNameServersItIsReadyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, r, stop := run(t, &nameServer{}, func(c *Config, _ *Identity) { c.NameServers = nil })
		require.True(t, isClosed(r.Ready()))
		require.True(t, isClosed(r.All()))
		stop()
	})
}

func TestUnforcedRegistrationSendsOnlyWhatIsNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &nameServer{}
		_, _, stop := run(t, n, func(c *Config, _ *Identity) { c.Force = false })
		defer stop()
		time.Sleep(10 * time.Minute)
		require.Equal(t, 1, n.count(protocol.CodeRegisterBroker))
		require.Greater(t, n.count(protocol.CodeQueryDataVersion), 100)
	})
}
