package policy_test

import (
	"errors"
	"fmt"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

var peopleName = catalog.Name{Schema: "public", Name: "people"}

// exampleCatalog is a catalog with one table, as package pgcatalog would read it from a server.
func exampleCatalog() *catalog.Snapshot {
	return catalog.NewSnapshot(catalog.Spec{
		Database: "app", ServerVersion: 150000, SearchPath: []string{"public"},
		Relations: []*catalog.Relation{{Name: peopleName, Kind: catalog.Table, PrimaryKey: []string{"id"}, Columns: []catalog.Column{
			{Name: "id", Type: "bigint"}, {Name: "owner", Type: "uuid"}, {Name: "consent", Type: "text"}}}},
	})
}

// A policy is read from YAML and compiled against the catalogs of a database. The result has one predicate for each
// table.
func ExampleCompile() {
	doc, err := policy.Parse("policy.yaml", []byte(`version: 1
attributes: { user: { type: uuid, source: credential } }
tables:
  people: { rows: [ { own: { column: owner, is: user } }, { status: { column: consent, is: granted } } ] }
`))
	if err != nil {
		panic(err)
	}
	p, err := policy.Compile(doc, exampleCatalog())
	if err != nil {
		panic(err)
	}
	people, isList := p.Table(peopleName)
	const mine = "11111111-1111-4111-8111-111111111111"
	session := predicate.World{Attributes: map[string]string{"user": mine}, Sealed: true}
	for _, row := range []predicate.Row{
		{"owner": mine, "consent": "granted"},
		{"owner": mine, "consent": "withdrawn"},
		{"owner": mine}, // without a consent
		{"owner": "22222222-2222-4222-8222-222222222222", "consent": "granted"},
	} {
		fmt.Println(isList, predicate.Eval(people.Rows, row, session))
	}
	// Output:
	// true true
	// true false
	// true false
	// true false
}

// The error for a faulty policy contains the position in the file, and a suggestion.
func ExampleErrors() {
	doc, err := policy.Parse("policy.yaml", []byte(`version: 1
attributes: { user: { type: uuid, source: credential } }
tables:
  people: { rows: [ { own: { column: ownr, is: user } } ] }
`))
	if err != nil {
		panic(err)
	}
	_, err = policy.Compile(doc, exampleCatalog())
	var policyErrors policy.Errors
	fmt.Println(errors.As(err, &policyErrors))
	fmt.Println(err)
	// Output:
	// true
	// policy.yaml:4:38: public.people has no column "ownr" (did you mean "owner"?)
}
