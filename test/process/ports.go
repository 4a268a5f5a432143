package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"
)

// Ports of loopback servers that no one listens on now. A broker takes its port, the fast port two below and the HA port
// one above; NameServer ports come from the same ranges, so one helper serves both.
var (
	portsMu sync.Mutex
	taken   = map[int]bool{}
)

// FreeBrokerPort returns a port p such that p−2 … p+1 can be listened on. No port is handed out twice by one process.
func FreeBrokerPort() (int, error) {
	portsMu.Lock()
	defer portsMu.Unlock()
	for range 200 {
		p, err := ephemeral()
		if err != nil {
			return 0, err
		}
		if p < 1100 || p > 65000 {
			continue
		}
		ok := true
		for q := p - 2; q <= p+1 && ok; q++ {
			ok = !taken[q] && canListen(q)
		}
		if ok {
			for q := p - 2; q <= p+1; q++ {
				taken[q] = true
			}
			return p, nil
		}
	}
	return 0, errors.New("free broker port: none found in 200 tries")
}

func ephemeral() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("free port: %w", err)
	}
	p := l.Addr().(*net.TCPAddr).Port
	return p, l.Close()
}

func canListen(port int) bool {
	l, err := net.Listen("tcp", Loopback(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// Loopback is "127.0.0.1:port".
func Loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// Answers reports whether somebody accepts connections at addr.
func Answers(addr string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	return c.Close() == nil
}
