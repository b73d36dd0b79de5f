package registry

import (
	"context"
	"crypto/hmac"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// AnchorError is the error that the anchor file cannot be read or written.
type AnchorError struct {
	err        *sqlstate.Error
	IsRecorded bool // the change was recorded nevertheless, and is active
}

func (e *AnchorError) Error() string { return e.err.Error() }

func (e *AnchorError) Unwrap() error { return e.err }

// Name returns the error's name, for [consent.Named].
func (*AnchorError) Name() string { return "ConsentAnchorError" }

func newAnchorError(isRecorded bool, err error) *AnchorError {
	message, hint := "the consent anchor cannot be used: nothing was changed",
		"consent.anchor of the configuration names a file; its folder must be writable and have room."
	if isRecorded {
		message = "the change is recorded and active, but the consent anchor could not be written"
	}
	return &AnchorError{sqlstate.New(sqlstate.IOError, sqlstate.ReasonConsent, "%s", message).WithHint("%s",
		hint).WithCause(err), isRecorded}
}

// recordHead identifies the last record of a registry by its number and hash.
type recordHead struct {
	Registry uuid
	Number   int64
	Hash     []byte
}

// anchorEntry is a [recordHead] as the anchor file has it, with a code (MAC) made with a key of the proxy.
type anchorEntry struct {
	Registry  string    `json:"registry"`
	Number    int64     `json:"number"`
	Hash      string    `json:"hash"`
	Time      time.Time `json:"time"`
	KeyNumber int32     `json:"kid"`
	Mac       string    `json:"mac"`
}

// anchorFile is the content of the anchor file.
type anchorFile struct {
	Version int                    `json:"v"`
	Anchors map[string]anchorEntry `json:"anchors"` // the last records, by the names of the databases in the configuration
}

// lockedAnchor is the anchor file while this process holds its lock, so that no other process changes it.
type lockedAnchor struct {
	path, database string
	keys           Keys
	lock           *os.File
	content        anchorFile
	isFileWritten  bool
}

// openAnchor waits for the lock of the anchor file and reads the file. A missing file counts as empty.
func openAnchor(ctx context.Context, path, database string, k Keys) (*lockedAnchor, error) {
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, newAnchorError(false, err)
	}
	for wait := time.Millisecond; ; wait = min(2*wait, 20*time.Millisecond) {
		err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			_ = lock.Close()
			return nil, newAnchorError(false, err)
		}
		select {
		case <-ctx.Done():
			_ = lock.Close()
			return nil, newAnchorError(false, fmt.Errorf("another process holds its lock: %w", ctx.Err()))
		case <-time.After(wait):
		}
	}
	a := &lockedAnchor{path: path, database: database, keys: k, lock: lock}
	if a.content, err = readAnchor(path); err != nil {
		a.close()
		return nil, newAnchorError(false, err)
	}
	return a, nil
}

func readAnchor(path string) (anchorFile, error) {
	f := anchorFile{Version: 1, Anchors: map[string]anchorEntry{}}
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(text, &f); err != nil {
		return f, fmt.Errorf("%s is not an anchor: %w", path, err)
	}
	if f.Version != 1 {
		return f, fmt.Errorf("%s has format version %d, which this pgconsent does not read", path, f.Version)
	}
	if f.Anchors == nil {
		f.Anchors = map[string]anchorEntry{}
	}
	return f, nil
}

// head returns the last record that the anchor names for a database; ok is false if there is none. An error means that
// somebody has changed the file.
func (f anchorFile) head(database string, k Keys) (recordHead, bool, error) {
	a, ok := f.Anchors[database]
	if !ok {
		return recordHead{}, false, nil
	}
	var h recordHead
	id, err1 := hex.DecodeString(a.Registry)
	hash, err2 := hex.DecodeString(a.Hash)
	mac, err3 := hex.DecodeString(a.Mac)
	if err := errors.Join(err1, err2, err3); err != nil || len(id) != len(h.Registry) || a.Number < 0 || len(hash) != 32 {
		return recordHead{}, true, errors.New("the anchor is not one of pgconsent's")
	}
	h = recordHead{uuid(id), a.Number, hash}
	if want := k.anchorMAC(a.KeyNumber, h); want == nil || !hmac.Equal(want, mac) {
		return recordHead{}, true, errors.New("the anchor was changed, or is of another key file")
	}
	return h, true, nil
}

func (k Keys) anchorMAC(kid int32, h recordHead) []byte {
	return k.recordMAC(kid, h.Registry, fmt.Appendf(nil, "anchor|%d|%x", h.Number, h.Hash))
}

func (a *lockedAnchor) head() (recordHead, bool, error) { return a.content.head(a.database, a.keys) }

// prepare writes the new content to a temporary file, so that a full disk is noticed before the change is committed.
func (a *lockedAnchor) prepare(h recordHead, now time.Time) error {
	kid, _ := a.keys.signingKey()
	mac := a.keys.anchorMAC(kid, h)
	a.content.Anchors[a.database] = anchorEntry{hex.EncodeToString(h.Registry[:]), h.Number, hex.EncodeToString(h.Hash),
		now.UTC(), kid, hex.EncodeToString(mac)}
	return a.write()
}

// write writes the content of the anchor to the temporary file.
func (a *lockedAnchor) write() error {
	text, err := json.MarshalIndent(a.content, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.OpenFile(a.temporaryPath(), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		_ = os.Remove(a.temporaryPath())
		return err
	}
	a.isFileWritten = true
	return nil
}

// commit replaces the anchor file with the prepared temporary file, durably.
func (a *lockedAnchor) commit() error {
	if err := os.Rename(a.temporaryPath(), a.path); err != nil {
		return err
	}
	a.isFileWritten = false
	return syncDir(filepath.Dir(a.path))
}

func (a *lockedAnchor) temporaryPath() string { return a.path + ".new" }

// close releases the lock, and removes a temporary file that was not committed.
func (a *lockedAnchor) close() {
	if a.isFileWritten {
		_ = os.Remove(a.temporaryPath())
	}
	_ = a.lock.Close()
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
