package mqadmin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/admin"
	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/internal/javaopt"
	"github.com/quorate/quorate/protocol"
)

func groupCommands() []command {
	group, topic := required("g", "group", "consumer group"), required("t", "topic", "topic name")
	return []command{
		{"updateSubGroup", "Create a consumer group or change it", append(place("masters"), required("g", "groupName", "consumer group"),
			arg("s", "consumeEnable", "true or false"), arg("m", "consumeFromMinEnable", "true or false"),
			arg("d", "consumeBroadcastEnable", "true or false"), arg("o", "consumeMessageOrderly", "true or false"),
			arg("q", "retryQueueNums", "queues of the retry topic"), arg("r", "retryMaxTimes", "deliveries"),
			arg("p", "groupRetryPolicy", "JSON"), arg("i", "brokerId", "broker id"), arg("w", "whichBrokerWhenConsumeSlowly", "broker id"),
			arg("a", "notifyConsumerIdsChanged", "true or false")), updateSubGroup},
		{"deleteSubGroup", "Delete a consumer group", append(place("masters"), required("g", "groupName", "consumer group"), arg("r", "removeOffset", "true or false")), deleteSubGroup},
		{"getConsumerConfig", "Show a group's configuration", javaopt.Options{required("g", "groupName", "consumer group")}, getConsumerConfig},
		{"consumerProgress", "Show progress and lag", javaopt.Options{arg("g", "groupName", "consumer group"), arg("t", "topicName", "topic"), arg("s", "showClientIP", "true or false"), arg("c", "cluster", "cluster")}, consumerProgress},
		{"consumerConnection", "Show a group's members", javaopt.Options{required("g", "consumerGroup", "consumer group"), arg("b", "brokerAddr", "broker address")}, consumerConnection},
		{"producerConnection", "Show a producer group's members", javaopt.Options{required("g", "producerGroup", "producer group"), topic}, producerConnection},
		{"consumerStatus", "Show what consumers say of themselves", javaopt.Options{required("g", "consumerGroup", "consumer group"), arg("i", "clientId", "client id"), arg("b", "brokerAddr", "broker address"), {Short: "s", Long: "jstack", Text: "with stacks"}}, consumerStatus},
		{"producer", "List a broker's producers", javaopt.Options{required("b", "broker", "broker address")}, producerTable},
		{"resetOffsetByTime", "Move a group's progress to a time", javaopt.Options{
			group, topic, required("s", "timestamp", "now, milliseconds, or yyyy-MM-dd#HH:mm:ss:SSS"),
			arg("f", "force", "true or false"),
			{Short: "c", Long: "cplus", Text: "ignored"},
			arg("b", "broker", "broker address"), arg("q", "queue", "queue id"), arg("o", "offset", "offset"),
		}, resetOffsetByTime},
		{"skipAccumulatedMessage", "Move a group's progress to the end", javaopt.Options{group, topic, arg("f", "force", "true or false"), arg("c", "cluster", "cluster")}, skipAccumulated},
		{"cloneGroupOffset", "Copy progress to another group", javaopt.Options{required("s", "srcGroup", "from"), required("d", "destGroup", "to"), topic, arg("o", "offline", "true or false")}, cloneGroupOffset},
	}
}

func updateSubGroup(ctx context.Context, c *call) error {
	g := admin.NewGroup(c.v.Get("groupName", ""))
	var errs [9]error
	g.ConsumeEnable, errs[0] = c.flag("consumeEnable", g.ConsumeEnable)
	g.ConsumeFromMinEnable, errs[1] = c.flag("consumeFromMinEnable", false) // the command's default, not the group's
	g.ConsumeBroadcastEnable, errs[2] = c.flag("consumeBroadcastEnable", false)
	g.ConsumeMessageOrderly, errs[3] = c.flag("consumeMessageOrderly", g.ConsumeMessageOrderly)
	g.RetryQueueNums, errs[4] = number(c, "retryQueueNums", g.RetryQueueNums)
	g.RetryMaxTimes, errs[5] = number(c, "retryMaxTimes", g.RetryMaxTimes)
	g.BrokerID, errs[6] = number(c, "brokerId", g.BrokerID)
	g.WhichBrokerWhenConsumeSlowly, errs[7] = number(c, "whichBrokerWhenConsumeSlowly", g.WhichBrokerWhenConsumeSlowly)
	g.NotifyConsumerIDsChangedEnable, errs[8] = c.flag("notifyConsumerIdsChanged", g.NotifyConsumerIDsChangedEnable)
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	if policy := c.v.Get("groupRetryPolicy", ""); policy != "" {
		g.GroupRetryPolicy = fastjson.Raw(policy)
	}
	addrs, err := c.where(ctx)
	if err != nil {
		return err
	}
	for _, addr := range addrs {
		if err := c.PutGroup(ctx, addr, g); err != nil {
			return err
		}
		c.printf("create subscription group to %s success.\n", addr)
	}
	c.printf("%s", groupText(g))
	return nil
}

// groupText is SubscriptionGroupConfig.toString.
func groupText(g protocol.SubscriptionGroupConfig) string {
	var parts []string
	for _, f := range groupFields(g) {
		parts = append(parts, f[0]+"="+f[1])
	}
	return "SubscriptionGroupConfig{" + strings.Join(parts, ", ") + "}"
}

func groupFields(g protocol.SubscriptionGroupConfig) [][2]string {
	text := func(v any) string { return fmt.Sprint(v) }
	policy := "null"
	if len(g.GroupRetryPolicy) > 0 {
		policy = string(g.GroupRetryPolicy)
	}
	return [][2]string{
		{"groupName", g.GroupName},
		{"consumeEnable", text(g.ConsumeEnable)},
		{"consumeFromMinEnable", text(g.ConsumeFromMinEnable)},
		{"consumeBroadcastEnable", text(g.ConsumeBroadcastEnable)},
		{"consumeMessageOrderly", text(g.ConsumeMessageOrderly)},
		{"retryQueueNums", text(g.RetryQueueNums)},
		{"retryMaxTimes", text(g.RetryMaxTimes)},
		{"groupRetryPolicy", policy},
		{"brokerId", text(g.BrokerID)},
		{"whichBrokerWhenConsumeSlowly", text(g.WhichBrokerWhenConsumeSlowly)},
		{"notifyConsumerIdsChangedEnable", text(g.NotifyConsumerIDsChangedEnable)},
		{"groupSysFlag", text(g.GroupSysFlag)},
		{"consumeTimeoutMinute", text(g.ConsumeTimeoutMinute)},
		{"subscriptionDataSet", "null"},
		{"attributes", mapText(g.Attributes)},
	}
}

func deleteSubGroup(ctx context.Context, c *call) error {
	group, cluster := c.v.Get("groupName", ""), c.v.Get("clusterName", "")
	progressToo, err := c.flag("removeOffset", false)
	if err != nil {
		return err
	}
	addrs, err := c.where(ctx)
	if err != nil {
		return err
	}
	for _, addr := range addrs {
		if err := c.DeleteGroup(ctx, addr, group, progressToo); err != nil {
			return err
		}
		if cluster == "" {
			c.printf("delete subscription group [%s] from broker [%s] success.\n", group, addr)
			continue
		}
		c.printf("delete subscription group [%s] from broker [%s] in cluster [%s] success.\n", group, addr, cluster)
	}
	if cluster == "" {
		return nil
	}
	for _, prefix := range []string{admin.RetryPrefix, admin.DeadLetterPrefix} {
		if err := c.DeleteTopic(ctx, cluster, prefix+group); err != nil && !admin.Is(err, protocol.TopicNotExist) {
			return err
		}
	}
	return nil
}

func getConsumerConfig(ctx context.Context, c *call) error {
	info, err := c.Cluster(ctx)
	if err != nil {
		return err
	}
	for _, b := range info.All() {
		if admin.Master(b) == "" {
			continue
		}
		g, err := c.GroupConfig(ctx, admin.Master(b), c.v.Get("groupName", ""))
		if admin.Is(err, protocol.SubscriptionGroupNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		c.printf("=============================%s:%s=============================\n", b.Cluster, b.BrokerName)
		for _, f := range groupFields(g) {
			c.printf("%-40s=  %s\n", f[0], f[1])
		}
	}
	return nil
}

func consumerProgress(ctx context.Context, c *call) error {
	if c.v.Has("groupName") {
		return groupProgress(ctx, c, c.v.Get("groupName", ""))
	}
	topics, err := c.Topics(ctx)
	if err != nil {
		return err
	}
	c.printf("%-64s  %-6s  %-24s %-5s  %-14s  %-7s  %s\n", "#Group", "#Count", "#Version", "#Type", "#Model", "#TPS", "#Diff Total")
	for _, topic := range topics {
		group, retry := strings.CutPrefix(topic, admin.RetryPrefix)
		if !retry {
			continue
		}
		version, kind, model, count := "OFFLINE", "", "", 0
		if online, err := c.ConsumerConnections(ctx, "", group); err == nil && len(online.ConnectionSet) > 0 {
			lowest := slices.MinFunc(online.ConnectionSet, func(a, b protocol.Connection) int { return int(a.Version - b.Version) })
			version, count, model = protocol.VersionName(lowest.Version), len(online.ConnectionSet), online.MessageModel
			kind = map[string]string{protocol.ConsumeActively: "PULL", protocol.ConsumePassively: "PUSH", protocol.ConsumePop: "POP"}[online.ConsumeType]
		}
		var diff int64
		var tps float64
		if stats, err := c.ConsumeStats(ctx, group, ""); err == nil { // a group that has consumed nothing has none
			tps = stats.ConsumeTps
			for _, o := range stats.OffsetTable {
				diff += o.BrokerOffset - o.ConsumerOffset
			}
		}
		c.printf("%-64s  %-6d  %-24s %-5s  %-14s  %-7d  %d\n", front(group, 64), count, version, kind, model, int64(tps), diff)
	}
	return nil
}

func groupProgress(ctx context.Context, c *call, group string) error {
	stats, err := c.ConsumeStats(ctx, group, c.v.Get("topicName", ""))
	if err != nil {
		return err
	}
	showClients, err := c.flag("showClientIP", false)
	if err != nil {
		return err
	}
	owners := map[protocol.MessageQueue]string{}
	if showClients {
		if owners, err = c.owners(ctx, group); err != nil {
			return err
		}
		c.printf("%-64s  %-32s  %-4s  %-20s  %-20s  %-20s %-20s %-20s%s\n", "#Topic", "#Broker Name", "#QID", "#Broker Offset",
			"#Consumer Offset", "#Client IP", "#Diff", "#Inflight", "#LastTime")
	} else {
		c.printf("%-64s  %-32s  %-4s  %-20s  %-20s  %-20s %-20s%s\n", "#Topic", "#Broker Name", "#QID", "#Broker Offset",
			"#Consumer Offset", "#Diff", "#Inflight", "#LastTime")
	}
	var diffs, inflights int64
	for _, q := range admin.SortedQueues(stats.OffsetTable) {
		o := stats.OffsetTable[q]
		diff, inflight := o.BrokerOffset-o.ConsumerOffset, o.PullOffset-o.ConsumerOffset
		diffs, inflights = diffs+diff, inflights+inflight
		last := "N/A"
		if o.LastTimestamp > 0 {
			last = human(o.LastTimestamp)
		}
		c.printf("%-64s  %-32s  %-4d  %-20d  %-20d  ", front(q.Topic, 64), front(q.BrokerName, 32), q.QueueID, o.BrokerOffset, o.ConsumerOffset)
		if showClients {
			owner := owners[q]
			if owner == "" {
				owner = "N/A"
			}
			c.printf("%-20s ", owner)
		}
		c.printf("%-20d %-20d %s\n", diff, inflight, last)
	}
	c.printf("\nConsume TPS: %.2f\nConsume Diff Total: %d\nConsume Inflight Total: %d\n", stats.ConsumeTps, diffs, inflights)
	return nil
}

// owners asks each member which queues it has.
func (c *call) owners(ctx context.Context, group string) (map[protocol.MessageQueue]string, error) {
	online, err := c.ConsumerConnections(ctx, "", group)
	if err != nil {
		return nil, err
	}
	owners := map[protocol.MessageQueue]string{}
	for _, member := range online.ConnectionSet {
		info, err := c.RunningInfo(ctx, group, member.ClientID, false)
		if err != nil {
			continue // a member that does not answer keeps its queues; they show N/A
		}
		ip, _, _ := strings.Cut(member.ClientID, "@")
		for q := range info.MQTable {
			owners[q] = ip
		}
	}
	return owners, nil
}

func consumerConnection(ctx context.Context, c *call) error {
	online, err := c.ConsumerConnections(ctx, c.v.Get("brokerAddr", ""), c.v.Get("consumerGroup", ""))
	if err != nil {
		return err
	}
	c.printf("%-36s %-22s %-10s %s\n", "#ClientId", "#ClientAddr", "#Language", "#Version")
	for _, m := range online.ConnectionSet {
		c.printf("%-36s %-22s %-10s %s\n", m.ClientID, m.ClientAddr, m.Language, protocol.VersionName(m.Version))
	}
	c.printf("\nBelow is subscription:\n%-20s %s\n", "#Topic", "#SubExpression")
	for _, topic := range sortedKeys(online.SubscriptionTable) {
		c.printf("%-20s %s\n", topic, online.SubscriptionTable[topic].SubString)
	}
	c.printf("\nConsumeType: %s\nMessageModel: %s\nConsumeFromWhere: %s\n", online.ConsumeType, online.MessageModel, online.ConsumeFromWhere)
	return nil
}

func producerConnection(ctx context.Context, c *call) error {
	members, err := c.Producers(ctx, c.v.Get("producerGroup", ""), c.v.Get("topic", ""))
	if err != nil {
		return err
	}
	for i, m := range members {
		c.printf("%04d  %-32s %-22s %-8s %s\n", i+1, m.ClientID, m.ClientAddr, m.Language, protocol.VersionName(m.Version))
	}
	return nil
}

func consumerStatus(ctx context.Context, c *call) error {
	group := c.v.Get("consumerGroup", "")
	online, err := c.ConsumerConnections(ctx, c.v.Get("brokerAddr", ""), group)
	if err != nil {
		return err
	}
	only := c.v.Get("clientId", "")
	for i, m := range online.ConnectionSet {
		if only != "" && m.ClientID != only {
			continue
		}
		info, err := c.RunningInfo(ctx, group, m.ClientID, c.v.Has("jstack"))
		if err != nil {
			return err
		}
		c.printf("%03d  %-40s %-20s\n", i+1, m.ClientID, protocol.VersionName(m.Version))
		c.printf("#Consumer Properties#\n")
		for _, key := range sortedKeys(info.Properties) {
			c.printf("%-40s: %s\n", key, info.Properties[key])
		}
		c.printf("\n#Consumer Subscription#\n")
		for j, s := range info.SubscriptionSet {
			c.printf("%03d Topic: %-40s ClassFilter: %-8t SubExpression: %s\n", j, s.Topic, s.ClassFilterMode, s.SubString)
		}
		c.printf("\n#Consumer Offset#\n%-64s  %-32s  %-4s  %-20s\n", "#Topic", "#Broker Name", "#QID", "#Consumer Offset")
		for _, q := range admin.SortedQueues(info.MQTable) {
			c.printf("%-32s  %-32s  %-4d  %-20d\n", q.Topic, q.BrokerName, q.QueueID, info.MQTable[q].CommitOffset)
		}
		c.printf("\n#Consumer RT&TPS#\n%-64s  %14s %14s %14s %14s %18s %25s\n", "#Topic", "#Pull RT", "#Pull TPS", "#Consume RT",
			"#ConsumeOK TPS", "#ConsumeFailed TPS", "#ConsumeFailedMsgsInHour")
		for _, topic := range sortedKeys(info.StatusTable) {
			s := info.StatusTable[topic]
			c.printf("%-32s  %14.2f %14.2f %14.2f %14.2f %18.2f %25d\n", topic, s.PullRT, s.PullTPS, s.ConsumeRT, s.ConsumeOKTPS,
				s.ConsumeFailedTPS, s.ConsumeFailedMsgs)
		}
		if info.Jstack != "" {
			c.printf("\n#Consumer jstack#\n%s", info.Jstack)
		}
	}
	return nil
}

func producerTable(ctx context.Context, c *call) error {
	table, err := c.ProducerTable(ctx, c.v.Get("broker", ""))
	if err != nil {
		return err
	}
	if len(table) == 0 {
		c.printf("producer group is empty\n")
	}
	for _, group := range sortedKeys(table) {
		for _, p := range table[group] {
			c.printf("producer group (%s) instance : clientId=%s,remoteIP=%s, language=%s, version=%d, lastUpdateTimestamp=%d\n",
				group, p.ClientID, p.RemoteIP, p.Language, p.Version, p.LastUpdateTimestamp)
		}
	}
	return nil
}

func resetOffsetByTime(ctx context.Context, c *call) error {
	group, topic, text := c.v.Get("group", ""), c.v.Get("topic", ""), c.v.Get("timestamp", "")
	at, err := parseTimestamp(text)
	if err != nil {
		return err
	}
	if addr := c.v.Get("broker", ""); addr != "" {
		queue, errQueue := number[int32](c, "queue", -1)
		offset, errOffset := number[int64](c, "offset", -1)
		if err := errors.Join(errQueue, errOffset); err != nil {
			return err
		}
		if queue < 0 {
			return fmt.Errorf("%w: -b needs -q", ErrUsage)
		}
		set, err := c.ResetQueue(ctx, addr, group, topic, queue, at, offset)
		if err != nil {
			return err
		}
		c.printf("start reset consumer offset by specified, group[%s], topic[%s], queueId[%d], broker[%s], timestamp(string)[%s], timestamp(long)[%d]\n",
			group, topic, queue, addr, text, at)
		for _, q := range admin.SortedQueues(set) {
			c.printf("reset consumer offset to %d\n", set[q])
		}
		return nil
	}
	force, err := c.flag("force", true)
	if err != nil {
		return err
	}
	set, err := c.ResetOffsets(ctx, group, topic, at, force)
	if err != nil {
		return err
	}
	c.printf("start reset consumer offset by specified, group[%s], topic[%s], force[%t], timestamp(string)[%s], timestamp(long)[%d]\n",
		group, topic, force, text, at)
	c.printOffsets(set)
	return nil
}

func (c *call) printOffsets(set map[protocol.MessageQueue]int64) {
	c.printf("%-40s  %-40s  %-40s\n", "#brokerName", "#queueId", "#offset")
	for _, q := range admin.SortedQueues(set) {
		c.printf("%-40s  %-40d  %-40d\n", front(q.BrokerName, 32), q.QueueID, set[q])
	}
}

func skipAccumulated(ctx context.Context, c *call) error {
	force, err := c.flag("force", true)
	if err != nil {
		return err
	}
	set, err := c.ResetOffsets(ctx, c.v.Get("group", ""), c.v.Get("topic", ""), admin.End, force)
	if err != nil {
		return err
	}
	c.printOffsets(set)
	return nil
}

func cloneGroupOffset(ctx context.Context, c *call) error {
	from, to, topic := c.v.Get("srcGroup", ""), c.v.Get("destGroup", ""), c.v.Get("topic", "")
	offline, err := c.flag("offline", false)
	if err != nil {
		return err
	}
	if err := c.CloneOffsets(ctx, from, to, topic, offline); err != nil {
		return err
	}
	c.printf("clone group offset success. srcGroup[%s], destGroup=[%s], topic[%s]", from, to, topic)
	return nil
}
