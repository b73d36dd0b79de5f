package rewrite

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// A search that is only a part of a statement has no exact twin (see nearest.go). An approximate index may stop early,
// and hidden rows may have disconnected its graph. Then the number of rows that come back would tell of hidden rows. So
// any other form of statement that sorts by a distance reads such tables behind OFFSET 0, which no index can sort. A
// statement that may fail also reads relations without row security (see [policy.Table.LacksRowSecurity]) and catalogs
// behind OFFSET 0. Their views keep conditions out that are not leak-proof, but do not put the rule before the rest.

// findFences finds the relations that must be read behind OFFSET 0. search is the table of a search that has a twin, or
// nil.
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

// isCatalog tells whether the reference is to a catalog whose columns are known.
func (r *reference) isCatalog() bool { return r.shadowView != (catalog.Name{}) && r.relation != nil }

// mustFenceCatalog tells whether a catalog must be read behind OFFSET 0. It refuses statements in which that cannot be
// written.
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

// distanceMayFail tells whether an index may sort a relation's rows by a distance before PostgreSQL checks the rule,
// though the distance fails for some of them. Distances of points, circles and other shapes may fail; with btree_gist,
// distances of numbers and times, too.
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

// hasApproximateIndex tells whether a search of a relation may use an approximate index. That may be an index of the
// relation, of its partitions, or of a table that a view reads.
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

// mustFence tells whether a relation must be read behind OFFSET 0. It refuses statements in which that cannot be
// written.
func (w *walker) mustFence(ref *reference) bool {
	if !w.fencedTables[ref.rangeVar] || ref.copyStmt != nil ||
		!(w.hasApproximateIndex(ref) || w.distanceMayFail(ref) || ref.fragment.lacksRowSecurity) {
		return false
	}
	switch ref.notInjectedBecause {
	case groupByPrimaryKey: // a table that is grouped by its key, and not by a distance, is not sorted by a distance
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

// addFence replaces a relation's name with a sub-select that ends in OFFSET 0, or adds OFFSET 0 to a sub-select with a
// predicate.
func (w *walker) addFence(ref *reference, inner string) {
	if !strings.HasPrefix(inner, "(") {
		inner = everyColumn + inner + ")"
	}
	w.replaceBySubselect(ref, inner, true)
}
