package role

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/quorate/quorate/ha"
	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
	"github.com/quorate/quorate/replication"
)

// Ext fields of EXCHANGE_BROKER_HA_INFO by which our own agree on their dialect before a byte goes over the HA port
// (ADR 0012). RocketMQ ignores them, and answers without: then the HA connection is RocketMQ's.
const (
	keyDialect  = "quorateHa" // version of the dialect, of the asker and of the answerer
	keyBrokerID = "quorateBrokerId"
	keySession  = "haSession" // 16 hexadecimal digits

	dialectVersion = "1"
)

// Routes are the requests between brokers of a group and the one about it for operators (PROTOCOL §3.17).
func (k *Keeper) Routes() []remoting.Route {
	return []remoting.Route{
		remoting.Handle(remoting.Admin, k.exchange),
		remoting.Handle(remoting.Admin, k.status),
		remoting.Handle(remoting.Admin, k.minimumChanged),
	}
}

// exchange answers a replica's question where to follow, or takes note of a master that a peer names.
func (k *Keeper) exchange(_ context.Context, c remoting.Call[protocol.ExchangeHAInfoRequest]) (*remoting.Reply, error) {
	if c.Header.MasterHAAddress != "" {
		if k.self.Replica {
			k.told.Store(c.Header)
		}
		return &remoting.Reply{}, nil
	}
	if k.term == nil {
		return &remoting.Reply{}, nil
	}
	reply := &remoting.Reply{Header: &protocol.ExchangeHAInfoResponse{
		MasterHAAddress: k.self.HAAddr, MasterFlushOffset: &k.began, MasterAddress: k.self.Addr,
	}}
	if c.Command.Ext.Get(keyDialect) != dialectVersion || !k.self.Serve {
		return reply, nil
	}
	id, err := strconv.ParseInt(c.Command.Ext.Get(keyBrokerID), 10, 64)
	if err != nil || id < 0 || ha.BrokerID(id) == k.self.ID {
		return nil, protocol.Errorf(protocol.InvalidParameter, "%s=%q names no replica of this group", keyBrokerID, c.Command.Ext.Get(keyBrokerID))
	}
	session, err := newSession()
	if err != nil {
		return nil, err
	}
	k.server.Grant(session, ha.BrokerID(id))
	reply.Ext = reply.Ext.Add(keyDialect, dialectVersion).Add(keySession, fmt.Sprintf("%016x", session))
	return reply, nil
}

func newSession() (uint64, error) {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		return 0, fmt.Errorf("new session: %w", err)
	}
	return strconv.ParseUint(hex.EncodeToString(b[:]), 16, 64)
}

// errNoMaster is why a replica waits.
var errNoMaster = errors.New("the group has no master that any NameServer knows, and haMasterAddress is not set")

// upstream finds the master to follow, and agrees with it on the dialect.
func (k *Keeper) upstream(ctx context.Context) (replication.Upstream, error) {
	if len(k.deps.NameServers) > 0 && k.members.addr(0) == "" {
		_ = k.askMembers(ctx) // whoever else may know the master is asked below
	}
	_, haAddr := k.deps.Announced.Upstream()
	if told := k.told.Load(); told != nil {
		haAddr = told.MasterHAAddress
	}
	if k.cfg.MasterAddress != "" {
		haAddr = k.cfg.MasterAddress
	}
	master := k.MasterAddr()
	if master == "" {
		return k.unasked(haAddr)
	}
	req := protocol.NewRequest(&protocol.ExchangeHAInfoRequest{}, nil)
	req.Ext = req.Ext.Add(keyDialect, dialectVersion).Add(keyBrokerID, strconv.FormatInt(int64(k.self.ID), 10))
	answer, err := k.ask(ctx, master, req)
	if err != nil {
		return replication.Upstream{}, fmt.Errorf("ask the master %s: %w", master, err)
	}
	up := replication.Upstream{Addr: haAddr}
	switch protocol.ResponseCode(answer.Code) {
	case protocol.Success:
		var h protocol.ExchangeHAInfoResponse
		if err := protocol.DecodeHeader(answer.Ext, &h); err != nil {
			return up, fmt.Errorf("the master's answer: %w", err)
		}
		if k.cfg.MasterAddress == "" && h.MasterHAAddress != "" {
			up.Addr = h.MasterHAAddress
		}
		if answer.Ext.Get(keyDialect) == dialectVersion {
			up.Ours = true
			if up.Session, err = strconv.ParseUint(answer.Ext.Get(keySession), 16, 64); err != nil {
				return up, fmt.Errorf("the master's session: %w", err)
			}
		}
	case protocol.RequestCodeNotSupported: // RocketMQ 4
	default:
		return up, &protocol.Error{Code: protocol.ResponseCode(answer.Code), Remark: string(answer.Remark)}
	}
	if up.Addr == "" {
		return up, fmt.Errorf("the broker at %s says of no master where it replicates", master)
	}
	return up, nil
}

// unasked follows an HA address of which nobody knows the main address. A log of ours is not given to a peer that was
// not asked: RocketMQ's protocol would forget its history.
func (k *Keeper) unasked(haAddr string) (replication.Upstream, error) {
	switch {
	case haAddr == "":
		return replication.Upstream{}, errNoMaster
	case k.deps.Log.History().Last() > 0:
		return replication.Upstream{}, fmt.Errorf("%w: the master's main address is needed beside %s", errNoMaster, haAddr)
	}
	return replication.Upstream{Addr: haAddr}, nil
}

// minimumChanged is a NameServer's notice that the group's lowest member is another: who is alive is asked at once.
func (k *Keeper) minimumChanged(_ context.Context, _ remoting.Call[protocol.NotifyMinBrokerIDChangeRequest]) (*remoting.Reply, error) {
	select {
	case k.members.soon <- struct{}{}:
	default:
	}
	return &remoting.Reply{}, nil
}

// status answers GET_BROKER_HA_STATUS.
func (k *Keeper) status(context.Context, remoting.Call[protocol.GetBrokerHAStatusRequest]) (*remoting.Reply, error) {
	body, err := fastjson.Marshal(k.Status())
	return &remoting.Reply{Body: body}, err
}

// Status is the state of replication as mqadmin shows it (HARuntimeInfo).
func (k *Keeper) Status() protocol.HARuntimeInfo {
	end := k.deps.Log.Appended().Load()
	info := protocol.HARuntimeInfo{HAConnectionInfo: []protocol.HAConnectionRuntimeInfo{}}
	if k.follower != nil {
		s := k.follower.Status()
		info.HAClientRuntimeInfo = protocol.HAClientRuntimeInfo{
			MasterAddr: s.Addr, MaxOffset: end, LastReadTimestamp: millis(s.LastRead), LastWriteTimestamp: millis(s.LastWrite),
			MasterFlushOffset: k.follower.MasterEnd(), TransferredByteInSecond: s.BytesPerSecond,
		}
		return info
	}
	info.Master, info.MasterCommitLogMaxOffset = true, end
	gap := k.policy.Load().MaxGapNotInSync
	for _, s := range k.server.Status() {
		inSync := end-s.Received < gap
		if inSync {
			info.InSyncSlaveNums++
		}
		info.HAConnectionInfo = append(info.HAConnectionInfo, protocol.HAConnectionRuntimeInfo{
			Addr: s.Addr, SlaveAckOffset: s.Received, Diff: end - s.Received, InSync: inSync,
			TransferredByteInSecond: s.BytesPerSecond, TransferFromWhere: s.Next,
		})
	}
	return info
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
