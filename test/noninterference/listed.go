package noninterference

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// columnFilters are conditions for the queries of views and functions, by kind of column. Conditions in the second list
// fail on some values in hidden rows.
var columnFilters = map[string][2][]string{
	"text":   {{"%s LIKE '%%a%%'", "length(%s) > 3"}, {"%s ~ '^[A-Za-z]'"}},
	"digits": {{"%s > '2'"}, {"(%s)::int > 20", "100 / (%s)::int > 2"}},
	"int":    {{"%s > 3", "%s IS NOT NULL"}, {"100 / %s > 3", "(%s)::int2 > 2"}},
	"num":    {{"%s < 40"}, {"sqrt(%s) > 2", "1 / %s < 0.5"}},
	"bool":   {{"%s"}, nil},
	"time":   {{"%s < '2023-01-01'"}, {"%s + interval '1000 years' > '3000-01-01'"}},
	"json":   {{"%s ? 'n'"}, {"(%s ->> 'n')::int > 2", "(%s -> 'n')::numeric > 1"}},
	"arr":    {{"%s && '{a,b}'"}, {"(%s)[1] IS NOT NULL"}},
}

// visibleColumnCondition returns a condition on one of the columns.
func (s *schema) visibleColumnCondition(r *rand.Rand, alias string, columns []column) string {
	c := pick(r, columns...)
	list := columnFilters[c.kind]
	sql := alias + "." + c.sql()
	if c.mask == "" && list[1] != nil && r.IntN(3) > 0 {
		return fmt.Sprintf(pick(r, list[1]...), sql)
	}
	if list[0] != nil {
		return fmt.Sprintf(pick(r, list[0]...), sql)
	}
	return sql + " IS NOT NULL"
}

// addView adds a view to the schema and to the policy.
func (s *schema) addView(r *rand.Rand, t *table, name string) {
	var shownColumns []column
	for _, c := range t.shownColumns() {
		shownColumns = append(shownColumns, column{name: c.name, kind: c.kind, mask: c.mask})
	}
	v := &table{name: name, keyCount: t.keyCount, columns: shownColumns, rule: &rule{kind: "open"}}
	var names []string
	for _, c := range shownColumns {
		names = append(names, "t."+c.sql())
	}
	list, from := strings.Join(names, ", "), " FROM "+t.sql()+" t"
	where := " WHERE " + s.visibleColumnCondition(r, "t", shownColumns)
	query := "SELECT " + list + from + where
	switch r.IntN(7) {
	case 0:
		query = "SELECT " + list + ", upper(t." + shownColumns[0].sql() + "::text) || '!' AS said" + from + pick(r, "", where)
		v.columns = append(v.columns, column{name: "said", kind: "text"})
	case 1:
		if t.countsHiddenRows { // the policy limits aggregates on this table, which a view cannot fulfil
			break
		}
		groupColumn := pick(r, shownColumns...)
		if groupColumn.kind == "json" {
			groupColumn = shownColumns[0]
		}
		query = fmt.Sprintf("SELECT t.%s AS by, count(*)::int AS n, string_agg(t.%s::text, ',' ORDER BY t.%[2]s) "+
			"AS which%s%s GROUP BY 1", groupColumn.sql(), shownColumns[0].sql(), from, pick(r, "", where))
		v.columns, v.keyCount = []column{{name: "by", kind: groupColumn.kind}, {name: "n", kind: "int"}, {name: "which", kind: "text"}}, 1
	case 2:
		other := pick(r, s.tables...)
		if other.rule == nil {
			break
		}
		key := other.columns[0]
		on := s.visibleColumnCondition(r, "o", other.shownColumns())
		if c := t.column("ref " + other.name); c != nil && !c.isHidden {
			on = fmt.Sprintf("o.%s = t.%s", key.sql(), c.sql())
		}
		var otherColumns []string
		for _, c := range other.key() {
			otherColumns = append(otherColumns, "o."+c.sql()+" AS "+catalog.QuoteIdent("o "+c.name))
		}
		query = fmt.Sprintf("SELECT %s, %s%s %s public.%s o ON %s", strings.Join(otherColumns, ", "), list, from, pick(r, "JOIN", "LEFT JOIN"), other.sql(), on)
		v.columns = nil
		for _, c := range other.key() {
			v.columns = append(v.columns, column{name: "o " + c.name, kind: c.kind})
		}
		v.columns, v.keyCount = append(v.columns, shownColumns...), other.keyCount+t.keyCount
	case 3:
		query = "SELECT " + list + ", row_number() OVER (ORDER BY t." + strings.Join(keyNames(t), ", t.") + ")::int AS place" + from + pick(r, "", where)
		v.columns = append(v.columns, column{name: "place", kind: "int"})
	case 4:
		query = "WITH c AS (" + query + ") SELECT * FROM c UNION ALL SELECT " + list + from + " WHERE false"
	case 5:
		query += " ORDER BY t." + strings.Join(keyNames(t), ", t.") + " LIMIT 5"
	}
	s.extraDDL += fmt.Sprintf("CREATE VIEW %s%s AS %s;\n", v.sql(), pick(r, "", " WITH (security_barrier)", " WITH (security_invoker)"), query)
	s.views = append(s.views, v)
}

func keyNames(t *table) []string {
	var out []string
	for _, c := range t.key() {
		out = append(out, c.sql())
	}
	return out
}

// addFunction adds a function to the schema and to the policy.
func (s *schema) addFunction(r *rand.Rand, t *table, name string) {
	shownColumns := t.shownColumns()
	from := fmt.Sprintf(" FROM public.%s t WHERE %s", t.sql(), s.visibleColumnCondition(r, "t", shownColumns))
	key := "t." + shownColumns[0].sql()
	switch r.IntN(4) {
	case 0:
		s.extraDDL += fmt.Sprintf("CREATE FUNCTION %s() RETURNS integer LANGUAGE sql STABLE AS $tell$ SELECT count(*)::int%s $tell$;\n", name, from)
	case 1:
		s.extraDDL += fmt.Sprintf(
			"CREATE FUNCTION %s() RETURNS integer LANGUAGE plpgsql STABLE AS $tell$ BEGIN RETURN (SELECT "+
				"count(*)%s); EXCEPTION WHEN others THEN RETURN length(SQLERRM); END $tell$;\n", name, from)
	case 2:
		s.extraDDL += fmt.Sprintf(
			"CREATE FUNCTION %s() RETURNS integer LANGUAGE plpgsql AS $tell$ DECLARE n int := 0; row record; "+
				"BEGIN FOR row IN SELECT %s AS k%s LOOP n := n + length(row.k::text); END LOOP; RETURN n; END $tell$;\n", name, key, from)
	case 3:
		s.extraDDL += fmt.Sprintf(
			"CREATE FUNCTION %[1]s_of() RETURNS TABLE (k text) LANGUAGE sql STABLE ROWS 3 AS $tell$ SELECT "+
				"%[2]s::text%[3]s $tell$;\nCREATE FUNCTION %[1]s() RETURNS integer LANGUAGE sql STABLE AS $tell$ "+
				"SELECT count(DISTINCT k)::int FROM public.%[1]s_of() $tell$;\n", name, key, from)
		s.functions = append(s.functions, name+"_of")
	}
	s.functions = append(s.functions, name)
	s.functionCalls = append(s.functionCalls, "public."+name+"()")
}

// listedYAML returns the sections of the policy about views, functions and materialized views.
func (s *schema) listedYAML() string {
	var b strings.Builder
	for _, t := range s.materializedViews {
		fmt.Fprintf(&b, "  %q:\n    rows: [ %s ]\n", t.name, t.rule.yaml())
	}
	if len(s.views) > 0 {
		b.WriteString("views:\n")
		for _, v := range s.views {
			fmt.Fprintf(&b, "  %q: {}\n", v.name)
		}
	}
	if len(s.functions) > 0 {
		b.WriteString("functions:\n")
		for _, f := range s.functions {
			fmt.Fprintf(&b, "  %s: {}\n", f)
		}
	}
	return b.String()
}

// readableTables returns the tables, partitions, child tables and views that agents may read.
func (s *schema) readableTables() []*table {
	var out []*table
	for _, t := range s.tables {
		if t.rule == nil {
			continue
		}
		out = append(out, t)
		if t.storage != plainStorage && !t.hasHiddenColumns() {
			for n := range map[storage]int{partitionedStorage: 2, inheritedStorage: 1}[t.storage] {
				part := *t
				part.name, part.storage = fmt.Sprintf("%s part%d", t.name, n), plainStorage
				out = append(out, &part)
			}
		}
	}
	return append(append(out, s.views...), s.materializedViews...)
}
