package mqadmin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/admin"
	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/internal/javaopt"
	"github.com/quorate/quorate/protocol"
)

// orderNamespace is where the NameServer keeps the order of topics (NamesrvUtil.NAMESPACE_ORDER_TOPIC_CONFIG).
const orderNamespace = "ORDER_TOPIC_CONFIG"

func topicCommands() []command {
	topic := required("t", "topic", "topic name")
	return []command{
		{"updateTopic", "Create a topic or change it", append(place("masters"), topic, arg("a", "attributes", "+a=b,+c=d,-e"),
			arg("r", "readQueueNums", "queues to read"), arg("w", "writeQueueNums", "queues to write"),
			arg("p", "perm", "2 write, 4 read, 6 both"), arg("o", "order", "true or false"), arg("u", "unit", "true or false"),
			arg("s", "hasUnitSub", "true or false")), updateTopic},
		{"updateTopicList", "Create or change the topics of a file", append(place("masters"), required("f", "filename", "JSON list of topic configurations")), updateTopicList},
		{"deleteTopic", "Delete a topic from brokers and NameServers", javaopt.Options{topic, required("c", "clusterName", "cluster")}, deleteTopic},
		{"updateTopicPerm", "Change a topic's permission", append(place("masters"), topic, required("p", "perm", "2 write, 4 read, 6 both")), updateTopicPerm},
		{"topicRoute", "Show a topic's route", javaopt.Options{topic, {Short: "l", Long: "list", Text: "as a list"}}, topicRoute},
		{"topicStatus", "Show a topic's queues", javaopt.Options{topic, arg("c", "cluster", "cluster")}, topicStatus},
		{"topicClusterList", "List the clusters of a topic", javaopt.Options{topic}, topicClusterList},
		{"topicList", "List all topics", javaopt.Options{{Short: "c", Long: "clusterModel", Text: "with cluster and groups"}}, topicList},
		{"updateOrderConf", "Read, set or delete a topic's order", javaopt.Options{topic, arg("v", "orderConf", "broker:queues;…"), required("m", "method", "put, get or delete")}, updateOrderConf},
		{"allocateMQ", "Divide a topic's queues between members", javaopt.Options{topic, required("i", "ipList", "members, comma between them")}, allocateMQ},
	}
}

// Bits of topicSysFlag.
const (
	unitFlag    = protocol.TopicUnit
	unitSubFlag = protocol.TopicUnitSub
)

func (c *call) topicConfig() (protocol.TopicConfig, error) {
	t := admin.NewTopic(c.v.Get("topic", ""))
	var errs [6]error
	var unit, unitSub bool
	t.ReadQueueNums, errs[0] = number(c, "readQueueNums", t.ReadQueueNums)
	t.WriteQueueNums, errs[1] = number(c, "writeQueueNums", t.WriteQueueNums)
	t.Perm, errs[2] = number(c, "perm", t.Perm)
	t.Order, errs[3] = c.flag("order", false)
	unit, errs[4] = c.flag("unit", false)
	unitSub, errs[5] = c.flag("hasUnitSub", false)
	if unit {
		t.TopicSysFlag |= unitFlag
	}
	if unitSub {
		t.TopicSysFlag |= unitSubFlag
	}
	return t, errors.Join(errs[:]...)
}

func updateTopic(ctx context.Context, c *call) error {
	t, err := c.topicConfig()
	if err != nil {
		return err
	}
	addrs, err := c.where(ctx)
	if err != nil {
		return err
	}
	for _, addr := range addrs {
		if err := c.PutTopic(ctx, addr, t, c.v.Get("attributes", "")); err != nil {
			return err
		}
		c.printf("create topic to %s success.\n", addr)
	}
	if t.Order {
		if err := c.putOrder(ctx, t, addrs); err != nil {
			return err
		}
	}
	c.printf("%s\n", topicText(t))
	return nil
}

// putOrder stores at the NameServers how many queues each broker of an ordered topic has.
func (c *call) putOrder(ctx context.Context, t protocol.TopicConfig, addrs []string) error {
	info, err := c.Cluster(ctx)
	if err != nil {
		return err
	}
	var parts []string
	for _, b := range info.All() {
		if slices.Contains(addrs, admin.Master(b)) {
			parts = append(parts, b.BrokerName+":"+strconv.Itoa(int(t.WriteQueueNums)))
		}
	}
	order := strings.Join(parts, ";")
	if err := c.PutKV(ctx, orderNamespace, t.TopicName, order); err != nil {
		return err
	}
	c.printf("set cluster orderConf. isOrder=%t, orderConf=[%s]\n", t.Order, order)
	return nil
}

// topicText is TopicConfig.toString.
func topicText(t protocol.TopicConfig) string {
	return fmt.Sprintf("TopicConfig [topicName=%s, readQueueNums=%d, writeQueueNums=%d, perm=%s, topicFilterType=%s, topicSysFlag=%d, order=%t, attributes=%s]",
		t.TopicName, t.ReadQueueNums, t.WriteQueueNums, permText(t.Perm), t.TopicFilterType, t.TopicSysFlag, t.Order, mapText(t.Attributes))
}

// permText is PermName.perm2String.
func permText(perm int32) string {
	text := []byte("---")
	for i, bit := range []int32{protocol.PermRead, protocol.PermWrite, protocol.PermInherit} {
		if perm&bit != 0 {
			text[i] = "RWX"[i]
		}
	}
	return string(text)
}

// mapText is how Java prints a map of strings.
func mapText[K ~string | ~int64, V any](m map[K]V) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%v=%v", k, m[k]))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func updateTopicList(ctx context.Context, c *call) error {
	text, err := os.ReadFile(c.v.Get("filename", ""))
	if err != nil {
		return err
	}
	var topics []protocol.TopicConfig
	if err := fastjson.Unmarshal(text, &topics); err != nil {
		return fmt.Errorf("%s: %w", c.v.Get("filename", ""), err)
	}
	addrs, err := c.where(ctx)
	if err != nil {
		return err
	}
	for _, addr := range addrs {
		if err := c.PutTopics(ctx, addr, topics); err != nil {
			return err
		}
		c.printf("submit batch of topic config to %s success, please check the result later.\n", addr)
	}
	return nil
}

func deleteTopic(ctx context.Context, c *call) error {
	topic, cluster := c.v.Get("topic", ""), c.v.Get("clusterName", "")
	if err := c.DeleteTopic(ctx, cluster, topic); err != nil {
		return err
	}
	c.printf("delete topic [%s] from cluster [%s] success.\n", topic, cluster)
	c.printf("delete topic [%s] from NameServer success.\n", topic)
	return nil
}

func updateTopicPerm(ctx context.Context, c *call) error {
	perm, err := number[int32](c, "perm", 0)
	if err != nil {
		return err
	}
	addrs, err := c.where(ctx)
	if err != nil {
		return err
	}
	for _, addr := range addrs {
		t, err := c.TopicConfig(ctx, addr, c.v.Get("topic", ""))
		if err != nil {
			return err
		}
		before := t.Perm
		if before == perm {
			c.printf("new perm equals to the old one!\n")
			continue
		}
		t.Perm = perm
		if err := c.PutTopic(ctx, addr, t, ""); err != nil {
			return err
		}
		c.printf("update topic perm from %d to %d in %s success.\n", before, perm, addr)
	}
	return nil
}

func topicRoute(ctx context.Context, c *call) error {
	r, err := c.Route(ctx, c.v.Get("topic", ""))
	if err != nil {
		return err
	}
	if !c.v.Has("list") {
		text, err := fastjson.MarshalIndent(r)
		if err != nil {
			return err
		}
		c.printf("%s\n", text)
		return nil
	}
	const format = "%-45s %-32s %-50s %-10v %-11v %-5v\n"
	c.printf(format, "#ClusterName", "#BrokerName", "#BrokerAddrs", "#ReadQueue", "#WriteQueue", "#Perm")
	var read, write int32
	for _, b := range r.BrokerDatas {
		for _, q := range r.QueueDatas {
			if q.BrokerName == b.BrokerName {
				read, write = read+q.ReadQueueNums, write+q.WriteQueueNums
				c.printf(format, b.Cluster, b.BrokerName, mapText(b.BrokerAddrs), q.ReadQueueNums, q.WriteQueueNums, q.Perm)
			}
		}
	}
	c.printf("%s\n", strings.Repeat("-", 158))
	c.printf(format, "Total:", strconv.Itoa(len(r.QueueDatas)), "", read, write, "")
	return nil
}

func topicStatus(ctx context.Context, c *call) error {
	s, err := c.TopicStats(ctx, c.v.Get("topic", ""))
	if err != nil {
		return err
	}
	c.printf("%-32s  %-4s  %-20s  %-20s    %s\n", "#Broker Name", "#QID", "#Min Offset", "#Max Offset", "#Last Updated")
	for _, q := range admin.SortedQueues(s.OffsetTable) {
		o := s.OffsetTable[q]
		updated := ""
		if o.LastUpdateTimestamp > 0 {
			updated = human(o.LastUpdateTimestamp)
		}
		c.printf("%-32s  %-4d  %-20d  %-20d    %s\n", front(q.BrokerName, 32), q.QueueID, o.MinOffset, o.MaxOffset, updated)
	}
	c.printf("\nTopic Put TPS: %v\n", s.TopicPutTps)
	return nil
}

func topicClusterList(ctx context.Context, c *call) error {
	r, err := c.Route(ctx, c.v.Get("topic", ""))
	if err != nil {
		return err
	}
	clusters := map[string]bool{}
	for _, b := range r.BrokerDatas {
		clusters[b.Cluster] = true
	}
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		c.printf("%s\n", name)
	}
	return nil
}

func topicList(ctx context.Context, c *call) error {
	topics, err := c.Topics(ctx)
	if err != nil {
		return err
	}
	if !c.v.Has("clusterModel") {
		for _, topic := range topics {
			c.printf("%s\n", topic)
		}
		return nil
	}
	c.printf("%-20s  %-48s  %-48s\n", "#Cluster Name", "#Topic", "#Consumer Group")
	for _, topic := range topics {
		if strings.HasPrefix(topic, admin.RetryPrefix) || strings.HasPrefix(topic, admin.DeadLetterPrefix) {
			continue
		}
		cluster := ""
		if r, err := c.Route(ctx, topic); err == nil && len(r.BrokerDatas) > 0 {
			cluster = r.BrokerDatas[0].Cluster
		}
		groups, err := c.Consumers(ctx, topic)
		if err != nil || len(groups) == 0 { // a topic without route has no groups either
			groups = []string{""}
		}
		for _, group := range groups {
			c.printf("%-20s  %-64s  %-64s\n", front(cluster, 20), front(topic, 64), front(group, 64))
		}
	}
	return nil
}

func updateOrderConf(ctx context.Context, c *call) error {
	topic := c.v.Get("topic", "")
	switch method := c.v.Get("method", ""); method {
	case "get":
		order, err := c.KV(ctx, orderNamespace, topic)
		if err != nil {
			return err
		}
		c.printf("get orderConf success. topic=[%s], orderConf=[%s] ", topic, order)
	case "put":
		order := c.v.Get("orderConf", "")
		if order == "" {
			return fmt.Errorf("%w: put needs -v", ErrUsage)
		}
		if err := c.PutKV(ctx, orderNamespace, topic, order); err != nil {
			return err
		}
		c.printf("update orderConf success. topic=[%s], orderConf=[%s]", topic, order)
	case "delete":
		if err := c.DeleteKV(ctx, orderNamespace, topic); err != nil {
			return err
		}
		c.printf("delete orderConf success. topic=[%s]", topic)
	default:
		return fmt.Errorf("%w: method %q: put, get or delete", ErrUsage, method)
	}
	return nil
}

func allocateMQ(ctx context.Context, c *call) error {
	topic := c.v.Get("topic", "")
	r, err := c.Route(ctx, topic)
	if err != nil {
		return err
	}
	var queues []protocol.MessageQueue
	for _, q := range r.QueueDatas {
		for id := range q.ReadQueueNums {
			queues = append(queues, protocol.MessageQueue{Topic: topic, BrokerName: q.BrokerName, QueueID: id})
		}
	}
	members := strings.Split(c.v.Get("ipList", ""), ",")
	result := map[string][]protocol.MessageQueue{}
	for i, member := range members {
		result[member] = part(queues, i, len(members))
	}
	text, err := fastjson.Marshal(map[string]any{"result": result})
	if err != nil {
		return err
	}
	c.printf("%s\n", text)
	return nil
}

// part is the i-th of n contiguous, equal parts; the first ones have one more when they do not divide.
func part[T any](all []T, i, n int) []T {
	each, extra := len(all)/n, len(all)%n
	start := i*each + min(i, extra)
	end := start + each
	if i < extra {
		end++
	}
	return all[start:end]
}
