package rewrite

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden is one test file of testdata/<statement>/: a description, then sections.
type golden struct {
	path, prose string
	sections    map[string]string
	order       []string
}

// goldenSections are the sections that a file may have. policy must be "shared", that is testdata/policy.yaml. mode is
// both (the default), rls or injected. server is the error that PostgreSQL returns for the rewritten text. since is the
// major version from which it returns none. The others are sql, and want or error.
var goldenSections = map[string]bool{"policy": true, "mode": true, "sql": true, "want": true, "error": true, "server": true, "since": true}

func readGolden(t testing.TB, path string) *golden {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	g := &golden{path: path, sections: map[string]string{}}
	section := ""
	for line := range strings.Lines(string(text)) {
		trimmedLine := strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(trimmedLine, "-- ") && strings.HasSuffix(trimmedLine, " --") {
			section = strings.TrimSuffix(strings.TrimPrefix(trimmedLine, "-- "), " --")
			if !goldenSections[section] {
				t.Fatalf("%s: unknown section %q", path, section)
			}
			if _, isRepeated := g.sections[section]; isRepeated {
				t.Fatalf("%s: section %q twice", path, section)
			}
			g.sections[section] = ""
			g.order = append(g.order, section)
			continue
		}
		if section == "" {
			g.prose += line
		} else {
			g.sections[section] += line
		}
	}
	if g.sections["sql"] == "" || strings.TrimSpace(g.prose) == "" {
		t.Fatalf("%s: a file needs prose and a section sql", path)
	}
	if p := strings.TrimSpace(g.sections["policy"]); p != "shared" {
		t.Fatalf("%s: unknown policy %q", path, p)
	}
	return g
}

func (g *golden) set(section, text string) {
	if _, ok := g.sections[section]; !ok {
		g.order = append(g.order, section)
	}
	g.sections[section] = text
}

func (g *golden) drop(section string) {
	delete(g.sections, section)
	var order []string
	for _, s := range g.order {
		if s != section {
			order = append(order, s)
		}
	}
	g.order = order
}

func (g *golden) write(t testing.TB) {
	var b strings.Builder
	b.WriteString(g.prose)
	for _, s := range g.order {
		fmt.Fprintf(&b, "-- %s --\n%s", s, g.sections[s])
	}
	if err := os.WriteFile(g.path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (g *golden) sql() string { return strings.TrimSuffix(g.sections["sql"], "\n") }

func (g *golden) mode(t testing.TB) Mode {
	switch m := strings.TrimSpace(g.sections["mode"]); m {
	case "", "both":
		return InjectedMode
	case "rls":
		return RowSecurityMode
	case "injected":
		return AlwaysInjectedMode
	default:
		t.Fatalf("%s: unknown mode %q", g.path, m)
		return InjectedMode
	}
}

func goldens(t testing.TB) []*golden {
	t.Helper()
	paths, err := filepath.Glob("testdata/*/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	var out []*golden
	for _, path := range paths {
		out = append(out, readGolden(t, path))
	}
	return out
}

// abbreviate shortens the conditions that package predicate generates, and tests, for the golden files.
func abbreviate(text string) string {
	for _, table := range fixture.pol.Tables() {
		condition, _ := predicate.InjectedCondition(table.Rows, rowAlias)
		if condition != "true" {
			name := table.Relation.Name
			text = strings.ReplaceAll(text, name.SQL()+" AS "+rowAlias+" WHERE "+condition+")", name.SQL()+" AS "+rowAlias+" WHERE <predicate>)")
		}
	}
	return text
}

func describe(e *sqlstate.Error) string {
	return fmt.Sprintf("%s %s at %d: %s\nHINT: %s\n", e.Code, e.Reason, e.Position, e.Message, e.Hint)
}

func TestGolden(t *testing.T) {
	conn := database(t).Connect(t, "postgres")
	for _, g := range goldens(t) {
		t.Run(strings.TrimSuffix(strings.TrimPrefix(g.path, "testdata/"), ".txt"), func(t *testing.T) {
			r := rewriter(t, g.mode(t))
			result, refusal := r.Rewrite(g.sql(), false)
			if refusal != nil {
				if *update {
					g.drop("want")
					g.drop("server")
					g.set("error", describe(refusal))
					g.write(t)
				}
				if result.Text != "" {
					t.Errorf("a refusal came with a text: %s", result.Text)
				}
				if diff := cmp.Diff(g.sections["error"], describe(refusal)); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
				return
			}
			repeatedResult, _ := r.Rewrite(g.sql(), false)
			if repeatedResult == nil || repeatedResult.Text != result.Text {
				t.Error("a second run gives another text")
			}
			if _, err := sqltext.Parse(result.Text); err != nil {
				t.Errorf("the rewritten text does not parse: %v", err)
			}
			server := ""
			if len(result.Effects) == 1 { // PostgreSQL analyses one statement without running it
				if _, err := conn.Prepare(context.Background(), "", result.Text); err != nil {
					server = err.Error() + "\n"
				}
			}
			wantServer := g.sections["server"]
			if since, err := strconv.Atoi(strings.TrimSpace(g.sections["since"])); err == nil && fixture.snap.ServerVersion() >= since*10_000 {
				wantServer = ""
			}
			if *update {
				g.drop("error")
				g.set("want", abbreviate(result.Text)+"\n")
				if g.sections["since"] == "" {
					g.drop("server")
				}
				if server != "" {
					g.set("server", server)
				}
				g.write(t)
			}
			if diff := cmp.Diff(g.sections["want"], abbreviate(result.Text)+"\n"); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(wantServer, server); diff != "" {
				t.Errorf("PostgreSQL (-want +got)\n%s", diff)
			}
		})
	}
}
