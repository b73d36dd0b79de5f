package pgcluster

import "syscall"

// killWithParent makes the kernel end the child when the thread that started it ends.
func killWithParent(attr *syscall.SysProcAttr, sig syscall.Signal) { attr.Pdeathsig = sig }
