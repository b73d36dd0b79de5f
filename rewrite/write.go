package rewrite

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
	"github.com/pgconsent/pgconsent/policy"
)

// A statement that writes goes past the row policies of the database alone: its target must stay a table, and its text is
// not signed where the owner's triggers may run inside it. What it reads besides stays a table as well.

// written is the target of a statement that writes.
type writeTarget struct {
	ref   *reference
	table *policy.Table
	item  *fromItem
}

// target visits the table that a statement writes, under the name that its expressions call it by; nil after a refusal.
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
	case ref.fragment != nil: // a view that agents read
		w.refuseAt(refusal("view(policy)"), ref.start)
		return nil
	default:
		w.refuseAt(notAvailable(ref.name.String()), ref.start)
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

// settleWrites leaves every relation of a statement that writes, or locks rows, as it is.
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

// mayWrite judges a column that is set. One that does not exist is left to the server, which says so.
func (w *walker) checkWritable(t *writeTarget, column string, allowed []string, location int32) {
	w.columnNames[column] = true
	if t.ref.relation.Column(column) != nil && !slices.Contains(allowed, column) {
		w.refuseColumn(t, column, allowed, location)
	}
}

// part visits what follows a column that is set in part: column[1], column.field.
func (w *walker) assignedParts(indirection []*sqltext.Node) {
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

// assigned visits a value that is stored, which may be DEFAULT.
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
		w.assignedParts(target.Indirection)
		if m := target.GetVal().GetMultiAssignRef(); m != nil {
			w.multiAssign(m)
		} else {
			w.assignedValue(target.Val)
		}
	}
}

// multiAssign visits the source of several columns. The tree holds it once for each of them, the text once in all: of the
// later copies only the tree is edited.
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

// writesTogether tells whether a statement makes or changes rows in several parts: no part sees what another has made,
// so that a rule over both cannot hold for a row that leads to one of the same statement.
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

// within runs f with a scope and WITH queries of its own.
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

// where visits the condition of UPDATE or DELETE, which may be the row that a cursor is on: row security still judges it.
func (w *walker) where(n *sqltext.Node) {
	c := n.GetCurrentOfExpr()
	if c == nil {
		w.expr(n)
		w.timeBounds(n)
		return
	}
	w.saw("CurrentOfExpr")
	// The tree does not say where: they stand in the text as the walk meets them, and the proof compares.
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
