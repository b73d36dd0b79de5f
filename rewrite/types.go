package rewrite

import (
	"github.com/pgconsent/pgconsent/catalog"
	"github.com/pgconsent/pgconsent/sqlstate"
	"github.com/pgconsent/pgconsent/sqltext"
)

// typeName visits a type. Types keep their spelling: the pinned path and the absence of CREATE and TEMP make it safe.
func (w *walker) typeName(t *sqltext.TypeName) {
	if t == nil || w.refused != nil {
		return
	}
	w.saw("TypeName")
	w.exprs(t.Typmods)
	if t.PctType || t.Setof {
		w.refuseAt(refusal("TypeName.setof"), t.Location)
		return
	}
	schema, name, ok := qualifiedName(t.Names)
	if !ok {
		w.refuseAt(refusal("RangeVar.catalogname"), t.Location)
		return
	}
	types := w.snap.TypesNamed(schema, name)
	if len(types) == 0 {
		if relation, found := w.snap.ResolveRelation(schema, name); found {
			if _, listed := w.pol.Table(relation); listed {
				return // the row type of a table that the agent can read
			}
		}
		w.refuseAt(sqlstate.New(sqlstate.UndefinedObject, sqlstate.ReasonFunction, "type %q does not exist", name).
			WithHint("Types available to agents are those of PostgreSQL and of known extensions, enums, and the row types of tables in the policy."), t.Location)
		return
	}
	for _, candidate := range types {
		if refused := typeRefusal(candidate); refused != nil {
			w.refuseAt(refused, t.Location)
			return
		}
	}
}

// CheckType judges a type that is not named in a text but given by its OID: as that of a parameter.
func CheckType(snap *catalog.Snapshot, oid uint32) *sqlstate.Error {
	t := snap.TypeByOID(oid)
	if t == nil {
		return sqlstate.New(sqlstate.UndefinedObject, sqlstate.ReasonFunction, "the type of a parameter (OID %d) is not available to agents", oid).
			WithHint("Leave parameter types to the server, or declare base types.")
	}
	return typeRefusal(t)
}

// transactionTypes would make functions of allowed names tell transaction counters: age(xid).
var transactionTypes = map[string]bool{"xid": true, "xid8": true, "cid": true, "tid": true, "pg_snapshot": true, "txid_snapshot": true,
	"_xid": true, "_xid8": true, "_cid": true, "_tid": true, "_pg_snapshot": true, "_txid_snapshot": true}

// typeRefusal tells why a type is not available, or nil.
func typeRefusal(t *catalog.Type) *sqlstate.Error {
	hint := "Types available to agents are those of PostgreSQL and of known extensions, enums, and the row types of tables in the policy."
	switch {
	case t.Kind == 'd':
		hint = "It is a domain, whose checks run functions. Cast to the type under it."
	case t.Name.Schema == "pg_catalog" && transactionTypes[t.Name.Name]:
		hint = "It is about transactions, which tell of writes elsewhere."
	case t.Name.Schema == "pg_catalog", knownExtension(t.Extension), t.Kind == 'e':
		return nil
	}
	return sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonFunction, "type %q is not available to agents", t.Name.Name).WithHint("%s", hint)
}
