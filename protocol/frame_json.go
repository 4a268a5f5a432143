package protocol

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// The JSON header: one object with the keys code, extFields, flag, language, opaque, remark, serializeTypeCurrentRPC and
// version. It is read in any order and as tolerantly as fastjson reads it: numbers may be quoted, ext values may be numbers
// or booleans (nested values stay as their text), nulls count as absent, unknown keys are skipped. It is written as
// RocketMQ 5 writes it (fastjson2: lower-case \u00xx for control characters, nothing else in hexadecimal; fastjson 1
// used upper case and also escaped U+007F–U+009F, U+2028 and U+2029, which every reader accepts either way).

// jsonDepthMax bounds the nesting of values that are skipped.
const jsonDepthMax = 32

func decodeJSONHeader(h []byte, c *Command) error {
	s := jsonScanner{b: h}
	c.shape = noSerializeType
	if err := s.object(func(key []byte) error { return s.commandField(key, c) }); err != nil {
		return err
	}
	s.space()
	if s.at < len(s.b) {
		return s.fail("trailing bytes")
	}
	return nil
}

// jsonScanner walks over a header once; strings are resolved in place.
type jsonScanner struct {
	b  []byte
	at int
}

func (s *jsonScanner) fail(what string) error {
	return fmt.Errorf("%w: JSON header: %s at byte %d", ErrFrame, what, s.at)
}

func (s *jsonScanner) space() {
	for s.at < len(s.b) {
		switch s.b[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

// peek returns the next significant byte, 0 at the end.
func (s *jsonScanner) peek() byte {
	s.space()
	if s.at < len(s.b) {
		return s.b[s.at]
	}
	return 0
}

func (s *jsonScanner) object(field func(key []byte) error) error {
	if s.peek() != '{' {
		return s.fail("no object")
	}
	s.at++
	if s.peek() == '}' {
		s.at++
		return nil
	}
	for {
		if s.peek() != '"' {
			return s.fail("no key")
		}
		key, err := s.text()
		if err != nil {
			return err
		}
		if s.peek() != ':' {
			return s.fail("no colon")
		}
		s.at++
		if err := field(key); err != nil {
			return err
		}
		switch s.peek() {
		case ',':
			s.at++
		case '}':
			s.at++
			return nil
		default:
			return s.fail("no comma")
		}
	}
}

func (s *jsonScanner) commandField(key []byte, c *Command) (err error) {
	switch string(key) {
	case "code":
		return s.int32(&c.Code)
	case "flag":
		return s.int32(&c.Flag)
	case "opaque":
		return s.int32(&c.Opaque)
	case "version":
		return s.int32(&c.Version)
	case "language":
		name, present, err := s.scalar()
		known := false
		if present {
			c.Language, known = LanguageOf(name)
		}
		if !known {
			c.Language = LanguageUnknown
		}
		return err
	case "remark":
		remark, present, err := s.scalar()
		if present {
			c.Remark = remark
		}
		return err
	case "extFields":
		return s.extFields(c)
	case "serializeTypeCurrentRPC":
		c.shape &^= noSerializeType
	}
	return s.skip(0)
}

// extFields is object for the part of the header that is long: the same grammar, without a call per byte of punctuation.
func (s *jsonScanner) extFields(c *Command) error {
	if s.peek() != '{' {
		return s.skip(0) // null
	}
	s.at++
	if s.peek() == '}' {
		s.at++
		c.shape |= emptyExtFields
		return nil
	}
	for {
		if !s.next('"') {
			return s.fail("no key")
		}
		s.at--
		key, err := s.text()
		if err != nil {
			return err
		}
		if !s.next(':') {
			return s.fail("no colon")
		}
		value, present, err := s.scalar()
		if err != nil {
			return err
		}
		if present {
			if len(c.Ext) == ExtFieldsMax {
				return s.fail("too many ext fields")
			}
			c.Ext = append(c.Ext, ExtField{Key: key, Value: value})
		}
		if s.next(',') {
			continue
		}
		if !s.next('}') {
			return s.fail("no comma")
		}
		if len(c.Ext) == 0 {
			c.shape |= emptyExtFields
		}
		return nil
	}
}

// next passes over b if it is the next significant byte.
func (s *jsonScanner) next(b byte) bool {
	if s.at < len(s.b) && s.b[s.at] == b || s.peek() == b {
		s.at++
		return true
	}
	return false
}

// scalar reads a string, number or boolean as text, a nested value as the text it stands in. Null counts as absent.
func (s *jsonScanner) scalar() (text []byte, present bool, err error) {
	switch s.peek() {
	case '"':
		text, err = s.text()
		return text, err == nil, err
	case '{', '[':
		start := s.at
		err = s.skip(0)
		return s.b[start:s.at:s.at], err == nil, err
	default:
		text, err = s.literal()
		return text, err == nil && string(text) != "null", err
	}
}

func (s *jsonScanner) int32(into *int32) error {
	text, present, err := s.scalar()
	if err != nil || !present {
		return err
	}
	if point := bytes.IndexByte(text, '.'); point > 0 {
		text = text[:point]
	}
	n, ok := parseInt(text)
	if !ok || n != int64(int32(n)) {
		return s.fail("not a 32-bit number")
	}
	*into = int32(n)
	return nil
}

// literal reads a number, true, false or null.
func (s *jsonScanner) literal() ([]byte, error) {
	start := s.at
	for s.at < len(s.b) && isLiteralByte(s.b[s.at]) {
		s.at++
	}
	text := s.b[start:s.at:s.at]
	if len(text) == 0 {
		return nil, s.fail("no value")
	}
	if b := text[0]; b == '-' || b >= '0' && b <= '9' {
		return text, nil
	}
	switch string(text) {
	case "true", "false", "null":
		return text, nil
	}
	return nil, s.fail("no value")
}

func isLiteralByte(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b == '-' || b == '+' || b == '.' || b == 'E'
}

// skip passes over any value and leaves its bytes alone.
func (s *jsonScanner) skip(depth int) error {
	if depth > jsonDepthMax {
		return s.fail("nesting too deep")
	}
	switch s.peek() {
	case '"':
		return s.skipText()
	case '{':
		return s.skipObject(depth)
	case '[':
		return s.skipArray(depth)
	default:
		_, err := s.literal()
		return err
	}
}

func (s *jsonScanner) skipText() error {
	for s.at++; s.at < len(s.b); s.at++ {
		switch s.b[s.at] {
		case '"':
			s.at++
			return nil
		case '\\':
			s.at++
		}
	}
	return s.fail("unterminated string")
}

func (s *jsonScanner) skipObject(depth int) error {
	s.at++
	if s.peek() == '}' {
		s.at++
		return nil
	}
	for {
		if s.peek() != '"' {
			return s.fail("no key")
		}
		if err := s.skipText(); err != nil {
			return err
		}
		if s.peek() != ':' {
			return s.fail("no colon")
		}
		s.at++
		if err := s.skip(depth + 1); err != nil {
			return err
		}
		switch s.peek() {
		case ',':
			s.at++
		case '}':
			s.at++
			return nil
		default:
			return s.fail("no comma")
		}
	}
}

func (s *jsonScanner) skipArray(depth int) error {
	s.at++
	if s.peek() == ']' {
		s.at++
		return nil
	}
	for {
		if err := s.skip(depth + 1); err != nil {
			return err
		}
		switch s.peek() {
		case ',':
			s.at++
		case ']':
			s.at++
			return nil
		default:
			return s.fail("no comma")
		}
	}
}

// text reads a string whose opening quote is next. Without an escape it is a slice of the input.
func (s *jsonScanner) text() ([]byte, error) {
	start := s.at + 1
	end := start + plainBytes(s.b[start:])
	if end < len(s.b) && s.b[end] == '"' {
		s.at = end + 1
		return s.b[start:end:end], nil
	}
	return s.escapedText(start, end)
}

// Eight bytes at a time: a word with the high bit of every byte, and the same of every lowest bit.
const (
	highBits = 0x8080808080808080
	lowBits  = 0x0101010101010101
)

// zeroBytes marks the zero bytes of w by their high bits; marks above the lowest may be wrong.
func zeroBytes(w uint64) uint64 { return (w - lowBits) &^ w & highBits }

// plainBytes counts the bytes before the first quote or backslash.
func plainBytes(b []byte) int {
	i := 0
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		if marks := zeroBytes(w^lowBits*'"') | zeroBytes(w^lowBits*'\\'); marks != 0 {
			return i + bits.TrailingZeros64(marks)/8
		}
	}
	for ; i < len(b); i++ {
		if b[i] == '"' || b[i] == '\\' {
			break
		}
	}
	return i
}

// unescapedBytes counts the bytes before the first that must be escaped.
func unescapedBytes(b []byte) int {
	i := 0
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		control := (w - lowBits*' ') &^ w & highBits
		if marks := control | zeroBytes(w^lowBits*'"') | zeroBytes(w^lowBits*'\\'); marks != 0 {
			return i + bits.TrailingZeros64(marks)/8
		}
	}
	for ; i < len(b); i++ {
		if b[i] < ' ' || b[i] == '"' || b[i] == '\\' {
			break
		}
	}
	return i
}

// escapedText goes on with a string from its first escape, moving what follows down over the escapes.
func (s *jsonScanner) escapedText(start, at int) ([]byte, error) {
	b, to, from := s.b, at, at
	for from+1 < len(b) && b[from] == '\\' {
		if b[from+1] == 'u' {
			r, n := unescapeRune(b[from:])
			if n == 0 {
				s.at = from
				return nil, s.fail("bad unicode escape")
			}
			if r < utf8.RuneSelf {
				b[to] = byte(r)
				to++
			} else {
				to += utf8.EncodeRune(b[to:from+n], r) // at most 3 bytes for 6 read, 4 for 12
			}
			from += n
		} else {
			plain, ok := unescapeByte(b[from+1])
			if !ok {
				s.at = from
				return nil, s.fail("bad escape")
			}
			b[to] = plain
			to, from = to+1, from+2
		}
		n := plainBytes(b[from:])
		copy(b[to:], b[from:from+n])
		to, from = to+n, from+n
		if from < len(b) && b[from] == '"' {
			s.at = from + 1
			return b[start:to:to], nil
		}
	}
	s.at = from
	return nil, s.fail("unterminated string")
}

func unescapeByte(b byte) (byte, bool) {
	switch b {
	case '"', '\\', '/', '\'':
		return b, true
	case 'n':
		return '\n', true
	case 't':
		return '\t', true
	case 'r':
		return '\r', true
	case 'b':
		return '\b', true
	case 'f':
		return '\f', true
	case 'v':
		return '\v', true
	}
	return 0, false
}

// unescapeRune reads \uXXXX, or the two of a surrogate pair, and returns how many bytes that took; 0: not such an escape.
// A lone surrogate becomes U+FFFD.
func unescapeRune(b []byte) (rune, int) {
	r, ok := hex4(b)
	if !ok {
		return 0, 0
	}
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if low, ok := hex4(b[6:]); ok {
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return pair, 12
		}
	}
	return utf8.RuneError, 6
}

func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for _, d := range b[2:6] {
		switch {
		case d >= '0' && d <= '9':
			d -= '0'
		case d >= 'a' && d <= 'f':
			d -= 'a' - 10
		case d >= 'A' && d <= 'F':
			d -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}

func appendJSONHeader(dst []byte, c *Command) []byte {
	dst = append(dst, `{"code":`...)
	dst = strconv.AppendInt(dst, int64(c.Code), 10)
	if len(c.Ext) > 0 || c.shape&emptyExtFields != 0 {
		dst = append(dst, `,"extFields":{`...)
		for i := range c.Ext {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSONText(dst, c.Ext[i].Key)
			dst = append(dst, ':')
			dst = appendJSONText(dst, c.Ext[i].Value)
		}
		dst = append(dst, '}')
	}
	dst = append(dst, `,"flag":`...)
	dst = strconv.AppendInt(dst, int64(c.Flag), 10)
	if int(c.Language) < len(languageNames) {
		dst = append(dst, `,"language":"`...)
		dst = append(dst, languageNames[c.Language]...)
		dst = append(dst, '"')
	}
	dst = append(dst, `,"opaque":`...)
	dst = strconv.AppendInt(dst, int64(c.Opaque), 10)
	if c.Remark != nil {
		dst = append(dst, `,"remark":`...)
		dst = appendJSONText(dst, c.Remark)
	}
	if c.shape&noSerializeType == 0 {
		dst = append(dst, `,"serializeTypeCurrentRPC":"JSON"`...)
	}
	dst = append(dst, `,"version":`...)
	dst = strconv.AppendInt(dst, int64(c.Version), 10)
	return append(dst, '}')
}

// appendJSONText writes a quoted string with RocketMQ's escapes.
func appendJSONText(dst, text []byte) []byte {
	dst = append(dst, '"')
	for {
		n := unescapedBytes(text)
		dst = append(dst, text[:n]...)
		if n == len(text) {
			return append(dst, '"')
		}
		dst = appendJSONEscape(dst, text[n])
		text = text[n+1:]
	}
}

func appendJSONEscape(dst []byte, b byte) []byte {
	const hexDigits = "0123456789abcdef"
	switch b {
	case '"', '\\':
		return append(dst, '\\', b)
	case '\n':
		return append(dst, '\\', 'n')
	case '\t':
		return append(dst, '\\', 't')
	case '\r':
		return append(dst, '\\', 'r')
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[b>>4], hexDigits[b&15])
}

// parseInt reads a decimal number; ok is false when text is anything else or does not fit 64 bits.
func parseInt(text []byte) (n int64, ok bool) {
	digits := text
	negative := len(text) > 0 && text[0] == '-'
	if negative || len(text) > 0 && text[0] == '+' {
		digits = text[1:]
	}
	if len(digits) == 0 || len(digits) > 19 {
		return 0, false
	}
	var u uint64
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0, false
		}
		u = u*10 + uint64(d-'0') // 19 digits cannot overflow 64 bits unsigned
	}
	if negative {
		return -int64(u), u <= 1<<63
	}
	return int64(u), u < 1<<63
}
