package rls_test

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/migrations"
)

// TestRightsAreWithheldWithoutRowSecurity: from the commit on that switches row security off agents may do nothing with the table, and what they
// could do before once it is on again.
func TestRightsAreWithheldWithoutRowSecurity(t *testing.T) {
	w := newWorld(t)
	if err := migrations.Up(t.Context(), w.super, migrations.Options{}, w.plan); err != nil { // who may make event triggers
		t.Fatal(err)
	}
	agent := w.agent(user1)
	w.want(agent, titles, visible)
	before := w.state()
	for range 2 {
		w.exec(w.super, "BEGIN; ALTER TABLE memories DISABLE ROW LEVEL SECURITY; ROLLBACK")
		w.want(agent, titles, visible)
		w.exec(w.super, "ALTER TABLE memories DISABLE ROW LEVEL SECURITY")
		if got, err := query(agent, titles); err == nil || !strings.Contains(err.Error(), "42501") {
			t.Errorf("without row security agents read %q, %v", got, err)
		}
		w.exec(w.super, "ALTER TABLE memories ADD COLUMN passing int; ALTER TABLE memories DROP COLUMN passing")
		w.exec(w.super, "ALTER TABLE memories ENABLE ROW LEVEL SECURITY")
		w.want(agent, titles, visible)
	}
	if after := w.state(); after != before {
		t.Errorf("rights are not what they were:\n%s\nbefore:\n%s", after, before)
	}
}
