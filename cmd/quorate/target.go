package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/admin"
	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/remoting"
)

// namesrvEnvironment is the variable that RocketMQ's tools read.
const namesrvEnvironment = "NAMESRV_ADDR"

const namesrvDefault = "127.0.0.1:9876"

// target is which NameServers a command talks to, and how it came to them.
type target struct {
	addrs  []string
	origin string
}

// newTarget takes the flag, else the environment, else the default.
func newTarget(flag string) (target, error) {
	t := target{origin: "from -n"}
	text := flag
	if text == "" {
		text, t.origin = os.Getenv(namesrvEnvironment), "from "+namesrvEnvironment
	}
	if text == "" {
		text, t.origin = namesrvDefault, "default"
	}
	for addr := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ';' || r == ',' }) {
		if addr = strings.TrimSpace(addr); addr == "" {
			continue
		}
		if !strings.Contains(addr, ":") {
			addr += ":9876"
		}
		t.addrs = append(t.addrs, addr)
	}
	if len(t.addrs) == 0 {
		return t, usagef("no NameServer address in %q (%s)", text, t.origin)
	}
	return t, nil
}

func (t target) String() string { return strings.Join(t.addrs, ";") + " (" + t.origin + ")" }

// addTargetFlag gives a command and those below it -n.
func addTargetFlag(cmd *cobra.Command) {
	cmd.PersistentFlags().StringP("namesrv", "n", "", "NameServer addresses, ';' between them (else "+namesrvEnvironment+", else "+namesrvDefault+")")
	cmd.PersistentFlags().BoolP("verbose", "v", false, "log what happens on the way")
	cmd.PersistentFlags().StringP("output", "o", "table", "table or json")
}

func targetOf(cmd *cobra.Command) (target, error) {
	flag, err := cmd.Flags().GetString("namesrv")
	if err != nil {
		return target{}, err
	}
	return newTarget(flag)
}

// clientLogger writes warnings to standard error, everything with --verbose.
func clientLogger(cmd *cobra.Command) *slog.Logger {
	verbose, err := cmd.Flags().GetBool("verbose")
	return clientLoggerOf(cmd, err == nil && verbose)
}

func clientLoggerOf(cmd *cobra.Command, verbose bool) *slog.Logger {
	level := slog.LevelError
	if verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level}))
}

// withAdmin runs fn with a client for administrative requests.
func withAdmin(cmd *cobra.Command, fn func(ctx context.Context, a *admin.Client) error) error {
	t, err := targetOf(cmd)
	if err != nil {
		return err
	}
	rc := remoting.NewClient(remoting.ClientConfig{}, clientLogger(cmd))
	err = fn(cmd.Context(), admin.New(rc, t.addrs))
	if closeErr := rc.Close(); err == nil {
		err = closeErr
	}
	return explain(err, t)
}

// withClient runs fn with a client for messages; background work of the client runs until fn returns.
func withClient(cmd *cobra.Command, cfg client.Config, fn func(ctx context.Context, c *client.Client) error) error {
	t, err := targetOf(cmd)
	if err != nil {
		return err
	}
	cfg.NameServers = t.addrs
	c, err := client.New(cfg, clientLogger(cmd))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	background := make(chan error, 1)
	go func() { background <- c.Run(ctx) }()
	err = fn(ctx, c)
	cancel()
	if runErr := <-background; err == nil {
		err = runErr
	}
	if closeErr := c.Close(); err == nil {
		err = closeErr
	}
	return explain(err, t)
}

// explain adds which address was used to a failure.
func explain(err error, t target) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w\n  (NameServer %s)", err, t)
}

// table is rows under a header, or JSON objects with the header's names.
type table struct {
	header []string
	rows   [][]any
}

func newTable(header ...string) *table { return &table{header: header} }

func (t *table) add(cells ...any) { t.rows = append(t.rows, cells) }

func (t *table) print(cmd *cobra.Command) error {
	format, err := cmd.Flags().GetString("output")
	if err != nil {
		return err
	}
	switch format {
	case "json":
		objects := make([]map[string]any, 0, len(t.rows))
		for _, row := range t.rows {
			object := map[string]any{}
			for i, cell := range row {
				object[strings.ToLower(strings.ReplaceAll(t.header[i], " ", "_"))] = cell
			}
			objects = append(objects, object)
		}
		return printJSON(cmd.OutOrStdout(), objects)
	case "table":
		w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
		if _, err := fmt.Fprintln(w, strings.ToUpper(strings.Join(t.header, "\t"))); err != nil {
			return err
		}
		for _, row := range t.rows {
			cells := make([]string, len(row))
			for i, cell := range row {
				cells[i] = fmt.Sprint(cell)
			}
			if _, err := fmt.Fprintln(w, strings.Join(cells, "\t")); err != nil {
				return err
			}
		}
		return w.Flush()
	}
	return usagef("output %q: it is table or json", format)
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// say prints one line to standard output.
func say(cmd *cobra.Command, format string, args ...any) error {
	_, err := fmt.Fprintf(cmd.OutOrStdout(), format+"\n", args...)
	return err
}

// parseTime reads `now`, milliseconds since the epoch, a duration back (`-1h`), or a local date and time.
func parseTime(text string) (time.Time, error) {
	if text == "now" {
		return time.Now(), nil
	}
	if d, err := time.ParseDuration(text); err == nil && d <= 0 {
		return time.Now().Add(d), nil
	}
	var ms int64
	if n, err := fmt.Sscanf(text, "%d", &ms); n == 1 && err == nil && fmt.Sprint(ms) == text {
		return time.UnixMilli(ms), nil
	}
	for _, layout := range []string{"2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02", time.RFC3339, javaTimeLayout} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, nil
		}
	}
	return time.Time{}, usagef("time %q: give now, -1h, 2026-01-02 15:04 or milliseconds", text)
}

// javaTimeLayout is `yyyy-MM-dd#HH:mm:ss:SSS`, after its last colon is made a dot.
const javaTimeLayout = "2006-01-02#15:04:05.000"

func millis(ms int64) string {
	if ms <= 0 {
		return "-"
	}
	return time.UnixMilli(ms).Format("2006-01-02 15:04:05.000")
}

func orDash(s string) string { return cmp.Or(s, "-") }
