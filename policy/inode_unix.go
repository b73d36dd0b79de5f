//go:build unix

package policy

import (
	"io/fs"
	"syscall"
)

// inodeNumber returns the number by which a file differs from another file that has replaced it.
func inodeNumber(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Ino
	}
	return 0
}
