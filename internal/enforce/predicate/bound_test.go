package predicate_test

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
)

// If COPY leaves a list out, the column gets a special default. This default differs from NULL and from every list that
// COPY can write, for each type of the column.
func TestOmittedListsAreRecognised(t *testing.T) {
	b := &testDatabase{conn: pgtest.Database(t).Connect(t, "postgres")}
	for _, c := range []struct {
		sqlType     string
		form        predicate.GrantForm
		otherValues string
	}{
		{"text[]", predicate.GrantText, `('{}'), ('{NULL}'), ('{a}'), ('[7432:7432]={a}')`},
		{"character varying[]", predicate.GrantText, `('{}'), ('{pgconsent:left}')`},
		{"uuid[]", predicate.GrantUUID, `('{}'), ('{NULL}')`},
		{"integer[]", predicate.GrantInteger, `('{}'), ('{7432}')`},
		{"bigint[]", predicate.GrantInteger, `('{}'), ('{NULL}')`},
		{"text", predicate.GrantJSON, `('[]'), (''), ('["pgconsent:left"]')`},
		{"character varying", predicate.GrantJSON, `('[]'), ('null')`},
		{"json", predicate.GrantJSON, `('[]'), ('null'), ('["pgconsent:left"]')`},
		{"jsonb", predicate.GrantJSONB, `('[]'), ('null'), ('{}'), ('["pgconsent:left"]')`},
	} {
		list := predicate.ListBound{List: predicate.List{Column: "list", Form: c.form}, Type: c.sqlType}
		defaultSQL := list.OmittedDefault()
		if defaultSQL == "" {
			t.Errorf("%s: nothing stands for a list that is left out", c.sqlType)
			continue
		}
		if got := b.queryIDs("CREATE TEMP TABLE copied (what text DEFAULT 'left out', list " + c.sqlType + " DEFAULT " + defaultSQL + ");" +
			"INSERT INTO copied DEFAULT VALUES;" +
			"INSERT INTO copied SELECT w.list, w.list::" + c.sqlType + " FROM (VALUES (NULL), " + c.otherValues + ") AS w (list);" +
			"SELECT what FROM copied AS new WHERE " + list.IsOmittedDefaultSQL()); got != "left out" {
			t.Errorf("%s: %q is taken for left out", c.sqlType, got)
		}
		b.queryIDs("DROP TABLE copied")
	}
}
