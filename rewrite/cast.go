package rewrite

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// foreignCast is a cast of other roles to a type that a statement names. It runs if there is a value of the source
// type.
type foreignCast struct {
	source   uint32
	ofSource bool // the named type contains the source type, so that this mention of it is no second value
	refused  *sqlstate.Error
	at       int32
}

// castRefusal tells why nothing may be cast to a type, or nil. Which cast a statement means depends on types, which
// this package does not infer. A cast of other roles that runs a function therefore closes its target type, and all
// types made of that. Statements that may have a value of its source type cannot use them. Every statement may have
// values of PostgreSQL's types and those of extensions. For other types see checkCasts.
func (w *walker) castRefusal(t *catalog.Type, at int32) *sqlstate.Error {
	var casts []foreignCast
	for _, part := range w.snap.Parts(t.OID) {
		for _, c := range w.snap.CastsTo(part) {
			if f := w.snap.FunctionByOID(c.Function); f != nil && w.isKnownFunction(f) {
				continue
			}
			refused := unavailableTypeRefusal(t.Name.Name,
				"A cast to it runs a function that is neither PostgreSQL's nor of a known extension, and that the "+
					"policy does not list.")
			source := w.snap.TypeByOID(c.Source)
			if source == nil || source.Name.Schema == "pg_catalog" || source.Extension != "" {
				return refused
			}
			refused = unavailableTypeRefusal(t.Name.Name,
				"A cast from "+source.Name.Name+" to it runs a function that is neither PostgreSQL's nor of a known extension, "+
					"and that the policy does not list; this statement reads or makes a value of "+source.Name.Name+".")
			casts = append(casts, foreignCast{c.Source, w.snap.MadeOf(t.OID, c.Source), refused, at})
		}
	}
	if refused := typeRefusal(w.snap, t); refused != nil {
		return refused
	}
	w.foreignCasts = append(w.foreignCasts, casts...)
	return nil
}

// checkCasts refuses a statement that may have a value of a type from which a cast of other roles leads to a type that
// it names. It runs after checkCollations, which notes the result types of functions.
func (w *walker) checkCasts() {
	if len(w.foreignCasts) == 0 {
		return
	}
	for _, ref := range w.references {
		if ref.fragment == nil || ref.relation == nil {
			continue
		}
		for _, c := range ref.relation.Columns {
			if ref.allColumns || w.columnNames[c.Name] {
				w.valueTypes[c.TypeOID]++
			}
		}
	}
	for _, c := range w.foreignCasts {
		mentions := 0
		for t, n := range w.valueTypes {
			if w.snap.MadeOf(t, c.source) {
				mentions += n
			}
		}
		if mentions > 1 || mentions == 1 && !c.ofSource {
			w.refuseAt(c.refused, c.at)
		}
	}
}

// MayCast tells why a parameter of a type cannot be given to a text, or nil: the text may cast the parameter to each
// type that it names.
func (r *Result) MayCast(snap *catalog.Snapshot, parameter uint32) *sqlstate.Error {
	if r.NeedsValueCheck && !slices.Contains(settingTypes, parameter) {
		return notSettableError("").WithHint("Declare the parameters of set_config as text, or leave their types to the server.")
	}
	for _, c := range r.foreignCasts {
		if snap.MadeOf(parameter, c.source) {
			return c.refused
		}
	}
	return nil
}
