package rewrite

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
	"github.com/pgconsent/pgconsent/policy"
)

// Only the row policies of the database filter a statement that writes. Its target must stay a table. Its text is not
// signed, since the owner's triggers would run inside the signed text. The other relations that it reads stay tables,
// too.

// writeTarget is the table (or view) to which a statement writes.
type writeTarget struct {
	ref   *reference
	table *policy.Table
	item  *fromItem
}

// visitTarget visits the table to which a statement writes, under the name that the statement's expressions use. The
// result is nil after a refusal.
func (w *walker) visitTarget(rv *sqltext.RangeVar, commands ...string) *writeTarget {
	tokenIndex := w.source.TokenAt(rv.GetLocation())
	ref := w.resolveRelation(rv)
	if ref == nil {
		return nil
	}
	table, ok := w.pol.Table(ref.name)
	view, isView := w.pol.View(ref.name)
	switch {
	case ok && ref.fragment != nil && ref.relation != nil:
	case isView && view.Write != nil && ref.fragment != nil && ref.relation != nil:
		// agents may write to a view according to the write rules of the table that it reads
		table = &policy.Table{Relation: view.Relation, Write: view.Write}
	case ref.fragment != nil: // the relation is a view that agents may only read
		w.refuseAt(refusalOf("view(policy)"), ref.start)
		return nil
	default:
		w.refuseAt(unavailableRelationRefusal(ref.name.String()), ref.start)
		return nil
	}
	for _, command := range commands {
		if !table.Write.Allows(command) {
			location := int32(-1)
			if tokenIndex >= 0 {
				location = rv.GetLocation()
			}
			w.refuseAt(refusalOf(command+"(policy)"), location)
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
	w.writesRows = true
	item := &fromItem{name: rv.GetRelname(), ref: ref, noAlias: rv.Alias == nil, columns: columnSet(ref.relation)}
	if name, renamed := w.visitAlias(rv.Alias); rv.Alias != nil {
		item.name = name
		if renamed {
			ref.allColumns, ref.rowType, item.columns = true, true, renamedColumns(rv.GetAlias().GetColnames())
		}
	}
	return &writeTarget{ref, table, item}
}

// keepRelationsOfWrites makes a statement that writes or locks rows name its relations themselves, and no subqueries.
func (w *walker) keepRelationsOfWrites() {
	if !w.writesRows && !w.locksRows {
		return
	}
	for _, ref := range w.references[w.firstReference:] {
		if ref.fragment != nil {
			ref.doNotInject(inWritingStatement)
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

// checkWritable refuses a statement that sets a column which agents may not set. If the column does not exist,
// PostgreSQL reports that.
func (w *walker) checkWritable(t *writeTarget, column string, allowed []string, location int32) {
	w.columnNames[column] = true
	if t.ref.relation.Column(column) != nil && !slices.Contains(allowed, column) {
		w.refuseColumn(t, column, allowed, location)
	}
}

// visitAssignedParts visits the subscripts and fields of a column that a statement sets only in part: column[1],
// column.field.
func (w *walker) visitAssignedParts(indirection []*sqltext.Node) {
	for _, n := range indirection {
		switch part := n.GetNode().(type) {
		case *sqltext.Node_String: // the part is a field of a composite type
		case *sqltext.Node_A_Indices:
			w.countNode("A_Indices")
			w.visitExpr(part.AIndices.Lidx)
			w.visitExpr(part.AIndices.Uidx)
		default:
			w.refuse(refusalOf(sqltext.NodeKind(n)))
		}
	}
}

// visitAssignedValue visits the value to which a statement sets a column. The value may be DEFAULT.
func (w *walker) visitAssignedValue(n *sqltext.Node) {
	if n.GetSetToDefault() != nil {
		w.countNode("SetToDefault")
		return
	}
	w.visitExpr(n)
}

// visitSetList visits the list of a SET clause: a = x, (b, c) = (SELECT …).
func (w *walker) visitSetList(t *writeTarget, targets []*sqltext.Node) {
	for _, n := range targets {
		target := n.GetResTarget()
		if target == nil {
			w.refuse(refusalOf(sqltext.NodeKind(n)))
			return
		}
		w.countNode("ResTarget")
		w.checkWritable(t, target.Name, t.table.Write.Updatable, target.Location)
		w.visitAssignedParts(target.Indirection)
		if m := target.GetVal().GetMultiAssignRef(); m != nil {
			w.visitMultiAssign(m)
		} else {
			w.visitAssignedValue(target.Val)
		}
	}
}

// visitMultiAssign visits the sub-select or row that sets several columns at once. The tree contains it once for each
// column, the text only once. For the copies after the first, only the tree is edited.
func (w *walker) visitMultiAssign(m *sqltext.MultiAssignRef) {
	w.countNode("MultiAssignRef")
	outer := w.repeated
	w.repeated = outer || m.Colno > 1
	defer func() { w.repeated = outer }()
	if row := m.GetSource().GetRowExpr(); row != nil {
		w.countNode("RowExpr")
		for _, n := range row.Args {
			w.visitAssignedValue(n)
		}
		return
	}
	w.visitExpr(m.Source)
}

// visitReturning visits a RETURNING list and returns the names of its columns.
func (w *walker) visitReturning(targets *[]*sqltext.Node) map[string]bool {
	if len(*targets) == 0 {
		return map[string]bool{}
	}
	return w.visitTargetList(targets)
}

// hasSeveralWrites tells whether a statement inserts or changes rows in several of its parts. No part sees the rows
// that another part writes. So if a row refers to a row of another part, PostgreSQL cannot check a rule about both.
func hasSeveralWrites(raw *sqltext.RawStmt) bool {
	kindCounts, _ := sqltext.CountNodeKinds(raw)
	return kindCounts["InsertStmt"]+kindCounts["UpdateStmt"]+kindCounts["MergeStmt"] > 1
}

// visitQuery visits a statement that may stand in WITH, and returns the names of its columns, or nil if they are not
// known.
func (w *walker) visitQuery(n *sqltext.Node, parent *scope) map[string]bool {
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
		w.refuse(refusalOf(sqltext.NodeKind(n)))
		return nil
	}
}

// withScope calls f with a new scope, in which expressions can name the given WITH queries.
func (w *walker) withScope(clause *sqltext.WithClause, f func(ownScope *scope) map[string]bool) map[string]bool {
	if w.refused != nil {
		return nil
	}
	outerScope, outerCTEs := w.scope, w.ctes
	defer func() { w.scope, w.ctes = outerScope, outerCTEs }()
	ownScope := newScope(nil)
	w.scope = ownScope
	w.visitWithClause(clause, nil)
	if w.refused != nil {
		return nil
	}
	return f(ownScope)
}

// visitWhere visits the condition of UPDATE or DELETE, which may be CURRENT OF. Even then, row security filters the row
// of the cursor.
func (w *walker) visitWhere(n *sqltext.Node) {
	c := n.GetCurrentOfExpr()
	if c == nil {
		w.visitExpr(n)
		w.castTimeBounds(n)
		w.noteCheapConditions(n)
		return
	}
	w.countNode("CurrentOfExpr")
	// The tree does not say where in the text CURRENT OF stands. The walker visits the CURRENT OF clauses in the order of
	// the text, and ProveSameTree compares the result with the tree.
	for i := w.currentOfEnd; i+2 < len(w.source.Tokens); i++ {
		t := w.source.Tokens
		if !strings.EqualFold(w.source.TokenText(t[i]), "current") || !strings.EqualFold(w.source.TokenText(t[i+1]), "of") {
			continue
		}
		w.currentOfEnd, w.currentOfCursor = i+2, c.CursorName
		w.renameStatement(t[i+2], "CurrentOfExpr", c.CursorName, func(upstream string) { c.CursorName = upstream })
		return
	}
	w.refuse(refusalOf("CurrentOfExpr"))
}
