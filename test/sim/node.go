package sim

import (
	"bytes"
	"time"

	"github.com/quorate/quorate/ha"
	"github.com/quorate/quorate/ha/group"
)

const (
	masterID  = 0
	waitLimit = time.Second // of a send
	tickEvery = 100 * time.Millisecond
)

var timing = group.Timing{Heartbeat: time.Second, Housekeeping: 4 * time.Second}

// node is one broker: its disk outlives it, everything else is of one life.
type node struct {
	w       *World
	id      int
	disk    disk
	history ha.History // written with the log

	up   bool
	life int // counts starts: what was planned in an earlier life does not happen

	// master
	core      *group.Master
	conns     map[int]*conn
	known     map[ha.BrokerID]progress // what replicas reported in their live session, for the oracle
	confirmed int64
	pending   []*operation // sends that wait, in append order
	alive     int

	// replica
	upstream *conn
	failures int
}

type progress struct{ received, flushed int64 }

// conn is one connection of a replica to the master; each side has its half of the state.
type conn struct {
	id       int
	replica  *node
	session  *group.Session  // the master's
	follower *group.Follower // the replica's
	open     bool
}

func newNode(w *World, id int) *node { return &node{w: w, id: id, disk: disk{lost: -1}} }

func (n *node) isMaster() bool { return n.id == masterID }

// start is a boot: recovery has cut a torn tail already.
func (n *node) start() {
	n.life++
	n.up, n.failures = true, 0
	n.history = n.history.TruncateTo(int64(len(n.disk.data)) + 1)
	if n.isMaster() {
		n.startMaster()
	} else {
		n.w.after(n.w.between(0, 50*time.Millisecond), "connect", n.inLife(n.connect))
	}
	n.w.after(tickEvery, "tick", n.inLife(n.tick))
}

func (n *node) startMaster() {
	end := int64(len(n.disk.data))
	h, err := n.history.Append(ha.EpochEntry{Epoch: n.history.Last() + 1, Start: end})
	if err != nil {
		n.w.broken("master cannot begin an epoch: %v", err)
	}
	n.history = h
	policy := n.w.Policy
	if n.w.Mutant == IgnoreGap {
		policy.MaxGapNotInSync = 1 << 60
	}
	n.core, err = group.NewMaster(group.MasterConfig{
		Authority: ha.Authority{BrokerID: masterID, Epoch: 1}, SyncFlush: n.w.SyncFlush, Durable: n.w.Durable, Sync: true, Quorum: policy,
	})
	if err != nil {
		n.w.broken("new master: %v", err)
	}
	n.conns, n.known, n.pending = map[int]*conn{}, map[ha.BrokerID]progress{}, nil
	n.alive = n.w.Replicas + 1
	n.core.Alive(n.alive)
	n.settle()
}

// stop ends this life; how the disk comes out of it is the nemesis's business.
func (n *node) stop() {
	if !n.up {
		return
	}
	n.up = false
	n.life++
	for _, op := range n.pending {
		op.unknown(n.w.now)
	}
	n.pending, n.core = nil, nil
	if n.upstream != nil {
		n.drop(n.upstream)
	}
	for _, id := range sortedKeys(n.conns) {
		n.drop(n.conns[id])
	}
}

// inLife makes run do nothing after the node was stopped.
func (n *node) inLife(run func()) func() {
	life := n.life
	return func() {
		if n.up && n.life == life {
			run()
		}
	}
}

func (n *node) tick() {
	if n.isMaster() {
		n.core.Alive(n.aliveNow())
		for _, id := range sortedKeys(n.conns) {
			c := n.conns[id]
			if _, err := c.session.Expired(n.w.now); err != nil {
				n.drop(c)
				continue
			}
			if due, _ := c.session.HeartbeatDue(n.w.now); due && c.session.Started() {
				n.push(c, nil)
			}
		}
		answered, _ := n.core.Expire(at(n.w.now))
		n.deliver(answered)
		n.settle()
	} else if c := n.upstream; c != nil {
		if _, err := c.follower.Expired(n.w.now); err != nil {
			n.drop(c)
		} else {
			n.report(c)
		}
	}
	if n.w.now%(500*time.Millisecond) < tickEvery {
		n.flush()
	}
	n.w.after(tickEvery, "tick", n.inLife(n.tick))
}

func at(now time.Duration) time.Time { return time.Unix(0, 0).Add(now) }

// aliveNow is what the NameServer would tell.
func (n *node) aliveNow() int {
	n.alive = 0
	for _, other := range n.w.nodes {
		if other.up {
			n.alive++
		}
	}
	return n.alive
}

// connect is a replica's attempt to follow the master.
func (n *node) connect() {
	if n.upstream != nil {
		return
	}
	n.w.conns++
	c := &conn{id: n.w.conns, replica: n, open: true}
	n.upstream = c
	c.follower = group.NewFollower(group.Ours, timing, 0, 0, n.w.now) // until the master has answered: only its silence counts
	master := n.w.nodes[masterID]
	n.w.send(n.id, masterID, "hello", func() { master.accept(c) })
}

func (n *node) accept(c *conn) {
	if !n.up || !c.open {
		n.w.send(masterID, c.replica.id, "refused", func() { c.replica.lost(c) })
		return
	}
	for _, id := range sortedKeys(n.conns) {
		if old := n.conns[id]; old.replica == c.replica { // connected anew: one session a replica
			n.drop(old)
		}
	}
	c.session = group.NewSession(ha.BrokerID(c.replica.id), group.Ours, timing, 0, n.w.now)
	n.conns[c.id] = c
	h, end := n.history, int64(len(n.disk.data))
	n.w.send(masterID, c.replica.id, "history", func() { c.replica.reconcile(c, h, end) })
}

// reconcile cuts what the master does not have, durably, and begins to follow.
func (n *node) reconcile(c *conn, master ha.History, masterEnd int64) {
	if !n.up || n.upstream != c {
		return
	}
	end := int64(len(n.disk.data))
	keep, err := group.Reconcile(n.history, end, master, masterEnd, 0)
	if err != nil {
		n.w.broken("replica %d: %v", n.id, err)
		return
	}
	if keep < end {
		if n.w.Mutant == KeepTail {
			keep = end
		} else {
			n.disk.cut(int(keep))
			n.w.forget(n)
			n.history = n.history.TruncateTo(keep)
			n.w.bitten["truncation"]++
		}
	}
	c.follower = group.NewFollower(group.Ours, timing, keep, min(int64(n.disk.durable), keep), n.w.now)
	n.report(c)
}

// drop closes a connection; the other side learns of it when the network lets it.
func (n *node) drop(c *conn) {
	if !c.open {
		return
	}
	c.open = false
	if n == c.replica {
		n.lost(c)
		master := n.w.nodes[masterID]
		n.w.send(n.id, masterID, "close", func() { master.lost(c) })
		return
	}
	n.lost(c)
	n.w.send(masterID, c.replica.id, "close", func() { c.replica.lost(c) })
}

// lost forgets a closed connection at this end.
func (n *node) lost(c *conn) {
	c.open = false
	if n.isMaster() {
		if n.conns[c.id] != c {
			return
		}
		delete(n.conns, c.id)
		id := ha.BrokerID(c.replica.id)
		delete(n.known, id)
		if n.core != nil && n.w.Mutant != CountConnections {
			n.core.Forget(id)
		}
		return
	}
	if n.upstream != c {
		return
	}
	n.upstream = nil
	if n.up {
		n.w.after(group.Backoff(n.failures), "connect", n.inLife(n.connect))
		n.failures++
	}
}

// report sends what the master does not know yet.
func (n *node) report(c *conn) {
	if due, _ := c.follower.ReportDue(n.w.now); !due {
		return
	}
	received, flushed := c.follower.Report()
	if n.w.Mutant == AckOnReceipt {
		flushed = received
	}
	c.follower.Reported(n.w.now)
	master := n.w.nodes[masterID]
	n.w.send(n.id, masterID, "report", func() { master.reported(c, received, flushed) })
}

func (n *node) reported(c *conn, received, flushed int64) {
	if !n.up || n.conns[c.id] != c {
		return
	}
	var err error
	if !c.session.Started() {
		end := int64(len(n.disk.data))
		if err = c.session.Start(n.w.now, received, false, group.LogBounds{End: end}); n.w.Mutant == KeepTail && err != nil {
			err = c.session.Start(n.w.now, end, false, group.LogBounds{End: end})
			received, flushed = end, min(flushed, end)
		}
	}
	if err == nil {
		_, err = c.session.Report(n.w.now, received, flushed)
	}
	if err != nil {
		n.drop(c)
		return
	}
	id := ha.BrokerID(c.replica.id)
	n.known[id] = progress{received, flushed}
	if n.w.Mutant == CountConnections {
		id = ha.BrokerID(1000 + c.id)
	}
	if err := n.core.Report(id, received, flushed); err != nil {
		n.w.broken("a session let through what the master refuses: %v", err)
	}
	n.settle()
	n.replicate(c)
}

// replicate pushes what the replica was not sent.
func (n *node) replicate(c *conn) {
	for n.up && c.open && c.session.Started() {
		next := c.session.Next()
		available, _ := c.session.Send(n.w.now, int64(len(n.disk.data))-next)
		if available <= 0 {
			return
		}
		size := min(available, 1+n.w.rng.Int64N(2048))
		if _, end, ok := n.history.At(next); ok {
			size = min(size, end-next)
		}
		n.push(c, bytes.Clone(n.disk.data[next:next+size]))
	}
}

func (n *node) push(c *conn, body []byte) {
	next := c.session.Next()
	epoch, _, _ := n.history.At(next)
	c.session.Sent(n.w.now, int64(len(body)))
	n.w.send(masterID, c.replica.id, "push", func() { c.replica.pushed(c, next, body, epoch) })
}

func (n *node) pushed(c *conn, offset int64, body []byte, epoch ha.EpochEntry) {
	if !n.up || n.upstream != c {
		return
	}
	if err := c.follower.Push(n.w.now, offset, len(body)); err != nil {
		n.drop(c)
		return
	}
	if len(body) == 0 {
		return
	}
	if n.disk.latched || n.disk.full {
		n.w.bitten["replica refuses"]++
		n.drop(c)
		return
	}
	n.failures = 0
	if epoch.Epoch > n.history.Last() {
		if h, err := n.history.Append(epoch); err == nil {
			n.history = h
		} else {
			n.w.broken("replica %d: %v", n.id, err)
		}
	}
	n.disk.data = append(n.disk.data, body...)
	c.follower.Appended(int64(len(n.disk.data)))
	n.report(c)
	if n.w.SyncFlush || n.w.Durable {
		n.flush()
	}
}

// flushed is what follows a good fsync.
func (n *node) flushed() {
	if n.isMaster() {
		n.settle()
		return
	}
	if c := n.upstream; c != nil {
		c.follower.Flushed(int64(n.disk.durable))
		n.report(c)
	}
}

// storageFailed is what follows a failed one: a master gives up its mastership, a replica its session (I5).
func (n *node) storageFailed() {
	if n.isMaster() {
		n.deliver(n.core.End(errStorage))
		return
	}
	if n.upstream != nil {
		n.drop(n.upstream)
	}
}
