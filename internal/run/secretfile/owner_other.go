//go:build !unix

package secretfile

import "io/fs"

func ownedByRoot(fs.FileInfo) bool { return false }
