package role

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ha"
	"github.com/quorate/quorate/internal/vfs"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/replication"
	"github.com/quorate/quorate/store"
)

var errRefused = errors.New("connection refused")

// peers answer by address and request code; who is not in it refuses the connection.
type peers map[string]map[protocol.RequestCode]*protocol.Command

func (p peers) Invoke(_ context.Context, addr string, cmd *protocol.Command) (*protocol.Command, error) {
	if a := p[addr][protocol.RequestCode(cmd.Code)]; a != nil {
		return a, nil
	}
	return nil, errRefused
}

func (p peers) InvokeOneway(context.Context, string, *protocol.Command) error { return nil }

type announced struct{ master, ha string }

func (a announced) Upstream() (string, string) { return a.master, a.ha }

func keeper(t *testing.T, cfg Config, self Identity, p peers, a announced, nameServers ...string) *Keeper {
	t.Helper()
	c := store.DefaultConfig()
	c.FS, c.RootDir, c.CommitLogFileSize = vfs.NewMemory(64<<20), "/store", 1<<20
	s, err := store.Open(c, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	self.Cluster, self.Broker = "c", "b"
	k, err := New(cfg, DefaultPolicy(), self, Deps{
		Log: s, Invoker: p, Announced: a, NameServers: nameServers, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(k.Close)
	return k
}

func answer(h any, ext ...string) *protocol.Command {
	c := &protocol.Command{}
	if h != nil {
		c.Ext = protocol.AppendHeader(nil, h)
	}
	for i := 0; i < len(ext); i += 2 {
		c.Ext = c.Ext.Add(ext[i], ext[i+1])
	}
	return c
}

func said(body string) *protocol.Command { return &protocol.Command{Body: []byte(body)} }

// D3: our dialect is spoken with who granted a session, RocketMQ's with who answered without, and neither with who could
// not be asked: a master of ours that is starting must not be taken for RocketMQ's.
func TestTheUpstreamIsAgreedOverRemoting(t *testing.T) {
	members := said(`{"brokerMemberGroup":{"brokerAddrs":{0:"m:10911",1:"r:10911"},"brokerName":"b","cluster":"c"}}`)
	where := &protocol.ExchangeHAInfoResponse{MasterHAAddress: "m:10912", MasterAddress: "m:10911"}
	ours := answer(where, keyDialect, "1", keySession, "00000000000000ff")
	for name, c := range map[string]struct {
		cfg     func(*Config)
		peers   peers
		told    announced
		history bool
		want    replication.Upstream
		fails   string
	}{
		"ours": {
			peers: peers{"ns": {901: members}, "m:10911": {906: ours}},
			want:  replication.Upstream{Addr: "m:10912", Ours: true, Session: 255},
		},
		"RocketMQ 5": {
			peers: peers{"ns": {901: members}, "m:10911": {906: answer(where)}}, want: replication.Upstream{Addr: "m:10912"},
		},
		"RocketMQ 4": {
			peers: peers{"ns": {901: members}, "m:10911": {906: &protocol.Command{Code: int32(protocol.RequestCodeNotSupported)}}},
			told:  announced{"m:10911", "m:10912"}, want: replication.Upstream{Addr: "m:10912"},
		},
		"the registration's answer": {
			peers: peers{"m:10911": {906: ours}}, told: announced{"m:10911", "m:10912"},
			want: replication.Upstream{Addr: "m:10912", Ours: true, Session: 255},
		},
		"haMasterAddress wins": {
			cfg: func(c *Config) { c.MasterAddress = "other:1" }, peers: peers{"ns": {901: members}, "m:10911": {906: ours}},
			want: replication.Upstream{Addr: "other:1", Ours: true, Session: 255},
		},
		"haMasterAddress alone": {
			cfg: func(c *Config) { c.MasterAddress = "other:1" }, want: replication.Upstream{Addr: "other:1"},
		},
		"haMasterAddress alone with a history": {
			cfg: func(c *Config) { c.MasterAddress = "other:1" }, history: true, fails: "main address is needed",
		},
		"a master that does not answer": {
			peers: peers{"ns": {901: members}}, told: announced{"m:10911", "m:10912"}, fails: "connection refused",
		},
		"nobody": {fails: errNoMaster.Error()},
		"a session that is none": {
			peers: peers{"ns": {901: members}, "m:10911": {906: answer(where, keyDialect, "1", keySession, "x")}}, fails: "session",
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := DefaultConfig()
			if c.cfg != nil {
				c.cfg(&cfg)
			}
			k := keeper(t, cfg, Identity{ID: 1, Replica: true}, c.peers, c.told, "ns")
			if c.history {
				require.NoError(t, k.deps.Log.BeginEpoch(ha.EpochEntry{Epoch: 1}))
			}
			up, err := k.upstream(t.Context())
			if c.fails != "" {
				require.ErrorContains(t, err, c.fails)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, up)
		})
	}
}

// A NameServer of RocketMQ 4 does not know the member group: a topic's route names the members.
func TestMembersOfAnOldNameServer(t *testing.T) {
	p := peers{"ns": {
		901: &protocol.Command{Code: int32(protocol.RequestCodeNotSupported)},
		105: said(`{"brokerDatas":[{"brokerAddrs":{0:"10.0.0.1:10911",2:"10.0.0.3:10911"},"brokerName":"b","cluster":"c"}],"filterServerTable":{},"queueDatas":[]}`),
	}}
	k := keeper(t, DefaultConfig(), Identity{ID: 0, Addr: "10.0.0.1:10911"}, p, announced{}, "ns")
	require.Equal(t, 1, k.alive(), "totalReplicas, until somebody has told")
	require.NoError(t, k.askMembers(t.Context()))
	require.Equal(t, 2, k.alive())
	require.Equal(t, []ha.BrokerID{2}, k.members.at(netip.MustParseAddr("10.0.0.3")))
	require.Empty(t, k.members.at(netip.MustParseAddr("10.0.0.9")))
	require.Equal(t, map[int64]string{2: "10.0.0.3:10911"}, k.Others(t.Context()))
}

// A member that the NameServer does not list is alive all the same: it asks.
func TestAliveCountsSelf(t *testing.T) {
	p := peers{"ns": {901: said(`{"brokerMemberGroup":{"brokerAddrs":{1:"r:1",2:"s:1"},"brokerName":"b","cluster":"c"}}`)}}
	k := keeper(t, DefaultConfig(), Identity{}, p, announced{}, "ns")
	require.NoError(t, k.askMembers(t.Context()))
	require.Equal(t, 3, k.alive())
	p["ns"] = nil
	require.Error(t, k.askMembers(t.Context()))
	require.Equal(t, 3, k.alive(), "what was known stays")
}

func TestWhoMayWrite(t *testing.T) {
	master := keeper(t, DefaultConfig(), Identity{Serve: true}, peers{}, announced{})
	term, err := master.Current()
	require.NoError(t, err)
	require.Equal(t, ha.Authority{BrokerID: 0, Epoch: 1}, term.Authority())
	require.Equal(t, ha.MasterEpoch(1), master.deps.Log.History().Last())

	alone := keeper(t, DefaultConfig(), Identity{}, peers{}, announced{})
	require.Zero(t, alone.deps.Log.History().Last(), "a broker without replicas keeps no history")

	replica := keeper(t, DefaultConfig(), Identity{ID: 1, Replica: true}, peers{}, announced{})
	_, err = replica.Current()
	require.ErrorIs(t, err, ErrReplica)
	require.Zero(t, replica.deps.Log.History().Last(), "only a master begins epochs")
}

// What GET_BROKER_HA_STATUS answers, to the field names and the empty list that mqadmin reads.
func TestStatusOfALoneMaster(t *testing.T) {
	k := keeper(t, DefaultConfig(), Identity{Serve: true}, peers{}, announced{})
	require.Equal(t, protocol.HARuntimeInfo{Master: true, HAConnectionInfo: []protocol.HAConnectionRuntimeInfo{}}, k.Status())
}
