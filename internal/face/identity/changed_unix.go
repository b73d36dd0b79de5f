//go:build unix && !darwin && !freebsd && !netbsd

package identity

import "syscall"

// changed is when a file's contents or its properties changed last.
func changed(st *syscall.Stat_t) syscall.Timespec { return st.Ctim }
