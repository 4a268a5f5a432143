package sim

import (
	"bytes"

	"github.com/quorate/quorate/ha"
)

// checkNeed compares the number of copies that the core asks for with the rule, on what replicas really reported (I16).
func (w *World) checkNeed(n *node, got ha.Need, err error) {
	view := ha.QuorumView{PutEnd: int64(len(n.disk.data)), Alive: n.alive}
	for _, id := range sortedKeys(n.known) {
		view.ReplicaEnds = append(view.ReplicaEnds, n.known[id].received)
	}
	want, wantErr := ha.RequiredCopies(w.Policy, view)
	if got.Copies != want.Copies || (err == nil) != (wantErr == nil) {
		w.broken("I16: %d copies asked for (%v), the rule says %d (%v)", got.Copies, err, want.Copies, wantErr)
	}
}

// checkEvidence looks at the disks at the moment of an acknowledgement: what it proves must hold (I9, I15, K6).
func (w *World) checkEvidence(op *operation) {
	durable, holding := 0, 0
	for _, n := range w.nodes {
		same := w.common(n) >= int(op.end)
		if same {
			holding++
		}
		if same && int64(n.disk.solid) >= op.end {
			durable++
		}
	}
	p := op.outcome.Proved
	switch {
	case p.DurableReplicas > durable:
		w.broken("I15: send %d says %d durable copies, the disks have %d", op.id, p.DurableReplicas, durable)
	case p.Durability == ha.Replicated && durable < op.need.Copies:
		w.broken("I15: send %d says replicated with %d copies, the disks have %d", op.id, op.need.Copies, durable)
	case !w.Durable && holding < op.need.Copies:
		w.broken("I9: send %d needed %d holders, there are %d", op.id, op.need.Copies, holding)
	case op.flush && p.Durability == ha.Memory:
		w.broken("I15: send %d waited for the flush and is labelled memory", op.id)
	}
}

// checkNobodySatisfiedWaits finds a send that all evidence satisfies and that still waits.
func (w *World) checkNobodySatisfiedWaits(n *node) {
	for _, op := range n.pending {
		have := 1
		for _, p := range n.known {
			if w.Durable && p.flushed >= op.end || !w.Durable && p.received >= op.end {
				have++
			}
		}
		local := !op.flush && (!w.Durable || op.need.Copies <= 1) || int64(n.disk.durable) >= op.end
		if local && have >= op.need.Copies {
			w.broken("K9: send %d needs %d copies, %d hold it, and it still waits", op.id, op.need.Copies, have)
			return
		}
	}
}

// consume is a consumer that reads everything visible: what it saw once must never change (I12).
func (w *World) consume(visible []byte) {
	h := &w.history
	shorter := min(len(h.observed), len(visible))
	h.compared = min(h.compared, shorter)
	if !bytes.Equal(h.observed[h.compared:shorter], visible[h.compared:shorter]) {
		w.phantom("bytes that a consumer has read changed")
		h.observed, h.compared = bytes.Clone(visible), len(visible)
		return
	}
	h.compared = shorter
	if len(visible) > len(h.observed) {
		h.observed = append(h.observed, visible[len(h.observed):]...)
		h.compared = len(visible)
	}
}

// common is how many bytes of n's log equal the master's. A prefix that was compared once stays compared until a log is cut.
func (w *World) common(n *node) int {
	master := w.nodes[masterID].disk.data
	shorter := min(len(n.disk.data), len(master))
	for n.disk.same < shorter && n.disk.data[n.disk.same] == master[n.disk.same] {
		n.disk.same++
	}
	return min(n.disk.same, shorter)
}

// forget clamps what was compared when a log loses bytes: what is appended there may differ.
func (w *World) forget(n *node) {
	end := len(n.disk.data)
	if n.isMaster() {
		w.history.compared = min(w.history.compared, end)
		for _, other := range w.nodes {
			other.disk.same = min(other.disk.same, end)
		}
	}
	n.disk.same = min(n.disk.same, end)
}

// phantom is broken only where the mode promises more than memory: an ASYNC_FLUSH master that loses power may lose what
// it showed, and its label says so.
func (w *World) phantom(text string) {
	if w.SyncFlush || w.Durable || w.bitten["master lost bytes"] == 0 {
		w.broken("I12: %s", text)
	}
}

// checkEnd judges the whole run once the group is quiet.
func (w *World) checkEnd() {
	master := w.nodes[masterID]
	final := ids(master.disk.data)
	at := map[uint64]int64{}
	for end, id := range final {
		if other, twice := at[id]; twice {
			w.broken("K1: record %d stands at %d and %d", id, other, end)
		}
		at[id] = end
	}
	for _, op := range w.history.ops {
		end, there := at[op.id]
		switch op.status {
		case acknowledged:
			kept := op.outcome.Proved.Durability >= ha.Local || w.bitten["master lost bytes"] == 0
			if kept && (!there || end != op.end) {
				w.broken("I1: send %d was acknowledged as %v at %d and is lost", op.id, op.outcome.Proved.Durability, op.end)
			}
		case refused:
			if there {
				w.broken("K1: send %d was refused and is in the log", op.id)
			}
		case running:
			w.broken("K9: send %d never ended", op.id)
		case unsure:
		}
	}
	if seen := w.history.observed; len(seen) > len(master.disk.data) || !bytes.Equal(seen, master.disk.data[:len(seen)]) {
		w.phantom("a consumer has read what is not in the log")
	}
	for _, n := range w.nodes[1:] {
		if !bytes.Equal(n.disk.data, master.disk.data) {
			w.broken("K4: replica %d holds %d bytes, the master %d, and they differ", n.id, len(n.disk.data), len(master.disk.data))
		}
	}
}
