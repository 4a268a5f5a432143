package remoting

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"

	"github.com/quorate/quorate/protocol"
)

// Before its first frame an accepted connection may bring a HAProxy PROXY header (version 1 or 2) and a TLS handshake
// (RocketMQ HandshakeHandler, HAProxyMessageHandler). A frame begins with a zero byte, since no frame is 16 MiB long, so
// the first byte tells them apart.

const (
	tlsRecordHandshake = 0x16
	proxyV1Prefix      = "PROXY "
	proxyV1BytesMax    = 107 // by its specification, with CRLF
	proxyV2Signature   = "\r\n\r\n\x00\r\nQUIT\n"
	proxyV2HeadBytes   = 16
	proxyV2BytesMax    = 2048 // addresses and the extensions that are read over
)

// preface consumes what comes before frames.
func (c *Conn) preface() error {
	b, err := c.in.peek(1)
	if err != nil {
		return err
	}
	if !c.end.proxyOff && (b[0] == proxyV1Prefix[0] || b[0] == proxyV2Signature[0]) {
		if err := c.proxyHeader(b[0]); err != nil {
			return err
		}
		if b, err = c.in.peek(1); err != nil {
			return err
		}
	}
	mode := c.end.tls
	switch {
	case b[0] == tlsRecordHandshake && mode != nil && mode.Config != nil:
		return c.startTLS(mode.Config)
	case b[0] != tlsRecordHandshake && mode != nil && mode.Enforcing:
		return fmt.Errorf("%w: plaintext on a port that enforces TLS", protocol.ErrFrame)
	}
	return nil
}

func (c *Conn) startTLS(config *tls.Config) error {
	return c.in.replaceSource(func(buffered []byte) (io.Reader, error) {
		c.mu.Lock()
		nc := c.net
		c.mu.Unlock()
		t := tls.Server(&prefixedConn{Conn: nc, prefix: buffered}, config)
		ctx, cancel := context.WithTimeout(c.ctx, c.end.limits.FrameTimeout)
		defer cancel()
		if err := t.HandshakeContext(ctx); err != nil {
			return nil, fmt.Errorf("TLS handshake: %w", err)
		}
		c.out.mu.Lock() // nothing is queued before the first request
		c.out.dst, c.out.raw = t, nil
		c.out.mu.Unlock()
		c.mu.Lock()
		c.net = t
		c.mu.Unlock()
		return t, nil
	})
}

// prefixedConn reads the bytes first that were read ahead.
type prefixedConn struct {
	net.Conn
	prefix []byte
}

func (p *prefixedConn) Read(b []byte) (int, error) {
	if len(p.prefix) > 0 {
		n := copy(b, p.prefix)
		p.prefix = p.prefix[n:]
		return n, nil
	}
	return p.Conn.Read(b)
}

var errProxyHeader = fmt.Errorf("%w: PROXY header", protocol.ErrFrame)

func (c *Conn) proxyHeader(first byte) error {
	var source netip.AddrPort
	var size int
	var err error
	if first == proxyV1Prefix[0] {
		source, size, err = c.proxyV1()
	} else {
		source, size, err = c.proxyV2()
	}
	if err != nil {
		return err
	}
	c.in.r += size
	if source.IsValid() {
		c.remote = source
	}
	return nil
}

// proxyV1 reads a text header. Something else that begins with P is left for the frame decoder to judge.
func (c *Conn) proxyV1() (source netip.AddrPort, size int, err error) {
	b, err := c.in.peek(len(proxyV1Prefix))
	if err != nil || !bytes.HasPrefix(b, []byte(proxyV1Prefix)) {
		return source, 0, err
	}
	for {
		end := bytes.Index(b[:min(len(b), proxyV1BytesMax)], []byte("\r\n"))
		if end >= 0 {
			source, err = parseProxyV1(b[:end])
			return source, end + 2, err
		}
		if len(b) >= proxyV1BytesMax {
			return source, 0, fmt.Errorf("%w of version 1 is not ended", errProxyHeader)
		}
		if b, err = c.in.peek(len(b) + 1); err != nil {
			return source, 0, err
		}
	}
}

func parseProxyV1(line []byte) (netip.AddrPort, error) {
	fields := bytes.Split(line, []byte(" "))
	if len(fields) >= 2 && string(fields[1]) == "UNKNOWN" {
		return netip.AddrPort{}, nil
	}
	if len(fields) != 6 || string(fields[1]) != "TCP4" && string(fields[1]) != "TCP6" {
		return netip.AddrPort{}, fmt.Errorf("%w %q", errProxyHeader, line)
	}
	addr, err := netip.ParseAddr(string(fields[2]))
	port, err2 := strconv.ParseUint(string(fields[4]), 10, 16)
	if err != nil || err2 != nil {
		return netip.AddrPort{}, fmt.Errorf("%w %q", errProxyHeader, line)
	}
	return netip.AddrPortFrom(addr.Unmap().WithZone(""), uint16(port)), nil
}

func (c *Conn) proxyV2() (source netip.AddrPort, size int, err error) {
	b, err := c.in.peek(proxyV2HeadBytes)
	if err != nil || string(b[:len(proxyV2Signature)]) != proxyV2Signature {
		return source, 0, err
	}
	size = proxyV2HeadBytes + (int(b[14])<<8 | int(b[15]))
	if b[12]>>4 != 2 || size > proxyV2BytesMax {
		return source, 0, fmt.Errorf("%w of version %d with %d bytes", errProxyHeader, b[12]>>4, size)
	}
	if b, err = c.in.peek(size); err != nil {
		return source, 0, err
	}
	const local, tcp4, tcp6 = 0, 0x11, 0x21
	addresses := b[proxyV2HeadBytes:size]
	switch {
	case b[12]&15 == local:
	case b[13] == tcp4 && len(addresses) >= 12:
		addr, _ := netip.AddrFromSlice(addresses[:4])
		source = netip.AddrPortFrom(addr, uint16(addresses[8])<<8|uint16(addresses[9]))
	case b[13] == tcp6 && len(addresses) >= 36:
		addr, _ := netip.AddrFromSlice(addresses[:16])
		source = netip.AddrPortFrom(addr.Unmap(), uint16(addresses[32])<<8|uint16(addresses[33]))
	}
	return source, size, nil
}

// foreign adds to a framing error what the bytes look like, for the person who pointed the wrong program at this port.
func (c *Conn) foreign(err error) error {
	if !errors.Is(err, protocol.ErrFrame) {
		return err
	}
	b := c.in.buf[c.in.r:c.in.w]
	for _, known := range []struct{ prefix, name string }{
		{"PRI * HTTP/2", "HTTP/2 (a gRPC client belongs to the proxy port)"},
		{"GET ", "HTTP"},
		{"POST ", "HTTP"},
		{"PUT ", "HTTP"},
		{"HEAD ", "HTTP"},
		{"OPTIONS ", "HTTP"},
		{"CONNECT ", "HTTP"},
		{"\x16\x03", "TLS, which is disabled on this port"},
		{"*1\r\n", "Redis"},
		{"SSH-", "SSH"},
	} {
		if len(b) >= 4 && bytes.HasPrefix(b, []byte(known.prefix)[:min(len(known.prefix), len(b))]) {
			return fmt.Errorf("%w; it looks like %s", err, known.name)
		}
	}
	return err
}
