package rewrite

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// PostgreSQL may run functions of an owner that no statement calls. It does so when it compares, converts or writes
// values of the owner's types.

// runsUserCode tells whether PostgreSQL runs functions of an owner by itself for values of a relation. It does so for
// implicit casts, default operator classes, the order of ranges, and checks of domains. It may also run some when it
// plans a query of the relation or of the lookup tables in its rule, or when it searches these tables.
func (r *Rewriter) runsUserCode(relation *catalog.Relation) bool {
	f := r.fragments[relation.Name]
	_, executes := r.snap.ReadRunsUserCode(relation)
	return executes || f != nil && f.runsUserCode
}

// valuesRunUserCode tells whether a text makes or reads values for which PostgreSQL runs functions of an owner. The
// walker must have visited the whole text before.
func (w *walker) valuesRunUserCode() bool {
	if w.runsUserCodeCached == nil {
		seen, brings := map[*catalog.Relation]bool{}, false
		for _, ref := range w.references {
			if ref.fragment != nil && ref.relation != nil && !seen[ref.relation] {
				seen[ref.relation] = true
				brings = brings || w.runsUserCode(ref.relation)
			}
		}
		for oid := range w.valueTypes {
			brings = brings || w.snap.TypeRunsUserCode(oid)
		}
		w.runsUserCodeCached = &brings
	}
	return *w.runsUserCodeCached
}

// castRunsUserCode tells whether a cast to the type may run a function of the owner. Only C functions of known
// extensions are not the owner's.
func (c *hardenedAnalysis) castRunsUserCode(oid uint32) bool {
	return slices.ContainsFunc(c.snap.CastsTo(oid), func(cast *catalog.Cast) bool {
		f := c.snap.FunctionByOID(cast.Function)
		return f == nil || !isKnownExtension(f.Extension) || f.Language != "c"
	})
}
