package oracle

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// fromClause returns a FROM clause with up to this number of items, and its scope.
func (a *statementAuthor) fromClause(outer *authorScope, items, depth int) (string, *authorScope) {
	s := &authorScope{parent: outer}
	sql := a.addFromItem(s, outer, depth, false)
	for n := 1; n < items; n++ {
		lateral := a.chance(14)
		comma := ", "
		if n < items-1 { // after a comma, a later JOIN could not refer to the items before it
			comma = " CROSS JOIN "
		}
		left := &authorScope{items: slices.Clone(s.items), parent: outer}
		visible := outer
		if lateral {
			visible = left
		}
		before, params := len(s.items), len(a.params)
		right := a.addFromItem(s, visible, depth, lateral)
		inner := &authorScope{items: s.items[before:]}
		link := a.joinCondition(left, inner)
		switch {
		case link == "" && !lateral, a.chance(5):
			// An item without a join condition is replaced by a query that returns few rows.
			alias := s.items[before].alias
			s.items, a.params = s.items[:before], a.params[:params]
			sql += pickOne(a, " CROSS JOIN (", comma+"(") + a.smallQuery(s, alias) + ") AS " + alias
			continue
		case a.chance(10) && !lateral: // join by a column name that both sides have
			if name, ok := sharedColumn(left, inner); ok {
				sql += pickOne(a, " JOIN ", " LEFT JOIN ", " RIGHT JOIN ", " FULL JOIN ") + right + " USING (" + name + ")"
				continue
			}
		case a.chance(12):
			sql += pickOne(a, " CROSS JOIN ", comma) + right
			continue
		}
		join := pickOne(a, " JOIN ", " LEFT JOIN ", " LEFT JOIN ", " LEFT JOIN ", " RIGHT JOIN ", " FULL JOIN ")
		if lateral {
			join = pickOne(a, " JOIN ", " LEFT JOIN ")
		}
		on := link
		switch {
		case on == "":
			on = "true"
		case a.chance(35) && join != " FULL JOIN ":
			on += " AND " + a.simpleCondition(&authorScope{items: s.items, parent: outer}, 0)
		}
		if a.chance(12) && n == 1 && items > 2 && !lateral {
			sql, on = "("+sql, on+")"
		}
		sql += join + right + " ON " + on
	}
	return sql, s
}

// smallQuery returns a query with few rows, and adds its columns to the scope.
func (a *statementAuthor) smallQuery(s *authorScope, alias string) string {
	t := pickOne(a, a.model.tables...)
	s.items = append(s.items, &authorItem{alias: alias, columns: t.columns, uniqueColumns: t.key})
	var all []string
	for _, c := range t.columns {
		all = append(all, "x."+c.name)
	}
	list := strings.Join(all, ", ")
	return "SELECT " + list + " FROM " + t.name + " AS x ORDER BY ROW(" + list + ")::text COLLATE \"C\" LIMIT " + fmt.Sprint(1+a.IntN(4))
}

// sharedColumn returns a column name that occurs exactly once on each side.
func sharedColumn(left, right *authorScope) (string, bool) {
	for _, c := range right.items[0].columns {
		n := 0
		for _, i := range left.items {
			for _, d := range i.columns {
				if d.name == c.name && d.typ == c.typ && c.kind != kindOther && c.kind != kindJSONB {
					n++
				}
			}
		}
		if n == 1 && len(right.items) == 1 {
			return c.name, true
		}
	}
	return "", false
}

// addFromItem adds an item to the scope s, and returns its SQL. If it is LATERAL, it can read the items of outer;
// otherwise it can read only the scope around the query.
func (a *statementAuthor) addFromItem(s, outer *authorScope, depth int, lateral bool) string {
	alias := a.newAlias()
	for slices.ContainsFunc(s.items, func(i *authorItem) bool { return i.alias == alias }) {
		alias = a.newAlias()
	}
	as := " AS " + alias
	switch n := a.IntN(100); {
	case lateral || depth > 0 && n < 14 && a.depth < 2:
		a.depth++
		sql, columns := a.query(outer, depth-1, a.chance(20))
		a.depth--
		s.items = append(s.items, &authorItem{alias: alias, columns: columns})
		if lateral {
			return "LATERAL (" + sql + ")" + as
		}
		return "(" + sql + ")" + as
	case n < 24 && len(a.queryItems) > 0:
		q := pickOne(a, a.queryItems...)
		s.items = append(s.items, &authorItem{alias: alias, columns: q.columns})
		return q.alias + as
	}
	t := pickOne(a, a.model.tables...)
	for range 3 { // prefer tables that have a key and can be joined
		if (len(t.links) > 0 || len(s.items) == 0) && (t.isBaseTable && len(t.key) > 0) {
			break
		}
		t = pickOne(a, a.model.tables...)
	}
	for a.plainStyle && !t.isBaseTable {
		t = pickOne(a, a.model.tables...)
	}
	if len(s.items) > 0 && s.items[0].table != nil && a.chance(65) {
		if joined := a.joinedTables(s.items); len(joined) > 0 {
			t = pickOne(a, joined...)
		}
	}
	s.items = append(s.items, &authorItem{alias: alias, columns: t.columns, uniqueColumns: t.key, table: t})
	if t.isBaseTable && a.chance(1) {
		return "ONLY " + t.name + as
	}
	return t.name + as
}

// joinedTables returns the tables that foreign keys connect with one of the items, directly or through one further
// table.
func (a *statementAuthor) joinedTables(items []*authorItem) []*modelTable {
	var out []*modelTable
	for _, t := range a.model.tables {
		for _, i := range items {
			if i.table == nil {
				continue
			}
			refersTo := func(from, target *modelTable) bool {
				return slices.ContainsFunc(from.links, func(l modelLink) bool { return l.target == target.relation })
			}
			if a.plainStyle && !t.isBaseTable {
				continue
			}
			if refersTo(t, i.table) || refersTo(i.table, t) || t == i.table && a.chance(15) {
				out = append(out, t)
			}
		}
	}
	return out
}

// outputColumn returns an expression for the list of a SELECT without GROUP BY, and its column.
func (a *statementAuthor) outputColumn(s *authorScope, depth int) (string, modelColumn) {
	x, c, ok := a.pickColumn(&authorScope{items: s.items})
	if !ok {
		return "1", modelColumn{typ: "integer", kind: kindInt, samples: []string{"1"}}
	}
	boolColumn := modelColumn{typ: "boolean", oid: 16, kind: kindBool}
	text := modelColumn{typ: "text", oid: 25, kind: kindText, samples: c.samples}
	if a.plainStyle && a.chance(70) {
		return x, c
	}
	switch n := a.IntN(100); {
	case n < 10:
		return a.condition(s, min(depth, 1)), boolColumn
	case n < 14:
		return "CASE WHEN " + a.simpleCondition(s, 0) + " THEN " + x + " END", c
	case n < 18:
		if v, ok := a.sampleValue(c); ok && c.kind != kindOther {
			if a.plainStyle {
				return "coalesce(" + x + ", " + stringLiteral(v) + ")", c
			}
			return "coalesce(" + x + ", " + stringLiteral(v) + "::" + c.typ + ")", c
		}
	case n < 22 && depth > 0:
		from, inner := a.fromClause(s, 1, 0)
		where := a.simpleCondition(inner, 0)
		if l := a.joinCondition(s, inner); l != "" {
			where += " AND " + l
		}
		return "(SELECT count(*) FROM " + from + " WHERE " + where + ")", modelColumn{typ: "bigint", oid: 20, kind: kindInt}
	case n < 24 && !a.plainStyle:
		i := pickOne(a, s.items...)
		if i.table != nil && i.table.hasUnusedColumns {
			break
		}
		return pickOne(a, i.alias+" IS NULL", "("+i.alias+" IS NOT NULL)", "("+i.alias+")::text IS NULL"), boolColumn
	case n < 32:
		switch c.kind {
		case kindText:
			if c.equalValuesDiffer {
				x = "(" + x + ` COLLATE "C")`
			}
			return pickOne(a, "md5("+x+"::text)", "upper("+x+"::text)", "left("+x+"::text, 4)",
				"length("+x+"::text)::text", "regexp_replace("+x+"::text, '[aeiou]', '-', 'g')"), text
		case kindTime:
			return "date_trunc('month', " + x + ")::text", text
		case kindInt:
			return pickOne(a, x+" + 1", x+" % 7", "abs("+x+")"), modelColumn{typ: "bigint", kind: kindOther}
		case kindJSONB:
			return "(" + x + " ->> " + stringLiteral(a.keyPath(c)) + ")", text
		case kindTSVector:
			return "ts_rank(" + x + ", " + a.textSearch() + ")::numeric(9,6)", modelColumn{typ: "numeric", kind: kindNumeric}
		}
	}
	return x, c
}

// hasTotalOrder reports whether the order of a column's values is defined, and equal values are written alike.
func hasTotalOrder(c modelColumn) bool {
	return !c.equalValuesDiffer && c.kind != kindOther && c.kind != kindFloat && c.kind != kindTSVector
}

// query returns a random SELECT, and its columns. If limited is set, the SELECT may have a LIMIT, and then has a total
// order.
func (a *statementAuthor) query(outer *authorScope, depth int, limited bool) (string, []modelColumn) {
	if depth > 0 && a.chance(8) {
		return a.setOperation(outer, depth)
	}
	items := pickOne(a, 1, 1, 2, 2, 2, 3)
	if depth <= 0 {
		items = pickOne(a, 1, 1, 2)
	}
	from, s := a.fromClause(outer, items, depth)
	where := ""
	switch {
	case a.plainStyle && a.chance(40):
		where = " WHERE " + a.indexedSearch(s)
		for range pickOne(a, 0, 0, 1, 1, 2) {
			where += " AND " + pickOne(a, a.leakyCondition(s), a.indexedSearch(s), a.simpleCondition(s, 0))
		}
	case a.chance(88):
		where = " WHERE " + a.condition(s, depth)
		if a.chance(12) {
			where += " AND " + a.operatorSearch(s)
		}
	}
	for _, words := range s.textSearches {
		from += ", " + words
	}
	var sql string
	var columns []modelColumn
	switch n := a.IntN(100); {
	case n < 26:
		sql, columns = a.groupedQuery(s, from, where, depth)
	case n < 34:
		sql, columns = a.windowQuery(s, from, where)
	default:
		distinct := ""
		if a.chance(14) {
			distinct = "DISTINCT "
		}
		var outputs []string
		for range 1 + a.IntN(4) {
			x, c := a.outputColumn(s, depth)
			if distinct != "" && !hasTotalOrder(c) {
				x, c = "("+x+")::text COLLATE \"C\"", modelColumn{typ: "text", oid: 25, kind: kindText, samples: c.samples}
			}
			c.name = a.outputName(columns, c)
			columns = append(columns, c)
			outputs = append(outputs, x+" AS "+c.name)
		}
		sql = "SELECT " + distinct + strings.Join(outputs, ", ") + " FROM " + from + where
	}
	if limited {
		sql = a.withLimit(sql, columns)
	}
	return sql, columns
}

func (a *statementAuthor) outputName(columns []modelColumn, c modelColumn) string {
	name := c.name
	if name == "" || a.chance(10) {
		t := pickOne(a, a.model.tables...)
		name = pickOne(a, t.columns...).name
	}
	if slices.ContainsFunc(columns, func(c modelColumn) bool { return c.name == name }) {
		name = fmt.Sprintf("c%d", len(columns)+1)
	}
	return name
}

func hasGroupingSets(sql string) bool {
	return strings.Contains(sql, "GROUPING SETS") || strings.Contains(sql, "ROLLUP") || strings.Contains(sql, "CUBE")
}

// withLimit adds a total order and a LIMIT to a query, if the order can be made total.
func (a *statementAuthor) withLimit(sql string, columns []modelColumn) string {
	if hasGroupingSets(sql) {
		// Before version 18, PostgreSQL regards a sort key as constant if a condition, possibly of a row policy, compares the
		// key with one value. But with grouping sets the key may be NULL, and then the order is wrong.
		return sql
	}
	var order []string
	for i, c := range columns {
		if !hasTotalOrder(c) {
			return sql
		}
		order = append(order, fmt.Sprint(i+1)+pickOne(a, "", "", " DESC", " NULLS FIRST", " DESC NULLS LAST"))
	}
	a.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	sql += " ORDER BY " + strings.Join(order, ", ")
	if a.chance(85) {
		number := modelColumn{typ: "bigint", oid: 20, kind: kindInt}
		n := fmt.Sprint(1 + a.IntN(12))
		sql += " LIMIT " + a.writeConstant(n, number, func() (string, bool) { return "3", true })
		if a.chance(25) {
			sql += fmt.Sprintf(" OFFSET %d", a.IntN(4))
		}
	}
	return sql
}

// aggregateCall returns an aggregate whose result does not depend on the order of the rows.
func (a *statementAuthor) aggregateCall(s *authorScope, depth int) (string, modelColumn) {
	s = &authorScope{items: s.items} // an aggregate of outer columns would belong to the outer query
	number := modelColumn{typ: "bigint", oid: 20, kind: kindInt}
	sql, c := "count(*)", number
	switch a.IntN(9) {
	case 0:
		if x, _, ok := a.pickColumn(s); ok {
			sql = "count(" + x + ")"
		}
	case 1:
		if x, d, ok := a.pickColumn(s, kindInt, kindText, kindUUID, kindEnum, kindDate); ok && !d.equalValuesDiffer {
			sql = "count(DISTINCT " + x + ")"
		}
	case 2:
		if x, d, ok := a.pickColumn(s, kindInt, kindNumeric); ok {
			sql, c = "sum("+x+")", modelColumn{typ: "numeric", kind: kindOther}
			if d.kind == kindNumeric {
				c.kind = kindNumeric
			}
		}
	case 3:
		if x, d, ok := a.pickColumn(s, kindInt, kindNumeric, kindText, kindDate, kindTime, kindEnum); ok && !d.equalValuesDiffer {
			sql, c = pickOne(a, "min", "max")+"("+x+")", d
		}
	case 4:
		sql, c = pickOne(a, "bool_or", "bool_and", "every")+"("+a.condition(s, min(depth, 1))+")", modelColumn{typ: "boolean", oid: 16, kind: kindBool}
	case 5:
		if x, _, ok := a.pickColumn(s, kindText); ok {
			x += `::text COLLATE "C"`
			sql, c = "string_agg("+pickOne(a, "", "DISTINCT ")+x+", ',' ORDER BY "+x+")", modelColumn{typ: "text", oid: 25, kind: kindText}
			sql = strings.ReplaceAll(sql, "DISTINCT "+x+", ',' ORDER BY "+x, x+", ',' ORDER BY "+x)
		}
	case 6:
		if x, d, ok := a.pickColumn(s, kindInt, kindUUID, kindDate); ok {
			sql, c = "array_agg("+x+" ORDER BY "+x+")", modelColumn{typ: d.typ + "[]", kind: kindOther}
		}
	case 7:
		if x, _, ok := a.pickColumn(s, kindInt); ok {
			sql, c = "percentile_disc(0.5) WITHIN GROUP (ORDER BY "+x+")", modelColumn{typ: "bigint", kind: kindOther}
		}
	}
	if a.chance(25) {
		sql += " FILTER (WHERE " + a.condition(s, min(depth, 1)) + ")"
	}
	return sql, c
}

// groupedQuery returns a random query with GROUP BY.
func (a *statementAuthor) groupedQuery(s *authorScope, from, where string, depth int) (string, []modelColumn) {
	innerScope := &authorScope{items: s.items}
	var outputs, keys []string
	var columns []modelColumn
	add := func(x string, c modelColumn) {
		c.name = a.outputName(columns, c)
		columns = append(columns, c)
		outputs = append(outputs, x+" AS "+c.name)
	}
	i := pickOne(a, s.items...)
	byKey := len(i.uniqueColumns) > 0 && i.table != nil && a.chance(25)
	switch {
	case byKey: // grouping by the key allows all other columns
		for _, k := range i.uniqueColumns {
			keys = append(keys, i.alias+"."+k)
		}
		for range 1 + a.IntN(3) {
			c := pickOne(a, i.columns...)
			add(i.alias+"."+c.name, c)
		}
	default:
		for range a.IntN(3) {
			x, c, ok := a.pickColumn(innerScope)
			if !ok {
				continue
			}
			switch {
			case a.chance(20) && c.kind == kindTime:
				x, c = "date_trunc('month', "+x+")", modelColumn{typ: c.typ, kind: kindTime}
			case a.chance(15):
				x, c = "("+a.simpleCondition(innerScope, 0)+")", modelColumn{typ: "boolean", oid: 16, kind: kindBool}
			case !hasTotalOrder(c):
				x, c = "("+x+")::text COLLATE \"C\"", modelColumn{typ: "text", oid: 25, kind: kindText, samples: c.samples}
			case a.chance(12) && c.kind == kindText:
				x = "lower(" + x + ")"
			}
			if strings.Contains(x, "$") { // PostgreSQL does not see that two parameters are the same expression
				continue
			}
			keys = append(keys, x)
			add(x, c)
		}
	}
	for range 1 + a.IntN(2) {
		add(a.aggregateCall(s, depth))
	}
	sql := "SELECT " + strings.Join(outputs, ", ") + " FROM " + from + where
	if len(keys) > 0 {
		groupBy := strings.Join(keys, ", ")
		if !byKey && a.chance(25) {
			groupBy = pickOne(a, "ROLLUP ("+groupBy+")", "CUBE ("+groupBy+")", "GROUPING SETS (("+groupBy+"), ())",
				"GROUPING SETS (("+keys[0]+"), ("+groupBy+"))", "DISTINCT ROLLUP ("+groupBy+")")
		} else if !byKey && a.chance(20) {
			groupBy = "1"
			for n := 2; n <= len(keys); n++ {
				groupBy += fmt.Sprintf(", %d", n)
			}
		}
		sql += " GROUP BY " + groupBy
	}
	if a.chance(25) {
		x := a.condition(innerScope, 0)
		switch {
		case a.chance(50):
			sql += " HAVING " + pickOne(a, "bool_or", "bool_and") + "(" + x + ")"
		case a.chance(30) && byKey:
			itemScope := &authorScope{items: []*authorItem{i}}
			sql += " HAVING " + a.simpleCondition(itemScope, 0)
		default:
			sql += " HAVING count(*) " + pickOne(a, "> 1", "= 1", "< 20", "> 0")
		}
	}
	return sql, columns
}

// windowQuery returns a query with a window function. Its result does not depend on the order of equal rows.
func (a *statementAuthor) windowQuery(s *authorScope, from, where string) (string, []modelColumn) {
	innerScope := &authorScope{items: s.items}
	x, c, ok := a.pickColumn(innerScope)
	if !ok {
		return "SELECT 1 AS one FROM " + from + where, []modelColumn{{name: "one", typ: "integer", kind: kindInt}}
	}
	y, d, _ := a.pickColumn(innerScope, kindInt, kindText, kindDate, kindTime, kindEnum, kindUUID)
	if y == "" || d.equalValuesDiffer {
		y = "1"
	}
	p, pc, ok := a.pickColumn(innerScope)
	part := ""
	if ok && a.chance(60) && hasTotalOrder(pc) {
		part = "PARTITION BY " + p + " "
	}
	window := "(" + part + "ORDER BY " + y + pickOne(a, "", " DESC", " NULLS FIRST") + ")"
	call := pickOne(a, "rank()", "dense_rank()", "count(*)", "cume_dist()", "percent_rank()")
	var total []string
	for _, i := range s.items {
		for _, k := range i.uniqueColumns {
			total = append(total, i.alias+"."+k)
		}
		if len(i.uniqueColumns) == 0 {
			total = nil
			break
		}
	}
	if len(total) > 0 && a.chance(60) {
		window = "(" + part + "ORDER BY " + y + ", " + strings.Join(total, ", ") + ")"
		call = pickOne(a, "row_number()", "lag("+x+")", "lead("+x+", 2)", "first_value("+x+")", "ntile(3)", "count(*)")
	}
	if call == "count(*)" && a.chance(40) {
		call += " FILTER (WHERE " + a.simpleCondition(innerScope, 0) + ")"
	}
	c.name = a.outputName(nil, c)
	columns := []modelColumn{c, {name: "w", typ: "bigint", kind: kindOther}}
	if a.chance(20) {
		return "SELECT " + x + " AS " + c.name + ", " + call + " OVER w AS w FROM " + from + where + " WINDOW w AS " + window, columns
	}
	return "SELECT " + x + " AS " + c.name + ", " + call + " OVER " + window + " AS w FROM " + from + where, columns
}

// setOperation returns two queries whose columns have the same types, connected by a set operation.
func (a *statementAuthor) setOperation(outer *authorScope, depth int) (string, []modelColumn) {
	half := func(columns []modelColumn) (string, []modelColumn) {
		from, s := a.fromClause(outer, 1+a.IntN(2), depth-1)
		where := " WHERE " + a.condition(s, depth-1)
		var outputs []string
		var out []modelColumn
		if columns == nil {
			for range 1 + a.IntN(3) {
				if x, c, ok := a.pickColumn(&authorScope{items: s.items}); ok && hasTotalOrder(c) {
					c.name = a.outputName(out, c)
					out = append(out, c)
					outputs = append(outputs, x+" AS "+c.name)
				}
			}
			if len(out) == 0 {
				out, outputs = []modelColumn{{name: "n", typ: "integer", kind: kindInt}}, []string{"1 AS n"}
			}
		}
		for _, c := range columns {
			x := "NULL::" + c.typ
			for range 8 {
				if y, d, ok := a.pickColumn(&authorScope{items: s.items}, c.kind); ok && d.typ == c.typ && !d.equalValuesDiffer {
					x = y
					break
				}
			}
			outputs, out = append(outputs, x), columns
		}
		return "SELECT " + strings.Join(outputs, ", ") + " FROM " + from + where, out
	}
	left, columns := half(nil)
	right, _ := half(columns)
	return left + pickOne(a, " UNION ", " UNION ALL ", " INTERSECT ", " EXCEPT ", " EXCEPT ALL ", " INTERSECT ALL ") + right, columns
}

// randomCase is a statement, and the way in which it is sent.
type randomCase struct {
	sql             string
	params          []authorParam
	sendMode        string // simple, extended, prepared, cursor, execute, copy or write
	isOrdered       bool
	queryAfterWrite string // for a write: a query of the table after it
}

// newCase returns a random case.
func (a *statementAuthor) newCase() randomCase {
	a.params, a.queryItems, a.aliasCount, a.depth = nil, nil, 0, 0
	a.oddPercent, a.negatedPercent = pickOne(a, 0, 0, 5, 12), pickOne(a, 15, 35, 60)
	c := randomCase{sendMode: pickOne(a, "simple", "simple", "simple", "simple", "simple", "extended", "extended", "extended", "prepared", "prepared")}
	if a.chance(18) {
		c.sendMode = pickOne(a, "cursor", "execute", "copy", "write", "write")
	}
	a.plainStyle = a.chance(75)
	a.extended = c.sendMode == "extended" || c.sendMode == "prepared"
	if c.sendMode == "write" {
		if c.sql, c.queryAfterWrite = a.newWrite(); c.sql != "" {
			return c
		}
		c.sendMode = "simple"
	}
	depth := pickOne(a, 0, 1, 1, 2, 2, 3)
	if a.plainStyle {
		depth = pickOne(a, 0, 0, 1, 1, 2)
	}
	withClause := ""
	if a.chance(14) {
		recursive := ""
		for n := range 1 + a.IntN(2) {
			sql, columns := a.query(nil, 1, a.chance(15))
			name := fmt.Sprintf("w%d", n+1)
			if a.chance(25) {
				name = pickOne(a, a.model.tables...).relation.Name
				name = `"` + name + `"`
				if slices.ContainsFunc(a.queryItems, func(q *authorItem) bool { return q.alias == name }) {
					name = fmt.Sprintf("w%d", n+1)
				}
			}
			if withClause != "" {
				withClause += ", "
			}
			withClause += name + " AS " + pickOne(a, "", "MATERIALIZED ", "NOT MATERIALIZED ") + "(" + sql + ")"
			a.queryItems = append(a.queryItems, &authorItem{alias: name, columns: columns})
		}
		if a.chance(15) {
			recursive = "RECURSIVE "
			if tree := a.recursiveQuery(); tree != "" {
				withClause += ", " + tree
			}
		}
		withClause = "WITH " + recursive + withClause + " "
	}
	sql, columns := a.query(nil, depth, false)
	limited := a.withLimit(sql, columns)
	if a.chance(30) {
		c.isOrdered = limited != sql
		sql = limited
	}
	c.sql, c.params = renumberParams(withClause+sql, a.params)
	return c
}

var literalOrParamPattern = regexp.MustCompile(`'(?:[^']|'')*'|"(?:[^"]|"")*"|\$\d+`)

// renumberParams removes the parameters that a statement does not use, and numbers the others anew.
func renumberParams(sql string, params []authorParam) (string, []authorParam) {
	var usedParams []authorParam
	numbers := map[string]string{}
	sql = literalOrParamPattern.ReplaceAllStringFunc(sql, func(token string) string {
		old, err := strconv.Atoi(token[1:])
		if token[0] != '$' || err != nil || old > len(params) {
			return token
		}
		if numbers[token] == "" {
			usedParams = append(usedParams, params[old-1])
			numbers[token] = fmt.Sprintf("$%d", len(usedParams))
		}
		return numbers[token]
	})
	return sql, usedParams
}

// recursiveQuery returns a WITH RECURSIVE query that follows a foreign key of a table to itself.
func (a *statementAuthor) recursiveQuery() string {
	for _, t := range a.model.tables {
		for _, l := range t.links {
			if l.target == t.relation && len(l.columns) == 1 && len(t.key) == 1 && t.key[0] == l.targetColumns[0] {
				s := &authorScope{items: []*authorItem{{alias: "n", columns: t.columns, uniqueColumns: t.key, table: t}}}
				start := a.condition(s, 0)
				step := a.simpleCondition(s, 0)
				var key modelColumn
				for _, c := range t.columns {
					if c.name == t.key[0] {
						key = c
					}
				}
				a.queryItems = append(a.queryItems, &authorItem{alias: "tree", columns: []modelColumn{key}})
				return "tree AS (SELECT n." + key.name + " FROM " + t.name + " AS n WHERE " + start +
					" UNION SELECT n." + key.name + " FROM " + t.name + " AS n JOIN tree ON n." + l.columns[0] +
					" = tree." + key.name + pickOne(a, "", " WHERE "+step) + ")"
			}
		}
	}
	return ""
}
