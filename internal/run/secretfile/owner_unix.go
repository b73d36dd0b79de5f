//go:build unix

package secretfile

import (
	"io/fs"
	"syscall"
)

func isOwnedByRoot(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Uid == 0
}
