package oracle

import (
	"os"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
)

// wholeRelationQueries returns a SELECT * for each table and view of the policy, and for their partitions and child
// tables.
func (s Schema) wholeRelationQueries(t testing.TB) []Statement {
	t.Helper()
	m := instance.Compile(t, s.BehindProxy(t), instance.RLS)
	var out []Statement
	add := func(name string) {
		out = append(out, Statement{SQL: "SELECT * FROM " + name, MustBeAnswered: true, Source: s.Name + ", whole"})
	}
	for _, table := range m.Policy.Tables() {
		add(table.Relation.Name.SQL())
	}
	for _, c := range m.Policy.Children() {
		if c.ReadableByName {
			add(c.Relation.Name.SQL())
		}
	}
	for _, v := range m.Policy.Views() {
		if v.Listed {
			add(v.Relation.Name.SQL())
		}
	}
	return out
}

// HiddenRows returns the number and a hash of the hidden rows of each table, and "" if the schema has no query for that
// in test/attacks/testdata.
func (s Schema) HiddenRows(t testing.TB, db *pgtest.DB) string {
	t.Helper()
	queryFile := "test/attacks/testdata/" + s.Name + "_hidden.sql"
	if _, err := os.Stat(instance.RepoPath(t, queryFile)); err != nil {
		return ""
	}
	c := instance.ConnectSuperuser(t, db)
	if a := instance.Ask(c, s.readFile(t, "visible.sql")); a.Err != "" {
		t.Fatal(a.Err)
	}
	a := instance.Ask(c, instance.ReadRepoFile(t, queryFile))
	if a.Err != "" {
		t.Fatal(a.Err)
	}
	return a.SortedString()
}
