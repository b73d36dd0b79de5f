package noninterference

import (
	"fmt"
	"slices"

	"github.com/pgconsent/pgconsent/catalog"
	"github.com/pgconsent/pgconsent/test/instance"
)

// readable lists what the agents' role may read, the catalogs and what stands for them aside, each as a query.
const readable = `SELECT format('SELECT %s::text FROM %s AS x', 'x', c.oid::regclass) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'v', 'm', 'p', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_' AND n.nspname <> 'pgconsent_catalog'
  AND has_schema_privilege('pgconsent_agent', n.oid, 'USAGE') AND has_any_column_privilege('pgconsent_agent', c.oid, 'SELECT') ORDER BY 1`

// unsealed reads, as the agents' role and without a seal, all that the role may read: no row of a customer's table, and nothing
// that tells the databases apart.
func (st *stage) unsealed() (wrong []string) {
	for _, query := range instance.Ask(st.writers[0], readable).Results[0].Rows {
		var got [2]string
		for i := range st.dbs {
			instance.Ask(st.writers[i], "SET ROLE pgconsent_agent")
			a := instance.Ask(st.writers[i], query)
			instance.Ask(st.writers[i], "RESET ROLE")
			got[i] = rename(a, st.dbs[i].Name).Multiset()
			if i == 0 && a.Err == "" && len(a.Results[0].Rows) > 0 {
				wrong = append(wrong, fmt.Sprintf("%s, as the agents' role and without a seal: %d rows", query, len(a.Results[0].Rows)))
			}
		}
		if got[0] != got[1] {
			wrong = append(wrong, fmt.Sprintf("%s, as the agents' role and without a seal, tells the databases apart:\n%s\n%s", query, instance.Shorten(got[0]), instance.Shorten(got[1])))
		}
	}
	return wrong
}

// emptied takes the rows out of one helper after the other, by the policy that shows them to the reader: agents' rows may only
// vanish. An empty helper is not consent.
func (st *stage) emptied(s *schema) (wrong []string) {
	all := func() map[string][]string {
		out := map[string][]string{}
		for _, t := range s.tables {
			if t.rule == nil {
				continue
			}
			if a := st.askOne(0, testCase{messages: []string{"SELECT * FROM " + t.sql()}}); len(a) == 1 && a[0].Err == "" {
				out[t.name] = a[0].Results[0].Rows
			}
		}
		return out
	}
	before := all()
	for _, t := range s.tables {
		name := t.sql()
		if a := instance.Ask(st.writers[0], "SELECT 1 FROM pg_policies WHERE policyname = 'pgconsent_reader' AND tablename = "+catalog.QuoteLiteral(t.name)); len(a.Results[0].Rows) == 0 {
			continue
		}
		instance.Ask(st.writers[0], "ALTER POLICY pgconsent_reader ON "+name+" USING (false)")
		for table, rows := range all() {
			for _, row := range rows {
				if !slices.Contains(before[table], row) {
					wrong = append(wrong, fmt.Sprintf("with nothing of %s to be seen by predicates, %s shows %q", name, table, row))
				}
			}
		}
		instance.Ask(st.writers[0], "ALTER POLICY pgconsent_reader ON "+name+" USING (true)")
	}
	return wrong
}
