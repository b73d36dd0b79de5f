package config

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/xdg-go/scram"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Credential is a line of the credentials file.
type Credential struct {
	Name     string
	Verifier string // [ByToken] of a disabled agent that logs in with tokens: it has no other line
	Disabled bool   // written as ! before the verifier
}

// ByToken stands where agents with a password have a verifier.
const ByToken = "jwt"

// ReadCredentials reads the credentials file. A file that is not there has no agents.
func ReadCredentials(path string) ([]Credential, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err := CheckPrivate(path); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var out []Credential
	seen := map[string]bool{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fail := func(format string, args ...any) error {
			return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal, "%s:%d: %s", path,
				n, fmt.Sprintf(format, args...)).
				WithHint("Lines read: name SCRAM-SHA-256$… ; pgconsent agent add writes them.")
		}
		name, v, ok := strings.Cut(line, " ")
		if !ok || !agentName.MatchString(name) {
			return nil, fail("not a name and a verifier")
		}
		if seen[name] {
			return nil, fail("a second line for %s", name)
		}
		seen[name] = true
		c := Credential{Name: name, Verifier: strings.TrimSpace(v)}
		c.Verifier, c.Disabled = strings.CutPrefix(c.Verifier, "!")
		if c.Verifier != ByToken || !c.Disabled {
			if _, err := ParseVerifier(c.Verifier); err != nil {
				return nil, fail("%v", err)
			}
		}
		out = append(out, c)
	}
	return out, lines.Err()
}

// SetCredential replaces or adds the line of c.Name, atomically and under a lock: readers see the old file or the new.
func SetCredential(path string, c Credential) error {
	return updateCredentials(path, func(all []Credential) ([]Credential, error) {
		for i := range all {
			if all[i].Name == c.Name {
				all[i] = c
				return all, nil
			}
		}
		return append(all, c), nil
	})
}

// EnableToken lets an agent that logs in with tokens do so again.
func EnableToken(path, name string) error {
	return updateCredentials(path, func(all []Credential) ([]Credential, error) {
		return slices.DeleteFunc(all, func(c Credential) bool { return c.Name == name }), nil
	})
}

// DisableToken keeps the tokens of an agent from being taken.
func DisableToken(path, name string) error {
	return SetCredential(path, Credential{Name: name, Verifier: ByToken, Disabled: true})
}

// DisableCredential takes an agent's login away and keeps its line.
func DisableCredential(path, name string) error {
	return updateCredentials(path, func(all []Credential) ([]Credential, error) {
		for i := range all {
			if all[i].Name == name {
				all[i].Disabled = true
				return all, nil
			}
		}
		return nil, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonIdentity, "%s has no login for %q", path, name).
			WithHint("pgconsent agent list shows those there are.")
	})
}

func updateCredentials(path string, change func([]Credential) ([]Credential, error)) error {
	return UpdateSecret(path, func() ([]byte, error) {
		all, err := ReadCredentials(path)
		if err == nil {
			all, err = change(all)
		}
		var b bytes.Buffer
		for _, c := range all {
			mark := ""
			if c.Disabled {
				mark = "!"
			}
			fmt.Fprintf(&b, "%s %s%s\n", c.Name, mark, c.Verifier)
		}
		return b.Bytes(), err
	})
}

// UpdateSecret replaces a file by what change makes of it, atomically and under a lock: readers see the old file or the
// new, and changes come one after the other.
func UpdateSecret(path string, change func() ([]byte, error)) error {
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	content, err := change()
	if err != nil {
		return err
	}
	return WriteSecret(path, content)
}

// WriteSecret writes a file with mode 0600 in one step: it has the old content or the new, never a part.
func WriteSecret(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err = f.Write(content); err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// Credentials are the logins of agents as the file has them now.
type Credentials struct {
	path    string
	current atomic.Pointer[logins]
	looked  atomic.Pointer[string] // the state of the file at the last Reload
}

// logins are what the file says.
type logins struct {
	verifiers map[string]scram.StoredCredentials
	disabled  map[string]bool
}

// OpenCredentials reads the file; [Credentials.Watch] follows its changes.
func OpenCredentials(path string) (*Credentials, error) {
	c := &Credentials{path: path}
	return c, c.Reload()
}

// Reload reads the file again. After an error what was read before stays in force.
func (c *Credentials) Reload() error {
	state := c.state() // before the file is read: what changes meanwhile is read again
	c.looked.Store(&state)
	all, err := ReadCredentials(c.path)
	if err != nil {
		return err
	}
	m := logins{map[string]scram.StoredCredentials{}, map[string]bool{}}
	for _, line := range all {
		if line.Disabled {
			m.disabled[line.Name] = true
			continue
		}
		v, err := ParseVerifier(line.Verifier)
		if err != nil {
			return err
		}
		m.verifiers[line.Name] = v
	}
	c.current.Store(&m)
	return nil
}

// Lookup returns what verifies the password of an agent; an agent without line, or a disabled one, has nothing.
func (c *Credentials) Lookup(name string) (scram.StoredCredentials, bool) {
	m := c.current.Load()
	if m == nil {
		return scram.StoredCredentials{}, false
	}
	v, ok := m.verifiers[name]
	return v, ok
}

// Disabled tells whether the file takes an agent's login away.
func (c *Credentials) Disabled(name string) bool {
	m := c.current.Load()
	return m != nil && m.disabled[name]
}

// state is what changes with the file: its content, since a second change within a tick of the clock leaves time and size
// alike, and its mode, which may make it unusable.
func (c *Credentials) state() string {
	info, err := os.Stat(c.path)
	if err != nil {
		return err.Error()
	}
	content, err := os.ReadFile(c.path)
	return fmt.Sprintf("%v %v %s", info.Mode(), err, content)
}

// Watch rereads the file when it changes, until ctx ends, and calls changed after each time it could be read. The folder
// is watched, since the file is replaced and not written; where watching fails, the file is looked at every two seconds.
func (c *Credentials) Watch(ctx context.Context, log *slog.Logger, changed func()) {
	var events chan fsnotify.Event
	var errs chan error
	if w, err := fsnotify.NewWatcher(); err == nil {
		defer w.Close()
		if err := w.Add(filepath.Dir(c.path)); err == nil {
			events, errs = w.Events, w.Errors
		}
	}
	reload := func() {
		if err := c.Reload(); err != nil {
			log.Error("the credentials file cannot be used: the logins read before stay in force", "error", err)
			return
		}
		log.Info("credentials reread", "file", c.path)
		changed()
	}
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for {
		if c.state() != *c.looked.Load() {
			reload()
		}
		select {
		case <-ctx.Done():
			return
		case e := <-events:
			if filepath.Base(e.Name) != filepath.Base(c.path) {
				continue
			}
		case err := <-errs:
			log.Warn("watching the credentials file", "error", err)
			errs = nil
			continue
		case <-tick.C:
		}
	}
}
