package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// ViewCopy is a kind of copy that pgconsent makes of a view of the application. Each kind has another query.
type ViewCopy int

const (
	RowCopy      ViewCopy = iota // the query relies on row security alone
	FilteredCopy                 // the query also contains the predicates of its tables
	// the query reads signed views, for statements whose expressions cannot fail or print hidden values (leak-safe)
	SignedCopy
)

// ViewRewriter checks the query of a view by the rules for agents' statements, and returns the query of a copy. In it,
// names are qualified, function arguments are pinned, and pgconsent's views replace the tables and views of p where
// agents read those views. partly is true if a FilteredCopy reads a table without its predicate. A SignedCopy is "" if
// the query has an expression that is not leak-safe.
type ViewRewriter func(p *Policy, snap *catalog.Snapshot, view *catalog.Relation, copyKind ViewCopy) (query string,
	partly bool, err error)

// compile compiles a view after the views that it reads.
func (c *viewCompiler) compile(p *Policy, decl viewDecl) {
	schema, name := splitName(decl.name)
	resolved, ok := c.snap.ResolveRelation(schema, name)
	if !ok {
		c.fail(decl.place, c.suggestView(decl.name), "the database has no view %q%s", decl.name, c.searchPathNote(schema))
		return
	}
	r, _ := c.snap.Relation(resolved)
	switch {
	case isSystemSchema(resolved.Schema):
		c.fail(decl.place, "agents read their own form of the catalogs", "%s belongs to the system", resolved)
		return
	case r.Kind != catalog.View:
		c.fail(decl.place, "list it under tables", "%s is a %s", resolved, relationKind(r.Kind))
		return
	case c.rewriteView == nil:
		c.fail(decl.place, "", "views cannot be judged here")
		return
	case c.snap.ServerVersion() < 150000:
		c.fail(decl.place, "", "views with the rights of who reads them need PostgreSQL 15")
		return
	}
	if v := c.copyView(p, decl, r, 0); v != nil {
		if v.Listed {
			c.fail(decl.place, "", "view %s is there twice", resolved)
		}
		v.Listed = true
	}
}

// maxViewDepth is the largest number of views in a chain of views that read each other.
const maxViewDepth = 32

// copyView returns a view with the queries of its copies; nil after an error. It copies the views that the view reads
// first.
func (c *viewCompiler) copyView(p *Policy, decl viewDecl, r *catalog.Relation, depth int) *View {
	if v, ok := p.View(r.Name); ok {
		return v
	}
	if depth > maxViewDepth {
		c.fail(decl.place, "", "view %s reads views more than %d deep", decl.name, maxViewDepth)
		return nil
	}
	v := &View{Relation: r}
	for _, read := range r.Reads {
		name := read.Relation
		if t, ok := p.Table(name); ok && t.Columns != nil {
			for _, column := range read.Columns {
				if t.VisibleRelation().Column(column) == nil {
					c.fail(decl.place, "show the column to agents, or make a view without it",
						"view %s reads %s.%s, which is hidden from agents", r.Name, name, column)
					return nil
				}
			}
		}
		readRelation, ok := c.snap.Relation(name)
		switch {
		case !ok || readRelation.Kind != catalog.View || isSystemSchema(name.Schema):
			v.Tables = append(v.Tables, name)
		default:
			inner := c.copyView(p, decl, readRelation, depth+1)
			if inner == nil {
				return nil
			}
			v.Tables = append(v.Tables, inner.Tables...)
		}
	}
	slices.SortFunc(v.Tables, compareNames)
	v.Tables = slices.Compact(v.Tables)
	for _, name := range v.Tables {
		if _, ok := p.Table(name); !ok && !isSystemSchema(name.Schema) && !p.hasChild(name) {
			c.fail(decl.place, "list it under tables, with a rule of its own",
				"view %s reads %s, which the policy does not list", r.Name, name)
			return nil
		}
	}
	var err error
	if v.Query, _, err = c.rewriteView(p, c.snap, r, RowCopy); err == nil {
		v.FilteredQuery, v.PartlyFiltered, err = c.rewriteView(p, c.snap, r, FilteredCopy)
	}
	if err == nil {
		v.SignedQuery, _, err = c.rewriteView(p, c.snap, r, SignedCopy)
	}
	if err != nil {
		within := ""
		if r.Name.String() != decl.name && r.Name.Name != decl.name {
			within = ", of which " + r.Name.String() + " is part,"
		}
		c.fail(decl.place, "", "view %s%s cannot be read by agents: %s", decl.name, within, err)
		return nil
	}
	v.setWrite(p)
	p.views = append(p.views, v)
	return v
}

type viewCompiler struct {
	*resolver
	rewriteView ViewRewriter
}
