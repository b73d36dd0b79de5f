package registry

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// KeyFile says which keys a key file has, without the keys themselves.
type KeyFile struct {
	SigningKey int32   `json:"key"`            // the number of the key that signs
	OlderKeys  []int32 `json:"older"`          // the numbers of the keys that only verify
	NextKey    int32   `json:"next,omitempty"` // the number of a key that does not sign yet; 0: there is none
}

// ReadKeyFile returns which keys a key file has.
func ReadKeyFile(path string) (KeyFile, error) {
	lines, err := keyLines(path)
	if err != nil {
		return KeyFile{}, err
	}
	out := KeyFile{OlderKeys: []int32{}}
	for _, l := range lines {
		switch {
		case l.number == 0:
		case l.isNext:
			out.NextKey = l.number
		default:
			out.OlderKeys = append(out.OlderKeys, l.number)
			out.SigningKey = max(out.SigningKey, l.number)
		}
	}
	out.OlderKeys = slices.DeleteFunc(out.OlderKeys, func(n int32) bool { return n == out.SigningKey })
	return out, nil
}

// AddNextKey adds a key that does not sign yet, unless the file has one. The administrator can then copy the file to
// other machines before a record is signed with that key.
func AddNextKey(path string) error {
	return changeKeys(path, func(lines []keyLine) ([]keyLine, error) {
		newest := int32(0)
		for _, l := range lines {
			if newest = max(newest, l.number); l.isNext {
				return lines, nil
			}
		}
		key := make([]byte, 32)
		_, _ = rand.Read(key) // rand.Read never fails
		return append(lines, keyLine{number: newest + 1, isNext: true,
			text: fmt.Sprintf("%s%d %s", nextKeyPrefix, newest+1, hex.EncodeToString(key))}), nil
	})
}

// UseNextKey makes the key that AddNextKey added sign new records. Older keys still verify.
func UseNextKey(path string) error {
	return changeKeys(path, func(lines []keyLine) ([]keyLine, error) {
		for i, l := range lines {
			lines[i].text, lines[i].isNext = strings.TrimPrefix(l.text, nextKeyPrefix), false
		}
		return lines, nil
	})
}

// RetireOlderKeys removes the older keys from the file. It holds the locks of the registries that use the file, and
// returns a *KeyInUseError if one of them still needs an older key.
func RetireOlderKeys(ctx context.Context, path string, registries []*Registry) error {
	for _, r := range registries {
		tx, release, err := r.lockRegistry(ctx)
		if err != nil {
			return err
		}
		defer release()
		// The anchor is not locked: a process that has it locked and waits for the registry will sign it with the newest key.
		newest, _ := r.Keys.signingKey()
		o, err := r.countOlderKeyUse(ctx, tx, newest)
		if err != nil {
			return err
		}
		if !o.IsZero() {
			return &KeyInUseError{Database: r.Database, Use: o}
		}
	}
	return changeKeys(path, func(lines []keyLine) ([]keyLine, error) {
		newest := int32(0)
		for _, l := range lines {
			if !l.isNext {
				newest = max(newest, l.number)
			}
		}
		return slices.DeleteFunc(lines, func(l keyLine) bool { return l.number > 0 && l.number < newest }), nil
	})
}

// KeyInUseError is the error that a registry still needs an older key.
type KeyInUseError struct {
	Database string
	Use      OlderKeyUse
}

func (e *KeyInUseError) Error() string {
	if e.Use.Notes > 0 {
		return fmt.Sprintf("the older consent key is needed for %d notes of deletions in database %s, which the "+
			"next sweep records", e.Use.Notes, e.Database)
	}
	return fmt.Sprintf("the older consent key is needed for %d people and %d records of database %s", e.Use.Subjects,
		e.Use.Records, e.Database)
}

// keyLine is a line of a key file; number is 0 for a line without a key.
type keyLine struct {
	number int32
	isNext bool
	text   string
}

func keyLines(path string) ([]keyLine, error) {
	if _, err := LoadKeys(path); err != nil { // LoadKeys checks that the file is a key file
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, keyError(path, err)
	}
	var out []keyLine
	for line := range strings.Lines(string(text)) {
		l := keyLine{text: strings.TrimSpace(line)}
		if rest, next := strings.CutPrefix(l.text, nextKeyPrefix); l.text != "" && l.text[0] != '#' {
			number, _, _ := strings.Cut(rest, " ")
			n, err := strconv.ParseInt(number, 10, 32)
			if err != nil {
				return nil, keyError(path, err)
			}
			l.number, l.isNext = int32(n), next
		}
		out = append(out, l)
	}
	return out, nil
}

// changeKeys replaces the key file atomically; the new file has the same owner. Only one process at a time can do so.
func changeKeys(path string, change func([]keyLine) ([]keyLine, error)) error {
	fail := func(err error) error {
		return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal, "the consent key file cannot be changed: %v", err).
			WithHint("Run this as the user that owns %s; its folder must be writable. Where keys are given to "+
				"pgconsent from elsewhere, change a copy and put that there.", path)
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return fail(err)
	}
	defer folder.Close()
	if err := syscall.Flock(int(folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fail(fmt.Errorf("somebody else changes it: %w", err))
	}
	lines, err := keyLines(path)
	if err != nil {
		return err
	}
	before := slices.Clone(lines)
	if lines, err = change(lines); err != nil {
		return err
	}
	if slices.Equal(lines, before) {
		return nil
	}
	var text strings.Builder
	for _, l := range lines {
		text.WriteString(l.text + "\n")
	}
	if _, err := parseKeys([]byte(text.String())); err != nil {
		return fail(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return fail(err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // CreateTemp makes the file with mode 0600
	if err != nil {
		return fail(err)
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(text.String())
	if st, ok := info.Sys().(*syscall.Stat_t); ok && (int(st.Uid) != os.Geteuid() || int(st.Gid) != os.Getegid()) {
		err = errors.Join(err, f.Chown(int(st.Uid), int(st.Gid)))
	}
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fail(err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fail(err)
	}
	return syncDir(filepath.Dir(path))
}
