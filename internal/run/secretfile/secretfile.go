// Package secretfile says which files are fit to hold a secret.
package secretfile

import "io/fs"

// Exposed tells whether others than its owner can reach what is in a file. A file of root that its group can read, and no
// more, is not exposed: so a secret that somebody else keeps is given to a program that is not root, as a volume of
// Kubernetes or by a group of the system. It is PostgreSQL's rule for the keys of TLS (be-secure-common.c,
// check_ssl_key_file_permissions).
func Exposed(info fs.FileInfo) bool {
	if ownedByRoot(info) {
		return info.Mode().Perm()&0o037 != 0
	}
	return info.Mode().Perm()&0o077 != 0
}
