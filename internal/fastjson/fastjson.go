// Package fastjson reads and writes the JSON dialect of RocketMQ (fastjson 1.x): integer keys without quotes, objects as
// map keys, sorted keys, nulls left out. docs/formats/json.md describes it. It knows no RocketMQ type.
//
// Values are matched to Go values as encoding/json does with its `json` tags ("-", "omitempty" and embedded structs
// included), except that names match exactly, MarshalJSON and UnmarshalJSON are not called (MarshalText and UnmarshalText
// are), a key met twice holds what came last, and scalars convert as fastjson converts them: "5" is an integer where one
// is wanted, 5 a string. Unknown fields are skipped; null leaves the Go value as it is.
package fastjson

import (
	"fmt"
	"reflect"
)

// Bounds of what is read.
const (
	BytesMax = 64 << 20 // longest text
	DepthMax = 64       // deepest nesting of objects and arrays
)

// Map is a map whose keys are objects, `{{"topic":"t",…}:5}`. The form `[[{"topic":"t",…},5],…]`, which fastjson writes
// with other options and clients may send, is read too.
type Map[K comparable, V any] map[K]V

func (Map[K, V]) objectKeys() {}

var objectKeysType = reflect.TypeFor[interface{ objectKeys() }]()

// Raw is a value kept as the text it was read from, in either dialect. It is written back with its keys in the order and
// kind (quoted or not) they had, in the form of the text around it.
type Raw []byte

var rawType = reflect.TypeFor[Raw]()

// SyntaxError is text that is not of the dialect, or beyond the bounds, or of another shape than the Go value.
type SyntaxError struct {
	Offset int // in bytes
	Reason string
}

// Error returns offset and reason.
func (e *SyntaxError) Error() string { return fmt.Sprintf("json at byte %d: %s", e.Offset, e.Reason) }

// Unmarshal reads standard JSON and the dialect into a pointer. Its error is a *SyntaxError; into may then be filled in part.
// What it stores does not alias data. Bytes that are not UTF-8 become U+FFFD, as in Java.
func Unmarshal(data []byte, into any) error {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return &SyntaxError{Reason: fmt.Sprintf("cannot read into %T", into)}
	}
	d := decoder{data: data}
	if len(data) > BytesMax {
		return d.errorf("%d bytes are more than %d", len(data), BytesMax)
	}
	if err := d.value(v.Elem(), 0); err != nil {
		return err
	}
	if d.peek() != end {
		return d.errorf("text behind the value")
	}
	return nil
}

// Marshal writes compact standard JSON, except that a Map has object keys.
func Marshal(v any) ([]byte, error) { return marshal(encoder{quoteInts: true}, v) }

// MarshalDialect writes the compact form of fastjson: as Marshal, with integer keys unquoted.
func MarshalDialect(v any) ([]byte, error) { return marshal(encoder{}, v) }

// MarshalIndent writes fastjson's pretty form (tabs, integer keys unquoted), as RocketMQ writes config files.
func MarshalIndent(v any) ([]byte, error) { return marshal(encoder{indent: true}, v) }

func marshal(e encoder, v any) ([]byte, error) {
	if err := e.value(reflect.ValueOf(v), 0); err != nil {
		return nil, err
	}
	return e.out, nil
}
