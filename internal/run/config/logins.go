package config

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/xdg-go/scram"
)

// Credentials has the logins of agents or operators, as they are in the credentials file now.
type Credentials struct {
	path          string
	currentLogins atomic.Pointer[loginTable]
	lastState     atomic.Pointer[string] // fileState at the last Reload
}

// loginTable has the parsed lines of the credentials file.
type loginTable struct {
	verifiers      map[string]scram.StoredCredentials
	disabledAgents map[string]bool
}

// OpenCredentials reads the credentials file. To follow its changes, call [Credentials.Watch].
func OpenCredentials(path string) (*Credentials, error) {
	c := &Credentials{path: path}
	return c, c.Reload()
}

// Reload reads the file again. If this fails, the logins that were read before stay valid.
func (c *Credentials) Reload() error {
	state := c.fileState() // taken before the file is read, so that a later change of the file is noticed
	c.lastState.Store(&state)
	credentials, err := ReadCredentials(c.path)
	if err != nil {
		return err
	}
	m := loginTable{map[string]scram.StoredCredentials{}, map[string]bool{}}
	for _, line := range credentials {
		if line.Disabled {
			m.disabledAgents[line.Name] = true
			continue
		}
		v, err := ParseVerifier(line.Verifier)
		if err != nil {
			return err
		}
		m.verifiers[line.Name] = v
	}
	c.currentLogins.Store(&m)
	return nil
}

// Verifier returns the SCRAM verifier of a password by the name of the agent or operator. It returns false if the file
// does not have the name, or disables it.
func (c *Credentials) Verifier(name string) (scram.StoredCredentials, bool) {
	m := c.currentLogins.Load()
	if m == nil {
		return scram.StoredCredentials{}, false
	}
	v, ok := m.verifiers[name]
	return v, ok
}

// IsDisabled reports whether the file disables the login of an agent or operator.
func (c *Credentials) IsDisabled(name string) bool {
	m := c.currentLogins.Load()
	return m != nil && m.disabledAgents[name]
}

// fileState returns the mode and the content of the file. Time and size would not do: two quick changes may leave both
// the same.
func (c *Credentials) fileState() string {
	info, err := os.Stat(c.path)
	if err != nil {
		return err.Error()
	}
	content, err := os.ReadFile(c.path)
	return fmt.Sprintf("%v %v %s", info.Mode(), err, content)
}

// Watch reads the file again whenever it changes, and calls changed after each successful read, until ctx is canceled.
// It watches the folder, since updates replace the file. Also, it compares the file every two seconds, in case that
// watching does not work.
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
			log.Error("the credentials file cannot be used: the logins read before stay active", "error", err)
			return
		}
		log.Info("credentials reread", "file", c.path)
		changed()
	}
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for {
		if c.fileState() != *c.lastState.Load() {
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
