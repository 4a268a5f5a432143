package fastjson

import (
	"cmp"
	"encoding"
	"encoding/base64"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

var textMarshalerType = reflect.TypeFor[encoding.TextMarshaler]()

// encoder writes one value in one of the forms.
type encoder struct {
	out       []byte
	quoteInts bool // integer keys
	indent    bool
}

func isNull(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice:
		return v.IsNil()
	default:
		return false
	}
}

func (e *encoder) value(v reflect.Value, depth int) error {
	if depth > DepthMax {
		return fmt.Errorf("write json: deeper than %d", DepthMax)
	}
	if isNull(v) {
		e.out = append(e.out, "null"...)
		return nil
	}
	if v.Type() == rawType {
		return e.raw(v.Bytes(), depth)
	}
	if v.Type().Implements(textMarshalerType) && v.Kind() != reflect.Interface {
		text, err := v.Interface().(encoding.TextMarshaler).MarshalText()
		if err != nil {
			return fmt.Errorf("write json: %w", err)
		}
		e.str(string(text))
		return nil
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return e.value(v.Elem(), depth)
	case reflect.Struct:
		return e.structValue(v, depth)
	case reflect.Map:
		return e.mapValue(v, depth)
	case reflect.Slice:
		return e.slice(v, depth)
	case reflect.String:
		e.str(v.String())
	case reflect.Bool:
		e.out = strconv.AppendBool(e.out, v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		e.out = strconv.AppendInt(e.out, v.Int(), 10)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		e.out = strconv.AppendUint(e.out, v.Uint(), 10)
	case reflect.Float64:
		e.float(v.Float())
	default:
		return fmt.Errorf("write json: no form for %s", v.Type())
	}
	return nil
}

// list writes the elements of an object or array with their separators and, in the pretty form, their lines.
type list struct {
	e      *encoder
	depth  int
	closer byte
	empty  bool
}

func (e *encoder) open(opener, closer byte, depth int) list {
	e.out = append(e.out, opener)
	return list{e: e, depth: depth, closer: closer, empty: true}
}

func (l *list) element() {
	if !l.empty {
		l.e.out = append(l.e.out, ',')
	}
	l.empty = false
	l.e.line(l.depth + 1)
}

func (l *list) close() {
	if !l.empty {
		l.e.line(l.depth)
	}
	l.e.out = append(l.e.out, l.closer)
}

func (e *encoder) line(depth int) {
	if !e.indent {
		return
	}
	e.out = append(e.out, '\n')
	for range depth {
		e.out = append(e.out, '\t')
	}
}

func (e *encoder) structValue(v reflect.Value, depth int) error {
	l := e.open('{', '}', depth)
	for _, f := range fieldsOf(v.Type()).sorted {
		x := v.FieldByIndex(f.index)
		if isNull(x) || f.omitEmpty && (x.IsZero() || (x.Kind() == reflect.Map || x.Kind() == reflect.Slice) && x.Len() == 0) {
			continue
		}
		l.element()
		e.str(f.name)
		e.out = append(e.out, ':')
		if err := e.value(x, depth+1); err != nil {
			return err
		}
	}
	l.close()
	return nil
}

// member is one entry of a map, its key already written out.
type member struct {
	key    string
	number int64 // orders integer keys
	value  reflect.Value
}

func (e *encoder) mapValue(v reflect.Value, depth int) error {
	members := make([]member, 0, v.Len())
	objectKeys := v.Type().Implements(objectKeysType)
	for iter := v.MapRange(); iter.Next(); {
		if isNull(iter.Value()) {
			continue
		}
		key := encoder{quoteInts: e.quoteInts}
		m := member{value: iter.Value()}
		switch k := iter.Key(); {
		case objectKeys:
			if err := key.value(k, depth+1); err != nil {
				return err
			}
		case k.CanInt() && !k.Type().Implements(textMarshalerType):
			m.number = k.Int()
			if key.out = strconv.AppendInt(nil, k.Int(), 10); e.quoteInts {
				key.out = []byte(`"` + string(key.out) + `"`)
			}
		case k.Kind() == reflect.String || k.Type().Implements(textMarshalerType):
			if err := key.value(k, depth+1); err != nil {
				return err
			}
		default:
			return fmt.Errorf("write json: no form for keys of %s", v.Type())
		}
		m.key = string(key.out)
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b member) int {
		return cmp.Or(cmp.Compare(a.number, b.number), strings.Compare(a.key, b.key))
	})
	l := e.open('{', '}', depth)
	for _, m := range members {
		l.element()
		e.out = append(append(e.out, m.key...), ':')
		if err := e.value(m.value, depth+1); err != nil {
			return err
		}
	}
	l.close()
	return nil
}

func (e *encoder) slice(v reflect.Value, depth int) error {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		e.out = append(e.out, '"')
		e.out = base64.StdEncoding.AppendEncode(e.out, v.Bytes())
		e.out = append(e.out, '"')
		return nil
	}
	l := e.open('[', ']', depth)
	for i := range v.Len() {
		l.element()
		if err := e.value(v.Index(i), depth+1); err != nil {
			return err
		}
	}
	l.close()
	return nil
}

// raw writes text of either dialect in the form of e, order and kind of keys kept.
func (e *encoder) raw(text []byte, depth int) error {
	d := decoder{data: text}
	if err := e.transcribe(&d, depth); err != nil {
		return fmt.Errorf("write json: %w", err)
	}
	if d.peek() != end {
		return fmt.Errorf("write json: %w", d.errorf("text behind the value"))
	}
	return nil
}

func (e *encoder) transcribe(d *decoder, depth int) error {
	if depth > DepthMax {
		return d.errorf("deeper than %d", DepthMax)
	}
	c := d.peek()
	switch c {
	case '"':
		s, err := d.str()
		e.str(s)
		return err
	case '{', '[':
	default:
		d.peek()
		start := d.at
		err := d.skip(depth)
		e.out = append(e.out, d.data[start:d.at]...)
		return err
	}
	d.at++
	l := e.open(c, c+2, depth)
	for first := true; ; {
		more, err := d.next(&first, c+2)
		if err != nil {
			return err
		}
		if !more {
			l.close()
			return nil
		}
		l.element()
		if c == '{' {
			if err := e.transcribeKey(d, depth+1); err != nil {
				return err
			}
		}
		if err := e.transcribe(d, depth+1); err != nil {
			return err
		}
	}
}

func (e *encoder) transcribeKey(d *decoder, depth int) error {
	switch d.peek() {
	case '"':
		s, err := d.str()
		if err != nil {
			return err
		}
		e.str(s)
	case '{':
		key := encoder{quoteInts: e.quoteInts}
		if err := key.transcribe(d, depth); err != nil {
			return err
		}
		e.out = append(e.out, key.out...)
	default:
		s, err := d.integerKey()
		if err != nil {
			return err
		}
		if e.quoteInts {
			s = `"` + s + `"`
		}
		e.out = append(e.out, s...)
	}
	e.out = append(e.out, ':')
	return d.expect(':')
}

// float writes as Java's Double.toString: always with a fraction. What is no number is null, as in fastjson.
func (e *encoder) float(f float64) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		e.out = append(e.out, "null"...)
		return
	}
	format := byte('f')
	if a := math.Abs(f); a != 0 && (a < 1e-3 || a >= 1e7) {
		format = 'E'
	}
	text := strconv.FormatFloat(f, format, -1, 64)
	mantissa, exponent, scientific := strings.Cut(text, "E")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	e.out = append(e.out, mantissa...)
	if scientific {
		n, _ := strconv.Atoi(exponent) // written by FormatFloat just above
		e.out = strconv.AppendInt(append(e.out, 'E'), int64(n), 10)
	}
}

const upperHex = "0123456789ABCDEF"

// str writes a string with the escapes of fastjson: control characters, quotes and backslashes, line separators.
func (e *encoder) str(s string) {
	e.out = append(e.out, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			e.out = append(e.out, '\\', byte(r))
		case r == '\n':
			e.out = append(e.out, `\n`...)
		case r == '\r':
			e.out = append(e.out, `\r`...)
		case r == '\t':
			e.out = append(e.out, `\t`...)
		case r == '\b':
			e.out = append(e.out, `\b`...)
		case r == '\f':
			e.out = append(e.out, `\f`...)
		case r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029:
			e.out = append(e.out, '\\', 'u', upperHex[r>>12&15], upperHex[r>>8&15], upperHex[r>>4&15], upperHex[r&15])
		default:
			e.out = utf8.AppendRune(e.out, r)
		}
	}
	e.out = append(e.out, '"')
}
