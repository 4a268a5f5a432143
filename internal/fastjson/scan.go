package fastjson

import (
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// decoder is a cursor over the text; it holds the lexical rules.
type decoder struct {
	data []byte
	at   int
}

// end is what peek returns behind the text; a NUL inside the text is no token either.
const end = 0

func (d *decoder) errorf(format string, args ...any) error {
	return &SyntaxError{Offset: d.at, Reason: fmt.Sprintf(format, args...)}
}

// peek skips white space and returns the next byte without taking it.
func (d *decoder) peek() byte {
	for d.at < len(d.data) {
		switch c := d.data[d.at]; c {
		case ' ', '\t', '\n', '\r':
			d.at++
		case 0:
			return 1 // no token: every caller refuses it
		default:
			return c
		}
	}
	return end
}

func (d *decoder) take(c byte) bool {
	if d.peek() != c {
		return false
	}
	d.at++
	return true
}

func (d *decoder) expect(c byte) error {
	if !d.take(c) {
		return d.errorf("%q expected", c)
	}
	return nil
}

// next says whether a list that ends with close goes on; first is true before its first element.
func (d *decoder) next(first *bool, closer byte) (bool, error) {
	if *first {
		*first = false
		return !d.take(closer), nil
	}
	if d.take(closer) {
		return false, nil
	}
	if !d.take(',') {
		return false, d.errorf("%q or ',' expected", closer)
	}
	return true, nil
}

func (d *decoder) literal(word string) bool {
	if d.peek() == end || len(d.data)-d.at < len(word) || string(d.data[d.at:d.at+len(word)]) != word {
		return false
	}
	d.at += len(word)
	return true
}

// number takes the text of a JSON number.
func (d *decoder) number() ([]byte, error) {
	d.peek()
	start := d.at
	digits := func() bool {
		from := d.at
		for d.at < len(d.data) && '0' <= d.data[d.at] && d.data[d.at] <= '9' {
			d.at++
		}
		return d.at > from
	}
	is := func(set string) bool {
		for i := range len(set) {
			if d.at < len(d.data) && d.data[d.at] == set[i] {
				d.at++
				return true
			}
		}
		return false
	}
	is("-")
	whole := d.at
	ok := digits() && (d.data[whole] != '0' || d.at == whole+1)
	if ok && is(".") {
		ok = digits()
	}
	if ok && is("eE") {
		is("+-")
		ok = digits()
	}
	if !ok {
		d.at = start
		return nil, d.errorf("not a value")
	}
	return d.data[start:d.at], nil
}

// str takes a quoted string and returns its value.
func (d *decoder) str() (string, error) {
	if err := d.expect('"'); err != nil {
		return "", err
	}
	start := d.at
	for d.at < len(d.data) {
		switch c := d.data[d.at]; {
		case c == '"':
			s := d.data[start:d.at]
			d.at++
			return string(s), nil
		case c == '\\' || c >= utf8.RuneSelf:
			return d.strSlow(start)
		}
		d.at++
	}
	return "", d.errorf("string without end")
}

func (d *decoder) strSlow(start int) (string, error) {
	out := append(make([]byte, 0, d.at-start+16), d.data[start:d.at]...)
	for d.at < len(d.data) {
		switch c := d.data[d.at]; {
		case c == '"':
			d.at++
			return string(out), nil
		case c == '\\':
			d.at++
			r, err := d.escape()
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, r)
		case c < utf8.RuneSelf:
			out = append(out, c)
			d.at++
		default:
			r, n := utf8.DecodeRune(d.data[d.at:])
			out = utf8.AppendRune(out, r)
			d.at += n
		}
	}
	return "", d.errorf("string without end")
}

var shortEscapes = [256]rune{
	'"': '"', '\\': '\\', '/': '/', '\'': '\'', 'b': '\b', 'f': '\f', 'F': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v',
}

// escape takes what follows a backslash; half a surrogate pair is U+FFFD.
func (d *decoder) escape() (rune, error) {
	if d.at >= len(d.data) {
		return 0, d.errorf("string without end")
	}
	c := d.data[d.at]
	d.at++
	switch {
	case shortEscapes[c] != 0:
		return shortEscapes[c], nil
	case c == 'x':
		return d.hex(2)
	case c != 'u':
		return 0, d.errorf("no escape is %q", c)
	}
	r, err := d.hex(4)
	if err != nil || !utf16.IsSurrogate(r) {
		return r, err
	}
	back := d.at
	if d.at+1 < len(d.data) && d.data[d.at] == '\\' && d.data[d.at+1] == 'u' {
		d.at += 2
		low, err := d.hex(4)
		if err != nil {
			return 0, err
		}
		if full := utf16.DecodeRune(r, low); full != utf8.RuneError {
			return full, nil
		}
		d.at = back
	}
	return utf8.RuneError, nil
}

func (d *decoder) hex(n int) (rune, error) {
	if d.at+n > len(d.data) {
		return 0, d.errorf("string without end")
	}
	r, err := strconv.ParseUint(string(d.data[d.at:d.at+n]), 16, 32)
	if err != nil {
		return 0, d.errorf("not hexadecimal: %q", d.data[d.at:d.at+n])
	}
	d.at += n
	return rune(r), nil
}

// integerKey takes an integer key written without quotes.
func (d *decoder) integerKey() (string, error) {
	key, err := d.number()
	if err != nil {
		return "", err
	}
	for i, c := range key {
		if c < '0' && (c != '-' || i > 0) || c > '9' {
			return "", d.errorf("%q is not a key", key)
		}
	}
	return string(key), nil
}

// skip passes over one value of any shape, object keys included.
func (d *decoder) skip(depth int) error {
	if depth > DepthMax {
		return d.errorf("deeper than %d", DepthMax)
	}
	switch c := d.peek(); c {
	case '{', '[':
		d.at++
		for first := true; ; {
			more, err := d.next(&first, c+2) // '}' and ']' are two behind their openers
			if err != nil || !more {
				return err
			}
			if c == '{' {
				if err := d.skipKey(depth + 1); err != nil {
					return err
				}
			}
			if err := d.skip(depth + 1); err != nil {
				return err
			}
		}
	case '"':
		_, err := d.str()
		return err
	}
	if d.literal("null") || d.literal("true") || d.literal("false") {
		return nil
	}
	_, err := d.number()
	return err
}

func (d *decoder) skipKey(depth int) error {
	var err error
	switch d.peek() {
	case '"':
		_, err = d.str()
	case '{':
		err = d.skip(depth)
	default:
		_, err = d.integerKey()
	}
	if err != nil {
		return err
	}
	return d.expect(':')
}
