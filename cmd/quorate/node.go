package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/admin"
	"github.com/quorate/quorate/protocol"
)

func newClusterCommand() *cobra.Command {
	ls := &cobra.Command{
		Use: "ls", Aliases: []string{"list", "show"}, Short: "List brokers by cluster", Args: args(0, ""),
		RunE: listBrokers,
	}
	cmd := noun("cluster", "Clusters", ls)
	addTargetFlag(cmd)
	return cmd
}

func newNodeCommand() *cobra.Command {
	ls := &cobra.Command{Use: "ls", Aliases: []string{"list"}, Short: "List running brokers", Args: args(0, ""), RunE: listBrokers}
	config := noun("config", "Read and change a running broker's configuration", newNodeConfigGet(), newNodeConfigSet())
	cmd := noun("node", "Running brokers: status, configuration, draining, cleaning",
		ls, newNodeStatus(), config, newNodeDrain(), newNodeClean())
	addTargetFlag(cmd)
	return cmd
}

func listBrokers(cmd *cobra.Command, _ []string) error {
	return withAdmin(cmd, func(ctx context.Context, a *admin.Client) error {
		info, err := a.Cluster(ctx)
		if err != nil {
			return err
		}
		t := newTable("cluster", "broker", "id", "address", "version", "in tps", "out tps", "disk")
		for _, cluster := range info.Names() {
			for _, b := range info.Of(cluster) {
				for _, id := range sortedKeys(b.BrokerAddrs) {
					table, err := a.Runtime(ctx, b.BrokerAddrs[id])
					if err != nil {
						t.add(cluster, b.BrokerName, id, b.BrokerAddrs[id], "does not answer", "-", "-", "-")
						continue
					}
					t.add(cluster, b.BrokerName, id, b.BrokerAddrs[id], orDash(table["brokerVersionDesc"]), firstWord(table["putTps"]),
						firstWord(table["getTransferredTps"]), orDash(table["commitLogDiskRatio"]))
				}
			}
		}
		return t.print(cmd)
	})
}

func firstWord(s string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(s), " ")
	return orDash(word)
}

// versionText names a protocol version as RocketMQ's MQVersion does.
func versionText(v int32) string { return protocol.VersionName(v) }

func newNodeStatus() *cobra.Command {
	return &cobra.Command{
		Use: "status NAME|ADDRESS", Short: "Show a broker's figures", Args: args(1, "NAME|ADDRESS"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onBroker(cmd, args[0], func(ctx context.Context, a *admin.Client, addr string) error {
				table, err := a.Runtime(ctx, addr)
				if err != nil {
					return err
				}
				t := newTable("key", "value")
				for _, key := range sortedKeys(table) {
					t.add(key, table[key])
				}
				return t.print(cmd)
			})
		},
	}
}

// onBroker runs fn for the one broker of that name or address.
func onBroker(cmd *cobra.Command, broker string, fn func(context.Context, *admin.Client, string) error) error {
	return withAdmin(cmd, func(ctx context.Context, a *admin.Client) error {
		addrs, err := chosen(ctx, a, "", broker)
		if err != nil {
			return err
		}
		return fn(ctx, a, addrs[0])
	})
}

func newNodeConfigGet() *cobra.Command {
	return &cobra.Command{
		Use: "get NAME|ADDRESS [KEY]", Short: "Show a broker's configuration, or one key of it", Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onBroker(cmd, args[0], func(ctx context.Context, a *admin.Client, addr string) error {
				text, err := a.BrokerConfig(ctx, addr)
				if err != nil {
					return err
				}
				found := len(args) == 1
				for line := range strings.Lines(text) {
					key, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), "=")
					if len(args) == 2 && args[1] != key {
						continue
					}
					found = true
					if err := say(cmd, "%s=%s", key, value); err != nil {
						return err
					}
				}
				if !found {
					return fmt.Errorf("broker %s has no key %q", addr, args[1])
				}
				return nil
			})
		},
	}
}

func newNodeConfigSet() *cobra.Command {
	return &cobra.Command{
		Use: "set NAME|ADDRESS KEY=VALUE", Short: "Change one key of a running broker", Args: args(2, "NAME|ADDRESS KEY=VALUE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			key, value, ok := strings.Cut(args[1], "=")
			if !ok {
				return usagef("%q is not KEY=VALUE", args[1])
			}
			return onBroker(cmd, args[0], func(ctx context.Context, a *admin.Client, addr string) error {
				if err := a.SetBrokerConfig(ctx, addr, key, value); err != nil {
					return err
				}
				return say(cmd, "%s=%s at %s", key, value, addr)
			})
		},
	}
}

func newNodeDrain() *cobra.Command {
	var undo bool
	cmd := &cobra.Command{
		Use: "drain NAME", Short: "Take a broker's write permission away, so that producers leave it", Args: args(1, "NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withAdmin(cmd, func(ctx context.Context, a *admin.Client) error {
				for _, ns := range a.NameServers() {
					change := a.WipeWrite
					if undo {
						change = a.AddWrite
					}
					n, err := change(ctx, ns, args[0])
					if err != nil {
						return err
					}
					if err := say(cmd, "%d topics of %s changed at NameServer %s", n, args[0], ns); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&undo, "undo", false, "give the permission back")
	return cmd
}

func newNodeClean() *cobra.Command {
	return &cobra.Command{
		Use: "clean NAME|ADDRESS queues|topics|log", Short: "Delete what has expired or is unused", Args: args(2, "NAME|ADDRESS queues|topics|log"),
		RunE: func(cmd *cobra.Command, args []string) error {
			what, ok := map[string]admin.Cleaning{
				"queues": admin.ExpiredConsumeQueues, "topics": admin.UnusedTopics, "log": admin.ExpiredCommitLog,
			}[args[1]]
			if !ok {
				return usagef("%q: it is queues, topics or log", args[1])
			}
			return onBroker(cmd, args[0], func(ctx context.Context, a *admin.Client, addr string) error {
				if err := a.Clean(ctx, addr, what); err != nil {
					return err
				}
				return say(cmd, "cleaned %s at %s", args[1], addr)
			})
		},
	}
}

func newKVCommand() *cobra.Command {
	get := &cobra.Command{
		Use: "get NAMESPACE [KEY]", Short: "Show a pair, or all of a namespace", Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withAdmin(cmd, func(ctx context.Context, a *admin.Client) error {
				if len(args) == 2 {
					value, err := a.KV(ctx, args[0], args[1])
					if err != nil {
						return err
					}
					return say(cmd, "%s", value)
				}
				pairs, err := a.KVs(ctx, args[0])
				if err != nil {
					return err
				}
				t := newTable("key", "value")
				for _, key := range sortedKeys(pairs) {
					t.add(key, pairs[key])
				}
				return t.print(cmd)
			})
		},
	}
	set := &cobra.Command{
		Use: "set NAMESPACE KEY VALUE", Short: "Store a pair at every NameServer", Args: args(3, "NAMESPACE KEY VALUE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withAdmin(cmd, func(ctx context.Context, a *admin.Client) error { return a.PutKV(ctx, args[0], args[1], args[2]) })
		},
	}
	del := &cobra.Command{
		Use: "delete NAMESPACE KEY", Short: "Remove a pair from every NameServer", Args: args(2, "NAMESPACE KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withAdmin(cmd, func(ctx context.Context, a *admin.Client) error { return a.DeleteKV(ctx, args[0], args[1]) })
		},
	}
	cmd := noun("kv", "Pairs that the NameServer keeps", get, set, del)
	addTargetFlag(cmd)
	return cmd
}
