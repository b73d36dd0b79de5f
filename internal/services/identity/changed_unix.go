//go:build unix && !darwin && !freebsd && !netbsd

package identity

import "syscall"

// changeTime returns when the contents or the attributes of a file changed last.
func changeTime(st *syscall.Stat_t) syscall.Timespec { return st.Ctim }
