package rewrite

import (
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// What agents read in place of a view has the view's own query, with the rules of tables in it (see [Definition]), and
// no rights of its own: PostgreSQL takes it for a sub-select in FROM, and so does the walk.

// readsView visits the query of a view.
func (c *cautious) readsView(ref *reference, at stand) {
	query := c.queryOf(ref.relation)
	if c.opened++; query == nil || c.opened > maxViews {
		c.because("it reads a view that cannot be followed")
		return
	}
	before := c.frame
	c.frame = nil
	c.query(query, nil, false, at.strict)
	c.frame = before
}

// viewItem is a view as FROM has it.
func (c *cautious) viewItem(ref *reference, alias string, renamed []*sqltext.Node) *source {
	i := &source{alias: alias, view: true}
	if len(renamed) == 0 && alias == ref.relation.Name.Name {
		i.name = ref.name
	}
	query := c.queryOf(ref.relation)
	if query == nil {
		return i
	}
	before := c.frame
	c.frame = nil
	columns := c.outputsOf(query, nil, "")
	i.apart = c.apart(query, nil)
	c.frame = before
	if len(columns) == len(ref.relation.Columns) {
		i.columns = rename(columns, renamed)
		i.settle()
	}
	return i
}

// queryOf is the query of a view, of which all that it reads is known by name; nil where it is not.
func (c *cautious) queryOf(view *catalog.Relation) *sqltext.SelectStmt {
	if query, is := c.views[view.Name]; is {
		return query
	}
	c.views[view.Name] = nil // to what asks for itself
	tree, refused := sqltext.Parse(view.Definition)
	if refused != nil || len(tree.Stmts) != 1 || tree.Stmts[0].GetStmt().GetSelectStmt() == nil {
		return nil
	}
	certain := true
	c.inside(tree.Stmts[0].Stmt, func(n *sqltext.Node) bool {
		if rv := n.GetRangeVar(); rv != nil && rv.Schemaname != "" { // of others the walk asks whether they are WITH queries
			name := catalog.Name{Schema: rv.Schemaname, Name: rv.Relname}
			relation, _ := c.snap.Relation(name)
			switch f := c.protected[name]; {
			case f != nil:
				c.of[rv] = &reference{name: name, rangeVar: rv, relation: f.visible, fragment: f}
			case relation != nil && relation.Kind == catalog.View && relation.Definition != "":
				c.of[rv] = &reference{name: name, rangeVar: rv, relation: relation, fragment: &fragment{visible: relation}}
			default:
				certain = false
			}
		}
		return certain
	})
	if certain {
		c.views[view.Name] = tree.Stmts[0].Stmt.GetSelectStmt()
	}
	return c.views[view.Name]
}

// inSight tells whether a name is that of a WITH query here.
func (c *cautious) inSight(name string) bool {
	for f := c.frame; f != nil; f = f.outer {
		if f.query.Ctename == name {
			return true
		}
	}
	return false
}
