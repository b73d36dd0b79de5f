package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// hiddenPartialColumn returns a hidden column that decides which rows a partial unique key covers; "": there is none. A
// collision would tell agents the column's value. A column with the same value in all visible rows does not count.
func (c *writeLeakChecker) hiddenPartialColumn(t *policyTable, key catalog.Key) string {
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

// hiddenKeyColumn returns a hidden column of a unique key if a new row may collide in the key with a visible row. Such
// a collision would tell the column's value in the visible row, since agents know the value in the new row: a default,
// a stamp or NULL.
func (c *writeLeakChecker) hiddenKeyColumn(decl *writeDecl, t *policyTable, key catalog.Key, sendable []string) string {
	if slices.ContainsFunc(key.Columns, func(name string) bool {
		return preventsCollision(decl, key, t.relation.Column(name), sendable)
	}) {
		return ""
	}
	constants := constantColumns(t.rows)
	i := slices.IndexFunc(key.Columns, func(name string) bool {
		column := t.relation.Column(name)
		// hiddenPartialColumn handles the predicate of a partial key
		return !c.isColumnShown(t, name) && !slices.Contains(constants, name) && !slices.Contains(key.WhereColumns, name) &&
			(column == nil || !column.Generated) // the sources of a generated column are columns of the key, too
	})
	if i < 0 {
		return ""
	}
	return key.Columns[i]
}

// preventsCollision tells whether a column's value prevents any collision of a new row in a key, although agents do not
// choose the value.
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

// mayCollideUnsent tells whether new rows may collide in a key although agents send no column of it. They may if each
// column of the key has a stamp, a default that other rows share, or a NULL that counts as equal.
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
	// A partial index on WHERE active does not contain the new row if active is false by default.
	if column := r.Column(key.Where); column != nil && column.Default == "false" && !slices.Contains(sendable, key.Where) &&
		!slices.ContainsFunc(decl.stamps, func(s stampDecl) bool { return s.column == key.Where }) {
		return false
	}
	return len(key.Columns) > 0 && !slices.ContainsFunc(key.Columns, func(name string) bool { return !fixed(name) })
}

// collidesWithVisibleRow tells whether a new row can collide in a key only with rows that the agent sees. This holds if
// the table's rule reads only columns of the key. Then the rule has the same result for both rows, and PostgreSQL
// refuses an invisible new row before it checks the key.
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

// dependsOnKeyOnly tells whether a part of a rule has the same result for two rows with equal keys. It has if the part
// reads only columns of the key whose equal values are identical. Stamped columns do not count, since the rule's
// condition on them does not apply to new rows.
func (d *writeDecl) dependsOnKeyOnly(key catalog.Key, part predicate.Node, r *catalog.Relation) bool {
	columns, isKnown := predicate.RowColumns(part)
	return isKnown && len(columns) > 0 && readsOnlyNamedColumns(part, r) &&
		!slices.ContainsFunc(columns, func(name string) bool {
			stamped := slices.ContainsFunc(d.stamps, func(s stampDecl) bool { return s.column == name })
			return !hasExactEquality(r.Column(name)) || stamped || !slices.Contains(key.EqualColumns, name)
		})
}

// readsOnlyNamedColumns tells whether a part of a rule depends only on the columns that it names. For a row of r that
// does not exist yet, a consent may depend on more. Links from the row's new key lead to no subjects, which may be
// enough; links from the same key of a hidden row may lead to subjects who do not consent. r is nil for a row that
// exists.
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
