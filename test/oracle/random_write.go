package oracle

import (
	"fmt"
	"slices"
	"strings"
)

// newWrite returns a random INSERT, UPDATE, DELETE or MERGE, and a query that reads the table after it.
func (a *statementAuthor) newWrite() (sql, queryAfterWrite string) {
	var writableTables []*modelTable
	for _, t := range a.model.tables {
		if t.allowsDelete || len(t.updatableColumns) > 0 || len(t.insertedColumns) > 0 {
			writableTables = append(writableTables, t)
		}
	}
	if len(writableTables) == 0 {
		return "", ""
	}
	t := pickOne(a, writableTables...)
	queryAfterWrite = "SELECT count(*) AS n FROM " + t.name
	// The query reads the key only if an INSERT would set it, since otherwise a default may make the key random.
	if len(t.key) > 0 && !slices.ContainsFunc(t.key, func(k string) bool { return len(t.insertedColumns) > 0 && !slices.Contains(t.insertedColumns, k) }) {
		queryAfterWrite = "SELECT " + strings.Join(t.key, ", ") + " FROM " + t.name
	}
	sql = a.writeStatement(t)
	if strings.HasPrefix(sql, "DELETE") { // a DELETE may cascade to hidden rows of this table
		queryAfterWrite = "SELECT 1 AS one"
	}
	return sql, queryAfterWrite
}

// writeStatement returns a random INSERT, UPDATE, DELETE or MERGE on a table.
func (a *statementAuthor) writeStatement(t *modelTable) string {
	s := &authorScope{items: []*authorItem{{alias: "x", columns: t.columns, uniqueColumns: t.key, table: t}}}
	if len(t.insertedColumns) > 0 && (a.chance(30) || !t.allowsDelete && len(t.updatableColumns) == 0) {
		return a.insertSelect(t, s)
	}
	if len(t.updatableColumns) == 0 && !t.allowsDelete {
		return ""
	}
	var returned []string
	for range 1 + a.IntN(2) {
		returned = append(returned, "x."+pickOne(a, t.columns...).name)
	}
	for i, k := range t.key {
		returned = append(returned, fmt.Sprintf("x.%s AS k%d", k, i))
	}
	if a.chance(25) {
		from, inner := a.fromClause(nil, 1, 0)
		if link := a.joinCondition(s, inner); link != "" && inner.items[0].alias != "x" {
			bothScope := &authorScope{items: append(slices.Clone(s.items), inner.items...)}
			if len(t.updatableColumns) == 0 || t.allowsDelete && a.chance(50) {
				return "DELETE FROM " + t.name + " AS x USING " + from + " WHERE " + link + " AND " +
					a.condition(bothScope, 1) + " RETURNING " + strings.Join(returned, ", ")
			}
			c, ok := a.assignment(t)
			if !ok {
				return ""
			}
			return "UPDATE " + t.name + " AS x SET " + c + " FROM " + from + " WHERE " + link + " AND " +
				a.condition(bothScope, 1) + " RETURNING " + strings.Join(returned, ", ")
		}
	}
	where := " WHERE " + a.condition(s, 1+a.IntN(2))
	if len(t.updatableColumns) == 0 || t.allowsDelete && a.chance(40) {
		return "DELETE FROM " + t.name + " AS x" + where + " RETURNING " + strings.Join(returned, ", ")
	}
	set, ok := a.assignment(t)
	if !ok {
		return ""
	}
	return "UPDATE " + t.name + " AS x SET " + set + where + " RETURNING " + strings.Join(returned, ", ")
}

// assignment returns the assignment of a constant, or of another column, to a column.
func (a *statementAuthor) assignment(t *modelTable) (string, bool) {
	for range 5 {
		name := pickOne(a, t.updatableColumns...)
		i := slices.IndexFunc(t.columns, func(c modelColumn) bool { return c.name == name })
		if i < 0 || slices.Contains(t.key, name) {
			continue
		}
		c := t.columns[i]
		if a.chance(25) {
			return name + " = x." + name, true
		}
		if v, ok := a.sampleValue(c); ok {
			return name + " = " + stringLiteral(v), true
		}
	}
	return "", false
}

// insertSelect returns an INSERT that copies the rows which fulfil a condition, with other keys.
func (a *statementAuthor) insertSelect(t *modelTable, s *authorScope) string {
	var outputs, names []string
	for _, name := range t.insertedColumns {
		i := slices.IndexFunc(t.columns, func(c modelColumn) bool { return c.name == name })
		if i < 0 {
			continue
		}
		c, x := t.columns[i], "x."+name
		switch v, ok := a.sampleValue(c); {
		case slices.Contains(t.key, name) && c.kind == kindUUID:
			x = "md5(" + x + "::text || 'new')::uuid"
		case slices.Contains(t.key, name) && c.kind == kindInt:
			x += " + 20000"
		case slices.Contains(t.key, name) && c.kind == kindText:
			x += " || 'n'"
		case ok && a.chance(15):
			x = stringLiteral(v) + "::" + c.typ
		}
		outputs, names = append(outputs, x), append(names, name)
	}
	if len(names) == 0 {
		return ""
	}
	return "INSERT INTO " + t.name + " (" + strings.Join(names, ", ") + ") SELECT " + strings.Join(outputs, ", ") +
		" FROM " + t.name + " AS x WHERE " + a.condition(s, 1+a.IntN(2)) + " RETURNING " + strings.Join(names, ", ")
}
