package attacks

import (
	"strings"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// All statements of one Query message have the same statement_timestamp(). A consent may end while the first statement
// runs; the later ones of the same message must not show its rows.
func TestExpiredConsentWithinAMessage(t *testing.T) {
	tier.All(t)
	for _, mode := range modesOf(instance.Auto, instance.Both) {
		db := pgtest.Database(t)
		instance.Exec(t, db, `CREATE TABLE people (id int PRIMARY KEY, consent text, until timestamptz);
CREATE TABLE notes (id int PRIMARY KEY, person int, body text);
CREATE TABLE memo (id int PRIMARY KEY, ends timestamptz, body text); CREATE TABLE reg (id int PRIMARY KEY, person text);
CREATE TABLE plain (id int PRIMARY KEY); CREATE VIEW memos AS SELECT * FROM memo;
CREATE FUNCTION said() RETURNS SETOF text LANGUAGE sql STABLE AS 'SELECT body FROM public.memo'; INSERT INTO plain VALUES (1)`)
		d := instance.Database{Name: "pair", DB: db, SearchPath: []string{"public"}, Policy: `version: 1
attributes: { user: { type: text, source: credential }, categories: { type: "text[]", source: credential } }
tables:
  notes: { rows: [ { consent: { every: [ people: { id: person } ], status: consent, is: yes, expires: until } } ] }
  memo: { rows: [ { sql: "ends > now()" } ] }
  reg: { rows: [ { consent: { subject: person, registry: { category: ESSENTIAL, categories: categories } } } ] }
  plain: { rows: open, write: { commands: [insert], columns: [id] } }
views: { memos: {} }
functions: { said: {} }
`}
		c := instance.Start(t, mode, d, map[string]string{"user": "me", "categories": "{ESSENTIAL}"}).Agent(t, "agent", "pair")
		const later = "clock_timestamp() + interval '300 milliseconds'"
		instance.Exec(t, db, `INSERT INTO people VALUES (1, 'yes', now()); INSERT INTO notes VALUES (1, 1, 'secret');
			INSERT INTO memo VALUES (1, now(), 'secret'); INSERT INTO reg VALUES (77, 'p1');
			INSERT INTO pgconsent.consent_current (subject, grantee, scope, number, state, stream, categories, purposes, expires_at)
			VALUES ('p1', '*', '*', 1, 'given', 'TEMPORARY', '{ESSENTIAL}', '{}', now())`)
		instance.Ask(c, "PREPARE p AS SELECT * FROM memo")
		if got := instance.Ask(c, "COPY plain FROM STDIN; SELECT * FROM memo").SortedString(); !strings.Contains(got, "0A000") {
			t.Errorf("%s: rows that come when the agent likes, and then a rule with a clock: %s", mode.Name, got)
		}
		// This statement runs until all consents have ended.
		const slow = "SELECT count(*) FROM generate_series(1, 1000000) a WHERE md5(a::text) = 'x'"
		for _, wrapper := range []string{"%", "BEGIN; %; COMMIT"} {
			instance.Exec(t, db, `UPDATE people SET until = `+later+`; UPDATE memo SET ends = `+
				later+`; UPDATE pgconsent.consent_current SET expires_at = `+later)
			start := time.Now()
			got := instance.Ask(c, strings.Replace(wrapper, "%", slow+"; "+
				"SELECT * FROM notes; SELECT * FROM memo; SELECT * FROM reg; SELECT * FROM memos; SELECT said(); "+
				"EXECUTE p; DECLARE m CURSOR FOR SELECT * FROM memo; FETCH m", 1)).SortedString()
			if strings.Contains(got, "secret") || strings.Contains(got, "77") || strings.Contains(got, "rror") {
				t.Errorf("%s, %s: what has ended shows, or an error:\n%s", mode.Name, wrapper, got)
			}
			if took := time.Since(start); took < 400*time.Millisecond {
				t.Errorf("%s: it was over after %v, before anything had ended", mode.Name, took)
			}
		}
	}
}
