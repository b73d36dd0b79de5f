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

// leakChecker decides whether a text that the walker has allowed may take the signed path, where PostgreSQL may
// evaluate the text's expressions on hidden rows. reason is the first reason against the signed path. The checker
// rejects expressions that it does not know, which costs speed and nothing else.
type leakChecker struct {
	*walker
	reason         string
	references     map[*sqltext.RangeVar]*reference
	ctes           []map[string]leakQuery
	sumMayOverflow bool // a sum that PostgreSQL computes in any case may overflow
	// the types before whose names the rewriter must write the schema on the signed path
	typesToQualify []*sqltext.TypeName
	// the kinds of type that a client must declare for the parameters, if it declares any
	paramKinds map[int32]kind
	// the forms that the values of parameters must have: the proxy checks them at Bind
	paramForms     map[int32]verdict.ValueForm
	dependsOnForms bool // the text is leak-safe only if the values of parameters have these forms
	// the types to which the text casts parameters; if the client declares a type for such a parameter, it must be this
	// one
	paramCasts map[int32]uint32
	// for each parameter, the OIDs of the types of the operands beside it, from which PostgreSQL may infer the parameter's
	// type; 0: the type is not known
	paramNeighbours map[int32][]uint32
	outputCount     int             // the number of expressions that checkOutput has checked by their parts
	orderedWindows  map[string]bool // the names of windows with ORDER BY
	// a condition has an operator by which an index can find rows; operators of enums do not count
	indexSearch bool
	// A condition has an operator, a function or a cast of a column that PostgreSQL does not consider leak-proof. Under
	// row security PostgreSQL evaluates such a condition after the rule, and uses no index for it.
	leaky    bool
	leakSafe bool // the text may take the signed path, whether or not that path is faster
	// tells for each condition of the SELECT whether the rewriter puts it below OFFSET 0: see leak_check_search.go
	belowFence []bool
}

// leakColumn is what the leak check knows about a column of a FROM item.
type leakColumn struct {
	name string
	kind kind
	// PostgreSQL computes the column when a statement reads it, because the column has a mask or an expression of the
	// owner. The expression may fail on a hidden row.
	computed      bool
	fewDigits     bool   // the column's numbers have so few digits that no sum of them overflows
	afterGrouping bool   // PostgreSQL computes the column after the groups or windows of the outermost SELECT
	oid           uint32 // the OID of a table column's type
}

// leakItem is what the leak check knows about an item of FROM.
type leakItem struct {
	name    string
	columns []leakColumn
	table   *catalog.Relation // the table that has the columns; nil: the item is a query
	// the columns that USING has merged with those of another item; without a qualifier, their names mean the other item's
	// column
	mergedColumns map[string]bool
}

// hasUnknownName tells whether the item has a column whose name the text does not show.
func (i *leakItem) hasUnknownName() bool {
	return slices.ContainsFunc(i.columns, func(c leakColumn) bool { return c.name == "" })
}

// leakQuery is what the leak check knows about a WITH query.
type leakQuery struct {
	columns        []leakColumn
	sumMayOverflow bool // a sum in the query may overflow
}

// leakScope holds the items of FROM of one query. parent is the scope of the query around it.
type leakScope struct {
	items  []*leakItem
	parent *leakScope
}

// checkContext says in which place of a statement an expression stands.
type checkContext struct {
	scope            *leakScope
	aggregateAllowed bool // aggregates are allowed at this place
	// PostgreSQL computes the expression only for rows that have met all conditions: see leak_check_output.go
	isOutput bool
	// the expression is a sort key or a group key above OFFSET 0. PostgreSQL computes it only for rows that have met all
	// conditions below OFFSET 0: see leak_check_search.go
	aboveFence bool
	// PostgreSQL may not run the query to its end: hidden rows of other tables may decide whether it runs, or for which
	// rows
	mayNotRun bool
}

// minRowsForSignedPath is how many rows a statement must visit before the signed path is faster. For fewer rows, row
// policies are faster: they need no signature, and check the rows one by one.
const minRowsForSignedPath = 2000

// maxRulesForSignedPath bounds how many tables a statement may join on the signed path if their rules read lookup
// tables. Each such table adds joins. With many joins the planner expects almost no rows, and then scans all rows of a
// rule's lookup for each row of the table. Under row security PostgreSQL builds a hash set once for each rule.
const maxRulesForSignedPath = 2

// reject records the reason why the text may not take the signed path, unless there is one already. It returns false.
func (v *leakChecker) reject(format string, args ...any) bool {
	if v.reason == "" {
		v.reason = fmt.Sprintf(format, args...)
	}
	return false
}

func (w *walker) newLeakChecker() *leakChecker {
	return &leakChecker{walker: w, references: map[*sqltext.RangeVar]*reference{}, paramKinds: map[int32]kind{},
		paramForms: map[int32]verdict.ValueForm{}, paramCasts: map[int32]uint32{}, paramNeighbours: map[int32][]uint32{},
		orderedWindows: map[string]bool{}}
}

// checkLeaks checks a text by the function by and returns the leak checker. Its reason is empty if the text may take
// the signed path.
func (w *walker) checkLeaks(tree *sqltext.ParseResult, by func(*leakChecker, *sqltext.SelectStmt)) *leakChecker {
	v := w.newLeakChecker()
	switch {
	case len(tree.Stmts) != 1:
		v.reject("it is not exactly one statement")
	case tree.Stmts[0].GetStmt().GetSelectStmt() == nil:
		v.reject("only SELECT takes the signed path")
	case !isSignable(w.source):
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

// checkNarrowParams rejects a text that casts a parameter to a narrow type, if an operand beside the parameter has a
// wider type. PostgreSQL gives an undeclared parameter the type of the first operand beside it. It would then convert
// the value to the narrow type for each row, and the conversion may fail.
func (v *leakChecker) checkNarrowParams() {
	for number, oid := range v.paramCasts {
		fit := map[uint32][]uint32{21: {21}, 23: {21, 23}, 700: {700}}[oid]
		if fit != nil && slices.ContainsFunc(v.paramNeighbours[number],
			func(neighbourOID uint32) bool { return !slices.Contains(fit, neighbourOID) }) {
			v.reject("parameter $%d is cast to a type that it may be too large for", number)
		}
	}
}

// checkSelect checks every expression of a SELECT.
func (v *leakChecker) checkSelect(s *sqltext.SelectStmt) {
	// the query that reads the view may stop before it has read all rows of the view
	v.checkQuery(s, checkContext{mayNotRun: v.isView}, true)
}

// checkCost rejects statements that are as fast under row security as on the signed path. The two texts differ only in
// the names of tables, so this decision affects nothing but speed. An exception is a text whose conditions the rewriter
// moves below OFFSET 0. In such a text PostgreSQL reads another operand beside a parameter first, and may report
// another error. So the sizes of tables, which count hidden rows, decide nothing for it.
func (v *leakChecker) checkCost(tree *sqltext.ParseResult) {
	switch {
	case v.reason != "" || v.mode == AlwaysSignedMode:
	case v.belowFence == nil && v.estimateVisitedRows(tree, v.leaky) < minRowsForSignedPath:
		v.reject("it reads few rows, which row security does as fast")
	// PostgreSQL uses an index for the search on the signed path only
	case !v.indexSearch && v.countLookupRules() > maxRulesForSignedPath:
		v.reject("it reads many tables whose rules look into others")
	case !v.leaky && !slices.ContainsFunc(v.walker.references,
		func(ref *reference) bool { return ref.fragment.hasSignedView && !ref.fragment.materialized }):
		v.reject("its rule is materialized, and row security compares the stored answers")
	}
}

// countLookupRules returns how many references read a table whose rule reads lookup tables. Row security builds hash
// sets for such rules.
func (v *leakChecker) countLookupRules() int {
	n := 0
	for _, ref := range v.walker.references {
		if len(ref.fragment.hashSets) > 0 {
			n++
		}
	}
	return n
}

// checkRelations rejects a text unless each table has a signed view or shows agents all its rows, and at least one has
// a signed view.
func (v *leakChecker) checkRelations() {
	signedViews := 0
	for _, ref := range v.walker.references {
		_, isListed := v.pol.Table(ref.name)
		switch {
		// the relation is a catalog, a view without a signed copy, or a partition
		case ref.fragment == nil || !isListed && !ref.fragment.hasSignedView:
			v.reject("it reads %s", ref.name.Name)
		case ref.keyLookup != nil:
			v.reject("%s has columns by key", ref.name.Name)
		case ref.notInjectedBecause != mayInject:
			v.reject("%s: %s", ref.name.Name, ref.notInjectedBecause)
		case ref.fragment.hasSignedView:
			signedViews++
		case v.walker.readsWaitingColumn(ref): // signed views lack the columns that pgconsent migrate has not added yet
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

// checkQuery checks a SELECT and returns its columns. Its expressions can also name the items of context.scope.
func (v *leakChecker) checkQuery(s *sqltext.SelectStmt, context checkContext, isTop bool) []leakColumn {
	if v.reason != "" || s == nil {
		v.reject("a SELECT of another kind")
		return nil
	}
	depth := len(v.ctes)
	defer func() { v.ctes = v.ctes[:depth] }()
	v.checkWith(s.WithClause, context)
	switch {
	case s.IntoClause != nil, len(s.LockingClause) > 0, len(s.WindowClause) > 0 && !isTop, len(s.ValuesLists) > 0:
		v.reject("INTO, a locking clause, WINDOW or VALUES")
	case s.LimitOption != sqltext.LIMIT_OPTION_DEFAULT && s.LimitOption != sqltext.LIMIT_OPTION_COUNT:
		v.reject("WITH TIES")
	}
	v.checkLimit(s.LimitCount, isTop)
	v.checkLimit(s.LimitOffset, isTop)
	if v.reason != "" {
		return nil
	}
	if s.Op != sqltext.SETOP_NONE {
		return v.checkSetOperation(s, context)
	}
	ownContext := checkContext{scope: &leakScope{parent: context.scope}, mayNotRun: context.mayNotRun}
	in := context
	// because of LIMIT, PostgreSQL may stop before it has computed all rows
	in.mayNotRun = context.mayNotRun || len(s.FromClause) > 1 || hasSubLink(s) || s.LimitCount != nil
	for _, n := range s.FromClause {
		ownContext.scope.items = append(ownContext.scope.items, v.checkFrom(n, in)...)
	}
	v.checkCondition(s.WhereClause, ownContext)
	grouped := ownContext
	grouped.aggregateAllowed = true
	// a plain DISTINCT sorts by all outputs, so they are sort keys
	grouped.isOutput = isTop && !v.isView && (len(s.DistinctClause) == 0 || s.DistinctClause[0].GetNode() != nil)
	return v.checkResults(s, ownContext, grouped)
}

// checkResults checks the expressions that a SELECT computes for the rows that meet its conditions, and returns its
// columns. ownContext is for group and sort keys, grouped for expressions that may contain aggregates.
func (v *leakChecker) checkResults(s *sqltext.SelectStmt, ownContext, grouped checkContext) []leakColumn {
	for _, n := range s.WindowClause {
		w := n.GetWindowDef()
		v.checkWindow(w, grouped, "WINDOW")
		v.orderedWindows[w.GetName()] = v.hasOrderBy(w)
	}
	columns := v.checkTargets(s.TargetList, grouped)
	v.checkHaving(s.HavingClause, grouped)
	for _, n := range s.GroupClause {
		v.checkGroupOrSortKey(n, ownContext, columns, s.TargetList)
	}
	for _, n := range s.SortClause {
		key := n.GetSortBy()
		if key == nil || len(key.UseOp) > 0 {
			v.reject("ORDER BY ... USING")
			return nil
		}
		v.checkGroupOrSortKey(key.Node, grouped, columns, s.TargetList)
	}
	for i, n := range s.DistinctClause {
		if i == 0 && (n == nil || n.Node == nil) { // the list is that of a plain DISTINCT
			if !ownContext.aboveFence {
				v.checkSortable(columns, "DISTINCT")
			}
			continue
		}
		v.checkGroupOrSortKey(n, ownContext, columns, s.TargetList)
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

// checkWith checks the queries of a WITH clause.
func (v *leakChecker) checkWith(c *sqltext.WithClause, context checkContext) {
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
		mayOverflowBefore := v.sumMayOverflow
		v.sumMayOverflow = false
		// the statement may name the WITH query where PostgreSQL does not run it to its end
		columns := v.checkQuery(cte.GetCtequery().GetSelectStmt(), checkContext{scope: context.scope}, false)
		frame[cte.GetCtename()] = leakQuery{v.renameColumns(columns, cte.GetAliascolnames()), v.sumMayOverflow}
		v.sumMayOverflow = mayOverflowBefore
	}
}

// renameColumns gives the columns the names in an alias such as AS x (a, b).
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

// checkLimit checks LIMIT and OFFSET. A negative number is an error when PostgreSQL reaches it, and hidden rows may
// decide whether it does, except in the outermost SELECT. So in other queries the proxy checks the value of a
// parameter.
func (v *leakChecker) checkLimit(n *sqltext.Node, isTop bool) {
	if n == nil || v.reason != "" {
		return
	}
	p := n.GetParamRef()
	// the limit is a parameter with a cast, such as $1::integer
	if c := n.GetTypeCast(); c != nil && c.Arg.GetParamRef() != nil {
		if p = c.Arg.GetParamRef(); v.checkCast(c, checkContext{}).kind != kindInt {
			v.reject("LIMIT or OFFSET of an expression")
		}
	} else if p != nil {
		v.useParam(p.Number, kindInt)
	}
	if p != nil {
		if !isTop {
			v.paramForms[p.Number] |= verdict.NonNegative
		}
		return
	}
	c := n.GetAConst()
	if c == nil || !c.Isnull && (c.GetIval() == nil || c.GetIval().GetIval() < 0) {
		v.reject("LIMIT or OFFSET of an expression")
	}
}

func (v *leakChecker) checkSetOperation(s *sqltext.SelectStmt, context checkContext) []leakColumn {
	// for INTERSECT and EXCEPT, PostgreSQL may not read one side to its end
	context.mayNotRun = context.mayNotRun || s.Op != sqltext.SETOP_UNION || s.LimitCount != nil
	left, right := v.checkQuery(s.Larg, context, false), v.checkQuery(s.Rarg, context, false)
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
		v.checkGroupOrSortKey(n.GetSortBy().GetNode(), checkContext{scope: &leakScope{}}, left, nil)
	}
	return left
}

// checkFrom checks an item of FROM. A sub-select in FROM cannot name the items beside it: LATERAL is rejected.
func (v *leakChecker) checkFrom(n *sqltext.Node, context checkContext) []*leakItem {
	if v.reason != "" {
		return nil
	}
	context.mayNotRun = context.mayNotRun || n.GetJoinExpr() != nil
	switch n := n.GetNode().(type) {
	case *sqltext.Node_RangeVar:
		return v.checkTable(n.RangeVar, context)
	case *sqltext.Node_RangeSubselect:
		if n.RangeSubselect.Lateral || n.RangeSubselect.Alias == nil {
			v.reject("LATERAL, or a sub-select without alias")
			return nil
		}
		columns := v.checkQuery(n.RangeSubselect.GetSubquery().GetSelectStmt(), context, false)
		return []*leakItem{{name: n.RangeSubselect.Alias.Aliasname,
			columns: v.renameColumns(columns, n.RangeSubselect.Alias.Colnames)}}
	case *sqltext.Node_JoinExpr:
		return v.checkJoin(n.JoinExpr, context)
	case *sqltext.Node_RangeFunction:
		return v.checkTextSearchItem(n.RangeFunction, context)
	default:
		v.reject("FROM with VALUES")
		return nil
	}
}

// checkTextSearchItem checks a function in FROM that parses the query of a text search, such as to_tsquery. It returns
// one row with one column, and the column has the name of the item.
func (v *leakChecker) checkTextSearchItem(f *sqltext.RangeFunction, context checkContext) []*leakItem {
	var call *sqltext.FuncCall
	if len(f.Functions) == 1 {
		call = f.Functions[0].GetList().GetItems()[0].GetFuncCall()
	}
	if call == nil || f.IsRowsfrom || f.Lateral || f.Ordinality || len(f.Coldeflist) > 0 ||
		len(f.GetAlias().GetColnames()) > 1 {
		v.reject("FROM with a function")
		return nil
	}
	found := v.checkCall(call, checkContext{mayNotRun: context.mayNotRun})
	if v.reason == "" && found.kind != kindTSQuery {
		v.reject("FROM with a function that reads no text search")
	}
	name := lastNamePart(call.Funcname)
	if a := f.GetAlias(); a != nil {
		name = a.Aliasname
	}
	return []*leakItem{{name: name, columns: v.renameColumns([]leakColumn{{name: name, kind: kindTSQuery}},
		f.GetAlias().GetColnames())}}
}

// checkTable checks a table, view or WITH query that a FROM clause names.
func (v *leakChecker) checkTable(rv *sqltext.RangeVar, context checkContext) []*leakItem {
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
				v.noteOverflow(rv.GetRelname(), context)
			}
			return []*leakItem{{name: name, columns: v.renameColumns(query.columns, rv.GetAlias().GetColnames())}}
		}
	}
	v.reject("an item of FROM that is not plain to see")
	return nil
}

// checkJoin checks a join.
func (v *leakChecker) checkJoin(j *sqltext.JoinExpr, context checkContext) []*leakItem {
	if j.IsNatural || j.Alias != nil || j.JoinUsingAlias != nil {
		v.reject("NATURAL JOIN, or the alias of a join")
		return nil
	}
	left, right := v.checkFrom(j.Larg, context), v.checkFrom(j.Rarg, context)
	items := append(slices.Clone(left), right...)
	for _, n := range j.UsingClause {
		name := n.GetString_().GetSval()
		a, b := v.findColumn(&leakScope{items: left}, name), v.findColumn(&leakScope{items: right}, name)
		v.lookUpLeakSafe("operator", "=", []value{{kind: a.kind}, {kind: b.kind}})
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
	v.checkCondition(j.Quals, checkContext{scope: &leakScope{items: items, parent: context.scope},
		mayNotRun: context.mayNotRun})
	return items
}

// checkTargets checks the expressions that a SELECT returns.
func (v *leakChecker) checkTargets(list []*sqltext.Node, context checkContext) []leakColumn {
	var out []leakColumn
	for _, n := range list {
		if v.reason != "" {
			return nil
		}
		t := n.GetResTarget()
		if isStar(t.GetVal()) {
			out = append(out, v.expandStar(t.GetVal().GetColumnRef().GetFields(), context.scope)...)
			continue
		}
		e := v.checkOutput(t.GetVal(), context)
		out = append(out, leakColumn{name: columnName(t), kind: v.resultKind(e),
			fewDigits:     v.hasFewDigits(t.GetVal(), context.scope),
			afterGrouping: e.notOnList && isAfterGrouping(t.GetVal())})
	}
	return out
}

// resultKind returns the kind that an expression has as an output column. Constants and parameters without a type
// become texts.
func (v *leakChecker) resultKind(e value) kind {
	switch {
	case e.kind == kindString:
		return kindText
	case e.kind == kindParam:
		v.useParam(e.param, kindText)
		return kindText
	case e.kind == kindInterval:
		return kindOpaque
	}
	return e.kind.columnKind()
}

// maxStarCopies bounds how many columns the stars (*) of one statement may copy. Each WITH query over another could
// double their number.
const maxStarCopies = 10_000

func (v *leakChecker) expandStar(fields []*sqltext.Node, scope *leakScope) []leakColumn {
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
	if !found { // the star means an item of an outer query
		v.reject("* of what is not plain to see")
	}
	return out
}

// checkGroupOrSortKey checks a key of GROUP BY, ORDER BY or DISTINCT ON: the name or number of a result column, or an
// expression.
func (v *leakChecker) checkGroupOrSortKey(n *sqltext.Node, context checkContext, columns []leakColumn,
	targets []*sqltext.Node) {
	if v.reason != "" {
		return
	}
	if c := n.GetAConst(); c != nil {
		i := int(c.GetIval().GetIval())
		if c.GetIval() == nil || i < 1 || i > len(columns) ||
			!isSortable(columns[i-1].kind) && !columns[i-1].afterGrouping && !context.aboveFence {
			v.reject("a key that is not a column of the result")
		}
		return
	}
	// The name may mean a result column, a column of a table, or both. Each of them that exists must be allowed as a key.
	if fields := n.GetColumnRef().GetFields(); len(fields) == 1 {
		name, found := fields[0].GetString_().GetSval(), false
		for _, c := range columns {
			if c.name == "" && !context.aboveFence {
				v.reject("a key that may be a column of the result, whose name is not plain to see")
			}
			if c.name == name {
				if found = true; !c.afterGrouping && !context.aboveFence {
					v.checkSortable([]leakColumn{c}, "a key")
				}
			}
		}
		if found && (len(targets) == 0 || !v.hasColumn(context.scope, name)) {
			return
		}
	}
	v.checkGroupingKey(n, context)
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

// readKind returns the kind of a column that an expression names. It rejects columns that PostgreSQL computes when they
// are read.
func (v *leakChecker) readKind(c leakColumn) kind {
	if c.computed {
		v.reject("column %q is computed as it is read", c.name)
	}
	return c.kind
}

// findColumn returns the column that a name without a qualifier means.
func (v *leakChecker) findColumn(s *leakScope, name string) leakColumn {
	for ; s != nil; s = s.parent {
		column, n := leakColumn{kind: kindOpaque}, 0
		for _, item := range s.items {
			for _, c := range item.columns {
				if c.name == name && !item.mergedColumns[name] {
					v.readKind(c)
					column, n = c, n+1
				}
			}
		}
		switch {
		case n > 1:
			v.reject("column %q is ambiguous", name)
		// the name may mean the unknown column of such an item, and not a column of an outer query
		case n == 0 && slices.ContainsFunc(s.items, (*leakItem).hasUnknownName):
			v.reject("%q may be a column whose name is not plain to see", name)
		}
		if n > 0 {
			// USING may convert one of the merged columns to the type of the other
			if slices.ContainsFunc(s.items, func(i *leakItem) bool { return i.mergedColumns[name] }) {
				column.oid = 0
			}
			return column
		}
	}
	v.reject("%q is not plainly a column", name)
	return leakColumn{kind: kindOpaque}
}

// findColumnOf returns the column that item.column means.
func (v *leakChecker) findColumnOf(s *leakScope, item, name string) leakColumn {
	for ; s != nil; s = s.parent {
		var found []leakColumn
		nameCount := 0
		for _, i := range s.items {
			if i.name != item {
				continue
			}
			nameCount++
			for _, c := range i.columns {
				if c.name == name {
					v.readKind(c)
					found = append(found, c)
				}
			}
		}
		if nameCount == 1 && len(found) == 1 {
			return found[0]
		}
		if nameCount > 0 {
			break
		}
	}
	v.reject("%q.%q is not plainly a column", item, name)
	return leakColumn{kind: kindOpaque}
}

// useSignedViews edits a leak-safe text: it puts a signed view in the place of each protected table, and writes schemas
// before the names of types.
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

// qualifyTypes writes schemas before the names of the types in typesToQualify.
func (v *leakChecker) qualifyTypes() {
	for _, t := range v.typesToQualify {
		token, name := v.source.Tokens[v.source.TokenAt(t.Location)], catalog.Name{
			Schema: "pg_catalog", Name: t.Names[0].GetString_().GetSval()}
		if enum := v.findEnum("", name.Name); enum != nil {
			name = enum.Name
		}
		v.replace(token.Start, token.End, name.SQL(), func() {
			t.Names = []*sqltext.Node{stringNode(name.Schema), stringNode(name.Name)}
		})
	}
}

// namesOnlySignedViews tells whether all relations that a tree names are signed views, tables that show agents all
// rows, or WITH queries of the tree.
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
	relations, queries := sqltext.RangeVars(tree)
	for _, rv := range relations {
		name := catalog.Name{Schema: rv.GetSchemaname(), Name: rv.GetRelname()}
		switch {
		// a name without schema can only be a WITH query, because the rewriter writes relations with their schema
		case name.Schema == "" && queries[name.Name]:
		case !allowed[name]:
			only = false
		default:
			signed = signed || name.Schema == predicate.SignedSchema
		}
	}
	return only && signed
}

var errNotSignedView = errors.New("rewrite: a text of the signed path names a relation that it must not")

// takeSignedPath edits a text for the signed path, if the text may take it, and tells whether it did. found allows two
// more forms: leak-safe conditions below OFFSET 0, and a search that finds rows by key.
func (w *walker) takeSignedPath(tree *sqltext.ParseResult, result *Result, found bool) bool {
	if !w.mode.UsesSignedPath() {
		return false
	}
	if w.valuesRunUserCode() { // functions of the owner would run inside a signed text
		result.RowSecurityReason = "values that functions of others compare or convert"
		return false
	}
	v := w.checkLeaks(tree, (*leakChecker).checkSelect)
	reason, isWholeRow := v.reason, v.leakSafe
	if !v.leakSafe && found && w.readsOneTable(tree) {
		if belowFence := w.checkLeaks(tree, (*leakChecker).checkBelowFence); belowFence.leakSafe {
			v, result.AboveFenceReason = belowFence, reason
		}
	}
	result.ExpectsForms = result.ExpectsForms || v.dependsOnForms
	// whether the search gets this form must not depend on the faster path, because that depends on the sizes of tables
	if found && v.belowFence == nil && len(tree.Stmts) == 1 && !w.runsLater && isSignable(w.source) {
		w.useKeySearches(tree, result, isWholeRow)
	}
	v.checkCost(tree)
	if v.reason != "" {
		result.RowSecurityReason, result.AboveFenceReason = v.reason, ""
		return false
	}
	v.useSignedViews()
	w.belowFence = v.belowFence
	w.needsSignature = true
	result.Path, result.paramKinds, result.paramCasts, result.Forms = verdict.PathSigned, v.paramKinds, v.paramCasts,
		v.paramForms
	return true
}

// MayDeclare tells whether the client may declare these types, given by their OIDs, for the parameters of a statement
// that the rewriter lets read signed views. 0 leaves a type to PostgreSQL. If the client declared another type than the
// leak check assumed, PostgreSQL would convert the parameter, and the conversion may fail.
func (r *Result) MayDeclare(types []uint32) bool {
	for i, oid := range types {
		exact, isOfKind := r.paramCasts[int32(i+1)]
		if k, isUsed := r.paramKinds[int32(i+1)]; oid != 0 && isUsed && kindOfOID(oid) != k && !(isOfKind && exact == oid) {
			return false
		}
		if oid != 0 && isOfKind && exact != oid && kindOfOID(oid) != kindText {
			return false
		}
	}
	return true
}
