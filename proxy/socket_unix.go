//go:build unix && !(linux && (amd64 || arm64) && !race)

package proxy

import "syscall"

// receive and send are the standard library's here: for other systems, and for the race detector, to which a message is an order
// between who writes and who reads it.

func receive(fd uintptr, b []byte) (int, error) { return syscall.Read(int(fd), b) }

func send(fd uintptr, b []byte) (int, error) { return syscall.Write(int(fd), b) }
