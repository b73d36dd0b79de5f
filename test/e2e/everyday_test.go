package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	harness "github.com/pgconsent/pgconsent/test/instance"
)

const everydaySchema = `
CREATE TABLE members (id int PRIMARY KEY, consent text);
CREATE TABLE sales (id serial PRIMARY KEY, owner int REFERENCES members, seller text NOT NULL, state text DEFAULT 'new',
	product int, price int, amount int, made timestamp);
INSERT INTO members VALUES (1, 'yes'), (2, 'yes'), (3, 'no');
INSERT INTO sales (owner, seller, product, price, amount, made) SELECT 1 + n % 3, 'agent', n % 7, n, n % 5 * (n % 7 - 5), now() - n * interval '1 hour'
	FROM generate_series(1, 2000) n;
CREATE INDEX ON sales (made);
ANALYZE sales`

const everydayPolicy = `version: 1
attributes: { user: { type: integer, source: credential } }
tables:
  members: { rows: [ status: { column: consent, is: "yes" } ] }
  sales:
    rows: [ visible: { members: { id: owner } } ]
    write:
      commands: [insert, update, delete]
      columns: [product, price, owner]
      stamp: { seller: { value: agent }, state: { value: draft } }
      accept: [sequences]
      update: { rows: [ own: { column: owner, is: user } ] }
      delete: { rows: [ own: { column: owner, is: user }, status: { column: state, is: draft } ] }
`

// Everyday statements of agents get PostgreSQL's answer, or an error that says what is not supported.
func TestEverydayStatements(t *testing.T) {
	t.Parallel()
	db := pgtest.Database(t)
	harness.Exec(t, db, everydaySchema)
	for _, mode := range harness.Modes(enforcedModes...) {
		t.Run(mode.Name, func(t *testing.T) {
			proxy := harness.Start(t, mode, harness.Database{Name: "sales", DB: db, Policy: everydayPolicy, SearchPath: []string{"public"}},
				map[string]string{"user": "1"})
			agent, super := proxy.Agent(t, "agent", "sales"), harness.ConnectSuperuser(t, db)
			// inTransaction returns the answer to the last of some statements, in a transaction that is rolled back. It tries
			// again on 40001, which roles that other tests create can cause.
			inTransaction := func(statements ...string) (lastAnswer harness.Answer) {
				for range 10 {
					harness.Ask(agent, "BEGIN")
					wasInterrupted := false
					for _, sql := range statements {
						lastAnswer = harness.Ask(agent, sql)
						wasInterrupted = wasInterrupted || lastAnswer.Code == "40001"
					}
					if harness.Ask(agent, "ROLLBACK"); !wasInterrupted {
						break
					}
				}
				return lastAnswer
			}
			answerText := func(a harness.Answer) string {
				if a.Err != "" {
					return a.Code
				}
				return strings.Join(a.Results[len(a.Results)-1].Rows, "|")
			}

			// If the policy sets a column, a notice says so, once for a statement that sends a value for it.
			const sellerNotice = `column "seller" of relation "sales" is set by the policy; the value that was sent is not kept`
			const stateNotice = `column "state" of relation "sales" is set by the policy; the value that was sent is not kept`
			for sql, want := range map[string][]string{
				"INSERT INTO sales (owner, seller) VALUES (1, 'me'), (1, 'you')":                              {sellerNotice},
				"INSERT INTO sales (owner, seller, state) VALUES (1, 'agent', 'paid')":                        {stateNotice},
				"INSERT INTO sales (owner, seller, state) VALUES (1, 'agent', 'new')":                         nil,
				"INSERT INTO sales (owner, seller) VALUES (1, NULL)":                                          nil,
				"PREPARE p AS INSERT INTO sales (owner, seller) VALUES ($1, $2); EXECUTE p(1, 'me')":          {sellerNotice},
				"INSERT INTO sales (owner) VALUES (1)":                                                        nil,
				"WITH i AS (INSERT INTO sales (owner, seller) VALUES (1, 'me')) SELECT 1":                     {sellerNotice},
				"INSERT INTO sales (owner, seller, state) SELECT 1, 'me', 'x' FROM members":                   {sellerNotice, stateNotice},
				"SET LOCAL client_min_messages = warning; INSERT INTO sales (owner, seller) VALUES (1, 'me')": nil,
			} {
				a := inTransaction(sql)
				var got []string
				for _, n := range a.Notices {
					got = append(got, strings.TrimSpace(n[strings.Index(n, "column "):]))
				}
				if a.Err != "" || !slices.Equal(got, want) {
					t.Errorf("%s: %q %s", sql, a.Notices, a.Err)
				}
			}
			if got := answerText(inTransaction("INSERT INTO sales (owner, seller) VALUES (2, 'me') RETURNING seller, state")); got != "agent\tdraft" {
				t.Errorf("a new row has %s", got)
			}

			// UPDATE and DELETE have rules of their own, which apply inside WITH as well.
			update := "WITH u AS (UPDATE sales SET price = price RETURNING owner) SELECT DISTINCT owner FROM u"
			deleted := "WITH d AS (DELETE FROM sales RETURNING owner, state) SELECT DISTINCT owner, state FROM d"
			for sql, want := range map[string]string{"SELECT DISTINCT owner FROM sales ORDER BY 1": "1|2", update: "1", deleted: "1\tdraft",
				"SELECT DISTINCT owner FROM (SELECT owner FROM sales FOR UPDATE) AS s": "1"} {
				if got := answerText(inTransaction("INSERT INTO sales (owner) VALUES (1)", sql)); got != want {
					t.Errorf("%s: %s", sql, got)
				}
			}

			// A cheap condition is evaluated before a division that would fail without it, also with a hardened plan.
			for _, sql := range []string{
				"SELECT count(*) FROM sales WHERE product = 6 AND amount <> 0 AND price / amount > (SELECT min(id) FROM members)",
				"SELECT count(*) FROM sales WHERE price / amount > 29 AND product = 6 AND amount > 0 AND owner >= (SELECT min(id) FROM members)",
				"SELECT count(*) FROM sales s JOIN members m ON m.id = s.owner WHERE s.product = 6 AND s.amount <> 0 AND s.price / s.amount > 2 " +
					"AND m.id = 1 + (SELECT 0 / 1)",
			} {
				// A hardened plan's settings stay active until the transaction ends.
				got, want := answerText(inTransaction("INSERT INTO sales (owner) VALUES (1)", sql)), oneText(super, strings.Replace(sql, "WHERE", "WHERE owner < 3 AND", 1))
				if got != want || got == "" {
					t.Errorf("%s: %s, by hand %s", sql, got, want)
				}
			}

			// A timestamp with a time zone is compared with a column without one.
			for _, condition := range []string{"made >= now() - interval '7 days'", "made BETWEEN now() - interval '3 days' AND CURRENT_TIMESTAMP",
				"(made < date_trunc('week', CURRENT_DATE) - interval '1 week' OR made > now() - interval '1 hour') AND product = 3"} {
				sql := "SELECT count(*), max(id) FROM sales WHERE id <= 2000 AND " + condition
				want := oneText(super, strings.Replace(sql, "WHERE", "WHERE owner < 3 AND", 1))
				if got := answerText(inTransaction(strings.Replace(sql, "WHERE", "WHERE owner < 3 AND", 1))); got != want {
					t.Errorf("%s: %s, by hand %s", sql, got, want)
				}
			}
		})
	}
}
