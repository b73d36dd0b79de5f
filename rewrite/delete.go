package rewrite

import "github.com/pgconsent/pgconsent/internal/sql/sqltext"

// deleteStmt visits DELETE and returns the names of its RETURNING columns, or nil if there are none.
func (w *walker) deleteStmt(s *sqltext.DeleteStmt) map[string]bool {
	w.countNode("DeleteStmt")
	return w.withScope(s.WithClause, func(ownScope *scope) map[string]bool {
		t := w.visitTarget(s.Relation, "DELETE")
		if t == nil {
			return nil
		}
		ownScope.add(t.item)
		for _, n := range s.UsingClause {
			w.visitFromItem(n, ownScope, nil, mayInject)
		}
		w.visitWhere(s.WhereClause)
		return w.visitReturning(&s.ReturningList)
	})
}
