package predicate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// A link leads to at most one row if the key is unique at all times (not deferred), and the table has no inheritance
// children.
func TestLinksToAtMostOneRow(t *testing.T) {
	key := []string{"a", "b"}
	uniqueIndex, plainIndex := catalog.BTree{Columns: key, IsUnique: true}, catalog.BTree{Columns: key}
	step := func(r catalog.Relation, columns ...string) predicate.Step {
		s := predicate.Step{Relation: &r, Column: columns[0], FromColumn: "x"}
		for _, c := range columns[1:] {
			s.MorePairs = append(s.MorePairs, predicate.ColumnPair{Column: c, FromColumn: "y"})
		}
		return s
	}
	for name, c := range map[string]struct {
		step     predicate.Step
		isOneRow bool
	}{
		"the key": {
			step(catalog.Relation{Kind: catalog.Table, PrimaryKey: key, BTrees: []catalog.BTree{uniqueIndex}}, "a", "b"), true},
		"its columns in another order": {
			step(catalog.Relation{Kind: catalog.Table, PrimaryKey: key,
				BTrees: []catalog.BTree{{Columns: []string{"b", "a"}, IsUnique: true}}}, "b", "a"), true},
		"the key, and a column beside": {
			step(catalog.Relation{Kind: catalog.Table, PrimaryKey: key, BTrees: []catalog.BTree{plainIndex, uniqueIndex}}, "a", "b", "c"), true},
		"part of the key": {
			step(catalog.Relation{Kind: catalog.Table, PrimaryKey: key, BTrees: []catalog.BTree{uniqueIndex}}, "a"), false},
		"part of the key, and another": {
			step(catalog.Relation{Kind: catalog.Table, PrimaryKey: key, BTrees: []catalog.BTree{uniqueIndex}}, "a", "c"), false},
		"no key":                 {step(catalog.Relation{Kind: catalog.Table, BTrees: []catalog.BTree{uniqueIndex}}, "a", "b"), false},
		"a key that is deferred": {step(catalog.Relation{Kind: catalog.Table, PrimaryKey: key}, "a", "b"), false},
		"one beside which an index is no key": {
			step(catalog.Relation{Kind: catalog.Table, PrimaryKey: key, BTrees: []catalog.BTree{plainIndex}}, "a", "b"), false},
		"one beside which less is a key": {
			step(catalog.Relation{Kind: catalog.Table,
				PrimaryKey: key, BTrees: []catalog.BTree{{Columns: []string{"a"}, IsUnique: true}}}, "a", "b"), false},
		"one beside which another is a key": {
			step(catalog.Relation{Kind: catalog.Table, PrimaryKey: key,
				BTrees: []catalog.BTree{{Columns: []string{"a", "c"}, IsUnique: true}}}, "a", "b"), false},
		"children, whose keys are their own": {
			step(catalog.Relation{Kind: catalog.Table, PrimaryKey: key, BTrees: []catalog.BTree{uniqueIndex},
				Inheritance: catalog.Inheritance{HasChildren: true}}, "a", "b"), false},
		"partitions, which the key counts for": {
			step(catalog.Relation{Kind: catalog.PartitionedTable, PrimaryKey: key, BTrees: []catalog.BTree{uniqueIndex},
				Inheritance: catalog.Inheritance{HasChildren: true}}, "a", "b"), true},
		"a foreign table": {
			step(catalog.Relation{Kind: catalog.ForeignTable, PrimaryKey: key, BTrees: []catalog.BTree{uniqueIndex}}, "a", "b"), false},
	} {
		if c.step.LeadsToAtMostOne() != c.isOneRow {
			t.Errorf("%s: %t", name, c.step.LeadsToAtMostOne())
		}
	}
}

// A new row of a table can hide other rows if a rule requires something of all linked rows of this table.
func TestTablesWhereInsertHides(t *testing.T) {
	table := func(name string) *catalog.Relation {
		return &catalog.Relation{Name: catalog.Name{Schema: "public", Name: name}, Kind: catalog.Table,
			PrimaryKey: []string{"id"}, BTrees: []catalog.BTree{{Columns: []string{"id"}, IsUnique: true}},
			Columns: []catalog.Column{{Name: "id", Type: "integer", TypeOID: 23, NotNull: true},
				{Name: "of", Type: "integer", TypeOID: 23}, {Name: "source", Type: "integer", TypeOID: 23}}}
	}
	pieces, links, linksAgain := table("pieces"), table("links"), table("links_again")
	stepsThrough := func(link *catalog.Relation) []predicate.Step {
		return []predicate.Step{{Relation: link, Column: "of", FromColumn: "id"}, {Relation: pieces, Column: "id", FromColumn: "source"}}
	}
	originThrough := func(link *catalog.Relation) predicate.Origin { return predicate.Origin{Steps: stepsThrough(link)} }
	for name, c := range map[string]struct {
		rule predicate.Node
		want string
	}{
		"people":  {predicate.Consent{Steps: stepsThrough(links), StatusColumn: "of", AgreedStatus: "1"}, "[links]"},
		"records": {predicate.RecordedConsent{Steps: stepsThrough(links)}, "[links]"},
		"sources": {predicate.Derived{Origin: originThrough(links), Rows: predicate.Open{}}, "[links]"},
		"sources and others": {predicate.Derived{
			Origin: originThrough(links), Rows: predicate.Open{}, SourceOrigins: []predicate.Origin{originThrough(links),
				originThrough(linksAgain)}},
			"[links links_again]"},
		"sources by one link": {predicate.Derived{
			Origin: originThrough(linksAgain), Rows: predicate.Open{},
			SourceOrigins: []predicate.Origin{originThrough(links)}}, "[links links_again]"},
	} {
		var got []string
		for _, relation := range predicate.TablesWhereInsertHides(c.rule) {
			got = append(got, relation.Name.Name)
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}

// Every form of a rule finds a materialized answer by the whole primary key of the row.
func TestMaterializedLookupByWholeKey(t *testing.T) {
	people := &catalog.Relation{Name: catalog.Name{Schema: "public", Name: "people"}, Kind: catalog.Table,
		PrimaryKey: []string{"id"}, Columns: []catalog.Column{{Name: "id", TypeOID: 23, NotNull: true}, {Name: "agreed", TypeOID: 25}}}
	for _, key := range [][]string{{"a"}, {"a", "b"}, {"b", "a", "c"}} {
		rows := &catalog.Relation{Name: catalog.Name{Schema: "public", Name: "rows"}, Kind: catalog.Table,
			PrimaryKey: key, Columns: []catalog.Column{{Name: "person", TypeOID: 23}}}
		for _, name := range key {
			rows.Columns = append(rows.Columns, catalog.Column{Name: name, TypeOID: 23, NotNull: true})
		}
		n := predicate.Consent{Steps: []predicate.Step{{Relation: people, Column: "id", FromColumn: "person"}},
			StatusColumn: "agreed", AgreedStatus: "yes", Materialized: &predicate.Materialized{Relation: rows}}
		for _, text := range []string{predicate.RowPolicySQL(n, rows), predicate.CheckSQL(n, rows)} {
			lookupCount := strings.Count(text, n.MaterializedTable().SQL())
			if lookupCount == 0 {
				t.Errorf("%v: what is kept is not looked up: %s", key, text)
			}
			for _, name := range key {
				if columnCount := strings.Count(text, `."`+name+`"`) + strings.Count(text, "."+name+" "); columnCount < 2*lookupCount {
					t.Errorf("%v: %d times looked up, and %q named %d times: %s", key, lookupCount, name, columnCount, text)
				}
			}
		}
	}
}

// TestPairsAreHashed: a link by several columns has a form that PostgreSQL evaluates with a hashed sub-plan.
func TestPairsAreHashed(t *testing.T) {
	b := newTestDatabase(t)
	pairs := []predicate.ColumnPair{{Column: "owner", FromColumn: "owner"}}
	for name, node := range map[string]predicate.Node{
		"a row that must show": predicate.Visible{Relation: b.relation("parents"), Column: "id", FromColumn: "parent", MorePairs: pairs,
			Rows: predicate.Status{Column: "status", Value: "granted"}},
		"a status on the row": predicate.Consent{FirstRequired: true, StatusColumn: "status", AgreedStatus: "granted",
			Steps: []predicate.Step{{Relation: b.relation("parents"), Column: "id", FromColumn: "parent", MorePairs: pairs}}},
		"a status two links away": predicate.Consent{StatusColumn: "status", AgreedStatus: "granted", Steps: []predicate.Step{
			{Relation: b.relation("links"), Column: "item", FromColumn: "id", MorePairs: []predicate.ColumnPair{{Column: "subject", FromColumn: "subject"}}},
			{Relation: b.relation("subjects"), Column: "id", FromColumn: "subject"}}},
	} {
		condition := predicate.RowPolicySQL(node, b.relation("items"))
		results, err := b.conn.PgConn().Exec(t.Context(), predicate.UseHashHint+"EXPLAIN (COSTS OFF) SELECT id FROM public.items WHERE "+
			condition).ReadAll()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, condition)
		}
		plan := ""
		for _, row := range results[0].Rows {
			plan += string(row[0]) + "\n"
		}
		if !strings.Contains(plan, "hashed SubPlan") || strings.Contains(plan, "(SubPlan") {
			t.Errorf("%s:\n%s", name, plan)
		}
	}
}
