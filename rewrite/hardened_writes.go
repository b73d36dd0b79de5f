package rewrite

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// An UPDATE or DELETE finds its rows as a SELECT over the same tables does. Row security, conditions and plans are the
// same, except that no plan is parallel. Like the outputs of a SELECT, the values that it sets and returns are computed
// of shown rows.
//
// The other code that it runs is the owner's: triggers, checks, generated columns, expressions of indexes and domains.
// It runs these again where foreign keys change further rows. They may run any query, with parameters that fail, as the
// agent. So the analysis treats an UPDATE or DELETE as that SELECT if all that it runs besides is PostgreSQL's own, or
// ours.

// asSelect returns a SELECT that finds the rows of an UPDATE or DELETE and computes the same expressions. It also
// returns the statement's target; both are nil for other statements.
func asSelect(n *sqltext.Node) (target *sqltext.RangeVar, s *sqltext.SelectStmt) {
	from := func(target *sqltext.RangeVar, otherItems []*sqltext.Node) []*sqltext.Node {
		return append([]*sqltext.Node{{Node: &sqltext.Node_RangeVar{RangeVar: target}}}, otherItems...)
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

// visitUpdateOrDelete visits an UPDATE or DELETE.
func (c *hardenedAnalysis) visitUpdateOrDelete(n *sqltext.Node) {
	target, query := asSelect(n)
	if reason := c.userCodeOfWrite(target, n.GetUpdateStmt()); reason != "" {
		c.harden("it writes: " + reason)
		return
	}
	c.visitQuery(query, nil, true, false)
}

// userCodeOfWrite says which code of the owner PostgreSQL may run when it writes rows of a table; "": none. update is
// nil for a DELETE.
func (c *hardenedAnalysis) userCodeOfWrite(target *sqltext.RangeVar, update *sqltext.UpdateStmt) (reason string) {
	ref := c.referenceOf[target]
	if ref == nil {
		return "what it writes is no table"
	}
	table, isKnown := c.snap.Relation(ref.name)
	if !isKnown {
		return "what it writes is not known"
	}
	if update == nil {
		return c.userCodeOfDelete(table, map[*catalog.Relation]bool{})
	}
	var setColumns []string
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
		case slices.ContainsFunc(c.snap.CastTargets(column.TypeOID), c.castRunsUserCode):
			// PostgreSQL casts the new value to the column's type, or to that of its elements, which the text does not name
			return "a cast that is not PostgreSQL's own may make the value of " + column.Name
		}
		setColumns = append(setColumns, column.Name)
	}
	return c.userCodeOfUpdate(table, setColumns)
}

// isSingleTable tells whether a table neither has partitions or inheritance children nor is one.
func isSingleTable(r *catalog.Relation) bool {
	return r.Kind == catalog.Table && !r.HasChildren && !r.IsPartition && len(r.Parents) == 0
}

// userCodeOfDelete names the owner's code that PostgreSQL may run when it deletes rows of a table. The rows that refer
// to them by foreign keys are changed, too.
func (c *hardenedAnalysis) userCodeOfDelete(r *catalog.Relation, seen map[*catalog.Relation]bool) (reason string) {
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
	for _, other := range c.snap.ReferringTo(r.Name) {
		for _, key := range other.ForeignKeys {
			if key.Target != r.Name {
				continue
			}
			switch key.OnDelete {
			case catalog.NoAction, catalog.Restrict: // PostgreSQL looks for a referring row with the rights of the table's owner
				reason = ""
			case catalog.Cascade:
				reason = c.userCodeOfDelete(other, seen)
			case catalog.SetNull:
				reason = c.userCodeOfUpdate(other, key.Columns)
			default:
				reason = "defaults of " + other.Name.String() + " are worked out"
			}
			if reason != "" {
				return reason
			}
		}
	}
	return ""
}

// userCodeOfUpdate says which code of the owner PostgreSQL may run when it updates some columns, if no foreign key
// changes other rows along.
func (c *hardenedAnalysis) userCodeOfUpdate(r *catalog.Relation, setColumns []string) (reason string) {
	switch {
	case !isSingleTable(r):
		return r.Name.String() + " is no table by itself"
	case !r.UpdateRunsNoUserCode:
		return "a trigger, check, index, type, rule or policy of its owner's may run as rows of " + r.Name.String() +
			" are updated"
	}
	changes := func(name string) bool {
		column := r.Column(name)
		return column == nil || column.Generated || slices.Contains(setColumns, name)
	}
	for _, other := range c.snap.ReferringTo(r.Name) {
		for _, key := range other.ForeignKeys {
			if key.Target == r.Name && key.OnUpdate != catalog.NoAction && key.OnUpdate != catalog.Restrict &&
				slices.ContainsFunc(key.TargetColumns, changes) {
				return "rows of " + other.Name.String() + " follow a key that changes"
			}
		}
	}
	return ""
}
