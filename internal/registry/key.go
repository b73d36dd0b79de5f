package registry

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pgconsent/pgconsent/internal/run/secretfile"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Keys are the keys of the key file, by number. The newest one signs, and all verify. When the file changes, the
// process uses its new keys without a restart.
type Keys struct{ *keyRing }

type keyRing struct {
	path string // the path of the key file; "": the keys do not come from a file

	mu        sync.Mutex
	fileInfo  os.FileInfo
	checkedAt time.Time // when the file was last checked
	byNumber  map[int32]derivedKeys
	newest    int32
	// keys that were removed from the file, and until when they still verify: a reader may just be reading a record that
	// was made with them
	retiredKeys map[int32]time.Time
}

// retiredKeyLifetime is longer than any reader works on one snapshot of the registry. Only audit verify may take
// longer; if it needs a retired key, it starts again.
const retiredKeyLifetime = time.Minute

// isZero reports whether no keys were loaded.
func (k Keys) isZero() bool { return k.keyRing == nil }

// signingKey returns the number and the newest key that the file has now.
func (k Keys) signingKey() (int32, derivedKeys) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reloadIfChanged()
	return k.newest, k.byNumber[k.newest]
}

// keyByNumber returns the key with a number; ok is false if there is none.
func (k Keys) keyByNumber(number int32) (derivedKeys, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	// Reload even if the key is in memory: another process may have removed it from the file.
	if number != k.newest && time.Since(k.checkedAt) > time.Second {
		k.reloadIfChanged()
	}
	s, ok := k.byNumber[number]
	if until, isRetired := k.retiredKeys[number]; isRetired && time.Now().After(until) {
		delete(k.byNumber, number)
		delete(k.retiredKeys, number)
		ok = false
	}
	if !ok {
		k.reloadIfChanged()
		s, ok = k.byNumber[number]
	}
	return s, ok
}

// reloadIfChanged reads the file again if it has changed. If the file cannot be read, the keys in memory stay. The
// caller holds mu.
func (r *keyRing) reloadIfChanged() {
	if r.path == "" {
		return
	}
	r.checkedAt = time.Now()
	info, err := os.Stat(r.path)
	if err != nil || r.fileInfo != nil && os.SameFile(info, r.fileInfo) && info.ModTime().Equal(r.fileInfo.ModTime()) &&
		info.Size() == r.fileInfo.Size() {
		return
	}
	newKeys, err := LoadKeys(r.path)
	if err != nil {
		return
	}
	for number, s := range r.byNumber {
		if _, ok := newKeys.byNumber[number]; ok {
			continue
		}
		if until, ok := r.retiredKeys[number]; !ok {
			newKeys.retiredKeys[number] = time.Now().Add(retiredKeyLifetime)
		} else {
			newKeys.retiredKeys[number] = until
		}
		newKeys.byNumber[number] = s
	}
	r.fileInfo, r.byNumber, r.newest, r.retiredKeys = info, newKeys.byNumber, newKeys.newest, newKeys.retiredKeys
}

// derivedKeys are the two keys derived from one key of the file: one for codes (MACs), one for encrypting subjects'
// keys.
type derivedKeys struct{ mac, wrapping [sha256.Size]byte }

func deriveKeys(key []byte) derivedKeys {
	return derivedKeys{deriveKey(key, "pgconsent consent mac 1"), deriveKey(key, "pgconsent consent wrap 1")}
}

func deriveKey(key []byte, use string) [sha256.Size]byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(use))
	return [sha256.Size]byte(h.Sum(nil))
}

const keyFileHeader = "# pgconsent consent key: number and 32 bytes. Keep a copy apart from the database's backups; " +
	"without it consent records prove nothing and erase nothing.\n"

// MakeKey writes a new key file with mode 0600, unless the file exists, and reports whether it wrote one.
func MakeKey(path string) (isCreated bool, err error) {
	if _, err := os.Stat(path); err == nil {
		return false, nil
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // rand.Read never fails
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return false, keyError(path, err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, keyError(path, err)
	}
	_, err = fmt.Fprintf(f, "%s1 %s\n", keyFileHeader, hex.EncodeToString(key))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		_ = os.Remove(path)
		return false, keyError(path, err)
	}
	return true, syncDir(filepath.Dir(path))
}

// LoadKeys reads a key file. It returns an error if other users may read the file.
func LoadKeys(path string) (Keys, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Keys{}, keyError(path, err)
	}
	if secretfile.IsExposed(info) {
		return Keys{}, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal,
			"%s can be read or written by others (mode %04o)", path, info.Mode().Perm()).
			WithHint("chmod 600 %s", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Keys{}, keyError(path, err)
	}
	k, err := parseKeys(text)
	if err == nil {
		k.path, k.fileInfo = path, info
	}
	if err != nil {
		return Keys{}, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal, "%s: %v", path, err).
			WithHint("Restore it from your copy. A new key does not verify what the old one has signed.")
	}
	return k, nil
}

// nextKeyPrefix begins the line of a key that verifies but does not sign yet.
const nextKeyPrefix = "next "

func parseKeys(text []byte) (Keys, error) {
	k := Keys{&keyRing{byNumber: map[int32]derivedKeys{}, retiredKeys: map[int32]time.Time{}}}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		rest, next := strings.CutPrefix(line, nextKeyPrefix)
		number, rest, _ := strings.Cut(rest, " ")
		id, err := strconv.ParseInt(number, 10, 32)
		key, hexErr := hex.DecodeString(rest)
		if err != nil || hexErr != nil || id < 1 || len(key) != 32 {
			return Keys{}, fmt.Errorf("line %d is not a number and 32 bytes in hex", n)
		}
		if _, isDuplicate := k.byNumber[int32(id)]; isDuplicate {
			return Keys{}, fmt.Errorf("line %d: key %d is there twice", n, id)
		}
		k.byNumber[int32(id)] = deriveKeys(key)
		if !next {
			k.newest = max(k.newest, int32(id))
		}
	}
	if err := lines.Err(); err != nil {
		return Keys{}, err
	}
	if k.newest == 0 {
		return Keys{}, errors.New("it has no key in use")
	}
	return k, nil
}

func keyError(path string, err error) error {
	return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal, "the consent key cannot be used: %v", err).
		WithHint("consent.key of the configuration names it; pgconsent migrate makes it. Where records exist "+
			"already, restore %s from your copy.", filepath.Base(path))
}
