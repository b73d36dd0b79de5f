package rewrite

import (
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// visitLockingClauses visits FOR UPDATE and similar clauses, which lock rows that row security has accepted. PostgreSQL
// requires the right to update the table. No agent may lock rows of a table that other rules read, if it may not update
// all rows that it sees there. Otherwise a lock on the row of a consent would keep others from withdrawing it. first is
// the index of the first reference in FROM.
func (w *walker) visitLockingClauses(s *sqltext.SelectStmt, ownScope *scope, first int) {
	for _, n := range s.LockingClause {
		c := n.GetLockingClause()
		if c == nil || c.Strength == sqltext.LCS_NONE || c.Strength == sqltext.LCS_UNDEFINED {
			w.refuse(refusalOf("LockingClause(unknown)"))
			return
		}
		w.countNode("LockingClause")
		w.locksRows = true
		if len(c.LockedRels) == 0 {
			w.checkLockable(w.references[first:])
		}
		for _, n := range c.LockedRels {
			rv := n.GetRangeVar()
			if rv == nil || rv.Schemaname != "" || rv.Catalogname != "" || rv.Alias != nil {
				w.refuse(refusalOf("LockingClause(unknown)"))
				return
			}
			w.countNode("RangeVar")
			for _, item := range ownScope.byName[rv.Relname] {
				if item.ref != nil {
					w.checkLockable([]*reference{item.ref})
				}
				w.checkLockable(item.references) // the clause locks the rows of every table in a subquery
			}
		}
	}
}

// checkLockable refuses a statement that locks rows of relations for which agents may not do so.
func (w *walker) checkLockable(refs []*reference) {
	for _, ref := range refs {
		table, ok := w.pol.Table(ref.name)
		_, view := w.pol.View(ref.name)
		switch {
		case view && ref.fragment != nil:
			w.refuseAt(refusalOf("LockingClause(view)"), ref.start)
			return
		case ok && ref.fragment != nil && ref.fragment.isView() && table.Write.Allows("UPDATE") &&
			!table.Write.AffectsOtherRules:
			w.refuseAt(refusalOf("LockingClause(narrowed)"), ref.start)
			return
		}
		if ref.fragment == nil || !ok || ref.fragment.isView() || !table.Write.Allows("UPDATE") ||
			table.Write.AffectsOtherRules {
			w.refuseAt(refusalOf("LockingClause(policy)"), ref.start)
			return
		}
	}
}
