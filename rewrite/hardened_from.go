package rewrite

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// What stands in FROM is of this query, is beside it by LATERAL, or is joined by names of columns, which are compared.

func (c *cautious) from(n *sqltext.Node, at stand) {
	switch n := n.GetNode().(type) {
	case *sqltext.Node_RangeVar:
		ref := c.of[n.RangeVar]
		c.fed = c.fed || ref != nil && ref.relation != nil && hasVirtual(ref.relation)
		switch {
		case ref == nil: // a WITH query
			if at.strict {
				c.because("a sub-select reads a WITH query")
			}
			if !c.inSight(n.RangeVar.Relname) {
				c.because("it reads a catalog")
			}
		case ref.fragment == nil || ref.relation == nil:
			c.because("it reads a catalog")
		case ref.relation.Kind == catalog.View:
			c.readsView(ref, at)
		case slices.ContainsFunc(ref.relation.Columns, func(column catalog.Column) bool {
			return slices.ContainsFunc(overflowing, func(oid uint32) bool { return c.snap.MadeOf(column.TypeOID, oid) })
		}):
			c.because("it reads a table with circles or segments, of which comparisons fail")
		case c.runs(ref.relation):
			c.because("it reads a table with values that functions of others compare or convert")
		case !asTables[ref.relation.Kind]:
			c.because("it reads a foreign table")
		}
	case *sqltext.Node_RangeSubselect:
		if query := n.RangeSubselect.GetSubquery().GetSelectStmt(); n.RangeSubselect.Lateral {
			if len(query.GetFromClause()) > 0 || query.GetOp() != sqltext.SETOP_NONE ||
				query.GetWithClause() != nil || query.GetWhereClause() != nil {
				c.query(query, at.level, false, at.strict)
				return
			}
			// It reads nothing: what it computes is of the columns beside it.
			at.feeds = true
			for _, list := range [][]*sqltext.Node{
				query.GetTargetList(), query.GetValuesLists(), query.GetGroupClause(), query.GetSortClause(),
				query.GetDistinctClause(), query.GetWindowClause(), {
					query.GetHavingClause(), query.GetLimitCount(), query.GetLimitOffset()}} {
				for _, n := range list {
					c.expr(n, at)
				}
			}
			return
		}
		c.query(n.RangeSubselect.GetSubquery().GetSelectStmt(), at.parent, false, at.strict)
	case *sqltext.Node_JoinExpr:
		// its names are those of what the alias hides
		if n.JoinExpr.Alias != nil && (hasLateral(n.JoinExpr.Larg) || hasLateral(n.JoinExpr.Rarg)) {
			c.because("LATERAL in a join with an alias")
			return
		}
		c.from(n.JoinExpr.Larg, at)
		c.from(n.JoinExpr.Rarg, at)
		// A join's condition sees the two sides, and what is beside them is of a query outside.
		sides, left, right := &level{parent: at.parent}, &level{parent: at.parent}, &level{parent: at.parent}
		c.names(n.JoinExpr.Larg, sides)
		of := len(sides.items)
		left.merged, sides.merged = sides.merged, false
		c.names(n.JoinExpr.Rarg, sides) // which sees the left one
		right.merged = sides.merged
		for i, item := range sides.items {
			if i < of {
				left.add(item)
			} else {
				right.add(item)
			}
		}
		c.merges(n.JoinExpr, left, right, at.strict)
		sides.merged = left.merged || right.merged || n.JoinExpr.IsNatural || len(n.JoinExpr.UsingClause) > 0
		at.level = sides
		c.expr(n.JoinExpr.Quals, at)
	case *sqltext.Node_RangeFunction:
		c.rows(n.RangeFunction, at)
	default:
		c.because("it has a function in FROM")
	}
}

// rows visits functions in FROM. They run for rows that are shown, and with what is computed of those.
func (c *cautious) rows(f *sqltext.RangeFunction, at stand) {
	for _, n := range f.Functions {
		call := n.GetList().GetItems()[0].GetFuncCall()
		switch {
		case call == nil || !c.plain(call):
			c.because("it has a function in FROM")
		case at.strict && lastName(call.Funcname) != "unnest":
			c.because("a sub-select runs a function in FROM")
		}
		if !at.strict {
			at.output = true
		}
		for _, arg := range call.GetArgs() {
			c.expr(arg, at)
		}
	}
}

// asTables are the kinds of relations that are read as tables are: a view of ours over what is stored is a barrier to
// what row security puts off. What a foreign server makes of a condition is its own.
var asTables = map[catalog.RelKind]bool{catalog.Table: true, catalog.PartitionedTable: true, catalog.MatView: true}

// hasLateral tells whether something in FROM may name what is beside it.
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

// merges looks at columns that a join compares by their names.
func (c *cautious) merges(j *sqltext.JoinExpr, left, right *level, strict bool) {
	switch {
	case !strict && left.allTables() && right.allTables() && !(j.IsNatural && c.namesArrays(left, right)):
	case j.IsNatural:
		c.because("NATURAL over what is not a table")
	}
	if j.IsNatural && slices.ContainsFunc(slices.Concat(left.items, right.items), (*source).asks) {
		c.because("NATURAL may ask for a virtual column")
	}
	for _, n := range j.UsingClause {
		ref := &sqltext.ColumnRef{Fields: []*sqltext.Node{n}}
		l, r := c.column(ref, left), c.column(ref, right)
		if l.asks || r.asks || c.fed && !(l.known && r.known) {
			c.because("USING asks for a sub-select of a query in FROM, or for a virtual column")
		}
		if c.convertsArrays(l.raw, r.raw) ||
			!(!strict && l.own && r.own || l.oid != 0 && r.oid != 0 &&
				(l.oid == r.oid || converted[l.oid] == 0 && converted[r.oid] == 0)) {
			c.because("USING over what is not a table")
		}
	}
}

// namesArrays tells whether two sides have an array by one name.
func (c *cautious) namesArrays(left, right *level) bool {
	for _, l := range left.items {
		for _, column := range l.table.Columns {
			for _, r := range right.items {
				if other := r.table.Column(column.Name); other != nil &&
					c.convertsArrays(c.snap.BaseType(column.TypeOID), c.snap.BaseType(other.TypeOID)) {
					return true
				}
			}
		}
	}
	return false
}
