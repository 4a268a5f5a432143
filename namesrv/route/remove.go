package route

import (
	"cmp"
	"slices"
	"time"

	"github.com/quorate/quorate/protocol"
)

// Removed is what removing brokers did.
type Removed struct {
	Members []Member
	Notices []Notice
}

// Unregister removes a broker that says goodbye on connection conn. A goodbye that arrives on an older connection than the
// broker's present registration is of its predecessor, and ignored (RocketMQ has no such rule, and loses the new one).
func (t *Table) Unregister(cluster, name, addr string, conn uint64) Removed {
	m := t.members[memberKey{cluster, addr}]
	if m == nil || m.name != name || conn < m.conn {
		return Removed{}
	}
	return t.remove([]memberKey{{cluster, addr}})
}

// Closed removes the brokers that registered last on a connection which is no more.
func (t *Table) Closed(conn uint64) Removed {
	return t.removeIf(func(m *member) bool { return m.conn == conn })
}

// Expire removes brokers that were silent for longer than they said they would be.
func (t *Table) Expire(now time.Time) Removed {
	return t.removeIf(func(m *member) bool { return now.Sub(m.heard) > m.timeout })
}

func (t *Table) removeIf(gone func(*member) bool) Removed {
	var keys []memberKey
	for key, m := range t.members {
		if gone(m) {
			keys = append(keys, key)
		}
	}
	if keys == nil {
		return Removed{}
	}
	slices.SortFunc(keys, func(a, b memberKey) int {
		return cmp.Or(cmp.Compare(a.cluster, b.cluster), cmp.Compare(a.addr, b.addr))
	})
	return t.remove(keys)
}

// remove takes members out, then looks at each group they left once.
func (t *Table) remove(keys []memberKey) (out Removed) {
	type loss struct {
		g       *group
		offline string // the address that had the lowest id
	}
	var losses []loss
	for _, key := range keys {
		m := t.members[key]
		delete(t.members, key)
		out.Members = append(out.Members, Member{Cluster: key.cluster, Name: m.name, Addr: key.addr, ID: m.id, Conn: m.conn})
		g := t.groups[m.name]
		if g == nil || g.cluster != key.cluster {
			continue
		}
		lowest, _ := g.minID()
		held := false
		for id, addr := range g.addrs {
			if addr == key.addr {
				held = held || id == lowest
				delete(g.addrs, id)
			}
		}
		i := slices.IndexFunc(losses, func(l loss) bool { return l.g == g })
		if i < 0 {
			i = len(losses)
			losses = append(losses, loss{g: g})
		}
		if held {
			losses[i].offline = key.addr
		}
	}
	gone := map[string]bool{}    // groups without members
	reduced := map[string]bool{} // groups that an acting master leads now
	for _, l := range losses {
		switch _, hasMaster := l.g.addrs[MasterID]; {
		case len(l.g.addrs) == 0:
			delete(t.groups, l.g.name)
			t.leave(l.g)
			gone[l.g.name] = true
		case !hasMaster && l.g.actingMaster:
			reduced[l.g.name] = true
		}
		if len(l.g.addrs) > 0 && l.offline != "" && l.g.actingMaster {
			out.Notices = append(out.Notices, t.notice(l.g, l.offline, "")...)
		}
	}
	if len(gone)+len(reduced) > 0 {
		t.cleanTopics(gone, reduced)
	}
	return out
}

func (t *Table) cleanTopics(gone, reduced map[string]bool) {
	for topic, queues := range t.topics {
		for name, q := range queues {
			switch {
			case gone[name]:
				t.dropQueues(topic, name)
			case reduced[name]:
				q.Perm &^= protocol.PermWrite
				queues[name] = q
			}
		}
	}
}

// notice addresses all members when one went or when there is one only, else all but the new lowest.
func (t *Table) notice(g *group, offline, haAddr string) []Notice {
	lowest, _ := g.minID()
	n := Notice{MinID: lowest, MinAddr: g.addrs[lowest], Offline: offline, HAAddr: haAddr}
	for id, addr := range g.addrs {
		m := t.members[memberKey{g.cluster, addr}]
		if m == nil || offline == "" && len(g.addrs) > 1 && id == lowest {
			continue
		}
		n.To = append(n.To, Member{Cluster: g.cluster, Name: g.name, Addr: addr, ID: id, Conn: m.conn})
	}
	if n.To == nil {
		return nil
	}
	slices.SortFunc(n.To, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return []Notice{n}
}
