package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// hiddenPartialColumn returns a hidden column that decides which rows a partial unique key covers: a collision would
// tell its value. A column that has the same value in all visible rows tells nothing.
func (c *writeLeaks) hiddenPartialColumn(t *policyTable, key catalog.Key) string {
	if key.Where == "" {
		return ""
	}
	constants := constantColumns(t.rows)
	i := slices.IndexFunc(key.WhereColumns, func(name string) bool {
		return !c.isColumnShown(t, name) &&
			!slices.Contains(constants, name)
	})
	if i < 0 {
		return ""
	}
	return key.WhereColumns[i]
}

// hiddenKeyColumn returns a hidden column of a unique key, if a new row may collide in the key with a visible row. Such
// a collision would tell the column's value, since the value of the new row is known: a default, a stamp or NULL.
func (c *writeLeaks) hiddenKeyColumn(decl *writeDecl, t *policyTable, key catalog.Key, sendable []string) string {
	if slices.ContainsFunc(key.Columns, func(name string) bool {
		return preventsCollision(decl, key, t.relation.Column(name), sendable)
	}) {
		return ""
	}
	constants := constantColumns(t.rows)
	i := slices.IndexFunc(key.Columns, func(name string) bool {
		column := t.relation.Column(name)
		// a partial key's condition is treated by hiddenPartialColumn
		return !c.isColumnShown(t, name) && !slices.Contains(constants, name) && !slices.Contains(key.WhereColumns, name) &&
			(column == nil || !column.Generated) // the sources of a generated column are columns of the key, too
	})
	if i < 0 {
		return ""
	}
	return key.Columns[i]
}

// preventsCollision tells whether a column's value keeps a new row from any collision in a key, although the agent does
// not choose it.
func preventsCollision(decl *writeDecl, key catalog.Key, column *catalog.Column, sendable []string) bool {
	switch {
	case column == nil, column.Generated, slices.Contains(sendable, column.Name), slices.ContainsFunc(decl.stamps,
		func(s stampDecl) bool { return s.column == column.Name }):
		return false
	case column.Identity != "":
		return true
	case column.Default == "":
		return column.NotNull || slices.Contains(key.NullsDistinctColumns, column.Name)
	}
	return slices.Contains(key.EqualColumns, column.Name) && hasUniqueDefault(column)
}

// mayCollideUnsent tells whether new rows may collide in a key of which agents send no column. They may if each column
// has a stamp, a default that other rows share, or a NULL that counts as equal.
func mayCollideUnsent(decl *writeDecl, key catalog.Key, r *catalog.Relation, sendable []string) bool {
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
			return !column.NotNull && !slices.Contains(key.NullsDistinctColumns, name)
		}
		return !hasUniqueDefault(column)
	}
	// A partial index does not cover the new row: WHERE active, and the default of active is false.
	if column := r.Column(key.Where); column != nil && column.Default == "false" && !slices.Contains(sendable, key.Where) &&
		!slices.ContainsFunc(decl.stamps, func(s stampDecl) bool { return s.column == key.Where }) {
		return false
	}
	return len(key.Columns) > 0 && !slices.ContainsFunc(key.Columns, func(name string) bool { return !fixed(name) })
}

// collidesWithVisibleRow tells whether a row with which a new row collides is certainly visible. This holds if the rule
// reads only columns of the key. It then gives the same answer for both rows, and PostgreSQL would have refused an
// invisible new row before it looked at its key.
func (d *writeDecl) collidesWithVisibleRow(key catalog.Key, rows predicate.Node, r *catalog.Relation) bool {
	for _, part := range predicate.Conjuncts(rows) {
		comparison := predicate.Own{}
		switch n := part.(type) {
		case predicate.Open:
			continue
		case predicate.Own:
			comparison = n
		case predicate.Tenant:
			comparison = n.Own
		default:
			if !d.dependsOnKeyOnly(key, part, r) {
				return false
			}
			continue
		}
		disowned := slices.ContainsFunc(d.stamps, func(s stampDecl) bool {
			return s.column == comparison.Column && (s.attribute != comparison.Attribute || s.unless != nil)
		})
		if disowned || !slices.Contains(key.EqualColumns, comparison.Column) {
			return false
		}
	}
	return true
}

// dependsOnKeyOnly tells whether a part of a rule gives the same answer for two rows with equal keys. It does if it
// reads only columns that are then identical. A stamped column does not count, since the rule's condition on it does
// not apply to new rows.
func (d *writeDecl) dependsOnKeyOnly(key catalog.Key, part predicate.Node, r *catalog.Relation) bool {
	columns, isKnown := predicate.RowColumns(part)
	return isKnown && len(columns) > 0 && readsOnlyNamedColumns(part, r) &&
		!slices.ContainsFunc(columns, func(name string) bool {
			stamped := slices.ContainsFunc(d.stamps, func(s stampDecl) bool { return s.column == name })
			return !hasExactEquality(r.Column(name)) || stamped || !slices.Contains(key.EqualColumns, name)
		})
}

// readsOnlyNamedColumns tells whether a part of a rule depends only on the columns that it names. With r, it must also
// not depend on whether a row of r exists. Links from a key that is free lead nowhere, and links from the same key of a
// hidden row may lead to subjects who have not consented. r is nil for a row that exists.
func readsOnlyNamedColumns(n predicate.Node, r *catalog.Relation) bool {
	all := func(parts []predicate.Node) bool {
		return !slices.ContainsFunc(parts, func(part predicate.Node) bool { return !readsOnlyNamedColumns(part, r) })
	}
	switch n := n.(type) {
	case predicate.Own, predicate.Tenant, predicate.Status, predicate.Grant, predicate.SQL, predicate.Visible:
		return true
	case predicate.Consent:
		return n.Materialized == nil && len(n.Steps) > 0 && (n.FirstRequired || !startsAtKey(n, r))
	case predicate.All:
		return all(n)
	case predicate.Any:
		return all(n)
	case predicate.Not:
		return readsOnlyNamedColumns(n.Node, r)
	}
	return false
}

// startsAtKey tells whether the links to a row's subjects begin at a key of the row.
func startsAtKey(n predicate.Consent, r *catalog.Relation) bool {
	from, _ := predicate.RowColumns(n)
	return r != nil && slices.ContainsFunc(r.UniqueKeys, func(key catalog.Key) bool {
		return len(key.Columns) > 0 && !slices.ContainsFunc(key.Columns, func(name string) bool { return !slices.Contains(from, name) })
	})
}

// hasExactEquality tells whether equal values of a column are identical.
func hasExactEquality(column *catalog.Column) bool {
	return column != nil && !column.Nondeterministic &&
		(typeFamily(column.Type) != "" || column.Type == "boolean" || isBlankPadded(column.Type))
}
