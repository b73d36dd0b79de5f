package rls

import (
	"fmt"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

func byKey(t *policy.Table) bool { return t.Columns != nil && t.Columns.ByKey != nil }

// keyFunctions returns the functions by which agents fetch rows of a table by key. Agents get no right on the view
// itself: PostgreSQL could evaluate an agent's condition on its rows before the condition on the key. A function
// returns only rows with the given keys, before any expression of the agent reads them. It is written in plpgsql, which
// caches the plan, since planning takes longer than running.
func (f rowViews) keyFunctions(t *policy.Table) Object {
	o := newObject("functions of "+predicate.KeyedView(t.Relation.Name, false).String(),
		"Columns that exist by key only: agents have no right on this view, and call the function of its "+
			"name with the keys.", t.Relation)
	o.NeededObjects = f.objectsRead(conditionsOf(t)...)
	const dropReason = "Take the functions away that fetch rows by key."
	why := o.why
	for _, withRule := range []bool{false, true} {
		name, query := predicate.KeyedView(t.Relation.Name, withRule).SQL(), f.rowQuery(t, t.Columns.ByKey.AllColumns)
		if withRule {
			query += f.ruleInView(t)
		}
		signature := name + "(" + strings.Join(keyArgumentTypes(t), ", ") + ")"
		o.create(fmt.Sprintf("CREATE VIEW %s AS\n%s", name, query))
		o.create(fmt.Sprintf("CREATE FUNCTION %[1]s RETURNS SETOF %[2]s\nLANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL "+
			"RESTRICTED ROWS %[3]d SET search_path = pg_catalog, pg_temp AS $pgconsent$\nBEGIN\n  RETURN "+
			"QUERY SELECT k.* FROM %[2]s AS k WHERE %[4]s;\nEND $pgconsent$",
			signature, name, t.Columns.ByKey.MaxKeys, keyCondition(t)))
		o.create(fmt.Sprintf("REVOKE ALL ON FUNCTION %s FROM PUBLIC", signature))
		o.create(fmt.Sprintf("GRANT EXECUTE ON FUNCTION %s TO %s", signature, f.agent))
		o.create(fmt.Sprintf("ALTER VIEW %s OWNER TO %s", name, f.rowsRole))
		o.why = why + " It reads under row security, as row views do."
		o.create(fmt.Sprintf("ALTER FUNCTION %s OWNER TO %s", signature, f.rowsRole))
		o.why = why
		o.drop(dropReason, "DROP FUNCTION IF EXISTS "+signature)
		o.drop(dropReason, "DROP VIEW IF EXISTS "+name)
	}
	return o.Object
}

// keyArgumentTypes returns the argument types of a table's key functions: a boolean, and then the key's columns, as
// arrays if several keys are allowed. For the boolean, statements pass a call of current_catalog(). While PostgreSQL
// plans the statement, this call raises an error if the statement was decided before the last DDL. The table's row
// policy would do so only when PostgreSQL plans the function's query.
func keyArgumentTypes(t *policy.Table) []string {
	types := []string{"pg_catalog.bool"}
	for _, name := range t.Columns.ByKey.Key {
		sqlType := predicate.KeyType(t.Relation.Column(name))
		if t.Columns.ByKey.MaxKeys > 1 {
			sqlType += "[]"
		}
		types = append(types, sqlType)
	}
	return types
}

// keyCondition returns the condition on the rows that a key function returns. If a statement passes more keys than the
// policy allows, no row meets the condition.
func keyCondition(t *policy.Table) string {
	conditions := make([]string, len(t.Columns.ByKey.Key))
	for i, name := range t.Columns.ByKey.Key {
		column := "k." + catalog.QuoteIdent(name)
		conditions[i] = fmt.Sprintf("%s OPERATOR(pg_catalog.=) $%d", column, i+2)
		if n := t.Columns.ByKey.MaxKeys; n > 1 {
			conditions[i] = fmt.Sprintf(
				"%s OPERATOR(pg_catalog.=) ANY ($%d) AND pg_catalog.cardinality($%[2]d) OPERATOR(pg_catalog.<=) %[3]d",
				column, i+2, n)
		}
	}
	return strings.Join(conditions, " AND ")
}
