package main

import (
	"os/exec"
	"runtime"
	"syscall"
)

// endWithParent makes the kernel end the test binary when `go test` kills this process. The signal depends on the
// thread that starts the binary, which is the one that calls this function.
func endWithParent(cmd *exec.Cmd) {
	runtime.LockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
