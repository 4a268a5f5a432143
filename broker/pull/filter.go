package pull

import (
	"bytes"
	"slices"

	"github.com/quorate/quorate/broker/client"
	"github.com/quorate/quorate/message"
)

// tags is a store.Filter for a tag expression: by hash on the consume queue, and exactly on the record, so that a colliding
// tag does not travel to a client that would throw it away. Pooled with its op.
type tags struct {
	names [][]byte // of the request
	texts []string // of a heartbeat; one of the two is used
	codes []int64
}

// reset forgets the tags and keeps the arrays.
func (t *tags) reset() {
	clear(t.names)
	t.names, t.texts, t.codes = t.names[:0], nil, t.codes[:0]
}

func (t *tags) add(name []byte) {
	t.names = append(t.names, name)
	t.codes = append(t.codes, int64(message.JavaHash(name)))
}

// parse takes a subscription expression. all is true when it selects everything, ok false when it selects nothing that
// could be meant (RocketMQ FilterAPI.buildSubscriptionData).
func (t *tags) parse(expression []byte) (all, ok bool) {
	t.reset()
	expression = bytes.TrimSpace(expression)
	if len(expression) == 0 || string(expression) == "*" {
		return true, true
	}
	for len(expression) > 0 {
		name, rest, _ := bytes.Cut(expression, []byte("||"))
		expression = rest
		if name = bytes.TrimSpace(name); len(name) > 0 {
			t.add(name)
		}
	}
	return false, len(t.names) > 0
}

// subscribe takes what a heartbeat said. Hashes are computed from the names: clients disagree about those of names beyond
// ASCII, and the queue has Java's. A subscription without names is matched by the hashes the client sent.
func (t *tags) subscribe(s *client.Subscription) (all bool) {
	t.reset()
	if s.SubString == "" || s.SubString == "*" || s.ClassFilterMode {
		return true
	}
	t.texts = s.Tags
	for _, name := range s.Tags {
		t.codes = append(t.codes, int64(message.JavaHash(name)))
	}
	if len(t.texts) == 0 {
		t.codes = append(t.codes, s.Codes...)
	}
	return false
}

// MatchTagsCode compares the hash in the consume queue.
func (t *tags) MatchTagsCode(code int64) bool {
	return slices.Contains(t.codes, code)
}

// MatchRecord compares the tags of the record itself. A record that cannot be decoded goes to the client, as without a
// filter: hiding it would be a loss nobody sees.
func (t *tags) MatchRecord(record []byte) bool {
	if len(t.names)+len(t.texts) == 0 {
		return true
	}
	r, err := message.DecodeRecord(record, false)
	if err != nil {
		return true
	}
	have, _ := r.Properties.Lookup(message.Tags)
	for _, name := range t.names {
		if bytes.Equal(name, have) {
			return true
		}
	}
	return slices.ContainsFunc(t.texts, func(name string) bool { return name == string(have) })
}
