package attacks

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// An update may change a value into one that the type's own equality, or its text form, takes for the same. Where the
// rule's answer changes with it, a transaction with an older snapshot must end with 40001.
func TestChangesBetweenEqualLookingValues(t *testing.T) {
	tier.All(t)
	for _, c := range []struct{ rule, change string }{
		{`{ sql: "state LIKE 'o%'" }`, "UPDATE notes SET state = 'OPEN' WHERE id = 1"},
		{`{ sql: "starts_with(state, 'o')" }`, "UPDATE notes SET state = 'OPEN' WHERE id = 1"},
		{`{ sql: "f > 0.52" }`, "SET extra_float_digits = -15; UPDATE notes SET f = 0.51 WHERE id = 1"},
	} {
		for _, mode := range modesOf(instance.Auto, instance.Both) {
			db := pgtest.Database(t)
			instance.Exec(t, db, `CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
				CREATE TABLE notes (id int PRIMARY KEY, state text COLLATE ci, f float8);
				INSERT INTO notes VALUES (1, 'open', 0.549), (2, 'open', 0.549)`)
			policy := "version: 1\nattributes: { user: { type: text, source: credential } }\ntables:\n  notes: { rows: [ " + c.rule + " ] }\n"
			proxy := instance.Start(t, mode, instance.Database{
				Name: "pair", DB: db, Policy: policy, SearchPath: []string{"public"}}, map[string]string{"user": "me"})
			older, newer := proxy.Agent(t, "agent", "pair"), proxy.Agent(t, "agent", "pair")
			instance.Ask(older, "BEGIN ISOLATION LEVEL REPEATABLE READ")
			if got := instance.Ask(older, "SELECT count(*) FROM notes").Results[0].Rows[0]; got != "2" {
				t.Fatalf("%s: %s rows show before the change", c.rule, got)
			}
			instance.Exec(t, db, c.change)
			if got := instance.Ask(newer, "SELECT count(*) FROM notes").Results[0].Rows[0]; got != "1" {
				t.Fatalf("%s: %s rows show after the change", c.rule, got)
			}
			if got := instance.Ask(older, "SELECT count(*) FROM notes"); got.Code != "40001" {
				t.Errorf("%s, %s: an older snapshot shows %s", mode.Name, c.rule, got)
			}
		}
	}
}
