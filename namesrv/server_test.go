package namesrv_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/internal/memnet"
	"github.com/quorate/quorate/internal/vfs"
	"github.com/quorate/quorate/namesrv"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const nsAddr = "ns:9876"

// world is a NameServer on a network of its own, on fake time.
type world struct {
	t      *testing.T
	net    *memnet.Network
	server *namesrv.Server
	stop   func()
	ended  chan error
}

func start(t *testing.T, change ...func(*namesrv.Config)) *world {
	t.Helper()
	w := &world{t: t, net: memnet.New(), ended: make(chan error, 1)}
	cfg := namesrv.DefaultConfig()
	cfg.KVConfigPath, cfg.ConfigStorePath = "", ""
	cfg.Dial = w.net.Dialer("ns")
	for _, f := range change {
		f(&cfg)
	}
	var err error
	w.server, err = namesrv.New(cfg, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	listener, err := w.net.Listen(nsAddr)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	w.stop = cancel
	go func() { w.ended <- w.server.Run(ctx, listener) }()
	return w
}

func (w *world) end() {
	w.stop()
	require.NoError(w.t, <-w.ended)
}

// peer is a client of the NameServer.
type peer struct {
	t      *testing.T
	client *remoting.Client
}

func (w *world) peer(host string) *peer {
	p := &peer{t: w.t, client: remoting.NewClient(remoting.ClientConfig{Dial: w.net.Dialer(host)}, slog.New(slog.DiscardHandler))}
	return p
}

func (p *peer) close() { require.NoError(p.t, p.client.Close()) }

// call sends a request and returns the answer, whatever its code.
func (p *peer) call(r protocol.Request, body []byte, change ...func(*protocol.Command)) *protocol.Command {
	p.t.Helper()
	c := protocol.NewRequest(r, body)
	c.Version = protocol.ServerVersion
	for _, f := range change {
		f(c)
	}
	ctx, cancel := context.WithTimeout(p.t.Context(), 10*time.Second)
	defer cancel()
	answer, err := p.client.Invoke(ctx, nsAddr, c)
	require.NoError(p.t, err)
	return answer
}

// ok is call for a request that must succeed; into (may be nil) takes the JSON body.
func (p *peer) ok(r protocol.Request, body []byte, into any, change ...func(*protocol.Command)) *protocol.Command {
	p.t.Helper()
	answer := p.call(r, body, change...)
	require.Equal(p.t, protocol.Success, protocol.ResponseCode(answer.Code), "%s", answer.Remark)
	if into != nil {
		require.NoError(p.t, fastjson.Unmarshal(answer.Body, into), "%s", answer.Body)
	}
	return answer
}

func registration(id int64, topics ...string) (*protocol.RegisterBrokerRequest, *protocol.RegisterBrokerBody) {
	acting := false
	timeout := int64(10_000)
	h := &protocol.RegisterBrokerRequest{
		BrokerName: "a", BrokerAddr: fmt.Sprintf("broker%d:10911", id), ClusterName: "c", HAServerAddr: fmt.Sprintf("broker%d:10912", id),
		BrokerID: id, HeartbeatTimeoutMillis: &timeout, EnableActingMaster: &acting,
	}
	b := &protocol.RegisterBrokerBody{FilterServerList: []string{}}
	b.TopicConfigSerializeWrapper.DataVersion.Counter = 1
	b.TopicConfigSerializeWrapper.TopicConfigTable = map[string]protocol.TopicConfig{}
	for _, topic := range topics {
		b.TopicConfigSerializeWrapper.TopicConfigTable[topic] = protocol.TopicConfig{
			TopicName: topic, ReadQueueNums: 8, WriteQueueNums: 8, Perm: 6, TopicFilterType: "SINGLE_TAG",
		}
	}
	return h, b
}

func (p *peer) register(h *protocol.RegisterBrokerRequest, b *protocol.RegisterBrokerBody) *protocol.Command {
	p.t.Helper()
	text, err := protocol.EncodeRegisterBroker(b, h.Compressed)
	require.NoError(p.t, err)
	crc := protocol.RegisterBodyCRC(text)
	h.BodyCRC32 = &crc
	return p.call(h, text)
}

func (p *peer) registerOK(h *protocol.RegisterBrokerRequest, b *protocol.RegisterBrokerBody) *protocol.Command {
	p.t.Helper()
	answer := p.register(h, b)
	require.Equal(p.t, protocol.Success, protocol.ResponseCode(answer.Code), "%s", answer.Remark)
	return answer
}

func (p *peer) route(topic string) *protocol.TopicRouteData {
	p.t.Helper()
	answer := p.call(&protocol.GetRouteInfoRequest{Topic: topic}, nil)
	if protocol.ResponseCode(answer.Code) == protocol.TopicNotExist {
		return nil
	}
	require.Equal(p.t, protocol.Success, protocol.ResponseCode(answer.Code))
	var r protocol.TopicRouteData
	require.NoError(p.t, fastjson.Unmarshal(answer.Body, &r))
	return &r
}

func TestRouteIsWrittenInTheFormTheClientReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		defer w.end()
		p := w.peer("client")
		defer p.close()
		p.registerOK(registration(0, "T", "U"))
		want := `{"brokerDatas":[{"brokerAddrs":{%s:"broker0:10911"},"brokerName":"a","cluster":"c","enableActingMaster":false}],` +
			`"filterServerTable":{},"queueDatas":[{"brokerName":"a","perm":6,"readQueueNums":8,"topicSysFlag":0,"writeQueueNums":8}]}`
		accept := true
		for _, x := range []struct {
			version int32
			accept  *bool
			key     string
		}{{407, nil, `"0"`}, {401, nil, `"0"`}, {399, nil, `0`}, {317, nil, `0`}, {317, &accept, `"0"`}} {
			answer := p.ok(&protocol.GetRouteInfoRequest{Topic: "T", AcceptStandardJSONOnly: x.accept}, nil, nil,
				func(c *protocol.Command) { c.Version = x.version })
			require.Equal(t, fmt.Sprintf(want, x.key), string(answer.Body), "version %d", x.version)
		}
		answer := p.call(&protocol.GetRouteInfoRequest{Topic: "none"}, nil)
		require.Equal(t, protocol.TopicNotExist, protocol.ResponseCode(answer.Code))
		require.Equal(t, "No topic route info in name server for the topic: none", string(answer.Remark))
	})
}

func TestRegistrationIsCheckedAndMayBeCompressed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		defer w.end()
		p := w.peer("broker0")
		defer p.close()
		h, b := registration(0, "T", "U")
		wrong := int32(1)
		h.BodyCRC32 = &wrong
		text, err := protocol.EncodeRegisterBroker(b, false)
		require.NoError(t, err)
		answer := p.call(h, text)
		require.Equal(t, protocol.SystemError, protocol.ResponseCode(answer.Code))
		require.Equal(t, "crc32 not match", string(answer.Remark))
		require.Equal(t, protocol.InvalidParameter, protocol.ResponseCode(p.call(&protocol.RegisterBrokerRequest{
			BrokerName: "a", BrokerAddr: "h:1", ClusterName: "c", HAServerAddr: "h:2",
		}, []byte("{")).Code))
		require.Nil(t, p.route("T"))

		h.Compressed = true
		require.Equal(t, protocol.Success, protocol.ResponseCode(p.register(h, b).Code))
		require.NotNil(t, p.route("T"))

		h, b = registration(1, "T", "U")
		answer = p.registerOK(h, b)
		require.Equal(t, "broker0:10911", answer.Ext.Get("masterAddr"))
		require.Equal(t, "broker0:10912", answer.Ext.Get("haServerAddr"))
		require.Empty(t, answer.Body)

		h, b = registration(0)
		h.BrokerAddr = "no port"
		require.Equal(t, protocol.InvalidParameter, protocol.ResponseCode(p.register(h, b).Code))
	})
}

func TestCase130PartialRegistrationAfterARestartHidesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t) // the NameServer after its restart: it knows nothing
		defer w.end()
		p := w.peer("broker0")
		defer p.close()
		var thousand []string
		for i := range 1000 {
			thousand = append(thousand, fmt.Sprintf("T%d", i))
		}
		h, b := registration(0, "New")
		require.Equal(t, protocol.SystemError, protocol.ResponseCode(p.register(h, b).Code), "so the broker sends all it has")
		p.registerOK(registration(0, append(thousand, "New")...))
		var list protocol.TopicList
		p.ok(&protocol.GetAllTopicListFromNameServerRequest{}, nil, &list)
		require.Len(t, list.TopicList, 1001)
	})
}

func TestCase133RouteDropsABrokerWhenItsConnectionCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		defer w.end()
		client := w.peer("client")
		defer client.close()
		broker := w.peer("broker0")
		broker.registerOK(registration(0, "T", "U"))
		require.NotNil(t, client.route("T"))
		broker.close()
		synctest.Wait()
		require.Nil(t, client.route("T"))
	})
}

func TestCase30BrokerThatComesBackSurvivesItsOldConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		defer w.end()
		before, after := w.peer("before"), w.peer("after")
		defer after.close()
		before.registerOK(registration(0, "T", "U"))
		after.registerOK(registration(0, "T", "U"))
		before.ok(&protocol.UnRegisterBrokerRequest{BrokerName: "a", BrokerAddr: "broker0:10911", ClusterName: "c"}, nil, nil)
		require.NotNil(t, after.route("T"))
		before.close()
		synctest.Wait()
		require.NotNil(t, after.route("T"))
		after.ok(&protocol.UnRegisterBrokerRequest{BrokerName: "a", BrokerAddr: "broker0:10911", ClusterName: "c"}, nil, nil)
		require.Nil(t, after.route("T"))
	})
}

func TestSilentBrokerExpiresAndSignsOfLifeKeepIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		defer w.end()
		client, broker := w.peer("client"), w.peer("broker0")
		defer client.close()
		defer broker.close()
		broker.registerOK(registration(0, "T", "U"))
		version := []byte(`{"counter":1,"stateVersion":0,"timestamp":0}`)
		for i := range 20 {
			time.Sleep(4 * time.Second)
			if i%2 == 0 {
				broker.ok(&protocol.BrokerHeartbeatRequest{ClusterName: "c", BrokerAddr: "broker0:10911", BrokerName: "a"}, nil, nil)
			} else {
				answer := broker.ok(&protocol.QueryDataVersionRequest{ClusterName: "c", BrokerAddr: "broker0:10911", BrokerName: "a"}, version, nil)
				require.Equal(t, "false", answer.Ext.Get("changed"))
				require.JSONEq(t, string(version), string(answer.Body))
			}
		}
		require.NotNil(t, client.route("T"))
		time.Sleep(16 * time.Second) // 10 s of silence, seen by a scan every 5 s
		require.Nil(t, client.route("T"))
		answer := broker.ok(&protocol.QueryDataVersionRequest{ClusterName: "c", BrokerAddr: "broker0:10911", BrokerName: "a"}, version, nil)
		require.Equal(t, "true", answer.Ext.Get("changed"), "so the broker registers again")
		require.Empty(t, answer.Body)
	})
}

func TestBrokersAreToldOfANewLowestID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, func(c *namesrv.Config) { c.NotifyMinBrokerIDChanged, c.SupportActingMaster = true, true })
		defer w.end()
		told := make(chan protocol.NotifyMinBrokerIDChangeRequest, 10)
		stop := serveBroker(t, w.net, "broker1:10911", told)
		defer stop()
		master, replica := w.peer("broker0"), w.peer("broker1")
		defer replica.close()
		for id, p := range []*peer{master, replica} {
			h, b := registration(int64(id), "T", "U")
			acting := true
			h.EnableActingMaster = &acting
			p.registerOK(h, b)
		}
		master.close()
		notice := <-told
		require.Equal(t, int64(1), *notice.MinBrokerID)
		require.Equal(t, "broker1:10911", notice.MinBrokerAddr)
		require.Equal(t, "broker0:10911", notice.OfflineBrokerAddr)
		require.Equal(t, map[int64]string{0: "broker1:10911"}, replica.route("T").BrokerDatas[0].BrokerAddrs)
		require.Equal(t, int32(4), replica.route("T").QueueDatas[0].Perm)
		var group protocol.GetBrokerMemberGroupResponseBody
		replica.ok(&protocol.GetBrokerMemberGroupRequest{ClusterName: "c", BrokerName: "a"}, nil, &group)
		require.Equal(t, map[int64]string{1: "broker1:10911"}, group.BrokerMemberGroup.BrokerAddrs)
	})
}

// serveBroker takes notices as a broker does.
func serveBroker(t *testing.T, network *memnet.Network, addr string, told chan<- protocol.NotifyMinBrokerIDChangeRequest) (stop func()) {
	t.Helper()
	router, err := remoting.NewRouter([]remoting.Route{
		remoting.Handle(remoting.Admin, func(_ context.Context, c remoting.Call[protocol.NotifyMinBrokerIDChangeRequest]) (*remoting.Reply, error) {
			told <- *c.Header
			return nil, nil
		}),
	})
	require.NoError(t, err)
	l, err := network.Listen(addr)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	server := remoting.NewServer(remoting.ServerConfig{}, router, nil, nil, slog.New(slog.DiscardHandler))
	go func() { ended <- server.Serve(ctx, l) }()
	return func() {
		cancel()
		require.NoError(t, <-ended)
	}
}

func TestCase181ReadyMeansThatTheBrokerIsRegistered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		defer w.end()
		ready := make(chan error, 1)
		go func() { ready <- w.server.WaitRegistered(t.Context(), "a") }()
		synctest.Wait()
		require.Empty(t, ready)
		p := w.peer("broker0")
		defer p.close()
		p.registerOK(registration(0, "T", "U"))
		require.NoError(t, <-ready)
		require.NoError(t, w.server.WaitRegistered(t.Context(), "a"))
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("given up"))
		require.EqualError(t, w.server.WaitRegistered(ctx, "other"), "given up")
	})
}

func TestRegistrationsOfOneConnectionAreTakenInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		defer w.end()
		p := w.peer("broker0")
		defer p.close()
		p.registerOK(registration(0, "T", "U"))
		for i := range int64(200) {
			h, b := registration(0, "T")
			b.TopicConfigSerializeWrapper.DataVersion.Counter = 2 + i
			b.TopicConfigSerializeWrapper.TopicConfigTable["T"] = protocol.TopicConfig{TopicName: "T", ReadQueueNums: int32(i), WriteQueueNums: int32(i), Perm: 6}
			text, err := protocol.EncodeRegisterBroker(b, false)
			require.NoError(t, err)
			require.NoError(t, p.client.InvokeOneway(t.Context(), nsAddr, protocol.NewRequest(h, text)))
		}
		require.Equal(t, int32(199), p.route("T").QueueDatas[0].WriteQueueNums)
	})
}

func TestNameServerWaitsForServiceWhenToldTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, func(c *namesrv.Config) { c.NeedWaitForService = true })
		defer w.end()
		p := w.peer("broker0")
		defer p.close()
		h, b := registration(0, "T", "U")
		*h.HeartbeatTimeoutMillis = 600_000
		p.registerOK(h, b)
		answer := p.call(&protocol.GetRouteInfoRequest{Topic: "T"}, nil)
		require.Equal(t, protocol.SystemError, protocol.ResponseCode(answer.Code))
		require.Equal(t, "name server not ready", string(answer.Remark))
		time.Sleep(45 * time.Second)
		require.NotNil(t, p.route("T"))
	})
}

func TestClusterTopicsAndPermissions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		defer w.end()
		p := w.peer("admin")
		defer p.close()
		h, b := registration(0, "T", "U", "Unit", "Sub")
		for topic, flag := range map[string]int32{"Unit": protocol.TopicUnit | protocol.TopicUnitSub, "Sub": protocol.TopicUnitSub} {
			c := b.TopicConfigSerializeWrapper.TopicConfigTable[topic]
			c.TopicSysFlag = flag
			b.TopicConfigSerializeWrapper.TopicConfigTable[topic] = c
		}
		p.registerOK(h, b)

		answer := p.ok(&protocol.GetBrokerClusterInfoRequest{}, nil, nil)
		require.JSONEq(t, `{"brokerAddrTable":{"a":{"brokerAddrs":{"0":"broker0:10911"},"brokerName":"a","cluster":"c","enableActingMaster":false}},"clusterAddrTable":{"c":["a"]}}`, string(answer.Body))
		lists := map[string]protocol.Request{
			`["Sub","T","U","Unit"]`: &protocol.GetAllTopicListFromNameServerRequest{},
			`["Unit"]`:               &protocol.GetUnitTopicListRequest{},
			`["Sub","Unit"]`:         &protocol.GetHasUnitSubTopicListRequest{},
			`["Sub"]`:                &protocol.GetHasUnitSubUnunitTopicListRequest{},
			`[]`:                     &protocol.GetTopicsByClusterRequest{Cluster: "none"},
		}
		for want, request := range lists {
			require.JSONEq(t, `{"topicList":`+want+`}`, string(p.ok(request, nil, nil).Body))
		}
		require.JSONEq(t, `{"topicList":["a","c"],"brokerAddr":"broker0:10911"}`, string(p.ok(&protocol.GetSystemTopicListFromNameServerRequest{}, nil, nil).Body))

		require.Equal(t, "4", p.ok(&protocol.WipeWritePermOfBrokerRequest{BrokerName: "a"}, nil, nil).Ext.Get("wipeTopicCount"))
		require.Equal(t, int32(4), p.route("T").QueueDatas[0].Perm)
		require.Equal(t, "4", p.ok(&protocol.AddWritePermOfBrokerRequest{BrokerName: "a"}, nil, nil).Ext.Get("addTopicCount"))
		require.Equal(t, int32(6), p.route("T").QueueDatas[0].Perm)

		p.ok(&protocol.DeleteTopicFromNamesrvRequest{Topic: "U"}, nil, nil)
		require.Nil(t, p.route("U"))
		text := []byte(`{"queueDatas":[{"brokerName":"a","perm":6,"readQueueNums":1,"writeQueueNums":1}]}`)
		p.ok(&protocol.RegisterTopicRequest{Topic: "Single"}, text, nil)
		require.NotNil(t, p.route("Single"))
		require.Equal(t, protocol.SystemError, protocol.ResponseCode(p.call(&protocol.RegisterTopicRequest{Topic: "Single"}, []byte(`{"queueDatas":[{"brokerName":"ghost"}]}`)).Code))
		require.Equal(t, protocol.InvalidParameter, protocol.ResponseCode(p.call(&protocol.RegisterTopicRequest{Topic: "Single"}, []byte(`{{`)).Code))
	})
}

func TestZonesKeepClientsNear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		defer w.end()
		p := w.peer("client")
		defer p.close()
		for i, name := range []string{"a", "b"} {
			h, b := registration(0, "T", "U")
			h.BrokerName, h.BrokerAddr = name, fmt.Sprintf("broker%d:10911", i)
			text, err := protocol.EncodeRegisterBroker(b, false)
			require.NoError(t, err)
			p.ok(h, text, nil, func(c *protocol.Command) { c.Ext = c.Ext.Add("__ZONE_NAME", "zone-"+name) })
		}
		require.Len(t, p.route("T").BrokerDatas, 2)
		var near protocol.TopicRouteData
		p.ok(&protocol.GetRouteInfoRequest{Topic: "T"}, nil, &near, func(c *protocol.Command) {
			c.Ext = c.Ext.Add("__ZONE_NAME", "ZONE-B").Add("__ZONE_MODE", "true")
		})
		require.Len(t, near.BrokerDatas, 1)
		require.Equal(t, "b", near.BrokerDatas[0].BrokerName)
		require.Len(t, near.QueueDatas, 1)
	})
}

func TestKeyValueSettingsSurviveARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewCrashable()
		keep := func(c *namesrv.Config) {
			c.FS, c.KVConfigPath, c.OrderMessageEnable, c.KVEntriesMax = disk, "/ns/kvConfig.json", true, 2
		}
		w := start(t, keep)
		p := w.peer("admin")
		put := func(namespace, key, value string) protocol.ResponseCode {
			return protocol.ResponseCode(p.call(&protocol.PutKVConfigRequest{Namespace: namespace, Key: key, Value: value}, nil).Code)
		}
		require.Equal(t, protocol.Success, put(namesrv.OrderTopicNamespace, "T", "a:8"))
		require.Equal(t, protocol.Success, put("other", "k", "v"))
		require.Equal(t, protocol.SystemError, put("other", "more", "v"), "the table is full")
		require.Equal(t, protocol.Success, put("other", "k", "w"))
		require.Equal(t, protocol.InvalidParameter, put("other", "k", strings.Repeat("x", 65<<10)))
		require.Equal(t, protocol.InvalidParameter, put("other", "line\nbreak", "v"))
		p.close()
		w.end()

		content, err := vfs.ReadFile(disk, "/ns/kvConfig.json")
		require.NoError(t, err)
		require.Equal(t, []byte(`{"configTable":{"ORDER_TOPIC_CONFIG":{"T":"a:8"},"other":{"k":"w"}}}`), content, "the bytes a Java NameServer writes")

		w = start(t, keep)
		defer w.end()
		p = w.peer("admin")
		defer p.close()
		require.Equal(t, "w", p.ok(&protocol.GetKVConfigRequest{Namespace: "other", Key: "k"}, nil, nil).Ext.Get("value"))
		p.ok(&protocol.DeleteKVConfigRequest{Namespace: "other", Key: "k"}, nil, nil)
		p.ok(&protocol.DeleteKVConfigRequest{Namespace: "other", Key: "k"}, nil, nil)
		answer := p.call(&protocol.GetKVConfigRequest{Namespace: "other", Key: "k"}, nil)
		require.Equal(t, protocol.QueryNotFound, protocol.ResponseCode(answer.Code))
		require.JSONEq(t, `{"table":{"T":"a:8"}}`, string(p.ok(&protocol.GetKVListByNamespaceRequest{Namespace: namesrv.OrderTopicNamespace}, nil, nil).Body))
		require.Equal(t, protocol.QueryNotFound, protocol.ResponseCode(p.call(&protocol.GetKVListByNamespaceRequest{Namespace: "none"}, nil).Code))
		answer = p.registerOK(registration(0, "T", "U"))
		require.JSONEq(t, `{"table":{"T":"a:8"}}`, string(answer.Body), "brokers are told the order of topics")
		require.Equal(t, "a:8", p.route("T").OrderTopicConf)
	})
}

func TestUnreadableKeyValueFileRefusesTheStart(t *testing.T) {
	disk := vfs.NewCrashable()
	require.NoError(t, disk.MkdirAll("/ns"))
	require.NoError(t, vfs.WriteFile(disk, "/ns/kvConfig.json", []byte(`{"configTable":`)))
	cfg := namesrv.DefaultConfig()
	cfg.FS, cfg.KVConfigPath = disk, "/ns/kvConfig.json"
	_, err := namesrv.New(cfg, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "/ns/kvConfig.json")
}

func TestCase126HeaderMistakesNameTheField(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		defer w.end()
		p := w.peer("client")
		defer p.close()
		for _, x := range protocol.RequestTypes() {
			if !served(w.server, x.Request.Code()) {
				continue
			}
			fields := protocol.AppendHeader(nil, x.Request) // the required ones: the optional are empty
			for i := range fields {
				answer := p.call(x.Request, nil, func(c *protocol.Command) {
					c.Ext = append(append(protocol.ExtFields{}, fields[:i]...), fields[i+1:]...)
					c.Ext = c.Ext.Add("unknown", "field")
				})
				if protocol.DecodeHeader(append(append(protocol.ExtFields{}, fields[:i]...), fields[i+1:]...), x.Request) == nil {
					continue // it was optional
				}
				require.Equal(t, protocol.InvalidParameter, protocol.ResponseCode(answer.Code), "%v without %s", x.Request.Code(), fields[i].Key)
				require.Contains(t, string(answer.Remark), string(fields[i].Key))
			}
		}
		require.NotNil(t, p.call(&protocol.GetBrokerClusterInfoRequest{}, nil), "the connection is still of use")
	})
}

func served(s *namesrv.Server, code protocol.RequestCode) bool {
	for _, r := range s.Routes() {
		if r.Code == code {
			return true
		}
	}
	return false
}

func TestAnswersAreStandardJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		defer w.end()
		p := w.peer("client")
		defer p.close()
		p.registerOK(registration(0, "T", "U"))
		for _, request := range []protocol.Request{
			&protocol.GetBrokerClusterInfoRequest{}, &protocol.GetRouteInfoRequest{Topic: "T"}, &protocol.GetSystemTopicListFromNameServerRequest{},
			&protocol.GetBrokerMemberGroupRequest{ClusterName: "c", BrokerName: "a"}, &protocol.GetAllTopicListFromNameServerRequest{},
		} {
			require.True(t, json.Valid(p.ok(request, nil, nil).Body), "%v", request.Code())
		}
	})
}
