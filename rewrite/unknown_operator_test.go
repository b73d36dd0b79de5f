package rewrite

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/policy"
)

// An extension that the data files do not know may have operators. Their names are refused until the policy says that
// none of them has side effects. An operator that belongs to no extension stays refused. The result of an allowed one
// counts as a comparison by likeness.
func TestOperatorsOfUnknownExtensions(t *testing.T) {
	conn := database(t).Connect(t, "postgres")
	if _, err := conn.PgConn().Exec(context.Background(),
		"CREATE EXTENSION isn; CREATE EXTENSION seg; CREATE TABLE books (id integer, owner text, number isbn, "+
			"span seg); CREATE OPERATOR <<< (FUNCTION = seg_left, LEFTARG = seg, RIGHTARG = seg); ALTER EXTENSION "+
			"seg ADD OPERATOR <<< (seg, seg); CREATE FUNCTION mine(boolean, boolean) RETURNS boolean LANGUAGE sql "+
			"AS 'SELECT true'; CREATE OPERATOR <> (FUNCTION = mine, LEFTARG = boolean, RIGHTARG = boolean)").ReadAll(); err != nil {
		t.Fatal(err)
	}
	snap, err := pgcatalog.Load(context.Background(), conn, []string{"public"})
	if err != nil {
		t.Fatal(err)
	}
	const text = "version: 1\nattributes: { who: { type: text, source: credential } }\ntables:\n  books: { rows: [ own: { column: owner, is: who } ] }\n"
	compile := func(extraPolicy string) (*policy.Policy, []*policy.Error, error) {
		doc, err := policy.Parse("p.yaml", []byte(text+extraPolicy))
		if err != nil {
			return nil, nil, err
		}
		p, err := policy.Compile(doc, snap)
		if err != nil {
			return nil, nil, err
		}
		warnings, err := policy.Lint(doc, snap, policy.LintContext{IsUnknownOperator: IsUnknownOperator})
		return p, warnings, err
	}
	for extraPolicy, want := range map[string]struct {
		allowedStatements, refusedStatements []string
		warnings                             []string
	}{
		"": {[]string{"SELECT id % 2 FROM books"},
			[]string{"SELECT 1 FROM books WHERE id = 1", "SELECT 1 FROM books WHERE id IN (1, 2)",
				"SELECT 1 FROM books WHERE id <> 1", "SELECT 1 FROM books WHERE id && id"},
			[]string{"of the extension isn", "of the extension seg", "of your own"}},
		"operators: [isn, seg]\n": {[]string{"SELECT 1 FROM books WHERE id = 1",
			"SELECT number FROM books ORDER BY number", "SELECT 1 FROM books WHERE number > number",
			"SELECT 1 FROM books WHERE id && id"}, []string{"SELECT 1 FROM books WHERE id <> 1"}, []string{"of your own"}},
		"operators: [isn]\n": {nil, []string{"SELECT 1 FROM books WHERE id = 1"}, []string{"of the extension seg", "of your own"}},
	} {
		p, warnings, err := compile(extraPolicy)
		if err != nil {
			t.Fatal(err)
		}
		warningText := ""
		for _, w := range warnings {
			warningText += w.Error() + "\n"
		}
		for _, w := range []string{"of the extension isn", "of the extension seg", "of your own"} {
			if strings.Contains(warningText, w) != slices.Contains(want.warnings, w) {
				t.Errorf("%q: %q is said, or is not:\n%s", extraPolicy, w, warningText)
			}
		}
		for _, mode := range []Mode{RowSecurityMode, AutoMode, InjectedMode} {
			r := New(snap, p, mode)
			for _, sql := range want.allowedStatements {
				if _, refusal := r.Rewrite(sql, true); refusal != nil {
					t.Errorf("%q: %s: %v", extraPolicy, sql, refusal)
				}
			}
			for _, sql := range want.refusedStatements {
				if _, refusal := r.Rewrite(sql, true); refusal == nil ||
					refusal.Code != sqlstate.InsufficientPrivilege || !strings.Contains(refusal.Hint, "OPERATOR(pg_catalog.") {
					t.Errorf("%q: %s: %v", extraPolicy, sql, refusal)
				}
			}
		}
	}
	for extraPolicy, want := range map[string]string{
		"operators: [ism]\n":      `p.yaml:5:13: the database has no operators of an extension "ism" (did you mean "isn"?)`,
		"operators: isn\n":        "p.yaml:5:12: ",
		"operators: [isn, isn]\n": `p.yaml:5:18: "isn" is in operators twice`,
	} {
		if _, _, err := compile(extraPolicy); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v", extraPolicy, err)
		}
	}
	// The operator is written by name, with a schema, and before a sub-select.
	likely, _, err := compile(
		"operators: [isn, seg]\nobjects: { o: { table: books, metadata: [id] } }\ncontracts: { c: { by: who, values: { x: everything } } }\n")
	if err != nil {
		t.Fatal(err)
	}
	for sql, want := range map[string]string{
		"SELECT id FROM books WHERE span <<< span":                                  "books vector(id, span) out",
		"SELECT id FROM books WHERE span OPERATOR(public.<<<) span":                 "books vector(id, span) out",
		"SELECT id FROM books WHERE span OPERATOR(public.@>) span":                  "books vector(id, span) out",
		"SELECT 1 FROM books WHERE span OPERATOR(public.@>) ANY (SELECT '1'::text)": "books vector(span) out",
		"SELECT id FROM books WHERE span @> span":                                   "books structured(id, span) out",
		"SELECT id FROM books WHERE id OPERATOR(pg_catalog.=) 1":                    "books metadata(id) out",
	} {
		result, refusal := New(snap, likely, RowSecurityMode).Rewrite(sql, false)
		if refusal != nil {
			t.Errorf("%s: %v", sql, refusal)
		} else if got := oneLine(result.Accesses); got != want {
			t.Errorf("%s\n got %s\nwant %s", sql, got, want)
		}
	}
	policyWithOperators, _, err := compile("operators: [isn, seg]\n")
	if err != nil {
		t.Fatal(err)
	}
	policyWithoutOperators, _, err := compile("")
	if err != nil {
		t.Fatal(err)
	}
	if policyWithOperators.Version() == policyWithoutOperators.Version() {
		t.Error("the version does not say whose operators agents may use")
	}
	if !IsUnknownOperator(&catalog.Operator{}) {
		t.Error("an operator of nobody's is known")
	}
}
