package namesrv

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/quorate/quorate/internal/conf"
	"github.com/quorate/quorate/internal/vfs"
	"github.com/quorate/quorate/protocol"
)

// updateBytesMax bounds one change of the configuration.
const updateBytesMax = 64 << 10

// settings are the configuration and what of it may change.
type settings struct {
	fixed Config // its Reloadable is that of the start
	live  atomic.Pointer[Reloadable]
	turn  chan struct{} // updates take turns
}

func newSettings(cfg Config) *settings {
	s := &settings{fixed: cfg, turn: make(chan struct{}, 1)}
	s.live.Store(&cfg.Reloadable)
	return s
}

// text is the present configuration as GET_NAMESRV_CONFIG answers it.
func (s *settings) text() ([]byte, error) {
	cfg := s.fixed
	cfg.Reloadable, cfg.TLS, cfg.ClientTLS = *s.live.Load(), nil, nil
	var out bytes.Buffer
	err := conf.Print(&out, false, &cfg)
	return out.Bytes(), err
}

// update takes all changes of a text or none, keeps them in the file, and returns what holds from now on.
func (s *settings) update(ctx context.Context, fsys vfs.FS, text []byte) (Reloadable, error) {
	if len(text) > updateBytesMax {
		return Reloadable{}, protocol.Errorf(protocol.InvalidParameter, "longer than %d bytes", updateBytesMax)
	}
	values, err := conf.Parse("request", text)
	if err != nil {
		return Reloadable{}, protocol.Errorf(protocol.InvalidParameter, "%v", err)
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return Reloadable{}, ctx.Err()
	}
	next := *s.live.Load()
	if err := s.refusal(values); err != nil {
		return Reloadable{}, err
	}
	if _, err := conf.Bind(values, nil, &next); err != nil {
		return Reloadable{}, protocol.Errorf(protocol.InvalidParameter, "%v", err)
	}
	if len(values) > 0 && s.fixed.ConfigStorePath != "" {
		old, err := readFile(fsys, s.fixed.ConfigStorePath)
		if err != nil {
			return Reloadable{}, err
		}
		if err := replaceFile(fsys, s.fixed.ConfigStorePath, edited(old, values)); err != nil {
			return Reloadable{}, err
		}
	}
	s.live.Store(&next)
	return next, nil
}

// refusal says why one of the keys may not change.
func (s *settings) refusal(values conf.Values) error {
	fixed := map[string]bool{}
	for _, f := range conf.Fields(&s.fixed) {
		fixed[f.Key] = true
	}
	allowed := map[string]bool{}
	for _, f := range conf.Fields(&Reloadable{}) {
		allowed[f.Key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		_, unused := UnusedKeys[key]
		switch {
		case allowed[key]:
		case fixed[key] || unused:
			return protocol.Errorf(protocol.NoPermission, "%s cannot be changed while the server runs", key)
		default:
			return protocol.Errorf(protocol.InvalidParameter, "unknown key %.64q", key)
		}
	}
	return nil
}

// edited is a properties text with new values: lines of those keys are replaced where they stand, the others stay.
func edited(text []byte, values conf.Values) []byte {
	var out []string
	done := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\r\n")
		key, _, _ := strings.Cut(line, "=")
		key = strings.TrimSpace(key)
		v, changed := values[key]
		switch {
		case changed && done[key]:
			continue
		case changed:
			line, done[key] = fmt.Sprintf("%s=%s", key, v.Text), true
		}
		out = append(out, line)
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if !done[key] {
			out = append(out, fmt.Sprintf("%s=%s", key, values[key].Text))
		}
	}
	return []byte(strings.Join(out, "\n") + "\n")
}
