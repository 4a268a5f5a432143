package sim

import "time"

// disk is one node's log file: what the page cache shows, what a power loss leaves, and how its fsync behaves.
type disk struct {
	data    []byte // as the process sees it
	durable int    // end of what fsync covers, as far as the process was told
	solid   int    // end of what really is on the platter: less than durable only after a lie
	lost    int    // −1, or where a failed fsync dropped dirty pages that read back only from the cache

	failNext bool          // the next fsync fails once
	stall    time.Duration // an fsync takes that much longer
	full     bool
	same     int  // bytes that were compared equal to the master's
	latched  bool // a failed fsync was seen: no more writes (I5)
	busy     bool
	pending  bool
}

// crash is the loss of the process: the page cache survives.
func (d *disk) crash() { d.restart(len(d.data)) }

// powerLoss leaves what is solid, and a torn piece of what was on its way.
func (d *disk) powerLoss(torn int) { d.restart(min(len(d.data), d.solid+torn)) }

func (d *disk) restart(keep int) {
	if d.lost >= 0 && keep > d.lost {
		keep = d.lost // read back from disk: the pages that the failed fsync dropped are not there
	}
	d.data = wholeRecords(d.data[:max(keep, 0)])
	d.durable, d.solid, d.lost = len(d.data), len(d.data), -1
	d.failNext, d.stall, d.latched, d.busy, d.pending = false, 0, false, false, false
}

// flush starts an fsync of everything written, unless one is at work: then another follows it.
func (n *node) flush() {
	d := &n.disk
	if d.latched || d.busy {
		d.pending = true
		return
	}
	if d.durable == len(d.data) {
		return
	}
	d.busy = true
	end, life := len(d.data), n.life
	took := n.w.between(200*time.Microsecond, 2*time.Millisecond) + d.stall
	n.w.after(took, "fsync", func() {
		if n.life != life {
			return
		}
		d.busy = false
		if d.failNext {
			d.failNext = false
			n.w.bitten["fsync error"]++
			if d.lost < 0 {
				d.lost = d.solid
			}
			if n.w.Mutant != RetryFsync {
				d.latched = true
				n.storageFailed()
				return
			}
			d.pending = true
			n.again()
			return
		}
		end = min(end, len(d.data)) // cut meanwhile
		d.durable = max(d.durable, end)
		if d.lost < 0 {
			d.solid = d.durable
		}
		n.flushed()
		n.again()
	})
}

func (n *node) again() {
	if n.disk.pending {
		n.disk.pending = false
		n.flush()
	}
}

// cut removes the tail, durably.
func (d *disk) cut(end int) {
	d.data = d.data[:end:end]
	d.durable, d.solid = min(d.durable, end), min(d.solid, end)
}
