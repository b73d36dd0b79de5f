package config

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Credential is a line of the credentials file: the login of one agent or operator.
type Credential struct {
	Name     string
	Verifier string // SCRAM verifier; without a password: [AuthToken] or [AuthCertificate]
	Disabled bool   // written as ! before the verifier
}

// ReadCredentials reads the credentials file. It returns no credentials if the file does not exist.
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
	seenNames := map[string]bool{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fail := func(format string, args ...any) error {
			return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal, "%s:%d: %s", path,
				n, fmt.Sprintf(format, args...)).
				WithHint("Lines read: name SCRAM-SHA-256$… ; pgconsent agent add and operator add write them.")
		}
		name, v, ok := strings.Cut(line, " ")
		if !ok || !agentName.MatchString(name) {
			return nil, fail("not a name and a verifier")
		}
		if seenNames[name] {
			return nil, fail("a second line for %s", name)
		}
		seenNames[name] = true
		c := Credential{Name: name, Verifier: strings.TrimSpace(v)}
		c.Verifier, c.Disabled = strings.CutPrefix(c.Verifier, "!")
		if noPassword := c.Verifier == AuthToken || c.Verifier == AuthCertificate; !noPassword || !c.Disabled {
			if _, err := ParseVerifier(c.Verifier); err != nil {
				return nil, fail("%v", err)
			}
		}
		out = append(out, c)
	}
	return out, lines.Err()
}

// SetCredential adds a line to the credentials file, or replaces the line with the same name.
func SetCredential(path string, c Credential) error {
	return updateCredentials(path, func(credentials []Credential) ([]Credential, error) {
		for i := range credentials {
			if credentials[i].Name == c.Name {
				credentials[i] = c
				return credentials, nil
			}
		}
		return append(credentials, c), nil
	})
}

// EnableWithoutPassword undoes [DisableWithoutPassword]: it removes the agent's line.
func EnableWithoutPassword(path, name string) error {
	return updateCredentials(path, func(credentials []Credential) ([]Credential, error) {
		return slices.DeleteFunc(credentials, func(c Credential) bool { return c.Name == name }), nil
	})
}

// DisableWithoutPassword disables an agent that logs in by tokens or a certificate: it adds a line for the agent. auth
// is [AuthToken] or [AuthCertificate].
func DisableWithoutPassword(path, name, auth string) error {
	return SetCredential(path, Credential{Name: name, Verifier: auth, Disabled: true})
}

// DisableCredential disables the login of an agent or operator. The line stays in the file.
func DisableCredential(path, name string) error {
	return updateCredentials(path, func(credentials []Credential) ([]Credential, error) {
		for i := range credentials {
			if credentials[i].Name == name {
				credentials[i].Disabled = true
				return credentials, nil
			}
		}
		return nil, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonIdentity, "%s has no login for %q", path, name).
			WithHint("pgconsent agent list, or operator list, shows those there are.")
	})
}

func updateCredentials(path string, change func([]Credential) ([]Credential, error)) error {
	return UpdateSecret(path, func() ([]byte, error) {
		credentials, err := ReadCredentials(path)
		if err == nil {
			credentials, err = change(credentials)
		}
		var b bytes.Buffer
		for _, c := range credentials {
			mark := ""
			if c.Disabled {
				mark = "!"
			}
			fmt.Fprintf(&b, "%s %s%s\n", c.Name, mark, c.Verifier)
		}
		return b.Bytes(), err
	})
}

// UpdateSecret replaces the content of a file with what change returns. It holds a lock, so that concurrent updates do
// not lose a change, and readers see either the old or the new content.
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

// WriteSecret writes a file with mode 0600. Readers see either the old or the new content, never a part.
func WriteSecret(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // CreateTemp sets mode 0600
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
