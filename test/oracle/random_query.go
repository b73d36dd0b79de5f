package oracle

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// from makes a FROM of up to so many items, and the scope behind it.
func (a *author) from(outer *authorScope, items, depth int) (string, *authorScope) {
	s := &authorScope{parent: outer}
	sql := a.item(s, outer, depth, false)
	for n := 1; n < items; n++ {
		lateral := a.in(14)
		comma := ", "
		if n < items-1 { // a join behind it would not see what is before it
			comma = " CROSS JOIN "
		}
		left := &authorScope{items: slices.Clone(s.items), parent: outer}
		visible := outer
		if lateral {
			visible = left
		}
		before, params := len(s.items), len(a.params)
		right := a.item(s, visible, depth, lateral)
		inner := &authorScope{items: s.items[before:]}
		link := a.link(left, inner)
		switch {
		case link == "" && !lateral, a.in(5):
			// Of what nothing joins, few rows.
			alias := s.items[before].alias
			s.items, a.params = s.items[:before], a.params[:params]
			sql += one(a, " CROSS JOIN (", comma+"(") + a.few(s, alias) + ") AS " + alias
			continue
		case a.in(10) && !lateral: // by a name that both have
			if name, ok := shared(left, inner); ok {
				sql += one(a, " JOIN ", " LEFT JOIN ", " RIGHT JOIN ", " FULL JOIN ") + right + " USING (" + name + ")"
				continue
			}
		case a.in(12):
			sql += one(a, " CROSS JOIN ", comma) + right
			continue
		}
		join := one(a, " JOIN ", " LEFT JOIN ", " LEFT JOIN ", " LEFT JOIN ", " RIGHT JOIN ", " FULL JOIN ")
		if lateral {
			join = one(a, " JOIN ", " LEFT JOIN ")
		}
		on := link
		switch {
		case on == "":
			on = "true"
		case a.in(35) && join != " FULL JOIN ":
			on += " AND " + a.unit(&authorScope{items: s.items, parent: outer}, 0)
		}
		if a.in(12) && n == 1 && items > 2 && !lateral {
			sql, on = "("+sql, on+")"
		}
		sql += join + right + " ON " + on
	}
	return sql, s
}

// few is a query of few rows that takes the place of an item.
func (a *author) few(s *authorScope, alias string) string {
	t := one(a, a.model.tables...)
	s.items = append(s.items, &authorItem{alias: alias, columns: t.columns, key: t.key})
	var all []string
	for _, c := range t.columns {
		all = append(all, "x."+c.name)
	}
	list := strings.Join(all, ", ")
	return "SELECT " + list + " FROM " + t.name + " AS x ORDER BY ROW(" + list + ")::text COLLATE \"C\" LIMIT " + fmt.Sprint(1+a.IntN(4))
}

// shared is a column that the items on both sides have once.
func shared(left, right *authorScope) (string, bool) {
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

// item adds one to the scope. What is LATERAL sees outer, and what is not what is outside of the query.
func (a *author) item(s, outer *authorScope, depth int, lateral bool) string {
	alias := a.alias()
	for slices.ContainsFunc(s.items, func(i *authorItem) bool { return i.alias == alias }) {
		alias = a.alias()
	}
	as := " AS " + alias
	switch n := a.IntN(100); {
	case lateral || depth > 0 && n < 14 && a.depth < 2:
		a.depth++
		sql, columns := a.query(outer, depth-1, a.in(20))
		a.depth--
		s.items = append(s.items, &authorItem{alias: alias, columns: columns})
		if lateral {
			return "LATERAL (" + sql + ")" + as
		}
		return "(" + sql + ")" + as
	case n < 24 && len(a.queries) > 0:
		q := one(a, a.queries...)
		s.items = append(s.items, &authorItem{alias: alias, columns: q.columns})
		return q.alias + as
	}
	t := one(a, a.model.tables...)
	for range 3 { // mostly what joins something, and what can be searched
		if (len(t.links) > 0 || len(s.items) == 0) && (t.base && len(t.key) > 0) {
			break
		}
		t = one(a, a.model.tables...)
	}
	for a.plain && !t.base {
		t = one(a, a.model.tables...)
	}
	if len(s.items) > 0 && s.items[0].table != nil && a.in(65) {
		if near := a.neighbours(s.items); len(near) > 0 {
			t = one(a, near...)
		}
	}
	s.items = append(s.items, &authorItem{alias: alias, columns: t.columns, key: t.key, table: t})
	if t.base && a.in(1) {
		return "ONLY " + t.name + as
	}
	return t.name + as
}

// neighbours are the tables that a foreign key joins with one of the items, and these again.
func (a *author) neighbours(items []*authorItem) []*modelTable {
	var out []*modelTable
	for _, t := range a.model.tables {
		for _, i := range items {
			if i.table == nil {
				continue
			}
			to := func(from, into *modelTable) bool {
				return slices.ContainsFunc(from.links, func(l modelLink) bool { return l.to == into.relation })
			}
			if a.plain && !t.base {
				continue
			}
			if to(t, i.table) || to(i.table, t) || t == i.table && a.in(15) {
				out = append(out, t)
			}
		}
	}
	return out
}

// output is what a SELECT gives for a row. plain: it is not made of groups.
func (a *author) output(s *authorScope, depth int) (string, modelColumn) {
	x, c, ok := a.column(&authorScope{items: s.items})
	if !ok {
		return "1", modelColumn{typ: "integer", kind: kindInt, samples: []string{"1"}}
	}
	truth := modelColumn{typ: "boolean", oid: 16, kind: kindBool}
	text := modelColumn{typ: "text", oid: 25, kind: kindText, samples: c.samples}
	if a.plain && a.in(70) {
		return x, c
	}
	switch n := a.IntN(100); {
	case n < 10:
		return a.condition(s, min(depth, 1)), truth
	case n < 14:
		return "CASE WHEN " + a.unit(s, 0) + " THEN " + x + " END", c
	case n < 18:
		if v, ok := a.sample(c); ok && c.kind != kindOther {
			if a.plain {
				return "coalesce(" + x + ", " + literal(v) + ")", c
			}
			return "coalesce(" + x + ", " + literal(v) + "::" + c.typ + ")", c
		}
	case n < 22 && depth > 0:
		from, inner := a.from(s, 1, 0)
		where := a.unit(inner, 0)
		if l := a.link(s, inner); l != "" {
			where += " AND " + l
		}
		return "(SELECT count(*) FROM " + from + " WHERE " + where + ")", modelColumn{typ: "bigint", oid: 20, kind: kindInt}
	case n < 24 && !a.plain:
		i := one(a, s.items...)
		if i.table != nil && i.table.partial {
			break
		}
		return one(a, i.alias+" IS NULL", "("+i.alias+" IS NOT NULL)", "("+i.alias+")::text IS NULL"), truth
	case n < 32:
		switch c.kind {
		case kindText:
			if c.loose {
				x = "(" + x + ` COLLATE "C")`
			}
			return one(a, "md5("+x+"::text)", "upper("+x+"::text)", "left("+x+"::text, 4)",
				"length("+x+"::text)::text", "regexp_replace("+x+"::text, '[aeiou]', '-', 'g')"), text
		case kindTime:
			return "date_trunc('month', " + x + ")::text", text
		case kindInt:
			return one(a, x+" + 1", x+" % 7", "abs("+x+")"), modelColumn{typ: "bigint", kind: kindOther}
		case kindJSONB:
			return "(" + x + " ->> " + literal(a.key(c)) + ")", text
		case kindTSVector:
			return "ts_rank(" + x + ", " + a.search() + ")::numeric(9,6)", modelColumn{typ: "numeric", kind: kindNumeric}
		}
	}
	return x, c
}

// sorts tells whether values of a column have an order in which equal ones look alike.
func sorts(c modelColumn) bool {
	return !c.loose && c.kind != kindOther && c.kind != kindFloat && c.kind != kindTSVector
}

// query makes a SELECT and the columns that it has. what is ordered has a total order.
func (a *author) query(outer *authorScope, depth int, limited bool) (string, []modelColumn) {
	if depth > 0 && a.in(8) {
		return a.setOperation(outer, depth)
	}
	items := one(a, 1, 1, 2, 2, 2, 3)
	if depth <= 0 {
		items = one(a, 1, 1, 2)
	}
	from, s := a.from(outer, items, depth)
	where := ""
	switch {
	case a.plain && a.in(40):
		where = " WHERE " + a.indexed(s)
		for range one(a, 0, 0, 1, 1, 2) {
			where += " AND " + one(a, a.notLeakSafe(s), a.indexed(s), a.unit(s, 0))
		}
	case a.in(88):
		where = " WHERE " + a.condition(s, depth)
		if a.in(12) {
			where += " AND " + a.searched(s)
		}
	}
	for _, words := range s.words {
		from += ", " + words
	}
	var sql string
	var columns []modelColumn
	switch n := a.IntN(100); {
	case n < 26:
		sql, columns = a.grouped(s, from, where, depth)
	case n < 34:
		sql, columns = a.windowed(s, from, where)
	default:
		distinct := ""
		if a.in(14) {
			distinct = "DISTINCT "
		}
		var outputs []string
		for range 1 + a.IntN(4) {
			x, c := a.output(s, depth)
			if distinct != "" && !sorts(c) {
				x, c = "("+x+")::text COLLATE \"C\"", modelColumn{typ: "text", oid: 25, kind: kindText, samples: c.samples}
			}
			c.name = a.outputName(columns, c)
			columns = append(columns, c)
			outputs = append(outputs, x+" AS "+c.name)
		}
		sql = "SELECT " + distinct + strings.Join(outputs, ", ") + " FROM " + from + where
	}
	if limited {
		sql = a.limit(sql, columns)
	}
	return sql, columns
}

func (a *author) outputName(columns []modelColumn, c modelColumn) string {
	name := c.name
	if name == "" || a.in(10) {
		t := one(a, a.model.tables...)
		name = one(a, t.columns...).name
	}
	if slices.ContainsFunc(columns, func(c modelColumn) bool { return c.name == name }) {
		name = fmt.Sprintf("c%d", len(columns)+1)
	}
	return name
}

func groupingSets(sql string) bool {
	return strings.Contains(sql, "GROUPING SETS") || strings.Contains(sql, "ROLLUP") || strings.Contains(sql, "CUBE")
}

// limit cuts a query off in a total order, where it has one.
func (a *author) limit(sql string, columns []modelColumn) string {
	if groupingSets(sql) {
		// PostgreSQL before 18 takes a key for constant that a condition compares with one value, a row policy's
		// condition too, though a grouping set leaves it NULL: the order is wrong.
		return sql
	}
	var order []string
	for i, c := range columns {
		if !sorts(c) {
			return sql
		}
		order = append(order, fmt.Sprint(i+1)+one(a, "", "", " DESC", " NULLS FIRST", " DESC NULLS LAST"))
	}
	a.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	sql += " ORDER BY " + strings.Join(order, ", ")
	if a.in(85) {
		number := modelColumn{typ: "bigint", oid: 20, kind: kindInt}
		n := fmt.Sprint(1 + a.IntN(12))
		sql += " LIMIT " + a.constant(n, number, func() (string, bool) { return "3", true })
		if a.in(25) {
			sql += fmt.Sprintf(" OFFSET %d", a.IntN(4))
		}
	}
	return sql
}

// aggregate is one over rows that are in scope, whatever order they come in.
func (a *author) aggregate(s *authorScope, depth int) (string, modelColumn) {
	s = &authorScope{items: s.items} // one of what is outside would be an aggregate of the outer query
	number := modelColumn{typ: "bigint", oid: 20, kind: kindInt}
	sql, c := "count(*)", number
	switch a.IntN(9) {
	case 0:
		if x, _, ok := a.column(s); ok {
			sql = "count(" + x + ")"
		}
	case 1:
		if x, d, ok := a.column(s, kindInt, kindText, kindUUID, kindEnum, kindDate); ok && !d.loose {
			sql = "count(DISTINCT " + x + ")"
		}
	case 2:
		if x, d, ok := a.column(s, kindInt, kindNumeric); ok {
			sql, c = "sum("+x+")", modelColumn{typ: "numeric", kind: kindOther}
			if d.kind == kindNumeric {
				c.kind = kindNumeric
			}
		}
	case 3:
		if x, d, ok := a.column(s, kindInt, kindNumeric, kindText, kindDate, kindTime, kindEnum); ok && !d.loose {
			sql, c = one(a, "min", "max")+"("+x+")", d
		}
	case 4:
		sql, c = one(a, "bool_or", "bool_and", "every")+"("+a.condition(s, min(depth, 1))+")", modelColumn{typ: "boolean", oid: 16, kind: kindBool}
	case 5:
		if x, _, ok := a.column(s, kindText); ok {
			x += `::text COLLATE "C"`
			sql, c = "string_agg("+one(a, "", "DISTINCT ")+x+", ',' ORDER BY "+x+")", modelColumn{typ: "text", oid: 25, kind: kindText}
			sql = strings.ReplaceAll(sql, "DISTINCT "+x+", ',' ORDER BY "+x, x+", ',' ORDER BY "+x)
		}
	case 6:
		if x, d, ok := a.column(s, kindInt, kindUUID, kindDate); ok {
			sql, c = "array_agg("+x+" ORDER BY "+x+")", modelColumn{typ: d.typ + "[]", kind: kindOther}
		}
	case 7:
		if x, _, ok := a.column(s, kindInt); ok {
			sql, c = "percentile_disc(0.5) WITHIN GROUP (ORDER BY "+x+")", modelColumn{typ: "bigint", kind: kindOther}
		}
	}
	if a.in(25) {
		sql += " FILTER (WHERE " + a.condition(s, min(depth, 1)) + ")"
	}
	return sql, c
}

// grouped makes groups.
func (a *author) grouped(s *authorScope, from, where string, depth int) (string, []modelColumn) {
	own := &authorScope{items: s.items}
	var outputs, keys []string
	var columns []modelColumn
	add := func(x string, c modelColumn) {
		c.name = a.outputName(columns, c)
		columns = append(columns, c)
		outputs = append(outputs, x+" AS "+c.name)
	}
	i := one(a, s.items...)
	byKey := len(i.key) > 0 && i.table != nil && a.in(25)
	switch {
	case byKey: // whose other columns go by it
		for _, k := range i.key {
			keys = append(keys, i.alias+"."+k)
		}
		for range 1 + a.IntN(3) {
			c := one(a, i.columns...)
			add(i.alias+"."+c.name, c)
		}
	default:
		for range a.IntN(3) {
			x, c, ok := a.column(own)
			if !ok {
				continue
			}
			switch {
			case a.in(20) && c.kind == kindTime:
				x, c = "date_trunc('month', "+x+")", modelColumn{typ: c.typ, kind: kindTime}
			case a.in(15):
				x, c = "("+a.unit(own, 0)+")", modelColumn{typ: "boolean", oid: 16, kind: kindBool}
			case !sorts(c):
				x, c = "("+x+")::text COLLATE \"C\"", modelColumn{typ: "text", oid: 25, kind: kindText, samples: c.samples}
			case a.in(12) && c.kind == kindText:
				x = "lower(" + x + ")"
			}
			if strings.Contains(x, "$") { // two parameters are not the same expression
				continue
			}
			keys = append(keys, x)
			add(x, c)
		}
	}
	for range 1 + a.IntN(2) {
		add(a.aggregate(s, depth))
	}
	sql := "SELECT " + strings.Join(outputs, ", ") + " FROM " + from + where
	if len(keys) > 0 {
		by := strings.Join(keys, ", ")
		if !byKey && a.in(25) {
			by = one(a, "ROLLUP ("+by+")", "CUBE ("+by+")", "GROUPING SETS (("+by+"), ())",
				"GROUPING SETS (("+keys[0]+"), ("+by+"))", "DISTINCT ROLLUP ("+by+")")
		} else if !byKey && a.in(20) {
			by = "1"
			for n := 2; n <= len(keys); n++ {
				by += fmt.Sprintf(", %d", n)
			}
		}
		sql += " GROUP BY " + by
	}
	if a.in(25) {
		x := a.condition(own, 0)
		switch {
		case a.in(50):
			sql += " HAVING " + one(a, "bool_or", "bool_and") + "(" + x + ")"
		case a.in(30) && byKey:
			only := &authorScope{items: []*authorItem{i}}
			sql += " HAVING " + a.unit(only, 0)
		default:
			sql += " HAVING count(*) " + one(a, "> 1", "= 1", "< 20", "> 0")
		}
	}
	return sql, columns
}

// windowed has a window function that ties leave as it is.
func (a *author) windowed(s *authorScope, from, where string) (string, []modelColumn) {
	own := &authorScope{items: s.items}
	x, c, ok := a.column(own)
	if !ok {
		return "SELECT 1 AS one FROM " + from + where, []modelColumn{{name: "one", typ: "integer", kind: kindInt}}
	}
	y, d, _ := a.column(own, kindInt, kindText, kindDate, kindTime, kindEnum, kindUUID)
	if y == "" || d.loose {
		y = "1"
	}
	p, pc, ok := a.column(own)
	part := ""
	if ok && a.in(60) && sorts(pc) {
		part = "PARTITION BY " + p + " "
	}
	window := "(" + part + "ORDER BY " + y + one(a, "", " DESC", " NULLS FIRST") + ")"
	call := one(a, "rank()", "dense_rank()", "count(*)", "cume_dist()", "percent_rank()")
	var total []string
	for _, i := range s.items {
		for _, k := range i.key {
			total = append(total, i.alias+"."+k)
		}
		if len(i.key) == 0 {
			total = nil
			break
		}
	}
	if len(total) > 0 && a.in(60) {
		window = "(" + part + "ORDER BY " + y + ", " + strings.Join(total, ", ") + ")"
		call = one(a, "row_number()", "lag("+x+")", "lead("+x+", 2)", "first_value("+x+")", "ntile(3)", "count(*)")
	}
	if call == "count(*)" && a.in(40) {
		call += " FILTER (WHERE " + a.unit(own, 0) + ")"
	}
	c.name = a.outputName(nil, c)
	columns := []modelColumn{c, {name: "w", typ: "bigint", kind: kindOther}}
	if a.in(20) {
		return "SELECT " + x + " AS " + c.name + ", " + call + " OVER w AS w FROM " + from + where + " WINDOW w AS " + window, columns
	}
	return "SELECT " + x + " AS " + c.name + ", " + call + " OVER " + window + " AS w FROM " + from + where, columns
}

// setOperation joins two queries whose columns have one type.
func (a *author) setOperation(outer *authorScope, depth int) (string, []modelColumn) {
	half := func(columns []modelColumn) (string, []modelColumn) {
		from, s := a.from(outer, 1+a.IntN(2), depth-1)
		where := " WHERE " + a.condition(s, depth-1)
		var outputs []string
		var out []modelColumn
		if columns == nil {
			for range 1 + a.IntN(3) {
				if x, c, ok := a.column(&authorScope{items: s.items}); ok && sorts(c) {
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
				if y, d, ok := a.column(&authorScope{items: s.items}, c.kind); ok && d.typ == c.typ && !d.loose {
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
	return left + one(a, " UNION ", " UNION ALL ", " INTERSECT ", " EXCEPT ", " EXCEPT ALL ", " INTERSECT ALL ") + right, columns
}

// randomCase is a statement and how it is sent.
type randomCase struct {
	sql     string
	params  []authorParam
	way     string // simple, extended, prepared, cursor, execute, copy, write
	ordered bool
	after   string // of a write: asked behind it
}

// statement makes a case.
func (a *author) statement() randomCase {
	a.params, a.queries, a.names, a.depth = nil, nil, 0, 0
	a.odd, a.negative = one(a, 0, 0, 5, 12), one(a, 15, 35, 60)
	c := randomCase{way: one(a, "simple", "simple", "simple", "simple", "simple", "extended", "extended", "extended", "prepared", "prepared")}
	if a.in(18) {
		c.way = one(a, "cursor", "execute", "copy", "write", "write")
	}
	a.plain = a.in(75)
	a.extended = c.way == "extended" || c.way == "prepared"
	if c.way == "write" {
		if c.sql, c.after = a.write(); c.sql != "" {
			return c
		}
		c.way = "simple"
	}
	depth := one(a, 0, 1, 1, 2, 2, 3)
	if a.plain {
		depth = one(a, 0, 0, 1, 1, 2)
	}
	with := ""
	if a.in(14) {
		recursive := ""
		for n := range 1 + a.IntN(2) {
			sql, columns := a.query(nil, 1, a.in(15))
			name := fmt.Sprintf("w%d", n+1)
			if a.in(25) {
				name = one(a, a.model.tables...).relation.Name
				name = `"` + name + `"`
				if slices.ContainsFunc(a.queries, func(q *authorItem) bool { return q.alias == name }) {
					name = fmt.Sprintf("w%d", n+1)
				}
			}
			if with != "" {
				with += ", "
			}
			with += name + " AS " + one(a, "", "MATERIALIZED ", "NOT MATERIALIZED ") + "(" + sql + ")"
			a.queries = append(a.queries, &authorItem{alias: name, columns: columns})
		}
		if a.in(15) {
			recursive = "RECURSIVE "
			if tree := a.tree(); tree != "" {
				with += ", " + tree
			}
		}
		with = "WITH " + recursive + with + " "
	}
	sql, columns := a.query(nil, depth, false)
	limited := a.limit(sql, columns)
	if a.in(30) {
		c.ordered = limited != sql
		sql = limited
	}
	c.sql, c.params = numbered(with+sql, a.params)
	return c
}

var literalOrParam = regexp.MustCompile(`'(?:[^']|'')*'|"(?:[^"]|"")*"|\$\d+`)

// numbered leaves out the parameters that went into nothing.
func numbered(sql string, params []authorParam) (string, []authorParam) {
	var kept []authorParam
	numbers := map[string]string{}
	sql = literalOrParam.ReplaceAllStringFunc(sql, func(token string) string {
		old, err := strconv.Atoi(token[1:])
		if token[0] != '$' || err != nil || old > len(params) {
			return token
		}
		if numbers[token] == "" {
			kept = append(kept, params[old-1])
			numbers[token] = fmt.Sprintf("$%d", len(kept))
		}
		return numbers[token]
	})
	return sql, kept
}

// tree follows a foreign key of a table to itself.
func (a *author) tree() string {
	for _, t := range a.model.tables {
		for _, l := range t.links {
			if l.to == t.relation && len(l.from) == 1 && len(t.key) == 1 && t.key[0] == l.into[0] {
				s := &authorScope{items: []*authorItem{{alias: "n", columns: t.columns, key: t.key, table: t}}}
				start := a.condition(s, 0)
				step := a.unit(s, 0)
				var key modelColumn
				for _, c := range t.columns {
					if c.name == t.key[0] {
						key = c
					}
				}
				a.queries = append(a.queries, &authorItem{alias: "tree", columns: []modelColumn{key}})
				return "tree AS (SELECT n." + key.name + " FROM " + t.name + " AS n WHERE " + start +
					" UNION SELECT n." + key.name + " FROM " + t.name + " AS n JOIN tree ON n." + l.from[0] +
					" = tree." + key.name + one(a, "", " WHERE "+step) + ")"
			}
		}
	}
	return ""
}
