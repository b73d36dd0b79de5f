package rewrite

import (
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// lockingClauses visits FOR UPDATE and its kin. They lock rows that the statement returns, which row security has let
// through. Agents must be able to update the table: PostgreSQL wants that right. A table on which other rules depend
// has no locks if agents may not update all its visible rows: a lock on a consent would keep others from withdrawing
// it. first is where the references of FROM begin.
func (w *walker) lockingClauses(s *sqltext.SelectStmt, own *scope, first int) {
	for _, n := range s.LockingClause {
		c := n.GetLockingClause()
		if c == nil || c.Strength == sqltext.LCS_NONE || c.Strength == sqltext.LCS_UNDEFINED {
			w.refuse(refusal("LockingClause(unknown)"))
			return
		}
		w.saw("LockingClause")
		w.locks = true
		if len(c.LockedRels) == 0 {
			w.lockable(w.references[first:])
		}
		for _, n := range c.LockedRels {
			rv := n.GetRangeVar()
			if rv == nil || rv.Schemaname != "" || rv.Catalogname != "" || rv.Alias != nil {
				w.refuse(refusal("LockingClause(unknown)"))
				return
			}
			w.saw("RangeVar")
			for _, item := range own.byName[rv.Relname] {
				if item.ref != nil {
					w.lockable([]*reference{item.ref})
				}
				w.lockable(item.references) // every table of a subquery
			}
		}
	}
}

// lockable refuses relations whose rows agents may not lock.
func (w *walker) lockable(refs []*reference) {
	for _, ref := range refs {
		table, ok := w.pol.Table(ref.name)
		_, view := w.pol.View(ref.name)
		switch {
		case view && ref.fragment != nil:
			w.refuseAt(refusal("LockingClause(view)"), ref.start)
			return
		case ok && ref.fragment != nil && ref.fragment.isView() && table.Write.Allows("UPDATE") &&
			!table.Write.AffectsOtherRules:
			w.refuseAt(refusal("LockingClause(narrowed)"), ref.start)
			return
		}
		if ref.fragment == nil || !ok || ref.fragment.isView() || !table.Write.Allows("UPDATE") ||
			table.Write.AffectsOtherRules {
			w.refuseAt(refusal("LockingClause(policy)"), ref.start)
			return
		}
	}
}
