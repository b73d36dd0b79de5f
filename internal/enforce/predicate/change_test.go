package predicate_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/test/tier"
)

// Whatever a rule says, a new row hides no row but in a table that [predicate.TablesWhereInsertHides] names, and time
// hides none unless [predicate.TimeCanHide] says so: what snapshots see too long is judged by these.
func TestInsertsThatHideRows(t *testing.T) {
	r := newTriples(t)
	var all []*schema
	for number := range tier.Count(6, 16, 64) {
		s := newSchema(11, number, 24)
		kept := make([][]predicate.Row, len(s.tables))
		for i, table := range s.tables { // the database has the tables only
			kept[i], table.rows = table.rows, nil
		}
		r.run(r.super, s.sql())
		for i, table := range s.tables {
			table.rows = kept[i]
		}
		all = append(all, s)
	}
	snap, err := pgcatalog.Load(t.Context(), r.super, []string{"public"})
	if err != nil {
		t.Fatal(err)
	}
	rows, moments, hid := 0, 0, 0
	for _, s := range all {
		for range 24 {
			text := s.policy()
			doc, err := policy.Parse("policy.yaml", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			pol, err := policy.Compile(doc, snap)
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			for _, asked := range s.tables {
				compiled, listed := pol.Table(s.relation(asked))
				if !listed {
					continue
				}
				node := compiled.Rows
				lookupTables := predicate.LookupTables(node)
				grows := map[catalog.Name]bool{}
				for _, g := range predicate.TablesWhereInsertHides(node) {
					grows[g.Name] = true
				}
				for range 8 {
					w := r.world(s, s.caller())
					w.Now = time.Now()
					for _, family := range families {
						w.Attributes["live_"+family], w.Attributes["opt_"+family] = s.value(family), s.value(family)
					}
					before := r.model(node, asked, w)
					if len(before) == 0 {
						continue
					}
					gone := func(w predicate.World) []string {
						after := r.model(node, asked, w)
						return slices.DeleteFunc(slices.Clone(before), func(id string) bool { return slices.Contains(after, id) })
					}
					later := w
					later.Now = w.Now.Add(time.Duration(1+s.IntN(40_000)) * time.Hour)
					if lost := gone(later); len(lost) > 0 && !predicate.TimeCanHide(node) {
						t.Fatalf("%s: time hides %v\n%s", asked.name, lost, text)
					}
					moments++
					for _, h := range lookupTables {
						table, is := h.Relation.Name, w.Tables[h.Relation.Name]
						more := added(s.Rand, is, keyOf(snap, table))
						if len(more) == 0 {
							continue
						}
						w := w
						w.Tables = maps.Clone(w.Tables)
						w.Tables[table] = append(slices.Clone(is), more...)
						lost := gone(w)
						if len(lost) > 0 && !grows[table] {
							t.Fatalf("%s: new rows of %s hide %v\n%v\n%s", asked.name, table, lost, more, text)
						}
						rows++
						if len(lost) > 0 {
							hid++
						}
					}
				}
			}
		}
	}
	t.Logf("%d times new rows, which hid some %d times, and %d times later", rows, hid, moments)
	if hid < 3*len(all) || moments < 12*len(all) {
		t.Errorf("the sample says little")
	}
}

// keyOf is what no two rows of a table share.
func keyOf(snap *catalog.Snapshot, table catalog.Name) []string {
	if table == predicate.CurrentConsents {
		return predicate.RegistryRelation().PrimaryKey
	}
	r, _ := snap.Relation(table)
	return r.PrimaryKey
}

// added draws rows like those that are there, made of parts of several, with keys of their own.
func added(r *rand.Rand, is []predicate.Row, key []string) []predicate.Row {
	var out []predicate.Row
	id := func(row predicate.Row) string {
		text := ""
		for _, c := range key {
			text += row[c] + "\x00"
		}
		return text
	}
	for range 8 {
		if len(is) == 0 {
			break
		}
		row := predicate.Row{}
		for _, c := range slices.Sorted(maps.Keys(is[r.IntN(len(is))])) {
			if v, ok := is[r.IntN(len(is))][c]; ok {
				row[c] = v
			}
		}
		if len(key) > 0 && (slices.ContainsFunc(key, func(c string) bool { return row[c] == "" }) ||
			slices.ContainsFunc(append(slices.Clone(is), out...), func(other predicate.Row) bool { return id(other) == id(row) })) {
			continue
		}
		out = append(out, row)
	}
	return out
}
