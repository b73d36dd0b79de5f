//go:build linux && (amd64 || arm64)

package proxy

import (
	"syscall"
	"unsafe"
)

// A system call of the standard library tells Go's scheduler that the thread may block. That wakes the scheduler's
// monitor thread, which sleeps while nothing runs, and polls several times before it sleeps again. For a request and
// its answer that is as much work as reading and writing them. The calls below never block, so the scheduler is not
// told.
//
// A goroutine that goes on without ever waiting uses the standard library's calls after a while, since only the monitor
// lets other goroutines run then.

// receive reads the bytes that a socket has. It does not wait: EAGAIN says that there are none.
func receive(fd uintptr, b []byte) (int, error) {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))),
		uintptr(len(b)), syscall.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	raceAcquire(fd)
	return int(n), nil
}

// send writes as much as a socket takes. It does not wait: EAGAIN says that it takes nothing.
func send(fd uintptr, b []byte) (int, error) {
	raceRelease(fd)
	n, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))),
		uintptr(len(b)), syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
