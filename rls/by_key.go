package rls

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// callers are the roles with whose rights row policies and masks run: that of agents, and the owner of row views where a
// function of its own reads them.
func (p *Plan) callers() string {
	if slices.ContainsFunc(p.policy.Tables(), byKey) {
		return p.agent + ", " + p.rowsRole
	}
	return p.agent
}

func byKey(t *policy.Table) bool { return t.Columns != nil && t.Columns.ByKey != nil }

// keyed makes the functions that agents fetch rows by key with. A view with the columns would have to trust the rewriter
// that a key is asked for, and a condition of the agent's could run before the one on the key. A function has its rows
// before anything of the agent's sees one. In plpgsql, which keeps its plan: making one takes longer than all the rest.
func (p *Plan) keyed(t *policy.Table) []Statement {
	if !byKey(t) {
		return nil
	}
	const why = "Columns that exist by key only: agents have no right on this view, and call the function of its " +
		"name with the keys."
	var out []Statement
	for _, walled := range []bool{false, true} {
		name, query := predicate.KeyedView(t.Relation.Name, walled), p.rowQuery(t, t.Columns.ByKey.AllColumns)
		if walled {
			query += p.wall(t)
		}
		signature := name.SQL() + "(" + strings.Join(keyTypes(t), ", ") + ")"
		out = append(out,
			Statement{SQL: fmt.Sprintf("CREATE VIEW %s AS\n%s", name.SQL(), query), Why: why},
			Statement{SQL: fmt.Sprintf(
				"CREATE FUNCTION %[1]s RETURNS SETOF %[2]s\nLANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL "+
					"RESTRICTED ROWS %[3]d SET search_path = pg_catalog, pg_temp AS $pgconsent$\nBEGIN\n  RETURN "+
					"QUERY SELECT k.* FROM %[2]s AS k WHERE %[4]s;\nEND $pgconsent$",
				signature, name.SQL(), t.Columns.ByKey.AtMost, keyCondition(t)), Why: why},
			Statement{SQL: fmt.Sprintf("REVOKE ALL ON FUNCTION %s FROM PUBLIC", signature), Why: why},
			Statement{SQL: fmt.Sprintf("GRANT EXECUTE ON FUNCTION %s TO %s", signature, p.agent), Why: why},
			Statement{SQL: fmt.Sprintf("ALTER VIEW %s OWNER TO %s", name.SQL(), p.rowsRole), Why: why},
			Statement{SQL: fmt.Sprintf("ALTER FUNCTION %s OWNER TO %s", signature, p.rowsRole),
				Why: why + " It reads under row security, as row views do."},
		)
	}
	return out
}

// keyTypes are the arguments of a table's functions: a boolean, and its key, or a list of keys. For the first one
// statements pass a call that refuses them while they are planned, if they were decided before the last DDL: the
// table's own policy would be asked only where the function's plan is made.
func keyTypes(t *policy.Table) []string {
	types := []string{"pg_catalog.bool"}
	for _, name := range t.Columns.ByKey.Key {
		of := predicate.KeyType(t.Relation.Column(name))
		if t.Columns.ByKey.AtMost > 1 {
			of += "[]"
		}
		types = append(types, of)
	}
	return types
}

// keyCondition is what the function's rows meet. More keys than at_most are none.
func keyCondition(t *policy.Table) string {
	parts := make([]string, len(t.Columns.ByKey.Key))
	for i, name := range t.Columns.ByKey.Key {
		column := "k." + catalog.QuoteIdent(name)
		parts[i] = fmt.Sprintf("%s OPERATOR(pg_catalog.=) $%d", column, i+2)
		if n := t.Columns.ByKey.AtMost; n > 1 {
			parts[i] = fmt.Sprintf(
				"%s OPERATOR(pg_catalog.=) ANY ($%d) AND pg_catalog.cardinality($%[2]d) OPERATOR(pg_catalog.<=) %[3]d", column, i+2, n)
		}
	}
	return strings.Join(parts, " AND ")
}

func (p *Plan) dropKeyed(t *policy.Table) []Statement {
	if !byKey(t) {
		return nil
	}
	const why = "Take the functions away that fetch rows by key."
	var out []Statement
	for _, walled := range []bool{false, true} {
		name := predicate.KeyedView(t.Relation.Name, walled).SQL()
		out = append(out,
			Statement{SQL: fmt.Sprintf("DROP FUNCTION IF EXISTS %s(%s)", name, strings.Join(keyTypes(t), ", ")), Why: why},
			Statement{SQL: "DROP VIEW IF EXISTS " + name, Why: why},
		)
	}
	return out
}
