package watermark_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/internal/watermark"
)

var errStopped = errors.New("stopped")

func TestAdvanceWakesOnlyReachedWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w watermark.Watermark
		var done [11]atomic.Bool
		for i := 1; i <= 10; i++ {
			go func() {
				if err := w.Wait(t.Context(), int64(i)); err == nil {
					done[i].Store(true)
				}
			}()
		}
		for _, at := range []int64{3, 3, 2, 7, 10} {
			w.Advance(at)
			synctest.Wait()
			reached := w.Load()
			for i := 1; i <= 10; i++ {
				if got, want := done[i].Load(), int64(i) <= reached; got != want {
					t.Fatalf("watermark at %d: waiter for %d returned = %v", reached, i, got)
				}
			}
		}
		if w.Load() != 10 {
			t.Fatalf("Load = %d, want 10", w.Load())
		}
	})
}

func TestWaitEndsWithContextCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w watermark.Watermark
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errStopped)
		defer cancel()
		start := time.Now()
		if err := w.Wait(ctx, 5); !errors.Is(err, errStopped) {
			t.Fatalf("Wait = %v", err)
		}
		if d := time.Since(start); d != time.Minute {
			t.Fatalf("waited %v", d)
		}
		w.Advance(5) // the waiter that gave up must be gone
		if err := w.Wait(ctx, 5); err != nil {
			t.Fatalf("a reached offset counts even when ctx is over: %v", err)
		}
	})
}

func TestCloseFailsOnlyWaitersAboveTheWatermark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w watermark.Watermark
		w.Advance(4)
		got := make(chan error, 1)
		go func() { got <- w.Wait(t.Context(), 5) }()
		synctest.Wait()
		w.Close(errStopped)
		err := <-got
		if !errors.Is(err, errStopped) || !errors.Is(err, watermark.ErrClosed) {
			t.Fatalf("Wait = %v", err)
		}
		w.Advance(9)
		if w.Load() != 4 {
			t.Fatal("a closed watermark moved")
		}
		if err := w.Wait(t.Context(), 4); err != nil {
			t.Fatalf("Wait for a reached offset = %v", err)
		}
		if err := w.Wait(t.Context(), 6); !errors.Is(err, errStopped) {
			t.Fatalf("Wait after Close = %v", err)
		}
		w.Close(nil)
		if err := w.Wait(t.Context(), 6); !errors.Is(err, errStopped) {
			t.Fatalf("the first cause holds, got %v", err)
		}
	})
}

func TestSubscribersSeeEveryAdvanceUntilCancelled(t *testing.T) {
	var w watermark.Watermark
	var a, b []int64
	cancelA := w.Subscribe(func(o int64) { a = append(a, o) })
	w.Advance(1)
	cancelB := w.Subscribe(func(o int64) { b = append(b, o) })
	w.Advance(1)
	w.Advance(3)
	cancelA()
	w.Advance(4)
	cancelB()
	w.Advance(5)
	if len(a) != 2 || a[0] != 1 || a[1] != 3 || len(b) != 2 || b[0] != 3 || b[1] != 4 {
		t.Fatalf("a = %v, b = %v", a, b)
	}
}

func TestRandomWaitersAndCancellationsNeverMissAnAdvance(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var w watermark.Watermark
		var wrong atomic.Int64
		for range 500 {
			offset, patience := rnd.Int64N(1000), time.Duration(rnd.Int64N(1000))*time.Millisecond
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				start := time.Now()
				err := w.Wait(ctx, offset)
				// The driver below advances by one each millisecond.
				reachedAt := time.Duration(offset) * time.Millisecond
				if (err == nil && time.Since(start) < reachedAt) || (err != nil && reachedAt < patience) {
					wrong.Add(1)
				}
			}()
		}
		for i := range int64(1000) {
			w.Advance(i)
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		if n := wrong.Load(); n != 0 {
			t.Fatalf("%d waiters ended wrongly", n)
		}
	})
}

func BenchmarkAdvanceWithFarWaiters(b *testing.B) {
	ctx := b.Context()
	var w watermark.Watermark
	for range 1000 {
		go func() { _ = w.Wait(ctx, 1<<62) }()
	}
	b.ReportAllocs()
	var at int64
	for b.Loop() {
		at++
		w.Advance(at)
	}
}

func TestRewindFailsThoseAboveAndTheOffsetCanBeReachedAgain(t *testing.T) {
	var w watermark.Watermark
	w.Advance(10)
	cut := errors.New("cut")
	failed := make(chan error, 1)
	go func() { failed <- w.Wait(t.Context(), 20) }()
	for {
		w.Rewind(5, cut) // until the waiter is there to be failed
		w.Advance(10)
		select {
		case err := <-failed:
			if !errors.Is(err, cut) {
				t.Fatalf("got %v", err)
			}
		default:
			continue
		}
		break
	}
	w.Rewind(5, cut)
	if got := w.Load(); got != 5 {
		t.Fatalf("stands at %d", got)
	}
	w.Rewind(7, cut)
	if got := w.Load(); got != 5 {
		t.Fatalf("a rewind must not move it up, stands at %d", got)
	}
	w.Advance(6)
	if err := w.Wait(t.Context(), 6); err != nil {
		t.Fatal(err)
	}
}
