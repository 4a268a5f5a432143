// Package route holds what a NameServer knows: which brokers live where, and which topics they serve. It is pure: time is
// an argument, notices to send are return values, and connections are numbers. Requests, sockets and clocks are the
// business of package namesrv, which also serializes access: a Table is not safe for concurrent use, but any number of
// readers may share it between writes.
//
// The rules are those of RocketMQ's RouteInfoManager, except where a comment says otherwise.
package route

import (
	"errors"
	"time"

	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/protocol"
)

// MasterID is the broker id of a group's master.
const MasterID = 0

// TimeoutDefault is how long a broker that names no timeout may be silent.
const TimeoutDefault = 120 * time.Second

// Why a registration is refused.
var (
	ErrSingleTopic = errors.New("the first registration of a broker may not be of one topic alone")
	ErrName        = errors.New("not a usable name or address")
	ErrFull        = errors.New("the table is full")
	ErrTaken       = errors.New("the broker name belongs to another cluster")
)

// Config has the switches and bounds of a table.
type Config struct {
	SupportActingMaster bool // supportActingMaster: routes of groups without a master name the acting one
	DeleteAbsentTopics  bool // deleteTopicWithBrokerRegistration: a registration removes topics it does not name
	MembersMax          int  // brokers alive, of all groups
	TopicsMax           int  // topics known; beyond it new ones are left out of registrations
}

// Table is the routing table.
type Table struct {
	cfg      Config
	clusters map[string]map[string]struct{} // broker names by cluster
	groups   map[string]*group              // by broker name
	topics   map[string]map[string]protocol.QueueData
	mappings map[string]map[string]fastjson.Raw // static topic mappings by topic and broker name
	members  map[memberKey]*member
}

// group is the brokers of one name.
type group struct {
	cluster      string
	name         string
	zone         string
	actingMaster bool
	addrs        map[int64]string
}

func (g *group) minID() (lowest int64, found bool) {
	for id := range g.addrs {
		if !found || id < lowest {
			lowest, found = id, true
		}
	}
	return lowest, found
}

// memberKey identifies a live broker, as RocketMQ's BrokerAddrInfo.
type memberKey struct{ cluster, addr string }

// member is a live broker.
type member struct {
	name    string
	id      int64
	conn    uint64
	haAddr  string
	heard   time.Time
	timeout time.Duration
	version protocol.DataVersion
	filters []string
}

// New returns an empty table.
func New(cfg Config) *Table {
	return &Table{
		cfg: cfg, clusters: map[string]map[string]struct{}{}, groups: map[string]*group{},
		topics: map[string]map[string]protocol.QueueData{}, mappings: map[string]map[string]fastjson.Raw{},
		members: map[memberKey]*member{},
	}
}

// Reconfigure changes the switches; what is in the table stays.
func (t *Table) Reconfigure(cfg Config) { t.cfg = cfg }

// Registration is what a broker says of itself.
type Registration struct {
	Cluster      string
	Name         string
	Addr         string // host:port that clients connect to
	HAAddr       string
	ID           int64
	Conn         uint64        // the connection it came on; a later connection has a higher number
	Timeout      time.Duration // how long the broker may be silent; 0 is TimeoutDefault
	ActingMaster *bool         // nil: a broker before RocketMQ 5
	Zone         string
	Version      protocol.DataVersion
	Topics       map[string]protocol.TopicConfig
	Mappings     map[string]fastjson.Raw
	Filters      []string
}

// Registered is the outcome of a registration.
type Registered struct {
	Stale      bool   // a newer master holds the id: the table is as it was
	MasterAddr string // of the group, for a replica whose master is alive
	MasterHA   string
	New        bool // the broker was not known by this id before
	LeftOut    int  // topics whose names are not usable or that found the table full
	Notices    []Notice
}

// Notice tells brokers that the lowest id of their group is another one now (NOTIFY_MIN_BROKER_ID_CHANGE).
type Notice struct {
	To      []Member
	MinID   int64
	MinAddr string
	Offline string // the address of the broker that went, or ""
	HAAddr  string // the HA address of the broker that came, or ""
}

// Member names a live broker and the connection it registered on.
type Member struct {
	Cluster string
	Name    string
	Addr    string
	ID      int64
	Conn    uint64
}

// Register takes a registration. An error leaves the table as it was.
func (t *Table) Register(now time.Time, r Registration) (Registered, error) {
	if err := t.admit(r); err != nil {
		return Registered{}, err
	}
	g := t.groups[r.Name]
	if g == nil {
		g = &group{name: r.Name, addrs: map[int64]string{}}
	}
	if t.heldByNewer(g, r) {
		return Registered{Stale: true}, nil
	}
	if g.addrs[r.ID] == "" && len(r.Topics) == 1 {
		// Such a registration follows the creation of a topic. Taken as the first one, as after a restart of the NameServer,
		// it would hide all other topics of the broker until its version changes again.
		return Registered{}, ErrSingleTopic
	}
	out := Registered{Notices: t.forget(r)}
	t.groups[r.Name] = g // forget may have emptied and so removed it
	t.join(g, r.Cluster)
	g.actingMaster, g.zone = r.ActingMaster != nil && *r.ActingMaster, r.Zone
	before, _ := g.minID()          // 0 while the group is empty, so the first member is no change
	for id, addr := range g.addrs { // a broker that changed its id
		if addr == r.Addr && id != r.ID {
			delete(g.addrs, id)
		}
	}
	out.New = g.addrs[r.ID] == ""
	g.addrs[r.ID] = r.Addr
	lowest, _ := g.minID()
	known := t.members[memberKey{r.Cluster, r.Addr}]
	prime := r.ActingMaster != nil && r.ID != MasterID && r.ID == lowest
	if r.ID == MasterID || prime {
		out.LeftOut = t.takeTopics(g, r, out.New || known == nil || known.version != r.Version, prime && g.actingMaster)
	}
	timeout := r.Timeout
	if timeout <= 0 {
		timeout = TimeoutDefault
	}
	t.members[memberKey{r.Cluster, r.Addr}] = &member{
		name: r.Name, id: r.ID, conn: r.Conn, haAddr: r.HAAddr, heard: now, timeout: timeout, version: r.Version, filters: r.Filters,
	}
	if r.ID != MasterID {
		if master := t.members[memberKey{r.Cluster, g.addrs[MasterID]}]; master != nil {
			out.MasterAddr, out.MasterHA = g.addrs[MasterID], master.haAddr
		}
	}
	if r.ID < before {
		out.Notices = append(out.Notices, t.notice(g, "", r.HAAddr)...)
	}
	return out, nil
}

// forget removes what the same address was before under another cluster or broker name, as after a restart whose old
// connection nobody has seen close.
func (t *Table) forget(r Registration) []Notice {
	var old []memberKey
	if m := t.members[memberKey{r.Cluster, r.Addr}]; m != nil && m.name != r.Name {
		old = append(old, memberKey{r.Cluster, r.Addr})
	}
	if g := t.groups[r.Name]; g != nil && g.cluster != r.Cluster && t.members[memberKey{g.cluster, r.Addr}] != nil {
		old = append(old, memberKey{g.cluster, r.Addr})
	}
	return t.remove(old).Notices
}

// admit refuses what must not get into the table.
func (t *Table) admit(r Registration) error {
	if !ValidName(r.Cluster) || !ValidName(r.Name) || !ValidAddr(r.Addr) || r.HAAddr != "" && !ValidAddr(r.HAAddr) || r.ID < 0 ||
		r.Zone != "" && !ValidName(r.Zone) || len(r.Filters) > filtersMax {
		return ErrName
	}
	for _, f := range r.Filters {
		if !ValidAddr(f) {
			return ErrName
		}
	}
	if g := t.groups[r.Name]; g != nil && g.cluster != r.Cluster {
		for _, addr := range g.addrs { // RocketMQ mixes the two; the members of one would then never leave
			if addr != r.Addr {
				return ErrTaken
			}
		}
	}
	if _, known := t.members[memberKey{r.Cluster, r.Addr}]; !known && len(t.members) >= t.cfg.MembersMax {
		return ErrFull
	}
	return nil
}

// heldByNewer reports whether the id belongs to another address under a higher master epoch (stateVersion).
func (t *Table) heldByNewer(g *group, r Registration) bool {
	holder := g.addrs[r.ID]
	if holder == "" || holder == r.Addr {
		return false
	}
	m := t.members[memberKey{r.Cluster, holder}]
	return m != nil && m.version.StateVersion > r.Version.StateVersion
}

// join puts a group into its cluster.
func (t *Table) join(g *group, cluster string) {
	g.cluster = cluster
	if t.clusters[cluster] == nil {
		t.clusters[cluster] = map[string]struct{}{}
	}
	t.clusters[cluster][g.name] = struct{}{}
}

func (t *Table) leave(g *group) {
	delete(t.clusters[g.cluster], g.name)
	if len(t.clusters[g.cluster]) == 0 {
		delete(t.clusters, g.cluster)
	}
}

// takeTopics makes the topics of a registration those of the group; wipe takes their write bit away, since producers may
// not use an acting master. It returns how many were left out.
func (t *Table) takeTopics(g *group, r Registration, changed, wipe bool) (leftOut int) {
	if t.cfg.DeleteAbsentTopics && len(r.Mappings) == 0 {
		t.dropAbsent(g, r.Topics)
	}
	for topic, c := range r.Topics {
		if _, has := t.topics[topic][g.name]; has && !changed {
			continue
		}
		if !ValidName(topic) || t.topics[topic] == nil && len(t.topics) >= t.cfg.TopicsMax {
			leftOut++
			continue
		}
		q := protocol.QueueData{
			BrokerName: g.name, ReadQueueNums: c.ReadQueueNums, WriteQueueNums: c.WriteQueueNums, Perm: c.Perm, TopicSysFlag: c.TopicSysFlag,
		}
		if wipe {
			q.Perm &^= protocol.PermWrite
		}
		t.putQueues(topic, q)
	}
	if !changed {
		return leftOut
	}
	for topic, mapping := range r.Mappings {
		if t.topics[topic] == nil {
			continue
		}
		if t.mappings[topic] == nil {
			t.mappings[topic] = map[string]fastjson.Raw{}
		}
		t.mappings[topic][g.name] = mapping
	}
	return leftOut
}

func (t *Table) dropAbsent(g *group, present map[string]protocol.TopicConfig) {
	for topic, queues := range t.topics {
		_, mine := queues[g.name]
		if _, still := present[topic]; mine && !still {
			t.dropQueues(topic, g.name)
		}
	}
}

func (t *Table) putQueues(topic string, q protocol.QueueData) {
	if t.topics[topic] == nil {
		t.topics[topic] = map[string]protocol.QueueData{}
	}
	t.topics[topic][q.BrokerName] = q
}

func (t *Table) dropQueues(topic, name string) {
	delete(t.topics[topic], name)
	delete(t.mappings[topic], name)
	if len(t.topics[topic]) == 0 {
		delete(t.topics, topic)
	}
	if len(t.mappings[topic]) == 0 {
		delete(t.mappings, topic)
	}
}

// Heard notes a sign of life; false when the broker is not known.
func (t *Table) Heard(now time.Time, cluster, addr string) bool {
	m := t.members[memberKey{cluster, addr}]
	if m != nil {
		m.heard = now
	}
	return m != nil
}

// Version is the data version a broker registered last.
func (t *Table) Version(cluster, addr string) (protocol.DataVersion, bool) {
	m := t.members[memberKey{cluster, addr}]
	if m == nil {
		return protocol.DataVersion{}, false
	}
	return m.version, true
}
