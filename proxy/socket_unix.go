//go:build unix && !(linux && (amd64 || arm64))

package proxy

import "syscall"

// receive and send are the standard library's on other systems.

func receive(fd uintptr, b []byte) (int, error) { return syscall.Read(int(fd), b) }

func send(fd uintptr, b []byte) (int, error) { return syscall.Write(int(fd), b) }
