package broker

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/quorate/quorate/internal/conf"
	"github.com/quorate/quorate/protocol"
)

// settings is the configuration as operators see and change it while the broker runs (ops.Settings).
type settings struct {
	b *reloader

	mu      sync.Mutex
	cfg     Config
	version protocol.DataVersion
}

// reloader hands changed keys to the parts that use them.
type reloader struct {
	apply  func(Reloadable)
	save   func(changed map[string]string) error
	unused map[string]string
}

func newSettings(b *Broker) *settings {
	return &settings{cfg: b.cfg, b: &reloader{
		save: b.deps.SaveConfig, unused: b.deps.Unused,
		apply: func(r Reloadable) {
			b.producing.Reload(r.Produce)
			b.pulling.Reload(r.Pull)
			b.topics.Reload(r.Topic)
			b.groups.Reload(r.Group)
			b.registrar.Permit(r.Produce.BrokerPermission)
			b.role.Reload(r.Quorum)
			b.pipeline.Reload(r.Write)
		},
	}}
}

func (s *settings) current() Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cfg
}

// Text lists all keys, secrets as stars.
func (s *settings) Text() (string, error) {
	cfg := s.current()
	var b strings.Builder
	err := conf.Print(&b, false, &cfg)
	return b.String(), err
}

// Version counts the changes since the start.
func (s *settings) Version() protocol.DataVersion {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// Update takes all keys of a properties text or none of them. Only keys of Reloadable may change; any other is refused by
// name, so that nobody believes in a change that did not happen.
func (s *settings) Update(text []byte) error {
	values, err := conf.Parse("request", text)
	if err != nil {
		return protocol.Errorf(protocol.InvalidParameter, "%v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.cfg
	if err := s.allowed(values, &next); err != nil {
		return err
	}
	if _, err := conf.Bind(values, nil, &next.Live); err != nil {
		return protocol.Errorf(protocol.InvalidParameter, "%v", err)
	}
	if err := next.Validate(); err != nil {
		return protocol.Errorf(protocol.InvalidParameter, "%v", err)
	}
	if s.b.save != nil {
		changed := map[string]string{}
		for key, v := range values {
			changed[key] = v.Text
		}
		if err := s.b.save(changed); err != nil {
			return fmt.Errorf("keep changed configuration: %w", err)
		}
	}
	s.b.apply(next.Live)
	s.cfg = next
	s.version = s.version.Next(s.cfg.Store.Now())
	return nil
}

// allowed refuses the first key that cannot change now.
func (s *settings) allowed(values conf.Values, cfg *Config) error {
	live, known := map[string]bool{}, map[string]bool{}
	for _, f := range conf.Fields(&cfg.Live) {
		live[f.Key] = true
	}
	for _, f := range conf.Fields(cfg) {
		known[f.Key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		reason, unused := s.b.unused[key]
		switch {
		case live[key]:
		case known[key]:
			return protocol.Errorf(protocol.NoPermission, "%s can only be changed in the configuration file, with a restart", key)
		case unused:
			return protocol.Errorf(protocol.NoPermission, "%s has no effect: %s", key, reason)
		default:
			return protocol.Errorf(protocol.InvalidParameter, "%s is not a known key", key)
		}
	}
	return nil
}
