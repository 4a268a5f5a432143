// Package write is the one path by which a message enters the log and becomes acknowledged. Every writer of the broker,
// internal ones included, goes through a Pipeline.
package write

import (
	"context"
	"time"

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

// Result is how a write ended. Appended is set from the append on, also with an error.
type Result struct {
	Appended store.Appended
	Outcome  replication.Outcome
	Err      *Error // nil: acknowledged, Outcome.Ack is set
}

// Request is one write: one message, or a batch of one (topic, queue).
type Request struct {
	Message  *message.Message
	Batch    []message.Message
	Received time.Time // deadlines count from here
	NoWait   bool      // waitStoreMsgOK=false
}

// Pipeline turns checked messages into acknowledged ones. Safe for concurrent use.
type Pipeline struct{}

// Submit appends in the caller's goroutine and calls done exactly once when the write is decided; done must not block. It does not allocate.
func (p *Pipeline) Submit(r Request, done func(Result)) { panic("unbuilt") }

// Write is Submit for callers that may block.
func (p *Pipeline) Write(ctx context.Context, r Request) Result { panic("unbuilt") }

// Writable says whether a write would be admitted now, with the reason if not.
func (p *Pipeline) Writable() *Error { panic("unbuilt") }
