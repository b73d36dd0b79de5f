package rls

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/migrations"
)

// materializedConsent is a consent rule whose result is stored for each row of a table: the time until which everybody
// has agreed.
//
// Triggers record each change, and at the commit they update the stored results (they settle the change). They first
// lock the changed subjects, then find and lock the rows that depend on these. Only then a statement with a new
// snapshot computes the results. So of two transactions that affect one row, the later one sees what the earlier one
// did.
type materializedConsent struct {
	predicate.Consent
	name     string
	relation *catalog.Relation
	steps    []predicate.Step
}

func newMaterialized(n predicate.Consent) materializedConsent {
	return materializedConsent{n, n.MaterializedName(), n.Materialized.Relation, n.Steps}
}

// changeText returns the expression of the text by which a change of a row is recorded: its columns as a JSON array. In
// JSON, dates have the same form whatever the session's DateStyle is.
func changeText(r *catalog.Relation, row string, columns []string) string {
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

// equalsRecorded returns the condition that columns of a row equal a value that changeText has recorded. Integers are
// compared as bigint, since a referencing column may have a wider type.
func equalsRecorded(r *catalog.Relation, row string, columns []string, recorded string) string {
	var parts []string
	for i, c := range columns {
		sqlType := predicate.KeyType(r.Column(c))
		if sqlType == "pg_catalog.int2" || sqlType == "pg_catalog.int4" {
			sqlType = "pg_catalog.int8"
		}
		parts = append(parts, fmt.Sprintf("%s.%s = (%s::jsonb->>%d)::%s", row, catalog.QuoteIdent(c), recorded, i, sqlType))
	}
	return strings.Join(parts, " AND ")
}

func allNotNull(row string, columns []string) string {
	var parts []string
	for _, c := range columns {
		parts = append(parts, row+"."+catalog.QuoteIdent(c)+" IS NOT NULL")
	}
	return strings.Join(parts, " AND ")
}

// table returns the SQL name of the table with the stored results.
func (m materializedConsent) table() string { return m.MaterializedTable().SQL() }

// key returns the primary key columns of the table whose rows have the results.
func (m materializedConsent) key() []string { return m.relation.PrimaryKey }

// relationAt returns the relation of a step of the rule's path, and the columns by which its changes are recorded. Step
// 0 is the table itself.
func (m materializedConsent) relationAt(step int) (*catalog.Relation, []string) {
	if step == 0 {
		return m.relation, m.key()
	}
	return m.steps[step-1].Relation, m.steps[step-1].TargetColumns()
}

// openUntil returns the expression of the time until which everybody has agreed that the row t shows.
func (m materializedConsent) openUntil() string {
	fromClause, firstCondition := "", ""
	for i, s := range m.steps {
		alias, previousAlias := "s"+strconv.Itoa(i+1), "s"+strconv.Itoa(i)
		var joinConditions []string
		for _, p := range s.Pairs() {
			if i == 0 {
				previousAlias = "t"
			}
			joinConditions = append(joinConditions,
				alias+"."+catalog.QuoteIdent(p.Column)+" = "+previousAlias+"."+catalog.QuoteIdent(p.FromColumn))
		}
		if i == 0 {
			fromClause, firstCondition = s.Relation.Name.SQL()+" AS s1 WHERETHIS", strings.Join(joinConditions, " AND ")
			continue
		}
		fromClause = strings.Replace(fromClause, " WHERETHIS",
			" LEFT JOIN "+s.Relation.Name.SQL()+" AS "+alias+" ON "+strings.Join(joinConditions, " AND ")+" WHERETHIS", 1)
	}
	lastAlias := "s" + strconv.Itoa(len(m.steps)) + "."
	expiry := "'infinity'"
	if m.ExpiryColumn != "" {
		expiry = "COALESCE(" + lastAlias + catalog.QuoteIdent(m.ExpiryColumn) + ", 'infinity')"
	}
	ifNobody := "infinity"
	if m.FirstRequired {
		ifNobody = "-infinity"
	}
	return fmt.Sprintf("CASE WHEN %s THEN COALESCE((SELECT min(CASE WHEN %s::text = %s THEN %s ELSE '-infinity' "+
		"END::timestamptz) FROM %s), '%s'::timestamptz) ELSE '-infinity'::timestamptz END",
		allNotNull("t", m.steps[0].StartColumns()), lastAlias+catalog.QuoteIdent(m.StatusColumn),
		catalog.QuoteLiteral(m.AgreedStatus), expiry,
		strings.Replace(fromClause, "WHERETHIS", "WHERE "+firstCondition, 1), ifNobody)
}

// lockBuckets is how many advisory locks a transaction takes for a step at most. PostgreSQL's lock table has room for
// some thousands of locks, so with a lock for each subject a large transaction would fail. Transactions that share a
// bucket wait for each other's commit.
const lockBuckets = 512

// lockKey returns the expression of the advisory lock's key for a value of a step. Values in the same bucket have the
// same key.
func lockKey(name string, step int, value string) string {
	stepText := catalog.QuoteLiteral(fmt.Sprintf("pgconsent materialized %s %d", name, step))
	return fmt.Sprintf("hashtextextended(%s, 0) & ~%d::int8 | hashtextextended(%s, 0) & %d::int8", stepText, lockBuckets-1,
		value, lockBuckets-1)
}

// createSettleFunction returns the statement that creates the function which updates the stored results after the
// changes of its transaction.
func (m materializedConsent) createSettleFunction() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, "  "+format+"\n", args...) }
	changedValues := func(step int) string {
		return fmt.Sprintf("ARRAY(SELECT DISTINCT c.value FROM pgconsent.materialized_change AS c WHERE c.tx = "+
			"pg_current_xact_id() AND c.name = %s AND c.step = %d)", catalog.QuoteLiteral(m.name), step)
	}
	n := len(m.steps)
	for i := 0; i <= n; i++ {
		line("changed%d := %s;", i, changedValues(i))
	}
	line("-- what was changed is this transaction's until it commits")
	for i := 1; i <= n; i++ {
		line("PERFORM pg_advisory_xact_lock(l.k) FROM (SELECT DISTINCT %s AS k FROM unnest(changed%d) AS v "+
			"(value) ORDER BY 1) AS l;", lockKey(m.name, i, "v.value"), i)
	}
	line("-- what it now leads to stays as it is until then")
	line("reached0 := changed0;")
	for i := 1; i <= n; i++ {
		r, columns := m.relationAt(i - 1)
		line(
			"reached%d := ARRAY(SELECT DISTINCT %s FROM unnest(reached%d) AS v (value) JOIN %s AS r ON %s WHERE %s);",
			i, changeText(r, "r", m.steps[i-1].StartColumns()), i-1, r.Name.SQL(), equalsRecorded(r, "r", columns, "v.value"),
			allNotNull("r",
				m.steps[i-1].StartColumns()))
		line("PERFORM pg_advisory_xact_lock_shared(l.k) FROM (SELECT DISTINCT %s AS k FROM unnest(reached%d) AS v "+
			"(value) ORDER BY 1) AS l;", lockKey(m.name, i, "v.value"), i)
		line("reached%d := reached%d || changed%d;", i, i, i)
	}
	line("-- the rows that it concerns")
	line("concerned%d := changed%d;", n, n)
	for i := n; i >= 1; i-- {
		r, columns := m.relationAt(i - 1)
		startColumns := m.steps[i-1].StartColumns()
		line("concerned%d := changed%d || ARRAY(SELECT DISTINCT %s FROM unnest(concerned%d) AS v (value) JOIN %s "+
			"AS r ON %s WHERE %s);", i-1, i-1, changeText(r, "r", columns), i, r.Name.SQL(), equalsRecorded(r, "r", startColumns,
			"v.value"), allNotNull("r", columns))
	}
	r := m.relation
	line("DELETE FROM %s AS o USING unnest(changed0) AS v (value) WHERE %s AND NOT EXISTS (SELECT FROM %s AS t "+
		"WHERE %s);", m.table(), equalsRecorded(r, "o", m.key(), "v.value"), r.Name.SQL(), equalsRecorded(r, "t", m.key(),
		"v.value"))
	var keys, keyNames []string
	for _, k := range m.key() {
		keyNames = append(keyNames, catalog.QuoteIdent(k))
		keys = append(keys, "t."+catalog.QuoteIdent(k))
	}
	line("INSERT INTO %s (%s, open_until) SELECT DISTINCT %s, '-infinity'::timestamptz FROM unnest(changed0) AS v "+
		"(value) JOIN %s AS t ON %s ORDER BY %s ON CONFLICT DO NOTHING;",
		m.table(), strings.Join(keyNames, ", "), strings.Join(keys, ", "), r.Name.SQL(), equalsRecorded(r, "t", m.key(),
			"v.value"), strings.Join(keys, ", "))
	line("PERFORM FROM %s AS t WHERE EXISTS (SELECT FROM unnest(concerned0) AS v (value) WHERE %s) ORDER BY %s "+
		"FOR UPDATE;", m.table(), equalsRecorded(r, "t", m.key(), "v.value"), strings.Join(keys, ", "))
	var keyConditions []string
	for _, k := range m.key() {
		keyConditions = append(keyConditions, "o."+catalog.QuoteIdent(k)+" = t."+catalog.QuoteIdent(k))
	}
	line("UPDATE %s AS o SET open_until = w.open FROM (SELECT %s, %s AS open FROM (SELECT DISTINCT c.value FROM "+
		"unnest(concerned0) AS c (value)) AS v JOIN %s AS t ON %s) AS w WHERE %s AND o.open_until IS DISTINCT FROM w.open;",
		m.table(), strings.Join(keys, ", "), m.openUntil(), r.Name.SQL(), equalsRecorded(r, "t",
			m.key(), "v.value"), strings.ReplaceAll(strings.Join(keyConditions, " AND "), "= t.", "= w."))
	var declarations strings.Builder
	for i := 0; i <= n; i++ {
		fmt.Fprintf(&declarations, "  changed%[1]d text[]; reached%[1]d text[]; concerned%[1]d text[];\n", i)
	}
	return fmt.Sprintf("CREATE FUNCTION %s() RETURNS pg_catalog.void LANGUAGE plpgsql SECURITY DEFINER SET "+
		"search_path = pg_catalog, pg_temp AS $pgconsent$\n#variable_conflict use_variable\nDECLARE\n%sBEGIN\n%s"+
		"END $pgconsent$",
		m.function("settle"), declarations.String(), b.String())
}

// materializations makes the tables with stored results, and the functions and triggers that maintain them. Predicates
// do not use such a table until it is complete: see [Plan.Fills].
type materializations struct{ *planFacts }

func (f materializations) objects() []Object {
	var out []Object
	for _, m := range f.materialized {
		o := newObject(m.identity(), "Until when everybody whom a row is about has agreed is stored beside the row, by "+
			"triggers on whatever it depends on.")
		for i := 0; i <= len(m.steps); i++ {
			r, _ := m.relationAt(i)
			o.Tables = append(o.Tables, r.Name)
		}
		f.makeTable(m, o)
		f.makeFunctions(m, o)
		for i := 0; i <= len(m.steps); i++ {
			m.makeTriggers(i, o)
		}
		m.drop(o)
		out = append(out, o.Object)
	}
	return out
}

func (m materializedConsent) identity() string {
	return "materialized consent " + m.name + " of " + m.relation.Name.String()
}

// makeTable adds to o the statements that create the table with the stored results.
func (f materializations) makeTable(m materializedConsent, o *objectBuilder) {
	var columns, keyNames []string
	for _, k := range m.key() {
		columns = append(columns, catalog.QuoteIdent(k)+" "+predicate.KeyType(m.relation.Column(k))+" NOT NULL")
		keyNames = append(keyNames, catalog.QuoteIdent(k))
	}
	callers := []string{f.agent, f.rowsRole, f.reader}
	o.create(fmt.Sprintf("INSERT INTO pgconsent.materialized (name, relation) VALUES (%s, %s)", catalog.QuoteLiteral(m.name),
		catalog.QuoteLiteral(m.relation.Name.String())))
	o.create(fmt.Sprintf("CREATE TABLE %s (%s, open_until pg_catalog.timestamptz NOT NULL, PRIMARY KEY (%s))", m.table(),
		strings.Join(columns, ", "), strings.Join(keyNames, ", ")))
	o.create(fmt.Sprintf("GRANT SELECT ON TABLE %s TO %s", m.table(), strings.Join(callers, ", ")))
	o.grant(rightsOn("FUNCTION", listOf(predicate.MaterializedReady+"(pg_catalog.text)"), callers, "", "EXECUTE"))
	o.create(fmt.Sprintf("GRANT SELECT, INSERT, UPDATE, DELETE ON TABLE %s TO %s", m.table(), f.reader))
	o.grant(rightsOn("TABLE", listOf("pgconsent.materialized_change"), listOf(f.reader), "", "SELECT"))
	o.grant(rightsOn("SCHEMA", listOf(predicate.OwnSchema), listOf(f.reader), "", "USAGE"))
}

// makeFunctions adds to o the function that updates the stored results at the commit, and the function that counts
// wrong ones.
func (f materializations) makeFunctions(m materializedConsent, o *objectBuilder) {
	settleFunction, differsFunction := m.function("settle"), m.function("differs")
	o.create(m.createSettleFunction())
	o.create(fmt.Sprintf("CREATE FUNCTION %s() RETURNS pg_catalog.int8 LANGUAGE sql STABLE SECURITY DEFINER SET "+
		"search_path = pg_catalog, pg_temp AS $pgconsent$ %s $pgconsent$", differsFunction, m.differsQuery()))
	for _, function := range []string{settleFunction, differsFunction} {
		o.create(fmt.Sprintf("REVOKE ALL ON FUNCTION %s() FROM PUBLIC", function))
		o.create(fmt.Sprintf("ALTER FUNCTION %s() OWNER TO %s", function, f.reader))
	}
	o.create(fmt.Sprintf("GRANT EXECUTE ON FUNCTION %s() TO %s", differsFunction, f.control))
	o.grant(rightsOn("TABLE", listOf("pgconsent.materialized"), listOf(f.control), "", "SELECT"))
	o.grant(migrations.Grant{
		Rights: []migrations.Right{{Name: "SELECT", Columns: listOf("name")}}, Kind: "TABLE",
		Objects: listOf("pgconsent.materialized_change"), Roles: listOf(f.control),
	})
	o.create(fmt.Sprintf("DO $$ BEGIN EXECUTE (SELECT pg_catalog.format('GRANT EXECUTE ON FUNCTION %s() TO %%I', "+
		`pg_catalog.pg_get_userbyid(p.proowner))
  FROM pg_catalog.pg_proc AS p WHERE p.oid OPERATOR(pg_catalog.=) `+
		`'pgconsent.materialized_settle()'::pg_catalog.regprocedure); END $$`, settleFunction))
}

// makeTriggers adds to o the triggers that record changes of the relation of a step.
func (m materializedConsent) makeTriggers(step int, o *objectBuilder) {
	r, recordedColumns := m.relationAt(step)
	watchedColumns := append([]string{}, recordedColumns...)
	if step < len(m.steps) {
		watchedColumns = append(watchedColumns, m.steps[step].StartColumns()...)
	} else {
		watchedColumns = append(watchedColumns, m.StatusColumn)
		if m.ExpiryColumn != "" {
			watchedColumns = append(watchedColumns, m.ExpiryColumn)
		}
	}
	function := m.noteFunction(step)
	recordCall := func(row string) string {
		return fmt.Sprintf("PERFORM pgconsent.materialized_note(%s, %d, %s);", catalog.QuoteLiteral(m.name), step,
			changeText(r, row, recordedColumns))
	}
	o.create(fmt.Sprintf("CREATE FUNCTION %[1]s() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = "+
		`pg_catalog, pg_temp AS $pgconsent$
BEGIN
  IF TG_OP = 'TRUNCATE' THEN PERFORM pgconsent.materialized_invalidate(%[2]s); RETURN NULL; END IF;
  IF TG_OP <> 'INSERT' THEN IF %[5]s THEN %[3]s END IF; END IF;
  IF TG_OP <> 'DELETE' THEN IF %[6]s THEN %[4]s END IF; END IF;
  RETURN NULL;
END $pgconsent$`, function, catalog.QuoteLiteral(m.name), recordCall("OLD"), recordCall("NEW"), allNotNull("OLD",
		recordedColumns),
		allNotNull("NEW", recordedColumns)))
	o.create(fmt.Sprintf("REVOKE ALL ON FUNCTION %s() FROM PUBLIC", function))
	add := func(event, rest string) {
		o.create(fmt.Sprintf("CREATE TRIGGER %s AFTER %s ON %s %s EXECUTE FUNCTION %s()", m.trigger(step, event), event,
			r.Name.SQL(), rest, function))
		o.create(fmt.Sprintf("ALTER TABLE %s ENABLE ALWAYS TRIGGER %s", r.Name.SQL(), m.trigger(step, event)))
	}
	add("INSERT", "FOR EACH ROW")
	add("DELETE", "FOR EACH ROW")
	add("UPDATE", "FOR EACH ROW WHEN ("+rowDiffersCondition(watchedColumns)+")")
	add("TRUNCATE", "FOR EACH STATEMENT")
}

func (m materializedConsent) drop(o *objectBuilder) {
	drop := func(format string, args ...any) {
		o.drop("Take the materialized answers away.", fmt.Sprintf(format, args...))
	}
	for i := 0; i <= len(m.steps); i++ {
		r, _ := m.relationAt(i)
		for _, event := range []string{"insert", "delete", "update", "truncate"} {
			drop("DROP TRIGGER IF EXISTS %s ON %s", m.trigger(i, event), r.Name.SQL())
		}
		drop("DROP FUNCTION IF EXISTS %s()", m.noteFunction(i))
	}
	drop("DROP FUNCTION IF EXISTS %s()", m.function("settle"))
	drop("DROP FUNCTION IF EXISTS %s()", m.function("differs"))
	drop("DROP TABLE IF EXISTS %s", m.table())
	drop("DELETE FROM pgconsent.materialized AS k WHERE k.name OPERATOR(pg_catalog.=) %s", catalog.QuoteLiteral(m.name))
}

func (m materializedConsent) function(action string) string {
	return "pgconsent." + catalog.QuoteIdent("materialized_"+action+"_"+m.name)
}
func (m materializedConsent) noteFunction(step int) string {
	return m.function("note_" + strconv.Itoa(step))
}
func (m materializedConsent) trigger(step int, event string) string {
	return catalog.QuoteIdent(fmt.Sprintf("zz_pgconsent_materialized_%s_%d_%s", m.name, step, strings.ToLower(event)))
}

// Fills describes the tables of stored results in the plan, which [migrations.FillAll] fills.
func (p *Plan) Fills() []migrations.Fill {
	var out []migrations.Fill
	for _, m := range p.facts.materialized {
		out = append(out, migrations.Fill{
			Name: m.name, Relation: m.relation.Name.String(), NextRows: m.fillQuery,
			CountWrong: "SELECT " + m.function("differs") + "()",
			CountLeft: fmt.Sprintf("SELECT pg_catalog.count(*) FROM %s AS t, pgconsent.materialized AS h WHERE %s",
				m.relation.Name.SQL(), m.unfilledCondition()),
		})
	}
	return out
}

// unfilledCondition returns the condition that the row t comes, in the order of the key, after the rows that FillAll
// has already handled.
func (m materializedConsent) unfilledCondition() string {
	var keys, lastKeys []string
	for i, k := range m.key() {
		keys = append(keys, "t."+catalog.QuoteIdent(k))
		lastKeys = append(lastKeys, fmt.Sprintf("(h.filled_to::pg_catalog.jsonb OPERATOR(pg_catalog.->>) %d)::%s", i,
			predicate.KeyType(m.relation.Column(k))))
	}
	return fmt.Sprintf("h.name OPERATOR(pg_catalog.=) %s AND (h.filled_to IS NULL OR (%s) > (%s))",
		catalog.QuoteLiteral(m.name), strings.Join(keys, ", "), strings.Join(lastKeys, ", "))
}

// fillQuery returns the query that records the next rows, in the order of the key, as if they had just been inserted.
// At the commit their results are stored. The query locks the rows, so that none is deleted meanwhile.
func (m materializedConsent) fillQuery(maxRows int) string {
	var keys []string
	for _, k := range m.key() {
		keys = append(keys, "t."+catalog.QuoteIdent(k))
	}
	return fmt.Sprintf(`WITH batch AS MATERIALIZED (SELECT %[1]s AS value, row_number() OVER (ORDER BY %[5]s) AS n FROM (
    SELECT t.* FROM %[2]s AS t, pgconsent.materialized AS h WHERE %[4]s ORDER BY %[5]s LIMIT %[6]d FOR KEY SHARE OF t) AS t),
  noted AS MATERIALIZED (SELECT pgconsent.materialized_note(%[3]s, 0, b.value) FROM batch AS b),
  moved AS (UPDATE pgconsent.materialized AS h SET filled_to = (SELECT b.value FROM batch AS b ORDER BY n DESC LIMIT 1) `+
		`WHERE h.name = %[3]s AND EXISTS (SELECT FROM batch) RETURNING 1)
SELECT count(*) FROM noted`,
		changeText(m.relation, "t", m.key()), m.relation.Name.SQL(), catalog.QuoteLiteral(m.name), m.unfilledCondition(),
		strings.Join(keys, ", "), maxRows)
}

// differsQuery returns the query that counts the rows whose stored result is missing or wrong.
func (m materializedConsent) differsQuery() string {
	var keyConditions []string
	for _, k := range m.key() {
		keyConditions = append(keyConditions, "o."+catalog.QuoteIdent(k)+" = t."+catalog.QuoteIdent(k))
	}
	return fmt.Sprintf(
		"SELECT count(*) FROM %s AS t LEFT JOIN %s AS o ON %s WHERE o.open_until IS DISTINCT FROM (%s)",
		m.relation.Name.SQL(), m.table(), strings.Join(keyConditions, " AND "), m.openUntil())
}
