// Package watermark is a growing offset that goroutines can wait on.
package watermark

import "context"

// Watermark only grows. Safe for concurrent use. The zero value stands at 0.
type Watermark struct{}

// Load returns the current offset.
func (w *Watermark) Load() int64 { panic("unbuilt") }

// Advance moves the watermark up to offset and wakes exactly those waiters that it reaches; a lower offset is ignored.
func (w *Watermark) Advance(offset int64) { panic("unbuilt") }

// Close fails current and future waiters above the watermark with cause.
func (w *Watermark) Close(cause error) { panic("unbuilt") }

// Wait blocks until the watermark reaches offset, the watermark closes, or ctx ends.
func (w *Watermark) Wait(ctx context.Context, offset int64) error { panic("unbuilt") }

// Subscribe registers fn to be called after every advance, in the advancing goroutine; fn must not block. For the one
// pipeline stage that follows. cancel removes it.
func (w *Watermark) Subscribe(fn func(offset int64)) (cancel func()) { panic("unbuilt") }
