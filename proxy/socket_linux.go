//go:build linux && (amd64 || arm64)

package proxy

import (
	"syscall"
	"unsafe"
)

// A system call of the standard library tells the scheduler that the thread may be away for long. That wakes the
// monitor, which sleeps while nothing runs, and it then looks around some times before it sleeps again: for a request
// and its answer, that is as much work as reading and writing them. What never waits needs nobody to be told.
//
// Who goes on without ever waiting uses the standard library's: the monitor is who lets others run then.

// receive reads what a socket has, and does not wait: EAGAIN.
func receive(fd uintptr, b []byte) (int, error) {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))),
		uintptr(len(b)), syscall.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	afterReceiving(fd)
	return int(n), nil
}

// send writes what a socket takes, and does not wait: EAGAIN.
func send(fd uintptr, b []byte) (int, error) {
	beforeSending(fd)
	n, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))),
		uintptr(len(b)), syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
