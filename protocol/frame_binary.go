package protocol

import (
	"encoding/binary"
	"fmt"
)

// The binary header (RocketMQSerializable):
//
//	code i16 · language u8 · version i16 · opaque i32 · flag i32 · remark: i32 length, bytes · ext: i32 length of the
//	block, then entries of key: i16 length, bytes, value: i32 length, bytes
//
// A remark of length 0 is none.

const (
	binaryFixedBytes    = 21 // both lengths included, without remark and ext block
	binaryExtFieldBytes = 6  // the two lengths of an entry
)

func decodeBinaryHeader(h []byte, c *Command) error {
	if len(h) < binaryFixedBytes {
		return fmt.Errorf("%w: binary header of %d bytes", ErrFrame, len(h))
	}
	c.Code = int32(int16(binary.BigEndian.Uint16(h)))
	c.Language = Language(h[2])
	c.Version = int32(int16(binary.BigEndian.Uint16(h[3:])))
	c.Opaque = int32(binary.BigEndian.Uint32(h[5:]))
	c.Flag = int32(binary.BigEndian.Uint32(h[9:]))
	remark, h, ok := cut(h[17:], int32(binary.BigEndian.Uint32(h[13:])))
	if !ok || len(h) < 4 {
		return fmt.Errorf("%w: remark length outside binary header", ErrFrame)
	}
	if len(remark) > 0 {
		c.Remark = remark
	}
	ext, rest, ok := cut(h[4:], int32(binary.BigEndian.Uint32(h)))
	if !ok || len(rest) > 0 {
		return fmt.Errorf("%w: ext block length differs from binary header", ErrFrame)
	}
	return decodeBinaryExt(ext, c)
}

func decodeBinaryExt(ext []byte, c *Command) error {
	for len(ext) > 0 {
		if len(ext) < binaryExtFieldBytes {
			return fmt.Errorf("%w: truncated ext entry", ErrFrame)
		}
		key, rest, ok := cut(ext[2:], int32(int16(binary.BigEndian.Uint16(ext))))
		if !ok || len(rest) < 4 {
			return fmt.Errorf("%w: ext key length outside its block", ErrFrame)
		}
		value, rest, ok := cut(rest[4:], int32(binary.BigEndian.Uint32(rest)))
		if !ok {
			return fmt.Errorf("%w: ext value length outside its block", ErrFrame)
		}
		if len(c.Ext) == ExtFieldsMax {
			return fmt.Errorf("%w: more than %d ext fields", ErrFrame, ExtFieldsMax)
		}
		c.Ext = append(c.Ext, ExtField{Key: key, Value: value})
		ext = rest
	}
	return nil
}

// cut splits b after n bytes.
func cut(b []byte, n int32) (head, tail []byte, ok bool) {
	if n < 0 || int64(n) > int64(len(b)) {
		return nil, nil, false
	}
	return b[:n:n], b[n:], true
}

func appendBinaryHeader(dst []byte, c *Command) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(c.Code))
	dst = append(dst, byte(c.Language))
	dst = binary.BigEndian.AppendUint16(dst, uint16(c.Version))
	dst = binary.BigEndian.AppendUint32(dst, uint32(c.Opaque))
	dst = binary.BigEndian.AppendUint32(dst, uint32(c.Flag))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(c.Remark)))
	dst = append(dst, c.Remark...)
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	for i := range c.Ext {
		f := &c.Ext[i]
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(f.Key)))
		dst = append(dst, f.Key...)
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(f.Value)))
		dst = append(dst, f.Value...)
	}
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return dst
}
