package rewrite

import (
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// visitOperatorExpr visits an expression with an operator, and forms such as IN and BETWEEN, for which PostgreSQL uses
// operators.
func (w *walker) visitOperatorExpr(x *sqltext.A_Expr) {
	w.countNode("A_Expr")
	w.visitExpr(x.Lexpr)
	w.visitExpr(x.Rexpr)
	switch x.Kind {
	case sqltext.AEXPR_OP, sqltext.AEXPR_OP_ANY, sqltext.AEXPR_OP_ALL, sqltext.AEXPR_DISTINCT, sqltext.AEXPR_NOT_DISTINCT,
		sqltext.AEXPR_NULLIF, sqltext.AEXPR_IN, sqltext.AEXPR_LIKE, sqltext.AEXPR_ILIKE, sqltext.AEXPR_SIMILAR:
		w.checkOperator(x.Name, x.Location)
		w.prefixSearch(x)
	case sqltext.AEXPR_BETWEEN, sqltext.AEXPR_NOT_BETWEEN, sqltext.AEXPR_BETWEEN_SYM, sqltext.AEXPR_NOT_BETWEEN_SYM:
		for _, name := range []string{"<", "<=", ">", ">="} {
			w.checkOperatorName("", name, x.Location)
		}
	default:
		w.refuseAt(refusalOf("A_Expr.kind"), x.Location)
	}
}

// checkOperator checks whether agents may use an operator. The rewriter does not write the operator's schema, because
// OPERATOR(schema.x) has another precedence than x.
func (w *walker) checkOperator(parts []*sqltext.Node, location int32) {
	schema, name, ok := qualifiedName(parts)
	if !ok {
		w.refuseAt(refusalOf("RangeVar.catalogname"), location)
		return
	}
	w.checkOperatorName(schema, name, location)
}

// checkEquality checks the operator =, which IN, USING, NATURAL and CASE x WHEN use without naming it.
func (w *walker) checkEquality() { w.checkOperatorName("", "=", -1) }

func (w *walker) checkOperatorName(schema, name string, location int32) {
	if w.refused != nil {
		return
	}
	w.hasPrefixOperator = w.hasPrefixOperator || name == "^@"
	unavailable := func(hint string, args ...any) {
		w.refuseAt(sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonFunction,
			"operator %s is not available to agents", name).WithHint(hint, args...), location)
	}
	found := (schema == "" || schema == "pg_catalog") && w.snap.HasCatalogOperator(name)
	if found && !operatorList.allows(catalogKey, name) {
		unavailable("This version of pgconsent does not know it, and allows no operator that it does not know.")
		return
	}
	if schema != "pg_catalog" {
		for _, o := range w.snap.OperatorsNamed(schema, name) {
			if !operatorList.allows(o.Extension, name) &&
				!(IsUnknownOperator(o) && o.Extension != "" && w.pol.PermitsOperatorsOf(o.Extension)) {
				hint := "An operator of that name in schema %q is neither PostgreSQL's nor of a known extension. " +
					"OPERATOR(pg_catalog.%s) names PostgreSQL's own."
				if o.Extension != "" {
					hint += " The policy can have the extension under operators."
				}
				unavailable(hint, o.Name.Schema, name)
				return
			}
			found = true
		}
	}
	if !found {
		w.refuseAt(sqlstate.New(sqlstate.UndefinedFunction, sqlstate.ReasonFunction, "operator does not exist: %s", name).
			WithHint("No operator of that name is available to agents."), location)
	}
}
