//go:build !linux

package remoting

import (
	"net"
	"syscall"
)

type iovecs struct{}

func rawConn(net.Conn) syscall.RawConn { return nil }

func readSocket(uintptr, []byte) (n int, again bool, err error) { return 0, false, syscall.ENOTSUP }

func writeSocket(uintptr, [][]byte, *iovecs) (n int, again bool, err error) {
	return 0, false, syscall.ENOTSUP
}
