package rewrite

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// A search by distance that is only a part of a statement has no exact twin (see nearest.go). An approximate index may
// stop early, and hidden rows may have disconnected its graph, so the number of returned rows would tell of hidden
// rows. The rewriter therefore reads such tables behind OFFSET 0, in a sub-select that no index can sort. In a
// statement that may fail, relations without row security (see [policy.Table.LacksRowSecurity]) and catalogs are also
// read behind OFFSET 0. The views of these relations delay only conditions that are not leak-proof.

// findFences finds the relations that the text must read behind OFFSET 0. search is the table of a search that has an
// exact twin, or nil.
func (w *walker) findFences(tree *sqltext.ParseResult, search *sqltext.RangeVar) {
	if slices.ContainsFunc(w.references,
		func(ref *reference) bool { return w.hasApproximateIndex(ref) || w.distanceMayFail(ref) }) {
		w.fencedTables = sqltext.RelationsOrderedBy(tree, distanceOperators)
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

// isCatalog tells whether the reference names a catalog whose columns are known.
func (r *reference) isCatalog() bool { return r.shadowView != (catalog.Name{}) && r.relation != nil }

// mustFenceCatalog tells whether the text must read a catalog behind OFFSET 0. If the reference cannot be written that
// way, the statement is refused.
func (w *walker) mustFenceCatalog(ref *reference) bool {
	if !w.fencesCatalogs || ref.copyStmt != nil || !catalog.ShadowHidesRows(ref.name) {
		return false
	}
	if !ref.rangeVar.GetInh() || ref.starEnd != ref.end {
		w.refuseAt(sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonConstruct,
			"relation %q cannot be read with ONLY or * here", ref.name.String()).
			WithHint("Write %s without: a catalog has no children.", ref.name.SQL()), ref.start)
		return false
	}
	return true
}

// distanceMayFail tells whether an index may sort a relation's rows by a distance that fails for some rows, before
// PostgreSQL checks the row policy. Distances of points, circles and other shapes may fail; with btree_gist, distances
// of numbers and times, too.
func (w *walker) distanceMayFail(ref *reference) bool {
	if ref.fragment == nil || ref.relation == nil {
		return false
	}
	hasIndex := func(r *catalog.Relation) bool {
		return slices.ContainsFunc(r.Columns, func(c catalog.Column) bool {
			return slices.Contains(distanceTypes, w.snap.BaseType(c.TypeOID))
		})
	}
	if slices.ContainsFunc(w.snap.OperatorsNamed("", "<->"), func(o *catalog.Operator) bool {
		return o.Extension != "" && !slices.Contains(safeDistanceExtensions, o.Extension)
	}) {
		return true
	}
	return hasIndex(ref.relation) || slices.ContainsFunc(ref.fragment.viewTables, func(name catalog.Name) bool {
		r, ok := w.snap.Relation(name)
		return ok && hasIndex(r)
	})
}

// distanceTypes are the types of PostgreSQL that have distances: point, lseg, path, box, polygon, line and circle.
var distanceTypes = []uint32{600, 601, 602, 603, 604, 628, 718}

// safeDistanceExtensions are the extensions whose distances fail for no value.
var safeDistanceExtensions = []string{"pg_trgm", "cube", "vector"}

// hasApproximateIndex tells whether a search in a relation may use an approximate index. The index may belong to the
// relation, to one of its partitions, or to a table that a view reads.
func (w *walker) hasApproximateIndex(ref *reference) bool {
	if ref.fragment == nil || ref.relation == nil {
		return false
	}
	hasIndex := func(r *catalog.Relation) bool {
		return r.HasApproximateIndex || r.HasChildren &&
			slices.ContainsFunc(w.snap.Relations(),
				func(c *catalog.Relation) bool { return c.HasApproximateIndex && len(c.Parents) > 0 })
	}
	return hasIndex(ref.relation) || slices.ContainsFunc(ref.fragment.viewTables, func(name catalog.Name) bool {
		r, ok := w.snap.Relation(name)
		return ok && hasIndex(r)
	})
}

// mustFence tells whether the text must read a relation behind OFFSET 0. If the reference cannot be written that way,
// the statement is refused.
func (w *walker) mustFence(ref *reference) bool {
	if !w.fencedTables[ref.rangeVar] || ref.copyStmt != nil ||
		!(w.hasApproximateIndex(ref) || w.distanceMayFail(ref) || ref.fragment.lacksRowSecurity) {
		return false
	}
	switch ref.notInjectedBecause {
	case groupByPrimaryKey: // the statement groups the table by its key, not by a distance, so no distance sorts the table
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

// addFence replaces a relation's name with a sub-select that ends in OFFSET 0. If inner is a sub-select with a
// predicate already, only OFFSET 0 is added.
func (w *walker) addFence(ref *reference, inner string) {
	if !strings.HasPrefix(inner, "(") {
		inner = everyColumn + inner + ")"
	}
	w.replaceBySubselect(ref, inner, true)
}
