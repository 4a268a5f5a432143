package namesrv

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/namesrv/route"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
)

// Routes are all requests of a NameServer.
func (s *Server) Routes() []remoting.Route {
	return []remoting.Route{
		ordered(s.registerBroker),
		ordered(s.unregisterBroker),
		ordered(s.queryDataVersion),
		ordered(s.brokerHeartbeat),
		remoting.Handle(remoting.Query, s.getBrokerMemberGroup),
		remoting.Handle(remoting.Query, s.registerTopic),

		remoting.Handle(remoting.Query, s.getRouteInfo),
		remoting.Handle(remoting.Query, s.getClusterInfo),

		remoting.Handle(remoting.Admin, s.getAllTopics),
		remoting.Handle(remoting.Admin, s.getTopicsByCluster),
		remoting.Handle(remoting.Admin, s.getSystemTopics),
		remoting.Handle(remoting.Admin, s.getUnitTopics),
		remoting.Handle(remoting.Admin, s.getUnitSubTopics),
		remoting.Handle(remoting.Admin, s.getUnitSubUnunitTopics),
		remoting.Handle(remoting.Admin, s.deleteTopic),
		remoting.Handle(remoting.Admin, s.wipeWritePerm),
		remoting.Handle(remoting.Admin, s.addWritePerm),

		remoting.Handle(remoting.Admin, s.putKV),
		remoting.Handle(remoting.Admin, s.getKV),
		remoting.Handle(remoting.Admin, s.deleteKV),
		remoting.Handle(remoting.Admin, s.getKVList),
		remoting.Handle(remoting.Admin, s.updateConfig),
		remoting.Handle(remoting.Admin, s.getConfig),
	}
}

// ordered makes a route whose requests are served in the order in which a connection sent them: of two registrations the
// later one must win, and a goodbye must not overtake one. Its handler does not block; it gets a borrowed body.
func ordered[H any, P interface {
	*H
	protocol.Request
}](fn func(context.Context, remoting.Call[H]) (*remoting.Reply, error)) remoting.Route {
	return remoting.Inline(P(new(H)).Code(), remoting.Query, func(x *remoting.Exchange) {
		h := new(H)
		err := protocol.DecodeHeader(x.Command.Ext, h)
		var reply *remoting.Reply
		if err == nil {
			reply, err = fn(x.Conn.Context(), remoting.Call[H]{
				Header: h, Body: x.Command.Body, Conn: x.Conn, Command: &x.Command, Received: x.Received,
			})
		}
		if err != nil {
			x.RespondError(err)
			return
		}
		x.Respond(reply)
	})
}

// body answers with a value as standard JSON, which Java and Go clients of every version read.
func body(v any) (*remoting.Reply, error) {
	text, err := fastjson.Marshal(v)
	if err != nil {
		return nil, err
	}
	return &remoting.Reply{Body: text}, nil
}

// getRouteInfo answers clients before 4.9.4 with the dialect, as the product does.
func (s *Server) getRouteInfo(_ context.Context, c remoting.Call[protocol.GetRouteInfoRequest]) (*remoting.Reply, error) {
	live := s.settings.live.Load()
	s.mu.RLock()
	data, found := s.table.Route(c.Header.Topic)
	started := s.started
	s.mu.RUnlock()
	if live.NeedWaitForService && time.Since(started) < live.WaitForService {
		return nil, protocol.Errorf(protocol.SystemError, "name server not ready")
	}
	if !found {
		return nil, protocol.Errorf(protocol.TopicNotExist, "No topic route info in name server for the topic: %s", c.Header.Topic)
	}
	if live.OrderMessageEnable {
		data.OrderTopicConf, _ = s.kv.get(OrderTopicNamespace, c.Header.Topic)
	}
	if zone := c.Command.Ext.Get("__ZONE_NAME"); zone != "" && c.Command.Ext.Get("__ZONE_MODE") == "true" {
		keepZone(data, zone)
	}
	if standard := c.Header.AcceptStandardJSONOnly; c.Command.Version < protocol.Version4_9_4 && (standard == nil || !*standard) {
		text, err := fastjson.MarshalDialect(data)
		return &remoting.Reply{Body: text}, err
	}
	return body(data)
}

// keepZone leaves the brokers of one zone, and those without a master, whose replicas serve every zone (ZoneRouteRPCHook).
func keepZone(data *protocol.TopicRouteData, zone string) {
	kept := map[string]bool{}
	data.BrokerDatas = slices.DeleteFunc(data.BrokerDatas, func(b protocol.BrokerData) bool {
		_, hasMaster := b.BrokerAddrs[route.MasterID]
		if hasMaster && !strings.EqualFold(b.ZoneName, zone) {
			for _, addr := range b.BrokerAddrs {
				delete(data.FilterServerTable, addr)
			}
			return true
		}
		kept[b.BrokerName] = true
		return false
	})
	data.QueueDatas = slices.DeleteFunc(data.QueueDatas, func(q protocol.QueueData) bool { return !kept[q.BrokerName] })
}

func (s *Server) getClusterInfo(context.Context, remoting.Call[protocol.GetBrokerClusterInfoRequest]) (*remoting.Reply, error) {
	s.mu.RLock()
	info := s.table.ClusterInfo()
	s.mu.RUnlock()
	return body(info)
}

func (s *Server) topicList(topics func(*route.Table) []string) (*remoting.Reply, error) {
	s.mu.RLock()
	list := topics(s.table)
	s.mu.RUnlock()
	return body(protocol.TopicList{TopicList: list})
}

func (s *Server) getAllTopics(context.Context, remoting.Call[protocol.GetAllTopicListFromNameServerRequest]) (*remoting.Reply, error) {
	if !s.settings.live.Load().EnableAllTopicList {
		return nil, protocol.Errorf(protocol.SystemError, "disable")
	}
	return s.topicList((*route.Table).Topics)
}

func (s *Server) getTopicsByCluster(_ context.Context, c remoting.Call[protocol.GetTopicsByClusterRequest]) (*remoting.Reply, error) {
	if !s.settings.live.Load().EnableTopicList {
		return nil, protocol.Errorf(protocol.SystemError, "disable")
	}
	return s.topicList(func(t *route.Table) []string { return t.TopicsOfCluster(c.Header.Cluster) })
}

func (s *Server) getSystemTopics(context.Context, remoting.Call[protocol.GetSystemTopicListFromNameServerRequest]) (*remoting.Reply, error) {
	s.mu.RLock()
	topics, addr := s.table.SystemTopics()
	s.mu.RUnlock()
	return body(protocol.TopicList{TopicList: append([]string{}, topics...), BrokerAddr: addr})
}

func (s *Server) byFlag(want func(int32) bool) (*remoting.Reply, error) {
	if !s.settings.live.Load().EnableTopicList {
		return nil, protocol.Errorf(protocol.SystemError, "disable")
	}
	return s.topicList(func(t *route.Table) []string { return t.TopicsByFlag(want) })
}

func (s *Server) getUnitTopics(context.Context, remoting.Call[protocol.GetUnitTopicListRequest]) (*remoting.Reply, error) {
	return s.byFlag(func(f int32) bool { return f&protocol.TopicUnit != 0 })
}

func (s *Server) getUnitSubTopics(context.Context, remoting.Call[protocol.GetHasUnitSubTopicListRequest]) (*remoting.Reply, error) {
	return s.byFlag(func(f int32) bool { return f&protocol.TopicUnitSub != 0 })
}

func (s *Server) getUnitSubUnunitTopics(context.Context, remoting.Call[protocol.GetHasUnitSubUnunitTopicListRequest]) (*remoting.Reply, error) {
	return s.byFlag(func(f int32) bool { return f&protocol.TopicUnit == 0 && f&protocol.TopicUnitSub != 0 })
}

func (s *Server) deleteTopic(_ context.Context, c remoting.Call[protocol.DeleteTopicFromNamesrvRequest]) (*remoting.Reply, error) {
	s.mu.Lock()
	s.table.DeleteTopic(c.Header.Topic, c.Header.ClusterName)
	s.mu.Unlock()
	s.logger.Info("topic removed by request", "topic", c.Header.Topic, "cluster", c.Header.ClusterName, "remote", c.Conn.RemoteAddr())
	return &remoting.Reply{}, nil
}

func (s *Server) wipeWritePerm(_ context.Context, c remoting.Call[protocol.WipeWritePermOfBrokerRequest]) (*remoting.Reply, error) {
	s.mu.Lock()
	n := s.table.WipeWrite(c.Header.BrokerName)
	s.mu.Unlock()
	s.logger.Info("write permission taken by request", "broker", c.Header.BrokerName, "topics", n, "remote", c.Conn.RemoteAddr())
	return &remoting.Reply{Header: &protocol.WipeWritePermOfBrokerResponse{WipeTopicCount: int32(n)}}, nil
}

func (s *Server) addWritePerm(_ context.Context, c remoting.Call[protocol.AddWritePermOfBrokerRequest]) (*remoting.Reply, error) {
	s.mu.Lock()
	n := s.table.AddWrite(c.Header.BrokerName)
	s.mu.Unlock()
	s.logger.Info("write permission given by request", "broker", c.Header.BrokerName, "topics", n, "remote", c.Conn.RemoteAddr())
	return &remoting.Reply{Header: &protocol.AddWritePermOfBrokerResponse{AddTopicCount: int32(n)}}, nil
}

func (s *Server) putKV(ctx context.Context, c remoting.Call[protocol.PutKVConfigRequest]) (*remoting.Reply, error) {
	if err := s.kv.put(ctx, c.Header.Namespace, c.Header.Key, c.Header.Value); err != nil {
		return nil, err
	}
	return &remoting.Reply{}, nil
}

func (s *Server) getKV(_ context.Context, c remoting.Call[protocol.GetKVConfigRequest]) (*remoting.Reply, error) {
	value, found := s.kv.get(c.Header.Namespace, c.Header.Key)
	if !found {
		return nil, protocol.Errorf(protocol.QueryNotFound, "No config item, Namespace: %s Key: %s", c.Header.Namespace, c.Header.Key)
	}
	return &remoting.Reply{Header: &protocol.GetKVConfigResponse{Value: value}}, nil
}

func (s *Server) deleteKV(ctx context.Context, c remoting.Call[protocol.DeleteKVConfigRequest]) (*remoting.Reply, error) {
	if err := s.kv.remove(ctx, c.Header.Namespace, c.Header.Key); err != nil {
		return nil, err
	}
	return &remoting.Reply{}, nil
}

func (s *Server) getKVList(_ context.Context, c remoting.Call[protocol.GetKVListByNamespaceRequest]) (*remoting.Reply, error) {
	table, found := s.kv.namespace(c.Header.Namespace)
	if !found {
		return nil, protocol.Errorf(protocol.QueryNotFound, "No config item, Namespace: %s", c.Header.Namespace)
	}
	return body(protocol.KVTable{Table: table})
}

func (s *Server) updateConfig(ctx context.Context, c remoting.Call[protocol.UpdateNameServerConfigRequest]) (*remoting.Reply, error) {
	live, err := s.settings.update(ctx, s.fs, c.Body)
	if err != nil {
		s.logger.Warn("change of the configuration refused", "remote", c.Conn.RemoteAddr(), "error", err)
		return nil, err
	}
	s.mu.Lock()
	s.table.Reconfigure(tableConfig(s.settings.fixed, live))
	s.mu.Unlock()
	select {
	case s.rescan <- struct{}{}:
	default: // one is waiting
	}
	s.logger.Info("configuration changed by request", "remote", c.Conn.RemoteAddr(), "keys", bytes.Count(c.Body, []byte("=")))
	return &remoting.Reply{}, nil
}

func (s *Server) getConfig(context.Context, remoting.Call[protocol.GetNameServerConfigRequest]) (*remoting.Reply, error) {
	text, err := s.settings.text()
	if err != nil {
		return nil, err
	}
	return &remoting.Reply{Body: text}, nil
}
