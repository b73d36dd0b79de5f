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
func (w *walker) readsOne(tree *sqltext.ParseResult) bool {
	if w.view || len(tree.Stmts) != 1 {
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
		slices.ContainsFunc(w.references, func(ref *reference) bool { return ref.rangeVar == rv && ref.table < 0 })
}

// searches are the operators that people ask for because an index answers them. PostgreSQL may read an index in the
// order that is asked for, and stop at the limit, as long as nothing is behind OFFSET 0: only a search is worth that.
var searches = []string{"@@", "@>", "<@", "&&", "?", "?|", "?&", "%", "<%", "%>"}

// behind vets a SELECT over one table of which some conditions find the rows.
func (v *vetter) behind(s *sqltext.SelectStmt) {
	own := place{scope: &vetScope{items: v.from(s.FromClause[0], place{})}}
	own.output, own.above = true, true
	v.limit(s.LimitCount, true)
	v.limit(s.LimitOffset, true)
	if v.reason != "" {
		return
	}
	conditions := conjuncts(s.WhereClause)
	search := false
	for _, n := range conditions {
		before := v.mark()
		v.condition(n, place{scope: own.scope})
		vetted := v.reason == ""
		if !vetted {
			v.reset(before)
		}
		v.found = append(v.found, vetted)
		search = search || vetted && searchesBy(n)
	}
	switch leaky := v.leaky; {
	case !leaky:
		v.no("no condition finds rows that row security would not")
		return
	case !search && len(s.SortClause) > 0 && s.LimitCount != nil:
		v.no("an index may have its order")
		return
	}
	for i, n := range conditions {
		if !v.found[i] {
			v.output(n, own)
		}
	}
	grouped := own
	grouped.aggregate = true
	v.results(s, own, grouped)
	v.ofOneType()
	v.leaky, v.searches = true, true
}

// ofOneType wants parameters that stand in several places to have one type in all of them: PostgreSQL takes the type of
// what it sees first beside one, and sees the conditions that find rows first now.
func (v *vetter) ofOneType() {
	for number, beside := range v.sized {
		if k := v.params[number]; k != kindInt && k != kindInts && k != "float" { // of others one type has the kind
			continue
		}
		if slices.ContainsFunc(beside, func(oid uint32) bool { return len(beside) > 1 && (oid == 0 || oid != beside[0]) }) {
			v.no("parameter $%d stands beside several types", number)
		}
	}
}

// searchesBy tells whether a condition is a search.
func searchesBy(n *sqltext.Node) bool {
	x := n.GetAExpr()
	return x != nil && x.Kind == sqltext.AEXPR_OP && slices.Contains(searches, lastName(x.Name))
}

// foundFirst writes a SELECT over one table with the conditions that find its rows behind OFFSET 0. False: it cannot be
// written so.
func foundFirst(text string, found []bool) (out string, position func(int) int, ok bool, refused *sqlstate.Error) {
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
	var moved moves
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

	item, refused := behindOffset(name, s.FromClause, and(first))
	if refused != nil {
		return "", nil, false, refused
	}
	s.FromClause, s.WhereClause = []*sqltext.Node{item}, and(rest)
	out = moved.text.String()
	if refused := sqltext.Prove(tree, out); refused != nil {
		return "", nil, false, nil // words that are not what they seem: the text is still as it was
	}
	return out, moved.position, true, nil
}

// moves is a text made of stretches of another.
type moves struct {
	text   strings.Builder
	copied []stretch
	length int // in characters
}

// stretch says where a stretch of the new text was in the other, in characters counted from 0.
type stretch struct{ at, origin, length int }

func (m *moves) write(text string) {
	m.text.WriteString(text)
	m.length += utf8.RuneCountInString(text)
}

func (m *moves) copy(text string, of sqltext.Span) {
	length := utf8.RuneCountInString(text[of.Start:of.End])
	m.copied = append(m.copied, stretch{m.length, utf8.RuneCountInString(text[:of.Start]), length})
	m.write(text[of.Start:of.End])
}

// position maps a 1-based character position in the new text to one in the other; what was put in is where the stretch
// before it ends.
func (m *moves) position(p int) int {
	if p <= 0 {
		return p
	}
	last := m.copied[0]
	for _, s := range m.copied {
		if s.at <= p-1 {
			last = s
		}
	}
	return last.origin + min(p-1-last.at, last.length) + 1
}
