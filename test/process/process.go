// Package process runs real programs for tests: it builds the product's binary once, starts servers on free loopback
// ports, waits until they serve, reads what the kernel says about them, and ends them by process id. It knows nothing of
// messages; what a program is asked to do is the caller's business.
package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// outputBytesMax bounds what Output keeps of a program; what comes first is kept, the rest is only in the log file.
const outputBytesMax = 1 << 20

// Spec says what to run.
type Spec struct {
	Name string            // for messages
	Path string            // the program
	Args []string          //
	Env  map[string]string // on top of this process's environment
	Dir  string            // working directory; empty: the caller's
	Log  string            // file that gets standard output and error; empty: only kept in memory
}

// Process is a running program. Its methods are safe for concurrent use.
type Process struct {
	name   string
	cmd    *exec.Cmd
	done   chan struct{}
	err    error // read after done
	output output
}

// Start runs the program in a process group of its own, so that a terminal's signals do not reach it. It dies with the
// test binary even when that is killed.
func Start(spec Spec) (*Process, error) {
	p := &Process{name: spec.Name, done: make(chan struct{})}
	p.cmd = exec.Command(spec.Path, spec.Args...)
	p.cmd.Dir = spec.Dir
	p.cmd.Env = os.Environ()
	for k, v := range spec.Env {
		p.cmd.Env = append(p.cmd.Env, k+"="+v)
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p.cmd.WaitDelay = time.Second
	var sink io.Writer = &p.output
	var file *os.File
	if spec.Log != "" {
		var err error
		file, err = os.OpenFile(spec.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, fmt.Errorf("log of %s: %w", spec.Name, err)
		}
		sink = io.MultiWriter(&p.output, file)
	}
	p.cmd.Stdout, p.cmd.Stderr = sink, sink
	started := make(chan error)
	go func() {
		// Pdeathsig fires when the thread that forked ends, so that thread is kept until the child is gone.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
		}
		if file != nil {
			p.err = errors.Join(p.err, file.Close())
		}
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	return p, nil
}

// PID is the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Name is the name from the Spec.
func (p *Process) Name() string { return p.name }

// Done is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Output is what the program has printed so far, at most 1 MiB from its beginning.
func (p *Process) Output() string { return p.output.String() }

// Tail is the end of Output, for failure messages.
func (p *Process) Tail() string {
	s := p.Output()
	if len(s) > 4000 {
		s = "…" + s[len(s)-4000:]
	}
	return s
}

// Signal sends a signal to the program alone.
func (p *Process) Signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// Stop asks with SIGTERM and waits; after grace it kills and reports that as an error. A program that had ended is fine.
func (p *Process) Stop(grace time.Duration) error {
	if err := p.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(grace):
		p.Kill()
		return fmt.Errorf("stop %s: still there %v after SIGTERM, killed", p.name, grace)
	}
}

// Kill ends the program with SIGKILL and waits for it.
func (p *Process) Kill() {
	_ = p.Signal(syscall.SIGKILL) // the only failure is that it has ended already
	<-p.done
}

// ExitCode waits for the end and returns the status, −1 when a signal ended it.
func (p *Process) ExitCode() int {
	<-p.done
	return p.cmd.ProcessState.ExitCode()
}

// WaitOutput waits until the program has printed text.
func (p *Process) WaitOutput(ctx context.Context, text string) error {
	return p.wait(ctx, fmt.Sprintf("print %q", text), func() bool { return strings.Contains(p.Output(), text) })
}

// WaitFor polls ready until it is true, the program ends, or ctx is over.
func (p *Process) WaitFor(ctx context.Context, what string, ready func() bool) error {
	return p.wait(ctx, what, ready)
}

func (p *Process) wait(ctx context.Context, what string, ready func() bool) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ready() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s did not %s: %w\n%s", p.name, what, ctx.Err(), p.Tail())
		case <-p.done:
			if ready() {
				return nil
			}
			return fmt.Errorf("%s ended (%v) before it did %s\n%s", p.name, p.err, what, p.Tail()) //nolint:errorlint // nil when it ended well
		case <-tick.C:
		}
	}
	return nil
}

// output keeps the first outputBytesMax bytes written to it.
type output struct {
	mu sync.Mutex
	b  []byte
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if room := outputBytesMax - len(o.b); room > 0 {
		o.b = append(o.b, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.b)
}

// ModuleRoot finds the folder of the product's go.mod, from the caller's working directory upwards.
func ModuleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("module root: %w", err)
	}
	for {
		if b, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil && strings.HasPrefix(string(b), "module github.com/quorate/quorate\n") {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("module root: no go.mod of the product above the working directory")
		}
		dir = up
	}
}

// Build compiles cmd/quorate into dir and returns the binary's path. QUORATE_BIN names one that exists instead.
func Build(ctx context.Context, dir string, flags ...string) (string, error) {
	if path := os.Getenv("QUORATE_BIN"); path != "" {
		return path, nil
	}
	root, err := ModuleRoot()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "quorate")
	args := append([]string{"build", "-o", path}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "./cmd/quorate")...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build cmd/quorate: %w\n%s", err, out)
	}
	return path, nil
}
