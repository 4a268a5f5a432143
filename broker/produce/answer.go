package produce

import (
	"context"
	"strconv"

	"github.com/quorate/quorate/broker/write"
	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
	"github.com/quorate/quorate/replication"
)

// Keys of the answer to a send. The first ones are RocketMQ's SendMessageResponseHeader; the last four say what is proved
// about the record at this moment (DESIGN §14), and clients that do not know them ignore them.
var (
	keyMsgID         = []byte("msgId")
	keyQueueID       = []byte("queueId")
	keyQueueOffset   = []byte("queueOffset")
	keyTransactionID = []byte("transactionId")
	keyRegion        = []byte(message.MsgRegion)
	keyTrace         = []byte(message.TraceSwitch)
	keyDurability    = []byte("durability")
	keyDurable       = []byte("durableReplicas")
	keyReceived      = []byte("receivedReplicas")
	keyEpoch         = []byte("masterEpoch")

	valueTrue  = []byte("true")
	valueFalse = []byte("false")
)

// header lays out the answer to a stored send in the op's own buffers.
func (o *op) header(r *write.Result) protocol.ExtFields {
	at := &r.Appended
	o.ext, o.scratch = o.ext[:0], o.scratch[:0]
	if at.Count > 1 || at.RecordOffsets != nil {
		start := len(o.scratch)
		for i, offset := range at.RecordOffsets {
			if i > 0 {
				o.scratch = append(o.scratch, ',')
			}
			o.scratch = message.AppendOffsetID(o.scratch, o.h.cfg.StoreHost, offset)
		}
		o.add(keyMsgID, start)
	} else {
		start := len(o.scratch)
		o.scratch = message.AppendOffsetID(o.scratch, o.h.cfg.StoreHost, at.Begin)
		o.add(keyMsgID, start)
	}
	o.number(keyQueueID, int64(o.queue))
	o.number(keyQueueOffset, at.QueueOffset)
	if id, ok := o.props.Lookup(message.UniqueKey); ok {
		o.ext = append(o.ext, protocol.ExtField{Key: keyTransactionID, Value: id})
	}
	live := o.h.live.Load()
	start := len(o.scratch)
	o.scratch = append(o.scratch, live.RegionID...)
	o.add(keyRegion, start)
	trace := valueFalse
	if live.TraceOn {
		trace = valueTrue
	}
	o.ext = append(o.ext, protocol.ExtField{Key: keyTrace, Value: trace})
	o.proved(&r.Outcome.Proved)
	return o.ext
}

func (o *op) proved(p *replication.Proved) {
	start := len(o.scratch)
	o.scratch = append(o.scratch, p.Durability.String()...)
	o.add(keyDurability, start)
	o.number(keyDurable, int64(p.DurableReplicas))
	o.number(keyReceived, int64(p.ReceivedReplicas))
	o.number(keyEpoch, int64(p.Epoch))
}

// add makes a field of what was appended to scratch since start. An earlier field keeps its bytes when scratch moves.
func (o *op) add(key []byte, start int) {
	o.ext = append(o.ext, protocol.ExtField{Key: key, Value: o.scratch[start:len(o.scratch):len(o.scratch)]})
}

func (o *op) number(key []byte, v int64) {
	start := len(o.scratch)
	o.scratch = strconv.AppendInt(o.scratch, v, 10)
	o.add(key, start)
}

// answers are the responses of one group of decided writes: each connection is written once.
type answers struct {
	h     *Handlers
	batch remoting.Batch
}

const (
	// answersInline is up to how many connections the goroutine that flushed writes to by itself. More are left to Run: the
	// log's next flush does not wait for sockets then.
	answersInline = 2
	// answersWaiting bounds the groups that wait for Run; beyond it the flush waits after all.
	answersWaiting = 64
)

// Flush sends what was collected.
func (a *answers) Flush() {
	h := a.h
	if a.batch.Connections() > answersInline && h.pass(a) {
		return
	}
	a.send()
}

func (a *answers) send() {
	a.batch.Flush()
	a.h.answers.Put(a)
}

// pass leaves a to Run, if that runs and keeps up.
func (h *Handlers) pass(a *answers) bool {
	h.running.RLock()
	defer h.running.RUnlock()
	if h.waiting == nil {
		return false
	}
	select {
	case h.waiting <- a:
		return true
	default:
		return false
	}
}

// Run sends the answers of large groups until ctx ends, and then waits for the sends that create topics.
func (h *Handlers) Run(ctx context.Context) error {
	waiting := make(chan *answers, answersWaiting)
	h.setWaiting(waiting)
	for {
		select {
		case a := <-waiting:
			a.send()
			continue
		case <-ctx.Done():
		}
		break
	}
	h.setWaiting(nil)
	for len(waiting) > 0 {
		(<-waiting).send()
	}
	h.slow.Wait()
	return nil
}

func (h *Handlers) setWaiting(c chan *answers) {
	h.running.Lock()
	defer h.running.Unlock()
	h.waiting = c
}

func (h *Handlers) respond(x *remoting.Exchange, r *remoting.Reply, g *replication.Group) {
	if g.Last == nil {
		g.Last = h.answers.Get().(*answers)
	}
	if a, ok := g.Last.(*answers); ok {
		a.batch.Respond(x, r)
		return
	}
	x.Respond(r)
}
