package rewrite

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// A search that is only a part of the statement has no exact twin (see nearest.go). An approximate index may give up,
// and hidden rows may have torn its graph. Then the number of rows that come back would tell of hidden rows. So any
// other form of statement that sorts by a distance reads such tables behind OFFSET 0, which no index can sort. A
// statement that may fail also reads relations without row security (see [policy.Table.Stored]) behind OFFSET 0. Their
// view keeps conditions out that are not leak-proof, but does not put the rule before the rest.

// findFences finds the relations to be fenced. search is the table of a search with a twin, or nil.
func (w *walker) findFences(tree *sqltext.ParseResult, search *sqltext.RangeVar) {
	if slices.ContainsFunc(w.references,
		func(ref *reference) bool { return w.hasApproximateIndex(ref) || w.distanceMayFail(ref) }) {
		w.fencedTables = sqltext.Ordered(tree, distanceOperators)
		delete(w.fencedTables, search)
	}
	if w.fencedTables == nil {
		w.fencedTables = map[*sqltext.RangeVar]bool{}
	}
	if w.mayFail {
		for _, ref := range w.references {
			if ref.fragment != nil && ref.fragment.lacksRowSecurity {
				w.fencedTables[ref.rangeVar] = true
			}
		}
	}
}

// distanceMayFail tells whether an index may sort rows of a relation by a distance that fails for some of them, before
// PostgreSQL checks the rule. Such are the distances of points, circles and other shapes. With btree_gist those of
// numbers and times are, too.
func (w *walker) distanceMayFail(ref *reference) bool {
	if ref.fragment == nil || ref.relation == nil {
		return false
	}
	over := func(r *catalog.Relation) bool {
		return slices.ContainsFunc(r.Columns, func(c catalog.Column) bool {
			return slices.Contains(distanceTypes, w.snap.BaseType(c.TypeOID))
		})
	}
	if slices.ContainsFunc(w.snap.OperatorsNamed("", "<->"), func(o *catalog.Operator) bool {
		return o.Extension != "" && !slices.Contains(safeDistanceExtensions, o.Extension)
	}) {
		return true
	}
	return over(ref.relation) || slices.ContainsFunc(ref.fragment.viewTables, func(name catalog.Name) bool {
		r, ok := w.snap.Relation(name)
		return ok && over(r)
	})
}

// distanceTypes are PostgreSQL's own types that have distances: point, lseg, path, box, polygon, line and circle.
var distanceTypes = []uint32{600, 601, 602, 603, 604, 628, 718}

// safeDistanceExtensions are extensions whose distances fail for no value.
var safeDistanceExtensions = []string{"pg_trgm", "cube", "vector"}

// hasApproximateIndex tells whether a relation may have an approximate index: its own, that of a partition or child, or
// that of a table that a view reads.
func (w *walker) hasApproximateIndex(ref *reference) bool {
	if ref.fragment == nil || ref.relation == nil {
		return false
	}
	over := func(r *catalog.Relation) bool {
		return r.Approximate || r.HasChildren &&
			slices.ContainsFunc(w.snap.Relations(),
				func(c *catalog.Relation) bool { return c.Approximate && len(c.Parents) > 0 })
	}
	return over(ref.relation) || slices.ContainsFunc(ref.fragment.viewTables, func(name catalog.Name) bool {
		r, ok := w.snap.Relation(name)
		return ok && over(r)
	})
}

// mustFence tells whether a reference is to be fenced, and refuses where that cannot be written.
func (w *walker) mustFence(ref *reference) bool {
	if !w.fencedTables[ref.rangeVar] || ref.copyStmt != nil ||
		!(w.hasApproximateIndex(ref) || w.distanceMayFail(ref) || ref.fragment.lacksRowSecurity) {
		return false
	}
	switch ref.notInjectedBecause {
	case groupByPrimaryKey: // what is grouped by a key, and by no distance, is not sorted by one
		return false
	case onlyTable, starTable, tableOIDColumn:
		w.refuseAt(sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonConstruct,
			"relation %q cannot be searched by distance here (%s)", ref.name.String(), ref.notInjectedBecause).
			WithHint("Write the search as the statement: SELECT ... FROM %s ORDER BY a distance LIMIT a number.",
				ref.name.SQL()), ref.start)
		return false
	}
	return true
}

// fence puts a subselect behind OFFSET 0 in the place of a relation's name, or adds OFFSET 0 to a subselect with a
// predicate.
func (w *walker) fence(ref *reference, inner string) {
	if !strings.HasPrefix(inner, "(") {
		inner = everyColumn + inner + ")"
	}
	w.replaceBySubselect(ref, inner, true)
}
