package rewrite

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Functions of the owner's run without being called where values of their types are compared, converted or written.

// runs tells whether a relation has values that functions of others compare, make or convert, without being called: by
// implicit casts, default operator classes, what ranges are compared by, and checks of domains; or whether such
// functions run as PostgreSQL plans to read it, or what its rule looks into, and finds rows there.
func (r *Rewriter) runsUserCode(relation *catalog.Relation) bool {
	f := r.fragments[relation.Name]
	_, runs := r.snap.ReadRunsUserCode(relation)
	return runs || f != nil && f.runsUserCode
}

// bringsOthers tells whether a text makes, or reads, such values. It is asked when all of it has been walked.
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

// castByOthers tells whether a function of the owner's may make values of a type.
func (c *hardenedAnalysis) castRunsUserCode(oid uint32) bool {
	return slices.ContainsFunc(c.snap.CastsTo(oid), func(cast *catalog.Cast) bool {
		f := c.snap.FunctionByOID(cast.Function)
		return f == nil || !knownExtension(f.Extension) || f.Language != "c"
	})
}
