package remoting

import (
	"errors"
	"net"
	"syscall"
	"unsafe"
)

// Sockets are read and written without blocking here, so that a goroutine that answers for many connections never waits
// for one of them. Elsewhere (raw_other.go) every write is left to a goroutine of the connection.

// rawConn returns nil for what is not a plain TCP connection.
func rawConn(nc net.Conn) syscall.RawConn {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// readSocket reads once; again: nothing is there now.
func readSocket(fd uintptr, b []byte) (n int, again bool, err error) {
	for {
		n, err = syscall.Read(int(fd), b)
		if !errors.Is(err, syscall.EINTR) {
			return outcome(n, err)
		}
	}
}

// outcome sorts what a system call said.
func outcome(n int, err error) (int, bool, error) {
	if err == nil {
		return n, false, nil
	}
	if errors.Is(err, syscall.EAGAIN) {
		return 0, true, nil
	}
	return 0, false, err
}

// socketPieces is how many pieces one call writes.
const socketPieces = 64

type iovecs [socketPieces]syscall.Iovec

// writeSocket writes once, as much as the socket takes; again: it takes nothing now. vec is scratch.
func writeSocket(fd uintptr, pieces [][]byte, vec *iovecs) (n int, again bool, err error) {
	for {
		if len(pieces) == 1 {
			n, err = syscall.Write(int(fd), pieces[0])
		} else {
			n, err = writev(fd, pieces, vec)
		}
		if !errors.Is(err, syscall.EINTR) {
			return outcome(n, err)
		}
	}
}

func writev(fd uintptr, pieces [][]byte, vec *iovecs) (int, error) {
	count := 0
	for _, p := range pieces[:min(len(pieces), socketPieces)] {
		if len(p) > 0 {
			vec[count].Base = &p[0]
			vec[count].SetLen(len(p))
			count++
		}
	}
	n, _, errno := syscall.Syscall(syscall.SYS_WRITEV, fd, uintptr(unsafe.Pointer(vec)), uintptr(count))
	clear(vec[:count])
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
