package bench

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// usage is what the kernel counts for a process; ok is false where there is no /proc or no such process.
type usage struct {
	ok        bool
	cpu       time.Duration
	anonymous int64
	file      int64
}

// clockTick is USER_HZ, which Linux fixes at 100 for /proc on every architecture that Go runs on.
const clockTick = time.Second / 100

// readUsage reads a process's counters; pid 0 is this process, a negative one is nobody.
func readUsage(pid int) (u usage) {
	dir := "/proc/self"
	if pid < 0 {
		return u
	}
	if pid > 0 {
		dir = fmt.Sprintf("/proc/%d", pid)
	}
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return u
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 13 {
		return u
	}
	for _, f := range fields[11:13] { // utime and stime: fields 14 and 15 of proc_pid_stat(5)
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return u
		}
		u.cpu += time.Duration(n) * clockTick
	}
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return u
	}
	for line := range strings.Lines(string(status)) {
		key, value, _ := strings.Cut(line, ":")
		kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64) // lines that hold no size stay 0
		switch key {
		case "RssAnon":
			u.anonymous = kib << 10
		case "RssFile":
			u.file = kib << 10
		}
	}
	u.ok = true
	return u
}

// use is what was spent since u was read.
func (u usage) use(pid int, messages int64, length time.Duration) *TargetUse {
	now := readUsage(pid)
	if pid <= 0 || !u.ok || !now.ok {
		return nil
	}
	spent := now.cpu - u.cpu
	return &TargetUse{
		PID: pid, CPU: micros(spent) / float64(messages), CoreShare: spent.Seconds() / length.Seconds(),
		AnonymousRSS: now.anonymous, FileRSS: now.file,
	}
}

// listenerPID finds the process that listens at a port of this machine, or −1. It needs the right to read the process's
// open files: the same user, or root.
func listenerPID(addr string) int {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return -1
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return -1
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return -1
	}
	inode := listeningInode(uint16(n))
	if inode == "" {
		return -1
	}
	links, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return -1
	}
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && to == "socket:["+inode+"]" {
			if pid, err := strconv.Atoi(strings.Split(link, "/")[2]); err == nil {
				return pid
			}
		}
	}
	return -1
}

// listeningInode looks a listening port up in /proc/net/tcp and tcp6: local address in hex in column 2, state 0A (listen)
// in column 4, inode in column 10.
func listeningInode(port uint16) string {
	suffix := fmt.Sprintf(":%04X", port)
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		table, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(table)) {
			f := strings.Fields(line)
			if len(f) > 9 && f[3] == "0A" && strings.HasSuffix(f[1], suffix) {
				return f[9]
			}
		}
	}
	return ""
}
