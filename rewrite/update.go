package rewrite

import "github.com/pgconsent/pgconsent/internal/sql/sqltext"

// updateStmt visits UPDATE and returns the names of the columns that it returns, or nil.
func (w *walker) updateStmt(s *sqltext.UpdateStmt) map[string]bool {
	w.saw("UpdateStmt")
	return w.withScope(s.WithClause, func(own *scope) map[string]bool {
		t := w.target(s.Relation, "UPDATE")
		if t == nil {
			return nil
		}
		own.add(t.item)
		for _, n := range s.FromClause {
			w.fromItem(n, own, nil, mayInject)
		}
		w.setList(t, s.TargetList)
		w.where(s.WhereClause)
		return w.returning(&s.ReturningList)
	})
}
