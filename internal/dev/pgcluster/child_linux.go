package pgcluster

import "syscall"

// killWithParent makes the kernel send sig to the child when the thread that started the child ends.
func killWithParent(attr *syscall.SysProcAttr, sig syscall.Signal) { attr.Pdeathsig = sig }
