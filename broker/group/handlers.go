package group

import (
	"context"
	"maps"
	"slices"

	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
)

// Progress forgets the consumer offsets of a group (offset.Table).
type Progress interface {
	RemoveGroup(group string)
}

// Meter forgets the counters of a group (meter.Table).
type Meter interface {
	ForgetGroup(group string)
}

// Handlers serve the requests about subscription groups.
type Handlers struct {
	Table    *Table
	Progress Progress
	Meter    Meter
}

// Routes of the requests about subscription groups.
func (h *Handlers) Routes() []remoting.Route {
	return []remoting.Route{
		remoting.Handle(remoting.Admin, h.update),
		remoting.Handle(remoting.Admin, h.updateList),
		remoting.Handle(remoting.Admin, h.remove),
		remoting.Handle(remoting.Admin, h.all),
		remoting.Handle(remoting.Query, h.one),
		remoting.Handle(remoting.Admin, h.forbidden),
	}
}

func (h *Handlers) update(_ context.Context, call remoting.Call[protocol.UpdateAndCreateSubscriptionGroupRequest]) (*remoting.Reply, error) {
	c, err := read(call.Body)
	if err != nil {
		return nil, protocol.Errorf(protocol.InvalidParameter, "subscription group: %v", err)
	}
	return h.put([]Config{c})
}

type listBody struct {
	Groups []fastjson.Raw `json:"groupConfigList"`
}

func (h *Handlers) updateList(_ context.Context, call remoting.Call[protocol.UpdateAndCreateSubscriptionGroupListRequest]) (*remoting.Reply, error) {
	var b listBody
	if err := fastjson.Unmarshal(call.Body, &b); err != nil {
		return nil, protocol.Errorf(protocol.InvalidParameter, "subscription groups: %v", err)
	}
	cs := make([]Config, len(b.Groups))
	for i, text := range b.Groups {
		var err error
		if cs[i], err = read(text); err != nil {
			return nil, protocol.Errorf(protocol.InvalidParameter, "subscription groups: %v", err)
		}
	}
	return h.put(cs)
}

func (h *Handlers) put(cs []Config) (*remoting.Reply, error) {
	for i := range cs {
		if err := check(&cs[i]); err != nil {
			return nil, protocol.Errorf(protocol.InvalidParameter, "%v", err)
		}
	}
	if err := h.Table.PutAll(cs); err != nil {
		return nil, err
	}
	return &remoting.Reply{}, nil
}

func (h *Handlers) remove(_ context.Context, call remoting.Call[protocol.DeleteSubscriptionGroupRequest]) (*remoting.Reply, error) {
	name := call.Header.GroupName
	if err := h.Table.Delete(name); err != nil {
		return nil, err
	}
	if call.Header.CleanOffset {
		h.Progress.RemoveGroup(name)
	}
	h.Meter.ForgetGroup(name)
	return &remoting.Reply{}, nil
}

// all is GET_ALL_SUBSCRIPTIONGROUP_CONFIG, in pages by name when the caller asks for them.
func (h *Handlers) all(_ context.Context, call remoting.Call[protocol.GetAllSubscriptionGroupRequest]) (*remoting.Reply, error) {
	s := h.Table.Snapshot()
	groups := s.Groups
	if r := call.Header; r.GroupSeq != nil && h.Table.live.Load().SplitMetadata {
		var caller protocol.DataVersion
		from := int(*r.GroupSeq)
		if r.DataVersion != "" {
			if err := fastjson.Unmarshal([]byte(r.DataVersion), &caller); err != nil {
				return nil, protocol.Errorf(protocol.InvalidParameter, "dataVersion: %v", err)
			}
			if caller != s.Version {
				from = 0
			}
		}
		limit := h.Table.live.Load().SplitSize
		if r.MaxGroupNum != nil && *r.MaxGroupNum > 0 {
			limit = min(limit, int(*r.MaxGroupNum))
		}
		groups = page(groups, from, limit)
	}
	return reply(document{DataVersion: s.Version, Forbidden: s.Forbidden, Groups: groups},
		&protocol.GetAllSubscriptionGroupResponse{TotalGroupNum: int32(len(s.Groups))})
}

func page(groups map[string]*Config, from, limit int) map[string]*Config {
	names := slices.Sorted(maps.Keys(groups))
	from = min(max(from, 0), len(names))
	out := map[string]*Config{}
	for _, name := range names[from:min(from+limit, len(names))] {
		out[name] = groups[name]
	}
	return out
}

func (h *Handlers) one(_ context.Context, call remoting.Call[protocol.GetSubscriptionGroupConfigRequest]) (*remoting.Reply, error) {
	c := h.Table.Lookup([]byte(call.Header.Group))
	if c == nil {
		return nil, protocol.Errorf(protocol.SubscriptionGroupNotExist, "subscription group not exist, %s", call.Header.Group)
	}
	return reply(c, nil)
}

// forbidden is UPDATE_AND_GET_GROUP_FORBIDDEN: without readable it only answers.
func (h *Handlers) forbidden(_ context.Context, call remoting.Call[protocol.UpdateGroupForbiddenRequest]) (*remoting.Reply, error) {
	r := call.Header
	if r.Readable != nil {
		if err := h.Table.SetReadForbidden(r.Group, r.Topic, !*r.Readable); err != nil {
			return nil, err
		}
	}
	readable := !h.Table.ReadForbidden([]byte(r.Group), []byte(r.Topic))
	return reply(protocol.GroupForbidden{Group: r.Group, Topic: r.Topic, Readable: &readable}, nil)
}

func reply(body, header any) (*remoting.Reply, error) {
	text, err := fastjson.Marshal(body)
	if err != nil {
		return nil, err
	}
	return &remoting.Reply{Header: header, Body: text}, nil
}
