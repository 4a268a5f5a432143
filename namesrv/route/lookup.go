package route

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/protocol"
)

// syncMemberPrefix begins the topics whose route old brokers read to learn the members of their group.
const syncMemberPrefix = "rmq_sys_SYNC_BROKER_MEMBER_"

// Route is the route of a topic, queues and brokers in the order of broker names; false unless the topic has queues on a
// broker that is known. It shares nothing with the table.
func (t *Table) Route(topic string) (*protocol.TopicRouteData, bool) {
	queues := t.topics[topic]
	r := &protocol.TopicRouteData{FilterServerTable: map[string][]string{}, TopicQueueMappingByBroker: maps.Clone(t.mappings[topic])}
	needsActing := false
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		r.QueueDatas = append(r.QueueDatas, queues[name])
		g := t.groups[name]
		if g == nil {
			continue
		}
		r.BrokerDatas = append(r.BrokerDatas, g.data())
		_, hasMaster := g.addrs[MasterID]
		needsActing = needsActing || !hasMaster
		for _, addr := range g.addrs {
			if m := t.members[memberKey{g.cluster, addr}]; m != nil && len(m.filters) > 0 {
				r.FilterServerTable[addr] = slices.Clone(m.filters)
			}
		}
	}
	if len(r.BrokerDatas) == 0 {
		return nil, false
	}
	if t.cfg.SupportActingMaster && needsActing && !strings.HasPrefix(topic, syncMemberPrefix) {
		nameActingMasters(r, queues)
	}
	return r, true
}

// nameActingMasters moves the lowest address of a group without a master to the master's id, so that clients read from it.
// A group whose queues may still be written is left alone: producers would write to the acting master.
func nameActingMasters(r *protocol.TopicRouteData, queues map[string]protocol.QueueData) {
	for _, b := range r.BrokerDatas {
		if _, hasMaster := b.BrokerAddrs[MasterID]; hasMaster || !b.EnableActingMaster || queues[b.BrokerName].Perm&protocol.PermWrite != 0 {
			continue
		}
		lowest := slices.Min(slices.Collect(maps.Keys(b.BrokerAddrs)))
		b.BrokerAddrs[MasterID] = b.BrokerAddrs[lowest]
		delete(b.BrokerAddrs, lowest)
	}
}

func (g *group) data() protocol.BrokerData {
	return protocol.BrokerData{
		Cluster: g.cluster, BrokerName: g.name, BrokerAddrs: maps.Clone(g.addrs), EnableActingMaster: g.actingMaster, ZoneName: g.zone,
	}
}

// ClusterInfo is every cluster and group.
func (t *Table) ClusterInfo() protocol.ClusterInfo {
	info := protocol.ClusterInfo{BrokerAddrTable: map[string]protocol.BrokerData{}, ClusterAddrTable: map[string][]string{}}
	for name, g := range t.groups {
		info.BrokerAddrTable[name] = g.data()
	}
	for cluster, names := range t.clusters {
		info.ClusterAddrTable[cluster] = slices.Sorted(maps.Keys(names))
	}
	return info
}

// Group is the members of one group; without addresses when it is not known.
func (t *Table) Group(cluster, name string) protocol.BrokerMemberGroup {
	out := protocol.BrokerMemberGroup{Cluster: cluster, BrokerName: name, BrokerAddrs: map[int64]string{}}
	if g := t.groups[name]; g != nil {
		maps.Copy(out.BrokerAddrs, g.addrs)
	}
	return out
}

// Members are all live brokers by name and id.
func (t *Table) Members() []Member {
	out := make([]Member, 0, len(t.members))
	for key, m := range t.members {
		out = append(out, Member{Cluster: key.cluster, Name: m.name, Addr: key.addr, ID: m.id, Conn: m.conn})
	}
	slices.SortFunc(out, func(a, b Member) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return out
}

// Topics are all topic names.
func (t *Table) Topics() []string { return sorted(slices.Collect(maps.Keys(t.topics))) }

// TopicsOfCluster are the topics with queues on a broker of a cluster.
func (t *Table) TopicsOfCluster(cluster string) []string {
	names := t.clusters[cluster]
	return t.topicsWhere(func(queues map[string]protocol.QueueData) bool {
		for name := range queues {
			if _, in := names[name]; in {
				return true
			}
		}
		return false
	})
}

// TopicsByFlag are the topics whose topicSysFlag satisfies want.
func (t *Table) TopicsByFlag(want func(sysFlag int32) bool) []string {
	return t.topicsWhere(func(queues map[string]protocol.QueueData) bool {
		for _, q := range queues {
			return want(q.TopicSysFlag) // every broker says the same of a topic
		}
		return false
	})
}

// SystemTopics are the names of clusters and groups, which are topics too, with the address of some broker.
func (t *Table) SystemTopics() (topics []string, addr string) {
	topics = slices.Collect(maps.Keys(t.clusters))
	for _, name := range slices.Sorted(maps.Keys(t.groups)) {
		topics = append(topics, name)
		if lowest, found := t.groups[name].minID(); found && addr == "" {
			addr = t.groups[name].addrs[lowest]
		}
	}
	slices.Sort(topics)
	return slices.Compact(topics), addr
}

func (t *Table) topicsWhere(want func(map[string]protocol.QueueData) bool) []string {
	var out []string
	for topic, queues := range t.topics {
		if want(queues) {
			out = append(out, topic)
		}
	}
	return sorted(out)
}

// sorted orders names; the answers that carry them have an empty list rather than none.
func sorted(names []string) []string {
	slices.Sort(names)
	if names == nil {
		return []string{}
	}
	return names
}
