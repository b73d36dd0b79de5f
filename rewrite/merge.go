package rewrite

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// minMergeVersion is the first PostgreSQL version whose MERGE applies row security to all its commands
// (CVE-2023-39418).
const minMergeVersion = 150004

// mergeStmt visits MERGE.
func (w *walker) mergeStmt(s *sqltext.MergeStmt) {
	w.countNode("MergeStmt")
	if w.snap.ServerVersion() < minMergeVersion {
		w.refuse(sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonStatement,
			"MERGE is not available to agents on this server").
			WithHint("PostgreSQL heeds row security in MERGE from 15.4 on. Use INSERT, UPDATE and DELETE."))
		return
	}
	w.withScope(s.WithClause, func(ownScope *scope) map[string]bool {
		var commands []string
		for _, n := range s.MergeWhenClauses {
			switch n.GetMergeWhenClause().GetCommandType() {
			case sqltext.CMD_INSERT:
				commands = append(commands, "INSERT")
			case sqltext.CMD_UPDATE:
				commands = append(commands, "UPDATE")
			case sqltext.CMD_DELETE:
				commands = append(commands, "DELETE")
			case sqltext.CMD_NOTHING:
			default:
				w.refuse(refusalOf("MergeWhenClause"))
				return nil
			}
		}
		if len(commands) == 0 {
			w.refuse(refusalOf("MergeStmt(nothing)"))
			return nil
		}
		t := w.visitTarget(s.Relation, commands...)
		if t == nil {
			return nil
		}
		if t.ref.fragment.isView() {
			w.refuseAt(refusalOf("MergeStmt(view)"), t.ref.start)
			return nil
		}
		ownScope.add(t.item)
		w.visitFromItem(s.SourceRelation, ownScope, nil, mayInject)
		w.visitExpr(s.JoinCondition)
		for _, n := range s.MergeWhenClauses {
			w.visitMergeWhen(t, n.GetMergeWhenClause())
		}
		return nil
	})
}

func (w *walker) visitMergeWhen(t *writeTarget, c *sqltext.MergeWhenClause) {
	w.countNode("MergeWhenClause")
	w.visitExpr(c.Condition)
	switch c.CommandType {
	case sqltext.CMD_UPDATE:
		w.visitSetList(t, c.TargetList)
	case sqltext.CMD_INSERT:
		w.noteOmitted(t, c.TargetList, nil, len(c.Values), !slices.ContainsFunc(c.Values, isStar))
		if len(c.TargetList) == 0 {
			isKnown := !slices.ContainsFunc(c.Values, isStar)
			w.checkImpliedColumns(t, len(c.Values), isKnown)
		}
		for _, n := range c.TargetList {
			column := n.GetResTarget()
			if column == nil || column.Val != nil {
				w.refuse(refusalOf(sqltext.NodeKind(n)))
				return
			}
			w.countNode("ResTarget")
			w.checkWritable(t, column.Name, t.table.Write.Insertable, column.Location)
			w.visitAssignedParts(column.Indirection)
		}
		for _, n := range c.Values {
			w.visitAssignedValue(n)
		}
	}
}
