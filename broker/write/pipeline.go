// Package write is the one path by which a message enters the log and becomes acknowledged. Every writer of the broker,
// internal ones included, goes through a Pipeline.
package write

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/ha"
	"github.com/quorate/quorate/message"
	"github.com/quorate/quorate/replication"
	"github.com/quorate/quorate/store"
)

// Stage names where a write was refused.
type Stage string

// Stages in order.
const (
	Admission Stage = "admission"
	Authority Stage = "authority"
	Append    Stage = "append"
	Flush     Stage = "flush"
	Replicate Stage = "replicate"
)

// Error is a refused or unproved write.
type Error struct {
	Stage Stage
	Err   error
}

// Error names stage and cause.
func (e *Error) Error() string { return string(e.Stage) + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ErrUnproved is the cause when the write ended without an error and without an acknowledgement that covers it: a success
// nobody decided is never answered (D5).
var ErrUnproved = errors.New("write: no acknowledgement covers the record")

// Result is how a write ended. Appended is set from the append on, also with an error; Outcome.Proved then says what holds.
type Result struct {
	Appended store.Appended
	Outcome  replication.Outcome
	Err      *Error // nil: acknowledged
}

// Stored reports whether the record is in the log, acknowledged or not.
func (r *Result) Stored() bool { return r.Appended.End > 0 }

// Request is one write: one message, or a batch of one (topic, queue).
type Request struct {
	Message  *message.Message
	Batch    []message.Message
	Received time.Time // deadlines count from here; zero: now
	NoWait   bool      // waitStoreMsgOK=false
	Staged   bool      // the caller calls Kick once it has no more to submit at hand; not for batches
}

// Done is told how a write ended, exactly once. It must not block, and r is its own only until it returns. g is nil when
// the write was decided in the goroutine of Submit.
type Done interface {
	Written(r *Result, g *replication.Group)
}

// Log appends to the store.
type Log interface {
	Append(m *message.Message, allowed func() error) (store.Appended, error)
	AppendBatch(ms []message.Message, allowed func() error) (store.Appended, error)
	Stage(m *message.Message, allowed func() error) (store.Appended, error)
	Kick(inline bool)
	WriteFailed() error
}

// Masterships tells under which term this broker may write now, or why it may not.
type Masterships interface {
	Current() (*replication.Term, error)
}

// Config has the deadlines of a write.
type Config struct {
	SyncFlushTimeout time.Duration `conf:"syncFlushTimeout,ms" bounds:"1..3600000"` // default 5 s
}

// Reloadable are the deadlines that may change while the broker runs.
type Reloadable struct {
	// ReplicaTimeout is 2.7 s by default, not RocketMQ's 3 s: its clients give up after 3 s, and would never see the status
	// of a send that waited so long.
	ReplicaTimeout time.Duration `conf:"slaveTimeout,ms" bounds:"1..3600000"`
}

// DefaultReloadable has RocketMQ's defaults, but for the one that is explained above.
func DefaultReloadable() Reloadable { return Reloadable{ReplicaTimeout: 2700 * time.Millisecond} }

// DefaultConfig returns RocketMQ's defaults.
func DefaultConfig() Config {
	return Config{SyncFlushTimeout: 5 * time.Second}
}

// Pipeline turns checked messages into acknowledged ones. Safe for concurrent use.
type Pipeline struct {
	cfg  Config
	log  Log
	role Masterships
	ops  sync.Pool

	replicas atomic.Int64 // Reloadable.ReplicaTimeout
}

// New returns a pipeline that appends to log under the terms of role.
func New(cfg Config, log Log, role Masterships) *Pipeline {
	if cfg.SyncFlushTimeout <= 0 {
		cfg.SyncFlushTimeout = DefaultConfig().SyncFlushTimeout
	}
	p := &Pipeline{cfg: cfg, log: log, role: role}
	p.Reload(DefaultReloadable())
	p.ops.New = func() any {
		o := &op{pipeline: p}
		o.allowed = o.valid // bound once: a method value made per write would be an allocation
		return o
	}
	return p
}

// Reload replaces what may change at run time; it holds from the next write on.
func (p *Pipeline) Reload(r Reloadable) { p.replicas.Store(int64(r.ReplicaTimeout)) }

// op is one write on its way, pooled.
type op struct {
	pipeline *Pipeline
	term     *replication.Term
	pass     replication.Pass
	refused  bool // the append was refused by valid, not by the store
	allowed  func() error
	done     Done
	result   Result
}

// valid is called by the store under its append lock, before a byte is taken.
func (o *op) valid() error {
	err := o.term.Valid(o.pass)
	o.refused = err != nil
	return err
}

// Submit appends in the caller's goroutine and calls done exactly once when the write is decided, here or later. Messages
// of r are copied by the append. It does not allocate in the steady state.
func (p *Pipeline) Submit(r Request, done Done) { p.submit(r, done) }

// submit also returns where the append landed, for a caller that may stop waiting.
func (p *Pipeline) submit(r Request, done Done) store.Appended {
	o := p.ops.Get().(*op)
	o.done = done
	term, need, stage, err := p.admit(o, r.NoWait)
	if err != nil {
		o.finish(stage, err, nil)
		return store.Appended{}
	}
	switch {
	case r.Batch != nil:
		o.result.Appended, err = p.log.AppendBatch(r.Batch, o.allowed)
	case r.Staged:
		o.result.Appended, err = p.log.Stage(r.Message, o.allowed)
	default:
		o.result.Appended, err = p.log.Append(r.Message, o.allowed)
	}
	if err != nil {
		o.result.Appended = store.Appended{}
		stage = Append
		if o.refused {
			stage = Authority
		}
		o.finish(stage, err, nil)
		return store.Appended{}
	}
	appended := o.result.Appended // o may be done and reused when the term has it
	received := r.Received
	if received.IsZero() {
		received = time.Now()
	}
	w := replication.Wait{
		Pass: o.pass, End: o.result.Appended.End,
		Deadline: received.Add(p.cfg.SyncFlushTimeout), Replicas: received.Add(time.Duration(p.replicas.Load())),
	}
	if !r.NoWait {
		w.Flush, w.Need = term.SyncFlush(), need
	}
	term.Submit(w, o)
	return appended
}

// admit asks everything that can refuse a write before the append. One that waits for nothing (waitStoreMsgOK=false) does
// not ask for replicas either, as in RocketMQ.
func (p *Pipeline) admit(o *op, noWait bool) (*replication.Term, ha.Need, Stage, error) {
	if err := p.log.WriteFailed(); err != nil {
		return nil, ha.Need{}, Admission, err
	}
	term, err := p.role.Current()
	if err != nil {
		return nil, ha.Need{}, Authority, err
	}
	o.term = term
	if o.pass, err = term.Admit(); err != nil {
		if errors.Is(err, replication.ErrWaitsFull) {
			return nil, ha.Need{}, Admission, err
		}
		return nil, ha.Need{}, Authority, err
	}
	if noWait {
		return term, ha.Need{}, "", nil
	}
	need, err := term.Need()
	if err != nil {
		return nil, need, Admission, err
	}
	return term, need, "", nil
}

// Decided receives the outcome of the wait.
func (o *op) Decided(outcome replication.Outcome, g *replication.Group) {
	o.result.Outcome = outcome
	switch {
	case outcome.Err == nil && outcome.Acknowledged(o.result.Appended.End):
		o.finish("", nil, g)
	case outcome.Err == nil:
		o.finish(Flush, ErrUnproved, g)
	case errors.Is(outcome.Err, replication.ErrFlushTimeout):
		o.finish(Flush, outcome.Err, g)
	case errors.Is(outcome.Err, replication.ErrReplicaTimeout):
		o.finish(Replicate, outcome.Err, g)
	case errors.Is(outcome.Err, replication.ErrFenced):
		o.finish(Authority, outcome.Err, g)
	default:
		o.finish(Flush, outcome.Err, g)
	}
}

func (o *op) finish(stage Stage, err error, g *replication.Group) {
	if err != nil {
		o.result.Err = &Error{Stage: stage, Err: err}
	}
	o.done.Written(&o.result, g)
	p := o.pipeline
	*o = op{pipeline: p, allowed: o.allowed}
	p.ops.Put(o)
}

// Kick has staged writes written out, by the caller itself where nothing has to be flushed: their answers may come before
// it returns.
func (p *Pipeline) Kick() { p.log.Kick(true) }

// Write is Submit for callers that may block. When ctx ends first, the write itself goes on: the result then says where
// the record is, and an error instead of what became of it.
func (p *Pipeline) Write(ctx context.Context, r Request) Result {
	done := make(written, 1)
	appended := p.submit(r, done)
	select {
	case result := <-done:
		return result
	case <-ctx.Done():
		return Result{Appended: appended, Err: &Error{Stage: Flush, Err: context.Cause(ctx)}}
	}
}

type written chan Result

func (w written) Written(r *Result, _ *replication.Group) { w <- *r }

// Writable says whether a write would be admitted now, with the reason if not.
func (p *Pipeline) Writable() *Error {
	o := p.ops.Get().(*op)
	_, _, stage, err := p.admit(o, false)
	*o = op{pipeline: p, allowed: o.allowed}
	p.ops.Put(o)
	if err != nil {
		return &Error{Stage: stage, Err: err}
	}
	return nil
}
