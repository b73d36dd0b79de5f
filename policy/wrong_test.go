package policy_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var update = flag.Bool("update", false, "write testdata/wrong as it comes out; the difference is what a review reads")

// wrongCase is a file of testdata/wrong: a description, the files of a policy, and the errors and warnings that a DBA
// gets.
type wrongCase struct {
	prose   string
	files   [][2]string // the name and the text of each file
	message string
}

var section = regexp.MustCompile(`(?m)^-- (.+) --\n`)

// readCase reads a case. If "escaped" follows a file's name, the text has Go escapes, for bytes that an editor would
// change.
func readCase(t *testing.T, path string) wrongCase {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	sections := section.FindAllStringSubmatchIndex(text, -1)
	if len(sections) < 1 {
		t.Fatalf("%s: no sections", path)
	}
	c := wrongCase{prose: text[:sections[0][0]]}
	for i, m := range sections {
		end := len(text)
		if i+1 < len(sections) {
			end = sections[i+1][0]
		}
		if name := text[m[2]:m[3]]; name == "message" {
			c.message = text[m[1]:end]
		} else {
			c.files = append(c.files, [2]string{name, text[m[1]:end]})
		}
	}
	if strings.TrimSpace(c.prose) == "" || len(c.files) == 0 {
		t.Fatalf("%s: a case begins with prose and has the files of a policy", path)
	}
	return c
}

// write writes the files and returns the policy's path: the file, or the folder if there are several.
func (c wrongCase) write(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	path := ""
	for _, f := range c.files {
		name, text := f[0], f[1]
		if unescapedName, ok := strings.CutSuffix(name, " escaped"); ok {
			unquoted, err := strconv.Unquote(`"` + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), `"`, `\"`) + `"`)
			if err != nil {
				t.Fatal(err)
			}
			name, text = unescapedName, unquoted
		}
		path = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.files) == 1 {
		return path
	}
	if main := filepath.Join(dir, "main.yaml"); len(c.files) > 1 && exists(main) {
		return main
	}
	return dir
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// checkOutput returns the output of "pgconsent policy check" for a policy, without the folder's name, and whether the
// policy loads.
func checkOutput(path string, snap *catalog.Snapshot, context policy.LintContext) (report string, isLoaded bool) {
	var out []string
	doc, err := policy.LoadReadable(path)
	isRead := err == nil
	if isRead {
		_, err = policy.Compile(doc, snap, policy.WithViews(rewrite.RewriteViewQuery))
	}
	var problems policy.Errors
	switch {
	case err == nil:
		warnings, err := policy.Lint(doc, snap, context, policy.WithViews(rewrite.RewriteViewQuery))
		if err != nil {
			out = append(out, err.Error())
		}
		for _, w := range warnings {
			out = append(out, "warning: "+w.Error())
		}
	case errors.As(err, &problems):
		var warnings []*policy.Error
		if !isRead && doc != nil {
			var otherErrors policy.Errors
			otherErrors, warnings = policy.CheckReadable(doc, snap, context, problems, policy.WithViews(rewrite.RewriteViewQuery))
			problems = append(problems, otherErrors...)
		}
		for _, p := range problems {
			out = append(out, p.Error())
		}
		for _, w := range warnings {
			out = append(out, "warning: "+w.Error())
		}
	default:
		out = append(out, err.Error())
	}
	dir := path
	if info, e := os.Stat(path); e == nil && !info.IsDir() {
		dir = filepath.Dir(path)
	}
	text := strings.NewReplacer(dir+string(filepath.Separator), "", dir, "the policy's folder").Replace(strings.Join(out, "\n"))
	return text + "\n", err == nil
}

// For each mistake in testdata/wrong, a DBA gets a message that says what to change.
func TestWrongPolicies(t *testing.T) {
	conn := pgtest.Database(t).Connect(t, "postgres")
	schema, err := os.ReadFile("testdata/wrong/schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.PgConn().Exec(t.Context(), string(schema)).ReadAll(); err != nil {
		t.Fatal(err)
	}
	snap, err := pgcatalog.Load(t.Context(), conn, []string{"public", "app"})
	if err != nil {
		t.Fatal(err)
	}
	usedFunctions, err := pgcatalog.FunctionUses(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	triggers, err := pgcatalog.Triggers(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	defaults, err := pgcatalog.DefinerDefaults(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob("testdata/wrong/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	caseCount := 0
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			c := readCase(t, path)
			context := policy.LintContext{FunctionUses: usedFunctions, Triggers: triggers, Defaults: defaults}
			if strings.Contains(c.files[0][1], "contexts:") {
				context.Agents = map[string]map[string]string{"chat": {"user": "6f1e0000-0000-4000-8000-000000000001", "tenant": "north", "contexts": `{"work"}`}}
			}
			got, isLoaded := checkOutput(c.write(t), snap, context)
			if !isLoaded {
				caseCount++
			}
			if got == c.message {
				return
			}
			if !*update {
				t.Errorf("says\n%s\nwant\n%s", got, c.message)
				return
			}
			text := c.prose
			for _, f := range c.files {
				text += "-- " + f[0] + " --\n" + f[1]
			}
			if err := os.WriteFile(path, []byte(text+"-- message --\n"+got), 0o600); err != nil {
				t.Fatal(err)
			}
		})
	}
	if caseCount < 60 {
		t.Errorf("%d wrong policies: there should be 60", caseCount)
	}
}
