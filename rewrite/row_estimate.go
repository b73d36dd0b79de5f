package rewrite

import (
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
	"github.com/pgconsent/pgconsent/policy"
)

// These are the memory settings of an agent's session. The planner may use their product for a hash table; if a set is
// larger, PostgreSQL scans it for each row.
const (
	WorkMemMB         = 32 // work_mem, in MB
	HashMemMultiplier = 4
	hashMemory        = WorkMemMB * HashMemMultiplier * 0.9 * (1 << 20)
)

// JoinLimit is the number of tables up to which the planner of an agent's session tries all orders of joins;
// PostgreSQL's default is 8. Each table with a rule adds the rule's lookup tables, so four tables of an agent become
// nine or more. Beyond the limit PostgreSQL would join them in the order of the rules. From 12 tables on
// (geqo_threshold) it would try random orders, which takes ten times as long for the views of information_schema.
const JoinLimit = 11

// WithSizes returns a rewriter that also gives the planner hints, based on these sizes of tables. The hints change no
// decision about a statement. A rewriter without sizes gives none.
func (r *Rewriter) WithSizes(sizes catalog.Sizes) *Rewriter {
	changed := *r
	changed.sizes = sizes
	return &changed
}

// WithSignedViews returns a rewriter that uses signed views only if exists is true for them. If an owner drops a column
// of a table, PostgreSQL also drops the signed view with that column.
func (r *Rewriter) WithSignedViews(exists func(view catalog.Name) bool) *Rewriter {
	changed := *r
	changed.fragments = make(map[catalog.Name]*fragment, len(r.fragments))
	for name, f := range r.fragments {
		one := *f
		one.hasSignedView = f.hasSignedView && exists(predicate.SignedView(name))
		changed.fragments[name] = &one
	}
	return &changed
}

// These are measured costs for one protected table, in microseconds. Only their ratios matter.
const (
	probeCost      = 2.0  // the cost of one index look-up in a lookup table, for one row
	matchCost      = 0.3  // the cost of one look-up in a hash set
	setRowCost     = 0.05 // the cost of reading one row of a lookup table for a set
	minRowsForHash = 1000 // for fewer rows, planning takes longer than execution
)

// wantsHashHint tells whether a text with a single statement reads so many rows of protected tables that row policies
// should build hash sets of their lookup tables. The answer affects only speed.
func (w *walker) wantsHashHint(tree *sqltext.ParseResult) bool {
	if w.sizes == nil || len(tree.Stmts) != 1 {
		return false
	}
	probes, setRows, rows := 0.0, 0.0, 0.0
	fits := true
	table := func(name catalog.Name, f *fragment, visited float64) {
		copies := w.partitionCount(name) // PostgreSQL builds sets for each partition that it reads
		for _, hashedSet := range f.hashSets {
			size, isKnown := w.sizes[hashedSet.Relation.Name]
			if !isKnown || size.Rows*hashEntrySize(hashedSet) > hashMemory {
				fits = false
				return
			}
			for _, read := range hashedSet.SourceTables {
				setRows += copies * setRowCost * w.sizes[read.Name].Rows
			}
			probes += probeCost * visited
			setRows += matchCost * visited
			rows += visited
		}
	}
	h := w.estimateVisits(tree, false)
	for ref, visited := range h.rows {
		switch {
		case ref.fragment == nil:
		case len(ref.fragment.viewTables) == 0:
			table(ref.name, ref.fragment, visited)
		case !h.narrowedViews[ref]: // the statement reads the whole view
			for _, name := range ref.fragment.viewTables {
				if f := w.fragments[name]; f != nil {
					table(name, f, w.sizes[name].Rows*visited/h.size(ref))
				}
			}
		}
	}
	return fits && rows >= minRowsForHash && probes > setRows
}

// readsHashedParts tells whether the text reads a whole table for whose signed view PostgreSQL may build hash sets. If
// a condition may narrow the table by an index, the planner itself estimates the remaining rows better, and chooses. A
// table inside EXISTS does not count: EXISTS needs only one row, which an index may find.
func (w *walker) readsHashedParts(tree *sqltext.ParseResult) bool {
	inExists := map[*sqltext.RangeVar]bool{}
	sqltext.Walk(tree, func(m proto.Message) bool {
		s, isOfKind := m.(*sqltext.SubLink)
		if isOfKind && s.SubLinkType == sqltext.EXISTS_SUBLINK {
			relations, _ := sqltext.RangeVars(s)
			for _, rv := range relations {
				inExists[rv] = true
			}
		}
		return true
	})
	visits, found := w.estimateVisits(tree, false), false
	for _, ref := range w.references {
		if ref.fragment == nil || inExists[ref.rangeVar] || !w.hasHashedPart(ref.fragment) {
			continue
		}
		if visits.rows[ref] < visits.size(ref) {
			return false
		}
		found = true
	}
	return found
}

// hasHashedPart tells whether PostgreSQL may build hash sets for the signed view of a table, or of a table that a view
// reads.
func (w *walker) hasHashedPart(f *fragment) bool {
	return f.hasHashedPart || slices.ContainsFunc(f.viewTables, func(name catalog.Name) bool {
		fragment := w.fragments[name]
		return fragment != nil && fragment.hasHashedPart
	})
}

// partitionCount returns the number of partitions and children that contain the rows of a table; 1 if it has none.
func (w *walker) partitionCount(name catalog.Name) float64 {
	relation, isKnown := w.snap.Relation(name)
	if !isKnown || !relation.HasChildren {
		return 1
	}
	parts := 0.0
	for _, r := range w.snap.Relations() {
		if slices.Contains(r.Parents, name) {
			parts += w.partitionCount(r.Name)
		}
	}
	return max(1, parts)
}

// estimateVisitedRows estimates how many rows of tables with predicates PostgreSQL visits for a text with a single
// statement.
//
// If leaky is set, LIMIT does not count: the text has a condition that row security delays, and possibly only few rows
// meet it.
func (w *walker) estimateVisitedRows(tree *sqltext.ParseResult, leaky bool) float64 {
	rows := 0.0
	for ref, visited := range w.estimateVisits(tree, leaky).rows {
		if ref.fragment != nil && !ref.fragment.showsAllRows {
			rows += visited
		}
	}
	return rows
}

// estimateVisits estimates how many rows of each reference PostgreSQL visits for a text with a single statement. If
// unlimited is set, LIMIT does not count.
func (w *walker) estimateVisits(tree *sqltext.ParseResult, unlimited bool) *rowEstimator {
	return w.runEstimator(tree, &rowEstimator{ignoreLimit: unlimited})
}

// runEstimator makes the estimates for a text with the settings in h, and returns h.
func (w *walker) runEstimator(tree *sqltext.ParseResult, h *rowEstimator) *rowEstimator {
	h.walker, h.referenceOf, h.rows, h.narrowedViews, h.lookedUpReferences, h.foundBySearch = w, map[*sqltext.RangeVar]*reference{},
		map[*reference]float64{}, map[*reference]bool{}, map[*reference]bool{}, map[*reference]bool{}
	for _, ref := range w.references {
		h.referenceOf[ref.rangeVar] = ref
	}
	h.estimateStatement(tree.Stmts[0].GetStmt())
	for _, ref := range w.references {
		if _, estimated := h.rows[ref]; !estimated {
			h.rows[ref] = h.size(ref)
		}
	}
	return h
}

// hashEntrySize returns the size in bytes that the planner assumes for one entry of a set in a hash table.
func hashEntrySize(hashedSet predicate.HashedSet) float64 {
	size := 24.0 // the header of an entry
	for _, name := range hashedSet.Columns {
		switch c := hashedSet.Relation.Column(name); {
		case c == nil:
			return 1 << 20
		case slices.Contains([]uint32{20, 21, 23, 26, 1082, 1114, 1184}, c.TypeOID):
			size += 8
		case c.TypeOID == 2950:
			size += 16
		default:
			size += 40
		}
	}
	return size
}

// rowEstimator estimates how many rows of each reference PostgreSQL visits before a statement ends.
type rowEstimator struct {
	*walker
	referenceOf map[*sqltext.RangeVar]*reference
	rows        map[*reference]float64
	// the views whose rows PostgreSQL may find by an index of a table that the view reads
	narrowedViews map[*reference]bool
	// the references in which PostgreSQL looks rows up by an index, for each row of another table
	lookedUpReferences map[*reference]bool
	foundBySearch      map[*reference]bool // the references of which a search finds the fewest rows
	ignoreLimit        bool                // LIMIT does not count in the estimate
	ignoreRuleColumns  bool                // conditions of the rule do not count in the estimate
	indexSearches      bool                // the estimate assumes that each search finds few rows by an index
}

// size returns the estimated number of rows of the relation that a reference names.
func (h *rowEstimator) size(ref *reference) float64 {
	if ref.fragment != nil && len(ref.fragment.viewTables) > 0 { // the reference names a view
		rows := 1.0
		for _, name := range ref.fragment.viewTables {
			if size, ok := h.sizes[name]; ok {
				rows += size.Rows
			} else {
				rows += 1e6
			}
		}
		return rows
	}
	if size, ok := h.sizes[ref.name]; ok {
		return max(size.Rows, 1)
	}
	return 1e6
}

// estimateStatement estimates the rows that a statement visits. An UPDATE or DELETE finds its rows as a SELECT does.
func (h *rowEstimator) estimateStatement(n *sqltext.Node) {
	switch x := n.GetNode().(type) {
	case *sqltext.Node_SelectStmt:
		h.estimateQuery(x.SelectStmt, 0)
	case *sqltext.Node_CopyStmt:
		h.estimateQuery(x.CopyStmt.GetQuery().GetSelectStmt(), 0)
	case *sqltext.Node_UpdateStmt, *sqltext.Node_DeleteStmt:
		_, s := asSelect(n)
		h.estimateQuery(s, 0)
	case *sqltext.Node_InsertStmt:
		// PostgreSQL visits each new row once. A SELECT is assumed to return as many rows as it visits in the table in which
		// it visits the most.
		s := x.InsertStmt.GetSelectStmt().GetSelectStmt()
		rows := float64(max(1, len(s.GetValuesLists())))
		h.estimateQuery(s, 0)
		for _, ref := range h.rows {
			rows = max(rows, ref)
		}
		if ref := h.referenceOf[x.InsertStmt.Relation]; ref != nil {
			h.rows[ref] = rows
		}
	}
}

// estimateQuery estimates the rows that a SELECT and the queries inside it visit. outer is the number of rows that the
// query around it visits.
func (h *rowEstimator) estimateQuery(s *sqltext.SelectStmt, outer float64) {
	if s == nil {
		return
	}
	for _, n := range s.GetWithClause().GetCtes() {
		h.estimateStatement(n.GetCommonTableExpr().GetCtequery())
	}
	h.estimateQuery(s.Larg, outer)
	h.estimateQuery(s.Rarg, outer)
	level := &queryEstimate{rowEstimator: h, outer: outer, singleValueColumns: map[*tableEstimate][]string{}}
	conditions := splitConjuncts(s.WhereClause)
	for _, n := range s.FromClause {
		conditions = append(conditions, level.addFromItem(n)...)
	}
	level.applyConditions(conditions)
	level.applyLimit(s)
	mostRows := 0.0
	for _, item := range level.items {
		h.rows[item.ref] = item.rows
		mostRows = max(mostRows, item.rows)
	}
	for _, n := range slices.Concat(conditions, s.SortClause, []*sqltext.Node{s.HavingClause}) {
		h.estimateSubLinks(n, mostRows)
	}
	for i, n := range s.TargetList {
		h.estimateSubLinks(n, min(mostRows, h.rowsReturned(s, i)))
	}
}

// rowsReturned estimates for how many rows PostgreSQL computes the i-th output of a SELECT. That is the number in
// LIMIT, unless the output is a sort key, a group key or part of DISTINCT (make_sort_input_target, planner.c).
func (h *rowEstimator) rowsReturned(s *sqltext.SelectStmt, i int) float64 {
	if s.LimitCount == nil || len(s.DistinctClause) > 0 || h.readsAllRows(s) {
		return math.Inf(1)
	}
	rows := 0.0
	for _, n := range []*sqltext.Node{s.LimitCount, s.LimitOffset} {
		switch c := n.GetAConst(); {
		case n == nil:
		case c == nil || c.GetIval() == nil:
			rows += unknownLimitRows
		default:
			rows += float64(c.GetIval().GetIval())
		}
	}
	for _, n := range s.SortClause {
		key := n.GetSortBy().GetNode()
		if c := key.GetAConst(); c != nil && c.GetIval() != nil && int(c.GetIval().GetIval()) == i+1 {
			return math.Inf(1)
		}
		if fields := key.GetColumnRef().GetFields(); len(fields) == 1 &&
			fields[0].GetString_().GetSval() == s.TargetList[i].GetResTarget().GetName() {
			return math.Inf(1)
		}
	}
	return rows
}

// readsAllRows tells whether a SELECT has groups, aggregates or windows, for which PostgreSQL reads all rows in spite
// of LIMIT.
func (h *rowEstimator) readsAllRows(s *sqltext.SelectStmt) bool {
	return h.isGrouped(s) || slices.ContainsFunc(slices.Concat(s.TargetList, s.SortClause), callsWindow)
}

// callsWindow tells whether an expression calls a window function outside of sub-selects.
func callsWindow(n *sqltext.Node) bool {
	found := n.GetFuncCall().GetOver() != nil
	if n != nil && n.GetSubLink() == nil {
		sqltext.EachChild(n, func(child *sqltext.Node) { found = found || callsWindow(child) })
	}
	return found
}

// estimateSubLinks estimates the rows that the sub-selects in an expression visit.
func (h *rowEstimator) estimateSubLinks(n *sqltext.Node, outer float64) {
	if n == nil {
		return
	}
	if link := n.GetSubLink(); link != nil {
		h.estimateSubLinks(link.Testexpr, outer)
		h.estimateQuery(link.GetSubselect().GetSelectStmt(), outer)
		return
	}
	sqltext.EachChild(n, func(child *sqltext.Node) { h.estimateSubLinks(child, outer) })
}

// queryEstimate is the estimate of one SELECT.
type queryEstimate struct {
	*rowEstimator
	outer float64 // the number of rows that the query around this one visits
	items []*tableEstimate
	// the columns of each table that equal one value in all rows that the query reads
	singleValueColumns map[*tableEstimate][]string
}

// tableEstimate is the estimate of one table in the FROM clause of the query.
type tableEstimate struct {
	ref      *reference
	name     string
	rows     float64
	bySearch bool // rows is the number of rows that a search finds
}

// addFromItem adds the tables in an item of FROM, and returns the conditions of the inner joins in the item.
func (l *queryEstimate) addFromItem(n *sqltext.Node) []*sqltext.Node {
	switch kind := n.GetNode().(type) {
	case *sqltext.Node_RangeVar:
		if ref := l.referenceOf[kind.RangeVar]; ref != nil && ref.relation != nil {
			name := kind.RangeVar.GetAlias().GetAliasname()
			if name == "" {
				name = kind.RangeVar.GetRelname()
			}
			l.items = append(l.items, &tableEstimate{ref: ref, name: name, rows: l.size(ref)})
		}
	case *sqltext.Node_RangeSubselect:
		l.estimateQuery(kind.RangeSubselect.GetSubquery().GetSelectStmt(), 0)
	case *sqltext.Node_JoinExpr:
		conditions := append(l.addFromItem(kind.JoinExpr.Larg), l.addFromItem(kind.JoinExpr.Rarg)...)
		return append(conditions, splitConjuncts(kind.JoinExpr.Quals)...)
	}
	return nil
}

// splitConjuncts splits a condition at its top-level ANDs.
func splitConjuncts(n *sqltext.Node) []*sqltext.Node {
	if n == nil {
		return nil
	}
	if b := n.GetBoolExpr(); b != nil && b.Boolop == sqltext.AND_EXPR {
		var out []*sqltext.Node
		for _, arg := range b.Args {
			out = append(out, splitConjuncts(arg)...)
		}
		return out
	}
	return []*sqltext.Node{n}
}

// tableOf returns the table of this query to which a column belongs; nil if the column belongs to another item or to an
// outer query.
func (l *queryEstimate) tableOf(n *sqltext.Node) (*tableEstimate, string) {
	fields := n.GetColumnRef().GetFields()
	if len(fields) == 0 || len(fields) > 2 {
		return nil, ""
	}
	column := fields[len(fields)-1].GetString_().GetSval()
	for _, item := range l.items {
		if (len(fields) == 1 || item.name == fields[0].GetString_().GetSval()) && item.ref.relation.Column(column) != nil {
			return item, column
		}
	}
	return nil, ""
}

// comparedColumn returns the table of a column if PostgreSQL may use an index for comparisons of the column under row
// security, else nil.
func (l *queryEstimate) comparedColumn(n *sqltext.Node) (*tableEstimate, string) {
	item, column := l.tableOf(n)
	if item == nil || !hasLeakproofComparison(l.snap.BaseType(item.ref.relation.Column(column).TypeOID)) {
		return nil, ""
	}
	return item, column
}

// hasLeakproofComparison tells whether PostgreSQL may use an index for comparisons of a type under row security.
// Comparisons of numeric, enums, citext and some other types are not leak-proof.
func hasLeakproofComparison(oid uint32) bool {
	return slices.Contains([]uint32{16, 17, 18, 19, 20, 21, 23, 25, 26, 700, 701, 790, 829, 869, 650, 1042, 1043,
		1082, 1083, 1114, 1184, 1186, 1266, 1560, 1562, 2950}, oid)
}

// rowsPerValue estimates how many rows have the same value in a column.
func (l *queryEstimate) rowsPerValue(ref *reference, column string) float64 {
	values, isKnown := l.sizes[ref.name].DistinctValues[column]
	if !isKnown {
		values = 200
	}
	return max(1, l.size(ref)/values)
}

// These are the planner's guesses if it knows nothing about the values, or numbers close to its guesses.
const (
	rangeShare       = 1.0 / 200
	oneBoundShare    = 1.0 / 3
	rowsPerJoin      = 10.0
	unknownLimitRows = 100.0 // the guess for a LIMIT that is no number
)

// applyConditions lowers the estimates of rows by the conditions for which PostgreSQL can use an index, then by joins
// that use an index.
func (l *queryEstimate) applyConditions(conditions []*sqltext.Node) {
	equal, bounds := map[*tableEstimate][]string{}, map[*tableEstimate]map[string]int{}
	type joinEdge struct {
		from, to *tableEstimate
		column   string
	}
	var edges []joinEdge
	correlated := map[*tableEstimate]string{}
	for _, n := range conditions {
		x := n.GetAExpr()
		if x == nil {
			continue
		}
		left, a := l.comparedColumn(x.Lexpr)
		right, b := l.comparedColumn(x.Rexpr)
		operator := ""
		if len(x.Name) == 1 {
			operator = x.Name[0].GetString_().GetSval()
		}
		switch {
		case x.Kind == sqltext.AEXPR_IN && left != nil && operator == "=", x.Kind == sqltext.AEXPR_OP_ANY &&
			left != nil && operator == "=":
			equal[left] = append(equal[left], a)
		case x.Kind == sqltext.AEXPR_BETWEEN && left != nil:
			addBound(bounds, left, a, 2)
		case x.Kind != sqltext.AEXPR_OP:
		case operator == "=" && left != nil && right != nil:
			edges = append(edges, joinEdge{left, right, b}, joinEdge{right, left, a})
		case operator == "=" && left != nil:
			equal[left] = append(equal[left], a)
			l.singleValueColumns[left] = append(l.singleValueColumns[left], a)
			if x.Rexpr.GetColumnRef() != nil {
				correlated[left] = a
			}
		case operator == "=" && right != nil:
			equal[right] = append(equal[right], b)
			l.singleValueColumns[right] = append(l.singleValueColumns[right], b)
			if x.Lexpr.GetColumnRef() != nil {
				correlated[right] = b
			}
		case slices.Contains([]string{"<", "<=", ">", ">="}, operator) && left != nil:
			addBound(bounds, left, a, 1)
		case slices.Contains([]string{"<", "<=", ">", ">="}, operator) && right != nil:
			addBound(bounds, right, b, 1)
		}
	}
	for _, e := range edges {
		l.narrowedViews[e.from.ref], l.narrowedViews[e.to.ref] = true, true
	}
	for _, item := range l.items {
		l.narrowedViews[item.ref] = l.narrowedViews[item.ref] || len(equal[item]) > 0 || len(bounds[item]) > 0
		if item.ref.fragment != nil && !l.ignoreRuleColumns {
			equal[item] = append(equal[item], item.ref.fragment.attributeColumns...)
			l.singleValueColumns[item] = append(l.singleValueColumns[item], item.ref.fragment.singleValueColumns...)
		}
		if l.ignoreRuleColumns { // PostgreSQL's guess for the rows in a range may be far off
			bounds = nil
		}
		for _, index := range item.ref.relation.BTrees {
			if index.IsUnique && !slices.ContainsFunc(index.Columns,
				func(c string) bool { return !slices.Contains(equal[item], c) }) {
				item.rows = 1
				continue
			}
			item.rows = min(item.rows, l.indexRows(item, index, equal[item], bounds[item]))
		}
		if l.ignoreRuleColumns {
			if rowsFound := l.rowsBySearch(item, conditions); rowsFound < item.rows {
				item.rows, item.bySearch, l.foundBySearch[item.ref] = rowsFound, true, true
			}
			if l.ruleIndexIsBetter(item, equal[item]) {
				item.rows = l.size(item.ref)
			}
		} else {
			item.rows = min(item.rows, l.matchingRows(item, equal[item], bounds[item]))
		}
		if l.isFoundByKey(item.ref) {
			item.rows = min(item.rows, max(1, l.size(item.ref)*searchShare))
		}
		// for a correlated sub-select, PostgreSQL looks rows up for each outer row
		if column, ok := correlated[item]; ok && indexBeginsWith(item.ref.relation, column) && l.outer > 0 {
			item.rows = min(l.size(item.ref), max(item.rows, l.outer*l.rowsPerValue(item.ref, column)))
		}
	}
	for range l.items {
		for _, e := range edges {
			if indexBeginsWith(e.to.ref.relation, e.column) {
				if rows := e.from.rows * l.rowsPerValue(e.to.ref, e.column); rows <= e.to.rows {
					e.to.rows, l.lookedUpReferences[e.to.ref] = rows, true
				}
			}
		}
	}
}

// indexRows estimates how many rows PostgreSQL finds by the leading columns of an index. These are the columns that
// must equal something (equal), and the next column if it has bounds.
func (l *queryEstimate) indexRows(item *tableEstimate, index catalog.BTree, equal []string,
	bounds map[string]int) float64 {
	rows, tokenIndex := l.size(item.ref), 0
	for ; tokenIndex < len(index.Columns) && slices.Contains(equal, index.Columns[tokenIndex]); tokenIndex++ {
		rows *= l.rowsPerValue(item.ref, index.Columns[tokenIndex]) / l.size(item.ref)
	}
	if tokenIndex < len(index.Columns) {
		switch n := bounds[index.Columns[tokenIndex]]; {
		case n > 1:
			rows *= rangeShare
		case n == 1:
			rows *= oneBoundShare
		}
	}
	return max(1, rows)
}

// matchingRows estimates how many rows meet the conditions. PostgreSQL checks leak-proof conditions before the look-ups
// of a row policy, with an index or without.
func (l *queryEstimate) matchingRows(item *tableEstimate, equal []string, bounds map[string]int) float64 {
	rows := l.size(item.ref)
	for i, column := range equal {
		if values, isKnown := l.sizes[item.ref.name].DistinctValues[column]; isKnown && slices.Index(equal, column) == i {
			rows /= max(1, values)
		}
	}
	for _, n := range bounds {
		if n > 1 {
			rows *= rangeShare
		} else {
			rows *= oneBoundShare
		}
	}
	return max(1, rows)
}

func addBound(bounds map[*tableEstimate]map[string]int, item *tableEstimate, column string, n int) {
	if bounds[item] == nil {
		bounds[item] = map[string]int{}
	}
	bounds[item][column] += n
}

// indexBeginsWith tells whether some index of a table has this column as its first column.
func indexBeginsWith(r *catalog.Relation, column string) bool {
	return slices.ContainsFunc(r.BTrees, func(i catalog.BTree) bool { return i.Columns[0] == column })
}

// someIndexSorts tells whether some index returns the rows in the order of a column. Before that column, the index may
// have only columns that equal one value in all rows.
func (l *queryEstimate) someIndexSorts(item *tableEstimate, column string) bool {
	return slices.ContainsFunc(item.ref.relation.BTrees, func(i catalog.BTree) bool {
		tokenIndex := slices.IndexFunc(i.Columns,
			func(c string) bool { return !slices.Contains(l.singleValueColumns[item], c) || c == column })
		return tokenIndex >= 0 && i.Columns[tokenIndex] == column
	})
}

// applyLimit lowers the estimates of rows by LIMIT: a scan that needs no sorting stops early.
func (l *queryEstimate) applyLimit(s *sqltext.SelectStmt) {
	if l.ignoreRuleColumns && s.LimitCount != nil && len(s.SortClause) > 0 {
		if item, column := l.tableOf(s.SortClause[0].GetSortBy().GetNode()); item != nil && item.bySearch &&
			l.ruleIndexMaySort(item, column) {
			item.rows = l.size(item.ref) // a scan in index order may find the first rows soon
		}
	}
	if l.ignoreLimit || s.LimitCount == nil || len(s.DistinctClause) > 0 || len(l.items) == 0 || l.readsAllRows(s) {
		return
	}
	for _, item := range l.items {
		l.narrowedViews[item.ref] = true // it is not known which table's index PostgreSQL uses for a view
	}
	firstTable := l.items[0]
	if len(s.SortClause) > 0 {
		item, column := l.tableOf(s.SortClause[0].GetSortBy().GetNode())
		if item == nil || !l.someIndexSorts(item, column) {
			return
		}
		firstTable = item
	}
	limit := unknownLimitRows
	if c := s.LimitCount.GetAConst(); c != nil && c.GetIval() != nil {
		limit = float64(c.GetIval().GetIval())
	}
	// The factor passed allows for conditions that drop many rows, rowsPerJoin for joins that find several rows for each.
	const passed = 10
	firstTable.rows = min(firstTable.rows, limit*passed)
	for _, item := range l.items {
		item.rows = min(item.rows, limit*passed*rowsPerJoin)
	}
}

// rowConditions returns the conditions of a table's rule, all of which each visible row meets.
func rowConditions(t *policy.Table) predicate.All {
	if all, ok := t.Rows.(predicate.All); ok {
		return all
	}
	return predicate.All{t.Rows}
}

// attributeColumns returns the columns of a table that, according to its rule, equal an attribute of the session in
// every visible row.
func attributeColumns(t *policy.Table) []string {
	var out []string
	for _, part := range rowConditions(t) {
		if ownRows, ok := part.(predicate.Own); ok {
			out = append(out, ownRows.Column)
		}
	}
	return out
}

// singleValueColumns returns the columns of a table that, according to its rule, equal the same single value in every
// visible row.
func singleValueColumns(t *policy.Table) []string {
	var out []string
	for _, part := range rowConditions(t) {
		if ownRows, ok := part.(predicate.Own); ok && !strings.HasSuffix(ownRows.Type, "[]") {
			out = append(out, ownRows.Column)
		}
	}
	return out
}

// hasMaterializedConsent tells whether a table's rule has a consent block whose answer triggers store beside the rows.
func hasMaterializedConsent(t *policy.Table) bool {
	return slices.ContainsFunc(rowConditions(t), func(part predicate.Node) bool {
		consent, ok := part.(predicate.Consent)
		return ok && consent.Materialized != nil
	})
}
