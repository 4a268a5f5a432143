package route_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/namesrv/route"
	"github.com/quorate/quorate/protocol"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func table(change ...func(*route.Config)) *route.Table {
	cfg := route.Config{MembersMax: 100, TopicsMax: 1000}
	for _, f := range change {
		f(&cfg)
	}
	return route.New(cfg)
}

func topics(names ...string) map[string]protocol.TopicConfig {
	out := map[string]protocol.TopicConfig{}
	for _, name := range names {
		out[name] = protocol.TopicConfig{TopicName: name, ReadQueueNums: 8, WriteQueueNums: 4, Perm: 6}
	}
	return out
}

var yes, no = true, false

// broker is a registration of group a, cluster c, with two topics; conn and version 1.
func broker(id int64, change ...func(*route.Registration)) route.Registration {
	r := route.Registration{
		Cluster: "c", Name: "a", Addr: fmt.Sprintf("10.0.0.%d:10911", id+1), HAAddr: fmt.Sprintf("10.0.0.%d:10912", id+1), ID: id, Conn: uint64(id + 1),
		ActingMaster: &no, Version: protocol.DataVersion{Counter: 1}, Topics: topics("T", "U"),
	}
	for _, f := range change {
		f(&r)
	}
	return r
}

func register(tb testing.TB, tab *route.Table, r route.Registration) route.Registered {
	tb.Helper()
	out, err := tab.Register(start, r)
	require.NoError(tb, err)
	return out
}

func perm(tb testing.TB, tab *route.Table, topic string) int32 {
	tb.Helper()
	r, found := tab.Route(topic)
	require.True(tb, found)
	require.NotEmpty(tb, r.QueueDatas)
	return r.QueueDatas[0].Perm
}

func TestRouteNamesQueuesAndBrokers(t *testing.T) {
	tab := table()
	register(t, tab, broker(0))
	replica := register(t, tab, broker(1))
	require.Equal(t, "10.0.0.1:10911", replica.MasterAddr)
	require.Equal(t, "10.0.0.1:10912", replica.MasterHA)
	got, found := tab.Route("T")
	require.True(t, found)
	require.Empty(t, cmp.Diff(&protocol.TopicRouteData{
		QueueDatas:        []protocol.QueueData{{BrokerName: "a", ReadQueueNums: 8, WriteQueueNums: 4, Perm: 6}},
		BrokerDatas:       []protocol.BrokerData{{Cluster: "c", BrokerName: "a", BrokerAddrs: map[int64]string{0: "10.0.0.1:10911", 1: "10.0.0.2:10911"}}},
		FilterServerTable: map[string][]string{},
	}, got))
	_, found = tab.Route("unknown")
	require.False(t, found)

	got.BrokerDatas[0].BrokerAddrs[0] = "changed"
	again, _ := tab.Route("T")
	require.Equal(t, "10.0.0.1:10911", again.BrokerDatas[0].BrokerAddrs[0], "an answer shares nothing with the table")
}

func TestReplicaBringsNoTopicsUnlessItActs(t *testing.T) {
	tab := table()
	register(t, tab, broker(1))
	_, found := tab.Route("T")
	require.True(t, found, "the prime slave of a broker of RocketMQ 5 brings them even without acting")
	require.Equal(t, int32(6), perm(t, tab, "T"))

	tab = table()
	register(t, tab, broker(1, func(r *route.Registration) { r.ActingMaster = nil }))
	_, found = tab.Route("T")
	require.False(t, found)

	tab = table()
	register(t, tab, broker(1, func(r *route.Registration) { r.ActingMaster = &yes }))
	require.Equal(t, int32(4), perm(t, tab, "T"), "producers may not use an acting master")
}

func TestCase130FirstRegistrationOfOneTopicIsRefused(t *testing.T) {
	tab := table()
	_, err := tab.Register(start, broker(0, func(r *route.Registration) { r.Topics = topics("New") }))
	require.ErrorIs(t, err, route.ErrSingleTopic)
	require.Empty(t, tab.Members())
	require.Empty(t, tab.ClusterInfo().ClusterAddrTable)

	var thousand []string
	for i := range 1000 {
		thousand = append(thousand, fmt.Sprintf("T%d", i))
	}
	register(t, tab, broker(0, func(r *route.Registration) { r.Topics = topics(thousand[:999]...) }))
	register(t, tab, broker(0, func(r *route.Registration) { r.Topics, r.Version.Counter = topics(thousand[999]), 2 }))
	require.Len(t, tab.Topics(), 1000, "a later registration of one topic adds it")
}

func TestQueuesChangeOnlyWithTheVersion(t *testing.T) {
	tab := table()
	register(t, tab, broker(0))
	wider := func(r *route.Registration) {
		c := r.Topics["T"]
		c.WriteQueueNums = 16
		r.Topics["T"] = c
		r.Topics["V"] = c
	}
	register(t, tab, broker(0, wider))
	r, _ := tab.Route("T")
	require.Equal(t, int32(4), r.QueueDatas[0].WriteQueueNums)
	_, found := tab.Route("V")
	require.True(t, found, "a topic that is missing is taken all the same")
	register(t, tab, broker(0, wider, func(r *route.Registration) { r.Version.Timestamp = 5 }))
	r, _ = tab.Route("T")
	require.Equal(t, int32(16), r.QueueDatas[0].WriteQueueNums)
}

func TestTopicsThatARegistrationLacksStayUnlessConfigured(t *testing.T) {
	for _, deletes := range []bool{false, true} {
		tab := table(func(c *route.Config) { c.DeleteAbsentTopics = deletes })
		register(t, tab, broker(0))
		register(t, tab, broker(0, func(r *route.Registration) { r.Topics, r.Version.Counter = topics("U", "V"), 2 }))
		want := []string{"T", "U", "V"}
		if deletes {
			want = want[1:]
		}
		require.Equal(t, want, tab.Topics())
	}
}

func TestCase29OldMasterCannotTakeTheRouteBack(t *testing.T) {
	tab := table()
	register(t, tab, broker(0, func(r *route.Registration) { r.Version.StateVersion, r.Addr = 2, "10.0.0.9:10911" }))
	out := register(t, tab, broker(0, func(r *route.Registration) { r.Version.StateVersion = 1 }))
	require.True(t, out.Stale)
	require.Equal(t, "10.0.0.9:10911", tab.Group("c", "a").BrokerAddrs[0])
	require.Len(t, tab.Members(), 1)
	out = register(t, tab, broker(0, func(r *route.Registration) { r.Version.StateVersion = 2 }))
	require.False(t, out.Stale)
	require.Equal(t, "10.0.0.1:10911", tab.Group("c", "a").BrokerAddrs[0])
}

func TestBrokerThatChangesItsIDHasOneEntry(t *testing.T) {
	tab := table()
	register(t, tab, broker(1))
	register(t, tab, broker(0, func(r *route.Registration) { r.Addr = "10.0.0.2:10911" }))
	require.Equal(t, map[int64]string{0: "10.0.0.2:10911"}, tab.Group("c", "a").BrokerAddrs)
}

func TestSilentBrokerExpires(t *testing.T) {
	tab := table()
	register(t, tab, broker(0))
	register(t, tab, broker(1, func(r *route.Registration) { r.Timeout = 10 * time.Second }))
	require.Empty(t, tab.Expire(start.Add(10*time.Second)).Members)
	require.True(t, tab.Heard(start.Add(5*time.Second), "c", "10.0.0.2:10911"))
	require.False(t, tab.Heard(start, "c", "nobody:1"))
	require.Empty(t, tab.Expire(start.Add(15*time.Second)).Members)
	gone := tab.Expire(start.Add(16 * time.Second)).Members
	require.Equal(t, []route.Member{{Cluster: "c", Name: "a", Addr: "10.0.0.2:10911", ID: 1, Conn: 2}}, gone)
	require.Len(t, tab.Expire(start.Add(route.TimeoutDefault+time.Millisecond)).Members, 1)
	require.Empty(t, tab.Topics())
	require.Empty(t, tab.ClusterInfo().ClusterAddrTable)
	require.Empty(t, tab.ClusterInfo().BrokerAddrTable)
}

func TestCase30LateGoodbyeDoesNotRemoveTheNextInstance(t *testing.T) {
	tab := table()
	register(t, tab, broker(0))
	register(t, tab, broker(0, func(r *route.Registration) { r.Conn = 7 })) // restarted, registered again
	require.Empty(t, tab.Closed(1).Members, "the old connection closes late")
	require.Empty(t, tab.Unregister("c", "a", "10.0.0.1:10911", 1).Members, "its goodbye was still on the way")
	require.Len(t, tab.Members(), 1)
	require.Empty(t, tab.Unregister("c", "other", "10.0.0.1:10911", 7).Members)
	require.Empty(t, tab.Unregister("other", "a", "10.0.0.1:10911", 7).Members)
	require.Len(t, tab.Unregister("c", "a", "10.0.0.1:10911", 7).Members, 1)

	register(t, tab, broker(0))
	register(t, tab, broker(0, func(r *route.Registration) { r.Conn, r.Addr = 8, "10.0.0.9:10911" })) // another host has the id now
	require.Len(t, tab.Closed(1).Members, 1)
	require.Equal(t, map[int64]string{0: "10.0.0.9:10911"}, tab.Group("c", "a").BrokerAddrs)
}

func TestActingMasterIsNamedOnceTheMasterIsGone(t *testing.T) {
	acting := func(r *route.Registration) {
		r.ActingMaster = &yes
		r.Topics["rmq_sys_SYNC_BROKER_MEMBER_a"] = protocol.TopicConfig{Perm: 4, ReadQueueNums: 1, WriteQueueNums: 1}
	}
	tab := table(func(c *route.Config) { c.SupportActingMaster = true })
	register(t, tab, broker(0, acting))
	register(t, tab, broker(2, acting))
	register(t, tab, broker(1, acting))
	gone := tab.Closed(1)
	require.Empty(t, cmp.Diff([]route.Notice{{
		To: []route.Member{
			{Cluster: "c", Name: "a", Addr: "10.0.0.2:10911", ID: 1, Conn: 2},
			{Cluster: "c", Name: "a", Addr: "10.0.0.3:10911", ID: 2, Conn: 3},
		},
		MinID: 1, MinAddr: "10.0.0.2:10911", Offline: "10.0.0.1:10911",
	}}, gone.Notices))
	require.Equal(t, int32(4), perm(t, tab, "T"))
	r, _ := tab.Route("T")
	require.Equal(t, map[int64]string{0: "10.0.0.2:10911", 2: "10.0.0.3:10911"}, r.BrokerDatas[0].BrokerAddrs)
	r, _ = tab.Route("rmq_sys_SYNC_BROKER_MEMBER_a")
	require.Equal(t, map[int64]string{1: "10.0.0.2:10911", 2: "10.0.0.3:10911"}, r.BrokerDatas[0].BrokerAddrs, "members want the truth")

	tab.AddWrite("a")
	r, _ = tab.Route("T")
	require.NotContains(t, r.BrokerDatas[0].BrokerAddrs, int64(0), "a writable queue would send producers to the acting master")

	back := register(t, tab, broker(0, acting, func(r *route.Registration) { r.Conn = 9 }))
	require.Equal(t, int32(6), perm(t, tab, "T"))
	require.Len(t, back.Notices, 1)
	require.Equal(t, route.Notice{
		To: []route.Member{
			{Cluster: "c", Name: "a", Addr: "10.0.0.2:10911", ID: 1, Conn: 2},
			{Cluster: "c", Name: "a", Addr: "10.0.0.3:10911", ID: 2, Conn: 3},
		},
		MinID: 0, MinAddr: "10.0.0.1:10911", HAAddr: "10.0.0.1:10912",
	}, back.Notices[0])
}

func TestWithoutActingMasterAGroupKeepsItsQueuesAndTellsNobody(t *testing.T) {
	tab := table()
	register(t, tab, broker(0))
	register(t, tab, broker(1))
	require.Empty(t, tab.Closed(1).Notices)
	require.Equal(t, int32(6), perm(t, tab, "T"))
	r, _ := tab.Route("T")
	require.Equal(t, map[int64]string{1: "10.0.0.2:10911"}, r.BrokerDatas[0].BrokerAddrs)
}

func TestWritePermissionIsWipedAndGivenBack(t *testing.T) {
	tab := table()
	register(t, tab, broker(0))
	require.Equal(t, 2, tab.WipeWrite("a"))
	require.Equal(t, int32(4), perm(t, tab, "T"))
	register(t, tab, broker(0))
	require.Equal(t, int32(4), perm(t, tab, "T"), "the same version changes nothing")
	require.Equal(t, 2, tab.AddWrite("a"))
	require.Equal(t, int32(6), perm(t, tab, "T"))
	require.Zero(t, tab.WipeWrite("unknown"))
}

func TestListsOfTopics(t *testing.T) {
	tab := table()
	register(t, tab, broker(0, func(r *route.Registration) {
		r.Topics["Unit"] = protocol.TopicConfig{TopicSysFlag: protocol.TopicUnit}
	}))
	register(t, tab, broker(0, func(r *route.Registration) {
		r.Cluster, r.Name, r.Addr, r.Topics = "d", "b", "10.1.1.1:1", topics("U", "W")
	}))
	require.Equal(t, []string{"T", "U", "Unit", "W"}, tab.Topics())
	require.Equal(t, []string{"U", "W"}, tab.TopicsOfCluster("d"))
	require.Equal(t, []string{}, tab.TopicsOfCluster("none"))
	require.Equal(t, []string{"Unit"}, tab.TopicsByFlag(func(f int32) bool { return f&protocol.TopicUnit != 0 }))
	names, addr := tab.SystemTopics()
	require.Equal(t, []string{"a", "b", "c", "d"}, names)
	require.Equal(t, "10.0.0.1:10911", addr)
	tab.DeleteTopic("U", "d")
	require.Equal(t, []string{"W"}, tab.TopicsOfCluster("d"))
	require.Contains(t, tab.Topics(), "U")
	tab.DeleteTopic("U", "")
	require.NotContains(t, tab.Topics(), "U")
}

func TestSingleTopicIsRegisteredOnKnownBrokersOnly(t *testing.T) {
	tab := table()
	register(t, tab, broker(0))
	require.NoError(t, tab.RegisterTopic("S", []protocol.QueueData{{BrokerName: "a", Perm: 6, ReadQueueNums: 1, WriteQueueNums: 1}}))
	require.Contains(t, tab.Topics(), "S")
	require.Error(t, tab.RegisterTopic("X", []protocol.QueueData{{BrokerName: "a"}, {BrokerName: "ghost"}}))
	require.NotContains(t, tab.Topics(), "X")
	require.ErrorIs(t, tab.RegisterTopic("bad name", nil), route.ErrName)
}

func TestHostileRegistrationsAreBounded(t *testing.T) {
	for name, spoil := range map[string]func(*route.Registration){
		"no cluster":       func(r *route.Registration) { r.Cluster = "" },
		"long broker":      func(r *route.Registration) { r.Name = strings.Repeat("b", 256) },
		"quote":            func(r *route.Registration) { r.Name = `a"` },
		"control":          func(r *route.Registration) { r.Cluster = "c\n" },
		"not UTF-8":        func(r *route.Registration) { r.Cluster = "c\xff" },
		"no port":          func(r *route.Registration) { r.Addr = "10.0.0.1" },
		"port zero":        func(r *route.Registration) { r.Addr = "10.0.0.1:0" },
		"two addresses":    func(r *route.Registration) { r.Addr = "10.0.0.1:1,10.0.0.2:1" },
		"bad HA address":   func(r *route.Registration) { r.HAAddr = "x" },
		"negative id":      func(r *route.Registration) { r.ID = -1 },
		"many filters":     func(r *route.Registration) { r.Filters = make([]string, 1000) },
		"bad filter":       func(r *route.Registration) { r.Filters = []string{"x"} },
		"zone with blanks": func(r *route.Registration) { r.Zone = "z z" },
	} {
		tab := table()
		_, err := tab.Register(start, broker(0, spoil))
		require.ErrorIs(t, err, route.ErrName, name)
		require.Empty(t, tab.Members(), name)
	}

	tab := table(func(c *route.Config) { c.MembersMax, c.TopicsMax = 2, 3 })
	out := register(t, tab, broker(0, func(r *route.Registration) { r.Topics["bad topic"] = protocol.TopicConfig{} }))
	require.Equal(t, 1, out.LeftOut)
	out = register(t, tab, broker(0, func(r *route.Registration) { r.Version.Counter, r.Topics = 2, topics("V", "W", "T") }))
	require.Equal(t, 1, out.LeftOut)
	require.Len(t, tab.Topics(), 3)
	require.ErrorIs(t, tab.RegisterTopic("Z", nil), route.ErrFull)
	register(t, tab, broker(1))
	_, err := tab.Register(start, broker(2))
	require.ErrorIs(t, err, route.ErrFull)
	register(t, tab, broker(1))
}

func TestBrokerNameIsOfOneCluster(t *testing.T) {
	tab := table()
	register(t, tab, broker(0))
	other := func(r *route.Registration) { r.Cluster = "d" }
	_, err := tab.Register(start, broker(1, other))
	require.ErrorIs(t, err, route.ErrTaken)
	register(t, tab, broker(0, other)) // the same address, restarted with another cluster name
	require.Equal(t, map[string][]string{"d": {"a"}}, tab.ClusterInfo().ClusterAddrTable)
	require.Len(t, tab.Members(), 1)
	register(t, tab, broker(0, other, func(r *route.Registration) { r.Name = "b" })) // and with another broker name
	require.Equal(t, map[string][]string{"d": {"b"}}, tab.ClusterInfo().ClusterAddrTable)
	require.Len(t, tab.Members(), 1)
}

func TestMappingsOfStaticTopicsComeWithTheRoute(t *testing.T) {
	tab := table()
	register(t, tab, broker(0, func(r *route.Registration) {
		r.Mappings = map[string]fastjson.Raw{"T": fastjson.Raw(`{"topic":"T"}`), "unknown": fastjson.Raw(`{}`)}
	}))
	r, _ := tab.Route("T")
	require.JSONEq(t, `{"topic":"T"}`, string(r.TopicQueueMappingByBroker["a"]))
	r, _ = tab.Route("U")
	require.Empty(t, r.TopicQueueMappingByBroker)
}

// TestTableStaysConsistentUnderAnyHistory checks after every step what no history may break.
func TestTableStaysConsistentUnderAnyHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tab := table(func(c *route.Config) { c.SupportActingMaster, c.MembersMax = true, 6 })
		now, conn := start, uint64(0)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "pause")) * time.Second)
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0, 1:
				conn++
				r := broker(rapid.Int64Range(0, 2).Draw(t, "id"))
				r.Conn, r.ActingMaster = conn, rapid.SampledFrom([]*bool{nil, &yes, &no}).Draw(t, "acting")
				r.Cluster = rapid.SampledFrom([]string{"c", "d"}).Draw(t, "cluster")
				r.Name = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name")
				r.Addr = fmt.Sprintf("h:%d", rapid.IntRange(1, 4).Draw(t, "port"))
				r.Version = protocol.DataVersion{Counter: rapid.Int64Range(0, 3).Draw(t, "counter"), StateVersion: rapid.Int64Range(0, 2).Draw(t, "state")}
				r.Topics = topics(rapid.SampledFrom([][]string{{"T"}, {"T", "U"}, {"V", "W", "T"}}).Draw(t, "topics")...)
				_, _ = tab.Register(now, r) // a refusal is a step too
			case 2:
				tab.Closed(rapid.Uint64Range(0, conn).Draw(t, "closed"))
			case 3:
				tab.Expire(now)
			case 4:
				for _, m := range tab.Members() {
					tab.Unregister(m.Cluster, m.Name, m.Addr, m.Conn)
					break
				}
			}
			consistent(t, tab)
		}
		tab.Expire(now.Add(time.Hour))
		if len(tab.Members())+len(tab.Topics())+len(tab.ClusterInfo().BrokerAddrTable)+len(tab.ClusterInfo().ClusterAddrTable) != 0 {
			t.Fatalf("something stays when all brokers are gone: %+v %v", tab.ClusterInfo(), tab.Topics())
		}
	})
}

func consistent(t *rapid.T, tab *route.Table) {
	info := tab.ClusterInfo()
	live := map[string]bool{}
	for _, m := range tab.Members() {
		live[m.Cluster+"/"+m.Name+"/"+m.Addr] = true
	}
	names := map[string]bool{}
	for cluster, of := range info.ClusterAddrTable {
		for _, name := range of {
			if names[name] || info.BrokerAddrTable[name].Cluster != cluster {
				t.Fatalf("%s is in cluster %s: %+v", name, cluster, info)
			}
			names[name] = true
		}
	}
	for name, g := range info.BrokerAddrTable {
		if len(g.BrokerAddrs) == 0 || !names[name] {
			t.Fatalf("group %s: %+v", name, info)
		}
		if addrs := slices.Sorted(maps.Values(g.BrokerAddrs)); len(slices.Compact(addrs)) != len(g.BrokerAddrs) {
			t.Fatalf("one address, two ids: %+v", g)
		}
		for _, addr := range g.BrokerAddrs {
			if !live[g.Cluster+"/"+name+"/"+addr] {
				t.Fatalf("%s of %s is routed and not alive: it would never leave", addr, name)
			}
		}
	}
	for _, topic := range tab.Topics() {
		if r, found := tab.Route(topic); !found || len(r.QueueDatas) == 0 {
			t.Fatalf("topic %s has no route", topic)
		}
	}
}
