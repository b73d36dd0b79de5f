package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/test/tier"
)

// The key is changed from the command line, in steps that may come twice.
func TestConsentRotateKey(t *testing.T) {
	tier.All(t)
	config, _ := consenting(t)
	key := filepath.Join(filepath.Dir(config), "consent.key")
	play(t, config, []played{
		{"consent grant ada --stream TEMPORARY", done, "record 1"},
		{"consent rotate-key --add --retire", usage, "choose one"},
		{"consent rotate-key --retire", done, "has no older key"},
		{"consent rotate-key --dry-run", done, "app: the keys of 1 people would be wrapped with key 2, 1 records would get a code under it"},
		{"consent rotate-key --add --dry-run", done, "key 2 would be added"},
		{"consent rotate-key --add", done, "key 2 is in " + key + " and is not used yet"},
		{"consent rotate-key --add", done, "key 2 is in"},
		{"consent grant bob --stream TEMPORARY", done, "record 2"},
		{"consent rotate-key --dry-run --json", done, `"people":2`},
	})
	before, err := os.ReadFile(key)
	if err != nil || !strings.Contains(string(before), "next 2 ") {
		t.Fatalf("%s %v", before, err)
	}
	play(t, config, []played{
		{"consent rotate-key", done, "app: the keys of 2 people are wrapped with key 2, 2 records have a code under it"},
		{"consent rotate-key", done, "app: the keys of 0 people are wrapped with key 2, 0 records have a code under it"},
		{"consent rotate-key --add", wrong, "the last change of the key is not at its end"},
		{"audit verify", done, "2 records hold; anchored up to 2"},
	})
	play(t, config, []played{
		{"consent rotate-key --retire --dry-run", done, "nothing needs key 1: it would be taken out"},
		{"consent rotate-key --retire", done, "key 1 is not in the key file any more"},
		{"consent history ada", done, "given TEMPORARY"},
		{"consent revoke ada", done, "record 3"},
		{"audit verify", done, "3 records hold; anchored up to 3"},
		{"consent erase bob --yes", done, "erased"},
	})
}
