package rewrite

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// The functions below visit the items of FROM. An item may be LATERAL, and may be joined by USING or NATURAL, for which
// PostgreSQL compares columns of the same name.

// analyzeFromItem visits an item of a FROM clause and searches for a reason to harden the plan.
func (c *hardenedAnalysis) analyzeFromItem(n *sqltext.Node, context exprContext) {
	switch n := n.GetNode().(type) {
	case *sqltext.Node_RangeVar:
		ref := c.referenceOf[n.RangeVar]
		c.fromHasSubqueryColumn = c.fromHasSubqueryColumn ||
			ref != nil && ref.relation != nil && hasVirtualColumn(ref.relation)
		switch {
		case ref == nil: // the name means a WITH query
			if context.inSubquery {
				c.harden("a sub-select reads a WITH query")
			}
			if !c.isCTE(n.RangeVar.Relname) {
				c.harden("it reads a catalog")
			}
		case ref.isCatalog(): // findFences puts OFFSET 0 around catalogs: see mustFenceCatalog
		case ref.fragment == nil || ref.relation == nil:
			c.harden("it reads a catalog")
		case ref.relation.Kind == catalog.View:
			c.visitView(ref, context)
		case slices.ContainsFunc(ref.relation.Columns, func(column catalog.Column) bool {
			return slices.ContainsFunc(overflowingTypes,
				func(oid uint32) bool { return c.snap.TypeContains(column.TypeOID, oid) })
		}):
			c.harden("it reads a table with circles or segments, of which comparisons fail")
		case c.runsUserCode(ref.relation):
			c.harden("it reads a table with values that functions of others compare or convert")
		case !tableKinds[ref.relation.Kind]:
			c.harden("it reads a foreign table")
		}
	case *sqltext.Node_RangeSubselect:
		if query := n.RangeSubselect.GetSubquery().GetSelectStmt(); n.RangeSubselect.Lateral {
			if len(query.GetFromClause()) > 0 || query.GetOp() != sqltext.SETOP_NONE ||
				query.GetWithClause() != nil || query.GetWhereClause() != nil {
				c.visitQuery(query, context.queryLevel, false, context.inSubquery)
				return
			}
			// The LATERAL sub-select reads no relation: it computes its outputs from the columns of the items before it.
			context.subqueryOutput = true
			for _, list := range [][]*sqltext.Node{
				query.GetTargetList(), query.GetValuesLists(), query.GetGroupClause(), query.GetSortClause(),
				query.GetDistinctClause(), query.GetWindowClause(), {
					query.GetHavingClause(), query.GetLimitCount(), query.GetLimitOffset()}} {
				for _, n := range list {
					c.visitExpr(n, context)
				}
			}
			return
		}
		c.visitQuery(n.RangeSubselect.GetSubquery().GetSelectStmt(), context.parent, false, context.inSubquery)
	case *sqltext.Node_JoinExpr:
		// a LATERAL item could name items inside the join, which the alias hides elsewhere
		if n.JoinExpr.Alias != nil && (hasLateral(n.JoinExpr.Larg) || hasLateral(n.JoinExpr.Rarg)) {
			c.harden("LATERAL in a join with an alias")
			return
		}
		c.analyzeFromItem(n.JoinExpr.Larg, context)
		c.analyzeFromItem(n.JoinExpr.Rarg, context)
		// The condition of a join can name both sides of the join. The other items of FROM count as items of an outer query.
		sides, left, right := &queryLevel{parent: context.parent}, &queryLevel{parent: context.parent},
			&queryLevel{parent: context.parent}
		c.addItems(n.JoinExpr.Larg, sides)
		sideCount := len(sides.items)
		left.hasMergedColumns, sides.hasMergedColumns = sides.hasMergedColumns, false
		c.addItems(n.JoinExpr.Rarg, sides) // the right side, if it is LATERAL, may name columns of the left side
		right.hasMergedColumns = sides.hasMergedColumns
		for i, item := range sides.items {
			if i < sideCount {
				left.addItem(item)
			} else {
				right.addItem(item)
			}
		}
		c.checkUsing(n.JoinExpr, left, right, context.inSubquery)
		sides.hasMergedColumns = left.hasMergedColumns || right.hasMergedColumns || n.JoinExpr.IsNatural ||
			len(n.JoinExpr.UsingClause) > 0
		context.queryLevel = sides
		c.visitExpr(n.JoinExpr.Quals, context)
	case *sqltext.Node_RangeFunction:
		c.visitRangeFunctions(n.RangeFunction, context)
	default:
		c.harden("it has a function in FROM")
	}
}

// visitRangeFunctions visits functions in FROM. PostgreSQL runs them for visible rows only, and computes their
// arguments from such rows.
func (c *hardenedAnalysis) visitRangeFunctions(f *sqltext.RangeFunction, context exprContext) {
	for _, n := range f.Functions {
		call := n.GetList().GetItems()[0].GetFuncCall()
		switch {
		case call == nil || !c.isCatalogCall(call):
			c.harden("it has a function in FROM")
		case context.inSubquery && lastNamePart(call.Funcname) != "unnest":
			c.harden("a sub-select runs a function in FROM")
		}
		if !context.inSubquery {
			context.shownRowsOnly = true
		}
		for _, arg := range call.GetArgs() {
			c.visitExpr(arg, context)
		}
	}
}

// tableKinds are the kinds of relations that PostgreSQL reads as it reads tables. Agents read a materialized view
// through a view of pgconsent that is a security barrier. A foreign table is not in the list, because how a foreign
// server evaluates a condition is not known.
var tableKinds = map[catalog.RelKind]bool{catalog.Table: true, catalog.PartitionedTable: true,
	catalog.MaterializedView: true}

// hasLateral tells whether an item of FROM may name the items before it.
func hasLateral(n *sqltext.Node) bool {
	switch n := n.GetNode().(type) {
	case *sqltext.Node_JoinExpr:
		return hasLateral(n.JoinExpr.Larg) || hasLateral(n.JoinExpr.Rarg)
	case *sqltext.Node_RangeSubselect:
		return n.RangeSubselect.Lateral
	case *sqltext.Node_RangeVar:
		return false
	}
	return true
}

// checkUsing checks the columns that a USING or NATURAL join compares because they have the same name.
func (c *hardenedAnalysis) checkUsing(j *sqltext.JoinExpr, left, right *queryLevel, inSubquery bool) {
	switch {
	case !inSubquery && left.allTables() && right.allTables() && !(j.IsNatural && c.haveArraysOfOneName(left, right)):
	case j.IsNatural:
		c.harden("NATURAL over what is not a table")
	}
	if j.IsNatural && slices.ContainsFunc(slices.Concat(left.items, right.items), (*levelItem).hasSubLinkColumn) {
		c.harden("NATURAL may ask for a virtual column")
	}
	for _, n := range j.UsingClause {
		ref := &sqltext.ColumnRef{Fields: []*sqltext.Node{n}}
		l, r := c.resolveColumn(ref, left), c.resolveColumn(ref, right)
		if l.containsSubLink || r.containsSubLink || c.fromHasSubqueryColumn && !(l.known && r.known) {
			c.harden("USING asks for a sub-select of a query in FROM, or for a virtual column")
		}
		if c.mayConvertArrays(l.rawOID, r.rawOID) ||
			!(!inSubquery && l.localColumn && r.localColumn || l.oid != 0 && r.oid != 0 &&
				(l.oid == r.oid || conversionTargets[l.oid] == 0 && conversionTargets[r.oid] == 0)) {
			c.harden("USING over what is not a table")
		}
	}
}

// haveArraysOfOneName tells whether both sides of a join have an array column of the same name, but of different types.
func (c *hardenedAnalysis) haveArraysOfOneName(left, right *queryLevel) bool {
	for _, l := range left.items {
		for _, column := range l.table.Columns {
			for _, r := range right.items {
				if other := r.table.Column(column.Name); other != nil &&
					c.mayConvertArrays(c.snap.BaseType(column.TypeOID), c.snap.BaseType(other.TypeOID)) {
					return true
				}
			}
		}
	}
	return false
}
