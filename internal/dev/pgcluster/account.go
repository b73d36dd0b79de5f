//go:build unix

package pgcluster

import (
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// osAccount is the operating system user that runs the server. PostgreSQL refuses to run as root. So if this process
// runs as root, the server runs as "postgres", or as "nobody" if there is no such user. Otherwise it runs as the user
// of this process.
type osAccount struct {
	name       string
	uid, gid   uint32
	credential *syscall.Credential // nil: the server runs as the user of this process
}

func serverAccount() (osAccount, error) {
	if os.Geteuid() != 0 {
		return osAccount{uid: uint32(os.Geteuid()), gid: uint32(os.Getegid())}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil || uid == 0 {
			continue
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			continue
		}
		a := osAccount{name: name, uid: uint32(uid), gid: uint32(gid)}
		a.credential = &syscall.Credential{Uid: a.uid, Gid: a.gid, Groups: []uint32{}}
		ids, _ := u.GroupIds()
		for _, id := range ids {
			if g, err := strconv.ParseUint(id, 10, 32); err == nil && g != 0 {
				a.credential.Groups = append(a.credential.Groups, uint32(g))
			}
		}
		return a, nil
	}
	return osAccount{}, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonUpstream,
		"PostgreSQL does not run as root, and there is no user postgres or nobody to run it as").
		WithHint("Run this as an ordinary user, or create the user: useradd --system postgres")
}

// takeOwnership makes the account the owner of path.
func (a osAccount) takeOwnership(path string) error {
	if a.credential == nil {
		return nil
	}
	return os.Chown(path, int(a.uid), int(a.gid))
}

// canEnter tells whether the account has the right to enter dir, which must exist.
func (a osAccount) canEnter(dir string) bool {
	if a.credential == nil {
		return true
	}
	cmd := exec.Command("/bin/sh", "-c", `cd -- "$1"`, "sh", dir)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: a.credential}
	return cmd.Run() == nil
}
