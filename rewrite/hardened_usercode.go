package rewrite

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// PostgreSQL may run functions of an owner that no statement calls: when it compares, converts or writes values of the
// owner's types.

// runsUserCode tells whether PostgreSQL runs functions of an owner by itself for values of a relation. It does so for
// implicit casts, default operator classes, the order of ranges, and checks of domains. It may also run some when it
// plans to read the relation or the lookup tables of its rule, or when it looks for rows there.
func (r *Rewriter) runsUserCode(relation *catalog.Relation) bool {
	f := r.fragments[relation.Name]
	_, executes := r.snap.ReadRunsUserCode(relation)
	return executes || f != nil && f.runsUserCode
}

// valuesRunUserCode tells whether a text makes or reads values for which PostgreSQL runs functions of an owner. The
// whole text must have been walked before.
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

// castRunsUserCode tells whether a function of the owner may make values of a type.
func (c *hardenedAnalysis) castRunsUserCode(oid uint32) bool {
	return slices.ContainsFunc(c.snap.CastsTo(oid), func(cast *catalog.Cast) bool {
		f := c.snap.FunctionByOID(cast.Function)
		return f == nil || !isKnownExtension(f.Extension) || f.Language != "c"
	})
}
