// Package sim runs whole broker groups in one event queue: the pure cores of ha and ha/group, which are the binary's own,
// on a simulated network, disk and clock. One seed replays to the same hash; a run proves something only when messages
// were acknowledged and a fault bit.
package sim

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/ha"
)

// Options say what a seed runs. Expand derives them from the seed, so that a failure is repeated by its seed alone.
type Options struct {
	Seed      uint64
	Replicas  int // besides the master
	Policy    ha.QuorumPolicy
	SyncFlush bool
	Durable   bool // replicaAck=durable
	Clients   int
	Faults    int           // how many faults the nemesis injects
	Length    time.Duration // of the phase with faults
	Mutant    Mutant
}

// Mutant is a rule broken on purpose: the checkers must notice each.
type Mutant string

// Mutants (RELIABILITY §4.3).
const (
	None             Mutant = ""
	AckOnReceipt     Mutant = "ack on receipt"    // a replica reports what it received as flushed
	CountConnections Mutant = "count connections" // a reconnected replica counts once more
	IgnoreGap        Mutant = "ignore the gap"    // a replica far behind counts as in sync
	RetryFsync       Mutant = "retry fsync"       // a failed fsync followed by a good one counts as a good one
	HeadOfLine       Mutant = "head of line"      // a wait is answered only after all earlier ones
	PhantomReads     Mutant = "phantom reads"     // consumers see what is appended
	KeepTail         Mutant = "keep the tail"     // a replica that is ahead keeps its bytes
)

// Expand makes the options of a seed.
func Expand(seed uint64) Options {
	rng := rand.New(rand.NewPCG(seed, 0x51))
	o := Options{
		Seed: seed, Replicas: rng.IntN(5), SyncFlush: rng.IntN(3) > 0, Durable: rng.IntN(2) == 0,
		Clients: 2 + rng.IntN(6), Faults: 3 + rng.IntN(8), Length: time.Duration(20+rng.IntN(20)) * time.Second,
	}
	total := o.Replicas + 1
	o.Policy = ha.QuorumPolicy{
		Mode: ha.QuorumMode(rng.IntN(2)), InSyncReplicas: 1 + rng.IntN(total), AutoInSync: rng.IntN(2) == 0,
		MaxGapNotInSync: int64(1+rng.IntN(8)) * 1024,
	}
	o.Policy.MinInSync = 1 + rng.IntN(o.Policy.InSyncReplicas)
	return o
}

// event is one thing that happens at a time. Events of one time happen in the order they were planned.
type event struct {
	at  time.Duration
	seq int
	run func()
	tag string
}

type queue []event

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(event)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// World is one simulated group with its clients and its nemesis.
type World struct {
	Options
	rng     *rand.Rand
	now     time.Duration
	seq     int
	events  queue
	hash    uint64
	nodes   []*node
	links   map[[2]int]*link
	history history
	bitten  map[string]int // faults that had an effect
	failure error          // the first broken invariant
	calm    bool           // the nemesis is over
	conns   int
}

// New builds the world of o.
func New(o Options) *World {
	w := &World{Options: o, rng: rand.New(rand.NewPCG(o.Seed, 0xfa)), links: map[[2]int]*link{}, bitten: map[string]int{}}
	for id := range o.Replicas + 1 {
		w.nodes = append(w.nodes, newNode(w, id))
	}
	for a := range w.nodes {
		for b := range w.nodes {
			if a != b {
				w.links[[2]int{a, b}] = &link{}
			}
		}
	}
	return w
}

// after plans run.
func (w *World) after(d time.Duration, tag string, run func()) {
	w.seq++
	heap.Push(&w.events, event{at: w.now + d, seq: w.seq, run: run, tag: tag})
}

// between is a random duration.
func (w *World) between(low, high time.Duration) time.Duration {
	return low + time.Duration(w.rng.Int64N(int64(high-low)+1))
}

// step runs the next event and folds it into the hash.
func (w *World) step() {
	e := heap.Pop(&w.events).(event)
	w.now = e.at
	w.mix(uint64(e.at))
	for i := range len(e.tag) {
		w.mix(uint64(e.tag[i]))
	}
	for _, n := range w.nodes {
		w.mix(uint64(len(n.disk.data))<<20 ^ uint64(n.disk.durable))
	}
	e.run()
}

// mix is one round of FNV-1a.
func (w *World) mix(v uint64) { w.hash = (w.hash ^ v) * 1099511628211 }

// Hash identifies the run: equal seeds give equal hashes.
func (w *World) Hash() uint64 { return w.hash }

// broken keeps the first broken invariant.
func (w *World) broken(format string, args ...any) {
	if w.failure == nil {
		w.failure = fmt.Errorf("at %v: %s", w.now, fmt.Sprintf(format, args...))
	}
}

// link is one direction between two nodes. Bytes of a connection stay in order; a cut holds them back, as TCP does.
type link struct {
	cut   bool
	delay time.Duration
	last  time.Duration // nothing arrives before what was sent earlier
	held  []func()
}

// send delivers fn at the other end of a link, in order.
func (w *World) send(from, to int, tag string, fn func()) {
	l := w.links[[2]int{from, to}]
	if l.cut {
		l.held = append(l.held, fn)
		return
	}
	arrive := max(w.now+w.between(50*time.Microsecond, 400*time.Microsecond)+l.delay, l.last)
	l.last = arrive
	w.after(arrive-w.now, tag, func() {
		if l.cut {
			l.held = append(l.held, fn)
			return
		}
		fn()
	})
}

func (w *World) heal(from, to int) {
	l := w.links[[2]int{from, to}]
	l.cut, l.delay = false, 0
	held := l.held
	l.held = nil
	for _, fn := range held {
		w.send(from, to, "held", fn)
	}
}

func reheap(q *queue) { heap.Init(q) }
