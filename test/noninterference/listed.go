package noninterference

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// filters are conditions that views and functions have on a column, by kind. Those in the second list fail on some
// values of hidden rows.
var filters = map[string][2][]string{
	"text":   {{"%s LIKE '%%a%%'", "length(%s) > 3"}, {"%s ~ '^[A-Za-z]'"}},
	"digits": {{"%s > '2'"}, {"(%s)::int > 20", "100 / (%s)::int > 2"}},
	"int":    {{"%s > 3", "%s IS NOT NULL"}, {"100 / %s > 3", "(%s)::int2 > 2"}},
	"num":    {{"%s < 40"}, {"sqrt(%s) > 2", "1 / %s < 0.5"}},
	"bool":   {{"%s"}, nil},
	"time":   {{"%s < '2023-01-01'"}, {"%s + interval '1000 years' > '3000-01-01'"}},
	"json":   {{"%s ? 'n'"}, {"(%s ->> 'n')::int > 2", "(%s -> 'n')::numeric > 1"}},
	"arr":    {{"%s && '{a,b}'"}, {"(%s)[1] IS NOT NULL"}},
}

// condition is on one of the columns that show.
func (s *schema) condition(r *rand.Rand, alias string, columns []column) string {
	c := pick(r, columns...)
	list := filters[c.kind]
	sql := alias + "." + c.sql()
	if c.mask == "" && list[1] != nil && r.IntN(3) > 0 {
		return fmt.Sprintf(pick(r, list[1]...), sql)
	}
	if list[0] != nil {
		return fmt.Sprintf(pick(r, list[0]...), sql)
	}
	return sql + " IS NOT NULL"
}

// view makes a view that the policy lists.
func (s *schema) view(r *rand.Rand, t *table, name string) {
	var shown []column
	for _, c := range t.shown() {
		shown = append(shown, column{name: c.name, kind: c.kind, mask: c.mask})
	}
	v := &table{name: name, keys: t.keys, columns: shown, rule: &rule{kind: "open"}}
	var names []string
	for _, c := range shown {
		names = append(names, "t."+c.sql())
	}
	list, from := strings.Join(names, ", "), " FROM "+t.sql()+" t"
	where := " WHERE " + s.condition(r, "t", shown)
	query := "SELECT " + list + from + where
	switch r.IntN(7) {
	case 0:
		query = "SELECT " + list + ", upper(t." + shown[0].sql() + "::text) || '!' AS said" + from + pick(r, "", where)
		v.columns = append(v.columns, column{name: "said", kind: "text"})
	case 1:
		if t.grouped { // a view cannot hold an aggregate that the policy bounds
			break
		}
		by := pick(r, shown...)
		if by.kind == "json" {
			by = shown[0]
		}
		query = fmt.Sprintf("SELECT t.%s AS by, count(*)::int AS n, string_agg(t.%s::text, ',' ORDER BY t.%[2]s) "+
			"AS which%s%s GROUP BY 1", by.sql(), shown[0].sql(), from, pick(r, "", where))
		v.columns, v.keys = []column{{name: "by", kind: by.kind}, {name: "n", kind: "int"}, {name: "which", kind: "text"}}, 1
	case 2:
		other := pick(r, s.tables...)
		if other.rule == nil {
			break
		}
		key := other.columns[0]
		on := s.condition(r, "o", other.shown())
		if c := t.column("ref " + other.name); c != nil && !c.secret {
			on = fmt.Sprintf("o.%s = t.%s", key.sql(), c.sql())
		}
		var more []string
		for _, c := range other.key() {
			more = append(more, "o."+c.sql()+" AS "+catalog.QuoteIdent("o "+c.name))
		}
		query = fmt.Sprintf("SELECT %s, %s%s %s public.%s o ON %s", strings.Join(more, ", "), list, from, pick(r, "JOIN", "LEFT JOIN"), other.sql(), on)
		v.columns = nil
		for _, c := range other.key() {
			v.columns = append(v.columns, column{name: "o " + c.name, kind: c.kind})
		}
		v.columns, v.keys = append(v.columns, shown...), other.keys+t.keys
	case 3:
		query = "SELECT " + list + ", row_number() OVER (ORDER BY t." + strings.Join(keyNames(t), ", t.") + ")::int AS place" + from + pick(r, "", where)
		v.columns = append(v.columns, column{name: "place", kind: "int"})
	case 4:
		query = "WITH c AS (" + query + ") SELECT * FROM c UNION ALL SELECT " + list + from + " WHERE false"
	case 5:
		query += " ORDER BY t." + strings.Join(keyNames(t), ", t.") + " LIMIT 5"
	}
	s.extra += fmt.Sprintf("CREATE VIEW %s%s AS %s;\n", v.sql(), pick(r, "", " WITH (security_barrier)", " WITH (security_invoker)"), query)
	s.views = append(s.views, v)
}

func keyNames(t *table) []string {
	var out []string
	for _, c := range t.key() {
		out = append(out, c.sql())
	}
	return out
}

// function makes a function that the policy lists.
func (s *schema) function(r *rand.Rand, t *table, name string) {
	shown := t.shown()
	from := fmt.Sprintf(" FROM public.%s t WHERE %s", t.sql(), s.condition(r, "t", shown))
	key := "t." + shown[0].sql()
	switch r.IntN(4) {
	case 0:
		s.extra += fmt.Sprintf("CREATE FUNCTION %s() RETURNS integer LANGUAGE sql STABLE AS $tell$ SELECT count(*)::int%s $tell$;\n", name, from)
	case 1:
		s.extra += fmt.Sprintf(
			"CREATE FUNCTION %s() RETURNS integer LANGUAGE plpgsql STABLE AS $tell$ BEGIN RETURN (SELECT "+
				"count(*)%s); EXCEPTION WHEN others THEN RETURN length(SQLERRM); END $tell$;\n", name, from)
	case 2:
		s.extra += fmt.Sprintf(
			"CREATE FUNCTION %s() RETURNS integer LANGUAGE plpgsql AS $tell$ DECLARE n int := 0; row record; "+
				"BEGIN FOR row IN SELECT %s AS k%s LOOP n := n + length(row.k::text); END LOOP; RETURN n; END $tell$;\n", name, key, from)
	case 3:
		s.extra += fmt.Sprintf(
			"CREATE FUNCTION %[1]s_of() RETURNS TABLE (k text) LANGUAGE sql STABLE ROWS 3 AS $tell$ SELECT "+
				"%[2]s::text%[3]s $tell$;\nCREATE FUNCTION %[1]s() RETURNS integer LANGUAGE sql STABLE AS $tell$ "+
				"SELECT count(DISTINCT k)::int FROM public.%[1]s_of() $tell$;\n", name, key, from)
		s.functions = append(s.functions, name+"_of")
	}
	s.functions = append(s.functions, name)
	s.calls = append(s.calls, "public."+name+"()")
}

// listed is what a policy says of views and functions, and of the tables that stand for others.
func (s *schema) listed() string {
	var b strings.Builder
	for _, t := range s.stored {
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

// readable are the tables, parts and views that agents may name.
func (s *schema) readable() []*table {
	var out []*table
	for _, t := range s.tables {
		if t.rule == nil {
			continue
		}
		out = append(out, t)
		if t.shape != plain && !t.narrowed() {
			for n := range map[shape]int{partitioned: 2, inherited: 1}[t.shape] {
				part := *t
				part.name, part.shape = fmt.Sprintf("%s part%d", t.name, n), plain
				out = append(out, &part)
			}
		}
	}
	return append(append(out, s.views...), s.stored...)
}
