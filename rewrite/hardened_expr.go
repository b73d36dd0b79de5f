package rewrite

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/builtin"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// The analysis follows an expression down to the parts that may raise an error. Because of row security, PostgreSQL
// delays an expression that names a column of a table in the same query until the row is known to be visible.

// walkNodes calls f for a node and, where f returns true, for the nodes inside.
func (c *hardenedAnalysis) walkNodes(n *sqltext.Node, f func(*sqltext.Node) bool) {
	if n == nil || !f(n) {
		return
	}
	if c.nodeVisits++; c.nodeVisits > maxNodeVisits { // walkNodes visits each part of a long expression several times
		c.harden("it is too long to be followed")
		return
	}
	sqltext.EachChild(n, func(child *sqltext.Node) { c.walkNodes(child, f) })
}

// harmlessKinds are kinds of nodes that raise no error by themselves; their operands are checked separately.
var harmlessKinds = []string{
	"A_Const", "A_Star", "Boolean", "BoolExpr", "BooleanTest", "CaseWhen", "CollateClause", "ColumnRef", "Float",
	"Integer", "List",
	"NamedArgExpr", "NullTest",
	"ParamRef", "ResTarget", "RowExpr", "SQLValueFunction", "SortBy", "String", "GroupingSet", "GroupingFunc", "WindowDef",
}

// visitExpr visits an expression, and tells whether it names a column of a table of its own query outside of
// sub-selects.
func (c *hardenedAnalysis) visitExpr(n *sqltext.Node, context exprContext) (isOwn bool) {
	if n.GetNode() == nil || c.reason != "" || slices.Contains(c.leakSafe, n) {
		return false
	}
	switch x := n.GetNode().(type) {
	case *sqltext.Node_SubLink:
		c.checkOperators(x.SubLink.OperName)
		if !context.shownRowsOnly && !c.subLinkComparesSafely(x.SubLink, context) {
			c.harden("it compares with what may have to be converted first")
		}
		c.visitExpr(x.SubLink.Testexpr, context)
		c.visitSubLink(x.SubLink, context)
		return false
	case *sqltext.Node_ColumnRef:
		m := c.resolveColumn(x.ColumnRef, context.queryLevel)
		if isOwn = m.localColumn; m.mayBeFunction {
			c.harden("it calls a function that is not PostgreSQL's own")
		}
		c.unresolvedColumn = c.unresolvedColumn || (!m.known || m.unknownItem) && !context.shownRowsOnly
		if m.containsSubLink && !context.shownRowsOnly {
			c.harden("it asks for a sub-select of a query in FROM, or for a virtual column")
		}
		if context.inSubquery && m.computed && m.ofTable {
			c.harden("a sub-select reads a column that is computed as it is read")
		}
		c.fromOutputMayFail = c.fromOutputMayFail || context.subqueryOutput && (m.computed && m.ofTable ||
			isStar(n) && (context.hasMergedColumns || slices.ContainsFunc(context.items,
				func(i *levelItem) bool { return i.table != nil && c.hasComputedColumn(i) })))
		if !m.known && context.parent != nil || m.outer && m.computed {
			c.subqueryReadsOutput, c.fromOutputMayFail = true, c.fromOutputMayFail || m.ofTable
		}
	case *sqltext.Node_FuncCall:
		if !c.isCatalogCall(x.FuncCall) {
			c.harden("it calls a function that is not PostgreSQL's own")
			return false
		}
		if name := lastNamePart(x.FuncCall.Funcname); !context.shownRowsOnly && len(x.FuncCall.Args) > 1 &&
			name != "starts_with" &&
			builtin.MayBeLeakproof(name) {
			c.harden("it calls a function that is leak-proof, the arguments of which may have to be converted first")
		}
	case *sqltext.Node_A_Expr:
		c.checkOperators(x.AExpr.Name)
		if !context.shownRowsOnly && !c.comparesSafely(x.AExpr, context) {
			c.harden("it compares with what may have to be converted first")
		}
	case *sqltext.Node_SortBy:
		c.checkOperators(x.SortBy.UseOp)
	case *sqltext.Node_A_Indices:
		c.checkSubscripts(x.AIndices, context)
	case *sqltext.Node_TypeCast:
		if !c.isKnownType(x.TypeCast.GetTypeName()) {
			c.harden("it casts to a type that is not PostgreSQL's own")
			return false
		}
	}
	sqltext.EachChild(n, func(child *sqltext.Node) { isOwn = c.visitExpr(child, context) || isOwn })
	kind := sqltext.NodeKind(n)
	passes := isOwn && (n.GetColumnRef() != nil || c.isStrict(n, context.queryLevel)) ||
		c.hasNotFoldableOperand(n, context)
	isOwn = isOwn && c.survivesFolding(n, context)
	if !context.shownRowsOnly {
		c.checkFalseLeakproof(n, context)
	}
	if !slices.Contains(harmlessKinds, kind) && !c.cannotFail(n, context) {
		switch {
		case kind == "A_Indices": // checkSubscripts has checked the subscripts
		case kind == "A_ArrayExpr" && !context.shownRowsOnly:
			// PostgreSQL considers an array constructor leak-proof, whatever its elements are (contain_leaked_vars)
			c.harden("it may make an array of arrays")
		case context.inSubquery:
			c.harden("a sub-select computes what may fail: " + kind)
		case context.shownRowsOnly:
		case !isOwn:
			c.harden("what may fail names no column of a table beside it: " + kind)
		default:
			c.fromOutputMayFail = c.fromOutputMayFail || context.subqueryOutput
		}
	}
	return passes
}

// checkOperators hardens the plan unless all operators of that name belong to PostgreSQL or to known extensions.
// BETWEEN and its variants have names of key words, and use comparison operators.
func (c *hardenedAnalysis) checkOperators(name []*sqltext.Node) {
	names := []string{lastNamePart(name)}
	if len(name) > 0 && strings.Trim(names[0], "ABCDEFGHIJKLMNOPQRSTUVWXYZ ") == "" {
		names = comparisonOperators
	}
	for _, n := range names {
		if slices.ContainsFunc(c.snap.OperatorsNamed("", n),
			func(o *catalog.Operator) bool { return !isKnownExtension(o.Extension) }) {
			c.harden("it uses an operator that is not PostgreSQL's own")
		}
	}
}

func lastNamePart(names []*sqltext.Node) string {
	if len(names) == 0 {
		return ""
	}
	return names[len(names)-1].GetString_().GetSval()
}

// isCatalogCall tells whether a call can only mean a function of pg_catalog, of information_schema or of a known
// extension, and not a function of another role.
func (c *hardenedAnalysis) isCatalogCall(f *sqltext.FuncCall) bool {
	schema, name, ok := qualifiedName(f.Funcname)
	if ok && schema == "information_schema" {
		_, ok = catalog.InformationFunction(name)
		return ok
	}
	if !ok || schema != "" && schema != "pg_catalog" {
		return false
	}
	return schema != "" || !slices.ContainsFunc(c.snap.FunctionsNamed("", name),
		func(f *catalog.Function) bool { return !isKnownExtension(f.Extension) || f.MayBeReplaced })
}

// visitSubLink visits a sub-select in an expression. In an output, PostgreSQL runs the sub-select for visible rows
// only; elsewhere, whenever an expression needs it.
func (c *hardenedAnalysis) visitSubLink(s *sqltext.SubLink, context exprContext) {
	query := s.GetSubselect().GetSelectStmt()
	if context.shownRowsOnly && !context.inSubquery {
		c.visitQuery(query, context.queryLevel, true, false)
		return
	}
	switch {
	case s.SubLinkType == sqltext.EXPR_SUBLINK &&
		!(query != nil && (returnsOneRow(query) && c.hasOwnAggregate(query, context.queryLevel) || hasLimitOne(query))):
		c.harden("a sub-select that is compared with may have several rows")
		return
	// the elements may be arrays of different sizes, and the array may become too large
	case s.SubLinkType == sqltext.ARRAY_SUBLINK:
		c.harden("a sub-select makes an array")
		return
	}
	c.visitQuery(query, context.queryLevel, false, true)
}

// hasOwnAggregate tells whether the aggregate in a SELECT belongs to that SELECT. An aggregate whose arguments name
// only outer columns belongs to the outer query (check_agglevels_and_constraints of PostgreSQL's parse_agg.c).
func (c *hardenedAnalysis) hasOwnAggregate(s *sqltext.SelectStmt, parent *queryLevel) bool {
	isOwn, outer := false, false
	f := s.TargetList[0].GetResTarget().GetVal().GetFuncCall()
	for _, arg := range slices.Concat(f.GetArgs(), f.GetAggOrder(), []*sqltext.Node{f.GetAggFilter()}) {
		c.walkNodes(arg, func(n *sqltext.Node) bool {
			if ref := n.GetColumnRef(); ref != nil {
				m := c.resolveColumn(ref, c.levelOf(s, parent))
				isOwn, outer = isOwn || m.known && !m.outer, outer || !m.known || m.outer
			}
			outer = outer || n.GetSubLink() != nil
			return true
		})
	}
	return isOwn || !outer
}

// hasLimitOne tells whether a SELECT returns at most one row because of its LIMIT.
func hasLimitOne(s *sqltext.SelectStmt) bool {
	n := s.GetLimitCount().GetAConst().GetIval()
	return n != nil && n.Ival <= 1 && s.LimitOption == sqltext.LIMIT_OPTION_COUNT
}

// isKnownType tells whether a type belongs to PostgreSQL or to a known extension, or is an enum. A cast to such a type
// runs no function of the owner.
func (c *hardenedAnalysis) isKnownType(t *sqltext.TypeName) bool {
	schema, name, ok := qualifiedName(t.GetNames())
	if !ok {
		return false
	}
	if (schema == "" || schema == "pg_catalog") && len(c.snap.TypesNamed("pg_catalog", name)) == 1 {
		return true
	}
	types := c.snap.TypesNamed(schema, name)
	return len(types) > 0 && !slices.ContainsFunc(types, func(t *catalog.Type) bool {
		return t.Kind != 'e' && !(t.Kind == 'b' && isKnownExtension(t.Extension))
	})
}
