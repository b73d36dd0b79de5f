package rewrite

import (
	"context"
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/policy"
)

// Where a policy hides columns of a table, the rewriter puts a view in its place. PostgreSQL's errors about table
// aliases must still name what the client wrote.
func TestAliasesOfTablesWithHiddenColumns(t *testing.T) {
	conn := database(t).Connect(t, "postgres")
	if _, err := conn.PgConn().Exec(context.Background(),
		"CREATE SCHEMA apart; CREATE TABLE apart.cards (id integer, owner text, secret text); CREATE TABLE "+
			"public.cards (id integer, owner text)").ReadAll(); err != nil {
		t.Fatal(err)
	}
	snap, err := pgcatalog.Load(context.Background(), conn, []string{"public"})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := policy.Parse("p.yaml",
		[]byte("version: 1\nattributes: { who: { type: text, source: credential } }\ntables:\n  public.cards: { "+
			"rows: [ own: { column: owner, is: who } ] }\n  apart.cards: { rows: [ own: { column: owner, is: who "+
			"} ], columns: { id: allow, owner: allow } }\n"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Compile(doc, snap)
	if err != nil {
		t.Fatal(err)
	}
	for sql, want := range map[string]sqlstate.Code{
		"SELECT 1 FROM cards JOIN apart.cards ON true":                                             sqlstate.FeatureNotSupported,
		"SELECT count(*) FROM (cards JOIN apart.cards ON true) AS j (a, b, c, d)":                  sqlstate.FeatureNotSupported,
		"SELECT count(*) FROM (cards JOIN apart.cards AS n ON true) AS j (a, b, c, d)":             "",
		"SELECT n.id, cards.id FROM cards JOIN apart.cards AS n USING (id)":                        "",
		"SELECT a, b FROM apart.cards AS n (a, b)":                                                 "",
		"SELECT a FROM apart.cards AS n (a, b, c)":                                                 sqlstate.InvalidColumnReference,
		"SELECT a FROM cards AS n (a, b, c)":                                                       sqlstate.InvalidColumnReference,
		"SELECT 1 WHERE EXISTS (SELECT FROM (cards NATURAL JOIN apart.cards) AS j WHERE j.id = 1)": sqlstate.FeatureNotSupported,
	} {
		for _, mode := range []Mode{RowSecurityMode, InjectedMode} {
			_, refusal := New(snap, p, mode).Rewrite(sql, true)
			if got := code(refusal); got != want {
				t.Errorf("mode %v: %s: %q, not %q", mode, sql, got, want)
			}
		}
	}
}

func code(e *sqlstate.Error) sqlstate.Code {
	if e == nil {
		return ""
	}
	return e.Code
}
