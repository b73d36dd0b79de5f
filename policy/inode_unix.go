//go:build unix

package policy

import (
	"io/fs"
	"syscall"
)

// inodeNumber returns the inode number of a file. A file that replaces another file under the same name has another
// number.
func inodeNumber(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Ino
	}
	return 0
}
