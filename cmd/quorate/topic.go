package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/admin"
	"github.com/quorate/quorate/protocol"
)

// noun is a command that only groups others.
func noun(use, short string, children ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("unknown command %q for %s (%s --help lists them)", args[0], cmd.CommandPath(), cmd.CommandPath())
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(children...)
	return cmd
}

// args is cobra's check of arguments, as a usage error.
func args(n int, names string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		if len(given) != n {
			return usagef("usage: %s %s", cmd.CommandPath(), names)
		}
		return nil
	}
}

func newTopicCommand() *cobra.Command {
	cmd := noun("topic", "Topics: list, show, create, change, delete",
		newTopicList(), newTopicShow(), newTopicPut("create"), newTopicPut("update"), newTopicDelete(), newTopicRoute(),
		newTopicStatus(), newTopicPerm(), newTopicGroups())
	addTargetFlag(cmd)
	return cmd
}

func newTopicList() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List topics", Args: args(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withAdmin(cmd, func(ctx context.Context, a *admin.Client) error {
				topics, err := a.Topics(ctx)
				if err != nil {
					return err
				}
				info, err := a.Cluster(ctx)
				if err != nil {
					return err
				}
				t := newTable("topic", "kind")
				for _, topic := range topics {
					if kind := kindOf(topic, info); kind == "user" || all {
						t.add(topic, kind)
					}
				}
				return t.print(cmd)
			})
		},
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "system, retry and dead-letter topics too")
	return cmd
}

// kindOf tells topics of users from those that brokers make: each has one of its own name and one of its cluster's.
func kindOf(topic string, info admin.Cluster) string {
	_, cluster := info.ClusterAddrTable[topic]
	_, broker := info.BrokerAddrTable[topic]
	switch {
	case cluster, broker:
		return "system"
	case strings.HasPrefix(topic, admin.RetryPrefix):
		return "retry"
	case strings.HasPrefix(topic, admin.DeadLetterPrefix):
		return "dead letter"
	case admin.IsSystemTopic(topic), strings.HasSuffix(topic, "_REPLY_TOPIC"):
		return "system"
	}
	return "user"
}

func newTopicShow() *cobra.Command {
	return &cobra.Command{
		Use: "show TOPIC", Short: "Show a topic's settings at each broker", Args: args(1, "TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withAdmin(cmd, func(ctx context.Context, a *admin.Client) error {
				r, err := a.Route(ctx, args[0])
				if err != nil {
					return err
				}
				t := newTable("broker", "read queues", "write queues", "perm", "order", "attributes")
				for _, b := range r.BrokerDatas {
					if admin.Master(b) == "" {
						continue
					}
					c, err := a.TopicConfig(ctx, admin.Master(b), args[0])
					if err != nil {
						return err
					}
					t.add(b.BrokerName, c.ReadQueueNums, c.WriteQueueNums, permText(c.Perm), c.Order, orDash(joinPairs(c.Attributes)))
				}
				return t.print(cmd)
			})
		},
	}
}

func permText(perm int32) string {
	text := ""
	if perm&protocol.PermRead != 0 {
		text += "R"
	}
	if perm&protocol.PermWrite != 0 {
		text += "W"
	}
	return orDash(text)
}

func parsePerm(text string) (int32, error) {
	switch strings.ToUpper(text) {
	case "RW", "6":
		return 6, nil
	case "R", "4":
		return 4, nil
	case "W", "2":
		return 2, nil
	}
	return 0, usagef("perm %q: it is rw, r or w", text)
}

// topicChange are the flags of create and update.
type topicChange struct {
	queues, read, write               int32
	perm, cluster, broker, attributes string
	order                             bool
}

func newTopicPut(verb string) *cobra.Command {
	var change topicChange
	cmd := &cobra.Command{
		Use: verb + " TOPIC", Short: map[string]string{"create": "Create a topic", "update": "Change a topic"}[verb], Args: args(1, "TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withAdmin(cmd, func(ctx context.Context, a *admin.Client) error { return change.put(ctx, cmd, a, verb, args[0]) })
		},
	}
	f := cmd.Flags()
	f.Int32VarP(&change.queues, "queues", "q", 8, "queues to read and write")
	f.Int32Var(&change.read, "read-queues", 8, "queues to read")
	f.Int32Var(&change.write, "write-queues", 8, "queues to write")
	f.StringVar(&change.perm, "perm", "rw", "rw, r or w")
	f.BoolVar(&change.order, "order", false, "the topic is consumed in order")
	f.StringVar(&change.attributes, "attributes", "", "+key=value,-key")
	addPlaceFlags(cmd, &change.cluster, &change.broker)
	return cmd
}

func (c *topicChange) put(ctx context.Context, cmd *cobra.Command, a *admin.Client, verb, topic string) error {
	addrs, err := chosen(ctx, a, c.cluster, c.broker)
	if err != nil {
		return err
	}
	for _, addr := range addrs {
		t := admin.NewTopic(topic)
		if verb == "update" {
			if t, err = a.TopicConfig(ctx, addr, topic); err != nil {
				return err
			}
		}
		if err := c.apply(cmd, &t); err != nil {
			return err
		}
		if err := a.PutTopic(ctx, addr, t, c.attributes); err != nil {
			return err
		}
		err := say(cmd, "%sd topic %s at %s: %d read and %d write queues, %s", verb, t.TopicName, addr, t.ReadQueueNums, t.WriteQueueNums, permText(t.Perm))
		if err != nil {
			return err
		}
	}
	return nil
}

// apply sets what was given on the command line.
func (c *topicChange) apply(cmd *cobra.Command, t *protocol.TopicConfig) (err error) {
	given := cmd.Flags().Changed
	if given("queues") {
		t.ReadQueueNums, t.WriteQueueNums = c.queues, c.queues
	}
	if given("read-queues") {
		t.ReadQueueNums = c.read
	}
	if given("write-queues") {
		t.WriteQueueNums = c.write
	}
	if given("order") {
		t.Order = c.order
	}
	if given("perm") {
		t.Perm, err = parsePerm(c.perm)
	}
	return err
}

func addPlaceFlags(cmd *cobra.Command, cluster, broker *string) {
	cmd.Flags().StringVarP(cluster, "cluster", "c", "", "only the brokers of this cluster")
	cmd.Flags().StringVarP(broker, "broker", "b", "", "only the broker of this name or address")
}

// chosen are the masters that a command's -c and -b name.
func chosen(ctx context.Context, a *admin.Client, cluster, broker string) ([]string, error) {
	if broker == "" {
		return a.Masters(ctx, cluster)
	}
	if strings.Contains(broker, ":") {
		return []string{broker}, nil
	}
	info, err := a.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	if b, ok := info.BrokerAddrTable[broker]; ok && admin.Master(b) != "" {
		return []string{admin.Master(b)}, nil
	}
	return nil, fmt.Errorf("no master named %q is registered", broker)
}

func newTopicDelete() *cobra.Command {
	var cluster string
	var yes bool
	cmd := &cobra.Command{
		Use: "delete TOPIC", Aliases: []string{"rm"}, Short: "Delete a topic with its messages' queues", Args: args(1, "TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withAdmin(cmd, func(ctx context.Context, a *admin.Client) error {
				r, err := a.Route(ctx, args[0])
				if err != nil {
					return err
				}
				clusters := map[string]bool{}
				for _, b := range r.BrokerDatas {
					if cluster == "" || b.Cluster == cluster {
						clusters[b.Cluster] = true
					}
				}
				if len(clusters) == 0 {
					return fmt.Errorf("topic %s is not in cluster %q", args[0], cluster)
				}
				if err := confirm(cmd, yes, fmt.Sprintf("delete topic %s at %d broker(s)", args[0], len(r.BrokerDatas))); err != nil {
					return err
				}
				for name := range clusters {
					if err := a.DeleteTopic(ctx, name, args[0]); err != nil {
						return err
					}
				}
				return say(cmd, "deleted topic %s", args[0])
			})
		},
	}
	cmd.Flags().StringVarP(&cluster, "cluster", "c", "", "only in this cluster")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

// confirm asks before something is destroyed.
func confirm(cmd *cobra.Command, yes bool, what string) error {
	if yes {
		return nil
	}
	if _, err := fmt.Fprintf(cmd.ErrOrStderr(), "About to %s. Type yes to go on: ", what); err != nil {
		return err
	}
	var answer string
	if _, err := fmt.Fscanln(cmd.InOrStdin(), &answer); err != nil || answer != "yes" {
		return usagef("not confirmed (use --yes in scripts)")
	}
	return nil
}

func newTopicRoute() *cobra.Command {
	return &cobra.Command{
		Use: "route TOPIC", Short: "Show where a topic's queues are", Args: args(1, "TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withAdmin(cmd, func(ctx context.Context, a *admin.Client) error {
				r, err := a.Route(ctx, args[0])
				if err != nil {
					return err
				}
				t := newTable("broker", "cluster", "id", "address", "read queues", "write queues", "perm")
				for _, b := range r.BrokerDatas {
					for _, q := range r.QueueDatas {
						if q.BrokerName != b.BrokerName {
							continue
						}
						for _, id := range sortedKeys(b.BrokerAddrs) {
							t.add(b.BrokerName, b.Cluster, id, b.BrokerAddrs[id], q.ReadQueueNums, q.WriteQueueNums, permText(q.Perm))
						}
					}
				}
				return t.print(cmd)
			})
		},
	}
}

func newTopicStatus() *cobra.Command {
	return &cobra.Command{
		Use: "status TOPIC", Short: "Show the first and last offset of each queue", Args: args(1, "TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withAdmin(cmd, func(ctx context.Context, a *admin.Client) error {
				s, err := a.TopicStats(ctx, args[0])
				if err != nil {
					return err
				}
				t := newTable("broker", "queue", "min offset", "max offset", "last updated")
				for _, q := range admin.SortedQueues(s.OffsetTable) {
					st := s.OffsetTable[q]
					t.add(q.BrokerName, q.QueueID, st.MinOffset, st.MaxOffset, millis(st.LastUpdateTimestamp))
				}
				return t.print(cmd)
			})
		},
	}
}

func newTopicPerm() *cobra.Command {
	var cluster, broker string
	cmd := &cobra.Command{
		Use: "perm TOPIC rw|r|w", Short: "Change who may read and write a topic", Args: args(2, "TOPIC rw|r|w"),
		RunE: func(cmd *cobra.Command, args []string) error {
			perm, err := parsePerm(args[1])
			if err != nil {
				return err
			}
			return withAdmin(cmd, func(ctx context.Context, a *admin.Client) error {
				addrs, err := chosen(ctx, a, cluster, broker)
				if err != nil {
					return err
				}
				for _, addr := range addrs {
					t, err := a.TopicConfig(ctx, addr, args[0])
					if err != nil {
						return err
					}
					before := t.Perm
					t.Perm = perm
					if err := a.PutTopic(ctx, addr, t, ""); err != nil {
						return err
					}
					if err := say(cmd, "topic %s at %s: %s, was %s", args[0], addr, permText(perm), permText(before)); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	addPlaceFlags(cmd, &cluster, &broker)
	return cmd
}

func newTopicGroups() *cobra.Command {
	return &cobra.Command{
		Use: "groups TOPIC", Short: "List the groups that consume a topic", Args: args(1, "TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withAdmin(cmd, func(ctx context.Context, a *admin.Client) error {
				groups, err := a.Consumers(ctx, args[0])
				if err != nil {
					return err
				}
				t := newTable("group")
				for _, g := range groups {
					t.add(g)
				}
				return t.print(cmd)
			})
		},
	}
}
