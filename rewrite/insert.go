package rewrite

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// insertStmt visits INSERT and returns the names of its RETURNING columns, or nil if there are none.
func (w *walker) insertStmt(s *sqltext.InsertStmt) map[string]bool {
	w.countNode("InsertStmt")
	return w.withScope(s.WithClause, func(ownScope *scope) map[string]bool {
		t := w.visitTarget(s.Relation, "INSERT")
		if t == nil {
			return nil
		}
		source := s.GetSelectStmt().GetSelectStmt()
		if s.SelectStmt != nil && source == nil {
			w.refuse(refusalOf(sqltext.NodeKind(s.SelectStmt)))
			return nil
		}
		width, isKnown := sourceWidth(source)
		w.checkInsertColumns(t, s, source, width, isKnown)
		if source != nil {
			w.insertSource = source
			w.selectStmt(source, nil) // the SELECT or VALUES of an INSERT cannot name columns of the target
		}
		ownScope.add(t.item)
		w.visitOnConflict(t, s.OnConflictClause, ownScope)
		if len(s.ReturningList) > 0 && t.table.Write.InsertsAreHidden {
			w.refuseAt(refusalOf("InsertStmt.returning_list(unseen)"), t.ref.start)
		}
		return w.visitReturning(&s.ReturningList)
	})
}

// valuesLists visits the rows of VALUES. Only the VALUES of an INSERT may contain DEFAULT.
func (w *walker) valuesLists(s *sqltext.SelectStmt) {
	for _, row := range s.ValuesLists {
		if row.GetList() == nil {
			w.refuse(refusalOf(sqltext.NodeKind(row)))
			return
		}
		for _, n := range row.GetList().GetItems() {
			if s == w.insertSource {
				w.visitAssignedValue(n)
			} else {
				w.visitExpr(n)
			}
		}
	}
}

// sourceWidth returns the number of columns of an INSERT's SELECT or VALUES, if the text shows it.
func sourceWidth(s *sqltext.SelectStmt) (width int, isKnown bool) {
	for s != nil && s.Op != sqltext.SETOP_NONE {
		s = s.Larg
	}
	var items []*sqltext.Node
	switch {
	case s == nil:
		return 0, true
	case len(s.ValuesLists) > 0:
		items = s.ValuesLists[0].GetList().GetItems()
	default:
		for _, n := range s.TargetList {
			items = append(items, n.GetResTarget().GetVal())
		}
	}
	for _, n := range items {
		parts := n.GetAIndirection().GetIndirection()
		if isStar(n) || len(parts) > 0 && parts[len(parts)-1].GetAStar() != nil {
			return 0, false
		}
	}
	return len(items), true
}

// checkInsertColumns checks the columns to which an INSERT writes: those that it names, or else the first columns of
// the table.
func (w *walker) checkInsertColumns(t *writeTarget, s *sqltext.InsertStmt, source *sqltext.SelectStmt, width int,
	isKnown bool) {
	allowed := t.table.Write.Insertable
	w.noteOmitted(t, s.Cols, source, width, isKnown)
	if len(s.Cols) == 0 {
		w.checkImpliedColumns(t, width, isKnown)
		return
	}
	drop := map[int]bool{}
	for i, n := range s.Cols {
		c := n.GetResTarget()
		if c == nil || c.Val != nil {
			w.refuse(refusalOf(sqltext.NodeKind(n)))
			return
		}
		w.countNode("ResTarget")
		if len(c.Indirection) == 0 && !slices.Contains(allowed, c.Name) && t.ref.relation.Column(c.Name) != nil &&
			isAlwaysDefault(source, i, len(s.Cols)) {
			drop[i] = true // the client names the column, but leaves its value to the default
			continue
		}
		w.checkWritable(t, c.Name, allowed, c.Location)
		w.visitAssignedParts(c.Indirection)
	}
	if w.refused == nil && len(drop) > 0 {
		w.dropDefaults(t, s, source, drop)
	}
}

// noteOmitted notes whether an INSERT omits the columns that the policy fills in.
func (w *walker) noteOmitted(t *writeTarget, cols []*sqltext.Node, source *sqltext.SelectStmt, width int,
	isKnown bool) {
	for _, b := range t.table.Write.Lists {
		if b.PermittedIDs == nil {
			continue
		}
		i := slices.IndexFunc(cols, func(n *sqltext.Node) bool { return n.GetResTarget().GetName() == b.Column })
		given := i >= 0 && !isAlwaysDefault(source, i, len(cols))
		if len(cols) == 0 {
			i = slices.IndexFunc(t.ref.relation.Columns, func(c catalog.Column) bool { return c.Name == b.Column })
			given = !isKnown || i < width
		}
		omittedMark := predicate.OmittedColumnComment(t.ref.name, b.Column)
		if isOmitted, isSeen := w.omittedColumns[omittedMark]; !isSeen || isOmitted {
			w.omittedColumns[omittedMark] = !given
		}
	}
}

// omittedMarks returns comments that name the policy-filled columns which every INSERT of the text omits. The rewriter
// puts them at the beginning of the text.
func (w *walker) omittedMarks() string {
	var out []string
	for omittedMark, isOmitted := range w.omittedColumns {
		if isOmitted {
			out = append(out, omittedMark)
		}
	}
	slices.Sort(out)
	return strings.Join(out, "")
}

// checkImpliedColumns checks an INSERT without a column list, which writes to the first columns of the table.
func (w *walker) checkImpliedColumns(t *writeTarget, width int, isKnown bool) {
	columns := t.ref.relation.Columns
	if len(t.ref.relation.WaitingColumns) > 0 && (!isKnown || width > len(columns)) {
		w.refuseAt(waitingRefusal(t.ref.name), t.ref.start)
		return
	}
	if !isKnown || width > len(columns) {
		width = len(columns)
	}
	for _, c := range columns[:width] {
		w.columnNames[c.Name] = true
		if !slices.Contains(t.table.Write.Insertable, c.Name) {
			w.refuseAt(sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonColumn,
				"without a list of columns this INSERT would write column %q of table %q, which is not for agents "+
					"to write", c.Name, t.ref.name.Name).
				WithHint("Name the columns: INSERT INTO table (columns) ..."), t.ref.start)
			return
		}
	}
}

// isAlwaysDefault tells whether every row of VALUES has DEFAULT as its i-th value.
func isAlwaysDefault(source *sqltext.SelectStmt, i, width int) bool {
	rows := source.GetValuesLists()
	return len(rows) > 0 && !slices.ContainsFunc(rows, func(row *sqltext.Node) bool {
		items := row.GetList().GetItems()
		return len(items) != width || items[i].GetSetToDefault() == nil
	})
}

// dropDefaults removes columns that agents may not write and whose value is always DEFAULT. It removes them from the
// column list and from every row. PostgreSQL requires the right to insert into a named column even for DEFAULT.
func (w *walker) dropDefaults(t *writeTarget, s *sqltext.InsertStmt, source *sqltext.SelectStmt, drop map[int]bool) {
	if len(drop) == len(s.Cols) {
		w.refuseAt(sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonColumn,
			"this INSERT names no column that agents may write").
			WithHint("Write INSERT INTO table DEFAULT VALUES."), t.ref.start)
		return
	}
	places := make([]int32, len(s.Cols))
	for i, n := range s.Cols {
		places[i] = n.GetResTarget().GetLocation()
	}
	w.cutItems(places, drop)
	for _, row := range source.ValuesLists {
		items := row.GetList().Items
		for i, n := range items {
			places[i] = -1
			if d := n.GetSetToDefault(); d != nil {
				places[i] = d.Location
			}
		}
		w.cutItems(places, drop)
	}
	keep := func(nodes []*sqltext.Node) []*sqltext.Node {
		var out []*sqltext.Node
		for i, n := range nodes {
			if !drop[i] {
				out = append(out, n)
			}
		}
		return out
	}
	w.edits = append(w.edits, edit{apply: func() {
		s.Cols = keep(s.Cols)
		for _, row := range source.ValuesLists {
			row.GetList().Items = keep(row.GetList().Items)
		}
	}, treeOnly: true})
}

// cutItems removes items of one token each from a list, together with the comma behind each; for the last items, the
// comma before.
func (w *walker) cutItems(places []int32, drop map[int]bool) {
	last := len(places) - 1 // the last item that is not removed
	for last >= 0 && drop[last] {
		last--
	}
	for i, location := range places {
		if !drop[i] {
			continue
		}
		token := w.source.TokenAt(location)
		comma := token + 1
		if i > last {
			comma = token - 1
		}
		if token < 0 || w.source.KindAt(comma) != sqltext.Comma {
			w.refuseAt(refusalOf("SetToDefault(elsewhere)"), location)
			return
		}
		a, b := w.source.Tokens[min(token, comma)], w.source.Tokens[max(token, comma)]
		w.replace(a.Start, b.End, "", func() {})
	}
}

// visitOnConflict visits ON CONFLICT. Its expressions can name the target and the row that was to be inserted,
// excluded.
func (w *walker) visitOnConflict(t *writeTarget, c *sqltext.OnConflictClause, ownScope *scope) {
	if c == nil || w.refused != nil {
		return
	}
	w.countNode("OnConflictClause")
	if infer := c.Infer; infer != nil {
		w.countNode("InferClause")
		for _, n := range infer.IndexElems {
			e := n.GetIndexElem()
			if e == nil || len(e.Collation) > 0 || len(e.Opclass) > 0 || len(e.Opclassopts) > 0 {
				w.refuse(refusalOf("IndexElem(opclass)"))
				return
			}
			w.countNode("IndexElem")
			if e.Name != "" {
				w.noteColumn(e.Name, infer.Location)
			}
			w.visitExpr(e.Expr)
		}
		w.visitExpr(infer.WhereClause)
	}
	switch c.Action {
	case sqltext.ONCONFLICT_NOTHING:
		if len(c.TargetList) > 0 || c.WhereClause != nil {
			w.refuse(refusalOf("OnConflictClause"))
		}
	case sqltext.ONCONFLICT_UPDATE:
		if !t.table.Write.Allows("UPDATE") {
			w.refuseAt(refusalOf("UPDATE(policy)"), c.Location)
			return
		}
		inner := newScope(nil)
		inner.add(t.item)
		inner.add(&fromItem{name: "excluded", columns: t.item.columns})
		w.scope = inner
		w.visitSetList(t, c.TargetList)
		w.visitExpr(c.WhereClause)
		w.scope = ownScope
	default:
		w.refuse(refusalOf("OnConflictClause"))
	}
}
