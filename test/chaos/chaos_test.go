package chaos

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/test/process"
)

const (
	topic   = "chaos"
	senders = 16
)

// cluster is a standalone under load.
type cluster struct {
	*process.Standalone
	t      *testing.T
	ledger ledger
	stop   func()
}

func start(t *testing.T, data string, set map[string]string, wrapper ...string) *cluster {
	t.Helper()
	if os.Getenv("QUORATE_CHAOS") == "" {
		t.Skip("QUORATE_CHAOS is not set: make chaos sets it")
	}
	keys := map[string]string{"flushDiskType": "SYNC_FLUSH", "mappedFileSizeCommitLog": "4194304", "defaultTopicQueueNums": "4"}
	maps.Copy(keys, set)
	binary, err := process.Build(t.Context(), t.TempDir())
	require.NoError(t, err)
	s, err := process.StartStandalone(t.Context(), process.StandaloneConfig{
		Binary: binary, Data: data, Set: keys, Log: filepath.Join(t.TempDir(), "log"), Wrapper: wrapper,
	})
	require.NoError(t, err)
	c := &cluster{Standalone: s, t: t}
	t.Cleanup(func() { c.Kill() })
	return c
}

// load begins to send; the returned function ends it.
func (c *cluster) load() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	client, err := newClient(c.NameServer)
	require.NoError(c.t, err)
	go func() {
		defer close(done)
		c.ledger.produce(ctx, client, topic, senders)
	}()
	c.stop = func() {
		cancel()
		<-done
		require.NoError(c.t, client.Close())
	}
}

// acked waits until n more sends were acknowledged.
func (c *cluster) acked(n int64) {
	c.t.Helper()
	want := c.ledger.acked.Load() + n
	require.Eventually(c.t, func() bool { return c.ledger.acked.Load() >= want }, 60*time.Second, 5*time.Millisecond,
		"too little is acknowledged: %s", c.Tail())
}

// settle ends the load and compares the ledger with what is there.
func (c *cluster) settle() {
	c.t.Helper()
	c.stop()
	client, err := newClient(c.NameServer)
	require.NoError(c.t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	_, err = client.WaitForRoute(ctx, topic)
	require.NoError(c.t, err)
	require.NoError(c.t, c.ledger.settle(ctx, client, topic))
	require.NoError(c.t, client.Close())
	c.t.Logf("%d sends, %d acknowledged, none lost, doubled or out of order", len(c.ledger.entries), c.ledger.acked.Load())
	require.GreaterOrEqual(c.t, c.ledger.acked.Load(), int64(500), "void run")
}

func (c *cluster) crash() {
	c.t.Helper()
	c.Kill()
	require.NoError(c.t, c.Restart(c.t.Context()))
}

// Rows 1 and 6 of the fault matrix, CASES 65: kill -9 under load, again and again, in both flush modes. What ASYNC_FLUSH
// acknowledged is with the operating system, which outlives the process.
func TestKillUnderLoadLosesNothingAcknowledged(t *testing.T) {
	for _, mode := range []string{"SYNC_FLUSH", "ASYNC_FLUSH"} {
		t.Run(mode, func(t *testing.T) {
			c := start(t, filepath.Join(t.TempDir(), "data"), map[string]string{"flushDiskType": mode})
			c.load()
			for range 4 {
				c.acked(400)
				c.crash()
			}
			c.acked(200)
			c.settle()
		})
	}
}

func TestKillWhileStartingIsHarmless(t *testing.T) {
	c := start(t, filepath.Join(t.TempDir(), "data"), nil)
	c.load()
	c.acked(1000)
	for i := range 5 {
		c.Kill()
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(2+7*i)*time.Millisecond)
		_ = c.Restart(ctx) // ended by the short context on purpose, wherever the start is
		cancel()
	}
	c.crash()
	c.acked(200)
	c.settle()
}

// Row 19: a stopped process answers late or not at all, and goes on as if nothing had been.
func TestStopAndContinue(t *testing.T) {
	c := start(t, filepath.Join(t.TempDir(), "data"), nil)
	c.load()
	c.acked(300)
	require.NoError(t, c.Signal(syscall.SIGSTOP))
	time.Sleep(4 * time.Second)
	require.NoError(t, c.Signal(syscall.SIGCONT))
	c.acked(300)
	c.settle()
}

func TestSIGTERMUnderLoadLosesNothing(t *testing.T) {
	c := start(t, filepath.Join(t.TempDir(), "data"), nil)
	c.load()
	c.acked(500)
	require.NoError(t, c.Stop(20*time.Second))
	require.Zero(t, c.ExitCode())
	require.NoError(t, c.Restart(t.Context()))
	c.acked(200)
	c.settle()
}

// Row 56: at the limit of open files new connections wait or fail; the ones that are there are served.
func TestTooManyOpenFiles(t *testing.T) {
	c := start(t, filepath.Join(t.TempDir(), "data"), nil, "sh", "-c", `ulimit -n 128; exec "$0" "$@"`)
	c.load()
	c.acked(300)
	held := holdConnections(t, c.Broker, 300)
	require.Eventually(t, func() bool { return strings.Contains(c.Output(), "too many open files") }, 10*time.Second, 20*time.Millisecond, "the fault did not bite")
	c.acked(300)
	for _, conn := range held {
		require.NoError(t, conn.Close())
	}
	c.acked(300)
	c.settle()
	require.NoError(t, c.Signal(syscall.Signal(0)), "the process lives")
}

// Rows 49 and 50, CASES 82: a full disk refuses before a byte is taken, and ends by itself when space returns.
func TestFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a small disk needs root")
	}
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", "size=96m", "tmpfs", dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Cleanup(func() {
		out, err := exec.CommandContext(context.WithoutCancel(t.Context()), "umount", "-l", dir).CombinedOutput()
		require.NoError(t, err, "%s", out)
	})
	// The watermarks are put out of the way: it is the disk itself that refuses.
	c := start(t, filepath.Join(dir, "data"), map[string]string{
		"diskSpaceWarningLevelRatio": "100", "diskSpaceCleanForciblyRatio": "99", "diskMaxUsedSpaceRatio": "95", "cleanFileForciblyEnable": "false",
	})
	c.load()
	c.acked(500)
	ballast := filepath.Join(dir, "ballast")
	fill(t, ballast)
	refusedFrom := time.Now()
	require.Eventually(t, func() bool { return c.refusedSince(refusedFrom) > 50 }, 60*time.Second, 20*time.Millisecond, "the fault did not bite")
	require.NoError(t, os.Remove(ballast))
	c.acked(500)
	c.settle()
	c.crash()
}

// refusedSince counts sends that began after at and were not acknowledged.
func (c *cluster) refusedSince(at time.Time) (n int) {
	c.ledger.mu.Lock()
	defer c.ledger.mu.Unlock()
	for _, e := range c.ledger.entries {
		if !e.acknowledged && e.called.After(at) {
			n++
		}
	}
	return n
}

// fill writes zeros until the disk is full.
func fill(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	require.NoError(t, err)
	block := make([]byte, 1<<20)
	for err == nil {
		_, err = f.Write(block)
	}
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.NoError(t, f.Close())
}

// Rows 44 and 52, CASES 67, I5: a failed fsync is never retried into success. Writes stop with a reason, reads go on, and
// only a restart, which verifies from disk, opens them again.
func TestFailedFsyncStopsWrites(t *testing.T) {
	needStrace(t)
	c := start(t, filepath.Join(t.TempDir(), "data"), nil, "strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync,fsync",
		"-e", "inject=fdatasync,fsync:error=EIO:when=400")
	c.load()
	require.Eventually(t, func() bool {
		return strings.Contains(c.Output(), "EIO") || strings.Contains(c.Output(), "input/output error")
	},
		60*time.Second, 20*time.Millisecond, "the fault did not bite: %s", c.Tail())
	time.Sleep(500 * time.Millisecond) // what was under way is answered
	before := c.ledger.acked.Load()
	refusedFrom := time.Now()
	require.Eventually(t, func() bool { return c.refusedSince(refusedFrom) > 50 }, 30*time.Second, 20*time.Millisecond)
	require.Equal(t, before, c.ledger.acked.Load(), "an fsync after a failed one proves nothing")
	c.crash() // strace begins to count anew: the fault bites again far behind what this test sends
	c.acked(100)
	c.settle()
}

// Row 49: no space for a file that is prepared ahead is no failure of the log: sends are refused meanwhile, or nobody
// notices, and everything goes on when it ends.
func TestNoSpaceWhilePreparing(t *testing.T) {
	needStrace(t)
	c := start(t, filepath.Join(t.TempDir(), "data"), map[string]string{"flushDiskType": "ASYNC_FLUSH"},
		"strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fallocate", "-e", "inject=fallocate:error=ENOSPC:when=3..40")
	c.load()
	require.Eventually(t, func() bool { return strings.Contains(c.Output(), "no space left on device") }, 60*time.Second, 20*time.Millisecond,
		"the fault did not bite: %s", c.Tail())
	c.acked(500)
	c.crash()
	c.acked(200)
	c.settle()
}

func needStrace(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("strace is missing: .ci/deps installs it")
		}
		t.Skip("strace is not installed")
	}
	if runtime.GOOS != "linux" {
		t.Skip("strace is a Linux tool")
	}
}
