//go:build unix

package policy

import (
	"io/fs"
	"syscall"
)

// inode tells a file from another one that replaced it.
func inode(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Ino
	}
	return 0
}
