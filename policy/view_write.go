package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/catalog"
	"github.com/pgconsent/pgconsent/sqltext"
)

// writable says what agents may change through a view: what its one table's rule lets them, in the columns that are that
// table's own. PostgreSQL must take the view for updatable by itself: where triggers or rules answer in its place they mean
// what their author meant, and the copy has none.
func (v *View) writable(p *Policy) {
	if len(v.Relation.Reads) != 1 || v.Relation.Updatable == 0 {
		return
	}
	t, ok := p.Table(v.Relation.Reads[0].Relation)
	if !ok || t.Write == nil || t.Columns != nil {
		return
	}
	base := viewColumns(v.Relation)
	if base == nil {
		return
	}
	w := &Write{
		Insert: t.Write.Insert && v.Relation.Updatable.Inserts() && !slices.ContainsFunc(v.Relation.Columns, func(c catalog.Column) bool { return c.Default != "" }),
		Update: t.Write.Update && v.Relation.Updatable.Updates(),
		Delete: t.Write.Delete && v.Relation.Updatable.Deletes(),
		Unseen: t.Write.Unseen,
	}
	for i, column := range v.Relation.Columns {
		if slices.Contains(t.Write.Insertable, base[i]) {
			w.Insertable = append(w.Insertable, column.Name)
		}
		if slices.Contains(t.Write.Updatable, base[i]) {
			w.Updatable = append(w.Updatable, column.Name)
		}
	}
	w.Insert, w.Update = w.Insert && len(w.Insertable) > 0, w.Update && len(w.Updatable) > 0
	if w.Insert || w.Update || w.Delete {
		v.Write = w
	}
}

// viewColumns returns what the columns of a view are in its one table, "" for those that are none of its columns; nil where the
// query is of another form.
func viewColumns(view *catalog.Relation) []string {
	tree, refused := sqltext.Parse(view.Definition)
	if refused != nil || len(tree.Stmts) != 1 {
		return nil
	}
	query := tree.Stmts[0].GetStmt().GetSelectStmt()
	if query == nil || len(query.FromClause) != 1 || query.FromClause[0].GetRangeVar() == nil || len(query.TargetList) != len(view.Columns) {
		return nil
	}
	out := make([]string, len(query.TargetList))
	for i, n := range query.TargetList {
		// Of one table: what stands before the column's name is the table's.
		fields := n.GetResTarget().GetVal().GetColumnRef().GetFields()
		if len(fields) > 0 {
			out[i] = fields[len(fields)-1].GetString_().GetSval()
		}
	}
	return out
}
