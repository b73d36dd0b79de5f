package rewrite

import (
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// visitLockingClauses visits FOR UPDATE and similar clauses. They lock rows that the statement returns, which row
// security has let through. Agents must be able to update the table: PostgreSQL wants that right. A table on which
// other rules depend has no locks if agents may not update all its visible rows. A lock on a consent would keep others
// from withdrawing it. first is the index of the first reference in FROM.
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
				w.checkLockable(item.references) // the clause locks every table of a subquery
			}
		}
	}
}

// checkLockable refuses relations whose rows agents may not lock.
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
