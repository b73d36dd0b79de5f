package audit

import "syscall"

// syncFile makes the data and the size of a file durable, but not its times.
func syncFile(f interface{ Fd() uintptr }) error { return syscall.Fdatasync(int(f.Fd())) }
