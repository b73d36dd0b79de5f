package rewrite

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/builtin"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// The walk follows an expression down to the parts that may raise an error. Row security puts off the computation of an
// expression that names a column of a table beside it.

// walkNodes calls f for a node and, where f returns true, for the nodes inside.
func (c *hardenedAnalysis) walkNodes(n *sqltext.Node, f func(*sqltext.Node) bool) {
	if n == nil || !f(n) {
		return
	}
	if c.nodeVisits++; c.nodeVisits > maxNodeVisits { // each part of a long expression is walked several times
		c.harden("it is too long to be followed")
		return
	}
	sqltext.Children(n, func(child *sqltext.Node) { c.walkNodes(child, f) })
}

// harmlessKinds are kinds of nodes that raise no error themselves.
var harmlessKinds = []string{
	"A_Const", "A_Star", "Boolean", "BoolExpr", "BooleanTest", "CaseWhen", "CollateClause", "ColumnRef", "Float",
	"Integer", "List",
	"NamedArgExpr", "NullTest",
	"ParamRef", "ResTarget", "RowExpr", "SQLValueFunction", "SortBy", "String", "GroupingSet", "GroupingFunc", "WindowDef",
}

// visitExpr visits an expression, and tells whether it names a column of a table of its own query outside of
// sub-selects.
func (c *hardenedAnalysis) visitExpr(n *sqltext.Node, at exprContext) (own bool) {
	if n.GetNode() == nil || c.reason != "" || slices.Contains(c.leakSafe, n) {
		return false
	}
	switch x := n.GetNode().(type) {
	case *sqltext.Node_SubLink:
		c.checkOperators(x.SubLink.OperName)
		if !at.shownRowsOnly && !c.subLinkComparesSafely(x.SubLink, at) {
			c.harden("it compares with what may have to be converted first")
		}
		c.visitExpr(x.SubLink.Testexpr, at)
		c.visitSubLink(x.SubLink, at)
		return false
	case *sqltext.Node_ColumnRef:
		m := c.resolveColumn(x.ColumnRef, at.queryLevel)
		if own = m.localColumn; m.mayBeFunction {
			c.harden("it calls a function that is not PostgreSQL's own")
		}
		c.unresolvedColumn = c.unresolvedColumn || (!m.known || m.unknownItem) && !at.shownRowsOnly
		if m.containsSubLink && !at.shownRowsOnly {
			c.harden("it asks for a sub-select of a query in FROM, or for a virtual column")
		}
		if at.inSubquery && m.computed && m.ofTable {
			c.harden("a sub-select reads a column that is computed as it is read")
		}
		c.fromOutputMayFail = c.fromOutputMayFail || at.subqueryOutput && (m.computed && m.ofTable ||
			isStar(n) && (at.hasMergedColumns || slices.ContainsFunc(at.items,
				func(i *levelItem) bool { return i.table != nil && c.hasComputedColumn(i) })))
		if !m.known && at.parent != nil || m.outer && m.computed {
			c.subqueryReadsOutput, c.fromOutputMayFail = true, c.fromOutputMayFail || m.ofTable
		}
	case *sqltext.Node_FuncCall:
		if !c.isCatalogCall(x.FuncCall) {
			c.harden("it calls a function that is not PostgreSQL's own")
			return false
		}
		if name := lastNamePart(x.FuncCall.Funcname); !at.shownRowsOnly && len(x.FuncCall.Args) > 1 &&
			name != "starts_with" &&
			builtin.MayBeLeakproof(name) {
			c.harden("it calls a function that is leak-proof, the arguments of which may have to be converted first")
		}
	case *sqltext.Node_A_Expr:
		c.checkOperators(x.AExpr.Name)
		if !at.shownRowsOnly && !c.comparesSafely(x.AExpr, at) {
			c.harden("it compares with what may have to be converted first")
		}
	case *sqltext.Node_SortBy:
		c.checkOperators(x.SortBy.UseOp)
	case *sqltext.Node_A_Indices:
		c.checkSubscripts(x.AIndices, at)
	case *sqltext.Node_TypeCast:
		if !c.isKnownType(x.TypeCast.GetTypeName()) {
			c.harden("it casts to a type that is not PostgreSQL's own")
			return false
		}
	}
	sqltext.Children(n, func(child *sqltext.Node) { own = c.visitExpr(child, at) || own })
	kind := sqltext.Kind(n)
	passes := own && (n.GetColumnRef() != nil || c.isStrict(n, at.queryLevel)) || c.hasNotFoldableOperand(n, at)
	own = own && c.survivesFolding(n, at)
	if !at.shownRowsOnly {
		c.checkFalseLeakproof(n, at)
	}
	if !slices.Contains(harmlessKinds, kind) && !c.cannotFail(n, at) {
		switch {
		case kind == "A_Indices": // checkSubscripts handles subscripts
		case kind == "A_ArrayExpr" && !at.shownRowsOnly:
			// PostgreSQL considers an array constructor leak-proof, whatever its elements are (contain_leaked_vars)
			c.harden("it may make an array of arrays")
		case at.inSubquery:
			c.harden("a sub-select computes what may fail: " + kind)
		case at.shownRowsOnly:
		case !own:
			c.harden("what may fail names no column of a table beside it: " + kind)
		default:
			c.fromOutputMayFail = c.fromOutputMayFail || at.subqueryOutput
		}
	}
	return passes
}

// checkOperators hardens the plan unless all operators with a name belong to PostgreSQL or to known extensions. BETWEEN
// and its like use comparison operators.
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

// isCatalogCall tells whether a call can only mean a function of pg_catalog, of information_schema, or of known
// extensions. No function of another role may take its place.
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

// visitSubLink visits a sub-select in an expression. In an output it runs for shown rows only; elsewhere it runs
// whenever an expression needs it.
func (c *hardenedAnalysis) visitSubLink(s *sqltext.SubLink, at exprContext) {
	query := s.GetSubselect().GetSelectStmt()
	if at.shownRowsOnly && !at.inSubquery {
		c.visitQuery(query, at.queryLevel, true, false)
		return
	}
	switch {
	case s.SubLinkType == sqltext.EXPR_SUBLINK &&
		!(query != nil && (returnsOneRow(query) && c.hasOwnAggregate(query, at.queryLevel) || hasLimitOne(query))):
		c.harden("a sub-select that is compared with may have several rows")
		return
	case s.SubLinkType == sqltext.ARRAY_SUBLINK: // the array's elements may be arrays, and it may become too large
		c.harden("a sub-select makes an array")
		return
	}
	c.visitQuery(query, at.queryLevel, false, true)
}

// hasOwnAggregate tells whether the aggregate in a SELECT belongs to that SELECT. An aggregate over outer columns alone
// belongs to the outer query (check_agglevels_and_constraints of PostgreSQL's parse_agg.c).
func (c *hardenedAnalysis) hasOwnAggregate(s *sqltext.SelectStmt, parent *queryLevel) bool {
	own, outer := false, false
	f := s.TargetList[0].GetResTarget().GetVal().GetFuncCall()
	for _, arg := range slices.Concat(f.GetArgs(), f.GetAggOrder(), []*sqltext.Node{f.GetAggFilter()}) {
		c.walkNodes(arg, func(n *sqltext.Node) bool {
			if ref := n.GetColumnRef(); ref != nil {
				m := c.resolveColumn(ref, c.levelOf(s, parent))
				own, outer = own || m.known && !m.outer, outer || !m.known || m.outer
			}
			outer = outer || n.GetSubLink() != nil
			return true
		})
	}
	return own || !outer
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
	found := c.snap.TypesNamed(schema, name)
	return len(found) > 0 && !slices.ContainsFunc(found, func(t *catalog.Type) bool {
		return t.Kind != 'e' && !(t.Kind == 'b' && isKnownExtension(t.Extension))
	})
}
