package compat

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// A remoting request made by hand, so that what the tests check does not pass through the code they check.

type answer struct {
	Code   int               `json:"code"`
	Remark string            `json:"remark"`
	Ext    map[string]string `json:"extFields"`
	Body   []byte            `json:"-"`
}

func invoke(ctx context.Context, addr string, code int, ext map[string]string, body []byte) (*answer, error) {
	head, rest, err := exchange(ctx, addr, code, ext, body)
	if err != nil {
		return nil, err
	}
	a := &answer{Body: rest}
	if err := json.NewDecoder(bytes.NewReader(head)).Decode(a); err != nil {
		return nil, fmt.Errorf("answer header %q: %w", head, err)
	}
	return a, nil
}

// exchange returns header and body of the answer as they came: a Java server that is told to write binary headers does
// so even to a request in JSON.
func exchange(ctx context.Context, addr string, code int, ext map[string]string, body []byte) (head, rest []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, nil, err
	}
	defer c.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := c.SetDeadline(deadline); err != nil {
			return nil, nil, err
		}
	}
	header, err := json.Marshal(map[string]any{
		"code": code, "language": "JAVA", "version": 399, "opaque": 1, "flag": 0, "serializeTypeCurrentRPC": "JSON", "extFields": ext,
	})
	if err != nil {
		return nil, nil, err
	}
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)+len(body)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(header)))
	frame = append(append(frame, header...), body...)
	if _, err := c.Write(frame); err != nil {
		return nil, nil, err
	}
	var size [8]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return nil, nil, err
	}
	total, headBytes := binary.BigEndian.Uint32(size[:]), binary.BigEndian.Uint32(size[4:])&0xffffff
	if total < 4+headBytes || total > 64<<20 {
		return nil, nil, fmt.Errorf("answer of %d bytes with a header of %d", total, headBytes)
	}
	all := make([]byte, total-4)
	if _, err := io.ReadFull(c, all); err != nil {
		return nil, nil, err
	}
	return all[:headBytes], all[headBytes:], nil
}

// routeBody asks a NameServer for the route of a topic (code 105).
func routeBody(ctx context.Context, nameServer, topic string) (string, error) {
	a, err := invoke(ctx, nameServer, 105, map[string]string{"topic": topic}, nil)
	if err != nil {
		return "", err
	}
	if a.Code != 0 {
		return "", errors.New(a.Remark)
	}
	return string(a.Body), nil
}
