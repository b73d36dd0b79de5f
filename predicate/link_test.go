package predicate_test

import (
	"testing"

	"github.com/pgconsent/pgconsent/catalog"
	"github.com/pgconsent/pgconsent/predicate"
)

// A link leads to one row where the key is one inside any transaction, and no child's rows are among the table's.
func TestWhatLeadsToOne(t *testing.T) {
	key := []string{"a", "b"}
	unique, plain := catalog.BTree{Columns: key, Unique: true}, catalog.BTree{Columns: key}
	step := func(r catalog.Relation, columns ...string) predicate.Step {
		s := predicate.Step{Relation: &r, Column: columns[0], From: "x"}
		for _, c := range columns[1:] {
			s.And = append(s.And, predicate.Pair{Column: c, From: "y"})
		}
		return s
	}
	for what, c := range map[string]struct {
		step predicate.Step
		one  bool
	}{
		"the key":                              {step(catalog.Relation{Kind: catalog.Table, PrimaryKey: key, Indexes: []catalog.BTree{unique}}, "a", "b"), true},
		"its columns in another order":         {step(catalog.Relation{Kind: catalog.Table, PrimaryKey: key, Indexes: []catalog.BTree{{Columns: []string{"b", "a"}, Unique: true}}}, "b", "a"), true},
		"the key, and a column beside":         {step(catalog.Relation{Kind: catalog.Table, PrimaryKey: key, Indexes: []catalog.BTree{plain, unique}}, "a", "b", "c"), true},
		"part of the key":                      {step(catalog.Relation{Kind: catalog.Table, PrimaryKey: key, Indexes: []catalog.BTree{unique}}, "a"), false},
		"part of the key, and another":         {step(catalog.Relation{Kind: catalog.Table, PrimaryKey: key, Indexes: []catalog.BTree{unique}}, "a", "c"), false},
		"no key":                               {step(catalog.Relation{Kind: catalog.Table, Indexes: []catalog.BTree{unique}}, "a", "b"), false},
		"a key that is deferred":               {step(catalog.Relation{Kind: catalog.Table, PrimaryKey: key}, "a", "b"), false},
		"one beside which an index is no key":  {step(catalog.Relation{Kind: catalog.Table, PrimaryKey: key, Indexes: []catalog.BTree{plain}}, "a", "b"), false},
		"one beside which less is a key":       {step(catalog.Relation{Kind: catalog.Table, PrimaryKey: key, Indexes: []catalog.BTree{{Columns: []string{"a"}, Unique: true}}}, "a", "b"), false},
		"one beside which another is a key":    {step(catalog.Relation{Kind: catalog.Table, PrimaryKey: key, Indexes: []catalog.BTree{{Columns: []string{"a", "c"}, Unique: true}}}, "a", "b"), false},
		"children, whose keys are their own":   {step(catalog.Relation{Kind: catalog.Table, PrimaryKey: key, Indexes: []catalog.BTree{unique}, HasChildren: true}, "a", "b"), false},
		"partitions, which the key counts for": {step(catalog.Relation{Kind: catalog.PartitionedTable, PrimaryKey: key, Indexes: []catalog.BTree{unique}, HasChildren: true}, "a", "b"), true},
		"a foreign table":                      {step(catalog.Relation{Kind: catalog.ForeignTable, PrimaryKey: key, Indexes: []catalog.BTree{unique}}, "a", "b"), false},
	} {
		if c.step.LeadsToOne() != c.one {
			t.Errorf("%s: %t", what, c.step.LeadsToOne())
		}
	}
}
