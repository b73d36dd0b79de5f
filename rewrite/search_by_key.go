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

// A search may stand in a join, a sub-select or a WITH query, beside expressions that are not leak-safe. Then the
// statement reads its tables under row security, where the search uses no index. If the search's own conditions are
// leak-safe, the statement looks up the keys of its rows on the signed path, and reads the rows with these keys:
//
//	... WHERE n.found @@ q AND n.id = ANY (ARRAY(SELECT n.id FROM pgconsent_signed.visible_n AS n WHERE n.found @@ q)) ...
//
// The rest stays as it was, under row security. The added condition can only leave rows out, whatever the keys are. The
// keys are those of all visible rows that meet the conditions beside it, and equality of keys is leak-proof. The form
// depends on the text and the catalog alone.

// keySearch is a search whose rows are found by key.
type keySearch struct {
	query          proto.Message // a SELECT, UPDATE or DELETE
	ref            *reference
	alias          string // the alias of the table
	key            string // its primary key
	isKeyCondition []bool // for each condition of the query, whether it finds rows by key
	textSearches   []int  // which text searches in FROM these conditions name
	queryIndex     int    // the index of the query in queriesOf
}

// findKeySearches finds the searches of a statement that are worth it. allLeakSafe tells that the whole statement is
// leak-safe. Then its signed views find rows by an index if it joins nothing, or if it has conditions on what it joins.
func (w *walker) findKeySearches(tree *sqltext.ParseResult, allLeakSafe bool) (*leakChecker, []keySearch) {
	s, written := tree.Stmts[0].GetStmt().GetSelectStmt(), proto.Message(nil)
	if s == nil { // UPDATE or DELETE that runs no code of the owner: a hardened statement has no such form
		if u := tree.Stmts[0].GetStmt().GetUpdateStmt(); u != nil {
			written = u
		} else {
			written = tree.Stmts[0].GetStmt().GetDeleteStmt()
		}
		_, s = asSelect(tree.Stmts[0].GetStmt())
	}
	if s == nil || s.IntoClause != nil || len(s.LockingClause) > 0 || written != nil && w.locks ||
		!w.onlyTables(written != nil) || slices.ContainsFunc(slices.Collect(maps.Keys(w.functions)),
		func(name string) bool { return !strings.HasPrefix(name, "pg_catalog.") }) {
		return nil, nil
	}
	v := w.newLeakChecker()
	f := searchFinder{leakChecker: v, allLeakSafe: allLeakSafe, paramUses: map[int32]int{},
		referenceOf: w.referencesByRangeVar(), writeStmt: written, asSelect: s}
	countParams(tree, f.paramUses)
	f.query(s)
	v.checkNarrowParams()
	v.checkParamTypes()
	if v.reason != "" || len(f.found) == 0 || len(f.found) > maxKeySearches {
		return nil, nil
	}
	return v, f.found
}

// useKeySearches notes them, and what they rely on in the values of parameters. With such values their conditions
// cannot fail. If the statement was to be hardened for these conditions only, it is not.
func (w *walker) useKeySearches(tree *sqltext.ParseResult, result *Result, allLeakSafe bool) {
	v, searches := w.findKeySearches(tree, allLeakSafe)
	if len(searches) == 0 {
		return
	}
	if !allLeakSafe && w.mayFail {
		var leakSafe []*sqltext.Node
		for _, search := range searches {
			for i, n := range conjuncts(*whereOf(search.query)) {
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

// isFoundByKey tells whether rows of a table are found by key.
func (w *walker) isFoundByKey(ref *reference) bool {
	return slices.ContainsFunc(w.keySearches, func(s keySearch) bool { return s.ref == ref })
}

// maxKeySearches bounds how much longer a text becomes.
const maxKeySearches = 4

// onlyTables tells whether a statement reads only tables of the policy: a view may call functions of the owner, which
// would see the signed text.
func (w *walker) onlyTables(writes bool) bool {
	return !slices.ContainsFunc(w.references, func(ref *reference) bool {
		if ref.fragment == nil || ref.relation == nil {
			return true
		}
		_, listed := w.pol.Table(ref.name)
		return !listed || ref.relation.Kind != catalog.Table && ref.relation.Kind != catalog.PartitionedTable ||
			ref.isTarget && !writes || ref.repeated
	})
}

type searchFinder struct {
	*leakChecker
	allLeakSafe bool
	paramUses   map[int32]int // how often each parameter stands in the text
	referenceOf map[*sqltext.RangeVar]*reference
	found       []keySearch

	writeStmt proto.Message       // the UPDATE or DELETE
	asSelect  *sqltext.SelectStmt // the SELECT that it is checked as
}

// query looks at a query, and at those that run once for it.
func (f *searchFinder) query(s *sqltext.SelectStmt) {
	if s == nil || len(s.LockingClause) > 0 {
		return
	}
	if !s.GetWithClause().GetRecursive() {
		for _, n := range s.GetWithClause().GetCtes() {
			f.query(n.GetCommonTableExpr().GetCtequery().GetSelectStmt())
		}
	}
	f.query(s.Larg)
	f.query(s.Rarg)
	var tables []*sqltext.RangeVar
	plain, optional := true, map[*sqltext.RangeVar]bool{}
	only := true // it reads tables, and calls text search functions
	var from func(n *sqltext.Node, missing bool)
	from = func(n *sqltext.Node, missing bool) {
		switch n := n.GetNode().(type) {
		case *sqltext.Node_RangeVar:
			tables = append(tables, n.RangeVar)
			optional[n.RangeVar] = missing
		case *sqltext.Node_RangeSubselect:
			only = false
			if !n.RangeSubselect.Lateral {
				f.query(n.RangeSubselect.GetSubquery().GetSelectStmt())
			}
		case *sqltext.Node_JoinExpr:
			j := n.JoinExpr
			plain = plain && !j.IsNatural && j.Alias == nil && j.JoinUsingAlias == nil && len(j.UsingClause) == 0
			from(j.Larg, missing || j.Jointype != sqltext.JOIN_INNER && j.Jointype != sqltext.JOIN_LEFT)
			from(j.Rarg, missing || j.Jointype != sqltext.JOIN_INNER && j.Jointype != sqltext.JOIN_RIGHT)
		}
	}
	for _, n := range s.FromClause {
		from(n, false)
	}
	conditions := conjuncts(s.WhereClause)
	for _, n := range conditions {
		if not := n.GetBoolExpr(); not != nil && not.Boolop == sqltext.NOT_EXPR {
			n = not.Args[0]
		}
		if link := n.GetSubLink(); link != nil &&
			(link.SubLinkType == sqltext.EXISTS_SUBLINK || link.SubLinkType == sqltext.ANY_SUBLINK && len(link.OperName) == 0) {
			f.query(link.GetSubselect().GetSelectStmt())
		}
	}
	if !plain || f.allLeakSafe && len(tables) == 1 && (only || len(s.FromClause) == 1) {
		return
	}
	for _, rv := range tables {
		f.table(s, rv, optional[rv], conditions)
	}
}

// table looks for a search of one table. optional tells that an outer join may return a row of NULLs in place of a row
// of the table. Such a row has no key, so the search must not find it. A search of a column is strict, and does not
// find it. A negated search of to_tsvector over COALESCE(body, an empty text) does.
func (f *searchFinder) table(s *sqltext.SelectStmt, rv *sqltext.RangeVar, optional bool, conditions []*sqltext.Node) {
	ref := f.referenceOf[rv]
	if ref == nil || ref.relation.Kind != catalog.Table || ref.relation.HasChildren || !ref.fragment.hasSignedView ||
		ref.fragment.showsAllRows || ref.fragment.aggregate != nil || ref.keyLookup != nil ||
		ref.notInjectedBecause != mayInject &&
			!(f.writeStmt != nil && (ref.notInjectedBecause == writeTargetTable || ref.notInjectedBecause == writesOrLocks)) ||
		ref.sharesName ||
		ref.tableToken >= 0 || len(rv.GetAlias().GetColnames()) > 0 || len(ref.relation.PrimaryKey) != 1 {
		return
	}
	f.references[rv] = ref
	item := f.leakChecker.table(rv, checkContext{})[0]
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
		before := f.saveState()
		scope, named := &leakScope{items: []*leakItem{item}}, namedFunctions(n, all)
		own := f.ownParams(n)
		for _, k := range named {
			scope.items = append(scope.items, f.textSearchItem(all[k], checkContext{mayNotRun: true})...)
			own = own && f.ownParams(all[k])
		}
		if f.condition(n, checkContext{scope: scope}); f.reason == "" && own && namesColumn(n) {
			search.isKeyCondition[i] = true
			search.textSearches = append(search.textSearches, named...)
			found = found || level.isGINSearch(level.items[0], n) &&
				(!optional || slices.ContainsFunc(searchOperands(n.GetAExpr()), of))
			continue
		}
		f.restoreState(before)
		others = others || !joinsColumns(n)
	}
	// a condition on another table may find fewer rows, and through signed views the planner knows that
	if !found || f.allLeakSafe && others {
		f.restoreState(start)
		return
	}
	slices.Sort(search.textSearches)
	search.textSearches = slices.Compact(search.textSearches)
	f.found = append(f.found, search)
}

// joinsColumns tells whether a condition is the equality of two columns.
func joinsColumns(n *sqltext.Node) bool {
	x := n.GetAExpr()
	return x != nil && x.Kind == sqltext.AEXPR_OP && lastName(x.Name) == "=" && x.Lexpr.GetColumnRef() != nil &&
		x.Rexpr.GetColumnRef() != nil
}

// ownParams tells whether the parameters of a node stand nowhere else: their types elsewhere are not known here.
func (f *searchFinder) ownParams(n proto.Message) bool {
	here := map[int32]int{}
	countParams(n, here)
	for number, stands := range here {
		if f.paramUses[number] != stands {
			return false
		}
	}
	return true
}

// countParams adds how often each parameter occurs in a tree.
func countParams(tree proto.Message, occurs map[int32]int) {
	sqltext.Walk(tree, func(m proto.Message) bool {
		if p, is := m.(*sqltext.ParamRef); is {
			occurs[p.Number]++
		}
		return true
	})
}

// queriesOf are all queries of a tree that may have conditions, in a fixed order.
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

// whereOf is where a query has its conditions; nil for other nodes.
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

// locateSearches finds the queries of the searches in the tree that the text has now.
func locateSearches(tree *sqltext.ParseResult, searches []keySearch) bool {
	queries := queriesOf(tree)
	for i := range searches {
		if searches[i].queryIndex = slices.Index(queries, searches[i].query); searches[i].queryIndex < 0 {
			return false
		}
	}
	return true
}

// addKeyConditions writes the conditions on keys beside those of the searches. ok is false if it cannot be written so.
func addKeyConditions(text string, searches []keySearch) (out string, position func(int) int, ok bool,
	refused *sqlstate.Error) {
	source, refused := sqltext.Scan(text)
	if refused != nil {
		return "", nil, false, refused
	}
	tree, refused := source.Parse()
	if refused != nil {
		return "", nil, false, refused
	}
	queries := queriesOf(tree)
	var edits []sqltext.Edit
	var apply []func() bool
	for _, search := range searches {
		if search.queryIndex >= len(queries) {
			return "", nil, false, nil
		}
		where := whereOf(queries[search.queryIndex])
		conditions := conjuncts(*where)
		spans, found := source.Joined(*where)
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
		var inner []*sqltext.Node
		last := 0
		for i, is := range search.isKeyCondition {
			if is {
				texts, inner, last = append(texts, text[spans[i].Start:spans[i].End]), append(inner,
					proto.Clone(conditions[i]).(*sqltext.Node)), i
			}
		}
		among, refused := sqltext.Parse("SELECT WHERE " + frame + "true))")
		if refused != nil {
			return "", nil, false, refused
		}
		node := among.Stmts[0].GetStmt().GetSelectStmt().WhereClause
		keys := node.GetAExpr().Rexpr.GetSubLink().GetSubselect().GetSelectStmt()
		keys.WhereClause = conjunction(inner)
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
	spliced, refused := sqltext.Splice(text, edits)
	if refused != nil {
		return "", nil, false, refused
	}
	if len(spliced.Text) > sqltext.MaxBytes() || sqltext.Prove(tree, spliced.Text) != nil {
		return "", nil, false, nil // the text has words that are not what they seem: it stays as it was
	}
	return spliced.Text, spliced.Position, true, nil
}

// insertAfter puts a condition after another, joined by AND.
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
