package message

import (
	"bytes"
	"slices"
	"sort"
)

// Separators of the encoded form. Neither may occur in a key or a value.
const (
	propertyNameEnd  = 0x01
	propertyValueEnd = 0x02
)

// PropertiesBytesMax is the largest encoded property block a record can carry (its length is a signed 16-bit field).
const PropertiesBytesMax = 32767

// Properties is the encoded property block of a message: key 0x01 value 0x02, repeated (RocketMQ MessageDecoder,
// PROTOCOL §4.3). Lookups work on the encoded form, so that nothing is decoded which nobody asks for. Pieces without
// 0x01, with an empty key or an empty value count as absent, and of two pairs with one key the last counts, as in Java.
// A trailing 0x02 may be missing (older clients).
type Properties []byte

// pair is one piece of the block: its bounds with the trailing separator, and where the value starts.
type pair struct {
	begin, value, valueEnd, end int
}

// next returns the piece that starts at i. ok tells whether it is a pair; i < len(p).
func (p Properties) next(i int) (at pair, ok bool) {
	at.begin = i
	if n := bytes.IndexByte(p[i:], propertyValueEnd); n >= 0 {
		at.valueEnd, at.end = i+n, i+n+1
	} else {
		at.valueEnd, at.end = len(p), len(p)
	}
	n := bytes.IndexByte(p[i:at.valueEnd], propertyNameEnd)
	at.value = i + n + 1
	return at, n > 0 && at.value < at.valueEnd
}

// Lookup returns the value of key as a slice of p, and whether the key is there. It does not allocate.
func (p Properties) Lookup(key string) ([]byte, bool) {
	var value []byte
	for i := 0; i < len(p); {
		at, ok := p.next(i)
		if ok && string(p[at.begin:at.value-1]) == key {
			value = p[at.value:at.valueEnd:at.valueEnd]
		}
		i = at.end
	}
	return value, value != nil
}

// Get returns the value of key, or "" when it is absent.
func (p Properties) Get(key string) string {
	value, _ := p.Lookup(key)
	return string(value)
}

// Has reports whether key is present.
func (p Properties) Has(key string) bool {
	_, ok := p.Lookup(key)
	return ok
}

// Set returns p with key set to value: a present value is replaced, an absent one appended. p may be overwritten, and the
// result may use its spare capacity as append does. It does not allocate when there is room.
func (p Properties) Set(key, value string) Properties {
	for i := 0; i < len(p); {
		at, ok := p.next(i)
		if !ok || string(p[at.begin:at.value-1]) != key {
			i = at.end
			continue
		}
		q := splice(p, at.value, at.valueEnd, value)
		return q.without(at.value+len(value)+1, key)
	}
	return p.Append(key, value)
}

// splice replaces p[from:to] by text.
func splice(p Properties, from, to int, text string) Properties {
	tail := len(p) - to
	if grow := len(text) - (to - from); grow > 0 {
		p = slices.Grow(p, grow)
	}
	q := p[:from+len(text)+tail]
	copy(q[from+len(text):], p[to:to+tail])
	copy(q[from:], text)
	return q
}

// Append returns p with the pair at its end, without looking whether the key is there already; a missing separator before
// it is added. Key and value must not contain 0x01 or 0x02.
func (p Properties) Append(key, value string) Properties {
	p = p.closed()
	p = append(p, key...)
	p = append(p, propertyNameEnd)
	p = append(p, value...)
	return append(p, propertyValueEnd)
}

// Join returns p with all of more at its end, adding a separator between the two when p ends without one.
func (p Properties) Join(more Properties) Properties {
	if len(more) == 0 {
		return p
	}
	return append(p.closed(), more...)
}

func (p Properties) closed() Properties {
	if len(p) > 0 && p[len(p)-1] != propertyValueEnd {
		return append(p, propertyValueEnd)
	}
	return p
}

// Without returns p without the keys. p may be overwritten. It does not allocate.
func (p Properties) Without(keys ...string) Properties { return p.without(0, keys...) }

// without drops the keys among the pieces that start at or behind from.
func (p Properties) without(from int, keys ...string) Properties {
	if from >= len(p) {
		return p
	}
	kept := p[:from]
	for i := from; i < len(p); {
		at, _ := p.next(i)
		name := p[at.begin:max(at.begin, at.value-1)]
		if at.value == at.begin || !slices.ContainsFunc(keys, func(key string) bool { return key == string(name) }) {
			kept = append(kept, p[at.begin:at.end]...)
		}
		i = at.end
	}
	return kept
}

// All calls yield for each pair in order, until it returns false. Key and value alias p.
func (p Properties) All(yield func(key, value []byte) bool) {
	for i := 0; i < len(p); {
		at, ok := p.next(i)
		if ok && !yield(p[at.begin:at.value-1:at.value-1], p[at.value:at.valueEnd:at.valueEnd]) {
			return
		}
		i = at.end
	}
}

// ParseProperties returns the pairs as a map; MakeProperties is its inverse (sorted by key).
func ParseProperties(p Properties) map[string]string {
	pairs := make(map[string]string)
	p.All(func(key, value []byte) bool {
		pairs[string(key)] = string(value)
		return true
	})
	return pairs
}

// MakeProperties encodes pairs, sorted by key.
func MakeProperties(pairs map[string]string) Properties {
	keys := make([]string, 0, len(pairs))
	size := 0
	for k, v := range pairs {
		keys = append(keys, k)
		size += len(k) + len(v) + 2
	}
	sort.Strings(keys)
	p := make(Properties, 0, size)
	for _, k := range keys {
		p = p.Append(k, pairs[k])
	}
	return p
}
