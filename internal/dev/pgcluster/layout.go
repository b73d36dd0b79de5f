//go:build unix

package pgcluster

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// longestSocketFile is the file name of a unix socket with the longest port number.
const longestSocketFile = "/.s.PGSQL.65535"

// clusterFolders has the folders of a cluster.
type clusterFolders struct {
	home   string // the folder with data and log, which only the account can enter
	socket string // the folder of the unix socket
	lock   string
}

func (l clusterFolders) dataFolder() string { return filepath.Join(l.home, "data") }
func (l clusterFolders) logFile() string    { return filepath.Join(l.home, "server.log") }

// maxSocketPath returns the longest path that a unix socket may have (sun_path of sockaddr_un).
func maxSocketPath() int {
	if runtime.GOOS == "linux" {
		return 107
	}
	return 103
}

// makeLayout makes the folders of a cluster under dir. If the account cannot enter a parent of dir, or the socket's
// path would be too long, makeLayout uses a short path in /var/tmp. The short path depends only on dir.
func makeLayout(dir string, a osAccount) (clusterFolders, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return clusterFolders{}, err
	}
	if err := os.MkdirAll(abs, 0o711); err != nil {
		return clusterFolders{}, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonUpstream,
			"the folder %s cannot be made: %v", abs, errors.Unwrap(err)).
			WithHint("Name a folder that you may write to.")
	}
	l := clusterFolders{home: filepath.Join(abs, "postgres"), lock: filepath.Join(abs, "lock")}
	short := shortFolder(abs, a)
	if !a.canEnter(abs) {
		l.home = short
	}
	if err := makePrivate(l.home, a); err != nil {
		return clusterFolders{}, err
	}
	l.socket = filepath.Join(l.home, "socket")
	if len(l.socket)+len(longestSocketFile) > maxSocketPath() {
		if err := makePrivate(short, a); err != nil {
			return clusterFolders{}, err
		}
		l.socket = filepath.Join(short, "socket")
	}
	if err := makePrivate(l.socket, a); err != nil {
		return clusterFolders{}, err
	}
	return l, nil
}

func shortFolder(abs string, a osAccount) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", os.Geteuid(), abs))
	return filepath.Join("/var/tmp", "pgconsent-"+hex.EncodeToString(sum[:6]))
}

// makePrivate makes the folder dir with mode 0700 for the account. If the folder exists, it checks its mode and owner,
// since somebody else could have made it.
func makePrivate(dir string, a osAccount) error {
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		return a.takeOwnership(dir)
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || st.Uid != a.uid || info.Mode().Perm()&0o077 != 0 {
		account := a.name
		if account == "" {
			account = "you"
		}
		return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonUpstream,
			"%s is not a private folder (mode 0700) of %s", dir, account).
			WithHint("Remove it, or name another folder.")
	}
	return nil
}

// lockFolder locks a cluster's folder, so that no other process uses it.
func lockFolder(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonUpstream,
			"the folder %s is in use by another pgconsent", filepath.Dir(path)).
			WithHint("Stop the other one, or name another folder.").WithCause(err)
	}
	return f, nil
}
