//go:build !unix

package policy

import "io/fs"

// inodeNumber returns 0: file systems without inode numbers tell nothing here.
func inodeNumber(fs.FileInfo) uint64 { return 0 }
