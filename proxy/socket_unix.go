//go:build unix && !(linux && (amd64 || arm64))

package proxy

import "syscall"

// Other Unix systems than Linux on amd64 and arm64 use the standard library's calls.

func receive(fd uintptr, b []byte) (int, error) { return syscall.Read(int(fd), b) }

func send(fd uintptr, b []byte) (int, error) { return syscall.Write(int(fd), b) }
