// Package mqadmin is RocketMQ's mqadmin over package admin: the same command names and options, and the same columns, so
// that scripts which read them keep working. Unlike the original it fails with an exit status.
package mqadmin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/admin"
	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/internal/javaopt"
	"github.com/quorate/quorate/remoting"
)

// Errors of use. Match with errors.Is.
var (
	ErrUsage    = errors.New("wrong use")
	ErrUnserved = errors.New("not served")
)

// command is one of mqadmin's commands.
type command struct {
	name, text string
	options    javaopt.Options
	run        func(context.Context, *call) error
}

// call is one invocation.
type call struct {
	*admin.Client
	v       javaopt.Values
	out     io.Writer
	logger  *slog.Logger
	servers []string
}

// printf writes to the command's output; a failed write ends the command at its end.
func (c *call) printf(format string, args ...any) {
	fmt.Fprintf(c.out, format, args...)
}

// Run executes a command line. resolve turns the text of -n, or "", into NameServer addresses.
func Run(ctx context.Context, out io.Writer, logger *slog.Logger, words []string, resolve func(string) ([]string, error)) error {
	w := &sticky{w: out}
	return errors.Join(run(ctx, w, logger, words, resolve), w.err)
}

// sticky remembers the first failed write.
type sticky struct {
	w   io.Writer
	err error
}

func (s *sticky) Write(b []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.w.Write(b)
	s.err = err
	return n, err
}

func run(ctx context.Context, out io.Writer, logger *slog.Logger, words []string, resolve func(string) ([]string, error)) error {
	if len(words) == 0 || words[0] == "-h" || words[0] == "--help" || words[0] == "help" && len(words) == 1 {
		help(out)
		return nil
	}
	name, rest := words[0], words[1:]
	if name == "help" {
		name, rest = words[1], []string{"-h"}
	}
	cmd, err := find(name)
	if err != nil {
		return err
	}
	options := append(slices.Clone(common), cmd.options...)
	if slices.Contains(rest, "-h") || slices.Contains(rest, "--help") {
		fmt.Fprintf(out, "usage: mqadmin %s\n%s\n%s", cmd.name, cmd.text, options.Help())
		return nil
	}
	values, stray, err := options.Parse(rest)
	if err != nil {
		return fmt.Errorf("%w: mqadmin %s: %w\n%s", ErrUsage, cmd.name, err, options.Help())
	}
	if len(stray) > 0 {
		return fmt.Errorf("%w: mqadmin %s: stray words %q", ErrUsage, cmd.name, stray)
	}
	servers, err := resolve(values.Get("namesrvAddr", ""))
	if err != nil {
		return err
	}
	rc := remoting.NewClient(remoting.ClientConfig{}, logger)
	err = cmd.run(ctx, &call{Client: admin.New(rc, servers), v: values, out: out, logger: logger, servers: servers})
	if err != nil {
		err = fmt.Errorf("%s: %w", cmd.name, err)
	}
	return errors.Join(err, rc.Close())
}

// common are the options of every command.
var common = javaopt.Options{
	{Short: "h", Long: "help", Text: "print this help"},
	{Short: "n", Long: "namesrvAddr", Arg: true, Text: "NameServer addresses, ';' between them"},
}

func commands() []command {
	return slices.Concat(topicCommands(), groupCommands(), messageCommands(), brokerCommands(), namesrvCommands())
}

func find(name string) (command, error) {
	for _, c := range commands() {
		if strings.EqualFold(c.name, name) {
			return c, nil
		}
	}
	for known, reason := range unserved {
		if strings.EqualFold(known, name) {
			return command{}, fmt.Errorf("%w: mqadmin %s: %s", ErrUnserved, known, reason)
		}
	}
	return command{}, fmt.Errorf("%w: mqadmin has no command %q (mqadmin help lists them)", ErrUsage, name)
}

func help(out io.Writer) {
	fmt.Fprintln(out, "Commands of mqadmin served here:")
	for _, c := range commands() {
		fmt.Fprintf(out, "   %-35s %s\n", c.name, c.text)
	}
	fmt.Fprintln(out, "\nSee 'mqadmin help <command>' for the options of one.")
}

// withClient runs fn with a client for messages.
func (c *call) withClient(fn func(*client.Client) error) error {
	mc, err := client.New(client.Config{NameServers: c.servers}, c.logger)
	if err != nil {
		return err
	}
	return errors.Join(fn(mc), mc.Close())
}

// where lists the masters that -b (an address) or -c (a cluster) names; with neither, all of them.
func (c *call) where(ctx context.Context) ([]string, error) {
	if addr := c.v.Get("brokerAddr", ""); addr != "" {
		return []string{addr}, nil
	}
	return c.Masters(ctx, c.v.Get("clusterName", c.v.Get("cluster", "")))
}

// number is a whole number option.
func number[T int32 | int64](c *call, long string, fallback T) (T, error) {
	text := c.v.Get(long, "")
	if text == "" {
		return fallback, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || int64(T(n)) != n {
		return 0, fmt.Errorf("%w: --%s %q is not a whole number", ErrUsage, long, text)
	}
	return T(n), nil
}

// flag is a true/false option.
func (c *call) flag(long string, fallback bool) (bool, error) {
	text := c.v.Get(long, "")
	if text == "" {
		return fallback, nil
	}
	b, err := strconv.ParseBool(strings.ToLower(text))
	if err != nil {
		return false, fmt.Errorf("%w: --%s %q is not true or false", ErrUsage, long, text)
	}
	return b, nil
}

// parseTimestamp reads now, milliseconds, or yyyy-MM-dd#HH:mm:ss:SSS.
func parseTimestamp(text string) (int64, error) {
	if text == "now" {
		return time.Now().UnixMilli(), nil
	}
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil {
		return ms, nil
	}
	if i := strings.LastIndex(text, ":"); i > 0 {
		if at, err := time.ParseInLocation("2006-01-02#15:04:05.000", text[:i]+"."+text[i+1:], time.Local); err == nil {
			return at.UnixMilli(), nil
		}
	}
	return 0, fmt.Errorf("%w: timestamp %q: now, milliseconds, or yyyy-MM-dd#HH:mm:ss:SSS", ErrUsage, text)
}

// front is at most the first n characters (UtilAll.frontStringAtLeast).
func front(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n])
	}
	return s
}

// human is UtilAll.timeMillisToHumanString2.
func human(ms int64) string {
	return strings.Replace(time.UnixMilli(ms).Format("2006-01-02 15:04:05.000"), ".", ",", 1)
}

func place(text string) javaopt.Options {
	return javaopt.Options{
		{Short: "b", Long: "brokerAddr", Arg: true, Group: "where", Text: text + " of this broker address"},
		{Short: "c", Long: "clusterName", Arg: true, Group: "where", Text: text + " of this cluster"},
	}
}

func arg(short, long, text string) javaopt.Option {
	return javaopt.Option{Short: short, Long: long, Arg: true, Text: text}
}

func required(short, long, text string) javaopt.Option {
	return javaopt.Option{Short: short, Long: long, Arg: true, Required: true, Text: text}
}
