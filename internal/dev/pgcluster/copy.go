//go:build unix

package pgcluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// CopyDataFolder copies the data folder of a stopped cluster to a new folder beside it.
func CopyDataFolder(ctx context.Context, data, to string) error {
	a, err := serverAccount()
	if err != nil {
		return err
	}
	return copyFolder(ctx, a, data, to)
}

// initialiseFrom gives a new cluster a copy of a data folder.
func initialiseFrom(ctx context.Context, _ *Cluster, c Config, a osAccount, l clusterFolders) error {
	fresh := l.dataFolder() + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	if err := copyFolder(ctx, a, c.InitialData, fresh); err != nil {
		return err
	}
	return os.Rename(fresh, l.dataFolder())
}

// copyFolder copies a folder with the rights of the server's account, which must own the files.
func copyFolder(ctx context.Context, a osAccount, from, to string) error {
	cmd := exec.CommandContext(ctx, "cp", "-a", "--", from, to)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: a.credential}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("copy %s: %w: %s", from, err, lastLines(out, 2))
	}
	return nil
}
