package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/embed"
	"github.com/quorate/quorate/internal/conf"
	"github.com/quorate/quorate/store"
)

// roleFlags are what every server takes, with RocketMQ's letters.
type roleFlags struct {
	file      string
	namesrv   string
	printAll  bool
	important bool
	set       []string
	logLevel  slog.Level

	takesNamesrv bool
}

func (f *roleFlags) add(cmd *cobra.Command, level slog.Level) {
	f.logLevel = level
	flags := cmd.Flags()
	flags.Var(levelFlag{&f.logLevel}, "log-level", "debug, info, warn or error")
	if f.takesNamesrv {
		flags.StringVarP(&f.namesrv, "namesrvAddr", "n", "", "NameServer addresses, ';' between them")
	}
	flags.StringVarP(&f.file, "configFile", "c", "", "configuration file, key=value")
	flags.BoolVarP(&f.printAll, "printConfigItem", "p", false, "print the configuration and stop")
	flags.BoolVarP(&f.important, "printImportantConfig", "m", false, "print the important part of the configuration and stop")
	flags.StringArrayVar(&f.set, "set", nil, "key=value, over the file; may be repeated")
}

// tlsFileDefault is where RocketMQ's servers look for TLS keys when tls.config.file does not say (TlsSystemConfig).
const tlsFileDefault = "/etc/rocketmq/tls.properties"

// settings are values with the places they came from, as package embed takes them.
type settings struct{ values, origins map[string]string }

func newSettings(v conf.Values) settings {
	s := settings{map[string]string{}, map[string]string{}}
	for key, value := range v {
		s.values[key], s.origins[key] = value.Text, value.Origin
	}
	return s
}

// read lays the file, the environment and the flags over each other, last wins. TLS keys may come from a file of their
// own, below the others. words are further `key=value` settings, as some images pass them.
func (f *roleFlags) read(words []string) (conf.Values, error) {
	v := conf.Values{}
	if f.file != "" {
		file, err := conf.ReadFile(f.file)
		if err != nil {
			return nil, &usageError{err}
		}
		v.Merge(file)
	}
	if addr := os.Getenv(namesrvEnvironment); addr != "" && f.takesNamesrv {
		v.Set("namesrvAddr", addr, "environment "+namesrvEnvironment)
	}
	if f.namesrv != "" {
		v.Set("namesrvAddr", f.namesrv, "-n")
	}
	for _, word := range words {
		if err := v.Assign(word, "argument"); err != nil {
			return nil, &usageError{err}
		}
	}
	for _, word := range f.set {
		if err := v.Assign(word, "--set"); err != nil {
			return nil, &usageError{err}
		}
	}
	return withTLSFile(v)
}

func withTLSFile(v conf.Values) (conf.Values, error) {
	path, given := v["tls.config.file"]
	delete(v, "tls.config.file")
	if path.Text == "" {
		path.Text = tlsFileDefault
	}
	below, err := conf.ReadFile(path.Text)
	if errors.Is(err, fs.ErrNotExist) && !given {
		return v, nil
	}
	if err != nil {
		return nil, &usageError{err}
	}
	below.Merge(v)
	return below, nil
}

// untilSignal is a context that ends with SIGINT or SIGTERM. A second one leaves at once, without draining or flushing:
// what it costs is a recovery at the next start.
func untilSignal(ctx context.Context, stderr func(string)) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	stopped := make(chan struct{})
	go func() {
		select {
		case s := <-signals:
			cancel(fmt.Errorf("%s", s))
		case <-stopped:
			return
		}
		select {
		case s := <-signals:
			stderr(fmt.Sprintf("%s again: leaving at once, the next start will recover", s))
			os.Exit(exitFailed)
		case <-stopped:
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(stopped)
		cancel(context.Canceled)
	}
}

// levelFlag reads a log level.
type levelFlag struct{ level *slog.Level }

func (l levelFlag) String() string {
	if l.level == nil {
		return ""
	}
	return strings.ToLower(l.level.String())
}
func (l levelFlag) Set(text string) error { return l.level.UnmarshalText([]byte(text)) }
func (l levelFlag) Type() string          { return "level" }

// logger writes to standard error.
func (f *roleFlags) logger(cmd *cobra.Command) *slog.Logger {
	return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: f.logLevel}))
}

// serve starts nodes, calls started, and runs them until a signal or their own end.
func serve(cmd *cobra.Command, cfg embed.Config, started func(*embed.Node) error) error {
	ctx, stop := untilSignal(cmd.Context(), func(text string) { fmt.Fprintln(cmd.ErrOrStderr(), text) })
	defer stop()
	node, err := embed.Start(ctx, cfg)
	if err != nil {
		return startError(err)
	}
	if err := started(node); err != nil {
		return errors.Join(err, node.Stop())
	}
	select {
	case <-ctx.Done():
	case <-node.Done():
	}
	return node.Stop()
}

// startError adds what to do about a start that failed.
func startError(err error) error {
	switch {
	case errors.Is(err, embed.ErrConfig):
		return &usageError{err}
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w\n  Another process has that port: stop it, or take other ports with --namesrv-port and --broker-port (standalone) or listenPort", err)
	case errors.Is(err, store.ErrStoreLocked):
		return fmt.Errorf("%w\n  Another broker runs on that directory: stop it, or take another with --data (standalone) or storePathRootDir", err)
	}
	return err
}
