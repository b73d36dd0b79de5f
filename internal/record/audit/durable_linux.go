package audit

import "syscall"

// durable makes data and size durable; times do not matter.
func durable(f interface{ Fd() uintptr }) error { return syscall.Fdatasync(int(f.Fd())) }
