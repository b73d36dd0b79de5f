package main

import (
	"os/exec"
	"runtime"
	"syscall"
)

// endWithParent makes the kernel kill the test binary when this process ends. The kernel does so when the thread ends
// that started the binary, so that the calling goroutine stays on its thread.
func endWithParent(cmd *exec.Cmd) {
	runtime.LockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
