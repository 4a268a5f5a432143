package mqadmin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/admin"
	"github.com/quorate/quorate/internal/javaopt"
	"github.com/quorate/quorate/protocol"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func brokerCommands() []command {
	anywhere := javaopt.Options{arg("b", "brokerAddr", "broker address"), arg("c", "cluster", "cluster")}
	return []command{
		{"brokerStatus", "Show a broker's figures", place("brokers"), brokerStatus},
		{"brokerConsumeStats", "Show the progress of all groups at a broker", javaopt.Options{
			required("b", "brokerAddr", "broker address"), arg("t", "timeoutMillis", "ignored"),
			arg("l", "level", "only a lag of so much"), arg("o", "order", "true or false"),
		}, brokerConsumeStats},
		{"getBrokerConfig", "Show a broker's configuration", place("brokers"), getBrokerConfig},
		{"updateBrokerConfig", "Change one key of running brokers", append(place("brokers"), arg("a", "updateAllBroker", "replicas too"), required("k", "key", "key"), required("v", "value", "value")), updateBrokerConfig},
		{"cleanExpiredCQ", "Delete expired consume queues", anywhere, cleaning(admin.ExpiredConsumeQueues)},
		{"cleanUnusedTopic", "Delete the queues of topics that are gone", anywhere, cleaning(admin.UnusedTopics)},
		{"deleteExpiredCommitLog", "Delete expired log files", anywhere, cleaning(admin.ExpiredCommitLog)},
		{"clusterList", "List brokers by cluster", javaopt.Options{{Short: "m", Long: "moreStats", Text: "counts of today and yesterday"}, arg("i", "interval", "ignored: prints once"), arg("c", "clusterName", "cluster")}, clusterList},
		{"statsAll", "Show rates and lag by topic and group", javaopt.Options{{Short: "a", Long: "activeTopic", Text: "only topics with traffic"}, arg("t", "topic", "only this topic")}, statsAll},
		{"queryCq", "Show entries of a consume queue", javaopt.Options{
			required("t", "topic", "topic name"), required("q", "queue", "queue id"), required("i", "index", "first entry"),
			arg("c", "count", "how many"), arg("b", "broker", "broker address"), arg("g", "consumer", "consumer group"),
		}, queryCq},
	}
}

func brokerStatus(ctx context.Context, c *call) error {
	addrs, err := c.where(ctx)
	if err != nil {
		return err
	}
	for _, addr := range addrs {
		table, err := c.Runtime(ctx, addr)
		if err != nil {
			return err
		}
		for _, key := range sortedKeys(table) {
			if c.v.Has("clusterName") {
				c.printf("%-24s %-32s: %s\n", addr, key, table[key])
			} else {
				c.printf("%-32s: %s\n", key, table[key])
			}
		}
	}
	return nil
}

func brokerConsumeStats(ctx context.Context, c *call) error {
	level, err := number[int64](c, "level", 0)
	if err != nil {
		return err
	}
	order, err := c.flag("order", false)
	if err != nil {
		return err
	}
	list, err := c.BrokerProgress(ctx, c.v.Get("brokerAddr", ""), order)
	if err != nil {
		return err
	}
	c.printf("%-64s  %-64s  %-32s  %-4s  %-20s  %-20s  %-20s  %s\n", "#Topic", "#Group", "#Broker Name", "#QID", "#Broker Offset",
		"#Consumer Offset", "#Diff", "#LastTime")
	for _, groups := range list.ConsumeStatsList {
		for _, group := range sortedKeys(groups) {
			for _, stats := range groups[group] {
				for _, q := range admin.SortedQueues(stats.OffsetTable) {
					o := stats.OffsetTable[q]
					diff := o.BrokerOffset - o.ConsumerOffset
					if diff < level {
						continue
					}
					last := "-"
					if o.LastTimestamp > 0 {
						last = human(o.LastTimestamp)
					}
					c.printf("%-64s  %-64s  %-32s  %-4d  %-20d  %-20d  %-20d  %s\n", front(q.Topic, 64), group, front(q.BrokerName, 32),
						q.QueueID, o.BrokerOffset, o.ConsumerOffset, diff, last)
				}
			}
		}
	}
	c.printf("\nDiff Total: %d\n", list.TotalDiff)
	return nil
}

func getBrokerConfig(ctx context.Context, c *call) error {
	addrs, err := c.where(ctx)
	if err != nil {
		return err
	}
	for _, addr := range addrs {
		text, err := c.BrokerConfig(ctx, addr)
		if err != nil {
			return err
		}
		c.printf("============%s============\n", addr)
		c.printProperties(text)
		c.printf("\n")
	}
	return nil
}

func (c *call) printProperties(text string) {
	for line := range strings.Lines(text) {
		key, value, found := strings.Cut(strings.TrimRight(line, "\r\n"), "=")
		if found {
			c.printf("%-50s=  %s\n", key, value)
		}
	}
}

func updateBrokerConfig(ctx context.Context, c *call) error {
	addrs, err := c.where(ctx)
	if err != nil {
		return err
	}
	if all, err := c.flag("updateAllBroker", false); err != nil {
		return err
	} else if all && c.v.Has("clusterName") {
		info, err := c.Cluster(ctx)
		if err != nil {
			return err
		}
		addrs = nil
		for _, b := range info.Of(c.v.Get("clusterName", "")) {
			addrs = slices.AppendSeq(addrs, maps.Values(b.BrokerAddrs))
		}
	}
	for _, addr := range addrs {
		if err := c.SetBrokerConfig(ctx, addr, c.v.Get("key", ""), c.v.Get("value", "")); err != nil {
			return err
		}
		c.printf("update broker config success, %s\n", addr)
	}
	return nil
}

func cleaning(what admin.Cleaning) func(context.Context, *call) error {
	return func(ctx context.Context, c *call) error {
		addrs, err := c.where(ctx)
		if err != nil {
			return err
		}
		for _, addr := range addrs {
			if err := c.Clean(ctx, addr, what); err != nil {
				return err
			}
		}
		c.printf("success")
		return nil
	}
}

func clusterList(ctx context.Context, c *call) error {
	info, err := c.Cluster(ctx)
	if err != nil {
		return err
	}
	more := c.v.Has("moreStats")
	if more {
		c.printf("%-16s  %-32s %14s %14s %14s %14s\n", "#Cluster Name", "#Broker Name", "#InTotalYest", "#OutTotalYest", "#InTotalToday", "#OutTotalToday")
	} else {
		c.printf("%-22s  %-22s  %-4s  %-22s %-16s  %16s  %30s  %-22s  %-11s  %-12s  %-8s  %-10s\n", "#Cluster Name", "#Broker Name", "#BID",
			"#Addr", "#Version", "#InTPS(LOAD)", "#OutTPS(LOAD)", "#Timer(Progress)", "#PCWait(ms)", "#Hour", "#SPACE", "#ACTIVATED")
	}
	for _, cluster := range info.Names() {
		if only := c.v.Get("clusterName", ""); only != "" && only != cluster {
			continue
		}
		for _, b := range info.Of(cluster) {
			for _, id := range slices.Sorted(maps.Keys(b.BrokerAddrs)) {
				table, err := c.Runtime(ctx, b.BrokerAddrs[id])
				if err != nil { // the others are worth showing all the same
					table = map[string]string{}
				}
				if more {
					c.printCounts(cluster, b.BrokerName, table)
				} else {
					c.printBroker(cluster, b.BrokerName, id, b.BrokerAddrs[id], table)
				}
			}
		}
	}
	return nil
}

func (c *call) printCounts(cluster, broker string, table map[string]string) {
	in := func(key string) int64 { return parseInt(table["msgPutTotal"+key]) }
	out := func(key string) int64 { return parseInt(table["msgGetTotal"+key]) }
	c.printf("%-16s  %-32s %14d %14d %14d %14d\n", cluster, broker,
		in("TodayMorning")-in("YesterdayMorning"), out("TodayMorning")-out("YesterdayMorning"),
		in("TodayNow")-in("TodayMorning"), out("TodayNow")-out("TodayMorning"))
}

func (c *call) printBroker(cluster, broker string, id int64, addr string, table map[string]string) {
	get := func(key string) string {
		if v, ok := table[key]; ok {
			return v
		}
		return "0"
	}
	first := func(key string) float64 {
		word, _, _ := strings.Cut(strings.TrimSpace(get(key)), " ")
		f, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return 0
		}
		return f
	}
	hours := 0.0
	if earliest := parseInt(get("earliestMessageTimeStamp")); earliest > 0 {
		hours = time.Since(time.UnixMilli(earliest)).Hours()
	}
	c.printf("%-22s  %-22s  %-4d  %-22s %-16s  %16s  %30s  %-22s  %11s  %-12s  %-8s  %10s\n", cluster, broker, id, addr,
		table["brokerVersionDesc"],
		fmt.Sprintf("%9.2f(%s,%sms)", first("putTps"), get("sendThreadPoolQueueSize"), get("sendThreadPoolQueueHeadWaitTimeMills")),
		fmt.Sprintf("%9.2f(%s,%sms|%s,%sms)", first("getTransferredTps"), get("pullThreadPoolQueueSize"),
			get("pullThreadPoolQueueHeadWaitTimeMills"), get("ackThreadPoolQueueSize"), get("ackThreadPoolQueueHeadWaitTimeMills")),
		fmt.Sprintf("%d-%d(%.1fw, %.1f, %.1f)", parseInt(get("timerReadBehind")), parseInt(get("timerOffsetBehind")),
			float64(parseInt(get("timerCongestNum")))/10000, first("timerEnqueueTps"), first("timerDequeueTps")),
		get("pageCacheLockTimeMills"), fmt.Sprintf("%2.2f", hours), fmt.Sprintf("%.4f", first("commitLogDiskRatio")), get("brokerActive"))
}

func parseInt(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func statsAll(ctx context.Context, c *call) error {
	topics, err := c.Topics(ctx)
	if err != nil {
		return err
	}
	c.printf("%-64s  %-64s %12s %11s %11s %14s %14s\n", "#Topic", "#Consumer Group", "#Accumulation", "#InTPS", "#OutTPS", "#InMsg24Hour", "#OutMsg24Hour")
	for _, topic := range topics {
		if only := c.v.Get("topic", ""); only != "" && only != topic ||
			strings.HasPrefix(topic, admin.RetryPrefix) || strings.HasPrefix(topic, admin.DeadLetterPrefix) {
			continue
		}
		if err := c.statsOf(ctx, topic); err != nil && !admin.Is(err, protocol.TopicNotExist) {
			return err
		}
	}
	return nil
}

// statsOf sums the counters of one topic over its brokers.
func (c *call) statsOf(ctx context.Context, topic string) error {
	r, err := c.Route(ctx, topic)
	if err != nil {
		return err
	}
	groups, err := c.Consumers(ctx, topic)
	if err != nil {
		return err
	}
	inTPS, in24 := c.sumStats(ctx, r, "TOPIC_PUT_NUMS", topic)
	active := inTPS > 0 || in24 > 0
	if len(groups) == 0 {
		if active || !c.v.Has("activeTopic") {
			c.printf("%-64s  %-64s %12d %11.2f %11s %14d %14s\n", front(topic, 64), "", 0, inTPS, "", in24, "NO_CONSUMER")
		}
		return nil
	}
	for _, group := range groups {
		outTPS, out24 := c.sumStats(ctx, r, "GROUP_GET_NUMS", topic+"@"+group)
		var lag int64
		if stats, err := c.ConsumeStats(ctx, group, topic); err == nil { // a group without progress has no lag to show
			for _, o := range stats.OffsetTable {
				lag += o.BrokerOffset - o.ConsumerOffset
			}
		}
		if active || outTPS > 0 || out24 > 0 || !c.v.Has("activeTopic") {
			c.printf("%-64s  %-64s %12d %11.2f %11.2f %14d %14d\n", front(topic, 64), front(group, 64), lag, inTPS, outTPS, in24, out24)
		}
	}
	return nil
}

// sumStats adds up one counter; a broker that has not counted yet has nothing to add.
func (c *call) sumStats(ctx context.Context, r protocol.TopicRouteData, name, key string) (tps float64, day int64) {
	for _, b := range r.BrokerDatas {
		s, err := c.Stats(ctx, admin.Master(b), name, key)
		if err != nil {
			continue
		}
		tps += s.StatsMinute.Tps
		switch {
		case s.StatsDay.Sum > 0:
			day += s.StatsDay.Sum
		case s.StatsHour.Sum > 0:
			day += s.StatsHour.Sum
		default:
			day += s.StatsMinute.Sum
		}
	}
	return tps, day
}

func queryCq(ctx context.Context, c *call) error {
	topic := c.v.Get("topic", "")
	queue, errQueue := number[int32](c, "queue", 0)
	index, errIndex := number[int64](c, "index", 0)
	count, errCount := number[int32](c, "count", 10)
	if err := errors.Join(errQueue, errIndex, errCount); err != nil {
		return err
	}
	addr := c.v.Get("broker", "")
	if addr == "" {
		r, err := c.Route(ctx, topic)
		if err != nil {
			return err
		}
		if len(r.BrokerDatas) == 0 {
			return fmt.Errorf("topic %s has no broker", topic)
		}
		addr = admin.Master(r.BrokerDatas[0])
	}
	q, err := c.ConsumeQueue(ctx, addr, topic, queue, index, count, c.v.Get("consumer", ""))
	if err != nil {
		return err
	}
	const line = "======================================\n"
	if q.SubscriptionData != nil {
		c.printf("Subscription data: \n%+v\n%s", *q.SubscriptionData, line)
	}
	c.printf("Queue data: \nmax: %d, min: %d\n%s", q.MaxQueueIndex, q.MinQueueIndex, line)
	for i, e := range q.QueueData {
		c.printf("idx: %d\nphysicOffset=%d, physicSize=%d, tagsCode=%d, eval=%t, msg=%s\n%s", index+int64(i), e.PhysicOffset, e.PhysicSize,
			e.TagsCode, e.Eval, e.Msg, line)
	}
	return nil
}

func namesrvCommands() []command {
	return []command{
		{"getNamesrvConfig", "Show the configuration of NameServers", nil, getNamesrvConfig},
		{"updateNamesrvConfig", "Change one key of running NameServers", javaopt.Options{required("k", "key", "key"), required("v", "value", "value")}, updateNamesrvConfig},
		{"updateKvConfig", "Store a pair at the NameServers", javaopt.Options{required("s", "namespace", "namespace"), required("k", "key", "key"), required("v", "value", "value")}, updateKvConfig},
		{"deleteKvConfig", "Remove a pair from the NameServers", javaopt.Options{required("s", "namespace", "namespace"), required("k", "key", "key")}, deleteKvConfig},
		{"wipeWritePerm", "Take a broker's write permission away", javaopt.Options{required("b", "brokerName", "broker name")}, wipeWritePerm},
		{"addWritePerm", "Give a broker's write permission back", javaopt.Options{required("b", "brokerName", "broker name")}, addWritePerm},
	}
}

func getNamesrvConfig(ctx context.Context, c *call) error {
	for _, addr := range c.servers {
		text, err := c.NameServerConfig(ctx, addr)
		if err != nil {
			return err
		}
		c.printf("============%s============\n", addr)
		c.printProperties(text)
	}
	return nil
}

func updateNamesrvConfig(ctx context.Context, c *call) error {
	key, value := c.v.Get("key", ""), c.v.Get("value", "")
	for _, addr := range c.servers {
		if err := c.SetNameServerConfig(ctx, addr, key, value); err != nil {
			return err
		}
	}
	c.printf("update name server config success![%s]\n%s : %s\n", strings.Join(c.servers, ", "), key, value)
	return nil
}

func updateKvConfig(ctx context.Context, c *call) error {
	if err := c.PutKV(ctx, c.v.Get("namespace", ""), c.v.Get("key", ""), c.v.Get("value", "")); err != nil {
		return err
	}
	c.printf("create or update kv config to namespace success.\n")
	return nil
}

func deleteKvConfig(ctx context.Context, c *call) error {
	if err := c.DeleteKV(ctx, c.v.Get("namespace", ""), c.v.Get("key", "")); err != nil {
		return err
	}
	c.printf("delete kv config from namespace success.\n")
	return nil
}

func wipeWritePerm(ctx context.Context, c *call) error {
	return changeWritePerm(ctx, c, "wipe", c.WipeWrite)
}

func addWritePerm(ctx context.Context, c *call) error {
	return changeWritePerm(ctx, c, "add", c.AddWrite)
}

func changeWritePerm(ctx context.Context, c *call, verb string, change func(context.Context, string, string) (int32, error)) error {
	broker := c.v.Get("brokerName", "")
	var errs []error
	for _, addr := range c.servers {
		n, err := change(ctx, addr, broker)
		if err != nil {
			c.printf("%s write perm of broker[%s] in name server[%s] Failed\n", verb, broker, addr)
			errs = append(errs, err)
			continue
		}
		c.printf("%s write perm of broker[%s] in name server[%s] OK, %d\n", verb, broker, addr, n)
	}
	return errors.Join(errs...)
}
