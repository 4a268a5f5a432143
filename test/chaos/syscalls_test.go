package chaos

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/test/process"
)

// Rows 44 and 52: whichever call of the log fails, and with which error, writes end with a reason and stay ended when the
// fault is over, because nobody knows what is on disk; reads go on; nothing acknowledged is lost; a restart opens writes.
func TestFailedCallEndsWritesForGood(t *testing.T) {
	needStrace(t)
	for _, test := range []struct{ calls, fault string }{
		{"fdatasync,fsync", "EIO"},
		{"fdatasync,fsync", "ENOSPC"},
		{"pwrite64,pwritev,pwritev2", "EIO"},
		{"pwrite64,pwritev,pwritev2", "ENOSPC"},
	} {
		t.Run(test.calls+" "+test.fault, func(t *testing.T) {
			c := start(t, filepath.Join(t.TempDir(), "data"), nil)
			c.load()
			c.acked(300)
			from := time.Now()
			stop := inject(t, c.PID(), test.calls, test.fault)
			require.Eventually(t, func() bool { return c.refusedSince(from) > 50 }, 30*time.Second, 20*time.Millisecond, "the fault did not bite")
			require.Positive(t, stop(), "the fault did not bite")
			before := c.ledger.acked.Load()
			time.Sleep(time.Second)
			require.Equal(t, before, c.ledger.acked.Load(), "writes went on after a failed %s", test.calls)
			c.readable()
			c.crash()
			c.acked(300)
			c.settle()
		})
	}
}

// A limit on the size of files makes the log fail to grow. Whether that is a refusal or the end of writes, nothing
// acknowledged is lost by it.
func TestFileSizeLimitLosesNothing(t *testing.T) {
	if _, err := exec.LookPath("prlimit"); err != nil {
		t.Skip("prlimit is not installed")
	}
	c := start(t, filepath.Join(t.TempDir(), "data"), map[string]string{"mappedFileSizeCommitLog": "262144"})
	c.load()
	c.acked(300)
	from := time.Now()
	limitFiles(t, c.PID(), "65536:") // the soft limit alone: it can be raised again
	require.Eventually(t, func() bool { return c.refusedSince(from) > 50 }, 30*time.Second, 20*time.Millisecond, "the fault did not bite")
	require.NoError(t, c.Signal(syscall.Signal(0)), "the process lives")
	c.readable()
	limitFiles(t, c.PID(), "unlimited:")
	c.crash()
	c.acked(300)
	c.settle()
}

// readable reads everything while writes are refused.
func (c *cluster) readable() {
	c.t.Helper()
	client, err := newClient(c.NameServer)
	require.NoError(c.t, err)
	defer func() { require.NoError(c.t, client.Close()) }()
	ctx, cancel := context.WithTimeout(c.t.Context(), 30*time.Second)
	defer cancel()
	queues, err := client.Queues(ctx, topic)
	require.NoError(c.t, err)
	there := map[string]found{}
	for _, q := range queues {
		require.NoError(c.t, drain(ctx, client, q, there), "reads go on")
	}
	require.GreaterOrEqual(c.t, int64(len(there)), c.ledger.acked.Load(), "what was acknowledged can be read")
}

// inject makes calls of a running process fail from now on; the returned function ends that and says how many did.
func inject(t *testing.T, pid int, calls, fault string) (stop func() int) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "strace")
	p, err := process.Start(process.Spec{Name: "strace", Path: "strace", Args: []string{
		"-f", "-qq", "-o", log, "-e", "trace=" + calls, "-e", fmt.Sprintf("inject=%s:error=%s", calls, fault), "-p", fmt.Sprint(pid),
	}})
	require.NoError(t, err)
	ended := false
	stop = func() int {
		if !ended {
			ended = true
			require.NoError(t, p.Signal(syscall.SIGINT)) // it lets go of the process
			<-p.Done()
		}
		b, err := os.ReadFile(log)
		require.NoError(t, err)
		return strings.Count(string(b), "(INJECTED)")
	}
	t.Cleanup(func() { stop() })
	return stop
}

func limitFiles(t *testing.T, pid int, limit string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "prlimit", "--pid", fmt.Sprint(pid), "--fsize="+limit).CombinedOutput()
	require.NoError(t, err, string(out))
}
