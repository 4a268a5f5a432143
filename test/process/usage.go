package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ticksPerSecond is USER_HZ, which Linux fixes at 100 for /proc/PID/stat on every architecture Go runs on.
const ticksPerSecond = 100

// Usage is what the kernel says about a process.
type Usage struct {
	CPU           time.Duration // user and system time so far
	AnonymousRSS  int64         // bytes: RssAnon
	FileRSS       int64         // bytes: RssFile
	Threads       int64
	VoluntarySwap int64 // voluntary context switches of the main thread
}

// ReadUsage reads /proc for pid.
func ReadUsage(pid int) (Usage, error) {
	var u Usage
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return u, fmt.Errorf("usage of %d: %w", pid, err)
	}
	// The name in parentheses may hold spaces; fields are counted after it: utime is the 14th of all, the 12th from here.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 13 {
		return u, fmt.Errorf("usage of %d: short stat line %q", pid, stat)
	}
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return u, fmt.Errorf("usage of %d: %w", pid, err)
		}
		u.CPU += time.Duration(n) * time.Second / ticksPerSecond
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return u, fmt.Errorf("usage of %d: %w", pid, err)
	}
	for line := range strings.Lines(string(status)) {
		key, rest, _ := strings.Cut(line, ":")
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			continue
		}
		n, _ := strconv.ParseInt(fields[0], 10, 64) // other keys need not be numbers
		switch key {
		case "RssAnon":
			u.AnonymousRSS = n << 10
		case "RssFile":
			u.FileRSS = n << 10
		case "Threads":
			u.Threads = n
		case "voluntary_ctxt_switches":
			u.VoluntarySwap = n
		}
	}
	return u, nil
}
