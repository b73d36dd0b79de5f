package rewrite

import (
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// Agents read pgconsent's copy of a view, made from the view's own query with the rules of its tables in it (see
// [RewriteViewQuery]). The copy runs with the rights of the agent. PostgreSQL treats it like a sub-select in FROM, and
// so does this analysis.

// visitView visits the query of a view.
func (c *hardenedAnalysis) visitView(ref *reference, context exprContext) {
	query := c.queryOfView(ref.relation)
	if c.viewCount++; query == nil || c.viewCount > maxViews {
		c.harden("it reads a view that cannot be followed")
		return
	}
	outerCTEs := c.ctes
	c.ctes = nil
	c.visitQuery(query, nil, false, context.inSubquery)
	c.ctes = outerCTEs
}

// viewItem returns the FROM item that a view makes.
func (c *hardenedAnalysis) viewItem(ref *reference, alias string, renamed []*sqltext.Node) *levelItem {
	i := &levelItem{alias: alias, view: true}
	if len(renamed) == 0 && alias == ref.relation.Name.Name {
		i.name = ref.name
	}
	query := c.queryOfView(ref.relation)
	if query == nil {
		return i
	}
	outerCTEs := c.ctes
	c.ctes = nil
	columns := c.outputsOf(query, nil, "")
	i.notPulledUp = c.isNotPulledUp(query, nil)
	c.ctes = outerCTEs
	if len(columns) == len(ref.relation.Columns) {
		i.columns = renameColumns(columns, renamed)
		i.markPrecomputed()
	}
	return i
}

// queryOfView returns the query of a view; nil if it does not parse, or if some relation in it is not known.
func (c *hardenedAnalysis) queryOfView(view *catalog.Relation) *sqltext.SelectStmt {
	if query, isOfKind := c.viewQueries[view.Name]; isOfKind {
		return query
	}
	c.viewQueries[view.Name] = nil // this entry ends the recursion if the view refers to itself
	tree, refusal := sqltext.Parse(view.Definition)
	if refusal != nil || len(tree.Stmts) != 1 || tree.Stmts[0].GetStmt().GetSelectStmt() == nil {
		return nil
	}
	certain := true
	c.walkNodes(tree.Stmts[0].Stmt, func(n *sqltext.Node) bool {
		// a name without a schema means a WITH query here
		if rv := n.GetRangeVar(); rv != nil && rv.Schemaname != "" {
			name := catalog.Name{Schema: rv.Schemaname, Name: rv.Relname}
			relation, _ := c.snap.Relation(name)
			switch f := c.fragments[name]; {
			case f != nil:
				c.referenceOf[rv] = &reference{name: name, rangeVar: rv, relation: f.visible, fragment: f}
			case relation != nil && relation.Kind == catalog.View && relation.Definition != "":
				c.referenceOf[rv] = &reference{name: name, rangeVar: rv, relation: relation, fragment: &fragment{visible: relation}}
			default:
				certain = false
			}
		}
		return certain
	})
	if certain {
		c.viewQueries[view.Name] = tree.Stmts[0].Stmt.GetSelectStmt()
	}
	return c.viewQueries[view.Name]
}

// isCTE tells whether a name means a WITH query in the visited part of the statement.
func (c *hardenedAnalysis) isCTE(name string) bool {
	for f := c.ctes; f != nil; f = f.outer {
		if f.query.Ctename == name {
			return true
		}
	}
	return false
}
