// Package fastjson reads and writes the JSON dialect of RocketMQ (fastjson 1.x): integer keys without quotes, objects as
// map keys, sorted keys, nulls left out.
package fastjson

// Unmarshal reads standard JSON and the dialect: unquoted integer keys; a map with object keys decodes into a Map.
func Unmarshal(data []byte, into any) error { panic("unbuilt") }

// Marshal writes standard JSON with sorted keys and without nulls, except that a Map is written with object keys.
func Marshal(v any) ([]byte, error) { panic("unbuilt") }

// MarshalIndent is Marshal in fastjson's pretty form (tabs, integer keys unquoted), as RocketMQ writes config files.
func MarshalIndent(v any) ([]byte, error) { panic("unbuilt") }

// Map is a map whose keys are objects, `{{"topic":"t",…}:5}`.
type Map[K comparable, V any] map[K]V
