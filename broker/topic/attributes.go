package topic

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Attribute keys of topics (RocketMQ TopicAttributes).
const (
	attrQueueType     = "queue.type"
	attrCleanupPolicy = "cleanup.policy"
	attrMessageType   = "message.type"
	attrReserveTime   = "reserve.time"
)

type attribute struct {
	immutable bool
	values    []string // allowed values; empty: a whole number
	unserved  []string // values RocketMQ knows and this broker does not serve
}

var attributes = map[string]attribute{
	attrQueueType:     {immutable: true, values: []string{"SimpleCQ"}, unserved: []string{"BatchCQ"}},
	attrCleanupPolicy: {immutable: true, values: []string{"DELETE"}, unserved: []string{"COMPACTION"}},
	attrMessageType:   {values: []string{"UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION", "MIXED"}},
	attrReserveTime:   {},
}

// parseAttributes reads the list of a request: `+key=value,-key`. The sign stays part of the key.
func parseAttributes(text string) (map[string]string, error) {
	out := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		key, value, hasValue := strings.Cut(part, "=")
		if len(key) < 2 || key[0] != '+' && key[0] != '-' {
			return nil, fmt.Errorf("topic: attribute %q must start with + or -", part)
		}
		if hasValue != (key[0] == '+') {
			return nil, fmt.Errorf("topic: attribute %q must be +key=value or -key", part)
		}
		if _, twice := out[key]; twice {
			return nil, fmt.Errorf("topic: attribute %q given twice", key)
		}
		out[key] = value
	}
	return out, nil
}

// alterAttributes applies signed changes to the current attributes of a topic (RocketMQ AttributeUtil). A new topic may only add.
func alterAttributes(create bool, current, changes map[string]string) (map[string]string, error) {
	next := maps.Clone(current)
	if next == nil {
		next = map[string]string{}
	}
	for _, signed := range slices.Sorted(maps.Keys(changes)) {
		key, value := signed[1:], changes[signed]
		rule, known := attributes[key]
		if !known {
			return nil, fmt.Errorf("topic: attribute %q is not known", key)
		}
		if signed[0] == '-' {
			if create {
				return nil, fmt.Errorf("topic: attribute %q cannot be removed from a new topic", key)
			}
			if rule.immutable {
				return nil, fmt.Errorf("topic: attribute %q cannot be changed", key)
			}
			delete(next, key)
			continue
		}
		if !create && rule.immutable && current[key] != value {
			return nil, fmt.Errorf("topic: attribute %q cannot be changed", key)
		}
		if err := rule.check(key, value); err != nil {
			return nil, err
		}
		next[key] = value
	}
	return next, nil
}

func (a attribute) check(key, value string) error {
	switch {
	case slices.Contains(a.unserved, value):
		return fmt.Errorf("topic: attribute %s=%s is not served by this broker", key, value)
	case len(a.values) > 0 && !slices.Contains(a.values, value):
		return fmt.Errorf("topic: attribute %s must be one of %s, not %q", key, strings.Join(a.values, ", "), value)
	case len(a.values) == 0:
		if _, err := strconv.ParseInt(value, 10, 64); err != nil {
			return fmt.Errorf("topic: attribute %s must be a whole number, not %q", key, value)
		}
	}
	return nil
}
