package rewrite

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// isPlainSelect tells whether a statement returns columns of tables unchanged, and filters and joins rows by conditions
// without sub-selects. Then each row of the result holds one row of each table. limit is the number after LIMIT, or -1.
func isPlainSelect(n *sqltext.Node) (limit int64, isPlain bool) {
	switch {
	case n.GetPrepareStmt() != nil:
		return isPlainSelect(n.GetPrepareStmt().Query)
	case n.GetDeclareCursorStmt() != nil:
		return isPlainSelect(n.GetDeclareCursorStmt().Query)
	}
	s := n.GetSelectStmt()
	if s == nil || s.Op != sqltext.SETOP_NONE || s.WithClause != nil || len(s.FromClause) == 0 ||
		slices.ContainsFunc(s.FromClause, isNotTableOrJoin) ||
		len(s.GroupClause) > 0 || s.HavingClause != nil || len(s.DistinctClause) > 0 || len(s.WindowClause) > 0 ||
		len(s.ValuesLists) > 0 {
		return -1, false
	}
	for _, t := range s.TargetList {
		if t.GetResTarget().GetVal().GetColumnRef() == nil {
			return -1, false
		}
	}
	kindCounts, isKnown := sqltext.CountNodeKinds(&sqltext.ParseResult{Stmts: []*sqltext.RawStmt{{Stmt: n}}})
	if !isKnown || kindCounts["SubLink"] > 0 || kindCounts["SelectStmt"] != 1 {
		return -1, false
	}
	limit = -1
	if c := s.LimitCount.GetAConst(); c.GetIval() != nil && s.LimitOption == sqltext.LIMIT_OPTION_COUNT {
		limit = int64(c.GetIval().GetIval())
	}
	return limit, true
}

// readsOneTableOnce tells whether a plain SELECT names one table, once: then each row of the result is a row of the
// table.
func readsOneTableOnce(n *sqltext.Node) bool {
	if _, isPlain := isPlainSelect(n); !isPlain {
		return false
	}
	kindCounts, isKnown := sqltext.CountNodeKinds(&sqltext.ParseResult{Stmts: []*sqltext.RawStmt{{Stmt: n}}})
	return isKnown && kindCounts["RangeVar"] == 1
}

// isNotTableOrJoin tells whether an item of FROM is neither a table nor a join of tables.
func isNotTableOrJoin(n *sqltext.Node) bool {
	if j := n.GetJoinExpr(); j != nil {
		return isNotTableOrJoin(j.Larg) || isNotTableOrJoin(j.Rarg)
	}
	return n.GetRangeVar() == nil
}
