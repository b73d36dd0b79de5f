package dsar_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pgconsent/pgconsent/internal/record/dsar"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// If a consent refers to a table with a single-column key, its value identifies a person. A part of a composite key is
// shared by many rows, and identifies nobody.
func TestCompositeKeysArePersonsOfNobody(t *testing.T) {
	for name, c := range map[string]struct {
		key  []string
		want []string
	}{
		"one column":  {[]string{"id"}, []string{"public.notes by public.people.id", "public.people.id"}},
		"two columns": {[]string{"id", "tenant"}, nil},
		"no key":      {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			public := func(name string) catalog.Name { return catalog.Name{Schema: "public", Name: name} }
			text := func(names ...string) (out []catalog.Column) {
				for _, n := range names {
					out = append(out, catalog.Column{Name: n, Type: "text"})
				}
				return out
			}
			snap := catalog.NewSnapshot(catalog.Spec{Database: "d", ServerVersion: 150000,
				SearchPath: []string{"public"}, Relations: []*catalog.Relation{
					{Name: public("people"), Kind: catalog.Table, PrimaryKey: c.key,
						Columns: text("id", "tenant", "status")},
					{Name: public("notes"), Kind: catalog.Table, PrimaryKey: []string{"id"},
						Columns: text("id", "person", "tenant")},
				}})
			doc, err := policy.Parse("p.yaml", []byte("version: 1\nattributes: {}\ntables:\n  people: { rows: open }\n"+
				"  notes: { rows: [ consent: { every: [ people: { id: person, tenant: tenant } ], status: status, is: given } ] }\n"))
			if err != nil {
				t.Fatal(err)
			}
			p, err := policy.Compile(doc, snap)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, table := range dsar.SubjectTables(p) {
				for _, l := range table.Links {
					link := table.Relation.Name.String() + "." + l.Column
					for _, hop := range l.Steps {
						link = fmt.Sprintf("%s by %s.%s", table.Relation.Name, hop.Relation.Name, l.Column)
					}
					got = append(got, link)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("rows are somebody's by %q, want %q", got, c.want)
			}
		})
	}
}
