//go:build !unix

package secretfile

import "io/fs"

func isOwnedByRoot(fs.FileInfo) bool { return false }
