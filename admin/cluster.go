package admin

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/quorate/quorate/protocol"
)

// MasterID is the broker id of a group's master.
const MasterID = 0

// Master is the address of a group's master, "" when there is none.
func Master(b protocol.BrokerData) string { return b.BrokerAddrs[MasterID] }

// Cluster is what a NameServer knows of brokers.
type Cluster struct{ protocol.ClusterInfo }

// Names are the cluster names, sorted.
func (c Cluster) Names() []string { return slices.Sorted(maps.Keys(c.ClusterAddrTable)) }

// Of are the broker groups of a cluster, sorted by name.
func (c Cluster) Of(cluster string) []protocol.BrokerData {
	var all []protocol.BrokerData
	for _, name := range slices.Sorted(slices.Values(c.ClusterAddrTable[cluster])) {
		if b, ok := c.BrokerAddrTable[name]; ok {
			all = append(all, b)
		}
	}
	return all
}

// All are all broker groups, sorted by name.
func (c Cluster) All() []protocol.BrokerData {
	var all []protocol.BrokerData
	for _, name := range slices.Sorted(maps.Keys(c.BrokerAddrTable)) {
		all = append(all, c.BrokerAddrTable[name])
	}
	return all
}

// Cluster asks a NameServer for all brokers.
func (c *Client) Cluster(ctx context.Context) (Cluster, error) {
	var info Cluster
	err := c.ask(ctx, &protocol.GetBrokerClusterInfoRequest{}, nil, &info.ClusterInfo)
	return info, err
}

// Masters are the master addresses of a cluster ("" is every cluster).
func (c *Client) Masters(ctx context.Context, cluster string) ([]string, error) {
	info, err := c.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	brokers := info.All()
	if cluster != "" {
		if _, known := info.ClusterAddrTable[cluster]; !known {
			return nil, fmt.Errorf("cluster %q is unknown; there are %v", cluster, info.Names())
		}
		brokers = info.Of(cluster)
	}
	var addrs []string
	for _, b := range brokers {
		if addr := Master(b); addr != "" {
			addrs = append(addrs, addr)
		}
	}
	if len(addrs) == 0 {
		return nil, fmt.Errorf("NameServer %v knows no broker. Is one running, and is its namesrvAddr this one?", c.nameServers)
	}
	return addrs, nil
}

// Route asks a NameServer for a topic's route.
func (c *Client) Route(ctx context.Context, topic string) (protocol.TopicRouteData, error) {
	var r protocol.TopicRouteData
	err := c.ask(ctx, &protocol.GetRouteInfoRequest{Topic: topic}, nil, &r)
	if Is(err, protocol.TopicNotExist) {
		return r, fmt.Errorf("topic %q does not exist, or no broker that has it is registered: %w", topic, err)
	}
	slices.SortFunc(r.BrokerDatas, func(a, b protocol.BrokerData) int { return compareNames(a.BrokerName, b.BrokerName) })
	slices.SortFunc(r.QueueDatas, func(a, b protocol.QueueData) int { return compareNames(a.BrokerName, b.BrokerName) })
	return r, err
}

// WipeWrite takes the write permission of a broker's queues away at every NameServer and returns how many topics changed at
// the last one; AddWrite gives it back.
func (c *Client) WipeWrite(ctx context.Context, nameServer, broker string) (int32, error) {
	var h protocol.WipeWritePermOfBrokerResponse
	err := c.call(ctx, nameServer, &protocol.WipeWritePermOfBrokerRequest{BrokerName: broker}, nil, &h, nil)
	return h.WipeTopicCount, err
}

// AddWrite is the inverse of WipeWrite.
func (c *Client) AddWrite(ctx context.Context, nameServer, broker string) (int32, error) {
	var h protocol.AddWritePermOfBrokerResponse
	err := c.call(ctx, nameServer, &protocol.AddWritePermOfBrokerRequest{BrokerName: broker}, nil, &h, nil)
	return h.AddTopicCount, err
}

// PutKV stores a pair in a namespace of every NameServer; DeleteKV removes it.
func (c *Client) PutKV(ctx context.Context, namespace, key, value string) error {
	return c.tell(ctx, &protocol.PutKVConfigRequest{Namespace: namespace, Key: key, Value: value}, nil)
}

// DeleteKV removes a pair from every NameServer.
func (c *Client) DeleteKV(ctx context.Context, namespace, key string) error {
	return c.tell(ctx, &protocol.DeleteKVConfigRequest{Namespace: namespace, Key: key}, nil)
}

// KV reads a pair.
func (c *Client) KV(ctx context.Context, namespace, key string) (string, error) {
	var h protocol.GetKVConfigResponse
	err := c.ask(ctx, &protocol.GetKVConfigRequest{Namespace: namespace, Key: key}, &h, nil)
	return h.Value, err
}

// KVs lists the pairs of a namespace.
func (c *Client) KVs(ctx context.Context, namespace string) (map[string]string, error) {
	var body protocol.KVTable
	err := c.ask(ctx, &protocol.GetKVListByNamespaceRequest{Namespace: namespace}, nil, &body)
	return body.Table, err
}

// NameServerConfig reads the configuration of one NameServer as `key=value` lines.
func (c *Client) NameServerConfig(ctx context.Context, nameServer string) (string, error) {
	text, err := c.raw(ctx, nameServer, &protocol.GetNameServerConfigRequest{}, nil, nil)
	return string(text), err
}

// SetNameServerConfig changes one key at one NameServer.
func (c *Client) SetNameServerConfig(ctx context.Context, nameServer, key, value string) error {
	return c.call(ctx, nameServer, &protocol.UpdateNameServerConfigRequest{}, []byte(key+"="+value+"\n"), nil, nil)
}
