package rewrite

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// minMergeVersion is the first server whose MERGE heeds row security (CVE-2023-39418).
const minMergeVersion = 150004

// mergeStmt visits MERGE.
func (w *walker) mergeStmt(s *sqltext.MergeStmt) {
	w.saw("MergeStmt")
	if w.snap.ServerVersion() < minMergeVersion {
		w.refuse(sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonStatement,
			"MERGE is not available to agents on this server").
			WithHint("PostgreSQL heeds row security in MERGE from 15.4 on. Use INSERT, UPDATE and DELETE."))
		return
	}
	w.withScope(s.WithClause, func(own *scope) map[string]bool {
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
				w.refuse(refusal("MergeWhenClause"))
				return nil
			}
		}
		if len(commands) == 0 {
			w.refuse(refusal("MergeStmt(nothing)"))
			return nil
		}
		t := w.target(s.Relation, commands...)
		if t == nil {
			return nil
		}
		if t.ref.fragment.isView() {
			w.refuseAt(refusal("MergeStmt(view)"), t.ref.start)
			return nil
		}
		own.add(t.item)
		w.fromItem(s.SourceRelation, own, nil, mayInject)
		w.expr(s.JoinCondition)
		for _, n := range s.MergeWhenClauses {
			w.mergeWhen(t, n.GetMergeWhenClause())
		}
		return nil
	})
}

func (w *walker) mergeWhen(t *writeTarget, c *sqltext.MergeWhenClause) {
	w.saw("MergeWhenClause")
	w.expr(c.Condition)
	switch c.CommandType {
	case sqltext.CMD_UPDATE:
		w.setList(t, c.TargetList)
	case sqltext.CMD_INSERT:
		w.noteOmitted(t, c.TargetList, nil, len(c.Values), !slices.ContainsFunc(c.Values, isStar))
		if len(c.TargetList) == 0 {
			known := !slices.ContainsFunc(c.Values, isStar)
			w.impliedColumns(t, len(c.Values), known)
		}
		for _, n := range c.TargetList {
			column := n.GetResTarget()
			if column == nil || column.Val != nil {
				w.refuse(refusal(sqltext.Kind(n)))
				return
			}
			w.saw("ResTarget")
			w.checkWritable(t, column.Name, t.table.Write.Insertable, column.Location)
			w.visitAssignedParts(column.Indirection)
		}
		for _, n := range c.Values {
			w.assignedValue(n)
		}
	}
}
