package audit

import (
	"bytes"
	"crypto/hmac"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// RecordHead names a record that was certainly written, by its number and its hash.
type RecordHead struct {
	Seq  uint64
	Hash string
}

// anchorWriter writes a file outside the log's directory with the number and hash of the newest durable record. It
// writes two slots alternately, so that a crash leaves one of them intact.
type anchorWriter struct {
	file     *os.File
	key      Key
	nextSlot int
	lastHead RecordHead
	syncedAt time.Time // when the file was last synced to disk
}

const (
	slotSize = 512
	// anchorInterval is how often the file is synced: a crash of the machine can set the anchor back by that much.
	anchorInterval = time.Second
)

// anchorSlot is a [RecordHead] as the file has it.
type anchorSlot struct {
	Version int       `json:"v"`
	Seq     uint64    `json:"seq"`
	Hash    string    `json:"hash"`
	Time    time.Time `json:"time"`
	KeyID   string    `json:"kid,omitempty"`
	MAC     string    `json:"mac,omitempty"`
}

// ReadAnchor returns the newest head in an anchor file of pgconsent, or in a text with lines "SEQ HASH" that somebody
// wrote down. With a key it ignores heads that other keys have signed. If the file is missing, the error is
// fs.ErrNotExist.
func ReadAnchor(path string, key Key) (RecordHead, error) {
	newestHead, _, err := readAnchor(path, key)
	return newestHead, err
}

// readAnchor is like [ReadAnchor], and also returns in which slot of the file the head is.
func readAnchor(path string, key Key) (newest RecordHead, slot int, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return newest, 0, fmt.Errorf("audit anchor: %w", err)
	}
	hasSlot, found := false, false
	for slotIndex, line := range bytes.Split(b, []byte("\n")) {
		line = bytes.Trim(line, "\x00 \t\r") // an unused slot consists of zeros
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		hasSlot = true
		h, err := readHead(line, key)
		switch {
		case err != nil && line[0] == '{': // this slot is damaged, but the other one may be intact
			continue
		case err != nil:
			return newest, 0, fmt.Errorf("audit anchor: %s line %d: %w", path, slotIndex+1, err)
		case h.Seq >= newest.Seq:
			newest, slot, found = h, bytes.Index(b, line)/slotSize, true
		}
	}
	if hasSlot && !found {
		return newest, 0, fmt.Errorf(
			"audit anchor: %s has no valid head: it was changed, or made with another key", path)
	}
	return newest, slot, nil
}

func readHead(line []byte, key Key) (RecordHead, error) {
	if line[0] != '{' {
		seq, hash, _ := strings.Cut(string(line), " ")
		n, err := strconv.ParseUint(seq, 10, 64)
		hash = strings.TrimSpace(hash)
		if err != nil || len(hash) != len(genesisHash) {
			return RecordHead{}, errors.New("not a head: a line has the number of a record and its hash")
		}
		return RecordHead{n, hash}, nil
	}
	var s anchorSlot
	if err := json.Unmarshal(line, &s); err != nil {
		return RecordHead{}, errors.New("not a head")
	}
	switch {
	case s.Version != 1 || len(s.Hash) != len(genesisHash):
		return RecordHead{}, errors.New("not a head that this pgconsent reads")
	case key.secret != nil && !hmac.Equal([]byte(s.MAC), []byte(key.headCode(strconv.FormatUint(s.Seq, 10), s.Hash))):
		return RecordHead{}, errors.New("the head was changed, or made with another key")
	}
	return RecordHead{s.Seq, s.Hash}, nil
}

// openAnchor opens an anchor file, or makes a new one.
func openAnchor(path string, key Key) (*anchorWriter, bool, error) {
	newestHead, newestSlot, err := readAnchor(path, key)
	isMissing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !isMissing {
		return nil, false, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, false, fmt.Errorf("audit anchor: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, false, fmt.Errorf("audit anchor: %w", err)
	}
	a := &anchorWriter{file: f, key: key, lastHead: newestHead, nextSlot: 1 - min(newestSlot, 1)}
	if err := errors.Join(f.Truncate(2*slotSize), syncDir(filepath.Dir(path))); err != nil {
		f.Close()
		return nil, false, fmt.Errorf("audit anchor: %w", err)
	}
	return a, isMissing, nil
}

// writeHead writes a head. The caller has made the record durable before, so that the anchor never names a record that
// a crash can lose.
func (a *anchorWriter) writeHead(h RecordHead, now time.Time) error {
	if h == a.lastHead || h.Seq == 0 {
		return nil
	}
	s := anchorSlot{Version: 1, Seq: h.Seq, Hash: h.Hash, Time: now.UTC(), KeyID: a.key.ID()}
	if a.key.secret != nil {
		s.MAC = a.key.headCode(strconv.FormatUint(h.Seq, 10), h.Hash)
	}
	line, err := json.Marshal(s)
	if err != nil {
		return err
	}
	line = append(line, bytes.Repeat([]byte{' '}, slotSize-1-len(line))...)
	line = append(line, '\n')
	if _, err := a.file.WriteAt(line, int64(a.nextSlot)*slotSize); err != nil {
		return err
	}
	if now.Sub(a.syncedAt) >= anchorInterval {
		if err := (segmentFile{a.file}).Sync(); err != nil {
			return err
		}
		a.syncedAt = now
	}
	a.nextSlot, a.lastHead = 1-a.nextSlot, h
	return nil
}

func (a *anchorWriter) close() {
	_ = a.file.Sync()
	a.file.Close()
}
