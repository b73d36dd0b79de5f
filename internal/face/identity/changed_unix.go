//go:build unix && !darwin && !freebsd && !netbsd

package identity

import "syscall"

// changeTime is when a file's contents or its properties changed last.
func changeTime(st *syscall.Stat_t) syscall.Timespec { return st.Ctim }
