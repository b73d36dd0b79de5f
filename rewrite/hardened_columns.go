package rewrite

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// queryLevel holds the FROM items of one SELECT, whose columns the expressions of the SELECT can name.
type queryLevel struct {
	parent           *queryLevel
	items            []*levelItem
	hasMergedColumns bool // USING or NATURAL may have merged columns of the same name
	unknownColumns   bool // some item has columns whose names are not known
	unknownName      bool // the name of some item is not known
}

// levelItem is an item of FROM.
type levelItem struct {
	alias string            // the name of the item in the query
	name  catalog.Name      // the name of a table that has no alias, so that expressions may write schema.table.column
	table *catalog.Relation // the item's table, or the table under the row view in its place; nil: the item is no table
	// isPlain tells whether a row view returns a column as the table stores it; nil: all columns are returned as stored
	isPlain func(column string) bool

	columns []levelColumn // the known columns of an item that is no table
	// PostgreSQL computes all rows of the item before any expression compares their columns: the item is a set-returning
	// function or a recursive query
	computedFirst bool
	// the planner does not pull the subquery up. So it computes the subquery's rows first, too, but may move conditions on
	// the columns into the subquery.
	notPulledUp bool
	view        bool // the item is a view. A function that takes the view's row may be called like a column.
}

// levelColumn is a column of an item of FROM.
type levelColumn struct {
	name string
	oid  uint32 // the OID of the column's type, if the type is certain and any two values of it can be compared; else 0

	computed bool // PostgreSQL may compute the column where an expression names it, so that an error may occur there
	// the column is NULL, or is computed from a column of a table in this query, also after PostgreSQL has pulled the
	// subquery up
	localColumn bool
	// constant folding cannot replace the column by a NULL, which would make an expression over it NULL, too
	notFoldable bool
	// the column contains a sub-select or a virtual column. It may fail for a hidden row, although PostgreSQL considers
	// the expression leak-proof.
	containsSubLink bool

	rawOID uint32 // the OID of the column's type, also if its values cannot be compared; 0 if the type is not certain
}

// resolvedColumn describes the column that a name in a statement means.
type resolvedColumn struct {
	known bool   // it is certain which column the name means
	oid   uint32 // the OID of the type, or 0, as in levelColumn; for a domain the OID of its base type
	// the OID of a table column's type, also if its values cannot be compared; for a domain the OID of its base type
	rawOID          uint32
	localColumn     bool // the column belongs to the query that names it, so that row security delays expressions over it
	notFoldable     bool // as in levelColumn
	containsSubLink bool // as in levelColumn
	unknownItem     bool // the column belongs to an item whose columns are not all known
	outer           bool // the column belongs to an outer query
	computed        bool // as in levelColumn: PostgreSQL may compute it where it is named
	ofTable         bool // the column belongs to a table
	mayBeFunction   bool // the name may mean a function in attribute notation
}

// addItem adds an item of FROM to the level.
func (l *queryLevel) addItem(i *levelItem) {
	l.items = append(l.items, i)
	l.unknownColumns = l.unknownColumns || i.table == nil && i.columns == nil
	l.unknownName = l.unknownName || i.alias == ""
}

// allTables tells whether all items of FROM are tables.
func (l *queryLevel) allTables() bool {
	return !l.unknownColumns && !slices.ContainsFunc(l.items, func(i *levelItem) bool { return i.table == nil })
}

// resolveColumn finds the column that a name means, in the query itself or in an outer one.
func (c *hardenedAnalysis) resolveColumn(ref *sqltext.ColumnRef, l *queryLevel) resolvedColumn {
	if ref == nil {
		return resolvedColumn{}
	}
	var names []string
	for _, n := range ref.Fields {
		names = append(names, n.GetString_().GetSval()) // the name is "" if the field is a star
	}
	if len(names) == 1 && names[0] == "" {
		return resolvedColumn{known: true, computed: true,
			containsSubLink: l == nil || slices.ContainsFunc(l.items, (*levelItem).hasSubLinkColumn)}
	}
	for level := l; level != nil; level = level.parent {
		var candidates []resolvedColumn
		hasName := false // an item of this level has the name as its alias
		for _, i := range level.items {
			switch {
			case len(names) == 1:
				hasName = hasName || i.alias == names[0]
			case len(names) == 2 && i.alias == names[0],
				len(names) == 3 && i.name == catalog.Name{Schema: names[0], Name: names[1]}:
				hasName = true
			default:
				continue
			}
			switch o, isOfKind := c.itemColumn(i, names[len(names)-1]); {
			case isOfKind:
				candidates = append(candidates, o)
			case len(names) > 1:
				candidates = append(candidates, resolvedColumn{known: true, localColumn: i.computedFirst,
					notFoldable: i.computedFirst,
					computed:    true, containsSubLink: i.hasSubLinkColumn(),
					unknownItem: i.table == nil && i.columns == nil, mayBeFunction: (i.table != nil || i.view ||
						i.computedFirst && i.columns != nil) && names[len(names)-1] != ""})
			}
		}
		switch {
		// the column may be a merged column of USING, which PostgreSQL converts
		case len(candidates) > 0 && len(names) == 1 && level.hasMergedColumns && level.unknownColumns:
			return resolvedColumn{outer: level != l, computed: true, ofTable: true, containsSubLink: true}
		case len(candidates) > 1 && !(len(names) == 1 && level.hasMergedColumns):
			return resolvedColumn{}
		case len(candidates) > 0:
			m := mergeColumns(candidates)
			m.localColumn, m.notFoldable, m.outer = m.localColumn && level == l, m.notFoldable && level == l, level != l
			return m
		case hasName && len(names) == 1: // the name is that of an item, and means the item's whole row
			return resolvedColumn{known: true, outer: level != l, computed: true,
				containsSubLink: slices.ContainsFunc(level.items, (*levelItem).hasSubLinkColumn),
				ofTable: slices.ContainsFunc(level.items,
					func(i *levelItem) bool { return i.alias == names[0] && c.hasComputedColumn(i) })}
		case hasName, level.unknownName, level.unknownColumns && len(names) != 2, slices.Contains(systemColumns, names[0]):
			return resolvedColumn{}
		}
	}
	return resolvedColumn{}
}

// mergeColumns returns a description that holds for the one column into which USING merges several columns.
func mergeColumns(candidates []resolvedColumn) resolvedColumn {
	m := candidates[0]
	for _, other := range candidates[1:] {
		if m.oid != other.oid || m.oid == 0 { // USING may convert one of the two columns to the type of the other
			m.oid, m.computed = 0, true
		}
		if m.rawOID != other.rawOID {
			m.rawOID = 0
		}
		m.containsSubLink = m.containsSubLink || other.containsSubLink
		m.known, m.localColumn, m.notFoldable, m.computed, m.ofTable = m.known && other.known,
			m.localColumn && other.localColumn, m.notFoldable &&
				other.notFoldable, m.computed || other.computed, m.ofTable || other.ofTable
	}
	return m
}

var systemColumns = []string{"tableoid", "ctid", "xmin", "xmax", "cmin", "cmax"}

// itemColumn returns the column of an item by its name, and tells whether the item has a column of that name.
func (c *hardenedAnalysis) itemColumn(i *levelItem, name string) (resolvedColumn, bool) {
	if i.table == nil {
		n := 0
		o := resolvedColumn{known: true, localColumn: i.computedFirst, notFoldable: i.computedFirst}
		for _, column := range i.columns {
			if column.name == name {
				o.containsSubLink = o.containsSubLink || column.containsSubLink
				n, o.oid, o.computed, o.localColumn, o.notFoldable, o.rawOID = n+1, column.oid, column.computed, i.computedFirst ||
					column.localColumn, i.computedFirst || column.notFoldable, column.rawOID
			}
		}
		if n > 1 {
			o.oid, o.localColumn, o.notFoldable, o.rawOID = 0, i.computedFirst, i.computedFirst, 0
		}
		return o, n > 0
	}
	column := i.table.Column(name)
	switch {
	case column == nil:
		return resolvedColumn{known: true, ofTable: true}, slices.Contains(systemColumns, name)
	case column.Virtual, i.isPlain != nil && !i.isPlain(name):
		return resolvedColumn{known: true, ofTable: true, computed: true, containsSubLink: column.Virtual}, true
	}
	o := resolvedColumn{known: true, ofTable: true, localColumn: true, notFoldable: true,
		rawOID: c.snap.BaseType(column.TypeOID)}
	if oid := c.snap.BaseType(column.TypeOID); column.Collation == "" && c.isComparable(oid) {
		o.oid = oid
	}
	return o, true
}

// hasComputedColumn tells whether PostgreSQL may compute some column of an item where an expression names it.
func (c *hardenedAnalysis) hasComputedColumn(i *levelItem) bool {
	return i.table == nil || slices.ContainsFunc(i.table.Columns, func(column catalog.Column) bool {
		return column.Virtual || i.isPlain != nil && !i.isPlain(column.Name)
	})
}

// isComparable tells whether PostgreSQL can compare any two values of a type. That includes the types in
// conversionTargets.
func (c *hardenedAnalysis) isComparable(oid uint32) bool {
	if t := c.snap.TypeByOID(oid); t != nil && t.Kind == 'e' {
		return true
	}
	return isSortable(kindOfOID(oid)) || conversionTargets[oid] > 0
}

// visibleCTE is a WITH query that the visited expression can name.
type visibleCTE struct {
	outer     *visibleCTE
	query     *sqltext.CommonTableExpr
	parent    *queryLevel // the level around the WITH query, whose columns the WITH query can name
	innerCTEs *visibleCTE // the other WITH queries that this WITH query can name

	recursive bool
}

// pushCTEs makes the WITH queries of a SELECT visible to expressions, and calls visit for each. Without RECURSIVE, a
// query's own name is not yet visible during that call. restore makes the WITH queries invisible again.
func (c *hardenedAnalysis) pushCTEs(s *sqltext.SelectStmt, parent *queryLevel,
	visit func(*sqltext.CommonTableExpr)) (restore func()) {
	outerCTEs := c.ctes
	var added []*visibleCTE
	for _, n := range s.GetWithClause().GetCtes() {
		query := n.GetCommonTableExpr()
		f := &visibleCTE{query: query, parent: parent, innerCTEs: c.ctes, recursive: s.WithClause.Recursive}
		if !f.recursive {
			visit(query)
		}
		f.outer, c.ctes = c.ctes, f
		added = append(added, f)
	}
	if s.GetWithClause().GetRecursive() {
		for _, f := range added {
			f.innerCTEs = c.ctes
		}
		for _, f := range added {
			visit(f.query)
		}
	}
	return func() { c.ctes = outerCTEs }
}

// cteItem returns the FROM item that a WITH query makes.
func (c *hardenedAnalysis) cteItem(name, alias string, renamed []*sqltext.Node) *levelItem {
	i := &levelItem{alias: alias}
	for f := c.ctes; f != nil; f = f.outer {
		if f.query.Ctename != name {
			continue
		}
		if f.query.SearchClause != nil || f.query.CycleClause != nil {
			return i
		}
		outerCTEs := c.ctes
		c.ctes = f.innerCTEs
		cteName := ""
		if f.recursive {
			cteName = name
		}
		columns := c.outputsOf(f.query.GetCtequery().GetSelectStmt(), f.parent, cteName)
		c.ctes = outerCTEs
		i.columns = renameColumns(renameColumns(columns, f.query.Aliascolnames), renamed)
		body := f.query.GetCtequery().GetSelectStmt()
		i.computedFirst = f.recursive && body != nil && body.Op != sqltext.SETOP_NONE && c.readsCTE(body.Rarg, name)
		i.notPulledUp = c.isNotPulledUp(body, f.parent)
		i.markPrecomputed()
		return i
	}
	return i
}

// renameColumns gives the columns the names in an alias such as AS x (a, b). The result is nil if it is not certain
// which column gets which name.
func renameColumns(columns []levelColumn, names []*sqltext.Node) []levelColumn {
	if len(names) == 0 {
		return columns
	}
	if len(names) > len(columns) {
		return nil
	}
	columns = slices.Clone(columns)
	for i, n := range names {
		columns[i].name = n.GetString_().GetSval()
	}
	return columns
}

// levelOf returns the queryLevel of a SELECT. Each is made only once.
func (c *hardenedAnalysis) levelOf(s *sqltext.SelectStmt, parent *queryLevel) *queryLevel {
	if l := c.levels[s]; l != nil && l.parent == parent {
		return l
	}
	// this entry ends the recursion if the query refers to itself
	c.levels[s] = &queryLevel{parent: parent, unknownColumns: true, unknownName: true}
	l := &queryLevel{parent: parent}
	for _, n := range s.FromClause {
		c.addItems(n, l)
	}
	c.levels[s] = l
	return l
}

// outputsOf returns the result columns of a query; nil if not all of them are known. cteName is the query's own name if
// it is a WITH RECURSIVE query, else "".
func (c *hardenedAnalysis) outputsOf(s *sqltext.SelectStmt, parent *queryLevel, cteName string) []levelColumn {
	if s == nil {
		return nil
	}
	if cachedColumns, isOfKind := c.outputColumns[s]; isOfKind {
		return cachedColumns
	}
	c.outputColumns[s] = nil // this entry ends the recursion if the query refers to itself
	defer c.pushCTEs(s, parent, func(*sqltext.CommonTableExpr) {})()
	var out []levelColumn
	switch {
	case s.Op != sqltext.SETOP_NONE:
		out = c.outputsOf(s.Larg, parent, "")
		if cteName != "" && c.readsCTE(s.Rarg, cteName) {
			break // in a recursive query the columns have the types of the non-recursive term
		}
		right := c.outputsOf(s.Rarg, parent, "")
		if len(right) != len(out) {
			return nil
		}
		out = slices.Clone(out)
		for i := range out {
			if out[i].oid != right[i].oid {
				out[i].oid = 0
			}
			if l, r := out[i].rawOID, right[i].rawOID; l != r {
				if out[i].rawOID = 0; l != 0 && r != 0 && !c.mayConvertArrays(l, r) {
					out[i].rawOID = scalarType
				}
			}
			out[i].containsSubLink = out[i].containsSubLink || right[i].containsSubLink
			// PostgreSQL may convert one side to the type of the other
			out[i].computed = out[i].computed || right[i].computed || out[i].oid == 0
			out[i].localColumn = out[i].localColumn && right[i].localColumn || hasLimit(s)
			out[i].notFoldable = out[i].notFoldable && right[i].notFoldable || hasLimit(s)
		}
	case len(s.ValuesLists) > 0:
		out = c.valuesColumns(s.ValuesLists, parent)
	default:
		level := c.levelOf(s, parent)
		out = []levelColumn{}
		for _, n := range s.TargetList {
			t := n.GetResTarget()
			if !isStar(t.GetVal()) {
				survives := hasLimit(s) || c.isNotFoldable(t.GetVal(), exprContext{queryLevel: level}) ||
					c.hasUnfoldedAggregate(t.GetVal(), level)
				isOwn := survives || c.hasLocalColumn(t.GetVal(), exprContext{queryLevel: level}) ||
					c.hasLocalAggregate(t.GetVal(), level)
				out = append(out, levelColumn{outputName(t), c.typeOf(t.GetVal(), level), c.mayBeComputed(t.GetVal(), level),
					isOwn, survives, c.containsSubLink(t.GetVal(), level), c.rawTypeOf(t.GetVal(), level)})
				continue
			}
			all := c.starColumnsOf(t.GetVal().GetColumnRef(), level)
			if c.starCopies += len(all); all == nil || c.starCopies > maxStarCopies {
				return nil
			}
			out = append(out, all...)
		}
	}
	c.outputColumns[s] = out
	return out
}

// containsSubLink tells whether an expression contains a sub-select or a virtual column, or names a column that does.
func (c *hardenedAnalysis) containsSubLink(n *sqltext.Node, level *queryLevel) (found bool) {
	c.walkNodes(n, func(n *sqltext.Node) bool {
		found = found || n.GetSubLink() != nil ||
			n.GetColumnRef() != nil && c.resolveColumn(n.GetColumnRef(), level).containsSubLink
		return !found
	})
	return found
}

func (s *levelItem) hasSubLinkColumn() bool {
	return s.table != nil && hasVirtualColumn(s.table) ||
		slices.ContainsFunc(s.columns, func(t levelColumn) bool { return t.containsSubLink })
}

// hasVirtualColumn tells whether a table has virtual columns. The owner has written their expressions, and the
// statement shows only their names. PostgreSQL considers an array conversion, a CASE or a subscript in such an
// expression leak-proof.
func hasVirtualColumn(r *catalog.Relation) bool {
	return slices.ContainsFunc(r.Columns, func(column catalog.Column) bool { return column.Virtual })
}

// hasLimit tells whether a query in FROM has LIMIT or OFFSET. Then PostgreSQL computes the outputs of the query before
// any expression compares them. Without LIMIT and OFFSET, PostgreSQL puts the query's expression in the place of the
// column, even if it does not pull the query up. It also pushes conditions on the column into the query. Row security
// delays such a condition only if the expression names a column that survives constant folding.
func hasLimit(s *sqltext.SelectStmt) bool { return s.LimitCount != nil || s.LimitOffset != nil }

// mayBeComputed tells whether PostgreSQL may compute an output of a query in FROM where an outer expression names it.
func (c *hardenedAnalysis) mayBeComputed(n *sqltext.Node, level *queryLevel) bool {
	switch x := n.GetNode().(type) {
	case *sqltext.Node_A_Const, *sqltext.Node_ParamRef:
		return false
	case *sqltext.Node_ColumnRef:
		m := c.resolveColumn(x.ColumnRef, level)
		return !m.known || m.computed
	case *sqltext.Node_FuncCall: // PostgreSQL computes an aggregate before any outer expression
		return !(slices.Contains([]string{"count", "min", "max"}, lastNamePart(x.FuncCall.Funcname)) &&
			c.callType(x.FuncCall, level) != 0)
	}
	return true
}

// markPrecomputed notes that PostgreSQL computes the rows of an item before other expressions, if it does so for this
// item. Then none of the item's columns is computed where an expression names it.
func (s *levelItem) markPrecomputed() {
	if s.computedFirst || s.notPulledUp {
		s.columns = slices.Clone(s.columns)
		for i := range s.columns {
			s.columns[i].computed = false
			if s.columns[i].rawOID == 0 {
				s.columns[i].rawOID = s.columns[i].oid
			}
		}
	}
}

// isNotPulledUp tells whether PostgreSQL certainly does not pull a query in FROM up into the query around it
// (is_simple_subquery of prepjointree.c).
func (c *hardenedAnalysis) isNotPulledUp(s *sqltext.SelectStmt, parent *queryLevel) bool {
	switch {
	case s == nil:
		return false
	case s.Op != sqltext.SETOP_NONE:
		return !s.All
	case len(s.GroupClause) > 0 || s.HavingClause != nil || len(s.DistinctClause) > 0 || len(s.SortClause) > 0 ||
		s.LimitCount != nil || s.LimitOffset != nil:
		return true
	}
	level := c.levelOf(s, parent)
	return slices.ContainsFunc(s.TargetList, func(n *sqltext.Node) (found bool) {
		c.walkNodes(n, func(n *sqltext.Node) bool {
			found = found || c.isLocalAggregate(n.GetFuncCall(), level)
			return !found && n.GetSubLink() == nil
		})
		return found
	})
}

// isLocalAggregate tells whether a call is an aggregate or a window function of the query in which it stands.
func (c *hardenedAnalysis) isLocalAggregate(f *sqltext.FuncCall, level *queryLevel) bool {
	switch {
	case f == nil:
		return false
	case f.Over != nil || f.AggStar && f.AggFilter == nil:
		return true
	case !(f.AggStar || slices.Contains(commonAggregates, lastNamePart(f.Funcname)) && c.isCatalogCall(f)):
		return false
	}
	// an aggregate whose arguments name only outer columns belongs to the outer query
	return slices.ContainsFunc(append(slices.Clone(f.Args), f.AggFilter), func(n *sqltext.Node) (isOwn bool) {
		c.walkNodes(n, func(n *sqltext.Node) bool {
			if ref := n.GetColumnRef(); ref != nil {
				m := c.resolveColumn(ref, level)
				isOwn = isOwn || m.known && !m.outer
			}
			return !isOwn && n.GetSubLink() == nil
		})
		return isOwn
	})
}

// hasLocalAggregate tells whether an expression has an aggregate or a window function of its own query. After constant
// folding the expression either still has one, or is NULL. So PostgreSQL cannot evaluate a condition on the expression
// before the aggregate.
func (c *hardenedAnalysis) hasLocalAggregate(n *sqltext.Node, level *queryLevel) (found bool) {
	c.walkNodes(n, func(n *sqltext.Node) bool {
		found = found || c.isLocalAggregate(n.GetFuncCall(), level) ||
			c.hasOperand(n, func(n *sqltext.Node) bool { return c.hasUnfoldedAggregate(n, level) })
		return !found && c.isStrict(n, level)
	})
	return found
}

// hasUnfoldedAggregate tells whether an expression has an aggregate of its own query, and constant folding cannot make
// the expression NULL.
func (c *hardenedAnalysis) hasUnfoldedAggregate(n *sqltext.Node, level *queryLevel) bool {
	return c.isLocalAggregate(n.GetFuncCall(), level) ||
		c.someOperandSurvives(n, level, func(n *sqltext.Node) (isOperand, survives bool) {
			isOperand = c.hasUnfoldedAggregate(n, level)
			return isOperand, isOperand || c.isNotFoldable(n, exprContext{queryLevel: level})
		})
}

// commonAggregates are the aggregates of PostgreSQL that the analysis knows.
var commonAggregates = []string{"count", "sum", "avg", "min", "max", "array_agg", "string_agg", "json_agg", "jsonb_agg",
	"json_object_agg", "jsonb_object_agg", "bool_and", "bool_or", "every"}

// readsCTE tells whether the recursive term of a WITH query reads the query itself. It is false if the term contains
// further WITH queries, which might have the same name.
func (c *hardenedAnalysis) readsCTE(s *sqltext.SelectStmt, name string) bool {
	found, others := false, s.GetWithClause() != nil
	sqltext.EachChild(s, func(n *sqltext.Node) {
		c.walkNodes(n, func(n *sqltext.Node) bool {
			found = found || n.GetRangeVar() != nil && n.GetRangeVar().Relname == name && c.referenceOf[n.GetRangeVar()] == nil
			others = others || n.GetSelectStmt().GetWithClause() != nil
			return true
		})
	})
	return found && !others
}

// valuesColumns returns the columns of a VALUES list; nil if the list has more than nine.
func (c *hardenedAnalysis) valuesColumns(lists []*sqltext.Node, parent *queryLevel) []levelColumn {
	names := []string{"column1", "column2", "column3", "column4", "column5", "column6", "column7", "column8", "column9"}
	var out []levelColumn
	for row, n := range lists {
		for i, value := range n.GetList().GetItems() {
			switch oid := c.typeOf(value, parent); {
			case i >= len(names) || row > 0 && i >= len(out):
				return nil
			case row == 0:
				out = append(out, levelColumn{name: names[i], oid: oid, computed: true, rawOID: c.rawTypeOf(value, parent)})
				continue
			case out[i].oid != oid:
				out[i].oid = 0
			}
			if out[i].rawOID != c.rawTypeOf(value, parent) {
				out[i].rawOID = 0
			}
		}
	}
	return out
}

// starColumnsOf returns the columns for which * or item.* stands; nil if they are not known.
func (c *hardenedAnalysis) starColumnsOf(ref *sqltext.ColumnRef, level *queryLevel) []levelColumn {
	if level.unknownColumns || level.hasMergedColumns || len(ref.Fields) > 2 {
		return nil
	}
	var out []levelColumn
	for _, i := range level.items {
		if len(ref.Fields) == 2 && i.alias != ref.Fields[0].GetString_().GetSval() {
			continue
		}
		if i.table == nil {
			for _, column := range i.columns {
				column.localColumn, column.notFoldable = column.localColumn || i.computedFirst,
					column.notFoldable || i.computedFirst
				out = append(out, column)
			}
			continue
		}
		for _, column := range i.table.Columns {
			o, _ := c.itemColumn(i, column.Name)
			out = append(out, levelColumn{column.Name, o.oid, o.computed, o.localColumn, o.notFoldable, o.containsSubLink,
				o.rawOID})
		}
	}
	return out
}

// addItems adds an item of FROM, or the items of a join, to a level.
func (c *hardenedAnalysis) addItems(n *sqltext.Node, ownLevel *queryLevel) {
	switch n := n.GetNode().(type) {
	case *sqltext.Node_RangeVar:
		ownLevel.addItem(c.tableItem(n.RangeVar))
	case *sqltext.Node_RangeSubselect:
		query, parent := n.RangeSubselect.GetSubquery().GetSelectStmt(), ownLevel.parent
		if n.RangeSubselect.Lateral {
			parent = ownLevel
		}
		i := &levelItem{alias: n.RangeSubselect.GetAlias().GetAliasname(),
			columns: renameColumns(c.outputsOf(query, parent, ""), n.RangeSubselect.GetAlias().GetColnames())}
		if i.alias == "" {
			i.alias = noAlias
		}
		i.notPulledUp = c.isNotPulledUp(query, parent)
		i.markPrecomputed()
		ownLevel.addItem(i)
	case *sqltext.Node_JoinExpr:
		ownLevel.hasMergedColumns = ownLevel.hasMergedColumns || n.JoinExpr.IsNatural || len(n.JoinExpr.UsingClause) > 0
		if n.JoinExpr.Alias != nil { // the alias hides the names inside the join, which then mean columns of an outer query
			ownLevel.addItem(&levelItem{alias: n.JoinExpr.Alias.Aliasname})
			return
		}
		if a := n.JoinExpr.JoinUsingAlias; a != nil {
			ownLevel.addItem(&levelItem{alias: a.Aliasname})
		}
		c.addItems(n.JoinExpr.Larg, ownLevel)
		c.addItems(n.JoinExpr.Rarg, ownLevel)
	case *sqltext.Node_RangeFunction:
		ownLevel.addItem(c.functionItem(n.RangeFunction, ownLevel))
	case *sqltext.Node_RangeTableFunc:
		ownLevel.addItem(&levelItem{alias: n.RangeTableFunc.GetAlias().GetAliasname()})
	default:
		ownLevel.addItem(&levelItem{}) // the item is a TABLESAMPLE
	}
}

// noAlias is the name of sub-selects without an alias. No expression can name them.
const noAlias = "\x00"

func (c *hardenedAnalysis) tableItem(v *sqltext.RangeVar) *levelItem {
	ref, alias := c.referenceOf[v], v.GetAlias()
	i := &levelItem{alias: v.Relname}
	if alias != nil {
		i.alias = alias.Aliasname
	}
	switch {
	case ref == nil:
		return c.cteItem(v.Relname, i.alias, alias.GetColnames())
	case ref.fragment != nil && ref.relation != nil && ref.relation.Kind == catalog.View:
		return c.viewItem(ref, i.alias, alias.GetColnames())
	case ref.isCatalog() && len(alias.GetColnames()) == 0:
		i.table = ref.relation
	case ref.fragment == nil || len(alias.GetColnames()) > 0 || !tableKinds[ref.relation.Kind]:
		return i
	case ref.fragment.isView():
		if c.readsKeyOnlyColumn(ref) { // the rewriter will put a function in the place of the table
			return i
		}
		i.table, i.isPlain = ref.fragment.visible, ref.fragment.isPlain
	default:
		i.table = ref.relation
	}
	if alias == nil {
		i.name = ref.name
	}
	return i
}

// setReturningFunctions are functions that PostgreSQL runs to the end before any expression compares their rows. A
// column with name "" here gets the name of the FROM item.
var setReturningFunctions = map[string][]levelColumn{
	"unnest": {{}}, "generate_series": {{}}, "generate_subscripts": {{oid: 23}},
	"jsonb_array_elements": {{name: "value", oid: 3802}}, "jsonb_array_elements_text": {
		{name: "value", oid: 25}}, "json_array_elements": {{name: "value", oid: 0}},
	"json_array_elements_text": {{name: "value", oid: 25}},
	"jsonb_each":               {{name: "key", oid: 25}, {name: "value", oid: 3802}}, "jsonb_each_text": {
		{name: "key", oid: 25}, {name: "value", oid: 25}},
	"json_each": {{name: "key", oid: 25}, {name: "value", oid: 0}}, "json_each_text": {
		{name: "key", oid: 25}, {name: "value", oid: 25}},
	"jsonb_object_keys": {{oid: 25}}, "json_object_keys": {{oid: 25}}, "jsonb_path_query": {{oid: 3802}},
	"regexp_split_to_table": {{oid: 25}}, "string_to_table": {{oid: 25}}, "regexp_matches": {{oid: 1009}},
}

// functionItem returns the FROM item that a function makes. Its columns are known only for setReturningFunctions, since
// PostgreSQL may inline other functions.
func (c *hardenedAnalysis) functionItem(f *sqltext.RangeFunction, level *queryLevel) *levelItem {
	i := &levelItem{alias: f.GetAlias().GetAliasname()}
	if f.IsRowsfrom || len(f.Functions) != 1 {
		return i
	}
	call := f.Functions[0].GetList().GetItems()[0].GetFuncCall()
	name := lastNamePart(call.GetFuncname())
	if i.alias == "" {
		i.alias = name
	}
	columns := slices.Clone(setReturningFunctions[name])
	if columns == nil || len(f.Coldeflist) > 0 || len(call.Args) == 0 || !c.isCatalogCall(call) {
		return i
	}
	if columns[0].name == "" { // PostgreSQL gives the column the name of the item
		columns[0].name = i.alias
	}
	switch name {
	case "unnest":
		if len(call.Args) > 1 {
			return i
		}
		columns[0].oid = map[uint32]uint32{1009: 25, 2951: 2950, 1005: 21, 1007: 23, 1016: 20}[c.typeOf(call.Args[0], level)]
	case "generate_series":
		firstType := c.typeOf(call.Args[0], level)
		if (firstType == 20 || firstType == 23) && !slices.ContainsFunc(call.Args,
			func(n *sqltext.Node) bool { return c.typeOf(n, level) != firstType }) {
			columns[0].oid = firstType
		}
	}
	if f.Ordinality {
		columns = append(columns, levelColumn{name: "ordinality", oid: 20})
	}
	i.computedFirst, i.columns = true, renameColumns(columns, f.GetAlias().GetColnames())
	return i
}

// typeOf returns the type of an expression. The result is 0 if the type is not certain, or if some values of the type
// cannot be compared.
func (c *hardenedAnalysis) typeOf(n *sqltext.Node, level *queryLevel) uint32 {
	switch x := n.GetNode().(type) {
	case *sqltext.Node_ColumnRef:
		return c.resolveColumn(x.ColumnRef, level).oid
	case *sqltext.Node_A_Const:
		switch {
		case x.AConst.GetIval() != nil:
			return 23
		case x.AConst.GetSval() != nil:
			return 25
		}
	case *sqltext.Node_TypeCast:
		name := x.TypeCast.GetTypeName()
		if types := c.snap.TypesNamed("pg_catalog", lastNamePart(name.GetNames())); len(types) == 1 &&
			len(name.GetArrayBounds()) == 0 && c.isComparable(types[0].OID) {
			if schema, _, ok := qualifiedName(name.GetNames()); ok &&
				(schema != "" && schema != "pg_catalog" || schema == "" && len(c.snap.TypesNamed("", types[0].Name.Name)) != 1) {
				return 0
			}
			return types[0].OID
		}
	case *sqltext.Node_BoolExpr, *sqltext.Node_NullTest, *sqltext.Node_BooleanTest:
		return 16
	case *sqltext.Node_A_Expr:
		switch _, name, ok := qualifiedName(x.AExpr.Name); {
		case !ok || x.AExpr.Kind != sqltext.AEXPR_OP:
		case slices.Contains(comparisonOperators, name):
			return 16
		case name == "->>", name == "#>>":
			return 25
		}
	case *sqltext.Node_CoalesceExpr:
		var oid uint32
		for i, arg := range x.CoalesceExpr.Args {
			switch t := c.typeOf(arg, level); {
			case i == 0:
				oid = t
			case t != oid:
				return 0
			}
		}
		return oid
	case *sqltext.Node_SubLink:
		switch x.SubLink.SubLinkType {
		case sqltext.EXISTS_SUBLINK, sqltext.ANY_SUBLINK:
			return 16
		case sqltext.EXPR_SUBLINK:
			return c.subLinkType(x.SubLink, level)
		}
	case *sqltext.Node_FuncCall:
		return c.callType(x.FuncCall, level)
	}
	return 0
}

// subLinkType returns the type of the value of a sub-select with one column; 0 if it is not certain.
func (c *hardenedAnalysis) subLinkType(s *sqltext.SubLink, level *queryLevel) uint32 {
	if columns := c.outputsOf(s.GetSubselect().GetSelectStmt(), level, ""); len(columns) == 1 {
		return columns[0].oid
	}
	return 0
}

func (c *hardenedAnalysis) callType(f *sqltext.FuncCall, level *queryLevel) uint32 {
	if !c.isCatalogCall(f) || f.AggWithinGroup {
		return 0
	}
	switch name := lastNamePart(f.Funcname); name {
	case "count", "row_number", "rank", "dense_rank":
		return 20
	case "ntile":
		return 23
	case "lower", "upper", "length":
		switch {
		case len(f.Args) != 1 || !slices.Contains([]uint32{25, 1043}, c.typeOf(f.Args[0], level)):
		case name == "length":
			return 23
		default:
			return 25
		}
	case "min", "max":
		if len(f.Args) == 1 {
			return c.typeOf(f.Args[0], level)
		}
	case "sum", "avg":
		if len(f.Args) != 1 {
			return 0
		}
		switch t := c.typeOf(f.Args[0], level); {
		case name == "sum" && (t == 21 || t == 23):
			return 20
		case t == 20 || t == 21 || t == 23 || t == 1700:
			return 1700
		}
	}
	return 0
}
