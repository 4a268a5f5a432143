package main

import (
	"fmt"
	"slices"
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
			lines := explainKey(args[0])
			if len(lines) > 0 {
				return say(cmd, "%s", strings.Join(lines, "\n"))
			}
			b, n, tls := broker.DefaultConfig(), namesrv.DefaultConfig(), remoting.DefaultTLSSettings()
			report, err := conf.Bind(conf.Values{args[0]: {Origin: "argument"}}, javakeys.Broker(), &b, &n, &tls)
			if err == nil {
				err = usagef("%s", strings.Join(report.Messages(), "; "))
			}
			return err
		},
	}
}

// explainKey says what each server makes of a key.
func explainKey(key string) []string {
	b, n, tls := broker.DefaultConfig(), namesrv.DefaultConfig(), remoting.DefaultTLSSettings()
	var lines []string
	for _, server := range []struct {
		name   string
		fields []conf.Field
		unused map[string]string
	}{
		{"broker", conf.Fields(&b, &tls), javakeys.Broker()},
		{"NameServer", conf.Fields(&n), namesrv.UnusedKeys},
	} {
		if i := slices.IndexFunc(server.fields, func(f conf.Field) bool { return f.Key == key }); i >= 0 {
			f := server.fields[i]
			lines = append(lines, fmt.Sprintf("%s (%s): takes %s; default %q", key, server.name, f.Takes(), f.Text()))
		}
		if reason, ok := server.unused[key]; ok {
			lines = append(lines, fmt.Sprintf("%s (%s): has no effect: %s", key, server.name, reason))
		}
	}
	return lines
}
