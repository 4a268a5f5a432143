package group

import (
	"fmt"
	"maps"

	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/protocol"
)

// Adopt takes the groups of a master's answer to GET_ALL_SUBSCRIPTIONGROUP_CONFIG, and its version. A group that the answer
// does not mention stays (I23). What is forbidden is the master's for every group that it mentions.
func (t *Table) Adopt(content []byte) (bool, error) {
	var d struct {
		DataVersion protocol.DataVersion        `json:"dataVersion"`
		Forbidden   map[string]map[string]int32 `json:"forbiddenTable"`
		Groups      map[string]fastjson.Raw     `json:"subscriptionGroupTable"`
	}
	if err := fastjson.Unmarshal(content, &d); err != nil {
		return false, fmt.Errorf("groups of the master: %w", err)
	}
	if len(d.Groups) == 0 || d.DataVersion == t.Snapshot().Version {
		return false, nil
	}
	groups := make(map[string]*Config, len(d.Groups))
	for name, text := range d.Groups {
		c, err := read(text)
		if err == nil {
			err = CheckName(name)
		}
		if err != nil {
			return false, fmt.Errorf("groups of the master: %q: %w", name, err)
		}
		c.Name = name
		groups[name] = normal(c)
	}
	err := t.changeTo(func(s *Snapshot) (bool, error) {
		for name, c := range groups {
			s.Groups[name] = c
			delete(s.Forbidden, name)
			if topics := d.Forbidden[name]; len(topics) > 0 {
				s.Forbidden[name] = maps.Clone(topics)
			}
		}
		return true, nil
	}, func(protocol.DataVersion) protocol.DataVersion { return d.DataVersion })
	return err == nil, err
}
