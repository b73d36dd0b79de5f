package rewrite

import (
	"fmt"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// visitTypeName visits the name of a type, and leaves it as the agent wrote it. No agent can make the name mean another
// type: the search path is pinned, and agents have neither CREATE nor TEMPORARY.
func (w *walker) visitTypeName(t *sqltext.TypeName) {
	if t == nil || w.refused != nil {
		return
	}
	w.countNode("TypeName")
	w.exprs(t.Typmods)
	if t.PctType || t.Setof {
		w.refuseAt(refusalOf("TypeName.setof"), t.Location)
		return
	}
	schema, name, ok := qualifiedName(t.Names)
	if name == "name" || name == "_name" {
		w.collations["C"] = true
	}
	if !ok {
		w.refuseAt(refusalOf("RangeVar.catalogname"), t.Location)
		return
	}
	types := w.snap.TypesNamed(schema, name)
	if len(types) == 0 {
		hint := availableTypes
		if relation, isRelation := w.snap.ResolveRelation(schema, name); isRelation {
			table, isListed := w.pol.Table(relation)
			if isListed && table.Columns == nil {
				// the name means the row type of a table all of whose columns agents see
				if r, _ := w.snap.Relation(relation); len(r.WaitingColumns) > 0 && !w.isView {
					w.refuseAt(waitingRefusal(relation), t.Location)
					return
				}
				if refusal := w.rowTypeRefusal(relation); refusal != nil {
					w.refuseAt(refusal, t.Location)
				}
				w.noteRowType(relation)
				return
			}
			if isListed {
				hint = "The policy names the columns of that table that agents have, so its row type is not " +
					"available. Name columns with their types instead, as in: jsonb_to_record(…) AS r (id int, title text)."
			}
		}
		w.refuseAt(sqlstate.New(sqlstate.UndefinedObject, sqlstate.ReasonFunction, "type %q does not exist", name).
			WithHint("%s", hint), t.Location)
		return
	}
	for _, candidate := range types {
		w.noteValueType(candidate.OID)
		if refusal := w.castRefusal(candidate, t.Location); refusal != nil {
			w.refuseAt(refusal, t.Location)
			return
		}
	}
}

const availableTypes = "Types available to agents are those of PostgreSQL and of known extensions, enums, ranges, " +
	"domains and composite types that call " +
	"no function of others, and the row types of tables in the policy."

// isKnownFunction tells whether PostgreSQL may run a function that the text does not call by name, as for a cast. That
// is so for functions of known extensions, functions of the policy, and functions that PostgreSQL created with a range
// type.
func (w *walker) isKnownFunction(f *catalog.Function) bool {
	_, isListed := w.pol.Function(f.Name)
	return isListed || f.RangeType != 0 || extensionFunctions.allows(f.Extension, f.Name.Name)
}

// rowTypeRefusal returns the reason why a statement may not name the row type of a relation, or nil. PostgreSQL runs
// the checks of the columns' domains when it casts a text to the row type.
func (w *walker) rowTypeRefusal(n catalog.Name) *sqlstate.Error {
	r, found := w.snap.Relation(n)
	if !found {
		return nil
	}
	for _, c := range r.Columns {
		t := w.snap.TypeByOID(c.TypeOID)
		if t != nil && checksRunUserCode(w.snap, t, maxTypeDepth) {
			return unavailableTypeRefusal(n.Name,
				fmt.Sprintf("Its column %q is of a domain whose check runs functions of others. Name its columns instead.", c.Name))
		}
	}
	return nil
}

// checkInputType checks the type that the second argument of pg_input_is_valid or pg_input_error_info names as a text.
func (w *walker) checkInputType(name string, f *sqltext.FuncCall) {
	var nameText string
	constant := false
	if len(f.Args) == 2 && f.Args[1].GetNamedArgExpr() == nil && f.Args[0].GetNamedArgExpr() == nil {
		nameText, constant = constantString(f.Args[1])
	}
	t := parseType(nameText)
	if !constant || t == nil {
		w.refuseAt(unavailableFunctionError(name,
			"It makes a value of the type that its second argument names: give it as a literal, such as 'integer'."), f.Location)
		return
	}
	if _, typeName, ok := qualifiedName(t.Names); ok && nameTypes[typeName] != nil {
		w.refuseAt(unavailableFunctionError(name, "Whether a text is the name of something tells what there is."), f.Location)
		return
	}
	// the type is not in the tree of this statement, so another walker counts its nodes
	check := newWalker(w.Rewriter, w.source)
	check.visitTypeName(t)
	if check.refused != nil {
		w.refuseAt(check.refused, f.Location)
	}
}

// parseType returns the tree of a type name, or nil if the text is none.
func parseType(text string) *sqltext.TypeName {
	tree, err := sqltext.Parse("SELECT NULL::" + text)
	if err != nil || len(tree.Stmts) != 1 {
		return nil
	}
	// The text must also parse as the type in CAST(NULL AS …), so that it contains nothing but a type.
	targets := tree.Stmts[0].GetStmt().GetSelectStmt().GetTargetList()
	if len(targets) != 1 || targets[0].GetResTarget().GetName() != "" {
		return nil
	}
	t := targets[0].GetResTarget().GetVal().GetTypeCast().GetTypeName()
	castTree, err := sqltext.Parse("SELECT CAST(NULL AS " + text + ")")
	if t == nil || err != nil || len(castTree.Stmts) != 1 {
		return nil
	}
	return t
}

// CheckType refuses a type, given by its OID, that clients may not declare for a parameter.
func CheckType(snap *catalog.Snapshot, oid uint32) *sqlstate.Error {
	t := snap.TypeByOID(oid)
	if t == nil {
		return sqlstate.New(sqlstate.UndefinedObject, sqlstate.ReasonFunction,
			"the type of a parameter (OID %d) is not available to agents", oid).
			WithHint("Leave parameter types to the server, or declare base types.")
	}
	return typeRefusal(snap, t)
}

// typeRefusal returns the reason why agents may not use a type, or nil.
func typeRefusal(snap *catalog.Snapshot, t *catalog.Type) *sqlstate.Error {
	inner := t
	if element := snap.TypeByOID(t.Element); element != nil {
		t = element
	}
	switch {
	case t.Name.Schema == "pg_catalog": // only superusers can create types in pg_catalog
		switch c := typeList[catalogKey][t.Name.Name]; c.class {
		case classAllow:
			return nil
		case classRefuse:
			return unavailableTypeRefusal(inner.Name.Name, "It "+c.why+".")
		}
	case typeList.allows(t.Extension, t.Name.Name):
		return nil
	case t.Extension == "" && t.Kind == 'e':
		return nil
	case t.Extension == "" && (t.Kind == 'r' || t.Kind == 'm'):
		if !checksRunUserCode(snap, t, maxTypeDepth) {
			return nil
		}
		return unavailableTypeRefusal(inner.Name.Name,
			"Its bounds are compared or rounded by functions that are neither PostgreSQL's nor of a known extension.")
	case t.Extension == "" && (t.Kind == 'd' || t.Kind == 'c'):
		if !checksRunUserCode(snap, t, maxTypeDepth) {
			return nil
		}
		return unavailableTypeRefusal(inner.Name.Name,
			"It is, or has a column of, a domain whose check runs functions of others. Cast to the type under it.")
	}
	return unavailableTypeRefusal(inner.Name.Name, availableTypes)
}

func unavailableTypeRefusal(name, hint string) *sqlstate.Error {
	return sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonFunction, "type %q is not available to agents",
		name).WithHint("%s", hint)
}

const maxTypeDepth = 32

// checksRunUserCode tells whether PostgreSQL may run a function of the owner when it makes a value of a type. The
// function may be in the check of a domain or in the order of a range's bounds, at any depth. Functions of known
// extensions do not count.
func checksRunUserCode(snap *catalog.Snapshot, t *catalog.Type, depth int) bool {
	if depth == 0 {
		return true
	}
	for _, oid := range t.CheckFunctions {
		f := snap.FunctionByOID(oid)
		if f == nil || !extensionFunctions.allows(f.Extension, f.Name.Name) {
			return true
		}
	}
	for _, part := range []uint32{t.Element, t.Base} {
		if part == 0 {
			continue
		}
		if p := snap.TypeByOID(part); p == nil || checksRunUserCode(snap, p, depth-1) {
			return true
		}
	}
	if t.Kind == 'c' {
		r, found := snap.Relation(t.Name)
		if !found {
			return true
		}
		for _, c := range r.Columns {
			if p := snap.TypeByOID(c.TypeOID); p == nil || checksRunUserCode(snap, p, depth-1) || typeRefusal(snap, p) != nil {
				return true
			}
		}
	}
	return false
}
