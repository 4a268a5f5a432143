package protocol

import (
	"fmt"
	"math/bits"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Typed headers are structs whose fields carry a tag `ext:"wireName"` or `ext:"wireName,required"`. Field types: string,
// bool, int, int32, int64 and types made from them, and pointers to them for fields whose absence matters. Embedded
// structs are flattened; fields without a tag are not part of the header.

// headerFieldsMax bounds the fields of one typed header, so that a word can hold which of them were seen.
const headerFieldsMax = 64

// headerField is one tagged field of a header type.
type headerField struct {
	name    []byte
	index   []int
	kind    reflect.Kind // of the value, behind the pointer if there is one
	pointer bool
}

// headerPlan is what reflection has to know about a header type, worked out once.
type headerPlan struct {
	fields   []headerField
	byName   map[string]int
	required uint64 // bit i: fields[i] must be present
}

var headerPlans sync.Map // reflect.Type → *headerPlan

// planOf panics on a type that is no header: that is a mistake in the program, found by its first use in any test.
func planOf(t reflect.Type) *headerPlan {
	if p, ok := headerPlans.Load(t); ok {
		return p.(*headerPlan)
	}
	p := &headerPlan{byName: map[string]int{}}
	p.add(t, nil)
	actual, _ := headerPlans.LoadOrStore(t, p)
	return actual.(*headerPlan)
}

func (p *headerPlan) add(t reflect.Type, outer []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(slices.Clip(outer), i)
		tag, tagged := f.Tag.Lookup("ext")
		if !tagged {
			if f.Anonymous && f.Type.Kind() == reflect.Struct {
				p.add(f.Type, index)
			}
			continue
		}
		name, option, _ := strings.Cut(tag, ",")
		field := headerField{name: []byte(name), index: index, kind: f.Type.Kind()}
		if field.pointer = field.kind == reflect.Pointer; field.pointer {
			field.kind = f.Type.Elem().Kind()
		}
		_, twice := p.byName[name]
		if !field.supported() || !f.IsExported() || twice || len(p.fields) == headerFieldsMax {
			//nolint:forbidigo // a header type that cannot be encoded is a broken invariant of the program
			panic(fmt.Sprintf("protocol: field %s of header %v cannot be encoded", f.Name, t))
		}
		if option == "required" {
			p.required |= 1 << len(p.fields)
		}
		p.byName[name] = len(p.fields)
		p.fields = append(p.fields, field)
	}
}

func (f *headerField) supported() bool {
	switch f.kind {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64:
		return true
	default:
		return false
	}
}

// DecodeHeader fills a typed header (a pointer to struct) from ext fields and copies what it keeps. A missing required
// field or a value of the wrong type is an *Error that names the field; fields that could be read are filled all the same.
// Unknown fields are ignored, an empty value counts as absent except for strings, and of two values of one key the last counts.
func DecodeHeader(ext ExtFields, into any) error {
	v := reflect.ValueOf(into).Elem()
	p := planOf(v.Type())
	var seen uint64
	var wrong error
	for i := range ext {
		at, known := p.byName[string(ext[i].Key)]
		if !known {
			continue
		}
		f := &p.fields[at]
		if len(ext[i].Value) == 0 && f.kind != reflect.String {
			continue
		}
		if !f.set(v.FieldByIndex(f.index), ext[i].Value) {
			if wrong == nil {
				wrong = wrongValue(f.name, f.kind.String(), ext[i].Value)
			}
			continue
		}
		seen |= 1 << at
	}
	if wrong != nil {
		return wrong
	}
	if missing := p.required &^ seen; missing != 0 {
		return missingField(p.fields[bits.TrailingZeros64(missing)].name)
	}
	return nil
}

func missingField(name []byte) error {
	return Errorf(InvalidParameter, "the header field %s is missing", name)
}

func wrongValue(name []byte, kind string, value []byte) error {
	const shown = 32
	if len(value) > shown {
		value = value[:shown]
	}
	return Errorf(InvalidParameter, "the header field %s is not of type %s: %q", name, kind, value)
}

func (f *headerField) set(v reflect.Value, text []byte) bool {
	target := v
	if f.pointer {
		target = reflect.New(v.Type().Elem()).Elem()
	}
	switch f.kind {
	case reflect.String:
		target.SetString(string(text))
	case reflect.Bool:
		b, ok := parseBool(text)
		if !ok {
			return false
		}
		target.SetBool(b)
	default:
		n, ok := parseInt(text)
		if !ok || target.OverflowInt(n) {
			return false
		}
		target.SetInt(n)
	}
	if f.pointer {
		v.Set(target.Addr())
	}
	return true
}

func parseBool(text []byte) (value, ok bool) {
	switch string(text) {
	case "true":
		return true, true
	case "false":
		return false, true
	}
	switch { // Java's parseBoolean does not mind the case
	case strings.EqualFold(string(text), "true"):
		return true, true
	case strings.EqualFold(string(text), "false"):
		return false, true
	}
	return false, false
}

// AppendHeader appends the fields of a typed header (struct or pointer) to ext, in the order of the struct; nil pointers and
// empty optional strings are left out. A nil from adds nothing.
func AppendHeader(ext ExtFields, from any) ExtFields {
	v := reflect.ValueOf(from)
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if !v.IsValid() {
		return ext
	}
	p := planOf(v.Type())
	if ext == nil {
		ext = make(ExtFields, 0, len(p.fields))
	}
	text := make([]byte, 0, 128) // all values; a slice already handed out stays valid when it grows
	for i := range p.fields {
		f := &p.fields[i]
		value := v.FieldByIndex(f.index)
		if f.pointer {
			if value.IsNil() {
				continue
			}
			value = value.Elem()
		}
		start := len(text)
		switch f.kind {
		case reflect.String:
			s := value.String()
			if s == "" && !f.pointer && p.required>>i&1 == 0 {
				continue
			}
			text = append(text, s...)
		case reflect.Bool:
			text = strconv.AppendBool(text, value.Bool())
		default:
			text = strconv.AppendInt(text, value.Int(), 10)
		}
		ext = append(ext, ExtField{Key: f.name, Value: text[start:len(text):len(text)]})
	}
	return ext
}

// NewRequest makes a request command from a typed header; the caller's client assigns Opaque. The command borrows body.
func NewRequest(h Request, body []byte) *Command {
	return &Command{
		Code:     int32(h.Code()),
		Language: Go,
		Version:  ServerVersion,
		Ext:      AppendHeader(nil, h),
		Body:     body,
	}
}
