package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func testKey(t testing.TB, fill byte) Key {
	t.Helper()
	key, err := NewKey([]byte(strings.Repeat(string(fill), 32)))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// writeDecisions opens a log, writes n decisions and closes it.
func writeDecisions(t testing.TB, cfg Config, n int) {
	t.Helper()
	cfg.Log = quiet()
	l, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := l.Decision(decision(fmt.Sprint(i))).Release(); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func heads(t testing.TB, path string, key Key) []RecordHead {
	t.Helper()
	h, err := ReadAnchor(path, key)
	if err != nil {
		t.Fatal(err)
	}
	return []RecordHead{h}
}

// After each start, the anchor names the newest record. A log that lacks this record cannot be opened for writing.
func TestAnchor(t *testing.T) {
	dir, key := t.TempDir(), testKey(t, 'k')
	cfg := Config{Dir: filepath.Join(dir, "audit"), Key: key, AnchorFile: filepath.Join(dir, "anchor")}
	total := uint64(0)
	for _, n := range []int{1, 2, 1, 5} {
		writeDecisions(t, cfg, n)
		total += uint64(n)
		h := heads(t, cfg.AnchorFile, key)
		report, err := VerifyOptions{Key: key, Heads: h}.Walk(cfg.Dir, nil)
		if err != nil || report.LastSeq != total || h[0].Seq != total || report.AnchoredRecord != total || !report.Authenticated {
			t.Fatalf("after %d records: %+v, head %v, %v", total, report, h, err)
		}
	}
	path := filepath.Join(cfg.Dir, segmentName(1))
	fullText, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(fullText), "\n")
	if err := os.WriteFile(path, []byte(strings.Join(lines[:len(lines)-2], "")), 0o600); err != nil {
		t.Fatal(err)
	}
	var chainError *ChainError
	if _, err := Open(Config{Dir: cfg.Dir, Key: key, AnchorFile: cfg.AnchorFile, Log: quiet()}); !errors.As(err, &chainError) ||
		!strings.Contains(err.Error(), "ends at record 8, and record 9 had been written") {
		t.Errorf("Open of a log that was cut: %v", err)
	}
	if _, err := (VerifyOptions{Key: key, Heads: heads(t, cfg.AnchorFile, key)}).Walk(cfg.Dir, nil); !errors.As(err, &chainError) {
		t.Errorf("Walk of a log that was cut: %v", err)
	}
	if err := os.WriteFile(path, fullText, 0o600); err != nil {
		t.Fatal(err)
	}

	// Verification also accepts a head that somebody wrote down, and rejects an invented one.
	headsFile := filepath.Join(dir, "written-down")
	note := fmt.Sprintf("# kept elsewhere\n%d %s\n", 9, heads(t, cfg.AnchorFile, key)[0].Hash)
	if err := os.WriteFile(headsFile, []byte(note), 0o600); err != nil {
		t.Fatal(err)
	}
	if report, err := (VerifyOptions{Heads: heads(t, headsFile, Key{})}).Walk(cfg.Dir, nil); err != nil || report.AnchoredRecord != 9 {
		t.Errorf("a head that was written down: %+v, %v", report, err)
	}
	if _, err := ReadAnchor(cfg.AnchorFile, testKey(t, 'x')); err == nil {
		t.Error("an anchor is taken that was made with another key")
	}
	if err := os.WriteFile(headsFile, []byte("not a head\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadAnchor(headsFile, key); err == nil {
		t.Error("a file that is no anchor is taken for one")
	}

	// If the anchor file is removed, the log goes on, and a record in the chain says so.
	if err := os.Remove(cfg.AnchorFile); err != nil {
		t.Fatal(err)
	}
	writeDecisions(t, cfg, 1)
	if report, err := Verify(cfg.Dir); err != nil || report.Recoveries != 1 {
		t.Errorf("after the anchor was removed: %+v, %v", report, err)
	}
}

// A log whose newest record differs from the one in the anchor is not opened, with a key or without one.
func TestOpenComparesNewestRecordWithAnchor(t *testing.T) {
	for name, key := range map[string]Key{"with a key": testKey(t, 'k'), "without": {}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			cfg := Config{Dir: filepath.Join(dir, "audit"), Key: key, AnchorFile: filepath.Join(dir, "anchor"), Log: quiet()}
			writeDecisions(t, cfg, 2)
			path := filepath.Join(cfg.Dir, segmentName(1))
			two, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			writeDecisions(t, cfg, 1)
			if err := os.WriteFile(path, two, 0o600); err != nil {
				t.Fatal(err)
			}
			otherConfig := cfg
			otherConfig.AnchorFile = ""
			writeDecisions(t, otherConfig, 1)
			if _, err := Verify(cfg.Dir); err != nil {
				t.Fatalf("the chain alone does not hold: %v", err)
			}
			var chainError *ChainError
			if l, err := Open(cfg); !errors.As(err, &chainError) {
				if err == nil {
					closeLog(t, l)
				}
				t.Errorf("a log with another newest record is gone on with: %v", err)
			}
		})
	}
}

// A crash of the machine may leave one slot of the anchor incomplete. The other one is complete.
func TestTornAnchor(t *testing.T) {
	dir, key := t.TempDir(), testKey(t, 'k')
	path := filepath.Join(dir, "anchor")
	a, _, err := openAnchor(path, key)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if err := a.writeHead(RecordHead{uint64(i + 1), strings.Repeat(fmt.Sprint(i), 64)}, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	a.close()
	fullText, err := os.ReadFile(path)
	if err != nil || len(fullText) != 2*slotSize {
		t.Fatalf("%d bytes, %v", len(fullText), err)
	}
	for i := range 2 {
		tornText := []byte(string(fullText))
		copy(tornText[i*slotSize+20:], "\x00\x00\x00\x00")
		if err := os.WriteFile(path, tornText, 0o600); err != nil {
			t.Fatal(err)
		}
		if h := heads(t, path, key)[0]; h.Seq < 4 {
			t.Errorf("with slot %d torn the head is %d", i, h.Seq)
		}
	}
	copy(fullText[20:], "\x00")
	copy(fullText[slotSize+20:], "\x00")
	if err := os.WriteFile(path, fullText, 0o600); err != nil {
		t.Fatal(err)
	}
	if h, err := ReadAnchor(path, key); err == nil {
		t.Errorf("with both slots torn the head is %v", h)
	}
}

// The key is created once. It is not created again if records need the old one, and is refused if others may read its
// file.
func TestEnsureKey(t *testing.T) {
	dir := t.TempDir()
	path, records := filepath.Join(dir, "audit.key"), filepath.Join(dir, "audit")
	key, err := EnsureKey(path, Folder(records))
	if err != nil {
		t.Fatal(err)
	}
	sameKey, err := EnsureKey(path, Folder(records))
	if err != nil || sameKey.ID() != key.ID() || len(key.ID()) != 8 {
		t.Fatalf("%s, then %s, %v", key.ID(), sameKey.ID(), err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := EnsureKey(path, Folder(records)); err == nil {
		t.Error("a key is taken that others may read")
	}
	writeDecisions(t, Config{Dir: records, Key: key}, 1)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := EnsureKey(path, Folder(records)); err == nil {
		t.Error("a new key is made although records need the old one")
	}
}
