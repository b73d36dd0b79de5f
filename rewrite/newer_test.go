package rewrite

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// Syntax that is newer than the parser's grammar is refused with an error that names it, if the server's version has
// it. The server does accept the examples. On older servers the error is PostgreSQL's syntax error.
func TestNewerSyntaxIsNamed(t *testing.T) {
	conn := database(t).Connect(t, "postgres")
	version := fixture.snap.ServerVersion()
	page, err := os.ReadFile(refusalsPage)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range newerSyntax {
		if !strings.Contains(string(page), "`"+s.what+"`") {
			t.Errorf("%s is not in %s", s.what, refusalsPage)
		}
		for major := 15; major <= 18; major++ {
			source, refusal := sqltext.Scan(s.example)
			if refusal != nil {
				t.Fatal(refusal)
			}
			_, refusal = source.Parse()
			if refusal != nil {
				refusal = explainNewerSyntax(refusal, source, major*10_000)
			} else if name, _, ok := strings.Cut(strings.TrimPrefix(s.example, "SELECT "), "("); ok { // the example is a function call
				if refusal = newerFunctionRefusal(strings.ToLower(name), major*10_000); refusal == nil && major < s.since {
					continue
				}
			}
			switch {
			case refusal == nil:
				t.Errorf("%s: not refused for %d", s.example, major)
			case major < s.since && refusal.Code != sqlstate.SyntaxError:
				t.Errorf("%s for %d: %v", s.example, major, refusal)
			case major >= s.since && (refusal.Code != sqlstate.FeatureNotSupported ||
				!strings.HasPrefix(refusal.Message, s.what+" of PostgreSQL ") || !strings.Contains(refusal.Hint, s.instead)):
				t.Errorf("%s for %d: %v (%s)", s.example, major, refusal, refusal.Hint)
			}
		}
		result, refusal := rewriter(t, InjectedMode).Rewrite(s.example, false)
		if refusal == nil {
			t.Errorf("%s: allowed as %s", s.example, result.Text)
		}
		_, err := conn.Prepare(context.Background(), "", s.example)
		var pg *pgconn.PgError
		syntaxError := errors.As(err, &pg) && (pg.Code == "42601" || pg.Code == "42883" || pg.Code == "0A000")
		if takesName := version >= s.since*10_000; takesName == syntaxError || takesName && err != nil {
			t.Errorf("%s: PostgreSQL %d says %v", s.example, version/10_000, err)
		}
	}
}

// A syntax error has PostgreSQL's message and position, on servers that have newer syntax too.
func TestSyntaxErrorsStay(t *testing.T) {
	for _, sql := range []string{"SELEC 1", "SELECT 1 FORM x", "SELECT 'json_table(' FROM FROM", "SELECT a b c"} {
		source, refusal := sqltext.Scan(sql)
		if refusal != nil {
			t.Fatal(refusal)
		}
		_, want := source.Parse()
		got := explainNewerSyntax(want, source, 180_000)
		if got != want || got.Code != sqlstate.SyntaxError || got.Position == 0 {
			t.Errorf("%s: %v at %d", sql, got, got.Position)
		}
	}
}

// A type name inside a text, as an argument of a function, is checked as if the statement named the type.
func TestTypesNamedInTexts(t *testing.T) {
	for text, want := range map[string]bool{
		"integer": true, "numeric(5,2)": true, "text[]": true, "timestamp with time zone": true, `"char"`: true,
		"short_text": true, "pg_catalog.int4": true, "mood": true,
		"checked_text": false, "public.checked_text[]": false, "checked_rows": false, "xid8": false, "converted": false, "nothing": false, "": false,
		"integer, pg_sleep(1)": false, "integer FROM people": false, "integer) + (1": false, "integer::text": false, "integer x": false,
		"integer; SELECT 1": false, "setof integer": false, "integer -- x": false, "people.id%TYPE": false, "integer = 1": false,
	} {
		w := newWalker(rewriter(t, InjectedMode), &sqltext.Source{})
		tree, refusal := sqltext.Parse("SELECT pg_input_is_valid('a', '" + text + "')")
		if refusal != nil {
			t.Fatal(refusal)
		}
		w.checkInputType("pg_input_is_valid", tree.Stmts[0].Stmt.GetSelectStmt().TargetList[0].GetResTarget().Val.GetFuncCall())
		if got := w.refused == nil; got != want {
			t.Errorf("%q: %v, %v", text, got, w.refused)
		}
	}
}
