package rewrite

import "github.com/pgconsent/pgconsent/internal/sql/sqltext"

// updateStmt visits UPDATE and returns the names of its RETURNING columns, or nil if there are none.
func (w *walker) updateStmt(s *sqltext.UpdateStmt) map[string]bool {
	w.countNode("UpdateStmt")
	return w.withScope(s.WithClause, func(ownScope *scope) map[string]bool {
		t := w.visitTarget(s.Relation, "UPDATE")
		if t == nil {
			return nil
		}
		ownScope.add(t.item)
		for _, n := range s.FromClause {
			w.visitFromItem(n, ownScope, nil, mayInject)
		}
		w.visitSetList(t, s.TargetList)
		w.visitWhere(s.WhereClause)
		return w.visitReturning(&s.ReturningList)
	})
}
