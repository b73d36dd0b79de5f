//go:build unix

package pgtest

import "os"

// Folder makes the folder of a run, for servers and for what tests leave while they run: in memory where there is plenty, since
// databases are made and dropped by the hundred; else, and where TMPDIR is set, among the system's temporary files.
func Folder() (string, error) {
	parent := ""
	if os.Getenv("TMPDIR") == "" {
		parent = inMemory()
	}
	return os.MkdirTemp(parent, "pgconsent-test")
}

// folderIn is Folder within that of a run, if there is one.
func folderIn(run string) (string, error) {
	if run == "" {
		return Folder()
	}
	return os.MkdirTemp(run, "pgtest")
}
