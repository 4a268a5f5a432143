package lifecycle

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func newGroup() *Group { return &Group{Logger: slog.New(slog.DiscardHandler)} }

func TestStopsInReverseOrderEachFullyBeforeTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var events []string
		record := func(s string) {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, s)
		}
		g := newGroup()
		for _, name := range []string{"store", "replication", "listener"} {
			g.Add(name, func(ctx context.Context) error {
				<-ctx.Done()
				record("stop " + name)
				time.Sleep(time.Second) // draining
				record("gone " + name)
				return nil
			})
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := g.Run(ctx); err != nil {
			t.Fatal(err)
		}
		want := []string{"stop listener", "gone listener", "stop replication", "gone replication", "stop store", "gone store"}
		if !slices.Equal(events, want) {
			t.Fatalf("got %v, want %v", events, want)
		}
	})
}

func TestFirstFailureStopsAllAndIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boom := errors.New("disk gone")
		g := newGroup()
		g.Add("store", func(context.Context) error { time.Sleep(time.Second); return boom })
		stopped := false
		g.Add("listener", func(ctx context.Context) error { <-ctx.Done(); stopped = true; return ctx.Err() })
		err := g.Run(t.Context())
		if !errors.Is(err, boom) || !strings.Contains(err.Error(), "store") {
			t.Fatalf("got %v", err)
		}
		if !stopped {
			t.Fatal("the listener was left running")
		}
	})
}

func TestReturningUnaskedIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup()
		g.Add("cleaner", func(context.Context) error { return nil })
		if err := g.Run(t.Context()); !errors.Is(err, errUnexpected) {
			t.Fatalf("got %v", err)
		}
	})
}

func TestFailureWhileStoppingIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boom := errors.New("flush failed")
		g := newGroup()
		g.Add("store", func(ctx context.Context) error { <-ctx.Done(); return boom })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := g.Run(ctx); !errors.Is(err, boom) {
			t.Fatalf("got %v", err)
		}
	})
}
