package noninterference

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/catalog"
)

// shape is how a table stores its rows.
type shape int

const (
	plain       shape = iota
	partitioned       // by hash of its key
	inherited         // a child holds some
)

// computed are expressions of generated columns, by kind: none fails on any value.
var computed = map[string]string{
	"text": "upper(%s)", "digits": "left(%s, 2)", "int": "coalesce(%s, 0) %% 7", "num": "round(%s, 1)", "bool": "NOT %s", "json": "%s -> 'k'", "arr": "array_remove(%s, 'a')",
}

// forbidden are values that a CHECK does not take, by kind. Columns under one have none of them, but what agents set may.
var forbidden = map[string][]string{"text": {"tea", "a", "", "apple pie"}, "int": {"12", "0", "-1", "3"}, "num": {"0", "10", "1.5"}}

func (c column) forbids(value string) bool {
	if !c.checked {
		return false
	}
	return slices.Contains(forbidden[c.kind], value) || c.kind == "num" && strings.Trim(value, "0.") == ""
}

// conditions that views and functions have on a column, by kind. Those in the second list fail on some values of hidden rows.
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

// around draws what a database has around its tables: partitions and children, generated columns, CHECKs, foreign keys, indexes on
// expressions, triggers, and for agents views, materialised views and functions.
func (s *schema) around(r *rand.Rand) {
	for _, t := range s.tables {
		s.shapes(r, t)
		s.constraints(r, t)
	}
	for n, t := range s.tables {
		s.indexes(r, t, n)
		s.references(r, t)
		if t.commands != nil && r.IntN(2) == 0 {
			s.triggers(r, t, n)
		}
	}
	if r.IntN(4) == 0 {
		for _, t := range s.tables {
			s.bound(r, t)
		}
	}
	for n, t := range slices.Clone(s.tables) {
		if t.rule == nil || strings.HasPrefix(t.name, "link") {
			continue
		}
		if r.IntN(2) == 0 {
			s.view(r, t, fmt.Sprintf("%s view%d", t.name, n))
		}
		if r.IntN(3) == 0 && !t.narrowed() { // of a table with hidden columns agents read a view
			s.function(r, t, fmt.Sprintf("tell%d", n))
		}
		if r.IntN(4) == 0 && !t.narrowed() && t.shape == plain && t.rule.ofRow() {
			s.stored = append(s.stored, &table{name: t.name + " stored", columns: t.columns, keys: t.keys, rule: t.rule, of: t})
		}
	}
}

func (s *schema) shapes(r *rand.Rand, t *table) {
	if s.grouped || t.rule == nil || t.link() != nil {
		return
	}
	switch n := r.IntN(12); {
	case n < 3:
		t.shape = partitioned
	case n == 3 && !s.readByRules(t):
		t.shape = inherited
	}
}

// readByRules tells whether another table's rule reads t.
func (s *schema) readByRules(t *table) bool {
	var reads func(r *rule) bool
	reads = func(r *rule) bool {
		return r != nil && (r.target == t || r.link == t || slices.ContainsFunc(r.parts, reads))
	}
	return slices.ContainsFunc(s.tables, func(o *table) bool { return o != t && reads(o.rule) })
}

// ofRow tells whether a rule reads the row alone.
func (r *rule) ofRow() bool {
	return r.target == nil && r.link == nil && r.registry == nil && !slices.ContainsFunc(r.parts, func(p *rule) bool { return !p.ofRow() })
}

// asIs tells whether a column shows as it is, and nothing else is made of it.
func (c column) asIs() bool { return !c.ruled && !c.secret && c.mask == "" && c.generated == "" }

func (s *schema) constraints(r *rand.Rand, t *table) {
	for i := t.keys; i < len(t.columns); i++ {
		if c := &t.columns[i]; c.asIs() && forbidden[c.kind] != nil && r.IntN(4) == 0 {
			c.checked = true
		}
	}
	if t.rule == nil || s.grouped || r.IntN(3) > 0 {
		return
	}
	for _, c := range t.columns[t.keys:] {
		if form := computed[c.kind]; form != "" && c.asIs() && c.domain == "" {
			kind := c.kind
			if kind == "digits" {
				kind = "text"
			}
			t.columns = append(t.columns, column{name: "made of it", kind: kind, generated: fmt.Sprintf(form, c.sql())})
			return
		}
	}
}

// definition is what a column is in CREATE TABLE besides its name and type.
func (c column) definition() string {
	out := ""
	if c.generated != "" {
		out = " GENERATED ALWAYS AS (" + c.generated + ") STORED"
	}
	if c.checked {
		out += fmt.Sprintf(" CHECK (%s NOT IN ('%s'))", c.sql(), strings.Join(forbidden[c.kind], "', '"))
	}
	return out
}

// partsDDL creates the tables that hold rows of t.
func (t *table) partsDDL() string {
	switch t.shape {
	case partitioned:
		return fmt.Sprintf("CREATE TABLE %[2]s PARTITION OF %[1]s FOR VALUES WITH (MODULUS 2, REMAINDER 0);\nCREATE TABLE %[3]s PARTITION OF %[1]s FOR VALUES WITH (MODULUS 2, REMAINDER 1);\n", t.sql(), t.part(0), t.part(1))
	case inherited:
		return fmt.Sprintf("CREATE TABLE %s () INHERITS (%s);\n", t.part(0), t.sql())
	}
	return ""
}

func (t *table) part(n int) string { return catalog.QuoteIdent(fmt.Sprintf("%s part%d", t.name, n)) }

// into is the table that a row is put into.
func (t *table) into(row row) string {
	if key := row[t.columns[0].name]; t.shape == inherited && key != "" && key[len(key)-1]%3 == 0 {
		return t.part(0)
	}
	return t.sql()
}

func (s *schema) indexes(r *rand.Rand, t *table, n int) {
	for _, c := range t.columns[t.keys:] {
		if r.IntN(4) > 0 {
			continue
		}
		index := map[string][]string{
			"text": {"(upper(%s))", "(%s text_pattern_ops)", "USING hash (%s)"}, "digits": {"(%s COLLATE \"C\")", "(length(%s))"}, "int": {"((%s %% 10))", "USING brin (%s)"}, "num": {"(%s DESC)"},
			"bool": {"((NOT %s))"}, "time": {"(%s)"}, "json": {"USING gin (%s)", "((%s ->> 'k'))"}, "arr": {"USING gin (%s)"},
		}[c.kind]
		if index == nil {
			continue
		}
		where := pick(r, "", "", " WHERE "+c.sql()+" IS NOT NULL")
		s.extra += fmt.Sprintf("CREATE INDEX ON %s "+pick(r, index...)+"%s;\n", t.sql(), c.sql(), where)
	}
	if r.IntN(4) == 0 && len(t.columns) > t.keys+1 && t.columns[t.keys].kind != "json" && t.columns[t.keys+1].kind != "json" {
		s.extra += fmt.Sprintf("CREATE STATISTICS known%d ON %s, %s FROM %s;\n", n, t.columns[t.keys].sql(), t.columns[t.keys+1].sql(), t.sql())
	}
}

// references are foreign keys to tables whose rows agents leave as they are: of others the policy would have to say that a
// hidden row may be told of.
func (s *schema) references(r *rand.Rand, t *table) {
	if s.grouped || t.shape == inherited {
		return
	}
	for _, target := range s.tables {
		c := t.column("ref " + target.name)
		if c == nil || target == t || target.rule == nil || target.keys > 1 || target.shape == inherited || slices.Contains(target.commands, "update") || slices.Contains(target.commands, "delete") || r.IntN(2) == 0 {
			continue
		}
		s.extra += fmt.Sprintf("ALTER TABLE %s ADD FOREIGN KEY (%s) REFERENCES %s%s;\n", t.sql(), c.sql(), target.sql(), pick(r, "", " ON DELETE CASCADE", " ON DELETE SET NULL", " DEFERRABLE INITIALLY DEFERRED"))
	}
}

// triggers fire for what agents write.
func (s *schema) triggers(r *rand.Rand, t *table, n int) {
	var text, number *column
	for i := t.keys; i < len(t.columns); i++ {
		switch c := &t.columns[i]; {
		case !c.asIs() || c.checked || c.domain != "":
		case c.kind == "text":
			text = c
		case c.kind == "int":
			number = c
		}
	}
	name := fmt.Sprintf("fires%d", n)
	body, when := "RAISE NOTICE 'changed %', NEW; RETURN NEW;", "AFTER UPDATE ON %s FOR EACH ROW"
	switch n := r.IntN(6); {
	case n == 0 && text != nil:
		body, when = fmt.Sprintf("NEW.%[1]s := upper(NEW.%[1]s) || NEW.%[2]s; RETURN NEW;", text.sql(), t.columns[0].sql()), "BEFORE INSERT OR UPDATE ON %s FOR EACH ROW"
	case n == 1 && number != nil:
		body, when = fmt.Sprintf("IF NEW.%[1]s %% 5 = 3 THEN RAISE EXCEPTION 'three: %%', NEW; END IF; NEW.%[1]s := 100 / NEW.%[1]s; RETURN NEW;", number.sql()), "BEFORE INSERT OR UPDATE ON %s FOR EACH ROW"
	case n == 2:
		body, when = fmt.Sprintf("IF OLD.%s::text ~ '[13579]$' THEN RETURN NULL; END IF; RETURN OLD;", t.columns[0].sql()), "BEFORE DELETE ON %s FOR EACH ROW"
	case n == 3:
		body = "PERFORM 1 / (6 - least(count(*), 6)) FROM fresh; RAISE NOTICE 'rows: %', (SELECT count(*) FROM fresh); RETURN NULL;"
		when = "AFTER UPDATE ON %s REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT"
	case n == 4 && number != nil:
		other := pick(r, s.tables...)
		body, when = fmt.Sprintf("NEW.%s := (SELECT count(*) FROM public.%s); RETURN NEW;", number.sql(), other.sql()), "BEFORE INSERT OR UPDATE ON %s FOR EACH ROW"
	}
	s.extra += fmt.Sprintf("CREATE FUNCTION %s() RETURNS trigger LANGUAGE plpgsql AS $fires$ BEGIN %s END $fires$;\nCREATE TRIGGER fires "+when+" EXECUTE FUNCTION %[1]s();\n", name, body, t.sql())
}

// bound says what a new row must be. The visible rows alone do not ask for that.
func (s *schema) bound(r *rand.Rand, t *table) {
	if t.commands == nil {
		return
	}
	s.grouped = true
	if t.column("owner") != nil && r.IntN(2) == 0 {
		t.bounds = ", stamp: { owner: { attribute: member } }"
		return
	}
	for _, c := range t.columns[t.keys:] {
		switch {
		case !c.asIs() || c.domain != "" || r.IntN(3) > 0:
		case c.kind == "text" && t.bounds == "":
			t.bounds = pick(r, fmt.Sprintf(", stamp: { %q: { value: x_1 } }", c.name), fmt.Sprintf(", check: [ { status: { column: %q, is: x_1 } } ]", c.name),
				fmt.Sprintf(", check: [ { not: { status: { column: %q, is: \"HIDDEN\" } } } ]", c.name))
		case t.bounds == "":
			t.bounds = fmt.Sprintf(", immutable: [%q]", c.name)
		}
	}
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
		query = fmt.Sprintf("SELECT t.%s AS by, count(*)::int AS n, string_agg(t.%s::text, ',' ORDER BY t.%[2]s) AS which%s%s GROUP BY 1", by.sql(), shown[0].sql(), from, pick(r, "", where))
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
		s.extra += fmt.Sprintf("CREATE FUNCTION %s() RETURNS integer LANGUAGE plpgsql STABLE AS $tell$ BEGIN RETURN (SELECT count(*)%s); EXCEPTION WHEN others THEN RETURN length(SQLERRM); END $tell$;\n", name, from)
	case 2:
		s.extra += fmt.Sprintf("CREATE FUNCTION %s() RETURNS integer LANGUAGE plpgsql AS $tell$ DECLARE n int := 0; row record; BEGIN FOR row IN SELECT %s AS k%s LOOP n := n + length(row.k::text); END LOOP; RETURN n; END $tell$;\n", name, key, from)
	case 3:
		s.extra += fmt.Sprintf("CREATE FUNCTION %[1]s_of() RETURNS TABLE (k text) LANGUAGE sql STABLE ROWS 3 AS $tell$ SELECT %[2]s::text%[3]s $tell$;\nCREATE FUNCTION %[1]s() RETURNS integer LANGUAGE sql STABLE AS $tell$ SELECT count(DISTINCT k)::int FROM public.%[1]s_of() $tell$;\n", name, key, from)
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
