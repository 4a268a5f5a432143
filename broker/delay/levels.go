package delay

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/message"
)

// Topic holds delayed messages until they are due: queue = level − 1 (RocketMQ RMQ_SYS_SCHEDULE_TOPIC).
const Topic = "SCHEDULE_TOPIC_XXXX"

// DefaultLevels is RocketMQ's messageDelayLevel.
const DefaultLevels = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"

// LevelsMax bounds the number of levels: each has a queue and a goroutine.
const LevelsMax = 1024

// Levels are the delays that a message may ask for; level 1 is the first.
type Levels []time.Duration

// ParseLevels reads messageDelayLevel: whole numbers with unit s, m, h or d, separated by blanks.
func ParseLevels(text string) (Levels, error) {
	units := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}
	var out Levels
	for field := range strings.FieldsSeq(text) {
		unit, ok := units[field[len(field)-1]]
		if !ok {
			return nil, fmt.Errorf("delay: level %q has no unit s, m, h or d", field)
		}
		n, err := strconv.ParseInt(field[:len(field)-1], 10, 64)
		if err != nil || n < 0 || n > int64(365*24*time.Hour/unit) {
			return nil, fmt.Errorf("delay: level %q is not a number from 0 to one year", field)
		}
		out = append(out, time.Duration(n)*unit)
	}
	if len(out) == 0 || len(out) > LevelsMax {
		return nil, fmt.Errorf("delay: %d levels, must be 1 to %d", len(out), LevelsMax)
	}
	return out, nil
}

// Clamp brings a level that a message asks for into the table; 0 means no delay.
func (l Levels) Clamp(level int) int { return min(max(level, 0), len(l)) }

// Of returns the delay of a level, 0 for level 0.
func (l Levels) Of(level int) time.Duration {
	if level = l.Clamp(level); level > 0 {
		return l[level-1]
	}
	return 0
}

// Park moves a message that asks for a delay to the delay topic: REAL_TOPIC and REAL_QID remember where it goes, and its
// tags code becomes the time it is due. It reports whether the message was parked. Half messages and messages already in the
// delay topic stay where they are.
func (l Levels) Park(m *message.Message, now time.Time) bool {
	text, ok := m.Properties.Lookup(message.DelayTimeLevel)
	if !ok || m.Topic == Topic {
		return false
	}
	level, err := strconv.Atoi(string(text))
	if err != nil || level <= 0 {
		return false
	}
	if clamped := l.Clamp(level); clamped != level {
		level = clamped
		m.Properties = m.Properties.Set(message.DelayTimeLevel, strconv.Itoa(level))
	}
	m.Properties = m.Properties.Set(message.RealTopic, m.Topic).Set(message.RealQueueID, strconv.Itoa(int(m.QueueID)))
	m.Topic, m.QueueID = Topic, int32(level-1)
	m.TagsCode, m.HasTagsCode = now.Add(l.Of(level)).UnixMilli(), true
	return true
}
