package rewrite

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// visitCopyFrom visits COPY table [(columns)] FROM STDIN, which PostgreSQL refuses on a table with row security. So the
// rewriter names a view in place of the table, and the view's trigger inserts the rows with the agent's rights. A
// column that the list omits gets the table's default in the view, too.
func (w *walker) visitCopyFrom(c *sqltext.CopyStmt) {
	if c.Relation == nil {
		w.refuse(refusalOf("CopyStmt.is_from"))
		return
	}
	t := w.visitTarget(c.Relation, "INSERT")
	if t == nil {
		return
	}
	if t.ref.relation.Kind == catalog.View {
		w.refuseAt(refusalOf("CopyStmt.is_from(view)"), t.ref.start)
		return
	}
	t.ref.copyStmt, t.ref.isCopyFrom = c, true
	columns := make([]string, 0, len(c.Attlist))
	for _, n := range c.Attlist {
		columns = append(columns, n.GetString_().GetSval())
	}
	if len(columns) == 0 {
		columns = copiedColumns(t.ref.relation)
		for _, name := range columns {
			if !slices.Contains(t.table.Write.Insertable, name) {
				w.refuseAt(refusalOf("CopyStmt.attlist(implied)"), t.ref.start)
				return
			}
		}
		w.addColumns(t.ref, columns)
	}
	for _, name := range columns {
		w.columnNames[name] = true
		if !slices.Contains(t.table.Write.Insertable, name) { // PostgreSQL's error would name the view
			w.refuseColumn(t, name, t.table.Write.Insertable, t.ref.start)
		}
	}
	if c.WhereClause != nil {
		w.scope = newScope(nil)
		w.scope.add(t.item)
		w.visitExpr(c.WhereClause)
	}
}

// addColumns writes a column list into a COPY that has none: all columns that are not generated.
func (w *walker) addColumns(ref *reference, columns []string) {
	c := ref.copyStmt
	var quoted []string
	var list []*sqltext.Node
	for _, name := range columns {
		quoted, list = append(quoted, catalog.QuoteIdent(name)), append(list, stringNode(name))
	}
	w.replace(ref.end, ref.end, " ("+strings.Join(quoted, ", ")+")", func() { c.Attlist = list })
}

// editCopyFrom replaces the table's name with the view.
func (w *walker) editCopyFrom(ref *reference) {
	rv, view := ref.rangeVar, predicate.CopyView(ref.name)
	w.replace(ref.start, ref.end, view.SQL(), func() { rv.Schemaname, rv.Relname = view.Schema, view.Name })
}

// isAllowedCopyFromOption tells whether an option that only COPY FROM has is allowed.
func isAllowedCopyFromOption(name string, arg *sqltext.Node) bool {
	switch name {
	case "force_not_null", "force_null":
		if arg.GetAStar() != nil {
			return true
		}
		items := arg.GetList().GetItems()
		return len(items) > 0 && !slices.ContainsFunc(items, func(n *sqltext.Node) bool { return n.GetString_() == nil })
	case "header":
		return strings.EqualFold(arg.GetString_().GetSval(), "match")
	case "default": // the option exists since PostgreSQL 16; the view has the same defaults as the table
		return arg.GetString_() != nil
	case "on_error": // the option exists since PostgreSQL 17; stop is its default
		return strings.EqualFold(arg.GetString_().GetSval(), "stop")
	}
	return false
}
