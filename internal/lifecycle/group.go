// Package lifecycle runs the parts of a server: started in order, stopped in reverse.
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
)

// Group is an ordered list of components. Add them bottom-up: what others need comes first. A Group runs once.
type Group struct {
	Logger *slog.Logger
	parts  []part
}

type part struct {
	name string
	run  func(context.Context) error
}

type exit struct {
	index int
	err   error
}

// errUnexpected is why a group stops when a component returns nil although nobody asked it to.
var errUnexpected = errors.New("returned without being asked to")

// Add appends a component. run blocks until its ctx ends and leaves no goroutine behind.
func (g *Group) Add(name string, run func(context.Context) error) {
	g.parts = append(g.parts, part{name, run})
}

// Run starts every component in order and waits for ctx to end or for one of them to return. It then stops them in
// reverse order, each fully before the next, and returns every failure joined. The values of ctx reach the components;
// its cancellation does not, since it would stop all of them at once.
func (g *Group) Run(ctx context.Context) error {
	exits := make(chan exit, len(g.parts))
	cancels := make([]context.CancelCauseFunc, len(g.parts))
	done := make([]chan struct{}, len(g.parts))
	base := context.WithoutCancel(ctx)
	for i, p := range g.parts {
		partCtx, cancel := context.WithCancelCause(base)
		cancels[i], done[i] = cancel, make(chan struct{})
		go func() {
			defer close(done[i])
			exits <- exit{i, p.run(partCtx)}
		}()
		g.Logger.Debug("component started", "component", p.name)
	}
	var errs []error
	var cause error
	select {
	case <-ctx.Done():
		cause = context.Cause(ctx)
	case e := <-exits:
		err := e.err
		if err == nil {
			err = errUnexpected
		}
		cause = fmt.Errorf("%s: %w", g.parts[e.index].name, err)
		errs = append(errs, cause)
	}
	for i, p := range slices.Backward(g.parts) {
		cancels[i](cause)
		<-done[i]
		g.Logger.Debug("component stopped", "component", p.name)
	}
	for len(exits) > 0 {
		if e := <-exits; e.err != nil && !errors.Is(e.err, context.Canceled) {
			errs = append(errs, fmt.Errorf("%s: %w", g.parts[e.index].name, e.err))
		}
	}
	return errors.Join(errs...)
}
