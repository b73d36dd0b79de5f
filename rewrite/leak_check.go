package rewrite

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// leakChecker decides whether a text that the walker has allowed may take the signed path, where the planner may run
// its expressions on hidden rows. It keeps the first reason against that. Its default arms reject: that costs speed and
// nothing else.
type leakChecker struct {
	*walker
	reason         string
	references     map[*sqltext.RangeVar]*reference
	ctes           []map[string]leakQuery
	sumMayOverflow bool                   // a sum that is certain to be computed may overflow
	typesToQualify []*sqltext.TypeName    // types that the signed path names with their schema
	paramKinds     map[int32]kind         // the kinds that parameters must be declared as, if at all
	paramForms     map[int32]verdict.Form // what the values of parameters must look like
	dependsOnForms bool                   // it is leak-safe if the values of parameters have these forms
	// the types that the text casts parameters to, and that they must be declared as
	paramCasts map[int32]uint32
	// the types of the operands beside each parameter, which may give it its type, by OID; 0: not known
	paramNeighbours map[int32][]uint32
	outputCount     int             // expressions that outputExpr has looked at in parts
	orderedWindows  map[string]bool // named windows with ORDER BY
	// a condition has an operator, not of an enum, by which an index finds rows
	indexSearch bool
	// A condition has an operator, a function or a cast of a column that is not leak-proof for the server. Row security
	// puts it off until it has let the row through, and so reads no index by it.
	leaky      bool
	leakSafe   bool   // it may take the signed path, whether that is faster or not
	belowFence []bool // for each condition of the SELECT, whether it goes below OFFSET 0: see leak_check_search.go
}

// leakColumn is a column of an item of FROM.
type leakColumn struct {
	name string
	kind kind
	// PostgreSQL computes the column as a statement reads it, by a mask or an expression of the owner. That may fail on a
	// hidden row.
	computed      bool
	fewDigits     bool   // its numbers have few digits: no sum of them overflows
	afterGrouping bool   // it is computed after groups or windows of the outermost SELECT
	oid           uint32 // the type of a table's column
}

// leakItem is an item of FROM.
type leakItem struct {
	name          string
	columns       []leakColumn
	table         *catalog.Relation // the table whose columns these are; nil: the item is a query
	mergedColumns map[string]bool   // columns merged by USING: a name without the item means the column of the other item
}

// hasUnknownName tells whether the text does not show the name of a column.
func (i *leakItem) hasUnknownName() bool {
	return slices.ContainsFunc(i.columns, func(c leakColumn) bool { return c.name == "" })
}

// leakQuery is a WITH query.
type leakQuery struct {
	columns        []leakColumn
	sumMayOverflow bool // a sum in it may overflow
}

// leakScope holds the items of FROM of one query, inside those of parent.
type leakScope struct {
	items  []*leakItem
	parent *leakScope
}

// checkContext says where an expression stands.
type checkContext struct {
	scope            *leakScope
	aggregateAllowed bool // aggregates are allowed at this place
	isOutput         bool // it is computed of rows that have passed all conditions: see leak_check_output.go
	aboveFence       bool // it, a sort key or a group key is computed above OFFSET 0, of such rows: see leak_check_search.go
	// it is not certain to run to its end: hidden rows outside or beside it may decide whether, or for which rows, it runs
	mayNotRun bool
}

// minRowsForSignedPath is how many rows a statement must look at for the signed path to be faster. Below it row
// policies are, which need no signature and look up one row at a time.
const minRowsForSignedPath = 2000

// maxRulesForSignedPath is how many tables whose rules read helper tables a statement may join on the signed path. Each
// brings joins of its own. For so many joins the planner expects next to no rows, and then scans all that one rule
// finds for each row of the rest. Row security builds a hash set for each rule once.
const maxRulesForSignedPath = 2

// reject notes the first reason.
func (v *leakChecker) reject(format string, args ...any) bool {
	if v.reason == "" {
		v.reason = fmt.Sprintf(format, args...)
	}
	return false
}

func (w *walker) newLeakChecker() *leakChecker {
	return &leakChecker{walker: w, references: map[*sqltext.RangeVar]*reference{}, paramKinds: map[int32]kind{},
		paramForms: map[int32]verdict.Form{}, paramCasts: map[int32]uint32{}, paramNeighbours: map[int32][]uint32{},
		orderedWindows: map[string]bool{}}
}

// checkLeaks returns a leak checker. Its reason is empty if the text may take the signed path. by checks the SELECT.
func (w *walker) checkLeaks(tree *sqltext.ParseResult, by func(*leakChecker, *sqltext.SelectStmt)) *leakChecker {
	v := w.newLeakChecker()
	switch {
	case len(tree.Stmts) != 1:
		v.reject("it is not exactly one statement")
	case tree.Stmts[0].GetStmt().GetSelectStmt() == nil:
		v.reject("only SELECT takes the signed path")
	case !signable(w.source):
		v.reject("it has a backslash outside E'' strings, or is not the whole message")
	default:
		v.checkRelations()
	}
	if v.reason == "" {
		by(v, tree.Stmts[0].GetStmt().GetSelectStmt())
		v.checkNarrowParams()
	}
	v.dependsOnForms = v.reason == "" && len(v.paramForms) > 0
	v.leakSafe = v.reason == ""
	return v
}

// checkNarrowParams looks at parameters that are cast to a type for which other values may be too large. No operand
// beside such a parameter may have a wider type. An undeclared parameter gets the type of the operand that PostgreSQL
// sees first beside it, and then is converted for each row.
func (v *leakChecker) checkNarrowParams() {
	for number, oid := range v.paramCasts {
		fit := map[uint32][]uint32{21: {21}, 23: {21, 23}, 700: {700}}[oid]
		if fit != nil && slices.ContainsFunc(v.paramNeighbours[number],
			func(beside uint32) bool { return !slices.Contains(fit, beside) }) {
			v.reject("parameter $%d is cast to a type that it may be too large for", number)
		}
	}
}

// checkSelect checks every expression of a SELECT.
func (v *leakChecker) checkSelect(s *sqltext.SelectStmt) {
	v.query(s, checkContext{mayNotRun: v.isView}, true) // a statement may read the view anywhere
}

// checkCost rejects statements that row security answers as fast as the signed path does. The decision changes only the
// speed, because both texts differ in nothing but the names of tables. A text whose conditions are moved is an
// exception: PostgreSQL then reads another operand of a parameter first, and reports another mistake. Sizes of tables
// count hidden rows, so they decide nothing for such a text.
func (v *leakChecker) checkCost(tree *sqltext.ParseResult) {
	switch {
	case v.reason != "" || v.mode == AlwaysSigned:
	case v.belowFence == nil && v.rowsVisited(tree, v.leaky) < minRowsForSignedPath:
		v.reject("it reads few rows, which row security does as fast")
	case !v.indexSearch && v.countHelperRules() > maxRulesForSignedPath: // a search needs its index
		v.reject("it reads many tables whose rules look into others")
	case !v.leaky && !slices.ContainsFunc(v.walker.references,
		func(ref *reference) bool { return ref.fragment.hasSignedView && !ref.fragment.materialized }):
		v.reject("its rule is materialized, and row security compares the stored answers")
	}
}

// countHelperRules is how many of the tables have a rule that reads helper tables, for which row security builds sets.
func (v *leakChecker) countHelperRules() int {
	n := 0
	for _, ref := range v.walker.references {
		if len(ref.fragment.hashSets) > 0 {
			n++
		}
	}
	return n
}

// checkRelations wants every table to have a signed view or to show all rows, and at least one to have a signed view.
func (v *leakChecker) checkRelations() {
	signedViews := 0
	for _, ref := range v.walker.references {
		_, listed := v.pol.Table(ref.name)
		switch {
		// a catalog, a view without a signed copy, a partition
		case ref.fragment == nil || !listed && !ref.fragment.hasSignedView:
			v.reject("it reads %s", ref.name.Name)
		case ref.keyLookup != nil:
			v.reject("%s has columns by key", ref.name.Name)
		case ref.notInjectedBecause != mayInject:
			v.reject("%s: %s", ref.name.Name, ref.notInjectedBecause)
		case ref.fragment.hasSignedView:
			signedViews++
		case v.walker.readsWaitingColumn(ref): // signed views have none of these columns
			v.reject("%s has columns that wait for pgconsent migrate", ref.name.Name)
		case !ref.fragment.showsAllRows:
			v.reject("%s has no signed view", ref.name.Name)
		}
		v.references[ref.rangeVar] = ref
	}
	if signedViews == 0 {
		v.reject("it reads no table that rows are hidden in")
	}
}

// query checks a SELECT and returns its columns. Its expressions see at.scope around their own.
func (v *leakChecker) query(s *sqltext.SelectStmt, at checkContext, top bool) []leakColumn {
	if v.reason != "" || s == nil {
		v.reject("a SELECT of another kind")
		return nil
	}
	depth := len(v.ctes)
	defer func() { v.ctes = v.ctes[:depth] }()
	v.with(s.WithClause, at)
	switch {
	case s.IntoClause != nil, len(s.LockingClause) > 0, len(s.WindowClause) > 0 && !top, len(s.ValuesLists) > 0:
		v.reject("INTO, a locking clause, WINDOW or VALUES")
	case s.LimitOption != sqltext.LIMIT_OPTION_DEFAULT && s.LimitOption != sqltext.LIMIT_OPTION_COUNT:
		v.reject("WITH TIES")
	}
	v.limit(s.LimitCount, top)
	v.limit(s.LimitOffset, top)
	if v.reason != "" {
		return nil
	}
	if s.Op != sqltext.SETOP_NONE {
		return v.setOperation(s, at)
	}
	own := checkContext{scope: &leakScope{parent: at.scope}, mayNotRun: at.mayNotRun}
	in := at
	// LIMIT may leave rows uncomputed
	in.mayNotRun = at.mayNotRun || len(s.FromClause) > 1 || hasSubLink(s) || s.LimitCount != nil
	for _, n := range s.FromClause {
		own.scope.items = append(own.scope.items, v.from(n, in)...)
	}
	v.condition(s.WhereClause, own)
	grouped := own
	grouped.aggregateAllowed = true
	// a plain DISTINCT sorts by all outputs
	grouped.isOutput = top && !v.isView && (len(s.DistinctClause) == 0 || s.DistinctClause[0].GetNode() != nil)
	return v.results(s, own, grouped)
}

// results checks what a SELECT computes of the rows that meet its conditions, and returns its columns. own is the
// context of keys, grouped that of expressions that may hold aggregates.
func (v *leakChecker) results(s *sqltext.SelectStmt, own, grouped checkContext) []leakColumn {
	for _, n := range s.WindowClause {
		w := n.GetWindowDef()
		v.window(w, grouped, "WINDOW")
		v.orderedWindows[w.GetName()] = v.hasOrder(w)
	}
	columns := v.targets(s.TargetList, grouped)
	v.having(s.HavingClause, grouped)
	for _, n := range s.GroupClause {
		v.groupOrSortKey(n, own, columns, s.TargetList)
	}
	for _, n := range s.SortClause {
		key := n.GetSortBy()
		if key == nil || len(key.UseOp) > 0 {
			v.reject("ORDER BY ... USING")
			return nil
		}
		v.groupOrSortKey(key.Node, grouped, columns, s.TargetList)
	}
	for i, n := range s.DistinctClause {
		if i == 0 && (n == nil || n.Node == nil) { // a plain DISTINCT
			if !own.aboveFence {
				v.checkSortable(columns, "DISTINCT")
			}
			continue
		}
		v.groupOrSortKey(n, own, columns, s.TargetList)
	}
	if v.reason != "" {
		return nil
	}
	return columns
}

func (v *leakChecker) checkSortable(columns []leakColumn, what string) {
	for _, c := range columns {
		if !isSortable(c.kind) {
			v.reject("%s over column %q, of a type that is not leak-safe", what, c.name)
		}
	}
}

func (v *leakChecker) with(c *sqltext.WithClause, at checkContext) {
	if c == nil || v.reason != "" {
		return
	}
	if c.Recursive {
		v.reject("WITH RECURSIVE")
		return
	}
	frame := map[string]leakQuery{}
	v.ctes = append(v.ctes, frame)
	for _, n := range c.Ctes {
		cte := n.GetCommonTableExpr()
		if cte.GetSearchClause() != nil || cte.GetCycleClause() != nil {
			v.reject("SEARCH or CYCLE")
			return
		}
		before := v.sumMayOverflow
		v.sumMayOverflow = false
		// the statement may name it where it does not run to its end
		columns := v.query(cte.GetCtequery().GetSelectStmt(), checkContext{scope: at.scope}, false)
		frame[cte.GetCtename()] = leakQuery{v.renameColumns(columns, cte.GetAliascolnames()), v.sumMayOverflow}
		v.sumMayOverflow = before
	}
}

// renameColumns gives columns the names of an alias.
func (v *leakChecker) renameColumns(columns []leakColumn, names []*sqltext.Node) []leakColumn {
	if len(names) > len(columns) {
		v.reject("an alias with more names than columns")
		return nil
	}
	out := slices.Clone(columns)
	for i, n := range names {
		out[i].name = n.GetString_().GetSval()
	}
	return out
}

// limit checks LIMIT and OFFSET. They fail for negative numbers when PostgreSQL reaches them. Hidden rows may decide
// whether it does, except at the top. So elsewhere the proxy checks the value of a parameter.
func (v *leakChecker) limit(n *sqltext.Node, top bool) {
	if n == nil || v.reason != "" {
		return
	}
	p := n.GetParamRef()
	if c := n.GetTypeCast(); c != nil && c.Arg.GetParamRef() != nil { // $1::integer
		if p = c.Arg.GetParamRef(); v.cast(c, checkContext{}).kind != kindInt {
			v.reject("LIMIT or OFFSET of an expression")
		}
	} else if p != nil {
		v.useParam(p.Number, kindInt)
	}
	if p != nil {
		if !top {
			v.paramForms[p.Number] |= verdict.NonNegative
		}
		return
	}
	c := n.GetAConst()
	if c == nil || !c.Isnull && (c.GetIval() == nil || c.GetIval().GetIval() < 0) {
		v.reject("LIMIT or OFFSET of an expression")
	}
}

func (v *leakChecker) setOperation(s *sqltext.SelectStmt, at checkContext) []leakColumn {
	// one half may find nothing to intersect with
	at.mayNotRun = at.mayNotRun || s.Op != sqltext.SETOP_UNION || s.LimitCount != nil
	left, right := v.query(s.Larg, at, false), v.query(s.Rarg, at, false)
	if v.reason != "" {
		return nil
	}
	if len(left) != len(right) {
		v.reject("a set operation of different columns")
		return nil
	}
	for i := range left {
		if left[i].kind != right[i].kind || !isSortable(left[i].kind) {
			v.reject("a set operation over columns of different types, or of types that are not leak-safe")
			return nil
		}
		left[i].fewDigits = left[i].fewDigits && right[i].fewDigits
	}
	for _, n := range s.SortClause {
		v.groupOrSortKey(n.GetSortBy().GetNode(), checkContext{scope: &leakScope{}}, left, nil)
	}
	return left
}

// from checks an item of FROM. A SELECT in FROM does not see the items outside.
func (v *leakChecker) from(n *sqltext.Node, at checkContext) []*leakItem {
	if v.reason != "" {
		return nil
	}
	at.mayNotRun = at.mayNotRun || n.GetJoinExpr() != nil
	switch n := n.GetNode().(type) {
	case *sqltext.Node_RangeVar:
		return v.table(n.RangeVar, at)
	case *sqltext.Node_RangeSubselect:
		if n.RangeSubselect.Lateral || n.RangeSubselect.Alias == nil {
			v.reject("LATERAL, or a sub-select without alias")
			return nil
		}
		columns := v.query(n.RangeSubselect.GetSubquery().GetSelectStmt(), at, false)
		return []*leakItem{{name: n.RangeSubselect.Alias.Aliasname,
			columns: v.renameColumns(columns, n.RangeSubselect.Alias.Colnames)}}
	case *sqltext.Node_JoinExpr:
		return v.join(n.JoinExpr, at)
	case *sqltext.Node_RangeFunction:
		return v.textSearchItem(n.RangeFunction, at)
	default:
		v.reject("FROM with VALUES")
		return nil
	}
}

// textSearchItem checks a function in FROM: one that parses a text search, and gives one row of one column, which has
// the name of the item.
func (v *leakChecker) textSearchItem(f *sqltext.RangeFunction, at checkContext) []*leakItem {
	var call *sqltext.FuncCall
	if len(f.Functions) == 1 {
		call = f.Functions[0].GetList().GetItems()[0].GetFuncCall()
	}
	if call == nil || f.IsRowsfrom || f.Lateral || f.Ordinality || len(f.Coldeflist) > 0 ||
		len(f.GetAlias().GetColnames()) > 1 {
		v.reject("FROM with a function")
		return nil
	}
	found := v.call(call, checkContext{mayNotRun: at.mayNotRun})
	if v.reason == "" && found.kind != kindTSQuery {
		v.reject("FROM with a function that reads no text search")
	}
	name := lastName(call.Funcname)
	if a := f.GetAlias(); a != nil {
		name = a.Aliasname
	}
	return []*leakItem{{name: name, columns: v.renameColumns([]leakColumn{{name: name, kind: kindTSQuery}},
		f.GetAlias().GetColnames())}}
}

func (v *leakChecker) table(rv *sqltext.RangeVar, at checkContext) []*leakItem {
	name := rv.GetRelname()
	if a := rv.GetAlias(); a != nil {
		name = a.Aliasname
	}
	if ref := v.references[rv]; ref != nil {
		item := &leakItem{name: name, table: ref.relation}
		for i := range ref.relation.Columns {
			c := &ref.relation.Columns[i]
			item.columns = append(item.columns,
				leakColumn{c.Name, kindOf(c, v.snap), c.Virtual ||
					ref.fragment.isPlain != nil &&
						!ref.fragment.isPlain(c.Name), strings.HasPrefix(c.Type, "numeric("), false, v.snap.BaseType(c.TypeOID)})
		}
		return []*leakItem{item}
	}
	for i := len(v.ctes) - 1; i >= 0; i-- {
		if query, ok := v.ctes[i][rv.GetRelname()]; ok && rv.GetSchemaname() == "" {
			if query.sumMayOverflow {
				v.noteOverflow(rv.GetRelname(), at)
			}
			return []*leakItem{{name: name, columns: v.renameColumns(query.columns, rv.GetAlias().GetColnames())}}
		}
	}
	v.reject("an item of FROM that is not plain to see")
	return nil
}

func (v *leakChecker) join(j *sqltext.JoinExpr, at checkContext) []*leakItem {
	if j.IsNatural || j.Alias != nil || j.JoinUsingAlias != nil {
		v.reject("NATURAL JOIN, or the alias of a join")
		return nil
	}
	left, right := v.from(j.Larg, at), v.from(j.Rarg, at)
	items := append(slices.Clone(left), right...)
	for _, n := range j.UsingClause {
		name := n.GetString_().GetSval()
		a, b := v.column(&leakScope{items: left}, name), v.column(&leakScope{items: right}, name)
		v.lookUp("operator", "=", []value{{kind: a.kind}, {kind: b.kind}})
		if a.kind != b.kind {
			v.reject("USING over different types")
		}
		for _, item := range right {
			if item.mergedColumns == nil {
				item.mergedColumns = map[string]bool{}
			}
			item.mergedColumns[name] = true
		}
	}
	v.condition(j.Quals, checkContext{scope: &leakScope{items: items, parent: at.scope}, mayNotRun: at.mayNotRun})
	return items
}

// targets checks what a SELECT returns.
func (v *leakChecker) targets(list []*sqltext.Node, at checkContext) []leakColumn {
	var out []leakColumn
	for _, n := range list {
		if v.reason != "" {
			return nil
		}
		t := n.GetResTarget()
		if isStar(t.GetVal()) {
			out = append(out, v.star(t.GetVal().GetColumnRef().GetFields(), at.scope)...)
			continue
		}
		e := v.outputExpr(t.GetVal(), at)
		out = append(out, leakColumn{name: columnName(t), kind: v.resultKind(e),
			fewDigits:     v.hasFewDigits(t.GetVal(), at.scope),
			afterGrouping: e.notOnList && isAfterGrouping(t.GetVal())})
	}
	return out
}

// resultKind is the kind of an output column.
func (v *leakChecker) resultKind(e value) kind {
	switch {
	case e.kind == kindString:
		return kindText
	case e.kind == kindParam:
		v.useParam(e.param, kindText)
		return kindText
	case e.kind == kindSpan:
		return kindOpaque
	}
	return e.kind.columnKind()
}

// maxStarCopies bounds what the stars of one statement may copy: WITH queries over WITH queries double it.
const maxStarCopies = 10_000

func (v *leakChecker) star(fields []*sqltext.Node, scope *leakScope) []leakColumn {
	var out []leakColumn
	found := len(fields) == 1
	for _, item := range scope.items {
		if len(item.mergedColumns) > 0 || len(fields) > 2 {
			v.reject("* over a join with USING")
			return nil
		}
		if len(fields) == 1 || item.name == fields[0].GetString_().GetSval() {
			found = true
			if v.starColumnCount += len(item.columns); v.starColumnCount > maxStarCopies {
				v.reject("its stars stand for very many columns")
				return nil
			}
			for _, c := range item.columns {
				out = append(out, leakColumn{name: c.name, kind: v.readKind(c), fewDigits: c.fewDigits})
			}
		}
	}
	if !found { // it means an item of an outer query
		v.reject("* of what is not plain to see")
	}
	return out
}

// groupOrSortKey checks a key of GROUP BY, ORDER BY or DISTINCT ON: a result column by name or number, or an
// expression.
func (v *leakChecker) groupOrSortKey(n *sqltext.Node, at checkContext, columns []leakColumn, targets []*sqltext.Node) {
	if v.reason != "" {
		return
	}
	if c := n.GetAConst(); c != nil {
		i := int(c.GetIval().GetIval())
		if c.GetIval() == nil || i < 1 || i > len(columns) ||
			!isSortable(columns[i-1].kind) && !columns[i-1].afterGrouping && !at.aboveFence {
			v.reject("a key that is not a column of the result")
		}
		return
	}
	// The name may be that of a result column, of a table's column, or of both: each that exists must be allowed.
	if fields := n.GetColumnRef().GetFields(); len(fields) == 1 {
		name, found := fields[0].GetString_().GetSval(), false
		for _, c := range columns {
			if c.name == "" && !at.aboveFence {
				v.reject("a key that may be a column of the result, whose name is not plain to see")
			}
			if c.name == name {
				if found = true; !c.afterGrouping && !at.aboveFence {
					v.checkSortable([]leakColumn{c}, "a key")
				}
			}
		}
		if found && (len(targets) == 0 || !v.hasColumn(at.scope, name)) {
			return
		}
	}
	v.groupingKey(n, at)
}

func (v *leakChecker) hasColumn(s *leakScope, name string) bool {
	for ; s != nil; s = s.parent {
		for _, item := range s.items {
			if slices.ContainsFunc(item.columns, func(c leakColumn) bool { return c.name == name }) {
				return true
			}
		}
	}
	return false
}

// readKind is the kind of a column that the statement reads.
func (v *leakChecker) readKind(c leakColumn) kind {
	if c.computed {
		v.reject("column %q is computed as it is read", c.name)
	}
	return c.kind
}

// column finds an unqualified column.
func (v *leakChecker) column(s *leakScope, name string) leakColumn {
	for ; s != nil; s = s.parent {
		found, n := leakColumn{kind: kindOpaque}, 0
		for _, item := range s.items {
			for _, c := range item.columns {
				if c.name == name && !item.mergedColumns[name] {
					v.readKind(c)
					found, n = c, n+1
				}
			}
		}
		switch {
		case n > 1:
			v.reject("column %q is ambiguous", name)
		// the name may mean that column, and no outer one
		case n == 0 && slices.ContainsFunc(s.items, (*leakItem).hasUnknownName):
			v.reject("%q may be a column whose name is not plain to see", name)
		}
		if n > 0 {
			// USING gives both one type
			if slices.ContainsFunc(s.items, func(i *leakItem) bool { return i.mergedColumns[name] }) {
				found.oid = 0
			}
			return found
		}
	}
	v.reject("%q is not plainly a column", name)
	return leakColumn{kind: kindOpaque}
}

// columnOf finds item.column.
func (v *leakChecker) columnOf(s *leakScope, item, name string) leakColumn {
	for ; s != nil; s = s.parent {
		var found []leakColumn
		named := 0
		for _, i := range s.items {
			if i.name != item {
				continue
			}
			named++
			for _, c := range i.columns {
				if c.name == name {
					v.readKind(c)
					found = append(found, c)
				}
			}
		}
		if named == 1 && len(found) == 1 {
			return found[0]
		}
		if named > 0 {
			break
		}
	}
	v.reject("%q.%q is not plainly a column", item, name)
	return leakColumn{kind: kindOpaque}
}

// useSignedViews makes the edits of a leak-safe text: each protected table becomes its signed view, and types get their
// schema.
func (v *leakChecker) useSignedViews() {
	for _, ref := range v.walker.references {
		if ref.fragment.showsAllRows {
			rv, name := ref.rangeVar, ref.name
			v.replace(ref.start, ref.end, name.SQL(), func() { rv.Schemaname, rv.Relname = name.Schema, name.Name })
			continue
		}
		v.substituteView(ref, predicate.SignedView(ref.name))
	}
	v.qualifyTypes()
}

// qualifyTypes makes the edits of the types that get their schema.
func (v *leakChecker) qualifyTypes() {
	for _, t := range v.typesToQualify {
		token, name := v.source.Tokens[v.source.At(t.Location)], catalog.Name{
			Schema: "pg_catalog", Name: t.Names[0].GetString_().GetSval()}
		if enum := v.enum("", name.Name); enum != nil {
			name = enum.Name
		}
		v.replace(token.Start, token.End, name.SQL(), func() {
			t.Names = []*sqltext.Node{stringNode(name.Schema), stringNode(name.Name)}
		})
	}
}

// namesOnlySignedViews tells whether a tree names only signed views, tables that show all rows, and its own WITH
// queries.
func (w *walker) namesOnlySignedViews(tree *sqltext.ParseResult) bool {
	allowed := map[catalog.Name]bool{}
	for _, t := range w.pol.Tables() {
		if f := w.fragments[t.Relation.Name]; f.showsAllRows {
			allowed[t.Relation.Name] = true
		} else if f.hasSignedView {
			allowed[predicate.SignedView(t.Relation.Name)] = true
		}
	}
	for _, view := range w.pol.Views() {
		if f := w.fragments[view.Relation.Name]; f != nil && f.hasSignedView {
			allowed[predicate.SignedView(view.Relation.Name)] = true
		}
	}
	only, signed := true, false
	relations, queries := sqltext.Relations(tree)
	for _, rv := range relations {
		name := catalog.Name{Schema: rv.GetSchemaname(), Name: rv.GetRelname()}
		switch {
		case name.Schema == "" && queries[name.Name]: // relations go out with their schema
		case !allowed[name]:
			only = false
		default:
			signed = signed || name.Schema == predicate.SignedSchema
		}
	}
	return only && signed
}

var errNotSignedView = errors.New("rewrite: a text of the signed path names a relation that it must not")

// takeSignedPath sends the text on the signed path if it may take it. fence tells whether some conditions may stay
// above OFFSET 0, or a search may find rows by key.
func (w *walker) takeSignedPath(tree *sqltext.ParseResult, result *Result, found bool) bool {
	if !w.mode.UsesSignedPath() {
		return false
	}
	if w.valuesRunUserCode() { // it would see a signed text
		result.RowSecurityReason = "values that functions of others compare or convert"
		return false
	}
	v := w.checkLeaks(tree, (*leakChecker).checkSelect)
	reason, whole := v.reason, v.leakSafe
	if !v.leakSafe && found && w.readsOneTable(tree) {
		if behind := w.checkLeaks(tree, (*leakChecker).checkBelowFence); behind.leakSafe {
			v, result.AboveReason = behind, reason
		}
	}
	result.ExpectsForms = v.dependsOnForms
	// whichever path is faster: that depends on the sizes of tables
	if found && v.belowFence == nil && len(tree.Stmts) == 1 && !w.runsLater && signable(w.source) {
		w.useKeySearches(tree, result, whole)
	}
	v.checkCost(tree)
	if v.reason != "" {
		result.RowSecurityReason, result.AboveReason = v.reason, ""
		return false
	}
	v.useSignedViews()
	w.belowFence = v.belowFence
	w.needsSignature = true
	result.Path, result.paramKinds, result.paramCasts, result.Forms = verdict.PathSigned, v.paramKinds, v.paramCasts,
		v.paramForms
	return true
}

// MayDeclare tells whether the client may declare the parameters of a text on the signed path as these types, by OID; 0
// leaves one to the server. PostgreSQL would convert a parameter of another type than the leak check assumed, which can
// fail.
func (r *Result) MayDeclare(types []uint32) bool {
	for i, oid := range types {
		exact, is := r.paramCasts[int32(i+1)]
		if k, used := r.paramKinds[int32(i+1)]; oid != 0 && used && kindOfOID(oid) != k && !(is && exact == oid) {
			return false
		}
		if oid != 0 && is && exact != oid && kindOfOID(oid) != kindText {
			return false
		}
	}
	return true
}
