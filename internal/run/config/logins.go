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

// Credentials are the logins of agents as the file has them at the moment.
type Credentials struct {
	path          string
	currentLogins atomic.Pointer[loginTable]
	lastState     atomic.Pointer[string] // the state of the file at the last Reload
}

// loginTable are the parsed lines of the file.
type loginTable struct {
	verifiers      map[string]scram.StoredCredentials
	disabledAgents map[string]bool
}

// OpenCredentials reads the file; [Credentials.Watch] follows its changes.
func OpenCredentials(path string) (*Credentials, error) {
	c := &Credentials{path: path}
	return c, c.Reload()
}

// Reload reads the file again. After an error the logins that were read before stay active.
func (c *Credentials) Reload() error {
	state := c.fileState() // the state is taken before the file is read, so that a change meanwhile is read again
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

// Verifier returns the credentials that verify the password of an agent. An agent without a line, or a disabled one,
// has none.
func (c *Credentials) Verifier(name string) (scram.StoredCredentials, bool) {
	m := c.currentLogins.Load()
	if m == nil {
		return scram.StoredCredentials{}, false
	}
	v, ok := m.verifiers[name]
	return v, ok
}

// IsDisabled tells whether the file disables an agent's login.
func (c *Credentials) IsDisabled(name string) bool {
	m := c.currentLogins.Load()
	return m != nil && m.disabledAgents[name]
}

// fileState returns the content and the mode of the file. Two changes within a tick of the clock may leave time and
// size the same, and another mode may make the file unusable.
func (c *Credentials) fileState() string {
	info, err := os.Stat(c.path)
	if err != nil {
		return err.Error()
	}
	content, err := os.ReadFile(c.path)
	return fmt.Sprintf("%v %v %s", info.Mode(), err, content)
}

// Watch rereads the file when it changes, until ctx ends, and calls changed after each time it could be read. It
// watches the folder, since the file is replaced and not written. Where watching fails, it checks the file every two
// seconds.
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
