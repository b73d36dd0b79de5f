package predicate_test

import "slices"

// sharedBlock draws a block for rows that a record shares; nil: no column of t refers to a key.
func (s *schema) sharedBlock(t *table) object {
	for _, target := range s.tables {
		if !target.primary || target.composite || s.chance(30) {
			continue
		}
		fromColumns := t.columnsWhere(func(c *tableColumn) bool {
			return c.isComparable() && c.family == target.key.family && collation(c) == collation(target.key)
		})
		if i := slices.IndexFunc(fromColumns, func(c *tableColumn) bool { return c.target == target }); i > 0 {
			fromColumns = fromColumns[i:]
		}
		if len(fromColumns) == 0 {
			continue
		}
		column := target.columnsWhere(func(c *tableColumn) bool { return c.use == statusSQL })[0]
		b := object{"record": object{s.qualifiedName(target): object{target.key.name: fromColumns[0].name}},
			"granted": object{"column": column.name, "is": "granted"}}
		if column.sqlType == "boolean" {
			b["granted"] = object{"column": column.name, "is": "true"}
		}
		if ends := target.columnsWhere(func(c *tableColumn) bool { return c.use == flag || c.use == instant || c.use == day }); len(ends) > 0 && s.chance(50) {
			b["revoked"] = ends[s.IntN(len(ends))].name
		}
		if active := t.columnsWhere(func(c *tableColumn) bool { return c.use == flag }); len(active) > 0 && s.chance(40) {
			b["active"] = active[0].name
		}
		return b
	}
	return nil
}
