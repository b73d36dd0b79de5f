package e2e

import (
	"strings"
	"testing"

	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// viewSetup creates views that a superuser owns: a query through them is not subject to row security.
const viewSetup = `
CREATE VIEW overview AS SELECT m.id, m.title, m.occurred_at::date AS day, count(p.person_id) AS present, max(m.metadata ->> 'place') AS place
  FROM memories m LEFT JOIN memory_participants p ON p.memory_id = m.id GROUP BY m.id;
CREATE VIEW busy WITH (security_barrier) AS SELECT o.*, row_number() OVER (ORDER BY o.day, o.id) AS n FROM overview o WHERE o.present > 1;
CREATE VIEW company WITH (security_invoker) AS SELECT p.name,
(SELECT count(*) FROM memory_participants mp WHERE mp.person_id = p.id) AS met, p AS person FROM people p;
CREATE VIEW unlisted AS SELECT * FROM people;
CREATE VIEW everything AS SELECT 'm' AS kind, title AS text FROM memories UNION ALL SELECT 'p', name FROM people
UNION SELECT kind, text FROM (VALUES ('v', 'x')) v (kind, text);
`

const viewsPolicy = arcivePolicy + "views: { busy: {}, company: {}, everything: {} }\n"

var viewStatements = []string{
	"SELECT * FROM busy", "SELECT count(*) FROM busy", "SELECT title, n FROM busy ORDER BY n LIMIT 5",
	"TABLE everything", "SELECT kind, count(*) FROM everything GROUP BY kind",
	"SELECT b.title, m.body FROM busy b JOIN memories m USING (id) ORDER BY b.id",
	"SELECT name, met FROM company ORDER BY met DESC, name", "SELECT (person).consent_status, count(*) FROM company GROUP BY 1",
	"SELECT public.busy.day, max(present) FROM public.busy GROUP BY 1",
	"SELECT * FROM company c WHERE NOT EXISTS (SELECT FROM memory_participants mp WHERE mp.person_id = (c.person).id)",
	"WITH busy AS (SELECT 1 AS a) SELECT * FROM busy", "SELECT sum(met) FROM company",
	"SELECT row_to_json(b) FROM busy b ORDER BY b.n LIMIT 3", "COPY (SELECT * FROM everything ORDER BY 1, 2) TO STDOUT",
	"SELECT place, count(*) FROM busy GROUP BY place", "SELECT * FROM busy WHERE (title || id)::uuid IS NULL",
	"SELECT nothing FROM busy", "SELECT text FROM everything WHERE text LIKE '%MARK%'",
	"SELECT * FROM company NATURAL JOIN (SELECT name FROM people) p", "SELECT a FROM busy AS b(a)",
	"SELECT 1 / (length(text) - length(text)) FROM everything WHERE kind = 'none'",
	"SELECT e.text FROM everything e, LATERAL (SELECT met FROM company c WHERE c.name = e.text) x ORDER BY 1",
}

// A view that the policy lists gives the answers of a copy from which the hidden rows were deleted. This holds for each
// layer of enforcement alone.
func TestViewsAnswerAsOnTheFilteredCopy(t *testing.T) {
	tier.All(t)
	copyDB := filteredCopy(t)
	runAsSuperuser(t, copyDB, viewSetup)
	for name, o := range map[string]options{
		"both": {}, "row security alone": {mode: modeRLS}, "the views' predicates alone": {mode: modeInjected, rowSecurity: withoutPolicies},
	} {
		t.Run(name, func(t *testing.T) {
			o.policy, o.beforeMigrate = viewsPolicy, viewSetup
			in := start(t, o)
			agent, filteredConn, unfilteredConn := in.agent(t), harness.Connect(t, copyDB.DSN("postgres", "")), in.superuserConn(t)
			sensitiveCount := 0
			for _, sql := range viewStatements {
				want, got := harness.Ask(filteredConn, sql), harness.Ask(agent, sql)
				if strings.HasPrefix(got.Code, "0A") && o.mode == modeInjected {
					continue // the view also reads a table whose predicate cannot be injected
				}
				if want.Err != "" && got.Code == want.Code {
					continue
				}
				if got.SortedString() != want.SortedString() {
					t.Errorf("%s\nagent:\n%s\nfiltered copy:\n%s", sql, harness.Truncate(got.SortedString()), harness.Truncate(want.SortedString()))
				}
				if harness.Ask(unfilteredConn, sql).SortedString() != want.SortedString() {
					sensitiveCount++
				}
			}
			if sensitiveCount < 12 && o.mode != modeInjected || sensitiveCount < 4 {
				t.Errorf("only %d statements are sensitive to hidden rows", sensitiveCount)
			}
			for _, sql := range []string{"SELECT * FROM unlisted", "SELECT * FROM overview",
				"SELECT * FROM pgconsent_rows.public_busy", "UPDATE busy SET title = ''", "COPY busy TO STDOUT"} {
				if got := harness.Ask(agent, sql); got.Code != "42501" && got.Code != "0A000" {
					t.Errorf("%s: %s", sql, harness.Truncate(got.String()))
				}
			}
			in.requireNoMarker(t)
		})
	}
}
