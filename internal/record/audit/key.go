package audit

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pgconsent/pgconsent/internal/run/secretfile"
)

// Key signs records: it makes their codes. It is stored outside the log's directory, so that write access to the
// directory is not enough to make a valid chain.
type Key struct {
	secret []byte
	id     string
}

// NewKey returns a key with a secret of at least 32 bytes.
func NewKey(secret []byte) (Key, error) {
	if len(secret) < 32 {
		return Key{}, errors.New("an audit key has at least 32 bytes")
	}
	k := Key{secret: bytes.Clone(secret)}
	k.id = hex.EncodeToString(k.derive("pgconsent audit key id"))[:kidLen]
	return k, nil
}

// LoadKey reads a key file: 64 hexadecimal digits, mode 0600. If the file is missing, the error is fs.ErrNotExist.
func LoadKey(path string) (Key, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Key{}, fmt.Errorf("audit key: %w", err)
	}
	if secretfile.IsExposed(info) {
		return Key{}, fmt.Errorf("audit key: %s can be read or written by others (mode %04o): chmod 600 %s",
			path, info.Mode().Perm(), path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Key{}, fmt.Errorf("audit key: %w", err)
	}
	secret, err := hex.DecodeString(string(bytes.TrimSpace(text)))
	if err != nil || len(secret) < 32 {
		return Key{}, fmt.Errorf("audit key: %s has no key: 64 hexadecimal digits", path)
	}
	return NewKey(secret)
}

// EnsureKey loads a key file. If the file is missing, it makes a new one, unless the newest records were signed with a
// key.
func EnsureKey(path string, records Source) (Key, error) {
	key, err := LoadKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if isNeeded, err := hasCodes(records); err != nil {
		return Key{}, err
	} else if isNeeded {
		return Key{}, fmt.Errorf(
			"audit key: %s is missing, and the records in %s were authenticated with it: put it back, or keep "+
				"them as evidence and start with a new chain", path, records)
	}
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // rand.Read never fails
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return Key{}, fmt.Errorf("audit key: %w", err)
	}
	if err := writeFile(path, []byte(hex.EncodeToString(secret)+"\n")); err != nil {
		return Key{}, fmt.Errorf("audit key: %w", err)
	}
	return NewKey(secret)
}

// writeFile makes a new file with this text. A crash leaves either the whole file or none.
func writeFile(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // CreateTemp makes the file with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// hasCodes reports whether the newest records have codes, so that their key is needed.
func hasCodes(records Source) (bool, error) {
	segments, err := records.Segments()
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(segments) == 0 {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for i := len(segments) - 1; i >= 0; i-- {
		first, err := firstRecord(records, segments[i])
		if err != nil {
			return false, err
		}
		if first != nil {
			return first.KeyID != "", nil
		}
	}
	return false, nil
}

// ID returns a text that identifies the key in records and reveals nothing about it.
func (k Key) ID() string { return k.id }

func (k Key) derive(parts ...string) []byte {
	mac := hmac.New(sha256.New, k.secret)
	for _, p := range parts {
		mac.Write([]byte(p))
		mac.Write([]byte{0})
	}
	return mac.Sum(nil)
}

// recordCode returns the code of a record: a MAC of the record's hash.
func (k Key) recordCode(hash string) string { return hex.EncodeToString(k.derive("record", hash)) }

// CheckCode checks the code of the record with this hash. It returns what is wrong with the code, or "".
func (k Key) CheckCode(hash, kid, mac string) string {
	switch {
	case k.secret == nil:
		return ""
	case mac == "":
		return "it was written without the key"
	case kid != k.ID():
		return fmt.Sprintf("it was authenticated with key %s, which is not the one given", kid)
	case !hmac.Equal([]byte(mac), []byte(k.recordCode(hash))):
		return "it was not written with the key: its code does not fit"
	default:
		return ""
	}
}

// headCode returns the code of a [RecordHead] in an anchor.
func (k Key) headCode(seq, hash string) string {
	return hex.EncodeToString(k.derive("head", seq, hash))
}

// Commit returns a commitment, which the log stores in place of a row's key. Whoever has the audit key and the row's
// key can check whether they match, within one session. table is the name as records have it. key has the columns of
// the primary key in order, as PostgreSQL prints them.
func (k Key) Commit(session, table string, key ...string) string {
	if k.secret == nil {
		return ""
	}
	return k.Committer(session, table)(key...)
}

// Committer returns a function that makes the commitments of [Key.Commit] for many rows of one table in one session.
// Only one goroutine may call the function.
func (k Key) Committer(session, table string) func(key ...string) string {
	if k.secret == nil {
		return func(...string) string { return "" }
	}
	mac := hmac.New(sha256.New, k.secret)
	prefix := []byte("row\x00" + session + "\x00" + table + "\x00")
	var text, sum []byte
	return func(key ...string) string {
		text = append(text[:0], prefix...)
		for _, part := range key {
			text = append(append(text, part...), 0)
		}
		mac.Reset()
		mac.Write(text)
		sum = mac.Sum(sum[:0])
		return hex.EncodeToString(sum[:12])
	}
}
