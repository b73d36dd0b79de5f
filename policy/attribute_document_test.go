package policy_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// Each example of docs/reference/policy-attributes.md compiles.
func TestAttributesDocument(t *testing.T) {
	text, err := os.ReadFile("../docs/reference/policy-attributes.md")
	if err != nil {
		t.Fatal(err)
	}
	column := func(name, sqlType string) catalog.Column { return catalog.Column{Name: name, Type: sqlType} }
	relation := func(name string, columns ...catalog.Column) *catalog.Relation {
		return &catalog.Relation{Name: catalog.Name{Schema: "public", Name: name}, Kind: catalog.Table,
			PrimaryKey: []string{"id"}, Columns: append(columns, column("id", "uuid"))}
	}
	snap := catalog.NewSnapshot(catalog.Spec{Database: "d", ServerVersion: 150000, SearchPath: []string{"public"}, Relations: []*catalog.Relation{
		relation("Session", column("userA", "uuid"), column("userB", "uuid"), column("stage", "integer"), column("status", "text")),
		relation("Turn", column("sessionId", "uuid"), column("userId", "uuid"), column("intensity", "integer"),
			column("message", "text"), column("sealedAt", "timestamp with time zone")),
	}})
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(examples) < 4 {
		t.Fatalf("the page has %d examples", len(examples))
	}
	for _, e := range examples {
		doc, err := policy.Parse("policy-attributes.md", []byte("version: 1\n"+e[1]))
		if err == nil {
			_, err = policy.Compile(doc, snap)
		}
		if err != nil {
			t.Errorf("%v\n%s", err, e[1])
		}
	}
}
