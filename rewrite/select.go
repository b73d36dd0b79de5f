package rewrite

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// selectStmt visits a SELECT, VALUES or TABLE and returns the names of its columns, or nil if they are not known. The
// expressions in it can name its own FROM items, and then those of parent.
func (w *walker) selectStmt(s *sqltext.SelectStmt, parent *scope) map[string]bool {
	if s == nil || w.refused != nil {
		return nil
	}
	w.countNode("SelectStmt")
	outerScope, outerCTEs := w.scope, w.ctes
	defer func() { w.scope, w.ctes = outerScope, outerCTEs }()
	ownScope := newScope(parent)
	ownScope.query = s
	w.scope = ownScope

	if s.IntoClause != nil {
		w.refuse(refusalOf("SelectStmt.into_clause"))
	}
	w.visitWithClause(s.WithClause, parent)

	var columns map[string]bool
	switch {
	case s.Op != sqltext.SETOP_NONE:
		columns = w.selectStmt(s.Larg, parent)
		w.selectStmt(s.Rarg, parent)
	case s.Larg != nil || s.Rarg != nil:
		w.refuse(refusalOf("SelectStmt.larg"))
	}
	w.valuesLists(s)
	first, firstSingle := len(w.references), len(w.singleRowReads)
	w.findKeys(s)
	for _, item := range s.FromClause {
		w.visitFromItem(item, ownScope, parent, mayInject)
	}
	ownScope.keepSameNames()
	w.visitLockingClauses(s, ownScope, first)
	if s.Op == sqltext.SETOP_NONE && len(s.ValuesLists) == 0 {
		columns = w.visitTargetList(&s.TargetList)
	} else if len(s.TargetList) > 0 {
		w.visitTargetList(&s.TargetList)
	}
	w.exprs(s.DistinctClause) // a plain DISTINCT is a list with one empty node
	w.visitExpr(s.WhereClause)
	w.castTimeBounds(s.WhereClause)
	w.noteCheapConditions(s.WhereClause)
	w.exprs(s.GroupClause)
	w.visitExpr(s.HavingClause)
	w.exprs(s.WindowClause)
	w.exprs(s.SortClause)
	w.visitExpr(s.LimitOffset)
	w.visitExpr(s.LimitCount)
	w.keepTablesGroupedByKey(s, ownScope)
	w.addGroupColumns(s, ownScope)
	w.noteAggregation(s, ownScope, w.singleRowReads[firstSingle:])
	return columns
}

// visitTargetList visits a target list and returns the names of its columns, or nil if they are not known.
func (w *walker) visitTargetList(targets *[]*sqltext.Node) map[string]bool {
	columns := map[string]bool{}
	for _, n := range *targets {
		t := n.GetResTarget()
		if t == nil || len(t.Indirection) > 0 {
			w.refuse(refusalOf(sqltext.NodeKind(n)))
			return nil
		}
		w.countNode("ResTarget")
		if c := t.GetVal().GetColumnRef(); c != nil {
			if !w.catalogSystemColumn(t.Val, t) && !w.bareXmin(t.Val, t) {
				w.visitColumnRef(c, true)
				if isStar(t.Val) && w.refused == nil {
					w.addStar(targets, c)
				}
			}
		} else {
			w.visitExpr(t.Val)
		}
		switch name := outputName(t); {
		case columns == nil:
		case isStar(t.GetVal()):
			columns = w.starColumns(columns, t.GetVal().GetColumnRef())
		case name == "":
			columns = nil
		default:
			columns[name] = true
		}
	}
	return columns
}

func isStar(n *sqltext.Node) bool {
	fields := n.GetColumnRef().GetFields()
	return len(fields) > 0 && fields[len(fields)-1].GetAStar() != nil
}

// maxStarColumns bounds how many columns the stars of one text may stand for. Beyond the bound, their columns count as
// not known.
const maxStarColumns = 100_000

// starColumns adds to columns those for which * or item.* stands. It returns nil if they are not known.
func (w *walker) starColumns(columns map[string]bool, c *sqltext.ColumnRef) map[string]bool {
	items := w.scope.items
	switch len(c.Fields) {
	case 1:
	case 2:
		if items = w.scope.itemsNamed(c.Fields[0].GetString_().GetSval()); len(items) != 1 {
			return nil
		}
	default:
		return nil
	}
	for s := w.scope; s != nil; s = s.parent {
		if s.hasUnknownName {
			return nil
		}
	}
	for _, item := range items {
		if item.columns == nil { // the columns are not known, for example those of a join with an alias
			return nil
		}
	}
	for _, item := range items {
		if w.starColumnCount += len(item.columns); w.starColumnCount > maxStarColumns {
			return nil
		}
		for name := range item.columns {
			columns[name] = true
		}
	}
	return columns
}

// renamedColumns returns the column names in an alias such as AS x (a, b). The item may have more columns.
func renamedColumns(names []*sqltext.Node) map[string]bool {
	columns := make(map[string]bool, len(names))
	for _, n := range names {
		columns[n.GetString_().GetSval()] = true
	}
	return columns
}

// outputName returns the name of a result column: the AS name, or the last part of a column's or function's name. It
// returns "" for other expressions.
func outputName(t *sqltext.ResTarget) string {
	if t.Name != "" {
		return t.Name
	}
	if c := t.GetVal().GetColumnRef(); c != nil && len(c.Fields) > 0 {
		return c.Fields[len(c.Fields)-1].GetString_().GetSval()
	}
	if f := t.GetVal().GetFuncCall(); f != nil && len(f.Funcname) > 0 {
		return f.Funcname[len(f.Funcname)-1].GetString_().GetSval()
	}
	return ""
}

// visitWithClause visits the queries of a WITH clause. Without RECURSIVE, a query's own name inside the query means a
// table, or a WITH query of an outer statement.
func (w *walker) visitWithClause(c *sqltext.WithClause, parent *scope) {
	if c == nil || w.refused != nil {
		return
	}
	w.countNode("WithClause")
	frame := &cteFrame{parent: w.ctes, columnsOf: map[string]map[string]bool{}, singleRowReads: map[string]*reference{}}
	w.ctes = frame
	if c.Recursive {
		for _, n := range c.Ctes {
			frame.columnsOf[n.GetCommonTableExpr().GetCtename()] = nil
		}
	}
	for _, n := range c.Ctes {
		cte := n.GetCommonTableExpr()
		if cte == nil {
			w.refuse(refusalOf(sqltext.NodeKind(n)))
			return
		}
		w.countNode("CommonTableExpr")
		firstSingle := len(w.singleRowReads)
		columns := w.visitQuery(cte.GetCtequery(), parent)
		if cte.GetCtequery().GetSelectStmt() != nil && len(w.singleRowReads) > firstSingle {
			frame.singleRowReads[cte.Ctename] = w.singleRowReads[firstSingle]
		}
		if len(cte.Aliascolnames) > 0 {
			columns = renamedColumns(cte.Aliascolnames)
		}
		if search := cte.SearchClause; search != nil {
			w.countNode("CTESearchClause")
			columns = nil
		}
		if cycle := cte.CycleClause; cycle != nil {
			w.countNode("CTECycleClause")
			w.visitExpr(cycle.CycleMarkValue)
			w.visitExpr(cycle.CycleMarkDefault)
			columns = nil
		}
		frame.columnsOf[cte.Ctename] = columns
	}
}

// keepTablesGroupedByKey makes the text name a table itself if GROUP BY may contain its primary key. Then PostgreSQL
// lets the SELECT name the table's other columns ungrouped. For a subquery in the table's place it would not.
func (w *walker) keepTablesGroupedByKey(s *sqltext.SelectStmt, ownScope *scope) {
	if len(s.GroupClause) == 0 {
		return
	}
	// both lists are read only once, since a statement may have thousands of group keys and targets
	grouped := map[string]bool{} // the names of the columns that a group key may mean; "": any column
	column := func(n *sqltext.Node) {
		if c := n.GetColumnRef(); c != nil && len(c.Fields) > 0 {
			grouped[c.Fields[len(c.Fields)-1].GetString_().GetSval()] = true
		}
	}
	distance := false // a group key is a distance, and PostgreSQL may make the groups from an index that sorts by it
	measures := func(n *sqltext.Node) {
		distance = distance || n != nil && sqltext.RelationsOrderedBy(n, distanceOperators) != nil
	}
	position, named := false, map[string]bool{}
	var item func(n *sqltext.Node)
	items := func(nodes []*sqltext.Node) {
		for _, n := range nodes {
			item(n)
		}
	}
	item = func(n *sqltext.Node) {
		switch {
		case n.GetGroupingSet() != nil:
			items(n.GetGroupingSet().Content)
		case n.GetRowExpr() != nil:
			items(n.GetRowExpr().Args)
		case n.GetList() != nil:
			items(n.GetList().Items)
		case n.GetAConst() != nil: // the group key is the position of a result column, so that it may mean any column
			position = true
		default:
			column(n)
			measures(n)
			if c := n.GetColumnRef(); c != nil && len(c.Fields) == 1 { // the group key is the name of a result column
				named[c.Fields[0].GetString_().GetSval()] = true
			}
		}
	}
	items(s.GroupClause)
	for _, n := range s.TargetList {
		if target := n.GetResTarget(); position || target.GetName() != "" && named[target.GetName()] {
			column(target.GetVal())
			measures(target.GetVal())
		}
	}
	for _, i := range ownScope.items {
		// findFences puts such a table into a subquery, of which each column must be grouped
		if i.ref == nil || i.ref.fragment == nil || distance && w.hasApproximateIndex(i.ref) {
			continue
		}
		key := i.ref.relation.PrimaryKey
		if len(key) > 0 && (grouped[""] || !slices.ContainsFunc(key, func(column string) bool { return !grouped[column] })) {
			i.ref.doNotInject(groupByPrimaryKey)
		}
	}
}
