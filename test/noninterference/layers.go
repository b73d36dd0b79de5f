package noninterference

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/seal"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/test/instance"
)

// readableRelationsQuery returns a SELECT for each relation that the agents' role may read, except the catalogs and the
// views that pgconsent puts in their place.
const readableRelationsQuery = `SELECT format('SELECT %s::text FROM %s AS x', 'x', c.oid::regclass)
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'v', 'm', 'p', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
AND n.nspname !~ '^pg_' AND n.nspname <> 'pgconsent_catalog'
  AND has_schema_privilege('pgconsent_agent', n.oid, 'USAGE') AND has_any_column_privilege('pgconsent_agent', c.oid, 'SELECT') ORDER BY 1`

// findUnsealedLeaks reads everything that the agents' role may read, in a session that the proxy has not sealed. It
// must get no row of the application's tables, and the same from both databases.
func (st *databaseTrio) findUnsealedLeaks() (leaks []string) {
	for _, query := range instance.Ask(st.writers[0], readableRelationsQuery).Results[0].Rows {
		var got [2]string
		for i := range st.dbs {
			instance.Ask(st.writers[i], "SET ROLE pgconsent_agent")
			a := instance.Ask(st.writers[i], query)
			instance.Ask(st.writers[i], "RESET ROLE")
			got[i] = hideDatabaseName(a, st.dbs[i].Name).SortedString()
			if i == 0 && a.Err == "" && len(a.Results[0].Rows) > 0 {
				leaks = append(leaks, fmt.Sprintf("%s, as the agents' role and without a seal: %d rows", query, len(a.Results[0].Rows)))
			}
		}
		if got[0] != got[1] {
			leaks = append(leaks, fmt.Sprintf(
				"%s, as the agents' role and without a seal, tells the databases apart:\n%s\n%s", query, instance.Truncate(got[0]), instance.Truncate(got[1])))
		}
	}
	return leaks
}

// findEmptyLookupTableLeaks hides the rows of one lookup table after the other with a row security policy for the
// reader role. The caller may then see fewer rows but no others, since an empty lookup table gives no consent. The
// function works without the proxy, with a seal for the caller, and rolls everything back.
func (st *databaseTrio) findEmptyLookupTableLeaks(s *schema, d data) (leaks []string) {
	c := st.writers[0]
	ring, err := seal.LoadKeyring(context.Background(), st.dbs[0].Connect(st.t, "postgres"))
	if err != nil {
		st.t.Fatal(err)
	}
	value := ring.NewestKey().Seal(seal.Claims{PID: c.PID(), Expires: time.Now().Add(seal.SealLifetime), Profile: "p",
		Attributes: s.credentials()[st.caller]})
	var failure string
	readAll := func(before string) map[string][]string {
		out := map[string][]string{}
		instance.Ask(c, "BEGIN; "+before+"; SET LOCAL ROLE pgconsent_agent; SELECT set_config('pgconsent.seal', "+catalog.QuoteLiteral(value)+", true)")
		for _, t := range s.tables {
			if t.rule == nil || t.hasHiddenColumns() { // the role cannot read it, and an error ends the transaction
				continue
			}
			a := instance.Ask(c, "SELECT x::text FROM "+t.sql()+" AS x")
			if a.Err != "" {
				failure = t.sql() + ": " + a.Code + " " + a.Message
				break
			}
			out[t.name] = a.Results[0].Rows
		}
		instance.Ask(c, "ROLLBACK")
		return out
	}
	before := readAll("SELECT 1")
	visibleCount := 0
	for _, rows := range before {
		visibleCount += len(rows)
	}
	expectedCount := 0
	for t, rows := range s.visibleOnly(d, s.callers[st.caller]) {
		if !t.hasHiddenColumns() && !s.isExceptedByContract(t, s.callers[st.caller]) { // the role reads the table itself
			expectedCount += len(rows)
		}
	}
	if visibleCount == 0 && expectedCount > 0 {
		return []string{"the agents' role sees nothing with a seal: the check of emptied lookup tables proves nothing. " + failure}
	}
	for _, t := range s.tables {
		if a := instance.Ask(c, "SELECT 1 FROM pg_policies WHERE policyname = 'pgconsent_reader' AND tablename = "+
			catalog.QuoteLiteral(t.name)); len(a.Results[0].Rows) == 0 {
			continue
		}
		for table, rows := range readAll("CREATE POLICY emptied ON " + t.sql() + " AS RESTRICTIVE FOR SELECT TO pgconsent_reader USING (false)") {
			for _, row := range rows {
				if !slices.Contains(before[table], row) {
					leaks = append(leaks, fmt.Sprintf("with nothing of %s to be seen by predicates, %s shows %q", t.name, table, row))
				}
			}
		}
	}
	return leaks
}

// compareCallNotations calls functions with one argument as f(x) and as (x).f. If one notation is refused, the other
// must be refused, too.
func (st *databaseTrio) compareCallNotations(v *serverVocabulary) (problems []string) {
	arguments := map[string]string{"oid": "('pg_class'::regclass::oid)", "regclass": "('pg_class'::regclass)",
		"text": "('a'::text)", "name": "('a'::name)", "integer": "(1)", "jsonb": "('{}'::jsonb)"}
	for _, f := range v.functions {
		if len(f.args) != 1 || arguments[f.args[0]] == "" {
			continue
		}
		x := arguments[f.args[0]]
		callAnswer := st.sendToOne(0, testCase{messages: []string{"SELECT " + f.name + x}})[0]
		if !callAnswer.Refused() {
			continue
		}
		if a := st.sendToOne(0, testCase{messages: []string{"SELECT " + x + "." + f.name}})[0]; a.Err == "" {
			problems = append(problems, fmt.Sprintf("%s%s is refused and %s.%s is answered", f.name, x, x, f.name))
		}
	}
	return problems
}
