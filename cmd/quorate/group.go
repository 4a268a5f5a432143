package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/admin"
	"github.com/quorate/quorate/protocol"
)

func newGroupCommand() *cobra.Command {
	cmd := noun("group", "Consumer groups: list, lag, members, settings, progress",
		newGroupList(), newGroupPut("create"), newGroupPut("update"), newGroupDelete(), newGroupLag(), newGroupMembers(),
		newGroupConfig(), newGroupReset(), newGroupSkip(), newGroupClone())
	addTargetFlag(cmd)
	return cmd
}

func newGroupList() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List groups with their members and lag", Args: args(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withAdmin(cmd, func(ctx context.Context, a *admin.Client) error {
				names, err := groupNames(ctx, a, all)
				if err != nil {
					return err
				}
				t := newTable("group", "members", "topics", "lag")
				for _, name := range names {
					members := 0
					if connected, err := a.ConsumerConnections(ctx, "", name); err == nil {
						members = len(connected.ConnectionSet)
					}
					stats, err := a.ConsumeStats(ctx, name, "")
					if err != nil { // a group whose consumers have never come has no progress
						t.add(name, members, 0, "-")
						continue
					}
					topics, lag := map[string]bool{}, int64(0)
					for q, p := range stats.OffsetTable {
						topics[q.Topic] = true
						lag += (p.BrokerOffset - p.ConsumerOffset)
					}
					t.add(name, members, len(topics), lag)
				}
				return t.print(cmd)
			})
		},
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "groups that brokers made for themselves too")
	return cmd
}

// groupNames lists the groups of all brokers.
func groupNames(ctx context.Context, a *admin.Client, all bool) ([]string, error) {
	addrs, err := a.Masters(ctx, "")
	if err != nil {
		return nil, err
	}
	set := map[string]bool{}
	for _, addr := range addrs {
		groups, err := a.GroupConfigs(ctx, addr)
		if err != nil {
			return nil, err
		}
		for _, g := range groups {
			if all || !isSystemGroup(g.GroupName) {
				set[g.GroupName] = true
			}
		}
	}
	return sortedKeys(set), nil
}

// isSystemGroup tells groups of brokers and tools from those of users (RocketMQ MixAll.isSysConsumerGroup and the
// predefined groups).
func isSystemGroup(name string) bool {
	switch name {
	case "DEFAULT_CONSUMER", "DEFAULT_PRODUCER", "TOOLS_CONSUMER", "SCHEDULE_CONSUMER", "FILTERSRV_CONSUMER",
		"__MONITOR_CONSUMER", "CLIENT_INNER_PRODUCER", "SELF_TEST_P_GROUP", "SELF_TEST_C_GROUP", "CID_ONS-HTTP-PROXY",
		"CID_ONSAPI_PERMISSION", "CID_ONSAPI_OWNER", "CID_ONSAPI_PULL":
		return true
	}
	return strings.HasPrefix(name, "CID_RMQ_SYS_")
}

// groupChange are the flags of create and update.
type groupChange struct {
	cluster, broker                     string
	enable, fromMin, broadcast, orderly bool
	retryMax, retryQueues               int32
}

func newGroupPut(verb string) *cobra.Command {
	var change groupChange
	cmd := &cobra.Command{
		Use: verb + " GROUP", Short: map[string]string{"create": "Create a group", "update": "Change a group"}[verb], Args: args(1, "GROUP"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withAdmin(cmd, func(ctx context.Context, a *admin.Client) error { return change.put(ctx, cmd, a, verb, args[0]) })
		},
	}
	f := cmd.Flags()
	f.BoolVar(&change.enable, "enable", true, "the group may consume")
	f.BoolVar(&change.fromMin, "from-min", true, "start at the first message")
	f.BoolVar(&change.broadcast, "broadcast", true, "every member may get every message")
	f.BoolVar(&change.orderly, "orderly", false, "the group consumes in order")
	f.Int32Var(&change.retryMax, "retry-max", 16, "deliveries before a message goes to the dead-letter queue")
	f.Int32Var(&change.retryQueues, "retry-queues", 1, "queues of the group's retry topic")
	addPlaceFlags(cmd, &change.cluster, &change.broker)
	return cmd
}

func (c *groupChange) put(ctx context.Context, cmd *cobra.Command, a *admin.Client, verb, group string) error {
	addrs, err := chosen(ctx, a, c.cluster, c.broker)
	if err != nil {
		return err
	}
	for _, addr := range addrs {
		g := admin.NewGroup(group)
		if verb == "update" {
			if g, err = a.GroupConfig(ctx, addr, group); err != nil {
				return err
			}
		}
		c.apply(cmd, &g)
		if err := a.PutGroup(ctx, addr, g); err != nil {
			return err
		}
		if err := say(cmd, "%sd group %s at %s", verb, group, addr); err != nil {
			return err
		}
	}
	return nil
}

// apply sets what was given on the command line.
func (c *groupChange) apply(cmd *cobra.Command, g *protocol.SubscriptionGroupConfig) {
	for flag, set := range map[string]func(){
		"enable":       func() { g.ConsumeEnable = c.enable },
		"from-min":     func() { g.ConsumeFromMinEnable = c.fromMin },
		"broadcast":    func() { g.ConsumeBroadcastEnable = c.broadcast },
		"orderly":      func() { g.ConsumeMessageOrderly = c.orderly },
		"retry-max":    func() { g.RetryMaxTimes = c.retryMax },
		"retry-queues": func() { g.RetryQueueNums = c.retryQueues },
	} {
		if cmd.Flags().Changed(flag) {
			set()
		}
	}
}

func newGroupDelete() *cobra.Command {
	var cluster, broker string
	var yes, keep bool
	cmd := &cobra.Command{
		Use: "delete GROUP", Aliases: []string{"rm"}, Short: "Delete a group and its progress", Args: args(1, "GROUP"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withAdmin(cmd, func(ctx context.Context, a *admin.Client) error {
				addrs, err := chosen(ctx, a, cluster, broker)
				if err != nil {
					return err
				}
				if err := confirm(cmd, yes, fmt.Sprintf("delete group %s at %v", args[0], addrs)); err != nil {
					return err
				}
				for _, addr := range addrs {
					if err := a.DeleteGroup(ctx, addr, args[0], !keep); err != nil {
						return err
					}
				}
				return say(cmd, "deleted group %s", args[0])
			})
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&keep, "keep-progress", false, "keep the group's offsets")
	addPlaceFlags(cmd, &cluster, &broker)
	return cmd
}

func newGroupLag() *cobra.Command {
	var topic string
	cmd := &cobra.Command{
		Use: "lag GROUP", Short: "Show how far a group is on each queue", Args: args(1, "GROUP"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withAdmin(cmd, func(ctx context.Context, a *admin.Client) error {
				stats, err := a.ConsumeStats(ctx, args[0], topic)
				if err != nil {
					return err
				}
				t := newTable("topic", "broker", "queue", "broker offset", "consumer offset", "lag", "last consumed")
				total := int64(0)
				for _, q := range admin.SortedQueues(stats.OffsetTable) {
					p := stats.OffsetTable[q]
					total += (p.BrokerOffset - p.ConsumerOffset)
					t.add(q.Topic, q.BrokerName, q.QueueID, p.BrokerOffset, p.ConsumerOffset, (p.BrokerOffset - p.ConsumerOffset), millis(p.LastTimestamp))
				}
				if err := t.print(cmd); err != nil {
					return err
				}
				_, err = fmt.Fprintf(cmd.ErrOrStderr(), "total lag %d, consuming %.1f messages a second\n", total, stats.ConsumeTps)
				return err
			})
		},
	}
	cmd.Flags().StringVarP(&topic, "topic", "t", "", "only this topic")
	return cmd
}

func newGroupMembers() *cobra.Command {
	return &cobra.Command{
		Use: "members GROUP", Short: "Show a group's connected members and what they read", Args: args(1, "GROUP"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withAdmin(cmd, func(ctx context.Context, a *admin.Client) error {
				connected, err := a.ConsumerConnections(ctx, "", args[0])
				if err != nil {
					return err
				}
				t := newTable("client", "address", "language", "version")
				for _, c := range connected.ConnectionSet {
					t.add(c.ClientID, c.ClientAddr, c.Language, versionText(c.Version))
				}
				if err := t.print(cmd); err != nil {
					return err
				}
				for _, topic := range sortedKeys(connected.SubscriptionTable) {
					_, err := fmt.Fprintf(cmd.ErrOrStderr(), "reads %s (%s)\n", topic, connected.SubscriptionTable[topic].SubString)
					if err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

func newGroupConfig() *cobra.Command {
	return &cobra.Command{
		Use: "config GROUP", Short: "Show a group's settings at each broker", Args: args(1, "GROUP"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withAdmin(cmd, func(ctx context.Context, a *admin.Client) error {
				addrs, err := a.Masters(ctx, "")
				if err != nil {
					return err
				}
				t := newTable("broker", "enable", "from min", "broadcast", "orderly", "retry queues", "retry max")
				for _, addr := range addrs {
					g, err := a.GroupConfig(ctx, addr, args[0])
					if err != nil {
						return err
					}
					t.add(addr, g.ConsumeEnable, g.ConsumeFromMinEnable, g.ConsumeBroadcastEnable, g.ConsumeMessageOrderly, g.RetryQueueNums, g.RetryMaxTimes)
				}
				return t.print(cmd)
			})
		},
	}
}

func newGroupReset() *cobra.Command {
	var topic, to string
	var yes bool
	cmd := &cobra.Command{
		Use: "reset GROUP", Short: "Move a group's progress on a topic to a time", Args: args(1, "GROUP"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if topic == "" || to == "" {
				return usagef("usage: quorate group reset GROUP --topic TOPIC --to TIME")
			}
			at := admin.End
			if to != "end" {
				when, err := parseTime(to)
				if err != nil {
					return err
				}
				at = admin.At(when)
			}
			return resetGroup(cmd, args[0], topic, at, yes)
		},
	}
	cmd.Flags().StringVarP(&topic, "topic", "t", "", "the topic")
	cmd.Flags().StringVar(&to, "to", "", "end, now, -1h, a date and time, or milliseconds")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func newGroupSkip() *cobra.Command {
	var topic string
	var yes bool
	cmd := &cobra.Command{
		Use: "skip GROUP", Short: "Skip what a group has not consumed of a topic", Args: args(1, "GROUP"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if topic == "" {
				return usagef("usage: quorate group skip GROUP --topic TOPIC")
			}
			return resetGroup(cmd, args[0], topic, admin.End, yes)
		},
	}
	cmd.Flags().StringVarP(&topic, "topic", "t", "", "the topic")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func resetGroup(cmd *cobra.Command, group, topic string, at int64, yes bool) error {
	where := "the end"
	if at != admin.End {
		where = time.UnixMilli(at).Format(time.DateTime)
	}
	return withAdmin(cmd, func(ctx context.Context, a *admin.Client) error {
		before, err := a.ConsumeStats(ctx, group, topic)
		if err != nil {
			return err
		}
		if err := confirm(cmd, yes, fmt.Sprintf("move group %s on topic %s to %s", group, topic, where)); err != nil {
			return err
		}
		set, err := a.ResetOffsets(ctx, group, topic, at, true)
		if err != nil {
			return err
		}
		t := newTable("broker", "queue", "was", "is", "change")
		for _, q := range admin.SortedQueues(set) {
			was := before.OffsetTable[q].ConsumerOffset
			t.add(q.BrokerName, q.QueueID, was, set[q], fmt.Sprintf("%+d", set[q]-was))
		}
		return t.print(cmd)
	})
}

func newGroupClone() *cobra.Command {
	var topic string
	cmd := &cobra.Command{
		Use: "clone FROM TO", Short: "Copy a group's progress on a topic to another group", Args: args(2, "FROM TO --topic TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if topic == "" {
				return usagef("usage: quorate group clone FROM TO --topic TOPIC")
			}
			return withAdmin(cmd, func(ctx context.Context, a *admin.Client) error {
				if err := a.CloneOffsets(ctx, args[0], args[1], topic, true); err != nil {
					return err
				}
				return say(cmd, "group %s now stands on %s where %s does", args[1], topic, args[0])
			})
		},
	}
	cmd.Flags().StringVarP(&topic, "topic", "t", "", "the topic")
	return cmd
}
