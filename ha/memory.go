package ha

// AcceptMode says which promise, weaker than a durable one, the operator configured.
type AcceptMode struct {
	// Received is how many brokers, the master included, must hold the range at all (replicaAck=received, RocketMQ's
	// meaning of a slave's ack). 0 and 1 ask for the master alone.
	Received int
}

// Holding is what brokers hold, fsynced or not. Acks carry received offsets here; Written is the master's own end that
// survives a crash of the process.
type Holding struct {
	Current   Authority
	Requested Authority
	Required  int64
	Written   int64
	Acks      []ReplicaAck
	Set       SyncStateSet
}

// MemoryAcceptance is a success that no fsync backs: its durability is always Memory.
type MemoryAcceptance struct {
	end   int64
	epoch MasterEpoch
}

// Durability is Memory.
func (MemoryAcceptance) Durability() Durability { return Memory }

// End is the required offset.
func (a MemoryAcceptance) End() int64 { return a.end }

// DurableReplicas is 0: nothing is proved on any disk.
func (MemoryAcceptance) DurableReplicas() int { return 0 }

// Epoch is the epoch under which it was accepted.
func (a MemoryAcceptance) Epoch() MasterEpoch { return a.epoch }

func (MemoryAcceptance) sealed() {}

// AcceptInMemory accepts a range that the configured number of brokers hold, without proof of any fsync. Authority is
// judged as DecideReplication judges it. It is the only other maker of an Acknowledgement.
func AcceptInMemory(mode AcceptMode, h Holding) (MemoryAcceptance, Verdict) {
	switch {
	case h.Requested.Epoch < h.Current.Epoch:
		return MemoryAcceptance{}, RejectStale
	case h.Requested != h.Current || h.Current.Epoch <= 0:
		return MemoryAcceptance{}, RejectMismatch
	case h.Written < h.Required || CountReceived(h) < mode.Received:
		return MemoryAcceptance{}, Wait
	}
	return MemoryAcceptance{end: h.Required, epoch: h.Current.Epoch}, Acknowledge
}

// CountReceived counts the distinct members, master included, that hold the range at all.
func CountReceived(h Holding) int {
	n := 0
	if h.Written >= h.Required {
		n = 1
	}
	for _, id := range h.Set.ids {
		if id != h.Current.BrokerID && covered(h.Acks, id, h.Required) {
			n++
		}
	}
	return n
}
