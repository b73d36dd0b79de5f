package noninterference

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// storage says how a table stores its rows.
type storage int

const (
	plainStorage       storage = iota
	partitionedStorage         // partitions, by hash of the table's key
	inheritedStorage           // a child table by inheritance stores some of the rows
)

// generatedExpressions are the expressions of stored generated columns, by kind of the column from which they are
// computed. They never fail.
var generatedExpressions = map[string]string{
	"text": "upper(%s)", "digits": "left(%s, 2)", "int": "coalesce(%s, 0) %% 7", "num": "round(%s, 1)",
	"bool": "NOT %s", "json": "%s -> 'k'", "arr": "array_remove(%s, 'a')",
}

// virtualExpressions are the expressions of virtual generated columns, which exist from PostgreSQL 18 on, each with the
// kind of its result. Each expression fails on some values in hidden rows.
var virtualExpressions = map[string][2]string{"digits": {"(%s)::integer", "int"}, "int": {"100 / %s", "int"}, "num": {"1 / %s", "num"}}

// forbiddenValues are values that a CHECK constraint forbids, by kind of column. Stored rows do not have them in a
// column with the constraint, but agents may try to write them.
var forbiddenValues = map[string][]string{"text": {"tea", "a", "", "apple pie"}, "int": {"12", "0", "-1", "3"}, "num": {"0", "10", "1.5"}}

func (c column) forbids(value string) bool {
	if !c.hasCheck {
		return false
	}
	return slices.Contains(forbiddenValues[c.kind], value) || c.kind == "num" && strings.Trim(value, "0.") == ""
}

// addSurroundings adds random objects around the tables of a schema: partitions, inheritance children, generated
// columns, CHECK constraints, foreign keys, indexes on expressions and triggers. It also adds the views, materialized
// views and functions that agents use.
func (s *schema) addSurroundings(r *rand.Rand) {
	for _, t := range s.tables {
		s.chooseStorage(r, t)
		s.addConstraints(r, t)
	}
	for n, t := range s.tables {
		s.addIndexes(r, t, n)
		s.addForeignKeys(r, t)
		if t.writeCommands != nil && r.IntN(2) == 0 {
			s.addTriggers(r, t, n)
		}
	}
	if r.IntN(4) == 0 {
		for _, t := range s.tables {
			s.addWriteChecks(r, t)
		}
	}
	for n, t := range slices.Clone(s.tables) {
		if t.rule == nil || strings.HasPrefix(t.name, "link") {
			continue
		}
		if r.IntN(2) == 0 {
			s.addView(r, t, fmt.Sprintf("%s view%d", t.name, n))
		}
		if r.IntN(3) == 0 && !t.hasHiddenColumns() { // such a table is read through a view
			s.addFunction(r, t, fmt.Sprintf("tell%d", n))
		}
		if r.IntN(4) == 0 && !t.hasHiddenColumns() && t.storage == plainStorage && t.rule.readsRowOnly() &&
			!slices.ContainsFunc(t.columns, func(c column) bool { return c.isVirtual }) {
			s.materializedViews = append(s.materializedViews, &table{name: t.name + " stored", columns: t.columns, keyCount: t.keyCount, rule: t.rule, storedFrom: t})
		}
	}
}

func (s *schema) chooseStorage(r *rand.Rand, t *table) {
	if s.countsHiddenRows || t.rule == nil || t.linkTable() != nil || t.plainOnly {
		return
	}
	switch n := r.IntN(12); {
	case n < 3:
		t.storage = partitionedStorage
	case n == 3 && !s.isReadByRules(t):
		t.storage = inheritedStorage
	}
}

// isReadByRules reports whether the rule of another table reads t.
func (s *schema) isReadByRules(t *table) bool {
	var reads func(r *rule) bool
	reads = func(r *rule) bool {
		return r != nil && (r.targetTable == t || r.linkTable == t || slices.ContainsFunc(r.parts, reads))
	}
	return slices.ContainsFunc(s.tables, func(o *table) bool { return o != t && reads(o.rule) })
}

// readsRowOnly reports whether a rule reads only the row about which it decides.
func (r *rule) readsRowOnly() bool {
	return r.targetTable == nil && r.linkTable == nil && r.registryQuestion == nil &&
		!slices.ContainsFunc(r.parts, func(p *rule) bool { return !p.readsRowOnly() })
}

// isUnmasked reports whether agents see a column unchanged, no rule reads it, and it is not a generated column.
func (c column) isUnmasked() bool {
	return !c.isReadByRule && !c.isHidden && c.mask == "" && c.consentRule == nil && c.generated == ""
}

func (s *schema) addConstraints(r *rand.Rand, t *table) {
	for i := t.keyCount; i < len(t.columns); i++ {
		if c := &t.columns[i]; c.isUnmasked() && forbiddenValues[c.kind] != nil && r.IntN(4) == 0 {
			c.hasCheck = true
		}
	}
	if t.rule == nil || s.countsHiddenRows || r.IntN(3) > 0 {
		return
	}
	if pgtest.Binaries().Major >= 18 && r.IntN(2) == 0 {
		for _, c := range t.columns[t.keyCount:] {
			if form := virtualExpressions[c.kind]; form[0] != "" && c.isUnmasked() && c.domain == "" {
				t.columns = append(t.columns, column{name: "asked of it", kind: form[1], generated: fmt.Sprintf(form[0], c.sql()), isVirtual: true})
				return
			}
		}
	}
	for _, c := range t.columns[t.keyCount:] {
		if form := generatedExpressions[c.kind]; form != "" && c.isUnmasked() && c.domain == "" {
			kind := c.kind
			if kind == "digits" {
				kind = "text"
			}
			t.columns = append(t.columns, column{name: "made of it", kind: kind, generated: fmt.Sprintf(form, c.sql())})
			return
		}
	}
}

// columnDDL returns the clauses that follow a column's name and type in CREATE TABLE.
func (c column) columnDDL() string {
	out := ""
	if c.generated != "" {
		out = " GENERATED ALWAYS AS (" + c.generated + ") " + map[bool]string{true: "VIRTUAL", false: "STORED"}[c.isVirtual]
	}
	if c.hasCheck {
		out += fmt.Sprintf(" CHECK (%s NOT IN ('%s'))", c.sql(), strings.Join(forbiddenValues[c.kind], "', '"))
	}
	return out
}

// partsDDL returns the statements that create the partitions or the child table of t.
func (t *table) partsDDL() string {
	switch t.storage {
	case partitionedStorage:
		return fmt.Sprintf("CREATE TABLE %[2]s PARTITION OF %[1]s FOR VALUES WITH (MODULUS 2, REMAINDER "+
			"0);\nCREATE TABLE %[3]s PARTITION OF %[1]s FOR VALUES WITH (MODULUS 2, REMAINDER 1);\n", t.sql(), t.partName(0), t.partName(1))
	case inheritedStorage:
		return fmt.Sprintf("CREATE TABLE %s () INHERITS (%s);\n", t.partName(0), t.sql())
	}
	return ""
}

func (t *table) partName(n int) string {
	return catalog.QuoteIdent(fmt.Sprintf("%s part%d", t.name, n))
}

// storingTable returns the name of the table that stores a row: t itself or its child table.
func (t *table) storingTable(row row) string {
	if key := row[t.columns[0].name]; t.storage == inheritedStorage && key != "" && key[len(key)-1]%3 == 0 {
		return t.partName(0)
	}
	return t.sql()
}

func (s *schema) addIndexes(r *rand.Rand, t *table, n int) {
	for _, c := range t.columns[t.keyCount:] {
		if r.IntN(4) > 0 || c.isVirtual {
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
		s.extraDDL += fmt.Sprintf("CREATE INDEX ON %s "+pick(r, index...)+"%s;\n", t.sql(), c.sql(), where)
	}
	if r.IntN(4) == 0 && len(t.columns) > t.keyCount+1 && t.columns[t.keyCount].kind != "json" &&
		t.columns[t.keyCount+1].kind != "json" && !t.columns[t.keyCount+1].isVirtual {
		s.extraDDL += fmt.Sprintf("CREATE STATISTICS known%d ON %s, %s FROM %s;\n", n, t.columns[t.keyCount].sql(), t.columns[t.keyCount+1].sql(), t.sql())
	}
}

// addForeignKeys adds foreign keys that lead to tables whose rows agents cannot change. For other tables, the policy
// would have to accept that agents can notice hidden rows.
func (s *schema) addForeignKeys(r *rand.Rand, t *table) {
	if s.countsHiddenRows || t.storage == inheritedStorage {
		return
	}
	for _, target := range s.tables {
		c := t.column("ref " + target.name)
		if c == nil || target == t || target.rule == nil || target.keyCount > 1 || target.storage == inheritedStorage ||
			slices.Contains(target.writeCommands, "update") || slices.Contains(target.writeCommands, "delete") || r.IntN(2) == 0 {
			continue
		}
		s.extraDDL += fmt.Sprintf("ALTER TABLE %s ADD FOREIGN KEY (%s) REFERENCES %s%s;\n", t.sql(),
			c.sql(), target.sql(), pick(r, "", " ON DELETE CASCADE", " ON DELETE SET NULL", " DEFERRABLE INITIALLY DEFERRED"))
	}
}

// addTriggers adds triggers that run when agents write to the table.
func (s *schema) addTriggers(r *rand.Rand, t *table, n int) {
	var text, number *column
	for i := t.keyCount; i < len(t.columns); i++ {
		switch c := &t.columns[i]; {
		case !c.isUnmasked() || c.hasCheck || c.domain != "":
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
	s.extraDDL += fmt.Sprintf("CREATE FUNCTION %s() RETURNS trigger LANGUAGE plpgsql AS $fires$ BEGIN %s END "+
		"$fires$;\nCREATE TRIGGER fires "+when+" EXECUTE FUNCTION %[1]s();\n", name, body, t.sql())
}

// addWriteChecks restricts in the policy what the rows that agents write may contain. Since the copy with the visible
// rows does not have these restrictions, it is not compared.
func (s *schema) addWriteChecks(r *rand.Rand, t *table) {
	if t.writeCommands == nil {
		return
	}
	s.countsHiddenRows = true
	if t.column("owner") != nil && r.IntN(2) == 0 {
		t.writeYAML = ", stamp: { owner: { attribute: member } }"
		return
	}
	for _, c := range t.columns[t.keyCount:] {
		switch {
		case !c.isUnmasked() || c.domain != "" || r.IntN(3) > 0:
		case c.kind == "text" && t.writeYAML == "":
			t.writeYAML = pick(r, fmt.Sprintf(", stamp: { %q: { value: x_1 } }", c.name), fmt.Sprintf(", check: [ { status: { column: %q, is: x_1 } } ]", c.name),
				fmt.Sprintf(", check: [ { not: { status: { column: %q, is: \"HIDDEN\" } } } ]", c.name))
		case t.writeYAML == "":
			t.writeYAML = fmt.Sprintf(", immutable: [%q]", c.name)
		}
	}
}
