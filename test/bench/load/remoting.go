package load

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"time"
)

// Send is SEND_MESSAGE_V2 (310) with a JSON header, or SEND_BATCH_MESSAGE (320), written by hand: the bytes are the same
// for every broker, and pass through none of the code under test.
type Send struct {
	Topic  string
	Queues int
	Body   int // bytes
	Batch  int // 1: single
	Group  int // a number in the unique keys, so that connections differ

	head, tail []byte // of the header, around what changes
	body       []byte
	in         []byte
}

// NewSend prepares the parts that do not change.
func NewSend(s Send) *Send {
	code, batch := 310, "false"
	if s.Batch > 1 {
		code, batch = 320, "true"
	}
	s.head = fmt.Appendf(nil, `{"code":%d,"extFields":{"a":"pg","b":"%s","c":"TBW102","d":"%d","f":"0","h":"0","j":"0","k":"false","m":"%s",`, code, s.Topic, s.Queues, batch)
	one := bytes.Repeat([]byte("x"), s.Body)
	if s.Batch > 1 {
		properties := []byte("WAIT\x01true\x02")
		for range s.Batch {
			s.body = binary.BigEndian.AppendUint32(s.body, uint32(22+len(one)+len(properties)))
			s.body = append(s.body, make([]byte, 12)...) // magic, checksum, flag
			s.body = binary.BigEndian.AppendUint32(s.body, uint32(len(one)))
			s.body = append(s.body, one...)
			s.body = binary.BigEndian.AppendUint16(s.body, uint16(len(properties)))
			s.body = append(s.body, properties...)
		}
	} else {
		s.body = one
	}
	return &s
}

// Append writes one request.
func (s *Send) Append(dst []byte, slot, turn int) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	dst = append(dst, s.head...)
	dst = append(dst, `"e":"`...)
	dst = strconv.AppendInt(dst, int64((turn+s.Group)%s.Queues), 10)
	dst = append(dst, `","g":"`...)
	dst = strconv.AppendInt(dst, time.Now().UnixMilli(), 10)
	dst = append(dst, `","i":"UNIQ_KEY\u0001AC110001`...)
	dst = appendHex(dst, uint64(s.Group), 8)
	dst = appendHex(dst, uint64(turn), 16)
	dst = append(dst, `\u0002WAIT\u0001true\u0002"},"flag":0,"language":"JAVA","opaque":`...)
	dst = strconv.AppendInt(dst, int64(slot), 10)
	dst = append(dst, `,"serializeTypeCurrentRPC":"JSON","version":399}`...)
	header := len(dst) - start - 8
	binary.BigEndian.PutUint32(dst[start:], uint32(4+header+len(s.body)))
	binary.BigEndian.PutUint32(dst[start+4:], uint32(header))
	return append(dst, s.body...)
}

func appendHex(dst []byte, n uint64, digits int) []byte {
	for i := digits - 1; i >= 0; i-- {
		dst = append(dst, "0123456789ABCDEF"[n>>(4*i)&15])
	}
	return dst
}

// Read reads one answer and looks only for its opaque and code.
func (s *Send) Read(r *bufio.Reader) (slot int, refusal string, err error) {
	head, _, err := readFrame(r, &s.in)
	if err != nil {
		return 0, "", err
	}
	return answerOf(head)
}

func answerOf(head []byte) (slot int, refusal string, err error) {
	slot, ok := number(head, `"opaque":`)
	if !ok {
		return 0, "", fmt.Errorf("no opaque in %q", head)
	}
	if code, ok := number(head, `"code":`); !ok || code != 0 {
		refusal = string(head)
	}
	return slot, refusal, nil
}

// readFrame returns header and body, valid until the next call with the same buffer.
func readFrame(r *bufio.Reader, buf *[]byte) (head, body []byte, err error) {
	size, err := r.Peek(4)
	if err != nil {
		return nil, nil, err
	}
	n := int(binary.BigEndian.Uint32(size)) + 4
	if n < 8 || n > 64<<20 {
		return nil, nil, fmt.Errorf("frame of %d bytes", n)
	}
	if cap(*buf) < n {
		*buf = make([]byte, n+n/2)
	}
	b := (*buf)[:n]
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, nil, err
	}
	h := int(binary.BigEndian.Uint32(b[4:]) & 0xffffff)
	if h > n-8 {
		return nil, nil, fmt.Errorf("header of %d bytes in a frame of %d", h, n)
	}
	return b[8 : 8+h], b[8+h:], nil
}

// number finds the unquoted or quoted decimal behind a key.
func number(b []byte, key string) (int, bool) {
	i := bytes.Index(b, []byte(key))
	if i < 0 {
		return 0, false
	}
	b = b[i+len(key):]
	if len(b) > 0 && b[0] == '"' {
		b = b[1:]
	}
	n, any := 0, false
	for len(b) > 0 && b[0] >= '0' && b[0] <= '9' {
		n, any, b = n*10+int(b[0]-'0'), true, b[1:]
	}
	return n, any
}

// Ceiling is the framing of package ceiling: a length, a slot, filling; answers of 64 bytes.
type Ceiling struct {
	Body int
	in   [64]byte
}

// Append writes one request of Body bytes in all.
func (c *Ceiling) Append(dst []byte, slot, _ int) []byte {
	start := len(dst)
	dst = append(dst, make([]byte, c.Body)...)
	binary.BigEndian.PutUint32(dst[start:], uint32(c.Body-4))
	binary.BigEndian.PutUint32(dst[start+4:], uint32(slot))
	return dst
}

// Read reads one answer.
func (c *Ceiling) Read(r *bufio.Reader) (int, string, error) {
	if _, err := io.ReadFull(r, c.in[:]); err != nil {
		return 0, "", err
	}
	return int(binary.BigEndian.Uint32(c.in[4:])), "", nil
}
