package policy_test

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
)

// A rule is refused when the policy is loaded if its answers cannot be materialized, or if it depends on no stored row.
func TestMaterializedIsRefused(t *testing.T) {
	conn := pgtest.Database(t).Connect(t, "postgres")
	if _, err := conn.PgConn().Exec(t.Context(), derivedSchema+`
CREATE COLLATION loosely (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TYPE moods AS ENUM ('calm'); CREATE TABLE priced (id integer PRIMARY KEY, mood moods, whom numeric(9,2), since date, name text COLLATE loosely);
CREATE TABLE of_prices (mood moods, whom numeric(9,1), consent text, since date, name text COLLATE loosely);
CREATE TABLE parents (id uuid PRIMARY KEY, person_id uuid); CREATE TABLE heirs (PRIMARY KEY (id)) INHERITS (parents);
CREATE TABLE folk (id uuid PRIMARY KEY, consent text); CREATE TABLE kin (PRIMARY KEY (id)) INHERITS (folk);
CREATE TABLE split (id uuid PRIMARY KEY, person_id uuid) PARTITION BY HASH (id);
CREATE TABLE split_0 PARTITION OF split FOR VALUES WITH (MODULUS 1, REMAINDER 0)`).ReadAll(); err != nil {
		t.Fatal(err)
	}
	snap, err := pgcatalog.Load(t.Context(), conn, []string{"public"})
	if err != nil {
		t.Fatal(err)
	}
	materializedRule := func(link string) string {
		return "priced: { rows: [ consent: { every: [ of_prices: { " + link + " } ], status: consent, is: granted, materialize: true } ] }"
	}
	ruleBy := func(table, subjects string) string {
		return table + ": { rows: [ consent: { every: [ " + subjects + ": { id: person_id } ], status: consent, is: granted, materialize: true } ] }"
	}
	for rule, want := range map[string]string{
		ruleBy("parents", "people"):      "public.parents is no plain table", // the triggers miss writes to its children by their own names
		ruleBy("heirs", "people"):        "public.heirs is no plain table",
		ruleBy("memories", "folk"):       "public.folk is no plain table",
		ruleBy("memories", "kin"):        "public.kin is no plain table",
		ruleBy("split", "people"):        "public.split is no plain table",
		ruleBy("split_0", "people"):      "public.split_0 is no plain table",
		materializedRule("whom: whom"):   "public.priced.whom is of another type than uuid, integer and text",
		materializedRule("since: since"): "public.priced.since is of another type than uuid, integer and text",
		materializedRule("mood: mood"):   "public.priced.mood is of another type than uuid, integer and text",
		materializedRule("name: name"):   "public.priced.name is of another type than uuid, integer and text",
		"memories: { rows: [ consent: { every: [ people: { id: person_id } ], status: consent, is: granted, " +
			"materialize: true } ] }": "",
		"memories: { rows: [ consent: { every: [ people: { id: person_id } ], status: consent, is: granted, " +
			"materialize: true } ], write: { commands: [update], columns: [body] } }": "agents write " +
			"public.memories, and materialized answers are settled when a transaction commits",
		"loose: { rows: [ consent: { every: [ people: { id: from_id } ], status: consent, is: granted, " +
			"materialize: true } ] }": "public.loose has no primary key",
		"memories: { rows: [ consent: { every: [ people: { id: person_id } ], status: consent, is: granted, " +
			"expires: consent } ] }": "public.people.consent is a text (a moment is a timestamp with time zone",
		"memories: { rows: [ consent: { subject: person_id, materialize: true, record: { table: people, grantor: " +
			"id, grantee: { column: id, to: user } } } ] }": "expires and materialize are for consent by a status",
		"summaries: { rows: [ derived: { from: { memories: { id: memory_id } }, where: [ consent: { every: [ " +
			"people: { id: person_id } ], status: consent, is: granted, materialize: true } ] } ] }": "the policy does not list public.memories",
	} {
		_, got := derivedCompile(t, snap, derivedHead+"  "+rule)
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", rule, got, want)
		}
	}
}
