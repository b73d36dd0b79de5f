package rewrite

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// A statement that is refused alone is also refused before, after and between other statements of the same message.
func TestRefusedAmongOtherStatements(t *testing.T) {
	tryCount := 0
	for _, g := range goldens(t) {
		mode := g.mode(t)
		r := rewriter(t, mode)
		sql := strings.TrimRight(g.sql(), "; \n")
		if _, refusal := r.Rewrite(sql, false); refusal == nil || strings.Contains(sql, "--") {
			continue
		}
		for _, text := range []string{sql + "; SELECT 1", "SELECT 1; " + sql, "SELECT 1; " + sql + "; SELECT 2"} {
			tryCount++
			if result, refusal := r.Rewrite(text, false); refusal == nil {
				t.Errorf("%s: %s is answered: %s", g.path, text, result.Text)
			}
		}
	}
	r := rewriter(t, InjectedMode)
	// these casts and calls are found by checks that run after the walk
	for _, sql := range []string{"SELECT g::int FROM gauges", "SELECT (g).int4 FROM gauges", "UPDATE gauges SET n = g::int", "SELECT measured()::int"} {
		for _, text := range []string{sql, sql + "; SELECT 1", "SELECT 1; " + sql} {
			tryCount++
			if result, refusal := r.Rewrite(text, false); refusal == nil {
				t.Errorf("%s is answered: %s", text, result.Text)
			}
		}
	}
	if tryCount < 300 {
		t.Errorf("%d texts were tried", tryCount)
	}
}

// With ANY and ALL over an array with unknown values, only equality and inequality of texts take the signed path. Any
// other operator may fail for some element.
func TestAnyOfUnknownArraysTakesEqualityOnly(t *testing.T) {
	r := rewriter(t, AlwaysSignedMode)
	rows, err := pgtest.Database(t).Connect(t, "postgres").Query(t.Context(),
		"SELECT DISTINCT oprname::text FROM pg_operator WHERE oprleft = 'text'::regtype AND oprright = 'text'::regtype AND oprresult = 'bool'::regtype")
	if err != nil {
		t.Fatal(err)
	}
	operators, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(operators) < 15 {
		t.Fatalf("%d operators, %v", len(operators), err)
	}
	leakSafe := []string{}
	for _, operator := range operators {
		for _, array := range []string{"$1", "'{a,b}'", "'{a,b}'::text[]", "$1::text[]"} {
			for _, quantifier := range []string{"ANY", "ALL"} {
				result, refusal := r.Rewrite("SELECT id FROM memories WHERE title "+operator+" "+quantifier+" ("+array+")", true)
				if refusal != nil || result.Path != verdict.PathSigned {
					continue
				}
				if leakSafe = append(leakSafe, array); operator != "=" || quantifier != "ANY" {
					t.Errorf("%s %s (%s) takes the signed path", operator, quantifier, array)
				}
			}
		}
	}
	if slices.Sort(leakSafe); len(slices.Compact(leakSafe)) != 4 {
		t.Errorf("only %v take the signed path", leakSafe)
	}
}
