package predicate_test

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// A condition implies another if each conjunct of the other is one of its own conjuncts.
func TestImplies(t *testing.T) {
	ownRule, otherRule := predicate.Own{Column: "a", Attribute: "user"}, predicate.Own{Column: "b", Attribute: "user"}
	statusRule := predicate.Status{Column: "state", Value: "done"}
	eitherRule := predicate.Any{ownRule, statusRule}
	for _, c := range []struct {
		n, implied predicate.Node
		want       bool
	}{
		{ownRule, ownRule, true},
		{ownRule, otherRule, false},
		{predicate.All{ownRule, statusRule}, ownRule, true},
		{ownRule, predicate.All{ownRule, statusRule}, false},
		{predicate.All{statusRule, ownRule}, predicate.All{ownRule, statusRule}, true},
		{predicate.All{predicate.All{statusRule}, predicate.All{ownRule, otherRule}}, predicate.All{ownRule, statusRule}, true},
		{predicate.All{ownRule, otherRule}, predicate.All{ownRule, statusRule}, false},
		{eitherRule, ownRule, false}, // one alternative of several need not hold
		{ownRule, eitherRule, false},
		{predicate.All{ownRule, eitherRule}, predicate.All{eitherRule}, true},
		{predicate.Not{Node: ownRule}, ownRule, false},
	} {
		if got := predicate.Implies(c.n, c.implied); got != c.want {
			t.Errorf("%#v asks for all of %#v: %t", c.n, c.implied, got)
		}
	}
}

// Only tables have signed views: partitions, views and foreign tables have none.
func TestTablesWithSignedViews(t *testing.T) {
	ownRule := predicate.Own{Column: "a", Attribute: "user"}
	for _, c := range []struct {
		relation catalog.Relation
		want     bool
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
		if got := predicate.HasSignedView(ownRule, &c.relation); got != c.want {
			t.Errorf("%+v: %t", c.relation, got)
		}
		// predicates that have no form for signed views
		for _, node := range []predicate.Node{predicate.Any{}, predicate.Not{Node: predicate.Any{}},
			predicate.All{ownRule, predicate.Not{Node: predicate.Derived{}}}, predicate.Reference{}, predicate.Open{}} {
			if predicate.HasSignedView(node, &c.relation) {
				t.Errorf("%+v by %#v has a signed view", c.relation, node)
			}
		}
	}
}
