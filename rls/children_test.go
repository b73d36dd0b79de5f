package rls_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/internal/tool/doctor"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/test/tier"
)

const partitionedSchema = `
SET ROLE app_owner;
CREATE SCHEMA parts;
CREATE TABLE events (id int, user_id uuid, text text) PARTITION BY RANGE (id);
CREATE TABLE parts.events_1 PARTITION OF events FOR VALUES FROM (0) TO (10);
CREATE TABLE events_2 (text text, user_id uuid, id int);
ALTER TABLE events ATTACH PARTITION events_2 FOR VALUES FROM (10) TO (20);
CREATE TABLE events_3 PARTITION OF events FOR VALUES FROM (20) TO (30) PARTITION BY LIST (id);
CREATE TABLE events_31 PARTITION OF events_3 DEFAULT;
INSERT INTO events SELECT i, ('00000000-0000-0000-0000-00000000000' || 1 + i % 2)::uuid,
  CASE WHEN i % 2 = 1 THEN 'SECRET' ELSE 'mine' END FROM generate_series(0, 29) i;
CREATE TABLE animals (id int, user_id uuid);
CREATE TABLE cats () INHERITS (animals);
CREATE TABLE dogs (tricks text DEFAULT 'SECRET') INHERITS (animals);
INSERT INTO animals VALUES (1, '00000000-0000-0000-0000-000000000001'), (2, '00000000-0000-0000-0000-000000000002');
INSERT INTO cats VALUES (3, '00000000-0000-0000-0000-000000000001'), (4, '00000000-0000-0000-0000-000000000002');
INSERT INTO dogs VALUES (5, '00000000-0000-0000-0000-000000000001'), (6, '00000000-0000-0000-0000-000000000002');
CREATE VIEW kittens AS SELECT id FROM cats;
CREATE TABLE narrow (id int, user_id uuid, secret text) PARTITION BY RANGE (id);
CREATE TABLE narrow_1 PARTITION OF narrow FOR VALUES FROM (0) TO (10);
INSERT INTO narrow VALUES (1, '00000000-0000-0000-0000-000000000001', 'SECRET'), (2, '00000000-0000-0000-0000-000000000002', 'SECRET');
GRANT SELECT ON ALL TABLES IN SCHEMA public TO app_other;
RESET ROLE`

const partitionedPolicy = `
version: 1
attributes: { user: { type: uuid, source: credential } }
tables:
  events: { rows: [ { own: { column: user_id, is: user } } ] }
  animals: { rows: [ { own: { column: user_id, is: user } } ] }
  narrow: { rows: [ { own: { column: user_id, is: user } } ], columns: { id: allow } }
views: { kittens: {} }
`

func partitionedWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, partitionedSchema)
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(partitionedPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	w.compile(file, rls.Options{})
	return w.migrate()
}

// recompile reads the catalogs again and compiles the policy.
func (w *world) recompile() {
	w.t.Helper()
	doc, err := policy.Parse("p.yaml", []byte(partitionedPolicy))
	if err != nil {
		w.t.Fatal(err)
	}
	if w.snap, err = pgcatalog.Load(context.Background(), w.super, []string{"public"}); err != nil {
		w.t.Fatal(err)
	}
	if w.pol, err = policy.Compile(doc, w.snap, policy.WithViews(rewrite.RewriteViewQuery)); err != nil {
		w.t.Fatal(err)
	}
	w.plan = rls.Generate(w.pol, w.snap, rls.Options{})
}

// A partition shows the rows that its parent's rule permits, whether a statement names the parent or the partition.
func TestPartitionsAndChildren(t *testing.T) {
	w := partitionedWorld(t)
	agent := w.agent(user1)
	for table, want := range map[string]string{
		"events": "15", "ONLY events": "0", "parts.events_1": "5", "events_2": "5", "events_3": "5", "events_31": "5",
		"animals": "3", "ONLY animals": "1", "cats": "1", "pgconsent_rows.public_narrow": "1", "pgconsent_rows.filtered_public_narrow": "1",
		"pgconsent_rows.public_kittens": "1", "pgconsent_rows.filtered_public_kittens": "1",
	} {
		w.want(agent, "SELECT count(*) FROM "+table, want)
		w.want(w.agent(""), "SELECT count(*) FROM "+table, "0")
	}
	w.want(agent, "SELECT DISTINCT text FROM events", "mine")
	for _, table := range []string{"dogs", "narrow", "narrow_1"} {
		w.wantRefusal(agent, "42501", "SELECT count(*) FROM "+table)
	}
	w.want(w.db.Connect(t, "app_other"), "SELECT count(*) FROM events_2", "10")
	w.want(w.owner, "SELECT count(*) FROM events_2", "10")

	w.recompile()
	r := rewrite.New(w.snap, w.pol, rewrite.InjectedMode)
	for sql, isAllowed := range map[string]bool{
		"SELECT * FROM events": true, "SELECT * FROM parts.events_1 e": true, "SELECT * FROM events_2": true,
		"SELECT id FROM ONLY events_3": true, "SELECT cats FROM cats": true,
		"SELECT * FROM dogs": false, "SELECT * FROM narrow_1": false, "SELECT * FROM ONLY narrow": false, "UPDATE cats SET id = 1": false,
	} {
		result, refusal := r.Rewrite(sql, false)
		if (refusal == nil) != isAllowed {
			t.Errorf("%s: %v", sql, refusal)
		} else if isAllowed && result.NeedsSignature {
			t.Errorf("%s: needs a signature", sql)
		} else if isAllowed {
			if _, err := query(agent, result.Text); err != nil {
				t.Errorf("%s: %v", result.Text, err)
			}
		}
	}
	w.want(agent, "SELECT relname FROM pgconsent_catalog.pg_class WHERE relkind IN ('r', 'p') AND relnamespace = "+
		"'public'::regnamespace ORDER BY 1", "animals,cats,events,events_2,events_3,events_31,narrow")
	w.want(agent, "SELECT count(*) FROM pgconsent_catalog.pg_inherits", "5")
}

// A partition that is added later is visible through its parent only, and by its own name after the next migrate.
// Dropping a partition changes nothing else.
func TestNewPartitions(t *testing.T) {
	tier.All(t)
	w := partitionedWorld(t)
	hash := w.plan.Hash()
	w.exec(w.owner, "CREATE TABLE events_4 PARTITION OF events FOR VALUES FROM (30) TO (40); INSERT INTO events "+
		"VALUES (31, '"+user1+"', 'mine'), (32, '"+user2+"', 'SECRET')")
	agent := w.agent(user1)
	w.want(agent, "SELECT count(*) FROM events", "16")
	w.wantRefusal(agent, "42501", "SELECT * FROM events_4")
	w.recompile()
	if w.plan.Hash() != hash {
		t.Error("a new partition makes the installed policy another")
	}
	isRefused := func() bool {
		_, refusal := rewrite.New(w.snap, w.pol, rewrite.InjectedMode).Rewrite("SELECT * FROM events_4", false)
		return refusal != nil
	}
	if !isRefused() {
		t.Error("a partition that migrate has not seen can be named")
	}
	runDoctor := func() []doctor.Finding {
		findings, err := doctor.RunChecks(context.Background(), w.super, doctor.Target{Policy: w.pol, Snapshot: w.snap, Plan: w.plan})
		if err != nil {
			t.Fatal(err)
		}
		if err := doctor.UnsafeError(findings); err != nil {
			t.Error(err)
		}
		return findings
	}
	hasWarning := false
	for _, f := range runDoctor() {
		hasWarning = hasWarning || f.ID == "new_part"
	}
	if !hasWarning {
		t.Error("doctor does not tell of the new partition")
	}
	// The rewriter refuses the partition even if PUBLIC may read it.
	w.exec(w.owner, "GRANT SELECT ON events_4 TO PUBLIC")
	w.recompile()
	if !isRefused() {
		t.Error("a partition that migrate has not seen can be named")
	}
	w.migrate()
	w.want(agent, "SELECT count(*) FROM events_4", "1")
	w.recompile()
	if isRefused() {
		t.Error("a partition cannot be named after migrate")
	}

	w.exec(w.owner, "DROP TABLE events_4; ALTER TABLE events DETACH PARTITION events_2; DROP TABLE parts.events_1")
	w.recompile()
	if w.plan.Hash() != hash {
		t.Error("a partition that is gone makes the installed policy another")
	}
	runDoctor()
	if _, refusal := rewrite.New(w.snap, w.pol, rewrite.InjectedMode).Rewrite("SELECT * FROM events_2",
		false); refusal == nil {
		t.Error("a detached partition can be named")
	}
	w.migrate()
	w.wantRefusal(agent, "42501", "SELECT * FROM events_2")
	if err := migrations.Down(context.Background(), w.owner, migrations.Options{}); err != nil {
		t.Fatal(err)
	}
	w.want(w.super, "SELECT count(*) FROM pg_policy", "0")
	w.want(w.super, "SELECT count(*) FROM pg_class WHERE relrowsecurity", "0")
}
