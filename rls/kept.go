package rls

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/migrations"
)

// horizon is a consent whose answer is kept beside each row of a table: until when everybody has agreed.
//
// A change is noted as it is made, and settled when its transaction commits: what it changed is locked, the rows that
// it concerns are found and locked, and only then, by a statement of its own with a snapshot of its own, is the horizon
// worked out. So of two transactions that concern one row, the later sees what the earlier did.
type horizon struct {
	predicate.Consent
	name     string
	relation *catalog.Relation
	steps    []predicate.Step
}

func horizonOf(n predicate.Consent) horizon {
	return horizon{n, n.MaterializedName(), n.Materialized.Relation, n.Steps}
}

// value writes columns of a row as the text by which a change is noted. It is read in sessions with other settings:
// JSON has dates in one form, and in that they are read alike whatever DateStyle says.
func value(r *catalog.Relation, row string, columns []string) string {
	var parts []string
	for _, c := range columns {
		part := row + "." + catalog.QuoteIdent(c)
		if predicate.KeyType(r.Column(c)) != "pg_catalog.date" {
			part += "::text"
		}
		parts = append(parts, part)
	}
	return "jsonb_build_array(" + strings.Join(parts, ", ") + ")::text"
}

// isValue is the condition that columns of a row are a value that was noted. What leads to an integer may be a wider
// one.
func isValue(r *catalog.Relation, row string, columns []string, noted string) string {
	var parts []string
	for i, c := range columns {
		of := predicate.KeyType(r.Column(c))
		if of == "pg_catalog.int2" || of == "pg_catalog.int4" {
			of = "pg_catalog.int8"
		}
		parts = append(parts, fmt.Sprintf("%s.%s = (%s::jsonb->>%d)::%s", row, catalog.QuoteIdent(c), noted, i, of))
	}
	return strings.Join(parts, " AND ")
}

func known(row string, columns []string) string {
	var parts []string
	for _, c := range columns {
		parts = append(parts, row+"."+catalog.QuoteIdent(c)+" IS NOT NULL")
	}
	return strings.Join(parts, " AND ")
}

func (h horizon) table() string { return h.MaterializedTable().SQL() }

func (h horizon) key() []string { return h.relation.PrimaryKey }

// at is the relation whose rows stand at a step, 0 being the table itself, and the columns by which they are noted.
func (h horizon) at(step int) (*catalog.Relation, []string) {
	if step == 0 {
		return h.relation, h.key()
	}
	return h.steps[step-1].Relation, h.steps[step-1].Columns()
}

// open is the horizon of the row called t.
func (h horizon) open() string {
	from, last := "", ""
	for i, s := range h.steps {
		alias, before := "s"+strconv.Itoa(i+1), "s"+strconv.Itoa(i)
		var on []string
		for _, p := range s.Pairs() {
			if i == 0 {
				before = "t"
			}
			on = append(on, alias+"."+catalog.QuoteIdent(p.Column)+" = "+before+"."+catalog.QuoteIdent(p.From))
		}
		if i == 0 {
			from, last = s.Relation.Name.SQL()+" AS s1 WHERETHIS", strings.Join(on, " AND ")
			continue
		}
		from = strings.Replace(from, " WHERETHIS",
			" LEFT JOIN "+s.Relation.Name.SQL()+" AS "+alias+" ON "+strings.Join(on, " AND ")+" WHERETHIS", 1)
	}
	end := "s" + strconv.Itoa(len(h.steps)) + "."
	agreed := "'infinity'"
	if h.Expires != "" {
		agreed = "COALESCE(" + end + catalog.QuoteIdent(h.Expires) + ", 'infinity')"
	}
	none := "infinity"
	if h.Required {
		none = "-infinity"
	}
	return fmt.Sprintf("CASE WHEN %s THEN COALESCE((SELECT min(CASE WHEN %s::text = %s THEN %s ELSE '-infinity' "+
		"END::timestamptz) FROM %s), '%s'::timestamptz) ELSE '-infinity'::timestamptz END",
		known("t", h.steps[0].Froms()), end+catalog.QuoteIdent(h.Status), catalog.QuoteLiteral(h.Is), agreed,
		strings.Replace(from, "WHERETHIS", "WHERE "+last, 1), none)
}

// lockBuckets bounds how many locks a transaction takes at a step: the server has room for some thousands, of all
// transactions together, and one that changed more people would fail. Who shares a bucket waits for the other's commit.
const lockBuckets = 512

// lockKey is the bucket of a value, among those of the step.
func lockKey(name string, step int, value string) string {
	of := catalog.QuoteLiteral(fmt.Sprintf("pgconsent kept %s %d", name, step))
	return fmt.Sprintf("hashtextextended(%s, 0) & ~%d::int8 | hashtextextended(%s, 0) & %d::int8", of, lockBuckets-1,
		value, lockBuckets-1)
}

// settle works out what the transaction's changes mean.
func (h horizon) settle() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, "  "+format+"\n", args...) }
	noted := func(step int) string {
		return fmt.Sprintf("ARRAY(SELECT DISTINCT c.value FROM pgconsent.kept_change AS c WHERE c.tx = "+
			"pg_current_xact_id() AND c.name = %s AND c.step = %d)", catalog.QuoteLiteral(h.name), step)
	}
	n := len(h.steps)
	for i := 0; i <= n; i++ {
		line("changed%d := %s;", i, noted(i))
	}
	line("-- what was changed is this transaction's until it commits")
	for i := 1; i <= n; i++ {
		line("PERFORM pg_advisory_xact_lock(l.k) FROM (SELECT DISTINCT %s AS k FROM unnest(changed%d) AS v "+
			"(value) ORDER BY 1) AS l;", lockKey(h.name, i, "v.value"), i)
	}
	line("-- what it now leads to stays as it is until then")
	line("reached0 := changed0;")
	for i := 1; i <= n; i++ {
		r, columns := h.at(i - 1)
		line(
			"reached%d := ARRAY(SELECT DISTINCT %s FROM unnest(reached%d) AS v (value) JOIN %s AS r ON %s WHERE %s);",
			i, value(r, "r", h.steps[i-1].Froms()), i-1, r.Name.SQL(), isValue(r, "r", columns, "v.value"), known("r",
				h.steps[i-1].Froms()))
		line("PERFORM pg_advisory_xact_lock_shared(l.k) FROM (SELECT DISTINCT %s AS k FROM unnest(reached%d) AS v "+
			"(value) ORDER BY 1) AS l;", lockKey(h.name, i, "v.value"), i)
		line("reached%d := reached%d || changed%d;", i, i, i)
	}
	line("-- the rows that it concerns")
	line("concerned%d := changed%d;", n, n)
	for i := n; i >= 1; i-- {
		r, columns := h.at(i - 1)
		from := h.steps[i-1].Froms()
		line("concerned%d := changed%d || ARRAY(SELECT DISTINCT %s FROM unnest(concerned%d) AS v (value) JOIN %s "+
			"AS r ON %s WHERE %s);", i-1, i-1, value(r, "r", columns), i, r.Name.SQL(), isValue(r, "r", from,
			"v.value"), known("r", columns))
	}
	r := h.relation
	line("DELETE FROM %s AS o USING unnest(changed0) AS v (value) WHERE %s AND NOT EXISTS (SELECT FROM %s AS t "+
		"WHERE %s);", h.table(), isValue(r, "o", h.key(), "v.value"), r.Name.SQL(), isValue(r, "t", h.key(), "v.value"))
	var keys, quoted []string
	for _, k := range h.key() {
		quoted = append(quoted, catalog.QuoteIdent(k))
		keys = append(keys, "t."+catalog.QuoteIdent(k))
	}
	line("INSERT INTO %s (%s, open_until) SELECT DISTINCT %s, '-infinity'::timestamptz FROM unnest(changed0) AS v "+
		"(value) JOIN %s AS t ON %s ORDER BY %s ON CONFLICT DO NOTHING;",
		h.table(), strings.Join(quoted, ", "), strings.Join(keys, ", "), r.Name.SQL(), isValue(r, "t", h.key(),
			"v.value"), strings.Join(keys, ", "))
	line("PERFORM FROM %s AS t WHERE EXISTS (SELECT FROM unnest(concerned0) AS v (value) WHERE %s) ORDER BY %s "+
		"FOR UPDATE;", h.table(), isValue(r, "t", h.key(), "v.value"), strings.Join(keys, ", "))
	var same []string
	for _, k := range h.key() {
		same = append(same, "o."+catalog.QuoteIdent(k)+" = t."+catalog.QuoteIdent(k))
	}
	line("UPDATE %s AS o SET open_until = w.open FROM (SELECT %s, %s AS open FROM (SELECT DISTINCT c.value FROM "+
		"unnest(concerned0) AS c (value)) AS v JOIN %s AS t ON %s) AS w WHERE %s AND o.open_until IS DISTINCT FROM w.open;",
		h.table(), strings.Join(keys, ", "), h.open(), r.Name.SQL(), isValue(r, "t",
			h.key(), "v.value"), strings.ReplaceAll(strings.Join(same, " AND "), "= t.", "= w."))
	var declare strings.Builder
	for i := 0; i <= n; i++ {
		fmt.Fprintf(&declare, "  changed%[1]d text[]; reached%[1]d text[]; concerned%[1]d text[];\n", i)
	}
	return fmt.Sprintf("CREATE FUNCTION %s() RETURNS pg_catalog.void LANGUAGE plpgsql SECURITY DEFINER SET "+
		"search_path = pg_catalog, pg_temp AS $pgconsent$\n#variable_conflict use_variable\nDECLARE\n%sBEGIN\n%sEND $pgconsent$",
		h.function("settle"), declare.String(), b.String())
}

// kept makes what keeps the answers. They do not count until they are filled in, see [Plan.Fill].
func (p *Plan) kept() []Statement {
	var out []Statement
	for _, h := range p.horizons {
		out = append(out, h.statements(p)...)
	}
	return out
}

func (h horizon) statements(p *Plan) []Statement {
	const why = "Until when everybody whom a row is about has agreed is kept beside the row, by triggers on " +
		"whatever it depends on."
	var out []Statement
	say := func(format string, args ...any) {
		out = append(out, Statement{SQL: fmt.Sprintf(format, args...), Why: why})
	}
	var columns, quoted []string
	for _, k := range h.key() {
		columns = append(columns, catalog.QuoteIdent(k)+" "+predicate.KeyType(h.relation.Column(k))+" NOT NULL")
		quoted = append(quoted, catalog.QuoteIdent(k))
	}
	callers := p.agent + ", " + p.rowsRole + ", " + p.reader
	say("INSERT INTO pgconsent.kept (name, relation) VALUES (%s, %s)", catalog.QuoteLiteral(h.name),
		catalog.QuoteLiteral(h.relation.Name.String()))
	say("CREATE TABLE %s (%s, open_until pg_catalog.timestamptz NOT NULL, PRIMARY KEY (%s))", h.table(),
		strings.Join(columns, ", "), strings.Join(quoted, ", "))
	say("GRANT SELECT ON TABLE %s TO %s", h.table(), callers)
	say("GRANT EXECUTE ON FUNCTION %s(pg_catalog.text) TO %s", predicate.MaterializedReady, callers)
	say("GRANT SELECT, INSERT, UPDATE, DELETE ON TABLE %s TO %s", h.table(), p.reader)
	say("GRANT SELECT ON TABLE pgconsent.kept_change TO %s", p.reader)
	say("GRANT USAGE ON SCHEMA %s TO %s", predicate.Schema, p.reader)
	settle, differs := h.function("settle"), h.function("differs")
	say("%s", h.settle())
	say("CREATE FUNCTION %s() RETURNS pg_catalog.int8 LANGUAGE sql STABLE SECURITY DEFINER SET search_path = "+
		"pg_catalog, pg_temp AS $pgconsent$ %s $pgconsent$", differs, h.differs())
	for _, f := range []string{settle, differs} {
		say("REVOKE ALL ON FUNCTION %s() FROM PUBLIC", f)
		say("ALTER FUNCTION %s() OWNER TO %s", f, p.reader)
	}
	say("GRANT EXECUTE ON FUNCTION %s() TO %s", differs, p.control)
	say("GRANT SELECT ON TABLE pgconsent.kept TO %s", p.control)
	say("GRANT SELECT (name) ON TABLE pgconsent.kept_change TO %s", p.control)
	say(`DO $$ BEGIN EXECUTE (SELECT pg_catalog.format('GRANT EXECUTE ON FUNCTION %s() TO %%I', pg_catalog.pg_get_userbyid(p.proowner))
  FROM pg_catalog.pg_proc AS p WHERE p.oid OPERATOR(pg_catalog.=) 'pgconsent.kept_settle()'::pg_catalog.regprocedure); END $$`, settle)
	for i := 0; i <= len(h.steps); i++ {
		r, noted := h.at(i)
		watched := append([]string{}, noted...)
		if i < len(h.steps) {
			watched = append(watched, h.steps[i].Froms()...)
		} else {
			watched = append(watched, h.Status)
			if h.Expires != "" {
				watched = append(watched, h.Expires)
			}
		}
		function := h.note(i)
		note := func(row string) string {
			return fmt.Sprintf("PERFORM pgconsent.kept_note(%s, %d, %s);", catalog.QuoteLiteral(h.name), i, value(r, row, noted))
		}
		say(`CREATE FUNCTION %[1]s() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $pgconsent$
BEGIN
  IF TG_OP = 'TRUNCATE' THEN PERFORM pgconsent.kept_distrust(%[2]s); RETURN NULL; END IF;
  IF TG_OP <> 'INSERT' THEN IF %[5]s THEN %[3]s END IF; END IF;
  IF TG_OP <> 'DELETE' THEN IF %[6]s THEN %[4]s END IF; END IF;
  RETURN NULL;
END $pgconsent$`, function, catalog.QuoteLiteral(h.name), note("OLD"), note("NEW"), known("OLD", noted), known("NEW", noted))
		say("REVOKE ALL ON FUNCTION %s() FROM PUBLIC", function)
		add := func(event, rest string) {
			say("CREATE TRIGGER %s AFTER %s ON %s %s EXECUTE FUNCTION %s()", h.trigger(i, event), event, r.Name.SQL(),
				rest, function)
			say("ALTER TABLE %s ENABLE ALWAYS TRIGGER %s", r.Name.SQL(), h.trigger(i, event))
		}
		add("INSERT", "FOR EACH ROW")
		add("DELETE", "FOR EACH ROW")
		add("UPDATE", "FOR EACH ROW WHEN ("+differ(watched)+")")
		add("TRUNCATE", "FOR EACH STATEMENT")
	}
	return out
}

func (h horizon) function(what string) string {
	return "pgconsent." + catalog.QuoteIdent("kept_"+what+"_"+h.name)
}
func (h horizon) note(step int) string { return h.function("note_" + strconv.Itoa(step)) }
func (h horizon) trigger(step int, event string) string {
	return catalog.QuoteIdent(fmt.Sprintf("zz_pgconsent_kept_%s_%d_%s", h.name, step, strings.ToLower(event)))
}

func (p *Plan) dropKept() []Statement {
	const why = "Take away what keeps answers beside rows."
	var out []Statement
	say := func(format string, args ...any) {
		out = append(out, Statement{SQL: fmt.Sprintf(format, args...), Why: why})
	}
	for _, h := range p.horizons {
		for i := 0; i <= len(h.steps); i++ {
			r, _ := h.at(i)
			for _, event := range []string{"insert", "delete", "update", "truncate"} {
				say("DROP TRIGGER IF EXISTS %s ON %s", h.trigger(i, event), r.Name.SQL())
			}
			say("DROP FUNCTION IF EXISTS %s()", h.note(i))
		}
		say("DROP FUNCTION IF EXISTS %s()", h.function("settle"))
		say("DROP FUNCTION IF EXISTS %s()", h.function("differs"))
		say("DROP TABLE IF EXISTS %s", h.table())
		say("DELETE FROM pgconsent.kept AS k WHERE k.name OPERATOR(pg_catalog.=) %s", catalog.QuoteLiteral(h.name))
	}
	return out
}

// Fills are what the plan keeps beside rows, for [migrations.FillAll].
func (p *Plan) Fills() []migrations.Fill {
	var out []migrations.Fill
	for _, h := range p.horizons {
		out = append(out, migrations.Fill{
			Name: h.name, Relation: h.relation.Name.String(), Next: h.fill, Differs: "SELECT " + h.function("differs") + "()",
			Left: fmt.Sprintf("SELECT pg_catalog.count(*) FROM %s AS t, pgconsent.kept AS h WHERE %s",
				h.relation.Name.SQL(), h.unfilled()),
		})
	}
	return out
}

// unfilled is the condition that the row called t comes after those that are filled in.
func (h horizon) unfilled() string {
	var keys, last []string
	for i, k := range h.key() {
		keys = append(keys, "t."+catalog.QuoteIdent(k))
		last = append(last, fmt.Sprintf("(h.filled_to::pg_catalog.jsonb OPERATOR(pg_catalog.->>) %d)::%s", i,
			predicate.KeyType(h.relation.Column(k))))
	}
	return fmt.Sprintf("h.name OPERATOR(pg_catalog.=) %s AND (h.filled_to IS NULL OR (%s) > (%s))",
		catalog.QuoteLiteral(h.name), strings.Join(keys, ", "), strings.Join(last, ", "))
}

// fill notes the next rows, in the order of the key, as if they were new: settling them fills them in. They are locked,
// so that none goes meanwhile.
func (h horizon) fill(most int) string {
	var keys []string
	for _, k := range h.key() {
		keys = append(keys, "t."+catalog.QuoteIdent(k))
	}
	return fmt.Sprintf(`WITH batch AS MATERIALIZED (SELECT %[1]s AS value, row_number() OVER (ORDER BY %[5]s) AS n FROM (
    SELECT t.* FROM %[2]s AS t, pgconsent.kept AS h WHERE %[4]s ORDER BY %[5]s LIMIT %[6]d FOR KEY SHARE OF t) AS t),
  noted AS MATERIALIZED (SELECT pgconsent.kept_note(%[3]s, 0, b.value) FROM batch AS b),
  moved AS (UPDATE pgconsent.kept AS h SET filled_to = (SELECT b.value FROM batch AS b ORDER BY n DESC LIMIT 1) WHERE h.name = %[3]s AND EXISTS (SELECT FROM batch) RETURNING 1)
SELECT count(*) FROM noted`, value(h.relation, "t", h.key()), h.relation.Name.SQL(), catalog.QuoteLiteral(h.name), h.unfilled(), strings.Join(keys, ", "), most)
}

// differs counts rows for which what is kept is not what it should be; of a consistent snapshot.
func (h horizon) differs() string {
	var same []string
	for _, k := range h.key() {
		same = append(same, "o."+catalog.QuoteIdent(k)+" = t."+catalog.QuoteIdent(k))
	}
	return fmt.Sprintf(
		"SELECT count(*) FROM %s AS t LEFT JOIN %s AS o ON %s WHERE o.open_until IS DISTINCT FROM (%s)",
		h.relation.Name.SQL(), h.table(), strings.Join(same, " AND "), h.open())
}
