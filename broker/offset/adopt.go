package offset

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/internal/fastjson"
)

// Adopt takes the offsets of another broker's answer to GET_ALL_CONSUMER_OFFSET. A replica takes its master's as they are,
// since a group may have been reset to an earlier place; a master that comes back takes those of its replicas where they are
// ahead. What the answer does not mention stays (I23).
func (t *Table) Adopt(content []byte, onlyAhead bool) (bool, error) {
	var c Content
	if err := fastjson.Unmarshal(content, &c); err != nil {
		return false, fmt.Errorf("offsets of another broker: %w", err)
	}
	changed := false
	for key, offsets := range c.OffsetTable {
		topic, group, ok := strings.Cut(key, "@")
		if !ok || topic == "" || group == "" {
			return changed, fmt.Errorf("offsets of another broker: key %q is not topic@group", key)
		}
		for id, offset := range offsets {
			have := t.Query(group, topic, id)
			switch {
			case offset < 0 || have == offset:
			case onlyAhead:
				t.MergeMax(group, topic, id, offset)
				changed = changed || offset > have
			default:
				t.Commit(group, topic, id, offset)
				changed = true
			}
		}
	}
	return changed, nil
}
