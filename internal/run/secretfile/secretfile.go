// Package secretfile tells whether a file is private enough for a secret.
package secretfile

import "io/fs"

// IsExposed tells whether users other than its owner can read or write a file. A file of root that its group can only
// read is not exposed: Kubernetes volumes and system groups give a program secrets in this way. It is PostgreSQL's rule
// for the keys of TLS (be-secure-common.c, check_ssl_key_file_permissions).
func IsExposed(info fs.FileInfo) bool {
	if isOwnedByRoot(info) {
		return info.Mode().Perm()&0o037 != 0
	}
	return info.Mode().Perm()&0o077 != 0
}
