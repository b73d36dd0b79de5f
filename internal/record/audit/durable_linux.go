package audit

import "syscall"

// durable makes data and size durable, without the file's times.
func durable(f interface{ Fd() uintptr }) error { return syscall.Fdatasync(int(f.Fd())) }
