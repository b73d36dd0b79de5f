package rls_test

import (
	"context"
	"testing"

	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/test/tier"
)

const listedPartitionsPolicy = `
version: 1
attributes: { user: { type: uuid, source: credential } }
tables:
  events:
    rows: [ { own: { column: user_id, is: user } } ]
    write: { commands: [insert], columns: [id], stamp: { user_id: { attribute: user } } }
  parts.events_1: { rows: [ { visible: { people: { id: user_id } } } ] }
  events_3: { rows: [ { own: { column: user_id, is: user } } ] }
  people: { rows: [ { own: { column: id, is: user } } ] }
  events_31: { rows: [ { own: { column: user_id, is: user } } ] }
`

// A table and its partitions can have rules of their own, though PostgreSQL gives a partition a copy of each trigger of
// its table.
func TestPartitionsWithRulesOfTheirOwn(t *testing.T) {
	tier.All(t)
	w := newWorld(t, partitionedSchema)
	doc, err := policy.Parse("p.yaml", []byte(listedPartitionsPolicy))
	if err != nil {
		t.Fatal(err)
	}
	if w.pol, err = policy.Compile(doc, w.snap, policy.WithViews(rewrite.RewriteViewQuery)); err != nil {
		t.Fatal(err)
	}
	w.plan = rls.Generate(w.pol, w.snap, rls.Options{})
	w.migrate().migrate()
	agent := w.agent(user1)
	w.want(agent, "SELECT count(*) FROM events", "15")
	w.want(agent, "SELECT count(*) FROM events_31", "5")
	w.exec(agent, "INSERT INTO events (id) VALUES (24)")
	w.want(agent, "SELECT string_agg(DISTINCT user_id::text, ' ') FROM events_31 WHERE id = 24", user1)

	control := w.db.Connect(t, migrations.DefaultControlRole)
	for _, sql := range []string{
		"DELETE FROM events WHERE id = 2", "DELETE FROM events_31 WHERE id = 22", "DELETE FROM events_3 WHERE id = 21",
		"UPDATE events SET user_id = '" + user2 + "' WHERE id = 24", "TRUNCATE events_31",
	} {
		var snapshot string
		var isChanged bool
		if err := control.QueryRow(context.Background(), "SELECT pg_current_snapshot()::text").Scan(&snapshot); err != nil {
			t.Fatal(err)
		}
		w.exec(w.owner, sql)
		if err := control.QueryRow(context.Background(), "SELECT pgconsent.changed_since($1::text::pg_snapshot)", snapshot).Scan(&isChanged); err != nil {
			t.Fatal(err)
		}
		if !isChanged {
			t.Errorf("%s is not noted", sql)
		}
	}

	// Migrate is not needed after a partition was detached and attached again.
	w.exec(w.owner, "ALTER TABLE events DETACH PARTITION parts.events_1; ALTER TABLE events ATTACH PARTITION parts.events_1 FOR VALUES FROM (0) TO (10)")
	w.migrate()
	if err := migrations.Down(context.Background(), w.owner, migrations.Options{}); err != nil {
		t.Fatal(err)
	}
	w.want(w.super, "SELECT count(*) FROM pg_trigger WHERE tgname LIKE '%pgconsent%'", "0")
}
