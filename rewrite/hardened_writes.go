package rewrite

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// An UPDATE or DELETE finds its rows as a SELECT over the same tables does. Row security, conditions and plans are the
// same, except that no plan is parallel. PostgreSQL computes the values that it sets and returns for visible rows only,
// like the outputs of a SELECT.
//
// An UPDATE or DELETE also runs code of the owner: triggers, checks, generated columns, and expressions of indexes and
// domains. Foreign keys may change further rows, for which the same code runs. Such code may run any query as the
// agent, with parameters for which the query fails. So the analysis treats an UPDATE or DELETE like that SELECT only if
// it runs no code but PostgreSQL's own, or pgconsent's.

// asSelect returns a SELECT that finds the same rows as an UPDATE or DELETE and computes the same expressions. It also
// returns the table to which the statement writes. Both results are nil for other statements.
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

// userCodeOfWrite says which code of the owner PostgreSQL may run when it updates or deletes rows of a table; "": none.
// update is nil for a DELETE.
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
			// PostgreSQL casts the new value to the type of the column or of its elements. The text does not name that type.
			return "a cast that is not PostgreSQL's own may make the value of " + column.Name
		}
		setColumns = append(setColumns, column.Name)
	}
	return c.userCodeOfUpdate(table, setColumns)
}

// isSingleTable tells whether a table has no partitions and no inheritance children, and is not itself one.
func isSingleTable(r *catalog.Relation) bool {
	return r.Kind == catalog.Table && !r.HasChildren && !r.IsPartition && len(r.Parents) == 0
}

// userCodeOfDelete says which code of the owner PostgreSQL may run when it deletes rows of a table; "": none. The rows
// that refer to the deleted rows by foreign keys may be changed, too.
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
			// PostgreSQL searches for a referring row with the rights of the table's owner, and runs no other code
			case catalog.NoAction, catalog.Restrict:
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

// userCodeOfUpdate says which code of the owner PostgreSQL may run when it updates some columns; "": none. An update
// that a foreign key passes on to other tables counts as such code.
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
