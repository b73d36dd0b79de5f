package oracle

import (
	"os"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
)

// whole asks for every row and column of each table and view of the policy, and of what is a part of one.
func (s Schema) whole(t testing.TB) []Statement {
	t.Helper()
	m := instance.Compile(t, s.Behind(t), instance.RLS)
	var out []Statement
	add := func(name string) {
		out = append(out, Statement{SQL: "SELECT * FROM " + name, Must: true, Where: s.Name + ", whole"})
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

// Hidden tells what the hidden rows of a database with the schema are, where there is a file that says how to tell: a
// row for each table, with a number and a hash.
func (s Schema) Hidden(t testing.TB, db *pgtest.DB) string {
	t.Helper()
	tells := "test/attacks/testdata/" + s.Name + "_hidden.sql"
	if _, err := os.Stat(instance.Path(t, tells)); err != nil {
		return ""
	}
	c := instance.Super(t, db)
	if a := instance.Ask(c, s.file(t, "visible.sql")); a.Err != "" {
		t.Fatal(a.Err)
	}
	a := instance.Ask(c, instance.Read(t, tells))
	if a.Err != "" {
		t.Fatal(a.Err)
	}
	return a.Multiset()
}
