package main

import (
	"os/exec"
	"runtime"
	"syscall"
)

// endWithParent has the kernel end the test binary when `go test` kills this process. The signal is tied to the thread
// that starts the child, which is this one.
func endWithParent(cmd *exec.Cmd) {
	runtime.LockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
