package policy_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// Each example of docs/reference/policy-columns.md and docs/reference/policy-limits.md compiles.
func TestColumnsAndLimitsDocuments(t *testing.T) {
	text, err := os.ReadFile("../docs/reference/policy-columns.md")
	if err != nil {
		t.Fatal(err)
	}
	limits, err := os.ReadFile("../docs/reference/policy-limits.md")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, limits...)
	column := func(name, sqlType string) catalog.Column { return catalog.Column{Name: name, Type: sqlType} }
	snap := catalog.NewSnapshot(catalog.Spec{Database: "d", ServerVersion: 150000, SearchPath: []string{"public"}, Relations: []*catalog.Relation{{
		Name: catalog.Name{Schema: "public", Name: "people"}, Kind: catalog.Table, PrimaryKey: []string{"id"},
		Columns: []catalog.Column{column("id", "uuid"), column("user_id", "uuid"), column("name", "text"),
			column("email", "text"), column("born", "date"), column("metadata", "jsonb")},
	}}})
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(examples) < 4 {
		t.Fatalf("the pages have %d examples", len(examples))
	}
	for _, e := range examples {
		doc, err := policy.Parse("policy-columns.md", []byte(head+e[1]))
		if err == nil {
			_, err = policy.Compile(doc, snap)
		}
		if err != nil {
			t.Errorf("%v\n%s", err, e[1])
		}
	}
}
