package rls_test

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/migrations"
)

// TestRightsAreWithheldWithoutRowSecurity: once a commit switches row security off, agents may do nothing with the
// table. When it is on again, they may do what they could before.
func TestRightsAreWithheldWithoutRowSecurity(t *testing.T) {
	w := newWorld(t)
	if err := migrations.Up(t.Context(), w.super, migrations.Options{}, w.plan); err != nil { // as a superuser, who may create event triggers
		t.Fatal(err)
	}
	agent := w.agent(user1)
	w.want(agent, titlesQuery, visibleTitles)
	before := w.state()
	for range 2 {
		w.exec(w.super, "BEGIN; ALTER TABLE memories DISABLE ROW LEVEL SECURITY; ROLLBACK")
		w.want(agent, titlesQuery, visibleTitles)
		w.exec(w.super, "ALTER TABLE memories DISABLE ROW LEVEL SECURITY")
		if got, err := query(agent, titlesQuery); err == nil || !strings.Contains(err.Error(), "42501") {
			t.Errorf("without row security agents read %q, %v", got, err)
		}
		w.exec(w.super, "ALTER TABLE memories ADD COLUMN passing int; ALTER TABLE memories DROP COLUMN passing")
		w.exec(w.super, "ALTER TABLE memories ENABLE ROW LEVEL SECURITY")
		w.want(agent, titlesQuery, visibleTitles)
	}
	if after := w.state(); after != before {
		t.Errorf("rights are not what they were:\n%s\nbefore:\n%s", after, before)
	}
}

// A superuser's migrate creates no event trigger whose function belongs to another role: that role could change it to
// run anything. The table of withheld rights contains no text that is run as a statement.
func TestNobodyElsesFunctionRunsAtDDL(t *testing.T) {
	w := newWorld(t)
	migrate := func() {
		t.Helper()
		if err := migrations.Up(t.Context(), w.super, migrations.Options{}, w.plan); err != nil {
			t.Fatal(err)
		}
	}
	migrate()
	w.exec(w.super, `INSERT INTO pgconsent.withheld SELECT 'memories'::regclass, 'pgconsent_agent', 'ALL ON TABLE people TO PUBLIC; GRANT SELECT', '';
		ALTER TABLE memories ENABLE ROW LEVEL SECURITY`)
	w.want(w.super, "SELECT count(*) FROM pg_class, aclexplode(relacl) AS x WHERE oid = 'people'::regclass AND x.grantee = 0", "0")
	w.exec(w.super, "DROP EVENT TRIGGER zz_pgconsent_withhold; ALTER FUNCTION pgconsent.withhold() OWNER TO app_owner")
	migrate()
	w.want(w.super, "SELECT count(*) FROM pg_event_trigger WHERE evtname = 'zz_pgconsent_withhold'", "0")
}
