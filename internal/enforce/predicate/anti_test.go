package predicate_test

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// If a link may lead to several rows, all of them must agree. So the hashed sets and the signed views test a single row
// only if a unique key guarantees that there is at most one.
func TestLinksByKeyLeadToOneRow(t *testing.T) {
	column := func(name string, oid uint32) catalog.Column { return catalog.Column{Name: name, TypeOID: oid} }
	subjectsWith := func(change func(*catalog.Relation)) *catalog.Relation {
		relation := &catalog.Relation{
			Name: catalog.Name{Schema: "public", Name: "subjects"}, Kind: catalog.Table, Columns: []catalog.Column{
				column("id", 20), column("part", 20), column("status", 25)},
			PrimaryKey: []string{"id"}, BTrees: []catalog.BTree{{Columns: []string{"id"}, IsUnique: true}},
		}
		change(relation)
		return relation
	}
	items := &catalog.Relation{Name: catalog.Name{Schema: "public", Name: "items"}, Kind: catalog.Table, Columns: []catalog.Column{column("id", 20)}}
	links := &catalog.Relation{Name: catalog.Name{Schema: "public", Name: "links"}, Kind: catalog.Table,
		Columns: []catalog.Column{column("item", 20), column("subject", 20)}}
	for name, c := range map[string]struct {
		change   func(*catalog.Relation)
		isOneRow bool
	}{
		"a key":             {func(*catalog.Relation) {}, true},
		"a partitioned one": {func(relation *catalog.Relation) { relation.Kind, relation.HasChildren = catalog.PartitionedTable, true }, true},
		"no key":            {func(relation *catalog.Relation) { relation.PrimaryKey = nil }, false},
		"a deferred key":    {func(relation *catalog.Relation) { relation.BTrees[0].IsUnique = false }, false},
		"a part of a key": {func(relation *catalog.Relation) {
			relation.PrimaryKey, relation.BTrees[0].Columns = []string{"id", "part"}, []string{"id", "part"}
		}, false},
		"children":           {func(relation *catalog.Relation) { relation.HasChildren = true }, false},
		"another table's":    {func(relation *catalog.Relation) { relation.Kind = catalog.ForeignTable }, false},
		"a view":             {func(relation *catalog.Relation) { relation.Kind = catalog.View }, false},
		"an index beside it": {func(relation *catalog.Relation) { relation.BTrees[0].Columns = []string{"part"} }, false},
	} {
		n := predicate.Consent{
			Steps:        []predicate.Step{{Relation: links, Column: "item", FromColumn: "id"}, {Relation: subjectsWith(c.change), Column: "id", FromColumn: "subject"}},
			StatusColumn: "status", AgreedStatus: "granted",
		}
		flatSQL, _ := predicate.SignedViewCondition(n, items, "t")
		for _, sql := range []string{flatSQL, predicate.RowPolicySQL(n, items)} {
			if readsAllRows := strings.Contains(sql, " LEFT JOIN (SELECT "); readsAllRows == c.isOneRow {
				t.Errorf("%s: %s", name, sql)
			}
		}
	}
}
