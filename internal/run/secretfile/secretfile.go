// Package secretfile checks whether a file is private enough for a secret.
package secretfile

import "io/fs"

// IsExposed reports whether users other than the owner of a file can read or write it. Of a file that root owns, the
// group may have read access: Kubernetes volumes and system groups pass secrets to a program in this way. PostgreSQL
// has the same rule for the keys of TLS (be-secure-common.c, check_ssl_key_file_permissions).
func IsExposed(info fs.FileInfo) bool {
	if isOwnedByRoot(info) {
		return info.Mode().Perm()&0o037 != 0
	}
	return info.Mode().Perm()&0o077 != 0
}
