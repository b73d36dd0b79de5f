package catalog_test

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

func n(schema, name string) catalog.Name { return catalog.Name{Schema: schema, Name: name} }

func spec() catalog.Spec {
	return catalog.Spec{
		Database: "d", ServerVersion: 150018, SearchPath: []string{"app", "public"},
		Relations: []*catalog.Relation{
			{Name: n("public", "people"), OID: 1}, {Name: n("app", "people"), OID: 2}, {Name: n("public", "pg_class"), OID: 3},
			{Name: n("pg_catalog", "pg_class"), OID: 4}, {Name: n("other", "hidden"), OID: 5}, {Name: n("information_schema", "tables"), OID: 6},
		},
		Functions:        []*catalog.Function{{Name: n("public", "f"), OID: 1}, {Name: n("app", "f"), OID: 2}, {Name: n("other", "f"), OID: 3}},
		Types:            []*catalog.Type{{Name: n("pg_catalog", "text"), OID: 25}, {Name: n("public", "text"), OID: 100}},
		Operators:        []*catalog.Operator{{Name: n("public", "<->")}, {Name: n("app", "<->")}, {Name: n("other", "<->")}},
		CatalogFunctions: map[string]bool{"count": true},
		CatalogOperators: map[string]bool{"=": true},
	}
}

func TestNamesAreResolvedAsPostgreSQLDoes(t *testing.T) {
	snap := catalog.NewSnapshot(spec())
	for _, c := range []struct {
		schema, name string
		want         catalog.Name
		ok           bool
	}{
		{"", "people", n("app", "people"), true},
		{"public", "people", n("public", "people"), true},
		{"", "pg_class", n("pg_catalog", "pg_class"), true}, // pg_catalog is first
		{"", "hidden", catalog.Name{}, false},
		{"other", "hidden", n("other", "hidden"), true},
		{"", "tables", catalog.Name{}, false},
		{"information_schema", "tables", n("information_schema", "tables"), true},
		{"", "People", catalog.Name{}, false},
	} {
		if got, ok := snap.ResolveRelation(c.schema, c.name); got != c.want || ok != c.ok {
			t.Errorf("%q.%q: %v, %v", c.schema, c.name, got, ok)
		}
	}
	if got := len(snap.FunctionsNamed("", "f")); got != 2 {
		t.Errorf("%d functions f on the path", got)
	}
	if got := len(snap.FunctionsNamed("other", "f")); got != 1 {
		t.Errorf("%d functions other.f", got)
	}
	if got := len(snap.TypesNamed("", "text")); got != 2 {
		t.Errorf("%d types text: one that is shadowed counts too", got)
	}
	if snap.TypeByOID(25).Name != n("pg_catalog", "text") || snap.TypeByOID(0) != nil {
		t.Error("types by OID")
	}
	if !snap.HasCatalogFunction("count") || snap.HasCatalogFunction("f") || !snap.HasCatalogOperator("=") ||
		len(snap.OperatorsNamed("", "<->")) != 2 || len(snap.OperatorsNamed("other", "<->")) != 1 {
		t.Error("names of pg_catalog")
	}
}

func TestVersionIsOfTheContent(t *testing.T) {
	a := catalog.NewSnapshot(spec()).Version()
	reordered := spec()
	reordered.Relations[0], reordered.Relations[1] = reordered.Relations[1], reordered.Relations[0]
	if catalog.NewSnapshot(reordered).Version() != a {
		t.Error("the order of reading counts")
	}
	for name, change := range map[string]func(*catalog.Spec){
		"column":   func(s *catalog.Spec) { s.Relations[0].Columns = []catalog.Column{{Name: "id"}} },
		"owner":    func(s *catalog.Spec) { s.Relations[0].Owner = "x" },
		"path":     func(s *catalog.Spec) { s.SearchPath = []string{"public", "app"} },
		"function": func(s *catalog.Spec) { s.Functions[0].SecurityDefiner = true },
		"names":    func(s *catalog.Spec) { s.CatalogFunctions["x"] = true },
		"operator": func(s *catalog.Spec) { s.Operators[0].Extension = "vector" },
	} {
		changed := spec()
		change(&changed)
		if catalog.NewSnapshot(changed).Version() == a {
			t.Errorf("a change of %s does not count", name)
		}
	}
}

func TestQuoting(t *testing.T) {
	for name, want := range map[string]string{
		"people": "people", "People": `"People"`, "a b": `"a b"`, `a"b`: `"a""b"`, "user": `"user"`, "1a": `"1a"`,
		"": `""`, "é": `"é"`, "_a1": "_a1", "a$": `"a$"`,
	} {
		if got := catalog.QuoteIdent(name); got != want {
			t.Errorf("%q: %s", name, got)
		}
	}
	for name, want := range map[string]string{"a": "'a'", "it's": "'it''s'", `a\'b`: `E'a\\''b'`, "": "''"} {
		if got := catalog.QuoteLiteral(name); got != want {
			t.Errorf("%q: %s", name, got)
		}
	}
}

func TestShadowNames(t *testing.T) {
	for original, want := range map[catalog.Name]catalog.Name{
		n("pg_catalog", "pg_class"):         n("pgconsent_catalog", "pg_class"),
		n("information_schema", "tables"):   n("pgconsent_catalog", "is_tables"),
		n("pg_catalog", "pg_authid"):        {},
		n("public", "pg_class"):             {},
		n("pg_catalog", "pg_statistic"):     {},
		n("information_schema", "pg_class"): {},
	} {
		if got, ok := catalog.ShadowRelation(original); got != want || ok != (want != catalog.Name{}) {
			t.Errorf("%s: %s, %v", original, got, ok)
		}
	}
	if got, ok := catalog.ShadowFunction("pg_get_constraintdef"); !ok || got != n("pgconsent_catalog", "pg_get_constraintdef") {
		t.Errorf("%v", got)
	}
	if _, ok := catalog.ShadowFunction("count"); ok {
		t.Error("count has a stand-in")
	}
	seenViews := map[catalog.Name]bool{}
	for _, s := range catalog.Shadows() {
		if seenViews[s.View()] {
			t.Errorf("%s twice", s.View())
		}
		seenViews[s.View()] = true
	}
}
