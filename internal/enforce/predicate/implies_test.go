package predicate_test

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// A condition asks for all of another only where each part of that is one of its own.
func TestImplies(t *testing.T) {
	own, other := predicate.Own{Column: "a", Attribute: "user"}, predicate.Own{Column: "b", Attribute: "user"}
	status := predicate.Status{Column: "state", Value: "done"}
	either := predicate.Any{own, status}
	for _, c := range []struct {
		n, of predicate.Node
		want  bool
	}{
		{own, own, true},
		{own, other, false},
		{predicate.All{own, status}, own, true},
		{own, predicate.All{own, status}, false},
		{predicate.All{status, own}, predicate.All{own, status}, true},
		{predicate.All{predicate.All{status}, predicate.All{own, other}}, predicate.All{own, status}, true},
		{predicate.All{own, other}, predicate.All{own, status}, false},
		{either, own, false}, // one of several is not asked
		{own, either, false},
		{predicate.All{own, either}, predicate.All{either}, true},
		{predicate.Not{Node: own}, own, false},
	} {
		if got := predicate.Implies(c.n, c.of); got != c.want {
			t.Errorf("%#v asks for all of %#v: %t", c.n, c.of, got)
		}
	}
}

// Signed views are of tables: what is written to a partition by its own name, a view and what another server has get none.
func TestTablesWithSignedViews(t *testing.T) {
	own := predicate.Own{Column: "a", Attribute: "user"}
	for _, c := range []struct {
		is   catalog.Relation
		want bool
	}{
		{catalog.Relation{Kind: catalog.Table}, true},
		{catalog.Relation{Kind: catalog.Table, Inheritance: catalog.Inheritance{HasChildren: true}}, true},
		{catalog.Relation{Kind: catalog.PartitionedTable, Inheritance: catalog.Inheritance{HasChildren: true}}, true},
		{catalog.Relation{Kind: catalog.Table, Inheritance: catalog.Inheritance{IsPartition: true}}, false},
		{catalog.Relation{Kind: catalog.PartitionedTable, Inheritance: catalog.Inheritance{IsPartition: true}}, false},
		{catalog.Relation{Kind: catalog.View}, false},
		{catalog.Relation{Kind: catalog.MaterializedView}, false},
		{catalog.Relation{Kind: catalog.ForeignTable}, false},
	} {
		if got := predicate.HasSignedView(own, &c.is); got != c.want {
			t.Errorf("%+v: %t", c.is, got)
		}
		// what has no such form
		for _, node := range []predicate.Node{predicate.Any{}, predicate.Not{Node: predicate.Any{}},
			predicate.All{own, predicate.Not{Node: predicate.Derived{}}}, predicate.Reference{}, predicate.Open{}} {
			if predicate.HasSignedView(node, &c.is) {
				t.Errorf("%+v by %#v has a signed view", c.is, node)
			}
		}
	}
}
