package policy_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// The rules of all its ancestors apply to a partition or child table. Agents may name it only if it shows no more rows
// than each ancestor does.
func TestPartsAreUnderAllOfTheirTables(t *testing.T) {
	name := func(n string) catalog.Name { return catalog.Name{Schema: "public", Name: n} }
	columns := func(names ...string) (out []catalog.Column) {
		for _, n := range names {
			out = append(out, catalog.Column{Name: n, Type: "integer", TypeOID: 23})
		}
		return out
	}
	ancestors := map[string][]string{ // all parents of a table, to any depth
		"of_a": {"a"}, "of_b": {"b"}, "of_both": {"a", "b"}, "of_both_turned": {"b", "a"}, "of_of_a": {
			"a"}, "of_of_b": {"b"}, "below_both": {"a", "b"}, "more_of_a": {"a"}, "more_of_both": {"a", "b"}, "below_more": {"a"},
	}
	parents := map[string][]string{
		"of_a": {"a"}, "of_b": {"b"}, "of_both": {"a", "b"}, "of_both_turned": {"b", "a"}, "of_of_a": {
			"of_a"}, "of_of_b": {"of_b"}, "below_both": {"of_a", "of_b"}, "more_of_a": {"a"}, "more_of_both": {"a", "b"}, "below_more": {"more_of_a"},
	}
	extraTables := []string{"more_of_a", "more_of_both", "below_more"}
	for i := range 4 {
		hidesColumn := map[string]bool{"a": i&1 != 0, "b": i&2 != 0}
		spec := catalog.Spec{ServerVersion: 150000, SearchPath: []string{"public"}}
		oid := uint32(20000)
		add := func(n string, r catalog.Relation) {
			oid++
			r.Name, r.OID, r.Kind = name(n), oid, catalog.Table
			spec.Relations = append(spec.Relations, &r)
		}
		for _, n := range []string{"a", "b"} {
			add(n, catalog.Relation{Columns: columns("id", "x"), Inheritance: catalog.Inheritance{HasChildren: true}})
		}
		for n, parentNames := range parents {
			r := catalog.Relation{Columns: columns("id", "x")}
			if slices.Contains(extraTables, n) {
				r.Columns = columns("id", "x", "y")
			}
			for _, p := range parentNames {
				r.Parents = append(r.Parents, name(p))
			}
			add(n, r)
		}
		text := "version: 1\nattributes: { user: { type: integer, source: credential } }\ntables:\n"
		for n, rule := range map[string]string{"a": "id > 1", "b": "id < 9"} {
			visibleTables := ""
			if hidesColumn[n] {
				visibleTables = ", columns: { id: allow }"
			}
			text += fmt.Sprintf("  %s: { rows: [ sql: %q ]%s }\n", n, rule, visibleTables)
		}
		doc, err := policy.Parse("p.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		p, err := policy.Compile(doc, catalog.NewSnapshot(spec))
		if err != nil {
			t.Fatal(err)
		}
		count := 0
		for _, child := range p.Children() {
			n := child.Relation.Name.Name
			isReadable := !slices.Contains(extraTables, n)
			for _, ancestor := range ancestors[n] {
				count++
				table, _ := p.Table(name(ancestor))
				isReadable = isReadable && !hidesColumn[ancestor]
				if !predicate.Implies(child.Rows, table.Rows) {
					t.Errorf("%s is not under the rule of %s", n, ancestor)
				}
			}
			if child.ReadableByName != isReadable {
				t.Errorf("%s, of %q (with hidden columns: %v): named %t", n, ancestors[n], hidesColumn, child.ReadableByName)
			}
		}
		if count != 14 {
			t.Errorf("%d parts", count)
		}
	}
}
