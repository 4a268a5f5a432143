package fastjson

import (
	"encoding"
	"encoding/base64"
	"reflect"
	"strconv"
)

var textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()

// value reads one value into v.
func (d *decoder) value(v reflect.Value, depth int) error {
	if depth > DepthMax {
		return d.errorf("deeper than %d", DepthMax)
	}
	c := d.peek()
	if v.Type() == rawType {
		start := d.at
		if err := d.skip(depth); err != nil {
			return err
		}
		v.SetBytes(append([]byte(nil), d.data[start:d.at]...))
		return nil
	}
	if d.literal("null") {
		return nil
	}
	if v.Kind() == reflect.Pointer {
		p := reflect.New(v.Type().Elem())
		if err := d.value(p.Elem(), depth); err != nil {
			return err
		}
		v.Set(p)
		return nil
	}
	if v.Kind() == reflect.Interface && v.NumMethod() == 0 {
		x, err := d.any(depth)
		if err == nil {
			v.Set(reflect.ValueOf(x))
		}
		return err
	}
	switch c {
	case '{':
		return d.object(v, depth)
	case '[':
		return d.array(v, depth)
	}
	return d.scalar(v)
}

func (d *decoder) object(v reflect.Value, depth int) error {
	switch v.Kind() {
	case reflect.Struct:
		return d.structValue(v, depth)
	case reflect.Map:
		return d.mapValue(v, depth)
	default:
		return d.errorf("an object where a %s is wanted", v.Type())
	}
}

func (d *decoder) structValue(v reflect.Value, depth int) error {
	d.at++
	fields := fieldsOf(v.Type())
	var seen [4]uint64 // a bit for each field; types with more than 256 do not exist here
	for first := true; ; {
		more, err := d.next(&first, '}')
		if err != nil || !more {
			return err
		}
		if d.peek() == '{' { // no field has such a name
			if err := d.skipKey(depth + 1); err != nil {
				return err
			}
			if err := d.skip(depth + 1); err != nil {
				return err
			}
			continue
		}
		name, err := d.key()
		if err != nil {
			return err
		}
		i, known := fields.byName[name]
		if !known {
			if err := d.skip(depth + 1); err != nil {
				return err
			}
			continue
		}
		f := v.FieldByIndex(fields.sorted[i].index)
		if seen[i/64&3]&(1<<(i%64)) != 0 { // what came last wins as a whole
			f.SetZero()
		}
		seen[i/64&3] |= 1 << (i % 64)
		if err := d.value(f, depth+1); err != nil {
			return err
		}
	}
}

// key takes a quoted or integer key and its colon.
func (d *decoder) key() (string, error) {
	var name string
	var err error
	if d.peek() == '"' {
		name, err = d.str()
	} else {
		name, err = d.integerKey()
	}
	if err != nil {
		return "", err
	}
	return name, d.expect(':')
}

func (d *decoder) mapValue(v reflect.Value, depth int) error {
	t := v.Type()
	v.Set(reflect.MakeMap(t))
	objectKeys := t.Implements(objectKeysType)
	d.at++
	for first := true; ; {
		more, err := d.next(&first, '}')
		if err != nil || !more {
			return err
		}
		k := reflect.New(t.Key()).Elem()
		if objectKeys {
			if err := d.value(k, depth+1); err != nil {
				return err
			}
			if err := d.expect(':'); err != nil {
				return err
			}
		} else {
			name, err := d.key()
			if err != nil {
				return err
			}
			if err := d.text(k, name); err != nil {
				return err
			}
		}
		x := reflect.New(t.Elem()).Elem()
		if err := d.value(x, depth+1); err != nil {
			return err
		}
		v.SetMapIndex(k, x)
	}
}

func (d *decoder) array(v reflect.Value, depth int) error {
	if v.Kind() == reflect.Map && v.Type().Implements(objectKeysType) {
		return d.pairs(v, depth)
	}
	if v.Kind() != reflect.Slice || v.Type().Elem().Kind() == reflect.Uint8 {
		return d.errorf("an array where a %s is wanted", v.Type())
	}
	d.at++
	out := reflect.MakeSlice(v.Type(), 0, 0)
	for first := true; ; {
		more, err := d.next(&first, ']')
		if err != nil {
			return err
		}
		if !more {
			v.Set(out)
			return nil
		}
		out = reflect.Append(out, reflect.Zero(v.Type().Elem()))
		if err := d.value(out.Index(out.Len()-1), depth+1); err != nil {
			return err
		}
	}
}

// pairs reads `[[key,value],…]`.
func (d *decoder) pairs(v reflect.Value, depth int) error {
	t := v.Type()
	v.Set(reflect.MakeMap(t))
	d.at++
	for first := true; ; {
		more, err := d.next(&first, ']')
		if err != nil || !more {
			return err
		}
		k, x := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
		if err := d.expect('['); err != nil {
			return err
		}
		if err := d.value(k, depth+2); err != nil {
			return err
		}
		if err := d.expect(','); err != nil {
			return err
		}
		if err := d.value(x, depth+2); err != nil {
			return err
		}
		if err := d.expect(']'); err != nil {
			return err
		}
		v.SetMapIndex(k, x)
	}
}

// scalar reads a string, number or boolean and converts it to v's kind.
func (d *decoder) scalar(v reflect.Value) error {
	switch {
	case d.peek() == '"':
		s, err := d.str()
		if err != nil {
			return err
		}
		return d.text(v, s)
	case d.literal("true"):
		return d.text(v, "true")
	case d.literal("false"):
		return d.text(v, "false")
	}
	n, err := d.number()
	if err != nil {
		return err
	}
	return d.text(v, string(n))
}

// text converts the text of a scalar, or of a key, to v's kind.
func (d *decoder) text(v reflect.Value, s string) error {
	if reflect.PointerTo(v.Type()).Implements(textUnmarshalerType) && v.CanAddr() {
		if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s)); err != nil {
			return d.errorf("%v", err)
		}
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(s)
		return nil
	case reflect.Bool:
		switch s {
		case "true", "1":
			v.SetBool(true)
			return nil
		case "false", "0":
			v.SetBool(false)
			return nil
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if n, err := strconv.ParseInt(s, 10, v.Type().Bits()); err == nil {
			v.SetInt(n)
			return nil
		}
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if n, err := strconv.ParseUint(s, 10, v.Type().Bits()); err == nil {
			v.SetUint(n)
			return nil
		}
	case reflect.Float64:
		if n, err := strconv.ParseFloat(s, 64); err == nil {
			v.SetFloat(n)
			return nil
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			if b, err := base64.StdEncoding.DecodeString(s); err == nil {
				v.SetBytes(b)
				return nil
			}
		}
	default:
	}
	if len(s) > 64 {
		s = s[:64] + "…"
	}
	return d.errorf("%q is not a %s", s, v.Type())
}

// any reads a value of unknown shape: map[string]any (an object key becomes its text), []any, string, bool, int64 where it
// fits, else float64.
func (d *decoder) any(depth int) (any, error) {
	switch d.peek() {
	case '{':
		out := map[string]any{}
		d.at++
		for first := true; ; {
			more, err := d.next(&first, '}')
			if err != nil || !more {
				return out, err
			}
			name, err := d.anyKey(depth + 1)
			if err != nil {
				return nil, err
			}
			var x any
			if err := d.value(reflect.ValueOf(&x).Elem(), depth+1); err != nil {
				return nil, err
			}
			out[name] = x
		}
	case '[':
		var out []any
		err := d.array(reflect.ValueOf(&out).Elem(), depth)
		return out, err
	case '"':
		return d.str()
	}
	if d.literal("true") {
		return true, nil
	}
	if d.literal("false") {
		return false, nil
	}
	n, err := d.number()
	if err != nil {
		return nil, err
	}
	if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
		return i, nil
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil {
		return nil, d.errorf("%q is not a number", n)
	}
	return f, nil
}

func (d *decoder) anyKey(depth int) (string, error) {
	if d.peek() != '{' {
		return d.key()
	}
	start := d.at
	if err := d.skip(depth); err != nil {
		return "", err
	}
	return string(d.data[start:d.at]), d.expect(':')
}
