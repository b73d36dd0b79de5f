package noninterference

import (
	"fmt"
	"strings"
)

// testCase has messages that are sent one after the other on one connection.
type testCase struct {
	messages []string
	extended bool // use the extended protocol, in which each message has one statement
}

// newFromItem returns a new item for FROM, and its SQL. If items is not nil, the new item may be a LATERAL subquery
// that reads them.
func (w *statementWriter) newFromItem(items []fromItem, depth int) (fromItem, string) {
	if len(w.ctes) > 0 && w.IntN(4) == 0 {
		it := pick(w.Rand, w.ctes...)
		name := it.alias
		it.alias = w.newAlias()
		return it, quoted(name) + " AS " + quoted(it.alias)
	}
	t := pick(w.Rand, w.tables...)
	columns := w.mostlyAllowedColumns(t)
	if w.IntN(12) == 0 {
		columns = t.columns
	}
	it := fromItem{w.newAlias(), columns, t.keyCount}
	name := t.sql()
	if w.IntN(3) == 0 || t.name == w.cteTableName {
		name = "public." + name
	}
	if depth > 1 && w.IntN(6) == 0 {
		inner := fromItem{w.newAlias(), columns, t.keyCount}
		return it, fmt.Sprintf("(SELECT * FROM %s AS %s WHERE %s) AS %s", name, quoted(inner.alias),
			w.expression([]fromItem{inner}, "bool", depth-1), quoted(it.alias))
	}
	if w.IntN(25) == 0 {
		name = pick(w.Rand, "ONLY "+name, name+" *")
	}
	return it, name + pick(w.Rand, " AS ", " ") + quoted(it.alias)
}

// totalOrder returns a list for ORDER BY that determines the order of all rows.
func (w *statementWriter) totalOrder(items ...fromItem) string {
	var parts []string
	for _, it := range items {
		for _, c := range it.columns[:it.keyCount] {
			parts = append(parts, quoted(it.alias)+"."+quoted(c.name)+pick(w.Rand, "", " DESC", " NULLS FIRST"))
		}
	}
	return strings.Join(parts, ", ")
}

// fromClause returns one to three items for FROM, and their SQL.
func (w *statementWriter) fromClause(depth int) ([]fromItem, string) {
	var items []fromItem
	var b strings.Builder
	for i := range 1 + w.IntN(3)*w.IntN(2) {
		it, text := w.newFromItem(nil, depth)
		if i == 0 {
			b.WriteString(text)
			items = append(items, it)
			continue
		}
		join := pick(w.Rand, "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", ",")
		joinedItems := append([]fromItem{it}, items...)
		switch join {
		case "CROSS JOIN", ",":
			fmt.Fprintf(&b, " CROSS JOIN %s", text)
		case "FULL JOIN": // PostgreSQL supports FULL JOIN only with merge-joinable or hash-joinable conditions
			k := pick(w.Rand, "text", "int")
			fmt.Fprintf(&b, " FULL JOIN %s ON %s = %s", text, w.expression(items[:1], k, 0), w.expression([]fromItem{it}, k, 0))
		default:
			fmt.Fprintf(&b, " %s %s ON %s", join, text, w.expression(joinedItems, "bool", depth))
		}
		items = append(items, it)
	}
	if w.IntN(10) == 0 {
		alias := w.newAlias()
		k := pick(w.Rand, "text", "int")
		fmt.Fprintf(&b, " CROSS JOIN LATERAL (VALUES (%s)) AS %s (v)", w.expression(items, k, depth), quoted(alias))
		items = append(items, fromItem{alias, []column{{name: "v", kind: k}}, 1})
	}
	return items, b.String()
}

// query returns a random SELECT.
func (w *statementWriter) query(depth int) string {
	items, from := w.fromClause(depth)
	where := ""
	if w.IntN(4) > 0 {
		where = " WHERE " + w.expression(items, "bool", depth)
	}
	anyExpression := func() string { return w.expression(items, pick(w.Rand, kinds...), depth) }
	systemColumn := func() string {
		return quoted(items[0].alias) + "." + pick(w.Rand, "ctid", "xmin", "xmax", "tableoid", "cmin", "oid")
	}
	switch w.IntN(9) {
	case 0:
		return fmt.Sprintf("SELECT count(*), %s FROM %s%s", w.aggregateCall(items, depth), from, where)
	case 1:
		by := anyExpression()
		return fmt.Sprintf("SELECT %s AS g, count(*), %s FROM %s%s GROUP BY %s%s", by, w.aggregateCall(items, depth),
			from, where, pick(w.Rand, "1", "g", "ROLLUP (1)", "1"), pick(w.Rand, "", " HAVING "+w.aggregateCall(items, depth)+" IS NOT NULL"))
	case 2:
		return fmt.Sprintf("SELECT DISTINCT %s, %s FROM %s%s", anyExpression(), anyExpression(), from, where)
	case 3:
		return fmt.Sprintf("SELECT %s, row_number() OVER (ORDER BY %s), count(*) OVER (PARTITION BY %s) FROM %s%s "+
			"ORDER BY %s LIMIT %d", anyExpression(), w.totalOrder(items...), anyExpression(), from, where, w.totalOrder(items...), 1+w.IntN(8))
	case 4:
		return fmt.Sprintf("SELECT %s FROM %s%s",
			pick(w.Rand, "*", quoted(items[0].alias)+".*", quoted(items[0].alias),
				"to_jsonb("+quoted(items[0].alias)+")", "("+quoted(items[0].alias)+").*"), from, where)
	case 5:
		if w.IntN(4) == 0 {
			return fmt.Sprintf("SELECT %s FROM %s%s", systemColumn(), from, where)
		}
		return fmt.Sprintf("SELECT %s FROM %s%s", w.functionCall(items, depth), from, where)
	case 6:
		return fmt.Sprintf("SELECT %s FROM %s%s ORDER BY %s, %s OFFSET %d%s", anyExpression(), from, where,
			anyExpression(), w.totalOrder(items...), w.IntN(4),
			pick(w.Rand, "", " LIMIT 5", " FETCH FIRST 3 ROWS ONLY", " FOR UPDATE", " FOR SHARE SKIP LOCKED"))
	}
	return fmt.Sprintf("SELECT %s AS a, %s AS b FROM %s%s", anyExpression(), anyExpression(), from, where)
}

func (w *statementWriter) aggregateCall(items []fromItem, depth int) string {
	k := pick(w.Rand, "text", "int", "num")
	e := w.expression(items, k, depth)
	filter := pick(w.Rand, "", "", " FILTER (WHERE "+w.expression(items, "bool", depth-1)+")")
	return pick(w.Rand, "max("+e+")", "min("+e+")", "count("+e+")", "count(DISTINCT "+e+")",
		"md5(string_agg(("+e+")::text, ',' ORDER BY ("+e+")::text))", "bool_or("+w.expression(items, "bool", depth-1)+")",
		"sum("+w.expression(items, "num", depth-1)+")", "avg("+w.expression(items, "int", depth-1)+")", "(array_agg(DISTINCT ("+
			e+")::text))[1:2]", "percentile_disc(0.5) WITHIN GROUP (ORDER BY "+w.expression(items, "int", depth-1)+")") + filter
}

// nextCase returns a random case of one or a few statements.
func (w *statementWriter) nextCase() testCase {
	w.aliasCount, w.ctes, w.cteTableName = 0, nil, ""
	w.chooseTables()
	depth := 1 + w.IntN(3)
	switch n := w.IntN(40); {
	case n < 22:
		return testCase{messages: []string{w.query(depth)}, extended: w.IntN(3) == 0}
	case n < 24: // a WITH query whose name may be that of a table
		t := pick(w.Rand, w.tables...)
		name := pick(w.Rand, t.name, "c", pick(w.Rand, w.tables...).name)
		inner := fromItem{w.newAlias(), t.shownColumns(), t.keyCount}
		head := fmt.Sprintf("WITH %s AS %s(SELECT * FROM %s%s AS %s WHERE %s) ", quoted(name),
			pick(w.Rand, "", "MATERIALIZED ", "NOT MATERIALIZED "), pick(w.Rand, "",
				"public."), t.sql(), quoted(inner.alias), w.expression([]fromItem{inner}, "bool", depth))
		w.ctes = []fromItem{{name, t.shownColumns(), t.keyCount}}
		w.cteTableName = name
		return testCase{messages: []string{head + w.query(depth)}}
	case n < 26:
		k := pick(w.Rand, "text", "int", "time")
		side := func() string {
			items, from := w.fromClause(depth - 1)
			return "SELECT " + w.expression(items, k, depth) + " FROM " + from
		}
		return testCase{messages: []string{side() + pick(w.Rand, " UNION ", " UNION ALL ", " EXCEPT ", " INTERSECT ") + side()}}
	case n < 27:
		return testCase{messages: []string{"COPY (" + w.query(depth) + ") TO STDOUT"}}
	case n < 28:
		return testCase{messages: []string{w.query(depth-1) + "; " + w.query(depth-1)}}
	case n < 29:
		return testCase{messages: []string{"BEGIN", "SAVEPOINT a", w.query(depth), "ROLLBACK TO a", w.query(depth), "COMMIT"}}
	case n < 31: // a query of the catalogs
		r := pick(w.Rand, w.vocabulary.relations...)
		return testCase{messages: []string{pick(w.Rand, "SELECT * FROM "+r, "SELECT count(*) FROM "+r, "SELECT x::text FROM "+r+" x", "TABLE "+r)}}
	case n < 32:
		s := pick(w.Rand, w.vocabulary.settings...)
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
	case n < 36: // a cursor or a prepared statement
		q := w.query(depth)
		name := w.newAlias()
		if w.IntN(2) == 0 {
			return testCase{messages: []string{"PREPARE " + quoted(name) + " AS " + q, "EXECUTE " + quoted(name),
				"EXECUTE " + quoted(name), "DEALLOCATE " + quoted(name)}}
		}
		return testCase{messages: []string{"BEGIN",
			"DECLARE c " + pick(w.Rand, "", "SCROLL ", "NO SCROLL ") + "CURSOR " + pick(w.Rand, "", "WITH HOLD ") +
				"FOR " + q, "FETCH FORWARD ALL FROM c", pick(w.Rand, "MOVE BACKWARD 2 IN c", "FETCH LAST FROM c", "FETCH 1 FROM c"), "ROLLBACK"}}
	}
	return w.undoneWrite(depth)
}

// undoneWrite returns a case that writes something and rolls it back.
func (w *statementWriter) undoneWrite(depth int) testCase {
	t := pick(w.Rand, w.tables...)
	it := fromItem{w.newAlias(), t.columns, t.keyCount}
	items := []fromItem{it}
	alias := quoted(it.alias)
	var sets, names, values []string
	for _, c := range t.columns {
		if c.generated != "" && w.IntN(8) > 0 {
			continue
		}
		if w.IntN(2) == 0 || len(sets) == 0 {
			sets = append(sets, c.sql()+" = "+w.castTo(c, w.expression(items, c.expressionKind(), depth-1)))
		}
		if w.IntN(4) > 0 {
			names = append(names, c.sql())
			values = append(values, w.castTo(c, w.constant(c.expressionKind())))
		}
	}
	if len(sets) > 2 {
		sets = sets[:2]
	}
	if len(names) == 0 {
		names, values = []string{t.columns[0].sql()}, []string{"NULL"}
	}
	returning := pick(w.Rand, "", " RETURNING *", " RETURNING "+w.expression(items, "text", depth-1))
	where := pick(w.Rand, "", " WHERE "+w.expression(items, "bool", depth))
	insert := fmt.Sprintf("INSERT INTO %s AS %s (%s) VALUES (%s)", t.sql(), alias, strings.Join(names, ", "), strings.Join(values, ", "))
	other, from := w.newFromItem(nil, 1)
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
		sql = fmt.Sprintf("UPDATE %s AS %s SET %s FROM %s WHERE %s%s", t.sql(), alias, sets[0], from, w.expression([]fromItem{it, other}, "bool", depth), returning)
	case 6:
		sql = fmt.Sprintf("DELETE FROM %s AS %s%s%s", t.sql(), alias, where, returning)
	default:
		sql = fmt.Sprintf("MERGE INTO %s AS %s USING %s ON %s WHEN MATCHED AND %s THEN %s WHEN NOT MATCHED THEN "+
			"DO NOTHING", t.sql(), alias, from, w.expression([]fromItem{it, other}, "bool", 1), w.expression([]fromItem{it, other},
			"bool", 1), pick(w.Rand, "DELETE", "UPDATE SET "+sets[0], "DO NOTHING"))
	}
	if w.IntN(5) == 0 {
		sql = "WITH w AS (" + strings.TrimSuffix(sql, returning) + " RETURNING 1) SELECT count(*) FROM w"
	}
	return testCase{messages: []string{"BEGIN", sql, "SELECT * FROM " + t.sql(), "ROLLBACK"}, extended: w.IntN(4) == 0}
}

// castTo returns an expression with a cast to the column's type.
func (w *statementWriter) castTo(c column, e string) string {
	return "(" + e + ")::" + sqlTypes[c.kind]
}

// chooseTables sets the tables of the next case, and whether its expressions may fail on visible values.
func (w *statementWriter) chooseTables() {
	w.tables = w.schema.readableTables()
	w.safeOnly = w.IntN(3) == 0
}

// unconditionalWrites returns statements without WHERE, which write to all rows to which agents may write.
func (t *table) unconditionalWrites() []testCase {
	var out []testCase
	for _, command := range t.writeCommands {
		sql := ""
		switch command {
		case "delete":
			sql = "DELETE FROM " + t.sql()
		case "update":
			for _, c := range t.columns[t.keyCount:] {
				if c.isUnmasked() {
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
