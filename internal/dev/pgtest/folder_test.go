//go:build unix

package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// What a run that was killed has left is removed by the next, and nothing of one that runs.
func TestFoldersOfKilledRunsAreRemoved(t *testing.T) {
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	parent := t.TempDir()
	left := filepath.Join(parent, fmt.Sprintf("%s%d-1", folderPrefix, gone.Process.Pid))
	mine := filepath.Join(parent, fmt.Sprintf("%s%d-1", folderPrefix, os.Getpid()))
	other := filepath.Join(parent, folderPrefix+"-of-somebody")
	for _, dir := range []string{left, mine, other} {
		if err := os.MkdirAll(filepath.Join(dir, "data"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	server := exec.Command("sleep", "600")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(left, "data", "postmaster.pid"), fmt.Appendf(nil, "%d\n", server.Process.Pid), 0o600); err != nil {
		t.Fatal(err)
	}
	removeLeftFolders(parent)
	_ = server.Wait() // it was ended
	for dir, stays := range map[string]bool{left: false, mine: true, other: true} {
		if _, err := os.Stat(dir); (err == nil) != stays {
			t.Errorf("%s is there: %t", dir, err == nil)
		}
	}
}
