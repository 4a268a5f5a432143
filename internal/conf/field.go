package conf

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Field is one bound setting.
type Field struct {
	Key       string
	Important bool // printed by -m
	Secret    bool // never printed

	unit     unit
	min, max int64 // in units, both inclusive
	enum     []string
	value    reflect.Value
}

type unit struct {
	size time.Duration
	name string
}

var units = map[string]unit{
	"ms":  {time.Millisecond, "milliseconds"},
	"s":   {time.Second, "seconds"},
	"min": {time.Minute, "minutes"},
	"h":   {time.Hour, "hours"},
}

var durationType = reflect.TypeFor[time.Duration]()

// Fields lists the tagged fields of structs, given by pointer, in the order of declaration. A tag that makes no sense is
// a mistake of the programmer, found by the first test that binds the struct: it panics.
func Fields(of ...any) []Field {
	var fields []Field
	for _, p := range of {
		fields = collect(fields, reflect.ValueOf(p).Elem())
	}
	return fields
}

func collect(fields []Field, v reflect.Value) []Field {
	for i := range v.NumField() {
		sf := v.Type().Field(i)
		tag, tagged := sf.Tag.Lookup("conf")
		switch {
		case !sf.IsExported():
		case tagged:
			fields = append(fields, newField(tag, sf, v.Field(i)))
		case sf.Type.Kind() == reflect.Struct:
			fields = collect(fields, v.Field(i))
		case sf.Type.Kind() == reflect.Pointer && sf.Type.Elem().Kind() == reflect.Struct && !v.Field(i).IsNil():
			fields = collect(fields, v.Field(i).Elem())
		}
	}
	return fields
}

func newField(tag string, sf reflect.StructField, v reflect.Value) Field {
	key, options, _ := strings.Cut(tag, ",")
	f := Field{Key: key, value: v, min: math.MinInt64, max: math.MaxInt64}
	broken := func(what string) {
		panic("conf: field " + sf.Name + " with key " + key + ": " + what) //nolint:forbidigo // found by the first test that binds the struct
	}
	for option := range strings.SplitSeq(options, ",") {
		u, isUnit := units[option]
		switch {
		case option == "":
		case option == "important":
			f.Important = true
		case option == "secret":
			f.Secret = true
		case isUnit:
			f.unit = u
		default:
			broken("unknown option " + option)
		}
	}
	if bounds := sf.Tag.Get("bounds"); bounds != "" {
		low, high, _ := strings.Cut(bounds, "..")
		var errLow, errHigh error
		f.min, errLow = strconv.ParseInt(low, 10, 64)
		f.max, errHigh = strconv.ParseInt(high, 10, 64)
		if errLow != nil || errHigh != nil || f.min > f.max {
			broken("bounds are min..max")
		}
	}
	if enum := sf.Tag.Get("enum"); enum != "" {
		f.enum = strings.Split(enum, "|")
	}
	if v.Type() == durationType && f.unit.size == 0 {
		broken("a duration needs a unit")
	}
	if v.Kind() == reflect.Bool && len(f.enum) != 0 && len(f.enum) != 2 {
		broken("a bool has two names")
	}
	return f
}

// Set parses text into the field. A refused text leaves it as it was.
func (f Field) Set(text string) error {
	refuse := func(what string) error {
		if f.Secret {
			return fmt.Errorf("%s: the value %s", f.Key, what)
		}
		return fmt.Errorf("%s: %q %s", f.Key, text, what)
	}
	if u, ok := reflect.TypeAssert[encoding.TextUnmarshaler](f.value.Addr()); ok {
		if err := u.UnmarshalText([]byte(text)); err != nil {
			return refuse("cannot be used: " + err.Error())
		}
		return nil
	}
	if f.value.Type() == durationType {
		return f.setNumber(text, "a whole number of "+f.unit.name, int64(f.unit.size), refuse)
	}
	switch f.value.Kind() {
	case reflect.String, reflect.Bool:
		return f.setWord(text, refuse)
	case reflect.Int, reflect.Int32, reflect.Int64:
		return f.setNumber(text, "a whole number", 1, refuse)
	case reflect.Float64:
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(x) {
			return refuse("is not a number")
		}
		if x < float64(f.min) || x > float64(f.max) {
			return refuse(fmt.Sprintf("is out of range: it must be between %d and %d", f.min, f.max))
		}
		f.value.SetFloat(x)
	case reflect.Slice:
		var words []string
		for word := range strings.SplitSeq(text, ";") {
			if word = strings.TrimSpace(word); word != "" {
				words = append(words, word)
			}
		}
		f.value.Set(reflect.ValueOf(words).Convert(f.value.Type()))
	default:
		panic("conf: key " + f.Key + ": type " + f.value.Type().String() + " cannot be bound") //nolint:forbidigo // as in newField
	}
	return nil
}

func (f Field) setWord(text string, refuse func(string) error) error {
	index := -1
	for i, name := range f.enum {
		if strings.EqualFold(name, text) {
			index = i
		}
	}
	if f.enum != nil && index < 0 {
		return refuse("is not one of " + strings.Join(f.enum, ", "))
	}
	switch {
	case f.value.Kind() == reflect.String && index >= 0:
		f.value.SetString(f.enum[index])
	case f.value.Kind() == reflect.String:
		f.value.SetString(text)
	case index >= 0:
		f.value.SetBool(index == 1)
	case strings.EqualFold(text, "true"), strings.EqualFold(text, "false"):
		f.value.SetBool(strings.EqualFold(text, "true"))
	default:
		return refuse("is not true or false")
	}
	return nil
}

func (f Field) setNumber(text, kind string, size int64, refuse func(string) error) error {
	low, high := f.min, f.max
	// What the type can hold bounds the value as well.
	if bits := f.value.Type().Bits(); bits < 64 {
		low, high = max(low, -1<<(bits-1)), min(high, 1<<(bits-1)-1)
	}
	low, high = max(low, math.MinInt64/size), min(high, math.MaxInt64/size)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return refuse(fmt.Sprintf("is not %s between %d and %d", kind, low, high))
	}
	if n < low || n > high {
		return refuse(fmt.Sprintf("is out of range: it must be between %d and %d", low, high))
	}
	f.value.SetInt(n * size)
	return nil
}

// Text is the present value as a file would have it.
func (f Field) Text() string {
	switch {
	case f.Secret && !f.value.IsZero():
		return "******"
	case f.value.Type() == durationType:
		return strconv.FormatInt(f.value.Int()/int64(f.unit.size), 10)
	}
	if m, ok := reflect.TypeAssert[encoding.TextMarshaler](f.value.Addr()); ok {
		if text, err := m.MarshalText(); err == nil {
			return string(text)
		}
	}
	switch f.value.Kind() {
	case reflect.Bool:
		if f.enum == nil {
			return strconv.FormatBool(f.value.Bool())
		}
		if f.value.Bool() {
			return f.enum[1]
		}
		return f.enum[0]
	case reflect.Slice:
		words, _ := reflect.TypeAssert[[]string](f.value.Convert(reflect.TypeFor[[]string]()))
		return strings.Join(words, ";")
	default:
		return fmt.Sprint(f.value.Interface())
	}
}

// Takes says in words what Set accepts.
func (f Field) Takes() string {
	switch {
	case f.enum != nil:
		return strings.Join(f.enum, ", ")
	case f.value.Kind() == reflect.Bool:
		return "true or false"
	case f.value.Kind() == reflect.String:
		return "text"
	case f.value.Kind() == reflect.Slice:
		return "words, ';' between them"
	}
	kind := "a number"
	if f.unit.size != 0 {
		kind = "a whole number of " + f.unit.name
	}
	if f.min == math.MinInt64 && f.max == math.MaxInt64 {
		return kind
	}
	return fmt.Sprintf("%s from %d to %d", kind, f.min, f.max)
}
