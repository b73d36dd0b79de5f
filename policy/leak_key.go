package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// hiddenPartialColumn names a column that agents do not see and that decides which rows a key is for: whether rows collide in it
// tells what that holds. A column that holds the same in all rows that show tells nothing.
func (c *writeLeaks) hiddenPartialColumn(t *policyTable, key catalog.Key) string {
	if key.Where == "" {
		return ""
	}
	same := constantColumns(t.rows)
	i := slices.IndexFunc(key.WhereColumns, func(name string) bool { return !c.columnShows(t, name) && !slices.Contains(same, name) })
	if i < 0 {
		return ""
	}
	return key.WhereColumns[i]
}

// hiddenKeyColumn names a column of a key that agents do not see, where a new row may collide in the key with one that shows:
// whether it does tells what the column holds there, since the new row's value is known, a default, a stamp, or none.
func (c *writeLeaks) hiddenKeyColumn(decl *writeDecl, t *policyTable, key catalog.Key, sendable []string) string {
	if slices.ContainsFunc(key.Columns, func(name string) bool {
		return distinguishes(decl, key, t.relation.Column(name), sendable)
	}) {
		return ""
	}
	same := constantColumns(t.rows)
	i := slices.IndexFunc(key.Columns, func(name string) bool {
		column := t.relation.Column(name)
		return !c.columnShows(t, name) && !slices.Contains(same, name) && !slices.Contains(key.WhereColumns, name) && // see partly
			(column == nil || !column.Generated) // what that is computed from is of the key, too
	})
	if i < 0 {
		return ""
	}
	return key.Columns[i]
}

// distinguishes tells whether a new row collides with none in a key by what one of its columns gets without the agent.
func distinguishes(decl *writeDecl, key catalog.Key, column *catalog.Column, sendable []string) bool {
	switch {
	case column == nil, column.Generated, slices.Contains(sendable, column.Name), slices.ContainsFunc(decl.stamps,
		func(s stampDecl) bool { return s.column == column.Name }):
		return false
	case column.Identity != "":
		return true
	case column.Default == "":
		return column.NotNull || slices.Contains(key.NullsDistinct, column.Name)
	}
	return slices.Contains(key.Equal, column.Name) && hasUniqueDefault(column)
}

// collidesUnsent tells whether rows may collide in a key though agents set no column of it: all have stamps, defaults that
// say the same of other rows, or NULL where NULL does not keep them apart.
func collidesUnsent(decl *writeDecl, key catalog.Key, r *catalog.Relation, sendable []string) bool {
	fixed := func(name string) bool {
		column := r.Column(name)
		if column == nil {
			return false
		}
		switch {
		case slices.ContainsFunc(decl.stamps, func(s stampDecl) bool { return s.column == name }), column.Generated:
			return true
		case slices.Contains(sendable, name) || column.Identity != "":
			return false
		case column.Default == "":
			return !column.NotNull && !slices.Contains(key.NullsDistinct, name)
		}
		return !hasUniqueDefault(column)
	}
	// A row outside of what a partial index is about: WHERE active, and the default is false.
	if column := r.Column(key.Where); column != nil && column.Default == "false" && !slices.Contains(sendable, key.Where) &&
		!slices.ContainsFunc(decl.stamps, func(s stampDecl) bool { return s.column == key.Where }) {
		return false
	}
	return len(key.Columns) > 0 && !slices.ContainsFunc(key.Columns, func(name string) bool { return !fixed(name) })
}

// collidesInSight tells whether rows that collide in a key are certain to be visible: every part of the rule reads nothing
// of a row but columns that the key holds. Then it says of the row that is there what it says of the new one, which
// shows, or it would have been refused before its key was looked at.
func (d *writeDecl) collidesInSight(key catalog.Key, rows predicate.Node, r *catalog.Relation) bool {
	for _, part := range predicate.Conjuncts(rows) {
		own := predicate.Own{}
		switch n := part.(type) {
		case predicate.Open:
			continue
		case predicate.Own:
			own = n
		case predicate.Tenant:
			own = n.Own
		default:
			if !d.keyDecides(key, part, r) {
				return false
			}
			continue
		}
		disowned := slices.ContainsFunc(d.stamps, func(s stampDecl) bool {
			return s.column == own.Column && (s.attribute != own.Attribute || s.unless != nil)
		})
		if disowned || !slices.Contains(key.Equal, own.Column) {
			return false
		}
	}
	return true
}

// keyDecides tells whether two rows that are equal in a key are equal in all that a part of the rule reads of them, to
// the letter. A stamped column is not: what it decides is not asked of a new row.
func (d *writeDecl) keyDecides(key catalog.Key, part predicate.Node, r *catalog.Relation) bool {
	columns, known := predicate.RowColumns(part)
	return known && len(columns) > 0 && readsNamedColumns(part) && !slices.ContainsFunc(columns, func(name string) bool {
		stamped := slices.ContainsFunc(d.stamps, func(s stampDecl) bool { return s.column == name })
		return !hasExactEquality(r.Column(name)) || stamped || !slices.Contains(key.Equal, name)
	})
}

// readsNamedColumns tells whether a part of a rule depends, of the row itself, on the columns that it names and on nothing else.
func readsNamedColumns(n predicate.Node) bool {
	all := func(parts []predicate.Node) bool {
		return !slices.ContainsFunc(parts, func(part predicate.Node) bool { return !readsNamedColumns(part) })
	}
	switch n := n.(type) {
	case predicate.Own, predicate.Tenant, predicate.Status, predicate.Grant, predicate.SQL, predicate.Visible:
		return true
	case predicate.Consent:
		return n.Materialized == nil && len(n.Steps) > 0
	case predicate.All:
		return all(n)
	case predicate.Any:
		return all(n)
	case predicate.Not:
		return readsNamedColumns(n.Node)
	}
	return false
}

// hasExactEquality tells whether values of a column that are equal are the same to the letter.
func hasExactEquality(column *catalog.Column) bool {
	return column != nil && !column.Nondeterministic &&
		(typeFamily(column.Type) != "" || column.Type == "boolean" || isBlankPadded(column.Type))
}
