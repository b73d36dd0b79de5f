package oracle

import (
	"fmt"
	"slices"
	"strings"
)

// write makes a statement that changes what a condition finds, or inserts what it gives, and one that looks at what
// there is then.
func (a *author) write() (sql, after string) {
	var may []*modelTable
	for _, t := range a.model.tables {
		if t.deletes || len(t.settable) > 0 || len(t.given) > 0 {
			may = append(may, t)
		}
	}
	if len(may) == 0 {
		return "", ""
	}
	t := one(a, may...)
	after = "SELECT count(*) AS n FROM " + t.name
	// which may be random
	if len(t.key) > 0 && !slices.ContainsFunc(t.key, func(k string) bool { return len(t.given) > 0 && !slices.Contains(t.given, k) }) {
		after = "SELECT " + strings.Join(t.key, ", ") + " FROM " + t.name
	}
	sql = a.change(t)
	if strings.HasPrefix(sql, "DELETE") { // what it takes along may be by way of hidden rows, where the policy accepts references
		after = "SELECT 1 AS one"
	}
	return sql, after
}

// change writes a table.
func (a *author) change(t *modelTable) string {
	s := &authorScope{items: []*authorItem{{alias: "x", columns: t.columns, key: t.key, table: t}}}
	if len(t.given) > 0 && (a.in(30) || !t.deletes && len(t.settable) == 0) {
		return a.insert(t, s)
	}
	if len(t.settable) == 0 && !t.deletes {
		return ""
	}
	var returned []string
	for range 1 + a.IntN(2) {
		returned = append(returned, "x."+one(a, t.columns...).name)
	}
	for i, k := range t.key {
		returned = append(returned, fmt.Sprintf("x.%s AS k%d", k, i))
	}
	if a.in(25) {
		from, inner := a.from(nil, 1, 0)
		if link := a.link(s, inner); link != "" && inner.items[0].alias != "x" {
			whole := &authorScope{items: append(slices.Clone(s.items), inner.items...)}
			if len(t.settable) == 0 || t.deletes && a.in(50) {
				return "DELETE FROM " + t.name + " AS x USING " + from + " WHERE " + link + " AND " +
					a.condition(whole, 1) + " RETURNING " + strings.Join(returned, ", ")
			}
			c, ok := a.settable(t)
			if !ok {
				return ""
			}
			return "UPDATE " + t.name + " AS x SET " + c + " FROM " + from + " WHERE " + link + " AND " +
				a.condition(whole, 1) + " RETURNING " + strings.Join(returned, ", ")
		}
	}
	where := " WHERE " + a.condition(s, 1+a.IntN(2))
	if len(t.settable) == 0 || t.deletes && a.in(40) {
		return "DELETE FROM " + t.name + " AS x" + where + " RETURNING " + strings.Join(returned, ", ")
	}
	set, ok := a.settable(t)
	if !ok {
		return ""
	}
	return "UPDATE " + t.name + " AS x SET " + set + where + " RETURNING " + strings.Join(returned, ", ")
}

// settable sets a column to a value, or to one of the same row.
func (a *author) settable(t *modelTable) (string, bool) {
	for range 5 {
		name := one(a, t.settable...)
		i := slices.IndexFunc(t.columns, func(c modelColumn) bool { return c.name == name })
		if i < 0 || slices.Contains(t.key, name) {
			continue
		}
		c := t.columns[i]
		if a.in(25) {
			return name + " = x." + name, true
		}
		if v, ok := a.sample(c); ok {
			return name + " = " + literal(v), true
		}
	}
	return "", false
}

// insert makes rows of those that a condition finds, with other keys.
func (a *author) insert(t *modelTable, s *authorScope) string {
	var outputs, names []string
	for _, name := range t.given {
		i := slices.IndexFunc(t.columns, func(c modelColumn) bool { return c.name == name })
		if i < 0 {
			continue
		}
		c, x := t.columns[i], "x."+name
		switch v, ok := a.sample(c); {
		case slices.Contains(t.key, name) && c.kind == kindUUID:
			x = "md5(" + x + "::text || 'new')::uuid"
		case slices.Contains(t.key, name) && c.kind == kindInt:
			x += " + 20000"
		case slices.Contains(t.key, name) && c.kind == kindText:
			x += " || 'n'"
		case ok && a.in(15):
			x = literal(v) + "::" + c.typ
		}
		outputs, names = append(outputs, x), append(names, name)
	}
	if len(names) == 0 {
		return ""
	}
	return "INSERT INTO " + t.name + " (" + strings.Join(names, ", ") + ") SELECT " + strings.Join(outputs, ", ") +
		" FROM " + t.name + " AS x WHERE " + a.condition(s, 1+a.IntN(2)) + " RETURNING " + strings.Join(names, ", ")
}
