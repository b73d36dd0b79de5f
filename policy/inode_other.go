//go:build !unix

package policy

import "io/fs"

// inodeNumber returns 0 on systems other than Unix, which have no inode numbers.
func inodeNumber(fs.FileInfo) uint64 { return 0 }
