package namesrv

import (
	"context"
	"time"

	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/namesrv/route"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
)

func (s *Server) registerBroker(_ context.Context, c remoting.Call[protocol.RegisterBrokerRequest]) (*remoting.Reply, error) {
	h := c.Header
	if h.BodyCRC32 != nil && *h.BodyCRC32 != 0 && *h.BodyCRC32 != protocol.RegisterBodyCRC(c.Body) {
		return nil, protocol.Errorf(protocol.SystemError, "crc32 not match")
	}
	b := &protocol.RegisterBrokerBody{}
	if len(c.Body) > 0 {
		var err error
		if b, err = protocol.DecodeRegisterBroker(c.Body, h.Compressed, c.Command.Version); err != nil {
			return nil, protocol.Errorf(protocol.InvalidParameter, "%v", err)
		}
	}
	r := route.Registration{
		Cluster: h.ClusterName, Name: h.BrokerName, Addr: h.BrokerAddr, HAAddr: h.HAServerAddr, ID: h.BrokerID, Conn: c.Conn.ID(),
		ActingMaster: h.EnableActingMaster, Zone: c.Command.Ext.Get("__ZONE_NAME"), Filters: b.FilterServerList,
		Version: b.TopicConfigSerializeWrapper.DataVersion, Topics: b.TopicConfigSerializeWrapper.TopicConfigTable,
		Mappings: b.TopicConfigSerializeWrapper.TopicQueueMappingInfoMap,
	}
	if h.HeartbeatTimeoutMillis != nil && *h.HeartbeatTimeoutMillis > 0 {
		r.Timeout = time.Duration(min(*h.HeartbeatTimeoutMillis, time.Hour.Milliseconds())) * time.Millisecond
	}
	s.mu.Lock()
	out, err := s.table.Register(time.Now(), r)
	if err == nil && out.New {
		close(s.arrived)
		s.arrived = make(chan struct{})
	}
	s.mu.Unlock()
	who := s.logger.With("cluster", r.Cluster, "broker", r.Name, "broker_id", r.ID, "addr", r.Addr)
	switch {
	case err != nil:
		who.Warn("registration refused", "remote", c.Conn.RemoteAddr(), "error", err)
		return nil, err
	case out.Stale:
		who.Warn("registration ignored, a newer master has this id", "remote", c.Conn.RemoteAddr())
		return &remoting.Reply{Header: &protocol.RegisterBrokerResponse{}}, nil
	case out.New:
		who.Info("broker registered", "topics", len(r.Topics))
	}
	if out.LeftOut > 0 {
		who.Warn("topics left out of a registration: name not usable, or table full", "topics", out.LeftOut)
	}
	s.notify(out.Notices)
	reply := &remoting.Reply{Header: &protocol.RegisterBrokerResponse{HAServerAddr: out.MasterHA, MasterAddr: out.MasterAddr}}
	if table, found := s.kv.namespace(OrderTopicNamespace); found && s.settings.live.Load().ReturnOrderTopics {
		if reply.Body, err = fastjson.Marshal(protocol.KVTable{Table: table}); err != nil {
			return nil, err
		}
	}
	return reply, nil
}

func (s *Server) unregisterBroker(_ context.Context, c remoting.Call[protocol.UnRegisterBrokerRequest]) (*remoting.Reply, error) {
	s.mu.Lock()
	removed := s.table.Unregister(c.Header.ClusterName, c.Header.BrokerName, c.Header.BrokerAddr, c.Conn.ID())
	s.mu.Unlock()
	s.report(removed, "said goodbye")
	return &remoting.Reply{}, nil
}

// queryDataVersion is also a sign of life: brokers send it every second to NameServers of whose kind they are unsure.
func (s *Server) queryDataVersion(_ context.Context, c remoting.Call[protocol.QueryDataVersionRequest]) (*remoting.Reply, error) {
	var theirs protocol.DataVersion
	if err := fastjson.Unmarshal(c.Body, &theirs); err != nil {
		return nil, protocol.Errorf(protocol.InvalidParameter, "data version: %v", err)
	}
	s.mu.Lock()
	s.table.Heard(time.Now(), c.Header.ClusterName, c.Header.BrokerAddr)
	ours, known := s.table.Version(c.Header.ClusterName, c.Header.BrokerAddr)
	s.mu.Unlock()
	reply := &remoting.Reply{Header: &protocol.QueryDataVersionResponse{Changed: !known || ours != theirs}}
	if known {
		var err error
		if reply.Body, err = fastjson.Marshal(ours); err != nil {
			return nil, err
		}
	}
	return reply, nil
}

func (s *Server) brokerHeartbeat(_ context.Context, c remoting.Call[protocol.BrokerHeartbeatRequest]) (*remoting.Reply, error) {
	s.mu.Lock()
	s.table.Heard(time.Now(), c.Header.ClusterName, c.Header.BrokerAddr)
	s.mu.Unlock()
	return &remoting.Reply{}, nil
}

func (s *Server) getBrokerMemberGroup(_ context.Context, c remoting.Call[protocol.GetBrokerMemberGroupRequest]) (*remoting.Reply, error) {
	s.mu.RLock()
	group := s.table.Group(c.Header.ClusterName, c.Header.BrokerName)
	s.mu.RUnlock()
	return body(protocol.GetBrokerMemberGroupResponseBody{BrokerMemberGroup: &group})
}

func (s *Server) registerTopic(_ context.Context, c remoting.Call[protocol.RegisterTopicRequest]) (*remoting.Reply, error) {
	var data protocol.TopicRouteData
	if err := fastjson.Unmarshal(c.Body, &data); err != nil {
		return nil, protocol.Errorf(protocol.InvalidParameter, "route of the topic: %v", err)
	}
	s.mu.Lock()
	err := s.table.RegisterTopic(c.Header.Topic, data.QueueDatas)
	s.mu.Unlock()
	if err != nil {
		return nil, protocol.Errorf(protocol.SystemError, "%v", err)
	}
	return &remoting.Reply{}, nil
}
