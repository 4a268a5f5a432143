// Package conf reads configuration texts in RocketMQ's Java-properties form and binds them to typed structs. It knows
// nothing of any particular key: structs say their keys in tags, and callers say which other keys are known.
//
// A field is bound by its tag:
//
//	Port     int32         `conf:"listenPort,important" bounds:"1..65535"`
//	Check    time.Duration `conf:"transactionCheckInterval,ms" bounds:"100..86400000"`
//	Keep     time.Duration `conf:"fileReservedTime,h"`
//	Sync     bool          `conf:"flushDiskType" enum:"ASYNC_FLUSH|SYNC_FLUSH"` // the second name is true
//	Role     string        `conf:"brokerRole" enum:"ASYNC_MASTER|SYNC_MASTER|SLAVE"`
//	Password string        `conf:"tls.server.keyPassword,secret"`
//
// The default is what the struct holds before Bind. Nested structs are walked; fields without a tag are left alone.
package conf

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"

	"github.com/magiconair/properties"
)

// fileBytesMax bounds a configuration file.
const fileBytesMax = 1 << 20

// Value is the text of one setting and the place it came from, as messages name it.
type Value struct{ Text, Origin string }

// Values are settings by key.
type Values map[string]Value

// Parse reads `key=value` text in the form of java.util.Properties: `#` and `!` comments, `=`, `:` or blank as
// separator, a backslash continues a line, `\uXXXX` escapes; UTF-8. A key given twice keeps its last value, as in Java.
// Expansion of ${…} is off: Java has none. Blanks around values are cut, which Java does not do, and which made
// `true ` mean false.
func Parse(name string, text []byte) (Values, error) {
	if len(text) > fileBytesMax {
		return nil, fmt.Errorf("%s: longer than %d bytes", name, fileBytesMax)
	}
	text = []byte(strings.TrimPrefix(string(text), "\ufeff"))
	loader := properties.Loader{Encoding: properties.UTF8, DisableExpansion: true}
	p, err := loader.LoadBytes(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	v := make(Values, p.Len())
	for _, key := range p.Keys() {
		value, _ := p.Get(key)
		v.Set(key, value, name)
	}
	return v, nil
}

// ReadFile is Parse of a file; messages name it as it was given.
func ReadFile(path string) (Values, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(f, fileBytesMax+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("read configuration %s: %w", path, err)
	}
	return Parse(path, text)
}

// Set stores one setting over an earlier one.
func (v Values) Set(key, text, origin string) {
	v[key] = Value{Text: strings.TrimSpace(text), Origin: origin}
}

// Merge puts the settings of over on top.
func (v Values) Merge(over Values) { maps.Copy(v, over) }

// Assign stores one `key=value` word, as a command line has it.
func (v Values) Assign(word, origin string) error {
	key, text, ok := strings.Cut(word, "=")
	if key = strings.TrimSpace(key); !ok || key == "" {
		return fmt.Errorf("%s: %q is not key=value", origin, word)
	}
	v.Set(key, text, origin)
	return nil
}
