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

// A new row hides rows only if [predicate.TablesWhereInsertHides] names its table, and time hides rows only if
// [predicate.TimeCanHide] is true. These two functions decide for how long a snapshot may be used.
func TestInsertsThatHideRows(t *testing.T) {
	r := newTriples(t)
	var schemas []*schema
	for number := range tier.Count(6, 16, 64) {
		s := newSchema(11, number, 24)
		savedRows := make([][]predicate.Row, len(s.tables))
		for i, table := range s.tables { // the database gets the tables without rows
			savedRows[i], table.rows = table.rows, nil
		}
		r.run(r.super, s.sql())
		for i, table := range s.tables {
			table.rows = savedRows[i]
		}
		schemas = append(schemas, s)
	}
	snap, err := pgcatalog.Load(t.Context(), r.super, []string{"public"})
	if err != nil {
		t.Fatal(err)
	}
	insertChecks, timeChecks, hidingInserts := 0, 0, 0
	for _, s := range schemas {
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
			for _, ruleTable := range s.tables {
				compiled, isListed := pol.Table(s.relation(ruleTable))
				if !isListed {
					continue
				}
				node := compiled.Rows
				lookupTables := predicate.LookupTables(node)
				insertCanHide := map[catalog.Name]bool{}
				for _, g := range predicate.TablesWhereInsertHides(node) {
					insertCanHide[g.Name] = true
				}
				for range 8 {
					w := r.world(s, s.caller())
					w.Now = time.Now()
					for _, family := range families {
						w.Attributes["live_"+family], w.Attributes["opt_"+family] = s.value(family), s.value(family)
					}
					before := r.modelRows(node, ruleTable, w)
					if len(before) == 0 {
						continue
					}
					hiddenFrom := func(w predicate.World) []string {
						after := r.modelRows(node, ruleTable, w)
						return slices.DeleteFunc(slices.Clone(before), func(id string) bool { return slices.Contains(after, id) })
					}
					laterWorld := w
					laterWorld.Now = w.Now.Add(time.Duration(1+s.IntN(40_000)) * time.Hour)
					if hiddenIDs := hiddenFrom(laterWorld); len(hiddenIDs) > 0 && !predicate.TimeCanHide(node) {
						t.Fatalf("%s: time hides %v\n%s", ruleTable.name, hiddenIDs, text)
					}
					timeChecks++
					for _, h := range lookupTables {
						table, existingRows := h.Relation.Name, w.Tables[h.Relation.Name]
						newRows := drawSimilarRows(s.Rand, existingRows, keyColumns(snap, table))
						if len(newRows) == 0 {
							continue
						}
						w := w
						w.Tables = maps.Clone(w.Tables)
						w.Tables[table] = append(slices.Clone(existingRows), newRows...)
						hiddenIDs := hiddenFrom(w)
						if len(hiddenIDs) > 0 && !insertCanHide[table] {
							t.Fatalf("%s: new rows of %s hide %v\n%v\n%s", ruleTable.name, table, hiddenIDs, newRows, text)
						}
						insertChecks++
						if len(hiddenIDs) > 0 {
							hidingInserts++
						}
					}
				}
			}
		}
	}
	t.Logf("%d times new rows, which hid some %d times, and %d times later", insertChecks, hidingInserts, timeChecks)
	if hidingInserts < 3*len(schemas) || timeChecks < 12*len(schemas) {
		t.Errorf("the sample says little")
	}
}

// keyColumns returns the columns of a table's primary key.
func keyColumns(snap *catalog.Snapshot, table catalog.Name) []string {
	if table == predicate.CurrentConsents {
		return predicate.RegistryRelation().PrimaryKey
	}
	r, _ := snap.Relation(table)
	return r.PrimaryKey
}

// drawSimilarRows draws new rows that combine values of existing rows and have keys of their own.
func drawSimilarRows(r *rand.Rand, existingRows []predicate.Row, key []string) []predicate.Row {
	var out []predicate.Row
	id := func(row predicate.Row) string {
		text := ""
		for _, c := range key {
			text += row[c] + "\x00"
		}
		return text
	}
	for range 8 {
		if len(existingRows) == 0 {
			break
		}
		row := predicate.Row{}
		for _, c := range slices.Sorted(maps.Keys(existingRows[r.IntN(len(existingRows))])) {
			if v, ok := existingRows[r.IntN(len(existingRows))][c]; ok {
				row[c] = v
			}
		}
		if len(key) > 0 && (slices.ContainsFunc(key, func(c string) bool { return row[c] == "" }) ||
			slices.ContainsFunc(append(slices.Clone(existingRows), out...), func(other predicate.Row) bool { return id(other) == id(row) })) {
			continue
		}
		out = append(out, row)
	}
	return out
}
