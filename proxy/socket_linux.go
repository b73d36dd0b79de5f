//go:build linux && (amd64 || arm64)

package proxy

import (
	"syscall"
	"unsafe"
)

// The standard library's system calls tell Go's scheduler that the thread may block. That wakes the scheduler's monitor
// thread, which then polls several times before it sleeps again. For a request and its answer this costs as much as
// reading and writing them. The calls below never block, so they do not tell the scheduler.
//
// A goroutine that never waits uses the standard library's calls after a while (maxAtOnce), since only the monitor
// thread then lets other goroutines run.

// receive reads the bytes that have arrived at a socket. It does not wait; the error EAGAIN means that there are none.
func receive(fd uintptr, b []byte) (int, error) {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))),
		uintptr(len(b)), syscall.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	raceAcquire(fd)
	return int(n), nil
}

// send writes as many bytes as the socket's buffer has room for. It does not wait; the error EAGAIN means that there is
// no room.
func send(fd uintptr, b []byte) (int, error) {
	raceRelease(fd)
	n, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))),
		uintptr(len(b)), syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
