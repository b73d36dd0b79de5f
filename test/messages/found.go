package messages

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/test/instance"
)

const foundDir = "test/messages/testdata/found"

// saveSequence writes a sequence to a file that Replay plays. The file has a description of the difference, and then a
// line for each message.
func saveSequence(t testing.TB, s sequence, setting policySetting, why string, seed uint64) {
	t.Helper()
	firstLine, _, _ := strings.Cut(why, "\n")
	text := fmt.Sprintf("%s, %s (seed %d).\n%s", firstLine, setting.name, seed, s)
	sum := sha256.Sum256([]byte(text))
	dir := instance.RepoPath(t, foundDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, hex.EncodeToString(sum[:6])+".txt")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("saved as %s", file)
}

// Replay plays the saved sequences.
func Replay(t *testing.T, settings []policySetting) {
	files, err := filepath.Glob(filepath.Join(instance.RepoPath(t, foundDir), "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, setting := range settings {
		st := newDatabaseTrio(t, setting)
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, lines, _ := strings.Cut(string(text), "\n")
			s, err := readSequence([]byte(lines))
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if why, got := st.compare(s); why != "" {
				t.Errorf("%s, %s: %s\n%s", filepath.Base(file), setting.name, why, transcriptDiff(got))
			}
		}
	}
}
