package fastjson

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

// field is one member of a struct as the wire names it.
type field struct {
	name      string
	index     []int
	omitEmpty bool
}

// structFields are the members of a struct type, sorted by name, which is the order fastjson writes them in.
type structFields struct {
	sorted []field
	byName map[string]int
}

// fieldCache memoizes what reflection finds; a type's fields never change.
var fieldCache sync.Map // reflect.Type → *structFields

func fieldsOf(t reflect.Type) *structFields {
	if f, ok := fieldCache.Load(t); ok {
		return f.(*structFields)
	}
	f := &structFields{byName: map[string]int{}}
	f.collect(t, nil)
	slices.SortFunc(f.sorted, func(a, b field) int { return strings.Compare(a.name, b.name) })
	for i, x := range f.sorted {
		f.byName[x.name] = i
	}
	actual, _ := fieldCache.LoadOrStore(t, f)
	return actual.(*structFields)
}

func (f *structFields) collect(t reflect.Type, path []int) {
	for i := range t.NumField() {
		sf := t.Field(i)
		index := append(slices.Clone(path), i)
		name, options, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if name == "-" && options == "" {
			continue
		}
		if sf.Anonymous && name == "" && sf.Type.Kind() == reflect.Struct {
			f.collect(sf.Type, index)
			continue
		}
		if !sf.IsExported() {
			continue
		}
		if name == "" {
			name = sf.Name
		}
		x := field{name: name, index: index, omitEmpty: options == "omitempty"}
		if j := slices.IndexFunc(f.sorted, func(y field) bool { return y.name == name }); j >= 0 {
			if len(index) < len(f.sorted[j].index) { // the outer field hides the embedded one
				f.sorted[j] = x
			}
			continue
		}
		f.sorted = append(f.sorted, x)
	}
}
