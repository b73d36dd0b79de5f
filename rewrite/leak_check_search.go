package rewrite

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// A search has other conditions beside it, and groups and sorts by what is not leak-safe: `found @@ q AND body ~ 'x' GROUP
// BY date_trunc('day', at)`. Where it is of one table, the leak-safe conditions find the rows behind OFFSET 0, into which
// the planner moves nothing:
//
//	SELECT ... FROM (SELECT * FROM pgconsent_gate.door_t AS t WHERE found @@ q OFFSET 0) AS t WHERE body ~ 'x' GROUP BY ...
//
// All that stands above is computed of visible rows, and may be what an output may be (leak_check_output.go). The planner asks
// no statistics for it either: what is not leak-proof gets none of a table with row security, which is in force for the
// reader of the signed views.

// readsOne tells whether the statement is one SELECT whose FROM is one table.
func (w *walker) readsOneTable(tree *sqltext.ParseResult) bool {
	if w.isView || len(tree.Stmts) != 1 {
		return false
	}
	s := tree.Stmts[0].GetStmt().GetSelectStmt()
	if s == nil || s.WhereClause == nil || s.WithClause != nil || s.Op != sqltext.SETOP_NONE ||
		len(s.FromClause) != 1 || len(s.LockingClause) > 0 || s.IntoClause != nil ||
		s.LimitOption != sqltext.LIMIT_OPTION_DEFAULT && s.LimitOption != sqltext.LIMIT_OPTION_COUNT {
		return false
	}
	rv := s.FromClause[0].GetRangeVar()
	return rv != nil && len(rv.GetAlias().GetColnames()) == 0 &&
		slices.ContainsFunc(w.references, func(ref *reference) bool { return ref.rangeVar == rv && ref.tableToken < 0 })
}

// searches are the operators that people ask for because an index answers them. PostgreSQL may read an index in the
// order that is asked for, and stop at the limit, as long as nothing is behind OFFSET 0: only a search is worth that.
var indexSearchOperators = []string{"@@", "@>", "<@", "&&", "?", "?|", "?&", "%", "<%", "%>"}

// behind vets a SELECT over one table of which some conditions find the rows.
func (v *leakChecker) checkBelowFence(s *sqltext.SelectStmt) {
	own := checkContext{scope: &leakScope{items: v.from(s.FromClause[0], checkContext{})}}
	own.isOutput, own.aboveFence = true, true
	v.limit(s.LimitCount, true)
	v.limit(s.LimitOffset, true)
	if v.reason != "" {
		return
	}
	conditions := conjuncts(s.WhereClause)
	search := false
	for _, n := range conditions {
		before := v.saveState()
		v.condition(n, checkContext{scope: own.scope})
		leakSafe := v.reason == ""
		if !leakSafe {
			v.restoreState(before)
		}
		v.belowFence = append(v.belowFence, leakSafe)
		search = search || leakSafe && isIndexSearch(n)
	}
	switch leaky := v.leaky; {
	case !leaky:
		v.reject("no condition finds rows that row security would not")
		return
	case !search && len(s.SortClause) > 0 && s.LimitCount != nil:
		v.reject("an index may have its order")
		return
	}
	for i, n := range conditions {
		if !v.belowFence[i] {
			v.outputExpr(n, own)
		}
	}
	grouped := own
	grouped.aggregateAllowed = true
	v.results(s, own, grouped)
	v.checkParamTypes()
	v.leaky, v.indexSearch = true, true
}

// ofOneType wants parameters that stand in several places to have one type in all of them: PostgreSQL takes the type of
// what it sees first beside one, and sees the conditions that find rows first now.
func (v *leakChecker) checkParamTypes() {
	for number, beside := range v.paramNeighbours {
		if k := v.paramKinds[number]; k != kindInt && k != kindInts && k != "float" { // of others one type has the kind
			continue
		}
		if slices.ContainsFunc(beside, func(oid uint32) bool { return len(beside) > 1 && (oid == 0 || oid != beside[0]) }) {
			v.reject("parameter $%d stands beside several types", number)
		}
	}
}

// searchesBy tells whether a condition is a search.
func isIndexSearch(n *sqltext.Node) bool {
	x := n.GetAExpr()
	return x != nil && x.Kind == sqltext.AEXPR_OP && slices.Contains(indexSearchOperators, lastName(x.Name))
}

// foundFirst writes a SELECT over one table with the conditions that find its rows behind OFFSET 0. False: it cannot be
// written so.
func fenceConditions(text string, found []bool) (out string, position func(int) int, ok bool, refused *sqlstate.Error) {
	source, refused := sqltext.Scan(text)
	if refused != nil {
		return "", nil, false, refused
	}
	tree, refused := source.Parse()
	if refused != nil {
		return "", nil, false, refused
	}
	clauses, ok := source.Clauses()
	if !ok || len(tree.Stmts) != 1 || len(clauses.Conditions) != len(found) {
		return "", nil, false, nil
	}
	s := tree.Stmts[0].GetStmt().GetSelectStmt()
	conditions := conjuncts(s.GetWhereClause())
	name := s.GetFromClause()[0].GetRangeVar().GetAlias().GetAliasname()
	if len(conditions) != len(found) || name == "" {
		return "", nil, false, nil
	}
	var moved movedText
	parts := func(inside bool, before string) (trees []*sqltext.Node) {
		for i, is := range found {
			if is == inside {
				moved.write(before)
				moved.copy(text, clauses.Conditions[i])
				trees = append(trees, conditions[i])
				before = " AND "
			}
		}
		return trees
	}
	moved.copy(text, sqltext.Span{End: clauses.From.Start})
	moved.write("(SELECT * FROM ")
	moved.copy(text, clauses.From)
	first := parts(true, " WHERE ")
	moved.write(" OFFSET 0) AS " + catalog.QuoteIdent(name))
	rest := parts(false, " WHERE ")
	moved.copy(text, sqltext.Span{Start: clauses.End, End: int32(len(text))})

	item, refused := behindOffset(name, s.FromClause, conjunction(first))
	if refused != nil {
		return "", nil, false, refused
	}
	s.FromClause, s.WhereClause = []*sqltext.Node{item}, conjunction(rest)
	out = moved.text.String()
	if refused := sqltext.Prove(tree, out); refused != nil {
		return "", nil, false, nil // words that are not what they seem: the text is still as it was
	}
	return out, moved.position, true, nil
}

// moves is a text made of stretches of another.
type movedText struct {
	text   strings.Builder
	spans  []copiedSpan
	length int // in characters
}

// stretch says where a stretch of the new text was in the other, in characters counted from 0.
type copiedSpan struct{ at, origin, length int }

func (m *movedText) write(text string) {
	m.text.WriteString(text)
	m.length += utf8.RuneCountInString(text)
}

func (m *movedText) copy(text string, of sqltext.Span) {
	length := utf8.RuneCountInString(text[of.Start:of.End])
	m.spans = append(m.spans, copiedSpan{m.length, utf8.RuneCountInString(text[:of.Start]), length})
	m.write(text[of.Start:of.End])
}

// position maps a 1-based character position in the new text to one in the other; what was put in is where the stretch
// before it ends.
func (m *movedText) position(p int) int {
	if p <= 0 {
		return p
	}
	last := m.spans[0]
	for _, s := range m.spans {
		if s.at <= p-1 {
			last = s
		}
	}
	return last.origin + min(p-1-last.at, last.length) + 1
}
