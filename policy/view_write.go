package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// setWrite sets what agents may write through a view: what they may write of the one table or view that it reads, in
// the columns that it shows unchanged. PostgreSQL must consider the view, and every view that it reads, updatable
// without triggers and rules. Agents write through pgconsent's copy of the view (see [ViewCopy]), which has neither.
func (v *View) setWrite(p *Policy) {
	if len(v.Relation.Reads) != 1 || v.Relation.AllowedCommands == 0 {
		return
	}
	var innerWrite *Write
	var source *catalog.Relation
	if t, ok := p.Table(v.Relation.Reads[0].Relation); ok {
		innerWrite, source = t.Write, t.Relation
	} else if inner, ok := p.View(v.Relation.Reads[0].Relation); ok {
		innerWrite, source = inner.Write, inner.Relation
	}
	if innerWrite == nil {
		return
	}
	base := viewColumns(v.Relation, source)
	if base == nil {
		return
	}
	w := &Write{
		Insert: innerWrite.Insert && v.Relation.AllowedCommands.AllowsInsert() &&
			!slices.ContainsFunc(v.Relation.Columns, func(c catalog.Column) bool { return c.Default != "" }),
		Update:           innerWrite.Update && v.Relation.AllowedCommands.AllowsUpdate(),
		Delete:           innerWrite.Delete && v.Relation.AllowedCommands.AllowsDelete(),
		InsertsAreHidden: innerWrite.InsertsAreHidden,
		Notices:          innerWrite.Notices,
	}
	for i, column := range v.Relation.Columns {
		if slices.Contains(innerWrite.Insertable, base[i]) {
			w.Insertable = append(w.Insertable, column.Name)
		}
		if slices.Contains(innerWrite.Updatable, base[i]) {
			w.Updatable = append(w.Updatable, column.Name)
		}
	}
	w.Insert, w.Update = w.Insert && len(w.Insertable) > 0, w.Update && len(w.Updatable) > 0
	if w.Insert || w.Update || w.Delete {
		v.Write = w
	}
}

// viewColumns returns for each column of a view the column of source that it shows, or "" for an expression. The result
// is nil if the query does not have the form of a plain SELECT from one relation.
func viewColumns(view, source *catalog.Relation) []string {
	tree, refusal := sqltext.Parse(view.Definition)
	if refusal != nil || len(tree.Stmts) != 1 {
		return nil
	}
	query := tree.Stmts[0].GetStmt().GetSelectStmt()
	if query == nil || len(query.FromClause) != 1 || query.FromClause[0].GetRangeVar() == nil ||
		len(query.TargetList) != len(view.Columns) {
		return nil
	}
	sourceNames := map[string]string{} // the columns of source, by the names that the query gives them
	aliases := query.FromClause[0].GetRangeVar().GetAlias().GetColnames()
	if len(aliases) > len(source.Columns) {
		return nil
	}
	for i, c := range source.Columns {
		name := c.Name
		if i < len(aliases) {
			name = aliases[i].GetString_().GetSval()
		}
		sourceNames[name] = c.Name
	}
	out := make([]string, len(query.TargetList))
	for i, n := range query.TargetList {
		// the query reads only one relation, so a qualifier before a column's name means that relation
		fields := n.GetResTarget().GetVal().GetColumnRef().GetFields()
		if len(fields) > 0 {
			out[i] = sourceNames[fields[len(fields)-1].GetString_().GetSval()]
		}
	}
	return out
}
