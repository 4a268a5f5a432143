package main

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/embed"
)

func newNamesrvCommand() *cobra.Command {
	var f roleFlags
	cmd := &cobra.Command{
		Use: "namesrv", Short: "Run a NameServer",
		RunE: func(cmd *cobra.Command, words []string) error {
			v, err := f.read(words)
			if err != nil {
				return err
			}
			s := newSettings(v)
			ns := embed.NameServer{Settings: s.values, Origins: s.origins}
			if f.printAll || f.important {
				return configError(ns.PrintConfig(cmd.OutOrStdout(), !f.printAll))
			}
			cfg := embed.Config{NameServers: []embed.NameServer{ns}, Host: embed.HostFromSettings, Logger: f.logger(cmd)}
			return serve(cmd, cfg, func(n *embed.Node) error {
				return say(cmd, "The Name Server boot success. serializeType=JSON, address %s", n.NameServers()[0])
			})
		},
	}
	f.add(cmd, slog.LevelInfo)
	return cmd
}

func newBrokerCommand() *cobra.Command {
	f := roleFlags{takesNamesrv: true}
	var proxy bool
	cmd := &cobra.Command{
		Use: "broker", Short: "Run a broker",
		RunE: func(cmd *cobra.Command, words []string) error {
			if proxy {
				return usagef("--enable-proxy: the proxy of 5.x gRPC clients is not built yet")
			}
			v, err := f.read(words)
			if err != nil {
				return err
			}
			s := newSettings(v)
			b := embed.Broker{Port: -1, Settings: s.values, Origins: s.origins, ConfigFile: f.file}
			if f.printAll || f.important {
				return configError(b.PrintConfig(cmd.OutOrStdout(), !f.printAll))
			}
			if v["namesrvAddr"].Text == "" {
				b.NameServers = []string{namesrvDefault}
			}
			promise, err := b.Promise()
			if err != nil {
				return configError(err)
			}
			cfg := embed.Config{Brokers: []embed.Broker{b}, Host: embed.HostFromSettings, Logger: f.logger(cmd)}
			return serve(cmd, cfg, func(n *embed.Node) error {
				text := fmt.Sprintf("The broker[%s, %s] boot success. serializeType=JSON and name server is %s\n%s", n.BrokerNames()[0],
					n.Brokers()[0], strings.Join(n.BrokerNameServers(), ";"), promise)
				return say(cmd, "%s", text)
			})
		},
	}
	f.add(cmd, slog.LevelInfo)
	cmd.Flags().BoolVar(&proxy, "enable-proxy", false, "not built yet")
	return cmd
}

// configError makes a refused configuration wrong use.
func configError(err error) error {
	if err == nil {
		return nil
	}
	return startError(err)
}
