package noninterference

import (
	"fmt"
	"strings"
)

// testCase is what is sent on one connection, message after message.
type testCase struct {
	messages []string
	extended bool // by the extended protocol, where a message is one statement
}

// source is a FROM item with its text. It may be a sub-select, LATERAL where items is not nil.
func (w *writer) source(items []item, depth int) (item, string) {
	if len(w.ctes) > 0 && w.IntN(4) == 0 {
		it := pick(w.Rand, w.ctes...)
		name := it.alias
		it.alias = w.alias()
		return it, quoted(name) + " AS " + quoted(it.alias)
	}
	t := pick(w.Rand, w.tables...)
	columns := w.sight(t)
	if w.IntN(12) == 0 {
		columns = t.columns
	}
	it := item{w.alias(), columns, t.keys}
	name := t.sql()
	if w.IntN(3) == 0 || t.name == w.hidden {
		name = "public." + name
	}
	if depth > 1 && w.IntN(6) == 0 {
		inner := item{w.alias(), columns, t.keys}
		return it, fmt.Sprintf("(SELECT * FROM %s AS %s WHERE %s) AS %s", name, quoted(inner.alias),
			w.expr([]item{inner}, "bool", depth-1), quoted(it.alias))
	}
	if w.IntN(25) == 0 {
		name = pick(w.Rand, "ONLY "+name, name+" *")
	}
	return it, name + pick(w.Rand, " AS ", " ") + quoted(it.alias)
}

// order is a total order of an item's rows.
func (w *writer) order(items ...item) string {
	var parts []string
	for _, it := range items {
		for _, c := range it.columns[:it.keys] {
			parts = append(parts, quoted(it.alias)+"."+quoted(c.name)+pick(w.Rand, "", " DESC", " NULLS FIRST"))
		}
	}
	return strings.Join(parts, ", ")
}

// from reads one to three items.
func (w *writer) from(depth int) ([]item, string) {
	var items []item
	var b strings.Builder
	for i := range 1 + w.IntN(3)*w.IntN(2) {
		it, text := w.source(nil, depth)
		if i == 0 {
			b.WriteString(text)
			items = append(items, it)
			continue
		}
		join := pick(w.Rand, "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", ",")
		both := append([]item{it}, items...)
		switch join {
		case "CROSS JOIN", ",":
			fmt.Fprintf(&b, " CROSS JOIN %s", text)
		case "FULL JOIN": // of merge-joinable conditions only
			k := pick(w.Rand, "text", "int")
			fmt.Fprintf(&b, " FULL JOIN %s ON %s = %s", text, w.expr(items[:1], k, 0), w.expr([]item{it}, k, 0))
		default:
			fmt.Fprintf(&b, " %s %s ON %s", join, text, w.expr(both, "bool", depth))
		}
		items = append(items, it)
	}
	if w.IntN(10) == 0 {
		alias := w.alias()
		k := pick(w.Rand, "text", "int")
		fmt.Fprintf(&b, " CROSS JOIN LATERAL (VALUES (%s)) AS %s (v)", w.expr(items, k, depth), quoted(alias))
		items = append(items, item{alias, []column{{name: "v", kind: k}}, 1})
	}
	return items, b.String()
}

// query is a SELECT.
func (w *writer) query(depth int) string {
	items, from := w.from(depth)
	where := ""
	if w.IntN(4) > 0 {
		where = " WHERE " + w.expr(items, "bool", depth)
	}
	any := func() string { return w.expr(items, pick(w.Rand, kinds...), depth) }
	system := func() string {
		return quoted(items[0].alias) + "." + pick(w.Rand, "ctid", "xmin", "xmax", "tableoid", "cmin", "oid")
	}
	switch w.IntN(9) {
	case 0:
		return fmt.Sprintf("SELECT count(*), %s FROM %s%s", w.aggregate(items, depth), from, where)
	case 1:
		by := any()
		return fmt.Sprintf("SELECT %s AS g, count(*), %s FROM %s%s GROUP BY %s%s", by, w.aggregate(items, depth),
			from, where, pick(w.Rand, "1", "g", "ROLLUP (1)", "1"), pick(w.Rand, "", " HAVING "+w.aggregate(items, depth)+" IS NOT NULL"))
	case 2:
		return fmt.Sprintf("SELECT DISTINCT %s, %s FROM %s%s", any(), any(), from, where)
	case 3:
		return fmt.Sprintf("SELECT %s, row_number() OVER (ORDER BY %s), count(*) OVER (PARTITION BY %s) FROM %s%s "+
			"ORDER BY %s LIMIT %d", any(), w.order(items...), any(), from, where, w.order(items...), 1+w.IntN(8))
	case 4:
		return fmt.Sprintf("SELECT %s FROM %s%s",
			pick(w.Rand, "*", quoted(items[0].alias)+".*", quoted(items[0].alias),
				"to_jsonb("+quoted(items[0].alias)+")", "("+quoted(items[0].alias)+").*"), from, where)
	case 5:
		if w.IntN(4) == 0 {
			return fmt.Sprintf("SELECT %s FROM %s%s", system(), from, where)
		}
		return fmt.Sprintf("SELECT %s FROM %s%s", w.call(items, depth), from, where)
	case 6:
		return fmt.Sprintf("SELECT %s FROM %s%s ORDER BY %s, %s OFFSET %d%s", any(), from, where,
			any(), w.order(items...), w.IntN(4), pick(w.Rand, "", " LIMIT 5", " FETCH FIRST 3 ROWS ONLY", " FOR UPDATE", " FOR SHARE SKIP LOCKED"))
	}
	return fmt.Sprintf("SELECT %s AS a, %s AS b FROM %s%s", any(), any(), from, where)
}

func (w *writer) aggregate(items []item, depth int) string {
	k := pick(w.Rand, "text", "int", "num")
	e := w.expr(items, k, depth)
	filter := pick(w.Rand, "", "", " FILTER (WHERE "+w.expr(items, "bool", depth-1)+")")
	return pick(w.Rand, "max("+e+")", "min("+e+")", "count("+e+")", "count(DISTINCT "+e+")",
		"md5(string_agg(("+e+")::text, ',' ORDER BY ("+e+")::text))", "bool_or("+w.expr(items, "bool", depth-1)+")",
		"sum("+w.expr(items, "num", depth-1)+")", "avg("+w.expr(items, "int", depth-1)+")", "(array_agg(DISTINCT ("+
			e+")::text))[1:2]", "percentile_disc(0.5) WITHIN GROUP (ORDER BY "+w.expr(items, "int", depth-1)+")") + filter
}

// next writes a case. Its expressions may fail on visible values in some and not in others.
func (w *writer) next() testCase {
	w.aliases, w.ctes, w.hidden = 0, nil, ""
	w.tableOps()
	depth := 1 + w.IntN(3)
	switch n := w.IntN(40); {
	case n < 22:
		return testCase{messages: []string{w.query(depth)}, extended: w.IntN(3) == 0}
	case n < 24: // WITH, whose names may hide tables
		t := pick(w.Rand, w.tables...)
		name := pick(w.Rand, t.name, "c", pick(w.Rand, w.tables...).name)
		inner := item{w.alias(), t.shown(), t.keys}
		head := fmt.Sprintf("WITH %s AS %s(SELECT * FROM %s%s AS %s WHERE %s) ", quoted(name),
			pick(w.Rand, "", "MATERIALIZED ", "NOT MATERIALIZED "), pick(w.Rand, "",
				"public."), t.sql(), quoted(inner.alias), w.expr([]item{inner}, "bool", depth))
		w.ctes = []item{{name, t.shown(), t.keys}}
		w.hidden = name
		return testCase{messages: []string{head + w.query(depth)}}
	case n < 26:
		k := pick(w.Rand, "text", "int", "time")
		side := func() string {
			items, from := w.from(depth - 1)
			return "SELECT " + w.expr(items, k, depth) + " FROM " + from
		}
		return testCase{messages: []string{side() + pick(w.Rand, " UNION ", " UNION ALL ", " EXCEPT ", " INTERSECT ") + side()}}
	case n < 27:
		return testCase{messages: []string{"COPY (" + w.query(depth) + ") TO STDOUT"}}
	case n < 28:
		return testCase{messages: []string{w.query(depth-1) + "; " + w.query(depth-1)}}
	case n < 29:
		return testCase{messages: []string{"BEGIN", "SAVEPOINT a", w.query(depth), "ROLLBACK TO a", w.query(depth), "COMMIT"}}
	case n < 31: // the catalog, as it comes
		r := pick(w.Rand, w.catalog.relations...)
		return testCase{messages: []string{pick(w.Rand, "SELECT * FROM "+r, "SELECT count(*) FROM "+r, "SELECT x::text FROM "+r+" x", "TABLE "+r)}}
	case n < 32:
		s := pick(w.Rand, w.catalog.settings...)
		return testCase{messages: []string{
			pick(w.Rand, "SET "+s+" = on", "SET "+s+" = 1", "SHOW "+s, "SELECT set_config('"+s+"', 'off', false)",
				"SET LOCAL "+s+" TO DEFAULT"), w.query(depth), "RESET ALL"}}
	case n < 34:
		q := w.query(depth)
		t := pick(w.Rand, w.schema.tables...).sql()
		return testCase{messages: []string{
			pick(w.Rand, "EXPLAIN "+q, "EXPLAIN (COSTS OFF) "+q, "EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF) "+q,
				"LOCK TABLE "+t, "TRUNCATE "+t, "CREATE TABLE copied AS "+q, "COPY "+t+" TO STDOUT", "ANALYZE "+t,
				"SELECT count(*) FROM "+t+" TABLESAMPLE BERNOULLI (50) REPEATABLE (3)", "TABLE "+t, "SELECT * FROM "+
					t+" FOR UPDATE NOWAIT", "DO $$ BEGIN PERFORM 1; END $$", "LISTEN a", "CREATE VIEW v AS "+q, "SELECT INTO v FROM "+t)}}
	case n < 36: // cursors and prepared statements
		q := w.query(depth)
		name := w.alias()
		if w.IntN(2) == 0 {
			return testCase{messages: []string{"PREPARE " + quoted(name) + " AS " + q, "EXECUTE " + quoted(name),
				"EXECUTE " + quoted(name), "DEALLOCATE " + quoted(name)}}
		}
		return testCase{messages: []string{"BEGIN",
			"DECLARE c " + pick(w.Rand, "", "SCROLL ", "NO SCROLL ") + "CURSOR " + pick(w.Rand, "", "WITH HOLD ") +
				"FOR " + q, "FETCH FORWARD ALL FROM c", pick(w.Rand, "MOVE BACKWARD 2 IN c", "FETCH LAST FROM c", "FETCH 1 FROM c"), "ROLLBACK"}}
	}
	return w.change(depth)
}

// change writes something and takes it back.
func (w *writer) change(depth int) testCase {
	t := pick(w.Rand, w.tables...)
	it := item{w.alias(), t.columns, t.keys}
	items := []item{it}
	alias := quoted(it.alias)
	var sets, names, values []string
	for _, c := range t.columns {
		if c.generated != "" && w.IntN(8) > 0 {
			continue
		}
		if w.IntN(2) == 0 || len(sets) == 0 {
			sets = append(sets, c.sql()+" = "+w.cast(c, w.expr(items, c.textual(), depth-1)))
		}
		if w.IntN(4) > 0 {
			names = append(names, c.sql())
			values = append(values, w.cast(c, w.constant(c.textual())))
		}
	}
	if len(sets) > 2 {
		sets = sets[:2]
	}
	if len(names) == 0 {
		names, values = []string{t.columns[0].sql()}, []string{"NULL"}
	}
	returning := pick(w.Rand, "", " RETURNING *", " RETURNING "+w.expr(items, "text", depth-1))
	where := pick(w.Rand, "", " WHERE "+w.expr(items, "bool", depth))
	insert := fmt.Sprintf("INSERT INTO %s AS %s (%s) VALUES (%s)", t.sql(), alias, strings.Join(names, ", "), strings.Join(values, ", "))
	other, from := w.source(nil, 1)
	var sql string
	switch w.IntN(8) {
	case 0:
		sql = insert + returning
	case 1:
		sql = insert + pick(w.Rand, " ON CONFLICT DO NOTHING", " ON CONFLICT ("+t.columns[0].sql()+") DO UPDATE SET "+sets[0]) + returning
	case 2:
		sql = fmt.Sprintf("INSERT INTO %s AS %s SELECT * FROM %s AS o WHERE false%s", t.sql(), alias, t.sql(), returning)
	case 3, 4:
		sql = fmt.Sprintf("UPDATE %s AS %s SET %s%s%s", t.sql(), alias, strings.Join(sets, ", "), where, returning)
	case 5:
		sql = fmt.Sprintf("UPDATE %s AS %s SET %s FROM %s WHERE %s%s", t.sql(), alias, sets[0], from, w.expr([]item{it, other}, "bool", depth), returning)
	case 6:
		sql = fmt.Sprintf("DELETE FROM %s AS %s%s%s", t.sql(), alias, where, returning)
	default:
		sql = fmt.Sprintf("MERGE INTO %s AS %s USING %s ON %s WHEN MATCHED AND %s THEN %s WHEN NOT MATCHED THEN "+
			"DO NOTHING", t.sql(), alias, from, w.expr([]item{it, other}, "bool", 1), w.expr([]item{it, other},
			"bool", 1), pick(w.Rand, "DELETE", "UPDATE SET "+sets[0], "DO NOTHING"))
	}
	if w.IntN(5) == 0 {
		sql = "WITH w AS (" + strings.TrimSuffix(sql, returning) + " RETURNING 1) SELECT count(*) FROM w"
	}
	return testCase{messages: []string{"BEGIN", sql, "SELECT * FROM " + t.sql(), "ROLLBACK"}, extended: w.IntN(4) == 0}
}

// cast makes a value one of the column's type.
func (w *writer) cast(c column, e string) string { return "(" + e + ")::" + sqlTypes[c.kind] }

// tableOps decides of which tables a case is, and whether its expressions may fail on visible values.
func (w *writer) tableOps() {
	w.tables = w.schema.readable()
	w.tameOps = w.IntN(3) == 0
}

// blind changes all rows that may be changed, without a look at any.
func (t *table) blind() []testCase {
	var out []testCase
	for _, command := range t.commands {
		sql := ""
		switch command {
		case "delete":
			sql = "DELETE FROM " + t.sql()
		case "update":
			for _, c := range t.columns[t.keys:] {
				if c.asIs() {
					sql = "UPDATE " + t.sql() + " SET " + c.sql() + " = NULL"
					break
				}
			}
		}
		if sql != "" {
			out = append(out, testCase{messages: []string{"BEGIN", sql, "SELECT * FROM " + t.sql(), "ROLLBACK"}})
		}
	}
	return out
}
