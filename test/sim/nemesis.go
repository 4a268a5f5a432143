package sim

import "time"

// fault is one thing that the nemesis does; it ends by itself.
type fault struct {
	name string
	do   func(w *World)
}

var faults = []fault{
	{"kill replica", func(w *World) { w.kill(w.replica(), false) }},
	{"kill master", func(w *World) { w.kill(w.nodes[masterID], false) }},
	{"power loss of a replica", func(w *World) { w.kill(w.replica(), true) }},
	{"power loss of the master", func(w *World) { w.kill(w.nodes[masterID], true) }},
	{"power loss of all", func(w *World) {
		for _, n := range w.nodes {
			w.kill(n, true)
		}
	}},
	{"cut one way", func(w *World) { w.cut(true, w.rng.IntN(2) == 0) }},
	{"cut both ways", func(w *World) { w.cut(true, true); w.cut(false, true) }},
	{"slow link", func(w *World) {
		r, d := w.replica(), w.between(50*time.Millisecond, 800*time.Millisecond)
		if r == nil {
			return
		}
		w.links[[2]int{masterID, r.id}].delay = d
		w.bitten["delay"]++
		w.after(w.between(time.Second, 6*time.Second), "fast again", func() { w.links[[2]int{masterID, r.id}].delay = 0 })
	}},
	{"fsync stalls", func(w *World) {
		n := w.anyone()
		n.disk.stall = w.between(300*time.Millisecond, 4*time.Second)
		w.bitten["stall"]++
		w.after(w.between(time.Second, 6*time.Second), "disk fast again", func() { n.disk.stall = 0 })
	}},
	{"fsync fails once", func(w *World) {
		n := w.anyone()
		n.disk.failNext = true
		w.after(w.between(time.Second, 4*time.Second), "reopen", func() {
			if n.disk.latched || n.disk.lost >= 0 {
				w.kill(n, w.rng.IntN(2) == 0)
			}
		})
	}},
	{"disk full", func(w *World) {
		n := w.anyone()
		n.disk.full = true
		w.bitten["disk full"]++
		w.after(w.between(time.Second, 4*time.Second), "space again", func() { n.disk.full = false })
	}},
}

func (w *World) anyone() *node { return w.nodes[w.rng.IntN(len(w.nodes))] }

// replica picks one, nil in a group of one.
func (w *World) replica() *node {
	if w.Replicas == 0 {
		return nil
	}
	return w.nodes[1+w.rng.IntN(w.Replicas)]
}

// kill stops a node, with its page cache or without, and starts it again later.
func (w *World) kill(n *node, power bool) {
	if n == nil || !n.up {
		return
	}
	n.stop()
	had := len(n.disk.data)
	if power {
		n.disk.powerLoss(w.rng.IntN(3 * recordHead))
	} else {
		n.disk.crash()
	}
	w.forget(n)
	if len(n.disk.data) < had {
		w.bitten["lost bytes"]++
		if n.isMaster() {
			w.bitten["master lost bytes"]++
		}
	}
	w.bitten["kill"]++
	life := n.life
	w.after(w.between(50*time.Millisecond, 3*time.Second), "start", func() {
		if !n.up && n.life == life {
			n.start()
		}
	})
}

// cut takes away one direction between the master and a replica for a while.
func (w *World) cut(fromMaster, long bool) {
	r := w.replica()
	if r == nil {
		return
	}
	from, to := masterID, r.id
	if !fromMaster {
		from, to = to, from
	}
	w.links[[2]int{from, to}].cut = true
	w.bitten["cut"]++
	most := 2 * time.Second
	if long {
		most = 8 * time.Second
	}
	w.after(w.between(100*time.Millisecond, most), "heal", func() { w.heal(from, to) })
}

// Run lets clients and nemesis work, then heals everything and demands that the group recovers (I25).
func (w *World) Run() error {
	for _, n := range w.nodes {
		n.start()
	}
	for range w.Clients {
		w.after(w.between(0, 20*time.Millisecond), "client", w.client)
	}
	for range w.Faults {
		f := faults[w.rng.IntN(len(faults))]
		w.after(w.between(time.Second, w.Length), f.name, func() {
			if !w.calm {
				f.do(w)
			}
		})
	}
	w.until(w.Length)
	w.peace()
	before := w.history.acks
	w.until(w.Length + 15*time.Second)
	if w.history.acks == before && w.failure == nil {
		w.broken("I25: nothing was acknowledged after all faults ended")
	}
	w.quiet()
	if w.failure == nil {
		w.checkEnd()
	}
	return w.failure
}

func (w *World) until(end time.Duration) {
	for w.failure == nil && len(w.events) > 0 && w.events[0].at <= end {
		w.step()
	}
}

// peace ends all faults; a latched disk needs a reopen, as its operator would give it.
func (w *World) peace() {
	w.calm = true
	for key := range w.links {
		w.heal(key[0], key[1])
	}
	for _, n := range w.nodes {
		n.disk.stall, n.disk.full, n.disk.failNext = 0, false, false
		if n.disk.latched {
			w.kill(n, false)
		}
	}
}

// quiet stops the clients and lets everything that was sent arrive.
func (w *World) quiet() {
	kept := w.events[:0]
	for _, e := range w.events {
		if e.tag != "client" {
			kept = append(kept, e)
		}
	}
	w.events = kept
	reheap(&w.events)
	w.until(w.now + 10*time.Second)
}
