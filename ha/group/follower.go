package group

import (
	"fmt"
	"time"
)

// Follower is a replica's side of its connection to the master. Not safe for concurrent use.
type Follower struct {
	dialect Dialect
	timing  Timing

	end     int64 // of the local log, exclusive
	flushed int64

	reportedEnd     int64
	reportedFlushed int64
	lastRead        time.Duration
	lastWrite       time.Duration
}

// NewFollower is a connection that was made at now by a replica whose log ends at end and is flushed up to flushed.
func NewFollower(d Dialect, t Timing, end, flushed int64, now time.Duration) *Follower {
	return &Follower{dialect: d, timing: t, end: end, flushed: flushed, reportedEnd: -1, reportedFlushed: -1, lastRead: now, lastWrite: now}
}

// Push checks a transfer or a heartbeat (size 0) against the end of the log. RocketMQ's replica does the same, heartbeats
// included; only an empty log takes any offset and then begins there. An error closes the connection; nothing is appended.
func (f *Follower) Push(now time.Duration, offset int64, size int) error {
	f.lastRead = now
	if size == 0 && offset < 0 {
		return nil // an AutoSwitchHA master that does not know yet where to send from
	}
	if f.end != 0 && offset != f.end {
		return fmt.Errorf("%w: pushed at %d, the log ends at %d", ErrMismatch, offset, f.end)
	}
	return nil
}

// Appended records that the local log now ends at end.
func (f *Follower) Appended(end int64) { f.end = max(f.end, end) }

// Flushed records that the local fsync covers everything below end.
func (f *Follower) Flushed(end int64) { f.flushed = max(f.flushed, end) }

// Report is what to tell the master: the end of the log, and what of it is flushed (−1 where the dialect has no word for it).
func (f *Follower) Report() (received, flushed int64) {
	if f.dialect != Ours {
		return f.end, -1
	}
	return f.end, min(f.flushed, f.end)
}

// ReportDue says whether to report now: at once when something moved that the master does not know, else when the
// heartbeat interval has passed, and else how long until then.
func (f *Follower) ReportDue(now time.Duration) (due bool, in time.Duration) {
	received, flushed := f.Report()
	if received > f.reportedEnd && received > 0 || flushed > f.reportedFlushed && flushed > 0 {
		return true, 0
	}
	if f.reportedEnd < 0 && f.dialect != Auto {
		return true, 0 // the master sends nothing before it knows where to start; RocketMQ's replica lets it wait 5 s
	}
	return elapsed(now, f.lastWrite, f.timing.Heartbeat)
}

// Reported records that Report was sent.
func (f *Follower) Reported(now time.Duration) {
	f.reportedEnd, f.reportedFlushed = f.Report()
	f.lastWrite = now
}

// Expired is ErrSilent when the master has not been heard for the housekeeping interval, else how long until then.
func (f *Follower) Expired(now time.Duration) (in time.Duration, err error) {
	due, in := elapsed(now, f.lastRead, f.timing.Housekeeping)
	if due {
		return 0, fmt.Errorf("%w: nothing heard for %v", ErrSilent, now-f.lastRead)
	}
	return in, nil
}

// Backoff is how long to wait before the n-th reconnect in a row (from 0): it doubles from 100 ms up to RocketMQ's 5 s.
func Backoff(n int) time.Duration {
	return min(100*time.Millisecond<<min(n, 6), 5*time.Second)
}
