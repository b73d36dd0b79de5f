package rewrite

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

type corpusQuery struct{ name, neededExtension, sql string }

// corpusQueries reads testdata/corpus.sql. Each block has a line "-- name", perhaps a line "-- needs: vector", and a
// statement that ends with a semicolon. Package e2e runs the same file against its oracle.
func corpusQueries(t testing.TB) []corpusQuery {
	t.Helper()
	text, err := os.ReadFile("testdata/corpus.sql")
	if err != nil {
		t.Fatal(err)
	}
	var out []corpusQuery
	for block := range strings.SplitSeq(string(text), "\n\n") {
		var q corpusQuery
		var sql []string
		for line := range strings.Lines(strings.TrimSpace(block)) {
			line = strings.TrimSuffix(line, "\n")
			switch comment, ok := strings.CutPrefix(line, "-- "); {
			case ok && strings.HasPrefix(comment, "needs: "):
				q.neededExtension = strings.TrimPrefix(comment, "needs: ")
			case ok && q.name == "" && len(sql) == 0:
				q.name = comment
			default:
				sql = append(sql, line)
			}
		}
		q.sql = strings.TrimSuffix(strings.Join(sql, "\n"), ";")
		if q.sql != "" {
			out = append(out, q)
		}
	}
	return out
}

// Every statement of the corpus is rewritten in each mode, and PostgreSQL analyses the result as it did the original.
// The statements use many different sets of node kinds.
func TestCorpus(t *testing.T) {
	conn := database(t).Connect(t, "postgres")
	ctx := context.Background()
	kinds := map[string]string{}
	answeredCount, answeredInjected := 0, 0
	names := map[string]bool{}
	queries := corpusQueries(t)
	for _, q := range queries {
		if q.name == "" || names[q.name] {
			t.Errorf("the name %q is missing or used twice", q.name)
		}
		names[q.name] = true
		kinds[kindSet(t, q.sql)] = q.name
		if q.neededExtension != "" {
			continue
		}
		before, err := conn.Prepare(ctx, "", q.sql)
		if err != nil {
			t.Errorf("%s: PostgreSQL on the original: %v", q.name, err)
			continue
		}
		for _, mode := range []Mode{InjectedMode, RowSecurityMode, AlwaysInjectedMode} {
			result, refusal := rewriter(t, mode).Rewrite(q.sql, true)
			if refusal != nil {
				if mode != AlwaysInjectedMode {
					t.Errorf("%s: %v (%s)", q.name, refusal, refusal.Hint)
				}
				continue
			}
			if mode == InjectedMode {
				answeredCount++
			}
			if mode == AlwaysInjectedMode {
				answeredInjected++
			}
			after, err := conn.Prepare(ctx, "", result.Text)
			if err != nil {
				t.Errorf("%s in mode %d: PostgreSQL on the rewritten text: %v\n%s", q.name, mode, err, abbreviate(result.Text))
				continue
			}
			if len(after.Fields) != len(before.Fields) {
				t.Errorf("%s in mode %d: %d columns, was %d", q.name, mode, len(after.Fields), len(before.Fields))
				continue
			}
			for i := range after.Fields {
				a, b := after.Fields[i], before.Fields[i]
				if a.Name != b.Name || a.DataTypeOID != b.DataTypeOID || a.TypeModifier != b.TypeModifier || a.TableOID != b.TableOID {
					t.Errorf("%s in mode %d: column %d is %v, was %v", q.name, mode, i+1, a, b)
				}
			}
		}
	}
	t.Logf("%d statements, %d sets of kinds, %d answered, %d of them in mode injected", len(queries), len(kinds), answeredCount, answeredInjected)
	if len(queries) < 150 || len(kinds) < 150 || answeredCount < 120 {
		t.Errorf("%d statements with %d sets of kinds, %d answered: the corpus is poor", len(queries), len(kinds), answeredCount)
	}
}

// kindSet names the kinds of nodes in a statement.
func kindSet(t *testing.T, sql string) string {
	t.Helper()
	tree, refusal := sqltext.Parse(sql)
	if refusal != nil {
		t.Fatalf("%s: %v", sql, refusal)
	}
	kindCounts, _ := sqltext.CountNodeKinds(tree)
	return strings.Join(slices.Sorted(maps.Keys(kindCounts)), " ")
}
