package embed_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/embed"
	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
)

// replicas is a broker group on real sockets, with a NameServer: member 0 is its master.
type replicas struct {
	*testing.T
	namesrv *embed.Node
	client  *remoting.Client
	dirs    []string
	nodes   []*embed.Node
	addrs   []string
	keys    []map[string]string
}

// newGroup starts a master and n replicas; all have keys, and the member with its index also those of own.
func newGroup(t *testing.T, n int, keys map[string]string, own map[int]map[string]string) *replicas {
	t.Helper()
	g := &replicas{T: t, client: remoting.NewClient(remoting.ClientConfig{}, slog.New(slog.DiscardHandler))}
	t.Cleanup(func() { require.NoError(t, g.client.Close()) })
	g.namesrv = g.run(embed.Config{NameServers: []embed.NameServer{{}}})
	for id := range n + 1 {
		k := map[string]string{
			"brokerRole": "SLAVE", "brokerId": strconv.Itoa(id), "mappedFileSizeCommitLog": "1048576", "flushDiskType": "SYNC_FLUSH",
			"haSendHeartbeatInterval": "200", "haHousekeepingInterval": "2000", "syncBrokerMemberGroupPeriod": "100",
			"slaveTimeout": "1000", "totalReplicas": strconv.Itoa(n + 1),
		}
		if id == 0 {
			k["brokerRole"] = "SYNC_MASTER"
		}
		maps.Copy(k, keys)
		maps.Copy(k, own[id])
		g.keys, g.dirs = append(g.keys, k), append(g.dirs, t.TempDir())
		g.nodes, g.addrs = append(g.nodes, nil), append(g.addrs, "")
		g.start(id)
	}
	return g
}

func (g *replicas) run(cfg embed.Config) *embed.Node {
	g.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if os.Getenv("EMBED_LOG") != "" {
		cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	n, err := embed.Start(ctx, cfg)
	require.NoError(g, err)
	g.Cleanup(func() { require.NoError(g, n.Stop()) })
	if len(cfg.Brokers) > 0 {
		require.NoError(g, n.Registered(ctx))
	}
	return n
}

func (g *replicas) start(id int) {
	g.Helper()
	g.nodes[id] = g.run(embed.Config{Brokers: []embed.Broker{{
		Name: "g", Dir: g.dirs[id], NameServers: g.namesrv.NameServers(), Settings: g.keys[id],
	}}})
	g.addrs[id] = g.nodes[id].Brokers()[0]
}

func (g *replicas) stop(id int) {
	g.Helper()
	require.NoError(g, g.nodes[id].Stop())
}

func (g *replicas) ask(id int, req protocol.Request, body []byte, ext ...string) *protocol.Command {
	g.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cmd := protocol.NewRequest(req, body)
	for i := 0; i < len(ext); i += 2 {
		cmd.Ext = cmd.Ext.Add(ext[i], ext[i+1])
	}
	answer, err := g.client.Invoke(ctx, g.addrs[id], cmd)
	require.NoError(g, err)
	return answer
}

func (g *replicas) sendTo(id int, topic, body, properties string) *protocol.Command {
	g.Helper()
	return g.ask(id, &protocol.SendMessageRequest{
		ProducerGroup: "pg", Topic: topic, DefaultTopic: "TBW102", DefaultTopicQueueNums: 1, BornTimestamp: time.Now().UnixMilli(), Properties: properties,
	}, []byte(body))
}

func (g *replicas) send(body string) (protocol.ResponseCode, *protocol.Command) {
	g.Helper()
	answer := g.sendTo(0, "T", body, "")
	return protocol.ResponseCode(answer.Code), answer
}

// sendsBecome waits until a send is answered with code.
func (g *replicas) sendsBecome(code protocol.ResponseCode) *protocol.Command {
	g.Helper()
	var answer *protocol.Command
	require.Eventually(g, func() bool {
		var got protocol.ResponseCode
		got, answer = g.send("x")
		return got == code
	}, 20*time.Second, 20*time.Millisecond, "sends are never answered with %d: %s", code, answer)
	return answer
}

func (g *replicas) status(id int) (s protocol.HARuntimeInfo) {
	g.Helper()
	answer := g.ask(id, &protocol.GetBrokerHAStatusRequest{}, nil)
	require.Equal(g, protocol.Success, protocol.ResponseCode(answer.Code), "%s", answer.Remark)
	require.NoError(g, fastjson.Unmarshal(answer.Body, &s))
	return s
}

func (g *replicas) log(id int) []byte {
	g.Helper()
	content, err := os.ReadFile(filepath.Join(g.dirs[id], "commitlog", fmt.Sprintf("%020d", 0)))
	require.NoError(g, err)
	return content
}

// equal waits until all members have the same bytes.
func (g *replicas) equal() {
	g.Helper()
	for id := 1; id < len(g.nodes); id++ {
		require.Eventually(g, func() bool { return bytes.Equal(g.log(0), g.log(id)) }, 10*time.Second, 20*time.Millisecond, "log of %d differs", id)
	}
}

func (g *replicas) set(id int, properties string) {
	g.Helper()
	answer := g.ask(id, &protocol.UpdateBrokerConfigRequest{}, []byte(properties))
	require.Equal(g, protocol.Success, protocol.ResponseCode(answer.Code), "%s", answer.Remark)
}

// HA.md 65, 73: success only when the replica has it; without the replica status 12, with the record present; and back.
func TestSyncMasterWaitsForItsReplica(t *testing.T) {
	for ack, compat := range map[string]string{"received": "4x", "durable": "5x"} {
		t.Run(ack, func(t *testing.T) {
			g := newGroup(t, 1, map[string]string{"inSyncReplicas": "2", "replicaAck": ack, "compatSlaveNotAvailable": compat}, nil)
			answer := g.sendsBecome(protocol.Success)
			require.Equal(t, "2", answer.Ext.Get("receivedReplicas"))
			if ack == "durable" {
				require.Equal(t, "replicated", answer.Ext.Get("durability"))
				require.Equal(t, "2", answer.Ext.Get("durableReplicas"))
			} else {
				require.Equal(t, "local", answer.Ext.Get("durability"))
			}
			for i := range 50 {
				code, a := g.send(fmt.Sprint("m", i))
				require.Equal(t, protocol.Success, code, "%s", a.Remark)
				if ack == "durable" { // what is acknowledged is on the replica's disk at this moment
					require.True(t, bytes.Contains(g.log(1), []byte(fmt.Sprint("m", i))))
				}
			}
			g.equal()
			status := g.status(0)
			require.True(t, status.Master)
			require.Len(t, status.HAConnectionInfo, 1)
			require.EqualValues(t, 1, status.InSyncSlaveNums)
			require.True(t, status.HAConnectionInfo[0].InSync)
			require.NotZero(t, g.status(1).HAClientRuntimeInfo.LastReadTimestamp)

			g.stop(1)
			code, a := g.send("alone")
			want := map[string]protocol.ResponseCode{"5x": protocol.FlushSlaveTimeout, "4x": protocol.SlaveNotAvailable}
			require.Equal(t, want[compat], code)
			require.NotEmpty(t, a.Ext.Get("msgId"), "the record is there")
			require.True(t, bytes.Contains(g.log(0), []byte("alone")))
			g.start(1)
			g.sendsBecome(protocol.Success)
			g.equal()
			require.True(t, bytes.Contains(g.log(1), []byte("alone")))
		})
	}
}

// HA.md 69–71, 76: acting mode refuses before the append, with automatic degradation it goes on with fewer, and comes back
// by itself. The keys change while the broker runs and hold from the next send on.
func TestDegradationAndReturn(t *testing.T) {
	g := newGroup(t, 1, map[string]string{"inSyncReplicas": "2", "enableSlaveActingMaster": "true"}, nil)
	g.sendsBecome(protocol.Success)
	g.stop(1)
	answer := g.sendsBecome(protocol.SystemError)
	require.Contains(t, string(answer.Remark), "in-sync replicas not enough")
	before := g.status(0).MasterCommitLogMaxOffset
	g.send("refused")
	require.Equal(t, before, g.status(0).MasterCommitLogMaxOffset, "refused before the append")
	answer = g.sendTo(0, "T", "nobody waits", "WAIT\x01false\x02")
	require.Equal(t, protocol.Success, protocol.ResponseCode(answer.Code), "%s", answer.Remark)

	g.set(0, "enableAutoInSyncReplicas=true\n")
	code, answer := g.send("degraded")
	require.Equal(t, protocol.Success, code, "%s", answer.Remark)
	require.Equal(t, "1", answer.Ext.Get("receivedReplicas"))
	g.set(0, "minInSyncReplicas=2\n")
	code, _ = g.send("refused again")
	require.Equal(t, protocol.SystemError, code)
	g.set(0, "minInSyncReplicas=1\n")

	g.start(1)
	require.Eventually(t, func() bool {
		_, a := g.send("x")
		return a.Ext.Get("receivedReplicas") == "2"
	}, 20*time.Second, 20*time.Millisecond)
	g.equal()
}

// HA.md 66: two of three are enough, whichever they are.
func TestAnyOneOfTwoReplicasIsEnough(t *testing.T) {
	g := newGroup(t, 2, map[string]string{"inSyncReplicas": "2", "replicaAck": "durable"}, nil)
	g.sendsBecome(protocol.Success)
	for _, down := range []int{1, 2} {
		g.sendsBecome(protocol.Success)
		g.equal()
		g.stop(down)
		g.sendsBecome(protocol.Success)
		g.start(down)
	}
	g.equal()
}

// HA.md 63, 64.
func TestMastersThatDoNotWait(t *testing.T) {
	for _, keys := range []map[string]string{
		{"brokerRole": "SYNC_MASTER", "inSyncReplicas": "1"},
		{"brokerRole": "ASYNC_MASTER", "inSyncReplicas": "3"},
	} {
		g := newGroup(t, 0, keys, nil)
		code, answer := g.send("x")
		require.Equal(t, protocol.Success, code, "%v: %s", keys, answer.Remark)
	}
}

func TestRestartOfEachMember(t *testing.T) {
	g := newGroup(t, 1, map[string]string{"inSyncReplicas": "2", "replicaAck": "durable"}, nil)
	g.sendsBecome(protocol.Success)
	for range 2 {
		for id := range 2 {
			g.stop(id)
			g.start(id)
			g.sendsBecome(protocol.Success)
		}
	}
	g.equal()
	for id := range 2 {
		history, err := os.ReadFile(filepath.Join(g.dirs[id], "epochFileCheckpoint"))
		require.NoError(t, err)
		require.NotEmpty(t, history)
	}
}

// A replica refuses writes, and agrees with its master on the dialect over remoting; RocketMQ's replicas ask without our
// fields and are answered without.
func TestRolesAnswerAsRocketMQs(t *testing.T) {
	g := newGroup(t, 1, map[string]string{"inSyncReplicas": "2"}, nil)
	g.sendsBecome(protocol.Success)
	answer := g.sendTo(1, "T", "x", "")
	require.Equal(t, protocol.ServiceNotAvailable, protocol.ResponseCode(answer.Code), "%s", answer.Remark)
	answer = g.sendTo(1, "NotYetThere", "x", "")
	require.Equal(t, protocol.ServiceNotAvailable, protocol.ResponseCode(answer.Code), "%s", answer.Remark)

	answer = g.ask(0, &protocol.ExchangeHAInfoRequest{}, nil)
	require.Equal(t, g.addrs[0], answer.Ext.Get("masterAddress"))
	require.NotEmpty(t, answer.Ext.Get("masterHaAddress"))
	require.Empty(t, answer.Ext.Get("haSession"))
	answer = g.ask(0, &protocol.ExchangeHAInfoRequest{}, nil, "quorateHa", "1", "quorateBrokerId", "7")
	require.Len(t, answer.Ext.Get("haSession"), 16)
	answer = g.ask(0, &protocol.ExchangeHAInfoRequest{}, nil, "quorateHa", "1", "quorateBrokerId", "0")
	require.Equal(t, protocol.InvalidParameter, protocol.ResponseCode(answer.Code), "nobody else is the master")
	status := g.status(1)
	require.False(t, status.Master)
	require.NotEmpty(t, status.HAClientRuntimeInfo.MasterAddr)
}

// Topics and offsets reach the replica, which serves the messages where slaveReadEnable allows it, and keeps a consumer that
// is ahead of it where it is.
func TestConsumersReadFromTheReplica(t *testing.T) {
	g := newGroup(t, 1, map[string]string{"inSyncReplicas": "2", "slaveReadEnable": "true"}, nil)
	g.sendsBecome(protocol.Success)
	answer := g.ask(0, &protocol.UpdateConsumerOffsetRequest{ConsumerGroup: "cg", Topic: "T", CommitOffset: 1}, nil)
	require.Equal(t, protocol.Success, protocol.ResponseCode(answer.Code), "%s", answer.Remark)
	pull := func(offset int64) *protocol.Command {
		return g.ask(1, &protocol.PullMessageRequest{
			ConsumerGroup: "cg", Topic: "T", QueueOffset: offset, MaxMsgNums: 32, SysFlag: 4, Subscription: "*", ExpressionType: "TAG",
		}, nil)
	}
	require.Eventually(t, func() bool {
		answer = pull(0)
		return protocol.ResponseCode(answer.Code) == protocol.Success
	}, 10*time.Second, 20*time.Millisecond, "%s", answer)
	require.NotEmpty(t, answer.Body)
	require.Equal(t, protocol.PullRetryImmediately, protocol.ResponseCode(pull(1000).Code))
	require.Equal(t, "1000", pull(1000).Ext.Get("nextBeginOffset"), "the master may have what the replica has not")
	require.Eventually(t, func() bool {
		a := g.ask(1, &protocol.QueryConsumerOffsetRequest{ConsumerGroup: "cg", Topic: "T"}, nil)
		return a.Ext.Get("offset") == "1"
	}, 10*time.Second, 20*time.Millisecond)
	g.set(1, "slaveReadEnable=false\n")
	require.Equal(t, protocol.SystemBusy, protocol.ResponseCode(pull(0).Code))
}
