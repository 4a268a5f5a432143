package delay

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/fastjson"
)

// Adopt takes the progress of another broker's answer to GET_ALL_DELAY_OFFSET, and writes it. A replica takes its master's as
// it is; a master that comes back takes what is ahead of its own. A level that the answer does not mention stays (I23).
func (s *Schedule) Adopt(content []byte, onlyAhead bool) (bool, error) {
	var d document
	if err := fastjson.Unmarshal(content, &d); err != nil {
		return false, fmt.Errorf("progress of delayed messages of another broker: %w", err)
	}
	changed := false
	for level, offset := range d.Offsets {
		have := s.progress.next(level)
		if offset < 0 || offset == have || onlyAhead && offset < have {
			continue
		}
		s.progress.set(level, offset)
		changed = true
	}
	if !changed {
		return false, nil
	}
	next, _ := s.progress.copyOf(time.Now(), true)
	text, err := fastjson.MarshalIndent(next)
	if err == nil {
		err = s.deps.Files.WriteConfigFile(fileName, text)
	}
	if err != nil {
		return true, fmt.Errorf("write %s: %w", fileName, err)
	}
	return true, nil
}
