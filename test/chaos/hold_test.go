package chaos

import (
	"net"
	"testing"
	"time"
)

// holdConnections opens n connections, as many as the broker's machine takes, and keeps them.
func holdConnections(t *testing.T, addr string, n int) []net.Conn {
	t.Helper()
	var held []net.Conn
	for range n {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err != nil {
			break // the backlog is full as well: the fault bites
		}
		held = append(held, conn)
	}
	if len(held) < 100 {
		t.Fatalf("void run: only %d connections", len(held))
	}
	return held
}
