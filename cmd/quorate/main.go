// Command quorate is the whole product in one binary: servers are subcommands, administration is nouns.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// version is set by the linker.
var version = "0.1.0-dev"

// Exit codes (DESIGN: names that hold).
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// usageError is wrong use or configuration: exit status 2.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// errReported is a failure whose text the user has already seen.
var errReported = errors.New("reported")

func main() { os.Exit(run(context.Background(), os.Args, os.Stdout, os.Stderr)) }

// run executes one command line and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetOut(stdout)
	root.SetErr(stderr)
	words := args[1:]
	// Called by the name of one of RocketMQ's scripts, the binary is that script.
	switch strings.TrimSuffix(filepath.Base(args[0]), ".exe") {
	case "mqadmin":
		words = append([]string{"admin"}, words...)
	case "mqbroker":
		words = append([]string{"broker"}, words...)
	case "mqnamesrv":
		words = append([]string{"namesrv"}, words...)
	}
	root.SetArgs(words)
	err := root.ExecuteContext(ctx)
	var usage *usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errReported):
		return exitFailed
	case errors.As(err, &usage):
		fmt.Fprintln(stderr, "quorate:", err)
		return exitUsage
	default:
		fmt.Fprintln(stderr, "quorate:", err)
		return exitFailed
	}
}
