package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/broker"
	"github.com/quorate/quorate/embed"
	"github.com/quorate/quorate/internal/conf"
	"github.com/quorate/quorate/internal/javakeys"
	"github.com/quorate/quorate/namesrv"
	"github.com/quorate/quorate/remoting"
)

func newConfigCommand() *cobra.Command {
	return noun("config", "Configuration files: check, show, explain", newConfigLint(), newConfigShow(), newConfigExplain())
}

func readBroker(file string) (embed.Broker, error) {
	v, err := (&roleFlags{file: file}).read(nil)
	if err != nil {
		return embed.Broker{}, err
	}
	s := newSettings(v)
	return embed.Broker{Port: -1, Settings: s.values, Origins: s.origins}, nil
}

func newConfigLint() *cobra.Command {
	return &cobra.Command{
		Use: "lint FILE", Short: "Check a broker's configuration file: what is refused, unknown or without effect", Args: args(1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := readBroker(args[0])
			if err != nil {
				return err
			}
			lines, err := b.Lint()
			for _, line := range lines {
				if err := say(cmd, "%s", line); err != nil {
					return err
				}
			}
			if err != nil {
				return configError(err)
			}
			promise, err := b.Promise()
			if err != nil {
				return configError(err)
			}
			if err := say(cmd, "%s", promise); err != nil {
				return err
			}
			if len(lines) > 0 {
				return errReported
			}
			return nil
		},
	}
}

func newConfigShow() *cobra.Command {
	return &cobra.Command{
		Use: "show [FILE]", Short: "Show the configuration that a broker would run with", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file := ""
			if len(args) == 1 {
				file = args[0]
			}
			b, err := readBroker(file)
			if err != nil {
				return err
			}
			return configError(b.PrintConfig(cmd.OutOrStdout(), false))
		},
	}
}

func newConfigExplain() *cobra.Command {
	return &cobra.Command{
		Use: "explain KEY", Short: "Say what a key takes, its default, or why it does nothing", Args: args(1, "KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			b, n, tls := broker.DefaultConfig(), namesrv.DefaultConfig(), remoting.DefaultTLSSettings()
			found := false
			for _, server := range []struct {
				name string
				of   []any
			}{{"broker", []any{&b, &tls}}, {"NameServer", []any{&n}}} {
				for _, f := range conf.Fields(server.of...) {
					if f.Key != args[0] || found && server.name == "broker" {
						continue
					}
					found = true
					if err := say(cmd, "%s (%s): takes %s; default %q", f.Key, server.name, f.Takes(), f.Text()); err != nil {
						return err
					}
				}
			}
			for name, reasons := range map[string]map[string]string{"broker": javakeys.Broker(), "NameServer": namesrv.UnusedKeys} {
				if reason, ok := reasons[args[0]]; ok {
					found = true
					if err := say(cmd, "%s (%s): has no effect: %s", args[0], name, reason); err != nil {
						return err
					}
				}
			}
			if !found {
				report, err := conf.Bind(conf.Values{args[0]: {Origin: "argument"}}, javakeys.Broker(), &b, &n, &tls)
				if err == nil {
					err = usagef("%s", strings.Join(report.Messages(), "; "))
				}
				return err
			}
			return nil
		},
	}
}
