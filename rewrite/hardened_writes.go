package rewrite

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// An UPDATE or DELETE finds its rows as a SELECT over the same tables does: under the same row security, by the same
// conditions, with the same plans but for parallel ones. What it sets and returns is computed of rows that show, as
// what a SELECT gives is. What else it runs is the owner's: triggers, checks, columns that are generated, expressions
// of indexes, domains, and all of this where foreign keys change rows along. These may ask what they like, with
// parameters that fail, as the agent. So it is judged as that SELECT where all of that is PostgreSQL's own, and ours.

// asSelect is a SELECT that finds the rows that an UPDATE or DELETE writes, and computes what it computes; nil for
// others. With the target, where there is one.
func asSelect(n *sqltext.Node) (target *sqltext.RangeVar, s *sqltext.SelectStmt) {
	from := func(target *sqltext.RangeVar, more []*sqltext.Node) []*sqltext.Node {
		return append([]*sqltext.Node{{Node: &sqltext.Node_RangeVar{RangeVar: target}}}, more...)
	}
	switch x := n.GetNode().(type) {
	case *sqltext.Node_UpdateStmt:
		u := x.UpdateStmt
		return u.Relation, &sqltext.SelectStmt{Op: sqltext.SETOP_NONE, WithClause: u.WithClause,
			FromClause: from(u.Relation, u.FromClause), WhereClause: u.WhereClause,
			TargetList: slices.Concat(u.TargetList, u.ReturningList)}
	case *sqltext.Node_DeleteStmt:
		d := x.DeleteStmt
		return d.Relation, &sqltext.SelectStmt{Op: sqltext.SETOP_NONE, WithClause: d.WithClause,
			FromClause: from(d.Relation, d.UsingClause), WhereClause: d.WhereClause, TargetList: d.ReturningList}
	}
	return nil, nil
}

// changes visits an UPDATE or DELETE.
func (c *hardenedAnalysis) updateOrDelete(n *sqltext.Node) {
	target, as := asSelect(n)
	if why := c.userCodeOfWrite(target, n.GetUpdateStmt()); why != "" {
		c.harden("it writes: " + why)
		return
	}
	c.query(as, nil, true, false)
}

// loud says what of the owner's may run as rows of a table are written, "" where nothing does; update is nil where they
// are deleted.
func (c *hardenedAnalysis) userCodeOfWrite(target *sqltext.RangeVar, update *sqltext.UpdateStmt) (why string) {
	ref := c.referenceOf[target]
	if ref == nil {
		return "what it writes is no table"
	}
	table, known := c.snap.Relation(ref.name)
	if !known {
		return "what it writes is not known"
	}
	if update == nil {
		return c.userCodeOfDelete(table, map[*catalog.Relation]bool{})
	}
	var set []string
	for _, n := range update.TargetList {
		column, defaults := table.Column(n.GetResTarget().GetName()), false
		c.walkNodes(n, func(n *sqltext.Node) bool {
			defaults = defaults || n.GetSetToDefault() != nil
			return true
		})
		switch {
		case column == nil:
			return "what it sets is not known"
		case defaults:
			return "a column is set to its default"
		case slices.ContainsFunc(c.snap.Parts(column.TypeOID), c.castRunsUserCode):
			// a value is cast to the column's type, or to that of its elements, which the text does not name
			return "a cast that is not PostgreSQL's own may make the value of " + column.Name
		}
		set = append(set, column.Name)
	}
	return c.userCodeOfUpdate(table, set)
}

// single tells whether the rows of a table stand in it alone, and it is a part of none.
func isSingleTable(r *catalog.Relation) bool {
	return r.Kind == catalog.Table && !r.HasChildren && !r.IsPartition && len(r.Parents) == 0
}

// loudDelete says so of rows that are deleted, and of those that foreign keys change along.
func (c *hardenedAnalysis) userCodeOfDelete(r *catalog.Relation, seen map[*catalog.Relation]bool) (why string) {
	if seen[r] {
		return ""
	}
	seen[r] = true
	switch {
	case !isSingleTable(r):
		return r.Name.String() + " is no table by itself"
	case !r.DeleteRunsNoUserCode:
		return "a trigger, rule or policy of its owner's may run as rows of " + r.Name.String() + " are deleted"
	}
	for _, other := range c.snap.PointingTo(r.Name) {
		for _, key := range other.ForeignKeys {
			if key.Target != r.Name {
				continue
			}
			switch key.OnDelete {
			case catalog.NoAction, catalog.Restrict: // whether there is such a row is asked with the rights of the table's owner
				why = ""
			case catalog.Cascade:
				why = c.userCodeOfDelete(other, seen)
			case catalog.SetNull:
				why = c.userCodeOfUpdate(other, key.Columns)
			default:
				why = "defaults of " + other.Name.String() + " are worked out"
			}
			if why != "" {
				return why
			}
		}
	}
	return ""
}

// loudUpdate says so of an update of some columns, by which no rows are changed along.
func (c *hardenedAnalysis) userCodeOfUpdate(r *catalog.Relation, set []string) (why string) {
	switch {
	case !isSingleTable(r):
		return r.Name.String() + " is no table by itself"
	case !r.UpdateRunsNoUserCode:
		return "a trigger, check, index, type, rule or policy of its owner's may run as rows of " + r.Name.String() +
			" are updated"
	}
	changes := func(name string) bool {
		column := r.Column(name)
		return column == nil || column.Generated || slices.Contains(set, name)
	}
	for _, other := range c.snap.PointingTo(r.Name) {
		for _, key := range other.ForeignKeys {
			if key.Target == r.Name && key.OnUpdate != catalog.NoAction && key.OnUpdate != catalog.Restrict &&
				slices.ContainsFunc(key.TargetCols, changes) {
				return "rows of " + other.Name.String() + " follow a key that changes"
			}
		}
	}
	return ""
}
