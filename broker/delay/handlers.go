package delay

import (
	"context"

	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/remoting"
)

// Routes of the requests about delayed messages.
func (s *Schedule) Routes() []remoting.Route {
	return []remoting.Route{remoting.Handle(remoting.Admin, s.offsets)}
}

func (s *Schedule) offsets(context.Context, remoting.Call[protocol.GetAllDelayOffsetRequest]) (*remoting.Reply, error) {
	body, err := s.Encoded()
	if err != nil {
		return nil, err
	}
	return &remoting.Reply{Body: body}, nil
}
