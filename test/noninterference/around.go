package noninterference

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
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
	"text": "upper(%s)", "digits": "left(%s, 2)", "int": "coalesce(%s, 0) %% 7", "num": "round(%s, 1)",
	"bool": "NOT %s", "json": "%s -> 'k'", "arr": "array_remove(%s, 'a')",
}

// asked are expressions of columns that are computed as they are read, which PostgreSQL has from 18 on, with their
// kinds. They fail on some values of hidden rows.
var asked = map[string][2]string{"digits": {"(%s)::integer", "int"}, "int": {"100 / %s", "int"}, "num": {"1 / %s", "num"}}

// forbidden are values that a CHECK does not take, by kind. Columns under one have none of them, but what agents set may.
var forbidden = map[string][]string{"text": {"tea", "a", "", "apple pie"}, "int": {"12", "0", "-1", "3"}, "num": {"0", "10", "1.5"}}

func (c column) forbids(value string) bool {
	if !c.checked {
		return false
	}
	return slices.Contains(forbidden[c.kind], value) || c.kind == "num" && strings.Trim(value, "0.") == ""
}

// around draws what a database has around its tables: partitions and children, generated columns, CHECKs, foreign keys,
// indexes on expressions, triggers, and for agents views, materialised views and functions.
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
		if r.IntN(4) == 0 && !t.narrowed() && t.shape == plain && t.rule.ofRow() &&
			!slices.ContainsFunc(t.columns, func(c column) bool { return c.virtual }) {
			s.stored = append(s.stored, &table{name: t.name + " stored", columns: t.columns, keys: t.keys, rule: t.rule, of: t})
		}
	}
}

func (s *schema) shapes(r *rand.Rand, t *table) {
	if s.grouped || t.rule == nil || t.link() != nil || t.noParts {
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
func (c column) asIs() bool {
	return !c.ruled && !c.secret && c.mask == "" && c.needs == nil && c.generated == ""
}

func (s *schema) constraints(r *rand.Rand, t *table) {
	for i := t.keys; i < len(t.columns); i++ {
		if c := &t.columns[i]; c.asIs() && forbidden[c.kind] != nil && r.IntN(4) == 0 {
			c.checked = true
		}
	}
	if t.rule == nil || s.grouped || r.IntN(3) > 0 {
		return
	}
	if pgtest.Binaries().Major >= 18 && r.IntN(2) == 0 {
		for _, c := range t.columns[t.keys:] {
			if form := asked[c.kind]; form[0] != "" && c.asIs() && c.domain == "" {
				t.columns = append(t.columns, column{name: "asked of it", kind: form[1], generated: fmt.Sprintf(form[0], c.sql()), virtual: true})
				return
			}
		}
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
		out = " GENERATED ALWAYS AS (" + c.generated + ") " + map[bool]string{true: "VIRTUAL", false: "STORED"}[c.virtual]
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
		return fmt.Sprintf("CREATE TABLE %[2]s PARTITION OF %[1]s FOR VALUES WITH (MODULUS 2, REMAINDER "+
			"0);\nCREATE TABLE %[3]s PARTITION OF %[1]s FOR VALUES WITH (MODULUS 2, REMAINDER 1);\n", t.sql(), t.part(0), t.part(1))
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
		if r.IntN(4) > 0 || c.virtual {
			continue
		}
		index := map[string][]string{
			"text": {"(upper(%s))", "(%s text_pattern_ops)", "USING hash (%s)"}, "digits": {
				"(%s COLLATE \"C\")", "(length(%s))"}, "int": {"((%s %% 10))", "USING brin (%s)"}, "num": {"(%s DESC)"},
			"bool": {"((NOT %s))"}, "time": {"(%s)"}, "json": {"USING gin (%s)", "((%s ->> 'k'))"}, "arr": {"USING gin (%s)"},
		}[c.kind]
		if index == nil {
			continue
		}
		where := pick(r, "", "", " WHERE "+c.sql()+" IS NOT NULL")
		s.extra += fmt.Sprintf("CREATE INDEX ON %s "+pick(r, index...)+"%s;\n", t.sql(), c.sql(), where)
	}
	if r.IntN(4) == 0 && len(t.columns) > t.keys+1 && t.columns[t.keys].kind != "json" &&
		t.columns[t.keys+1].kind != "json" && !t.columns[t.keys+1].virtual {
		s.extra += fmt.Sprintf("CREATE STATISTICS known%d ON %s, %s FROM %s;\n", n, t.columns[t.keys].sql(), t.columns[t.keys+1].sql(), t.sql())
	}
}

// references are foreign keys to tables whose rows agents leave as they are: of others the policy would have to say
// that a hidden row may be told of.
func (s *schema) references(r *rand.Rand, t *table) {
	if s.grouped || t.shape == inherited {
		return
	}
	for _, target := range s.tables {
		c := t.column("ref " + target.name)
		if c == nil || target == t || target.rule == nil || target.keys > 1 || target.shape == inherited ||
			slices.Contains(target.commands, "update") || slices.Contains(target.commands, "delete") || r.IntN(2) == 0 {
			continue
		}
		s.extra += fmt.Sprintf("ALTER TABLE %s ADD FOREIGN KEY (%s) REFERENCES %s%s;\n", t.sql(),
			c.sql(), target.sql(), pick(r, "", " ON DELETE CASCADE", " ON DELETE SET NULL", " DEFERRABLE INITIALLY DEFERRED"))
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
		body, when = fmt.Sprintf("NEW.%[1]s := upper(NEW.%[1]s) || NEW.%[2]s; RETURN NEW;", text.sql(),
			t.columns[0].sql()), "BEFORE INSERT OR UPDATE ON %s FOR EACH ROW"
	case n == 1 && number != nil:
		body, when = fmt.Sprintf(
			"IF NEW.%[1]s %% 5 = 3 THEN RAISE EXCEPTION 'three: %%', NEW; END IF; NEW.%[1]s := 100 / NEW.%[1]s; "+
				"RETURN NEW;", number.sql()), "BEFORE INSERT OR UPDATE ON %s FOR EACH ROW"
	case n == 2:
		body, when = fmt.Sprintf("IF OLD.%s::text ~ '[13579]$' THEN RETURN NULL; END IF; RETURN OLD;",
			t.columns[0].sql()), "BEFORE DELETE ON %s FOR EACH ROW"
	case n == 3:
		body = "PERFORM 1 / (6 - least(count(*), 6)) FROM fresh; RAISE NOTICE 'rows: %', (SELECT count(*) FROM fresh); RETURN NULL;"
		when = "AFTER UPDATE ON %s REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT"
	case n == 4 && number != nil:
		other := pick(r, s.tables...)
		body, when = fmt.Sprintf("NEW.%s := (SELECT count(*) FROM public.%s); RETURN NEW;", number.sql(),
			other.sql()), "BEFORE INSERT OR UPDATE ON %s FOR EACH ROW"
	}
	s.extra += fmt.Sprintf("CREATE FUNCTION %s() RETURNS trigger LANGUAGE plpgsql AS $fires$ BEGIN %s END "+
		"$fires$;\nCREATE TRIGGER fires "+when+" EXECUTE FUNCTION %[1]s();\n", name, body, t.sql())
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
