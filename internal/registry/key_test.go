package registry

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A process that only reads the registry also notices that a key was removed from the key file, and forgets the key
// after a minute.
func TestReadersDropRetiredKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "consent.key")
	line := func(number, digit string) string { return number + " " + strings.Repeat(digit, 64) + "\n" }
	writeKeyFile := func(text string) {
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	writeKeyFile(line("1", "a") + line("2", "b"))
	k, err := LoadKeys(path)
	if err != nil {
		t.Fatal(err)
	}
	writeKeyFile(line("2", "b"))
	k.checkedAt = time.Now().Add(-time.Hour)
	if _, ok := k.keyByNumber(1); !ok {
		t.Error("what is being read may have been made with it")
	}
	until, ok := k.retiredKeys[1]
	if !ok {
		t.Fatal("it was not noticed")
	}
	if remaining := time.Until(until); remaining > retiredKeyLifetime {
		t.Errorf("it stays for %v", remaining)
	}
	k.retiredKeys[1] = time.Now().Add(-time.Second)
	if _, ok := k.keyByNumber(1); ok {
		t.Error("it is there for good")
	}
}
