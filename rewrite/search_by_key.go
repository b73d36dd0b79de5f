package rewrite

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// A search by an index may stand in a join, a sub-select or a WITH query, beside expressions that are not leak-safe.
// Then the statement reads its tables under row security, and PostgreSQL uses no index for the search. If the search's
// own conditions are leak-safe, the rewriter adds a sub-select that finds the keys of its rows through a signed view.
// The statement then reads the rows with these keys:
//
//	... WHERE n.found @@ q AND n.id = ANY (ARRAY(SELECT n.id FROM pgconsent_signed.visible_n AS n WHERE n.found @@ q)) ...
//
// The rest of the statement stays as it was, under row security. The added condition can only leave rows out, whatever
// the keys are. The keys are those of all visible rows that meet the search's conditions, and equality of keys is
// leak-proof. Whether the rewriter adds the sub-select depends on the text and the catalog alone.

// keySearch is a search for which the rewriter adds a sub-select that finds the keys of its rows.
type keySearch struct {
	query          proto.Message // the SELECT, UPDATE or DELETE that contains the search
	ref            *reference
	alias          string // the alias of the table
	key            string // the column that is the table's primary key
	isKeyCondition []bool // tells for each condition of the query whether the sub-select of keys repeats it
	// the text search functions in FROM that these conditions name, as indexes in textSearchFunctions
	textSearches []int
	queryIndex   int // the index of the query in the result of queriesOf
}

// findKeySearches returns the searches of a statement for which a sub-select of keys is worthwhile. allLeakSafe tells
// whether the whole statement is leak-safe. Then PostgreSQL uses an index for the search in a signed view anyway, if
// the statement joins nothing or has conditions on the joined tables.
func (w *walker) findKeySearches(tree *sqltext.ParseResult, allLeakSafe bool) (*leakChecker, []keySearch) {
	s, writeStmt := tree.Stmts[0].GetStmt().GetSelectStmt(), proto.Message(nil)
	if s == nil { // an UPDATE or DELETE that runs code of the owner is hardened, and useKeySearches leaves it unchanged
		if u := tree.Stmts[0].GetStmt().GetUpdateStmt(); u != nil {
			writeStmt = u
		} else {
			writeStmt = tree.Stmts[0].GetStmt().GetDeleteStmt()
		}
		_, s = asSelect(tree.Stmts[0].GetStmt())
	}
	if s == nil || s.IntoClause != nil || len(s.LockingClause) > 0 || writeStmt != nil && w.locksRows ||
		!w.readsOnlyTables(writeStmt != nil) || slices.ContainsFunc(slices.Collect(maps.Keys(w.functions)),
		func(name string) bool { return !strings.HasPrefix(name, "pg_catalog.") }) {
		return nil, nil
	}
	v := w.newLeakChecker()
	f := searchFinder{leakChecker: v, allLeakSafe: allLeakSafe, paramUses: map[int32]int{},
		referenceOf: w.referencesByRangeVar(), writeStmt: writeStmt, asSelect: s}
	countParams(tree, f.paramUses)
	f.visitQuery(s)
	v.checkNarrowParams()
	v.checkParamTypes()
	if v.reason != "" || len(f.found) == 0 || len(f.found) > maxKeySearches {
		return nil, nil
	}
	return v, f.found
}

// useKeySearches makes the statement find the rows of its searches by key. The result gets the forms that the values of
// parameters must have, so that the searches' conditions cannot fail. If only these conditions were a reason for
// hardened plans, the plans are not hardened.
func (w *walker) useKeySearches(tree *sqltext.ParseResult, result *Result, allLeakSafe bool) {
	v, searches := w.findKeySearches(tree, allLeakSafe)
	if len(searches) == 0 {
		return
	}
	if result.HardenedReason != "" || !allLeakSafe && w.mayFail {
		var leakSafe []*sqltext.Node
		for _, search := range searches {
			for i, n := range splitConjuncts(*whereOf(search.query)) {
				if search.isKeyCondition[i] {
					leakSafe = append(leakSafe, n)
				}
			}
		}
		if _, reason, declared := w.hardeningOf(tree.Stmts[0], w.referencesByRangeVar(), leakSafe...); reason != "" ||
			declared {
			return
		}
		result.clearHardening()
		w.mayFail = false
	}
	w.keySearches, w.searchLeakCheck = searches, v
	w.needsSignature = true
	result.paramKinds, result.paramCasts, result.Forms, result.ExpectsForms = v.paramKinds, v.paramCasts, v.paramForms,
		result.ExpectsForms || len(v.paramForms) > 0
}

// isFoundByKey tells whether the text finds the rows of a reference by key.
func (w *walker) isFoundByKey(ref *reference) bool {
	return slices.ContainsFunc(w.keySearches, func(s keySearch) bool { return s.ref == ref })
}

// maxKeySearches bounds how many searches of a text the rewriter changes, and so how much longer the text becomes.
const maxKeySearches = 4

// readsOnlyTables tells whether a statement reads only tables of the policy, and no views. A view may call functions of
// the owner, which would run inside the signed text.
func (w *walker) readsOnlyTables(writes bool) bool {
	return !slices.ContainsFunc(w.references, func(ref *reference) bool {
		if ref.fragment == nil || ref.relation == nil {
			return true
		}
		_, isListed := w.pol.Table(ref.name)
		return !isListed || ref.relation.Kind != catalog.Table && ref.relation.Kind != catalog.PartitionedTable ||
			ref.isTarget && !writes || ref.repeated
	})
}

// searchFinder finds the searches in a statement whose rows can be found by key.
type searchFinder struct {
	*leakChecker
	allLeakSafe bool
	paramUses   map[int32]int // how often each parameter stands in the text
	referenceOf map[*sqltext.RangeVar]*reference
	found       []keySearch

	writeStmt proto.Message       // the statement, if it is an UPDATE or DELETE; nil: it is a SELECT
	asSelect  *sqltext.SelectStmt // for an UPDATE or DELETE, the SELECT that finds the same rows
}

// visitQuery visits a query, and those queries inside it that PostgreSQL runs only once.
func (f *searchFinder) visitQuery(s *sqltext.SelectStmt) {
	if s == nil || len(s.LockingClause) > 0 {
		return
	}
	if !s.GetWithClause().GetRecursive() {
		for _, n := range s.GetWithClause().GetCtes() {
			f.visitQuery(n.GetCommonTableExpr().GetCtequery().GetSelectStmt())
		}
	}
	f.visitQuery(s.Larg)
	f.visitQuery(s.Rarg)
	var tables []*sqltext.RangeVar
	isPlain, optional := true, map[*sqltext.RangeVar]bool{}
	only := true // true as long as FROM has only tables, joins and text search functions
	var from func(n *sqltext.Node, missing bool)
	from = func(n *sqltext.Node, missing bool) {
		switch n := n.GetNode().(type) {
		case *sqltext.Node_RangeVar:
			tables = append(tables, n.RangeVar)
			optional[n.RangeVar] = missing
		case *sqltext.Node_RangeSubselect:
			only = false
			if !n.RangeSubselect.Lateral {
				f.visitQuery(n.RangeSubselect.GetSubquery().GetSelectStmt())
			}
		case *sqltext.Node_JoinExpr:
			j := n.JoinExpr
			isPlain = isPlain && !j.IsNatural && j.Alias == nil && j.JoinUsingAlias == nil && len(j.UsingClause) == 0
			from(j.Larg, missing || j.Jointype != sqltext.JOIN_INNER && j.Jointype != sqltext.JOIN_LEFT)
			from(j.Rarg, missing || j.Jointype != sqltext.JOIN_INNER && j.Jointype != sqltext.JOIN_RIGHT)
		}
	}
	for _, n := range s.FromClause {
		from(n, false)
	}
	conditions := splitConjuncts(s.WhereClause)
	for _, n := range conditions {
		if negation := n.GetBoolExpr(); negation != nil && negation.Boolop == sqltext.NOT_EXPR {
			n = negation.Args[0]
		}
		if link := n.GetSubLink(); link != nil &&
			(link.SubLinkType == sqltext.EXISTS_SUBLINK || link.SubLinkType == sqltext.ANY_SUBLINK && len(link.OperName) == 0) {
			f.visitQuery(link.GetSubselect().GetSelectStmt())
		}
	}
	if !isPlain || f.allLeakSafe && len(tables) == 1 && (only || len(s.FromClause) == 1) {
		return
	}
	for _, rv := range tables {
		f.visitTable(s, rv, optional[rv], conditions)
	}
}

// visitTable checks whether conditions search one table by an index. optional: an outer join may return a row of NULLs
// in place of a row of the table. Such a row has no key, so the search must not match it. A search of a column is
// strict and does not match NULL, but a search of to_tsvector over COALESCE(body, an empty text) may.
func (f *searchFinder) visitTable(s *sqltext.SelectStmt, rv *sqltext.RangeVar, optional bool,
	conditions []*sqltext.Node) {
	ref := f.referenceOf[rv]
	if ref == nil || ref.relation.Kind != catalog.Table || ref.relation.HasChildren || !ref.fragment.hasSignedView ||
		ref.fragment.showsAllRows || ref.fragment.aggregate != nil || ref.keyLookup != nil ||
		ref.notInjectedBecause != mayInject &&
			!(f.writeStmt != nil && (ref.notInjectedBecause == writeTargetTable || ref.notInjectedBecause == inWritingStatement)) ||
		ref.sharesName ||
		ref.tableToken >= 0 || len(rv.GetAlias().GetColnames()) > 0 || len(ref.relation.PrimaryKey) != 1 {
		return
	}
	f.references[rv] = ref
	item := f.leakChecker.checkTable(rv, checkContext{})[0]
	query := proto.Message(s)
	if f.writeStmt != nil && s == f.asSelect {
		query = f.writeStmt
	}
	search := keySearch{query: query, ref: ref, alias: item.name, key: ref.relation.PrimaryKey[0],
		isKeyCondition: make([]bool, len(conditions))}
	if key := slices.IndexFunc(item.columns, func(c leakColumn) bool { return c.name == search.key }); key < 0 ||
		item.columns[key].computed || !slices.Contains([]kind{kindInt, kindText, "uuid"}, item.columns[key].kind) {
		return
	}
	level := &queryEstimate{rowEstimator: &rowEstimator{walker: f.walker},
		items: []*tableEstimate{{ref: ref, name: item.name}}}
	of := func(n *sqltext.Node) bool { return level.isGINColumn(level.items[0], n) }
	start, found, others := f.saveState(), false, false
	all := textSearchFunctions(fromClauseOf(query))
	for i, n := range conditions {
		stateBefore := f.saveState()
		scope, calledIn := &leakScope{items: []*leakItem{item}}, namedFunctions(n, all)
		isOwn := f.hasOwnParams(n)
		for _, k := range calledIn {
			scope.items = append(scope.items, f.checkTextSearchItem(all[k], checkContext{mayNotRun: true})...)
			isOwn = isOwn && f.hasOwnParams(all[k])
		}
		if f.checkCondition(n, checkContext{scope: scope}); f.reason == "" && isOwn && namesColumn(n) {
			search.isKeyCondition[i] = true
			search.textSearches = append(search.textSearches, calledIn...)
			found = found || level.isGINSearch(level.items[0], n) &&
				(!optional || slices.ContainsFunc(searchOperands(n.GetAExpr()), of))
			continue
		}
		f.restoreState(stateBefore)
		others = others || !isColumnJoin(n)
	}
	// a condition on another table may leave fewer rows, and with signed views the planner knows that
	if !found || f.allLeakSafe && others {
		f.restoreState(start)
		return
	}
	slices.Sort(search.textSearches)
	search.textSearches = slices.Compact(search.textSearches)
	f.found = append(f.found, search)
}

// isColumnJoin tells whether a condition has the form column = column.
func isColumnJoin(n *sqltext.Node) bool {
	x := n.GetAExpr()
	return x != nil && x.Kind == sqltext.AEXPR_OP && lastNamePart(x.Name) == "=" && x.Lexpr.GetColumnRef() != nil &&
		x.Rexpr.GetColumnRef() != nil
}

// hasOwnParams tells whether the parameters in n stand nowhere else in the text, where they might have other types.
func (f *searchFinder) hasOwnParams(n proto.Message) bool {
	ownUses := map[int32]int{}
	countParams(n, ownUses)
	for number, usesHere := range ownUses {
		if f.paramUses[number] != usesHere {
			return false
		}
	}
	return true
}

// countParams adds to occurs how often each parameter stands in a tree.
func countParams(tree proto.Message, occurs map[int32]int) {
	sqltext.Walk(tree, func(m proto.Message) bool {
		if p, isOfKind := m.(*sqltext.ParamRef); isOfKind {
			occurs[p.Number]++
		}
		return true
	})
}

// queriesOf returns all SELECT, UPDATE and DELETE nodes of a tree, always in the same order.
func queriesOf(tree *sqltext.ParseResult) []proto.Message {
	var out []proto.Message
	sqltext.Walk(tree, func(m proto.Message) bool {
		if whereOf(m) != nil {
			out = append(out, m)
		}
		return true
	})
	return out
}

// whereOf returns a pointer to the condition of a SELECT, UPDATE or DELETE; nil for other nodes.
func whereOf(m proto.Message) **sqltext.Node {
	switch x := m.(type) {
	case *sqltext.SelectStmt:
		return &x.WhereClause
	case *sqltext.UpdateStmt:
		return &x.WhereClause
	case *sqltext.DeleteStmt:
		return &x.WhereClause
	}
	return nil
}

// locateSearches finds the index of each search's query in queriesOf(tree). The result is false if some query is no
// longer there.
func locateSearches(tree *sqltext.ParseResult, searches []keySearch) bool {
	queries := queriesOf(tree)
	for i := range searches {
		if searches[i].queryIndex = slices.Index(queries, searches[i].query); searches[i].queryIndex < 0 {
			return false
		}
	}
	return true
}

// addKeyConditions writes the conditions on keys behind the conditions of the searches. ok is false if the text cannot
// be written that way.
func addKeyConditions(text string, searches []keySearch) (out string, position func(int) int, ok bool,
	refusal *sqlstate.Error) {
	source, refusal := sqltext.Scan(text)
	if refusal != nil {
		return "", nil, false, refusal
	}
	tree, refusal := source.Parse()
	if refusal != nil {
		return "", nil, false, refusal
	}
	queries := queriesOf(tree)
	var edits []sqltext.Edit
	var apply []func() bool
	for _, search := range searches {
		if search.queryIndex >= len(queries) {
			return "", nil, false, nil
		}
		where := whereOf(queries[search.queryIndex])
		conditions := splitConjuncts(*where)
		spans, found := source.WhereConditions(*where)
		if !found || len(spans) != len(conditions) || len(spans) != len(search.isKeyCondition) {
			return "", nil, false, nil
		}
		key := catalog.QuoteIdent(search.alias) + "." + catalog.QuoteIdent(search.key)
		frame := key + " = ANY (ARRAY(SELECT " + key + " FROM " + predicate.SignedView(search.ref.name).SQL() +
			" AS " + catalog.QuoteIdent(search.alias)
		all := textSearchFunctions(fromClauseOf(queries[search.queryIndex]))
		for _, k := range search.textSearches {
			if k >= len(all) {
				return "", nil, false, nil
			}
			text, found := rangeFunctionText(source, all[k])
			if !found {
				return "", nil, false, nil
			}
			frame += ", " + text
		}
		frame += " WHERE "
		var texts []string
		var innerConditions []*sqltext.Node
		last := 0
		for i, isOfKind := range search.isKeyCondition {
			if isOfKind {
				texts, innerConditions, last = append(texts, text[spans[i].Start:spans[i].End]), append(innerConditions,
					proto.Clone(conditions[i]).(*sqltext.Node)), i
			}
		}
		joinedTree, refusal := sqltext.Parse("SELECT WHERE " + frame + "true))")
		if refusal != nil {
			return "", nil, false, refusal
		}
		node := joinedTree.Stmts[0].GetStmt().GetSelectStmt().WhereClause
		keys := node.GetAExpr().Rexpr.GetSubLink().GetSubselect().GetSelectStmt()
		keys.WhereClause = conjunction(innerConditions)
		for i, k := range search.textSearches {
			if 1+i >= len(keys.FromClause) {
				return "", nil, false, nil
			}
			keys.FromClause[1+i] = &sqltext.Node{
				Node: &sqltext.Node_RangeFunction{RangeFunction: proto.Clone(all[k]).(*sqltext.RangeFunction)}}
		}
		edits = append(edits, sqltext.Edit{Start: spans[last].End, End: spans[last].End,
			Text: " AND " + frame + strings.Join(texts, " AND ") + "))"})
		apply = append(apply, func() bool { return insertAfter(where, conditions[last], node) })
	}
	for _, put := range apply {
		if !put() {
			return "", nil, false, nil
		}
	}
	spliced, refusal := sqltext.ApplyEdits(text, edits)
	if refusal != nil {
		return "", nil, false, refusal
	}
	if len(spliced.Text) > sqltext.MaxBytes() || sqltext.ProveSameTree(tree, spliced.Text) != nil {
		return "", nil, false, nil // some word of the text means something else than assumed, so the text stays as it was
	}
	return spliced.Text, spliced.Position, true, nil
}

// insertAfter joins the condition put to a condition of a WHERE clause by AND, directly behind it.
func insertAfter(where **sqltext.Node, condition, put *sqltext.Node) bool {
	if *where == condition {
		*where = conjunction([]*sqltext.Node{condition, put})
		return true
	}
	b := (*where).GetBoolExpr()
	if b == nil || b.Boolop != sqltext.AND_EXPR {
		return false
	}
	if i := slices.Index(b.Args, condition); i >= 0 {
		b.Args = slices.Insert(b.Args, i+1, put)
		return true
	}
	return slices.ContainsFunc(b.Args, func(arg *sqltext.Node) bool { return insertAfter(&arg, condition, put) })
}
