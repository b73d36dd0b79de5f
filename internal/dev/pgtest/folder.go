//go:build unix

package pgtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const folderPrefix = "pgconsent-test"

// The bytes of free memory from which on a run of the tests puts its databases into memory: about three times their
// size.
const (
	QuickRunMemory = 8 << 30
	WholeRunMemory = 16 << 30
)

// NewFolder makes the folder of a run, for servers and temporary files of tests. The folder is in a memory file system
// if that has enough bytes free, since tests make and drop hundreds of databases. If it has not, or if TMPDIR is set,
// the folder is in the system's temporary folder. NewFolder also removes the folders of killed runs.
func NewFolder(bytes uint64) (string, error) {
	parent := ""
	if os.Getenv("TMPDIR") == "" {
		parent = memoryFolderFor(bytes)
	}
	for _, left := range []string{parent, memoryFolderFor(0)} {
		removeLeftFolders(left)
	}
	return os.MkdirTemp(parent, fmt.Sprintf("%s%d-", folderPrefix, os.Getpid()))
}

// folderIn makes a temporary folder in the folder of a run, or calls NewFolder if run is "".
func folderIn(run string) (string, error) {
	if run == "" {
		return NewFolder(QuickRunMemory)
	}
	return os.MkdirTemp(run, "pgtest")
}

// removeLeftFolders removes the folders of processes that no longer exist, and stops the servers in them.
func removeLeftFolders(parent string) {
	if parent == "" {
		parent = os.TempDir()
	}
	folders, _ := filepath.Glob(filepath.Join(parent, folderPrefix+"*-*"))
	for _, dir := range folders {
		owner, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), folderPrefix), "-")
		pid, err := strconv.Atoi(owner)
		var stat syscall.Stat_t
		if err != nil || !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || syscall.Lstat(dir, &stat) != nil ||
			int(stat.Uid) != os.Getuid() {
			continue
		}
		_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.Name() != "postmaster.pid" {
				return nil
			}
			text, _ := os.ReadFile(path)
			line, _, _ := strings.Cut(string(text), "\n")
			if server, err := strconv.Atoi(line); err == nil && server > 1 {
				_ = syscall.Kill(server, syscall.SIGQUIT)
			}
			return filepath.SkipDir
		})
		_ = os.RemoveAll(dir)
	}
}
