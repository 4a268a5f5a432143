// Package metasync keeps a replica's topics, groups, consumer offsets and delay progress like its master's, and gives a
// master that comes back what its replicas know better. Nothing is ever deleted because a peer did not mention it, and an
// empty or failing answer changes nothing (I23).
package metasync

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/quorate/quorate/protocol"
)

// Times of the exchange; RocketMQ's replica asks every 3 s.
const (
	period     = 3 * time.Second
	retryPause = 200 * time.Millisecond // while no master is known or none answered yet
	askTimeout = 5 * time.Second
)

// Invoker sends requests to the master (remoting.Client).
type Invoker interface {
	Invoke(ctx context.Context, addr string, cmd *protocol.Command) (*protocol.Command, error)
}

// Table takes a whole answer of another broker (topic.Table, group.Table).
type Table interface {
	Adopt(content []byte) (changed bool, err error)
}

// Progress takes offsets of another broker: as they are, or only where they are ahead (offset.Table, delay.Schedule).
type Progress interface {
	Adopt(content []byte, onlyAhead bool) (changed bool, err error)
}

// Deps are what is kept alike, and how the master is reached.
type Deps struct {
	Invoker Invoker
	Master  func() string // its main address, "" while unknown
	Topics  Table
	Groups  Table
	Offsets Progress
	Delays  Progress
	Logger  *slog.Logger
}

// Syncer asks. Run and Return are called by one goroutine each.
type Syncer struct {
	deps Deps
	soon chan struct{} // capacity 1: ask now
}

// New starts nothing.
func New(deps Deps) *Syncer { return &Syncer{deps: deps, soon: make(chan struct{}, 1)} }

// Soon makes Run ask now: something is missing here that the master may know.
func (s *Syncer) Soon() {
	select {
	case s.soon <- struct{}{}:
	default:
	}
}

// errNoMaster is why a replica waits.
var errNoMaster = errors.New("no master is known")

// Run keeps a replica like its master until ctx ends.
func (s *Syncer) Run(ctx context.Context) error {
	ok, failing := false, false
	for {
		err := s.once(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // asked to stop
		case err == nil && (!ok || failing):
			s.deps.Logger.Info("topics, groups and offsets are the master's", "master", s.deps.Master())
			ok, failing = true, false
		case err != nil && !failing && !errors.Is(err, errNoMaster):
			s.deps.Logger.Warn("topics, groups or offsets not taken from the master; what is here stays", "error", err)
			failing = true
		}
		wait := period
		if !ok {
			wait = retryPause
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-s.soon:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// once takes everything; what fails does not keep the rest from being taken.
func (s *Syncer) once(ctx context.Context) error {
	master := s.deps.Master()
	if master == "" {
		return errNoMaster
	}
	as := func(p Progress) func([]byte) (bool, error) {
		return func(content []byte) (bool, error) { return p.Adopt(content, false) }
	}
	return errors.Join(
		s.take(ctx, master, &protocol.GetAllTopicConfigRequest{}, s.deps.Topics.Adopt),
		s.take(ctx, master, &protocol.GetAllSubscriptionGroupRequest{}, s.deps.Groups.Adopt),
		s.take(ctx, master, &protocol.GetAllConsumerOffsetRequest{}, as(s.deps.Offsets)),
		s.take(ctx, master, &protocol.GetAllDelayOffsetRequest{}, as(s.deps.Delays)),
	)
}

// Return gives a master what the replica at addr knows better: progress, by maximum and never by age.
func (s *Syncer) Return(ctx context.Context, addr string) error {
	ahead := func(p Progress) func([]byte) (bool, error) {
		return func(content []byte) (bool, error) { return p.Adopt(content, true) }
	}
	return errors.Join(
		s.take(ctx, addr, &protocol.GetAllConsumerOffsetRequest{}, ahead(s.deps.Offsets)),
		s.take(ctx, addr, &protocol.GetAllDelayOffsetRequest{}, ahead(s.deps.Delays)),
	)
}

func (s *Syncer) take(ctx context.Context, addr string, req protocol.Request, adopt func([]byte) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	answer, err := s.deps.Invoker.Invoke(ctx, addr, protocol.NewRequest(req, nil))
	if err != nil {
		return fmt.Errorf("request %d to %s: %w", req.Code(), addr, err)
	}
	if answer.Code != int32(protocol.Success) {
		return fmt.Errorf("request %d to %s: %w", req.Code(), addr,
			&protocol.Error{Code: protocol.ResponseCode(answer.Code), Remark: string(answer.Remark)})
	}
	if len(answer.Body) == 0 {
		return nil // RocketMQ answers so where it has nothing to tell
	}
	_, err = adopt(answer.Body)
	return err
}
