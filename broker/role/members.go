package role

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/ha"
	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/protocol"
)

// watchedMembers are the brokers of this group that the NameServers call alive. Safe for concurrent use.
type watchedMembers struct {
	soon  chan struct{} // capacity 1: ask now
	first chan struct{} // closed once a NameServer has told

	mu    sync.Mutex
	known bool
	addrs map[int64]string
	hosts map[string]netip.Addr // of members whose address is a name
}

func (m *watchedMembers) init() {
	m.soon, m.first = make(chan struct{}, 1), make(chan struct{})
	m.hosts = map[string]netip.Addr{}
}

func (m *watchedMembers) set(addrs map[int64]string) {
	found := map[string]netip.Addr{}
	for _, addr := range addrs {
		if _, numeric := hostOf(addr); numeric {
			continue
		}
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			continue
		}
		if ips, err := net.LookupIP(host); err == nil && len(ips) > 0 { //nolint:noctx // the resolver has its own time limit
			if ip, ok := netip.AddrFromSlice(ips[0]); ok {
				found[addr] = ip.Unmap()
			}
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.known {
		close(m.first)
	}
	m.known, m.addrs, m.hosts = true, addrs, found
}

// alive counts the members, self included.
func (m *watchedMembers) alive(self ha.BrokerID) (n int, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n = len(m.addrs)
	if _, listed := m.addrs[int64(self)]; !listed {
		n++
	}
	return n, m.known
}

func (m *watchedMembers) addr(id int64) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.addrs[id]
}

// at returns the ids of the members that live at ip (replication.Members).
func (m *watchedMembers) at(ip netip.Addr) []ha.BrokerID {
	m.mu.Lock()
	defer m.mu.Unlock()
	var ids []ha.BrokerID
	for id, addr := range m.addrs {
		host, numeric := hostOf(addr)
		if !numeric {
			host = m.hosts[addr]
		}
		if host == ip {
			ids = append(ids, ha.BrokerID(id))
		}
	}
	slices.Sort(ids)
	return ids
}

// Others waits until a NameServer has told who is alive, and returns the other members; nothing when ctx ends first.
func (k *Keeper) Others(ctx context.Context) map[int64]string {
	select {
	case <-k.members.first:
	case <-ctx.Done():
		return nil
	}
	k.members.mu.Lock()
	defer k.members.mu.Unlock()
	others := maps.Clone(k.members.addrs)
	delete(others, int64(k.self.ID))
	return others
}

// Watch asks the NameServers who is alive, every syncBrokerMemberGroupPeriod and when one of them says that it changed,
// until ctx ends. With enableSlaveActingMaster it also tells them that this broker is.
func (k *Keeper) Watch(ctx context.Context) error {
	if len(k.deps.NameServers) == 0 {
		<-ctx.Done()
		return nil
	}
	ask := time.NewTicker(k.cfg.MemberPeriod)
	defer ask.Stop()
	beat := time.NewTicker(k.cfg.AliveInterval)
	defer beat.Stop()
	if !k.cfg.SlaveActing {
		beat.Stop()
	}
	failing := false
	for {
		if err := k.askMembers(ctx); err != nil && ctx.Err() == nil {
			if !failing {
				k.deps.Logger.Warn("members of the group are not known anew", "error", err)
			}
			failing = true
		} else {
			failing = false
		}
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				return nil
			case <-beat.C:
				k.beat(ctx)
			case <-ask.C:
				waiting = false
			case <-k.members.soon:
				waiting = false
			}
		}
	}
}

// askTimeout bounds one question to one peer.
const askTimeout = 3 * time.Second

func (k *Keeper) askMembers(ctx context.Context) error {
	var errs []error
	for _, addr := range k.deps.NameServers {
		group, err := k.membersFrom(ctx, addr)
		if err == nil {
			k.members.set(group)
			return nil
		}
		errs = append(errs, fmt.Errorf("NameServer %s: %w", addr, err))
	}
	return errors.Join(errs...)
}

func (k *Keeper) membersFrom(ctx context.Context, addr string) (map[int64]string, error) {
	answer, err := k.ask(ctx, addr, protocol.NewRequest(
		&protocol.GetBrokerMemberGroupRequest{ClusterName: k.self.Cluster, BrokerName: k.self.Broker}, nil))
	if err != nil {
		return nil, err
	}
	if answer.Code == int32(protocol.RequestCodeNotSupported) {
		return k.membersByRoute(ctx, addr)
	}
	if answer.Code != int32(protocol.Success) {
		return nil, &protocol.Error{Code: protocol.ResponseCode(answer.Code), Remark: string(answer.Remark)}
	}
	var body protocol.GetBrokerMemberGroupResponseBody
	if err := fastjson.Unmarshal(answer.Body, &body); err != nil {
		return nil, fmt.Errorf("member group: %w", err)
	}
	if body.BrokerMemberGroup == nil {
		return map[int64]string{}, nil
	}
	return body.BrokerMemberGroup.BrokerAddrs, nil
}

// memberTopic is the topic whose route names the members at a NameServer that does not know GET_BROKER_MEMBER_GROUP
// (TopicValidator.SYNC_BROKER_MEMBER_GROUP_PREFIX).
const memberTopic = "rmq_sys_SYNC_BROKER_MEMBER_"

func (k *Keeper) membersByRoute(ctx context.Context, addr string) (map[int64]string, error) {
	answer, err := k.ask(ctx, addr, protocol.NewRequest(&protocol.GetRouteInfoRequest{Topic: memberTopic + k.self.Broker}, nil))
	if err != nil {
		return nil, err
	}
	if answer.Code == int32(protocol.TopicNotExist) {
		return map[int64]string{}, nil
	}
	if answer.Code != int32(protocol.Success) {
		return nil, &protocol.Error{Code: protocol.ResponseCode(answer.Code), Remark: string(answer.Remark)}
	}
	var route protocol.TopicRouteData
	if err := fastjson.Unmarshal(answer.Body, &route); err != nil {
		return nil, fmt.Errorf("route of members: %w", err)
	}
	for _, b := range route.BrokerDatas {
		if b.BrokerName == k.self.Broker && b.Cluster == k.self.Cluster {
			return b.BrokerAddrs, nil
		}
	}
	return map[int64]string{}, nil
}

// beat tells every NameServer that this broker is alive (BROKER_HEARTBEAT). Nobody waits for it.
func (k *Keeper) beat(ctx context.Context) {
	id, timeout := int64(k.self.ID), k.cfg.AliveTimeout.Milliseconds()
	for _, addr := range k.deps.NameServers {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		err := k.deps.Invoker.InvokeOneway(ctx, addr, protocol.NewRequest(&protocol.BrokerHeartbeatRequest{
			ClusterName: k.self.Cluster, BrokerAddr: k.self.Addr, BrokerName: k.self.Broker, BrokerID: &id, HeartbeatTimeoutMills: &timeout,
		}, nil))
		cancel()
		if err != nil {
			k.deps.Logger.Debug("heartbeat not sent", "namesrv", addr, "error", err)
		}
	}
}

func (k *Keeper) ask(ctx context.Context, addr string, cmd *protocol.Command) (*protocol.Command, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return k.deps.Invoker.Invoke(ctx, addr, cmd)
}
