package rewrite

import "github.com/pgconsent/pgconsent/internal/sql/sqltext"

// deleteStmt visits DELETE and returns the names of the columns that it returns, or nil.
func (w *walker) deleteStmt(s *sqltext.DeleteStmt) map[string]bool {
	w.saw("DeleteStmt")
	return w.withScope(s.WithClause, func(own *scope) map[string]bool {
		t := w.target(s.Relation, "DELETE")
		if t == nil {
			return nil
		}
		own.add(t.item)
		for _, n := range s.UsingClause {
			w.fromItem(n, own, nil, mayInject)
		}
		w.where(s.WhereClause)
		return w.returning(&s.ReturningList)
	})
}
