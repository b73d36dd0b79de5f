package rewrite

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// foreignCast is a cast that another role has created, to a type that the statement names. PostgreSQL may run the
// cast's function if the statement has a value of the source type.
type foreignCast struct {
	source uint32
	// the named type contains the source type, so that naming it does not mean that the statement has such a value
	targetContainsSource bool
	refusal              *sqlstate.Error
	at                   int32
}

// castRefusal returns the reason why nothing may be cast to a type, or nil. Which cast a statement uses depends on the
// types of its expressions, which this package does not infer. So if another role has created a cast that runs a
// function, its target type and all types that contain it are refused. The refusal applies to statements that may have
// a value of the source type. Every statement may have values of PostgreSQL's types and of extensions' types; for other
// types see checkCasts.
func (w *walker) castRefusal(t *catalog.Type, location int32) *sqlstate.Error {
	var casts []foreignCast
	for _, part := range w.snap.CastTargets(t.OID) {
		for _, c := range w.snap.CastsTo(part) {
			if f := w.snap.FunctionByOID(c.Function); f != nil && w.isKnownFunction(f) {
				continue
			}
			refusal := unavailableTypeRefusal(t.Name.Name,
				"A cast to it runs a function that is neither PostgreSQL's nor of a known extension, and that the "+
					"policy does not list.")
			source := w.snap.TypeByOID(c.Source)
			if source == nil || source.Name.Schema == "pg_catalog" || source.Extension != "" {
				return refusal
			}
			refusal = unavailableTypeRefusal(t.Name.Name,
				"A cast from "+source.Name.Name+" to it runs a function that is neither PostgreSQL's nor of a known extension, "+
					"and that the policy does not list; this statement reads or makes a value of "+source.Name.Name+".")
			casts = append(casts, foreignCast{c.Source, w.snap.TypeContains(t.OID, c.Source), refusal, location})
		}
	}
	if refusal := typeRefusal(w.snap, t); refusal != nil {
		return refusal
	}
	w.foreignCasts = append(w.foreignCasts, casts...)
	return nil
}

// checkCasts refuses a statement that names the target type of another role's cast, if the statement may have a value
// of the cast's source type. It runs after checkCollations, which notes the result types of functions.
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
			if w.snap.TypeContains(t, c.source) {
				mentions += n
			}
		}
		if mentions > 1 || mentions == 1 && !c.targetContainsSource {
			w.refuseAt(c.refusal, c.at)
		}
	}
}

// ParameterTypeRefusal returns the reason why a parameter must not have the given type, or nil. The text may cast a
// parameter of that type to each type that the text names.
func (r *Result) ParameterTypeRefusal(snap *catalog.Snapshot, parameter uint32) *sqlstate.Error {
	if r.NeedsValueCheck && !slices.Contains(settingTypes, parameter) {
		return notSettableError("").WithHint("Declare the parameters of set_config as text, or leave their types to the server.")
	}
	for _, c := range r.foreignCasts {
		if snap.TypeContains(parameter, c.source) {
			return c.refusal
		}
	}
	return nil
}
