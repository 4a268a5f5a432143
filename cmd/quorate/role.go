package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/conf"
)

// roleFlags are what every server takes, with RocketMQ's letters.
type roleFlags struct {
	file      string
	namesrv   string
	printAll  bool
	important bool
	set       []string
}

func (f *roleFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&f.file, "configFile", "c", "", "configuration file, key=value")
	flags.BoolVarP(&f.printAll, "printConfigItem", "p", false, "print the configuration and stop")
	flags.BoolVarP(&f.important, "printImportantConfig", "m", false, "print the important part of the configuration and stop")
	flags.StringArrayVar(&f.set, "set", nil, "key=value, over the file; may be repeated")
}

// tlsFileDefault is where RocketMQ's servers look for TLS keys when tls.config.file does not say (TlsSystemConfig).
const tlsFileDefault = "/etc/rocketmq/tls.properties"

// values lays the file, the environment and the flags over each other, last wins. TLS keys may come from a file of their
// own, below the others.
func (f *roleFlags) values() (conf.Values, error) {
	v := conf.Values{}
	if f.file != "" {
		file, err := conf.ReadFile(f.file)
		if err != nil {
			return nil, &usageError{err}
		}
		v.Merge(file)
	}
	if addr := os.Getenv(namesrvEnvironment); addr != "" {
		v.Set("namesrvAddr", addr, "environment "+namesrvEnvironment)
	}
	if f.namesrv != "" {
		v.Set("namesrvAddr", f.namesrv, "-n")
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

// bind puts values into the structs that into points to and reports what had no effect. known says of other keys why they
// do nothing.
func bind(v conf.Values, known map[string]string, logger *slog.Logger, into ...any) error {
	report, err := conf.Bind(v, known, into...)
	if err != nil {
		return &usageError{fmt.Errorf("configuration refused:\n%w", err)}
	}
	for _, u := range report.Unknown {
		logger.Warn("unknown configuration key", "key", u.Key, "origin", u.Origin, "did_you_mean", u.Hint)
	}
	for _, u := range report.Unused {
		logger.Warn("configuration key has no effect", "key", u.Key, "origin", u.Origin, "reason", u.Hint)
	}
	return nil
}

// printConfig answers -p and -m; done is false when neither was given.
func (f *roleFlags) printConfig(cmd *cobra.Command, from ...any) (done bool, err error) {
	if !f.printAll && !f.important {
		return false, nil
	}
	return true, conf.Print(cmd.OutOrStdout(), f.important && !f.printAll, from...)
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

// serverLogger writes to standard error.
func serverLogger(level slog.Leveler) *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}
