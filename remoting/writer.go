package remoting

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/quorate/quorate/protocol"
)

const (
	// outFlushBytes: answers beyond this leave while the reader still serves its batch.
	outFlushBytes = 64 << 10
	// outBufferBytesKept bounds the buffer that a pooled batch keeps.
	outBufferBytesKept = 128 << 10
	// outCopyBytesMax: a body given away above this is written from where it is.
	outCopyBytesMax = 8 << 10
	// outRounds is how many batches a goroutine writes for others before it leaves the rest to one of the connection.
	outRounds = 4
	// outChunkBytes is written at once where a write may block, so that progress can be seen.
	outChunkBytes = 256 << 10
)

// outBatch is frames that leave together. Pooled.
type outBatch struct {
	buf    []byte    // frames, except for
	parts  []outPart // pieces that belong at certain places between them
	done   []func()  // called when written or dropped
	bytes  int64
	laid   [][]byte // buf and parts in order, once writing began
	pieces [][]byte // the end of laid that remains to be written
	vec    iovecs
}

type outPart struct {
	at   int // in buf
	data []byte
}

var outBatches = sync.Pool{New: func() any { return new(outBatch) }}

// begin lays out the pieces.
func (b *outBatch) begin() {
	at := 0
	for _, p := range b.parts {
		if p.at > at {
			b.laid = append(b.laid, b.buf[at:p.at])
			at = p.at
		}
		if len(p.data) > 0 {
			b.laid = append(b.laid, p.data)
		}
	}
	if at < len(b.buf) {
		b.laid = append(b.laid, b.buf[at:])
	}
	b.pieces = b.laid
}

// wrote drops n bytes from the front of pieces, returning what is left.
func wrote(pieces [][]byte, n int) [][]byte {
	for n > 0 && n >= len(pieces[0]) {
		n -= len(pieces[0])
		pieces = pieces[1:]
	}
	if n > 0 {
		pieces[0] = pieces[0][n:]
	}
	return pieces
}

// recycle calls what waits for the batch and returns it to the pool.
func (b *outBatch) recycle() {
	for _, done := range b.done {
		done()
	}
	clear(b.done)
	clear(b.parts)
	clear(b.laid)
	b.buf, b.parts, b.done, b.laid, b.pieces, b.bytes = b.buf[:0], b.parts[:0], b.done[:0], b.laid[:0], nil, 0
	if cap(b.buf) > outBufferBytesKept {
		b.buf = nil
	}
	outBatches.Put(b)
}

// outbound is the write queue of a connection, and the right to write. At most one goroutine has that right (writing). It
// is taken by whoever queues something and finds it free, unless somebody is known to flush soon: the reader at the end of
// its batch (reading), or whoever promised to (owed: a Batch, a handler). A plain TCP connection is written without blocking; what the socket does
// not take is left to a goroutine that lives until the queue is empty.
type outbound struct {
	c         *Conn
	dst       io.Writer
	raw       syscall.RawConn
	stalledAt atomic.Int64 // since when the peer takes nothing, 0: it does

	mu      sync.Mutex
	changed sync.Cond // writing, queued or closed changed
	closed  error
	closing error // close with it when the queue is empty
	pending *outBatch
	queued  int64 // bytes in pending and in the batch being written
	writing bool
	reading bool
	owed    bool

	// Of the goroutine that writes.
	current  *outBatch
	blocking bool
	failed   error
	ready    func(fd uintptr) bool
}

func (o *outbound) open(c *Conn, nc net.Conn) {
	o.c, o.dst, o.raw = c, nc, rawConn(nc)
	o.changed.L = &o.mu
	o.ready = o.writeReady
}

// answer queues the answer to x. See Exchange.respond.
func (c *Conn) answer(x *Exchange, r *Reply, later, owned bool) (owes bool) {
	cmd := protocol.Command{
		Code:          int32(r.Code),
		Language:      protocol.Go,
		Version:       protocol.ServerVersion,
		Opaque:        x.Command.Opaque,
		Flag:          protocol.FlagResponse,
		Serialization: x.Command.Serialization,
		Ext:           r.Ext,
	}
	if r.Remark != "" {
		cmd.Remark = []byte(r.Remark)
	}
	if r.Header != nil {
		cmd.Ext = append(protocol.AppendHeader(nil, r.Header), r.Ext...)
	}
	return c.out.answer(&cmd, r, later, owned)
}

func (o *outbound) answer(cmd *protocol.Command, r *Reply, later, owned bool) (owes bool) {
	o.mu.Lock()
	if o.closed != nil {
		o.mu.Unlock()
		if r.Done != nil {
			r.Done()
		}
		return false
	}
	b := o.batch()
	before := b.bytes
	b.add(cmd, r, owned)
	o.queued += b.bytes - before
	tooMuch := o.queued > o.c.end.limits.WriteQueueBytesMax
	mine := o.mayWrite(later)
	owes = later && !o.owed && !o.writing && !o.reading
	o.owed = o.owed || owes
	o.mu.Unlock()
	switch {
	case tooMuch:
		if mine {
			o.yieldWriting()
		}
		o.c.Close(fmt.Errorf("%w: more than %d bytes wait", ErrSlowReader, o.c.end.limits.WriteQueueBytesMax))
	case mine:
		o.write()
	}
	return owes
}

// batch returns the batch to add to. Under mu.
func (o *outbound) batch() *outBatch {
	if o.pending == nil {
		o.pending = outBatches.Get().(*outBatch)
	}
	return o.pending
}

// mayWrite takes the right to write when nobody else is going to. Under mu.
func (o *outbound) mayWrite(later bool) bool {
	if o.writing || (later || o.reading) && o.pending.bytes < outFlushBytes {
		return false
	}
	o.writing = true
	return true
}

// add encodes one frame.
func (b *outBatch) add(cmd *protocol.Command, r *Reply, owned bool) {
	start, size := len(b.buf), len(r.Body)
	if r.Body == nil {
		for _, p := range r.Parts {
			size += len(p)
		}
	}
	b.buf = protocol.AppendFrameHead(b.buf, cmd, size)
	if len(b.buf)-start+size > protocol.FrameBytesMax {
		*cmd = protocol.Command{
			Code: int32(protocol.SystemError), Language: cmd.Language, Version: cmd.Version, Opaque: cmd.Opaque, Flag: cmd.Flag,
			Serialization: cmd.Serialization, Remark: []byte("the answer is larger than a frame may be"),
		}
		b.buf = protocol.AppendFrameHead(b.buf[:start], cmd, 0)
		r, size = &Reply{Done: r.Done}, 0
	}
	switch {
	case r.Body == nil:
		for _, p := range r.Parts {
			b.parts = append(b.parts, outPart{len(b.buf), p})
		}
	case owned && len(r.Body) > outCopyBytesMax:
		b.parts = append(b.parts, outPart{len(b.buf), r.Body})
	default:
		b.buf = append(b.buf, r.Body...)
		size = 0
	}
	if r.Done != nil {
		b.done = append(b.done, r.Done)
	}
	b.bytes += int64(len(b.buf) - start + size)
}

// errNotSent: the connection was closed before the request was queued, so that it may be sent elsewhere.
var errNotSent = errors.New("not sent")

// send queues a request of ours. It copies cmd.
func (c *Conn) send(cmd *protocol.Command, opaque, flag int32) error {
	own := *cmd
	own.Opaque = opaque
	own.Flag |= flag
	o := &c.out
	o.mu.Lock()
	if o.closed != nil {
		defer o.mu.Unlock()
		return fmt.Errorf("%w: %w", errNotSent, closedBy(o.closed))
	}
	if o.queued > o.c.end.limits.WriteQueueBytesMax {
		defer o.mu.Unlock()
		return fmt.Errorf("%w: %d bytes wait", ErrSlowReader, o.queued)
	}
	b := o.batch()
	start := len(b.buf)
	b.buf = protocol.AppendFrame(b.buf, &own)
	size := len(b.buf) - start
	if size > protocol.FrameBytesMax {
		b.buf = b.buf[:start]
		o.mu.Unlock()
		return fmt.Errorf("request %d: %w: %d bytes are more than %d", cmd.Code, protocol.ErrFrame, size, protocol.FrameBytesMax)
	}
	b.bytes += int64(size)
	o.queued += int64(size)
	mine := o.mayWrite(false)
	o.mu.Unlock()
	if mine {
		o.write()
	}
	return nil
}

// hold defers writing while the reader serves what it has buffered.
func (o *outbound) hold() {
	o.mu.Lock()
	o.reading = true
	o.mu.Unlock()
}

// unhold writes what was queued meanwhile. A server then waits until the peer has taken enough of it.
func (o *outbound) unhold() {
	o.mu.Lock()
	o.reading = false
	mine := !o.writing && o.pending != nil && o.closed == nil
	o.writing = o.writing || mine
	o.mu.Unlock()
	if mine {
		o.write()
	}
	if !o.c.end.server {
		return
	}
	o.mu.Lock()
	for o.queued > o.c.end.limits.WriteQueueBytesPause && o.closed == nil {
		o.changed.Wait()
	}
	o.mu.Unlock()
}

// flushOwed writes what a Batch queued.
func (c *Conn) flushOwed() {
	o := &c.out
	o.mu.Lock()
	o.owed = false
	mine := !o.writing && !o.reading && o.pending != nil && o.closed == nil
	o.writing = o.writing || mine
	o.mu.Unlock()
	if mine {
		o.write()
	}
}

// write writes until the queue is empty, without blocking. The caller has the right to write, which ends or passes on.
func (o *outbound) write() {
	if o.raw != nil {
		for range outRounds {
			b := o.take()
			if b == nil {
				return
			}
			if !o.tryWrite(b, false) {
				break
			}
		}
	}
	o.c.end.goroutines.Add(1) // above zero: the reader waits for the end of writing
	go o.drain()
}

// drain writes until the queue is empty, waiting for the peer.
func (o *outbound) drain() {
	defer o.c.end.goroutines.Done()
	for {
		b := o.current
		if b == nil {
			if b = o.take(); b == nil {
				return
			}
		}
		if o.raw != nil {
			o.tryWrite(b, true)
		} else {
			o.copyOut(b)
		}
	}
}

// take returns the next batch to write; nil ends the right to write.
func (o *outbound) take() *outBatch {
	o.mu.Lock()
	b, closing := o.pending, o.closing
	o.pending = nil
	if b == nil || o.closed != nil {
		o.writing = false
		o.changed.Broadcast()
		o.mu.Unlock()
		if b != nil {
			b.recycle()
		}
		if closing != nil {
			o.c.Close(closing)
		}
		return nil
	}
	o.mu.Unlock()
	b.begin()
	return b
}

// tryWrite writes b to the socket, waiting for it if blocking; false: part of b is left in current.
func (o *outbound) tryWrite(b *outBatch, blocking bool) bool {
	o.current, o.blocking, o.failed = b, blocking, nil
	err := o.raw.Write(o.ready)
	if err == nil {
		err = o.failed
	}
	if err == nil && len(b.pieces) > 0 {
		return false
	}
	o.written(err)
	return true
}

// writeReady writes while the socket takes bytes; false means to wait until it does.
func (o *outbound) writeReady(fd uintptr) bool {
	b := o.current
	for len(b.pieces) > 0 {
		n, again, err := writeSocket(fd, b.pieces, &b.vec)
		switch {
		case err != nil:
			o.failed = err
			return true
		case again:
			o.stalledAt.CompareAndSwap(0, o.c.since(time.Now()))
			return !o.blocking
		}
		b.pieces = wrote(b.pieces, n)
		o.stalledAt.Store(0)
	}
	return true
}

// copyOut writes b where writing may block.
func (o *outbound) copyOut(b *outBatch) {
	o.current = b
	var err error
	for len(b.pieces) > 0 && err == nil {
		chunk := b.pieces[0][:min(len(b.pieces[0]), outChunkBytes)]
		o.stalledAt.Store(o.c.since(time.Now()))
		var n int
		n, err = o.dst.Write(chunk)
		o.stalledAt.Store(0)
		b.pieces = wrote(b.pieces, n)
	}
	o.written(err)
}

// written ends the current batch.
func (o *outbound) written(err error) {
	b := o.current
	o.current = nil
	o.stalledAt.Store(0)
	o.c.wroteAt.Store(o.c.since(time.Now()))
	size := b.bytes
	b.recycle()
	o.mu.Lock()
	o.queued -= size
	o.changed.Broadcast()
	o.mu.Unlock()
	if err != nil {
		if errors.Is(err, net.ErrClosed) {
			err = ErrClosed
		}
		o.c.Close(fmt.Errorf("write: %w", err))
	}
}

// yieldWriting gives the right to write back unused.
func (o *outbound) yieldWriting() {
	o.mu.Lock()
	o.writing = false
	o.changed.Broadcast()
	o.mu.Unlock()
}

// close makes the queue refuse; false: it did already.
func (o *outbound) close(cause error) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed != nil {
		return false
	}
	o.closed = cause
	o.changed.Broadcast()
	return true
}

// closeWhenWritten closes the connection once everything queued was written.
func (o *outbound) closeWhenWritten(cause error) {
	o.mu.Lock()
	o.closing = cause
	now := !o.writing && o.pending == nil
	o.mu.Unlock()
	if now {
		o.c.Close(cause)
	}
}

// abandon drops what nobody is going to write. After close.
func (o *outbound) abandon() {
	o.mu.Lock()
	var b *outBatch
	if !o.writing {
		b, o.pending = o.pending, nil
	}
	o.mu.Unlock()
	if b != nil {
		b.recycle()
	}
}

// waitIdle waits until nobody writes. After close, when writes fail at once.
func (o *outbound) waitIdle() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.writing {
		o.changed.Wait()
	}
}
