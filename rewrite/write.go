package rewrite

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
	"github.com/pgconsent/pgconsent/policy"
)

// Only row policies of the database filter a statement that writes. Its target must stay a table, and its text is not
// signed, since the owner's triggers may run inside it. What else it reads stays a table as well.

// writeTarget is the target of a statement that writes.
type writeTarget struct {
	ref   *reference
	table *policy.Table
	item  *fromItem
}

// target visits the table that a statement writes, under the name that its expressions use; nil after a refusal.
func (w *walker) target(rv *sqltext.RangeVar, commands ...string) *writeTarget {
	at := w.source.At(rv.GetLocation())
	ref := w.resolve(rv)
	if ref == nil {
		return nil
	}
	table, ok := w.pol.Table(ref.name)
	view, isView := w.pol.View(ref.name)
	switch {
	case ok && ref.fragment != nil && ref.relation != nil:
	case isView && view.Write != nil && ref.fragment != nil && ref.relation != nil:
		table = &policy.Table{Relation: view.Relation, Write: view.Write} // its rules are those of the table beneath
	case ref.fragment != nil: // a view that agents only read
		w.refuseAt(refusal("view(policy)"), ref.start)
		return nil
	default:
		w.refuseAt(unavailableRelationRefusal(ref.name.String()), ref.start)
		return nil
	}
	for _, command := range commands {
		if !table.Write.Allows(command) {
			location := int32(-1)
			if at >= 0 {
				location = rv.GetLocation()
			}
			w.refuseAt(refusal(command+"(policy)"), location)
			return nil
		}
	}
	if slices.Contains(commands, "INSERT") {
		for _, message := range table.Write.Notices {
			w.notices = append(w.notices, verdict.Notice{Code: sqlstate.SuccessfulCompletion, Message: message})
		}
	}
	ref.doNotInject(writeTargetTable)
	ref.isTarget = true
	w.writes = true
	item := &fromItem{name: rv.GetRelname(), ref: ref, noAlias: rv.Alias == nil, columns: columnSet(ref.relation)}
	if name, renamed := w.alias(rv.Alias); rv.Alias != nil {
		item.name = name
		if renamed {
			ref.allColumns, ref.rowType, item.columns = true, true, renamedColumns(rv.GetAlias().GetColnames())
		}
	}
	return &writeTarget{ref, table, item}
}

// keepRelationsOfWrites injects nothing in a statement that writes or locks rows.
func (w *walker) keepRelationsOfWrites() {
	if !w.writes && !w.locks {
		return
	}
	for _, ref := range w.references[w.firstReference:] {
		if ref.fragment != nil {
			ref.doNotInject(writesOrLocks)
		}
	}
}

// refuseColumn refuses a column that agents may not set.
func (w *walker) refuseColumn(t *writeTarget, column string, allowed []string, location int32) {
	hint := "The policy lets agents set no column of it that way."
	if len(allowed) > 0 {
		hint = "The policy lets agents set " + strings.Join(allowed, ", ") + "."
	}
	w.refuseAt(sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonColumn,
		"column %q of table %q is not for agents to write", column, t.ref.name.Name).WithHint("%s", hint), location)
}

// checkWritable checks a column that the statement sets. If the column does not exist, the server says so.
func (w *walker) checkWritable(t *writeTarget, column string, allowed []string, location int32) {
	w.columnNames[column] = true
	if t.ref.relation.Column(column) != nil && !slices.Contains(allowed, column) {
		w.refuseColumn(t, column, allowed, location)
	}
}

// visitAssignedParts visits the subscripts and fields of a column that is set in part: column[1], column.field.
func (w *walker) visitAssignedParts(indirection []*sqltext.Node) {
	for _, n := range indirection {
		switch part := n.GetNode().(type) {
		case *sqltext.Node_String: // a field of a composite type
		case *sqltext.Node_A_Indices:
			w.saw("A_Indices")
			w.expr(part.AIndices.Lidx)
			w.expr(part.AIndices.Uidx)
		default:
			w.refuse(refusal(sqltext.Kind(n)))
		}
	}
}

// assignedValue visits a value that is stored, which may be DEFAULT.
func (w *walker) assignedValue(n *sqltext.Node) {
	if n.GetSetToDefault() != nil {
		w.saw("SetToDefault")
		return
	}
	w.expr(n)
}

// setList visits SET a = x, (b, c) = (SELECT …).
func (w *walker) setList(t *writeTarget, targets []*sqltext.Node) {
	for _, n := range targets {
		target := n.GetResTarget()
		if target == nil {
			w.refuse(refusal(sqltext.Kind(n)))
			return
		}
		w.saw("ResTarget")
		w.checkWritable(t, target.Name, t.table.Write.Updatable, target.Location)
		w.visitAssignedParts(target.Indirection)
		if m := target.GetVal().GetMultiAssignRef(); m != nil {
			w.multiAssign(m)
		} else {
			w.assignedValue(target.Val)
		}
	}
}

// multiAssign visits the source of several columns. The tree holds it for each of them, the text once. Of the later
// copies only the tree is edited.
func (w *walker) multiAssign(m *sqltext.MultiAssignRef) {
	w.saw("MultiAssignRef")
	outer := w.repeated
	w.repeated = outer || m.Colno > 1
	defer func() { w.repeated = outer }()
	if row := m.GetSource().GetRowExpr(); row != nil {
		w.saw("RowExpr")
		for _, n := range row.Args {
			w.assignedValue(n)
		}
		return
	}
	w.expr(m.Source)
}

// returning visits RETURNING, which shows the rows that were written.
func (w *walker) returning(targets *[]*sqltext.Node) map[string]bool {
	if len(*targets) == 0 {
		return map[string]bool{}
	}
	return w.targetList(targets)
}

// hasSeveralWrites tells whether a statement makes or changes rows in several parts. No part sees the rows of another,
// so a rule over both cannot hold for a row that leads to one of the same statement.
func hasSeveralWrites(raw *sqltext.RawStmt) bool {
	counts, _ := sqltext.Count(raw)
	return counts["InsertStmt"]+counts["UpdateStmt"]+counts["MergeStmt"] > 1
}

// query visits a statement that returns rows, as in WITH, and returns the names of its columns, or nil.
func (w *walker) query(n *sqltext.Node, parent *scope) map[string]bool {
	switch kind := n.GetNode().(type) {
	case *sqltext.Node_SelectStmt:
		return w.selectStmt(kind.SelectStmt, parent)
	case *sqltext.Node_InsertStmt:
		return w.insertStmt(kind.InsertStmt)
	case *sqltext.Node_UpdateStmt:
		return w.updateStmt(kind.UpdateStmt)
	case *sqltext.Node_DeleteStmt:
		return w.deleteStmt(kind.DeleteStmt)
	default:
		w.refuse(refusal(sqltext.Kind(n)))
		return nil
	}
}

// withScope runs f with a scope and WITH queries of its own.
func (w *walker) withScope(with *sqltext.WithClause, f func(own *scope) map[string]bool) map[string]bool {
	if w.refused != nil {
		return nil
	}
	outerScope, outerCTEs := w.scope, w.ctes
	defer func() { w.scope, w.ctes = outerScope, outerCTEs }()
	own := newScope(nil)
	w.scope = own
	w.withClause(with, nil)
	if w.refused != nil {
		return nil
	}
	return f(own)
}

// where visits the condition of UPDATE or DELETE, which may be CURRENT OF: row security still filters that row.
func (w *walker) where(n *sqltext.Node) {
	c := n.GetCurrentOfExpr()
	if c == nil {
		w.expr(n)
		w.timeBounds(n)
		w.noteCheapConditions(n)
		return
	}
	w.saw("CurrentOfExpr")
	// The tree does not say where in the text CURRENT OF stands. The walk meets the CURRENT OF clauses in the order of the
	// text, and the proof compares the result with the tree.
	for i := w.currentOfEnd; i+2 < len(w.source.Tokens); i++ {
		t := w.source.Tokens
		if !strings.EqualFold(w.source.String(t[i]), "current") || !strings.EqualFold(w.source.String(t[i+1]), "of") {
			continue
		}
		w.currentOfEnd, w.currentOfCursor = i+2, c.CursorName
		w.rename(t[i+2], "CurrentOfExpr", c.CursorName, func(upstream string) { c.CursorName = upstream })
		return
	}
	w.refuse(refusal("CurrentOfExpr"))
}
