package index

import (
	"bytes"
	"unicode/utf8"

	"github.com/quorate/quorate/message"
)

// tagType marks the keys of tags (RocketMQ 5.5 MessageConst.INDEX_TAG_TYPE): topic#T#tag.
const tagType = "T"

// extend continues Java's String.hashCode, which counts UTF-16 code units, over UTF-8 text.
func extend[T string | []byte](h int32, s T) int32 {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < utf8.RuneSelf {
			h = 31*h + int32(c)
			continue
		}
		return extendRunes(h, string(s[i:]))
	}
	return h
}

func extendRunes(h int32, s string) int32 {
	for _, r := range s {
		if r < 0x10000 {
			h = 31*h + r
			continue
		}
		r -= 0x10000
		h = 31*h + (0xD800 + r>>10)
		h = 31*h + (0xDC00 + r&0x3FF)
	}
	return h
}

// positive is IndexFile.indexKeyHashMethod.
func positive(h int32) int32 {
	if h < 0 {
		h = -h
	}
	return max(h, 0) // the negative of the smallest is itself
}

// keyHash is the hash of topic#key.
func keyHash(topic, key string) int32 {
	return positive(extend(31*extend(0, topic)+'#', key))
}

// Batch collects the keys of records on their way into the index. The dispatcher owns one and uses it again.
type Batch struct {
	// WithTags adds the tags of records as keys, as RocketMQ 5.5 does.
	WithTags bool

	keys []pendingKey
	end  int64
}

type pendingKey struct {
	hash      int32
	physical  int64
	storeTime int64
}

// Names are the properties of a record that dispatch looks at, as slices of it; nil where the record has none.
type Names struct{ Unique, Keys, Tags, Delay []byte }

// NamesOf finds them in one walk.
func NamesOf(p message.Properties) (n Names) {
	for name, value := range p.All {
		switch string(name) {
		case message.UniqueKey:
			n.Unique = value
		case message.Keys:
			n.Keys = value
		case message.Tags:
			n.Tags = value
		case message.DelayTimeLevel:
			n.Delay = value
		}
	}
	return n
}

// Add adds the keys of a record: its unique key, each word of KEYS, and its tags. Rolled back transactions have none.
func (b *Batch) Add(r *message.Record) { b.AddNamed(r, NamesOf(r.Properties)) }

// AddNamed is Add for a caller who has the names already.
func (b *Batch) AddNamed(r *message.Record, n Names) {
	b.end = r.PhysicalOffset + int64(r.Size)
	if r.SysFlag.Transaction() == message.TransactionRollback {
		return
	}
	prefix := 31*extend(0, r.Topic) + '#'
	if len(n.Unique) > 0 {
		b.add(extend(prefix, n.Unique), r)
	}
	for keys := n.Keys; len(keys) > 0; {
		word := keys
		keys = nil
		if i := bytes.IndexByte(word, ' '); i >= 0 {
			word, keys = word[:i], word[i+1:]
		}
		if len(word) > 0 {
			b.add(extend(prefix, word), r)
		}
	}
	if b.WithTags && len(n.Tags) > 0 {
		b.add(extend(31*extend(prefix, tagType)+'#', n.Tags), r)
	}
}

func (b *Batch) add(hash int32, r *message.Record) {
	b.keys = append(b.keys, pendingKey{hash: positive(hash), physical: r.PhysicalOffset, storeTime: r.StoreTimestamp})
}

// Cover makes the batch reach to end, for bytes of the log that hold no keys.
func (b *Batch) Cover(end int64) { b.end = max(b.end, end) }

// Len is the number of keys.
func (b *Batch) Len() int { return len(b.keys) }

// Drop forgets what was collected.
func (b *Batch) Drop() { b.keys = b.keys[:0] }
