package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/test/tier"
)

// The registry's key is rotated from the command line; each step may be repeated.
func TestConsentRotateKey(t *testing.T) {
	tier.All(t)
	config, _ := installConsent(t)
	key := filepath.Join(filepath.Dir(config), "consent.key")
	runSteps(t, config, []commandStep{
		{"consent grant ada --stream TEMPORARY", exitOK, "record 1"},
		{"consent rotate-key --add --retire", exitUsage, "choose one"},
		{"consent rotate-key --retire", exitOK, "has no older key"},
		{"consent rotate-key --dry-run", exitOK, "app: the keys of 1 people would be wrapped with key 2, 1 records would get a code under it"},
		{"consent rotate-key --add --dry-run", exitOK, "key 2 would be added"},
		{"consent rotate-key --add", exitOK, "key 2 is in " + key + " and is not used yet"},
		{"consent rotate-key --add", exitOK, "key 2 is in"},
		{"consent grant bob --stream TEMPORARY", exitOK, "record 2"},
		{"consent rotate-key --dry-run --json", exitOK, `"people":2`},
	})
	keysBefore, err := os.ReadFile(key)
	if err != nil || !strings.Contains(string(keysBefore), "next 2 ") {
		t.Fatalf("%s %v", keysBefore, err)
	}
	runSteps(t, config, []commandStep{
		{"consent rotate-key", exitOK, "app: the keys of 2 people are wrapped with key 2, 2 records have a code under it"},
		{"consent rotate-key", exitOK, "app: the keys of 0 people are wrapped with key 2, 0 records have a code under it"},
		{"consent rotate-key --add", exitError, "the last rotation is not finished"},
		{"audit verify", exitOK, "2 records hold; anchored up to 2"},
	})
	runSteps(t, config, []commandStep{
		{"consent rotate-key --retire --dry-run", exitOK, "nothing needs key 1: it would be taken out"},
		{"consent rotate-key --retire", exitOK, "key 1 is not in the key file any more"},
		{"consent history ada", exitOK, "given TEMPORARY"},
		{"consent revoke ada", exitOK, "record 3"},
		{"audit verify", exitOK, "3 records hold; anchored up to 3"},
		{"consent erase bob --yes", exitOK, "erased"},
	})
}
