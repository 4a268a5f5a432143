package main

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/embed"
	"github.com/quorate/quorate/internal/conf"
	"github.com/quorate/quorate/internal/vfs"
)

// standaloneFlags are the flags of standalone besides those of every role.
type standaloneFlags struct {
	roleFlags
	data                                 string
	host                                 string
	namesrvPort, brokerPort, consolePort int
	nodes                                int
	memory                               bool
}

func newStandaloneCommand() *cobra.Command {
	var f standaloneFlags
	cmd := &cobra.Command{
		Use: "standalone", Short: "Run a NameServer and a broker in one process", Args: args(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.add(cmd, slog.LevelWarn)
	flags := cmd.Flags()
	flags.StringVar(&f.data, "data", "./data", "directory of the store")
	flags.StringVar(&f.host, "host", "127.0.0.1", "address to listen on and to announce")
	flags.IntVar(&f.namesrvPort, "namesrv-port", 9876, "port of the NameServer; 0 takes any")
	flags.IntVar(&f.brokerPort, "broker-port", 10911, "port of the broker; the fast port is two below; 0 takes any")
	flags.IntVar(&f.consolePort, "console-port", 8082, "port of the console, when there is one; 0 is off")
	flags.IntVar(&f.nodes, "nodes", 1, "brokers; more than one needs replication, which is not built yet")
	flags.BoolVar(&f.memory, "memory", false, "keep nothing on disk")
	return cmd
}

func (f *standaloneFlags) run(cmd *cobra.Command) error {
	began := time.Now()
	if f.nodes != 1 {
		return usagef("--nodes %d: more than one broker needs replication, which is not built yet; run with --nodes 1", f.nodes)
	}
	cfg, err := f.config(cmd)
	if err != nil {
		return err
	}
	b := cfg.Brokers[0]
	if f.printAll || f.important {
		return configError(b.PrintConfig(cmd.OutOrStdout(), !f.printAll))
	}
	promise, err := b.Promise()
	if err != nil {
		return configError(err)
	}
	err = serve(cmd, cfg, func(n *embed.Node) error { return f.greet(cmd.OutOrStdout(), n, promise, time.Since(began)) })
	if err != nil {
		return err
	}
	return say(cmd, "stopped cleanly")
}

// config lays the flags over what standalone starts with.
func (f *standaloneFlags) config(cmd *cobra.Command) (embed.Config, error) {
	dir := f.data
	if f.memory {
		dir = ""
	}
	cfg := embed.Standalone(dir)
	cfg.Host, cfg.Logger = f.host, f.logger(cmd)
	cfg.NameServers[0].Port = f.namesrvPort
	b := &cfg.Brokers[0]
	b.Port, b.ConfigFile = f.brokerPort, f.file
	v, err := f.read(nil)
	if err != nil {
		return cfg, err
	}
	forNamesrv := conf.Values{}
	for key, value := range v {
		if rest, ok := strings.CutPrefix(key, "namesrv."); ok {
			forNamesrv[rest] = value
			delete(v, key)
		}
	}
	s := newSettings(v)
	maps.Copy(b.Settings, s.values)
	b.Origins = s.origins
	s = newSettings(forNamesrv)
	cfg.NameServers[0].Settings, cfg.NameServers[0].Origins = s.values, s.origins
	return cfg, nil
}

// greet says what listens where, what an OK means, and what to do next.
func (f *standaloneFlags) greet(w io.Writer, n *embed.Node, promise string, took time.Duration) error {
	var b strings.Builder
	namesrv, broker := n.NameServers()[0], n.Brokers()[0]
	fmt.Fprintf(&b, "quorate %s  standalone: NameServer and broker in one process\n\n", version)
	fmt.Fprintf(&b, "  clients     namesrv %s\n", namesrv)
	fmt.Fprintf(&b, "  broker      %s%s\n", broker, fastPort(broker))
	fmt.Fprintf(&b, "  data        %s\n", f.space())
	if rss := residentBytes(); rss > 0 {
		fmt.Fprintf(&b, "  memory      %d MiB in use\n", rss>>20)
	}
	fmt.Fprintf(&b, "  topics      created on first send\n")
	fmt.Fprintf(&b, "  an OK       %s\n\n", strings.TrimPrefix(promise, "an OK "))
	fmt.Fprintf(&b, "Ready in %.2f s.", took.Seconds())
	if ip := net.ParseIP(f.host); ip != nil && ip.IsLoopback() {
		b.WriteString(" Listening on this machine only; --host opens it up.")
	}
	next := "quorate try"
	if namesrv != namesrvDefault {
		next += " -n " + namesrv
	}
	fmt.Fprintf(&b, "\nNext, in another terminal:  %s\n", next)
	_, err := io.WriteString(w, b.String())
	return err
}

// fastPort names the port two below, when that is what it is.
func fastPort(addr string) string {
	_, text, err := net.SplitHostPort(addr)
	if err != nil {
		return ""
	}
	port, err := strconv.Atoi(text)
	if err != nil || port < 3 {
		return ""
	}
	return fmt.Sprintf(" (fast port %d)", port-2)
}

// space names the data directory and what is left there.
func (f *standaloneFlags) space() string {
	if f.memory {
		return "in memory only, gone when this process is"
	}
	usage, err := vfs.OS().Usage(f.data)
	if err != nil {
		return f.data
	}
	return fmt.Sprintf("%s  %d GiB free, %.0f %% used", f.data, usage.Free>>30, 100*usage.UsedRatio())
}

// residentBytes is the memory of this process, 0 where the system does not say.
func residentBytes() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
