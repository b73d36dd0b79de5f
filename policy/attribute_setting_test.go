package policy

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// No policy may map an attribute to a setting that pgconsent itself uses on the server.
func TestOwnSettings(t *testing.T) {
	settingCall := regexp.MustCompile(`(?:current_setting|set_config)\('(pgconsent\.[a-z_]+)'`)
	count := 0
	for _, dir := range []string{"../migrations/sql", "../rls", "../internal/enforce/predicate", "../internal/enforce/seal"} {
		err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := fs.ReadFile(os.DirFS(dir), path)
			for _, m := range settingCall.FindAllSubmatch(text, -1) {
				count++
				if !slices.Contains(pgconsentSettings, string(m[1])) {
					t.Errorf("%s/%s uses the setting %s, which an attribute could be mapped to", dir, path, m[1])
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if count == 0 {
		t.Error("no setting found: the test says little")
	}
}
