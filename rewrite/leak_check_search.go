package rewrite

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// A statement may search by an index and also have other conditions, groups or sort keys that are not leak-safe: `found
// @@ q AND body ~ 'x' GROUP BY date_trunc('day', at)`. If it reads only one table, the rewriter puts the leak-safe
// conditions below a fence, OFFSET 0, through which the planner moves nothing:
//
//	SELECT ... FROM (SELECT * FROM pgconsent_signed.visible_t AS t WHERE found @@ q OFFSET 0) AS t WHERE body ~ 'x' ...
//
// PostgreSQL computes everything above the fence for visible rows only, so those expressions may be any that an output
// may be (leak_check_output.go). The planner does not evaluate them on statistics either. It uses the statistics of a
// table with row security only for leak-proof functions, and row security applies to the reader of a signed view.

// readsOneTable tells whether the text is a single SELECT with one FROM item and a WHERE clause.
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

// indexSearchOperators are the operators of searches for which PostgreSQL uses an index. Without a fence PostgreSQL may
// instead read an index in the order of ORDER BY and stop at the limit. The fence prevents that, which is worthwhile
// only for such a search.
var indexSearchOperators = []string{"@@", "@>", "<@", "&&", "?", "?|", "?&", "%", "<%", "%>"}

// checkBelowFence checks a SELECT over one table, and finds the conditions that the rewriter may put below the fence.
func (v *leakChecker) checkBelowFence(s *sqltext.SelectStmt) {
	ownContext := checkContext{scope: &leakScope{items: v.checkFrom(s.FromClause[0], checkContext{})}}
	ownContext.isOutput, ownContext.aboveFence = true, true
	v.checkLimit(s.LimitCount, true)
	v.checkLimit(s.LimitOffset, true)
	if v.reason != "" {
		return
	}
	conditions := splitConjuncts(s.WhereClause)
	search := false
	for _, n := range conditions {
		stateBefore := v.saveState()
		v.checkCondition(n, checkContext{scope: ownContext.scope})
		leakSafe := v.reason == ""
		if !leakSafe {
			v.restoreState(stateBefore)
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
			v.checkOutput(n, ownContext)
		}
	}
	grouped := ownContext
	grouped.aggregateAllowed = true
	v.checkResults(s, ownContext, grouped)
	v.checkParamTypes()
	v.leaky, v.indexSearch = true, true
}

// checkParamTypes rejects a text that uses a parameter several times beside operands of different types. PostgreSQL
// gives a parameter the type of the operand that it reads first, and in the new text it reads the conditions below the
// fence first.
func (v *leakChecker) checkParamTypes() {
	for number, neighbours := range v.paramNeighbours {
		// Each kind other than these belongs to a single type, which PostgreSQL infers in any order.
		if k := v.paramKinds[number]; k != kindInt && k != kindInts && k != "float" {
			continue
		}
		if slices.ContainsFunc(neighbours, func(oid uint32) bool {
			return len(neighbours) > 1 &&
				(oid == 0 || oid != neighbours[0])
		}) {
			v.reject("parameter $%d stands beside several types", number)
		}
	}
}

// isIndexSearch tells whether a condition is a search for which PostgreSQL can use an index.
func isIndexSearch(n *sqltext.Node) bool {
	x := n.GetAExpr()
	return x != nil && x.Kind == sqltext.AEXPR_OP && slices.Contains(indexSearchOperators, lastNamePart(x.Name))
}

// fenceConditions puts those conditions of a SELECT over one table below OFFSET 0 for which found is true. ok is false
// if the text cannot be written that way.
func fenceConditions(text string, found []bool) (out string, position func(int) int, ok bool, refusal *sqlstate.Error) {
	source, refusal := sqltext.Scan(text)
	if refusal != nil {
		return "", nil, false, refusal
	}
	tree, refusal := source.Parse()
	if refusal != nil {
		return "", nil, false, refusal
	}
	clauses, ok := source.Clauses()
	if !ok || len(tree.Stmts) != 1 || len(clauses.WhereConditions) != len(found) {
		return "", nil, false, nil
	}
	s := tree.Stmts[0].GetStmt().GetSelectStmt()
	conditions := splitConjuncts(s.GetWhereClause())
	name := s.GetFromClause()[0].GetRangeVar().GetAlias().GetAliasname()
	if len(conditions) != len(found) || name == "" {
		return "", nil, false, nil
	}
	var movedParts rearrangedText
	parts := func(inside bool, before string) (trees []*sqltext.Node) {
		for i, isOfKind := range found {
			if isOfKind == inside {
				movedParts.write(before)
				movedParts.copySpan(text, clauses.WhereConditions[i])
				trees = append(trees, conditions[i])
				before = " AND "
			}
		}
		return trees
	}
	movedParts.copySpan(text, sqltext.Span{End: clauses.From.Start})
	movedParts.write("(SELECT * FROM ")
	movedParts.copySpan(text, clauses.From)
	fencedConditions := parts(true, " WHERE ")
	movedParts.write(" OFFSET 0) AS " + catalog.QuoteIdent(name))
	otherConditions := parts(false, " WHERE ")
	movedParts.copySpan(text, sqltext.Span{Start: clauses.WhereEnd, End: int32(len(text))})

	item, refusal := offsetZeroItem(name, s.FromClause, conjunction(fencedConditions))
	if refusal != nil {
		return "", nil, false, refusal
	}
	s.FromClause, s.WhereClause = []*sqltext.Node{item}, conjunction(otherConditions)
	out = movedParts.text.String()
	if refusal := sqltext.ProveSameTree(tree, out); refusal != nil {
		return "", nil, false, nil // some word of the text means something else than assumed, so the text stays as it was
	}
	return out, movedParts.originalPosition, true, nil
}

// rearrangedText builds a text from spans of another text, in another order.
type rearrangedText struct {
	text   strings.Builder
	spans  []copiedSpan
	length int // the length of the text, in characters
}

// copiedSpan says where a span stands in the new text (at) and where it stood in the old text (origin). Both count
// characters from 0.
type copiedSpan struct{ at, origin, length int }

func (m *rearrangedText) write(text string) {
	m.text.WriteString(text)
	m.length += utf8.RuneCountInString(text)
}

func (m *rearrangedText) copySpan(text string, span sqltext.Span) {
	length := utf8.RuneCountInString(text[span.Start:span.End])
	m.spans = append(m.spans, copiedSpan{m.length, utf8.RuneCountInString(text[:span.Start]), length})
	m.write(text[span.Start:span.End])
}

// originalPosition returns the position in the old text for a position in the new text; both count characters from 1.
// For a position in an inserted text, the result is the end of the copied span before it.
func (m *rearrangedText) originalPosition(p int) int {
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
