package rls_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/migrations"
)

// An object whose row version is the stored one is not printed to compare it. Each change that would print differently
// is found all the same, and a database in which all versions are others, as one that was restored, has no drift.
func TestDriftIsFoundByRowVersions(t *testing.T) {
	w := newWorld(t).migrate()
	control := w.db.Connect(t, migrations.DefaultControlRole)
	drift := func() []string {
		t.Helper()
		found, err := migrations.Drift(t.Context(), control)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	var withVersion int
	if err := w.super.QueryRow(t.Context(), "SELECT count(version) FROM pgconsent.installed_object").Scan(&withVersion); err != nil {
		t.Fatal(err)
	}
	if withVersion < 100 {
		t.Errorf("%d objects have a version", withVersion)
	}
	w.exec(w.super, "CREATE ROLE drift_role; CREATE TABLE was AS SELECT * FROM pgconsent.installed_object")
	for _, c := range []struct{ change, back string }{
		{"ALTER VIEW pgconsent_signed.public_people RENAME id TO other", "ALTER VIEW pgconsent_signed.public_people RENAME other TO id"},
		{"ALTER TABLE people RENAME consent_status TO other", "ALTER TABLE people RENAME other TO consent_status"},
		{"ALTER TABLE people RENAME TO persons", "ALTER TABLE persons RENAME TO people"},
		{"ALTER VIEW pgconsent_catalog.pg_class SET (security_barrier = false)", "ALTER VIEW pgconsent_catalog.pg_class SET (security_barrier)"},
		{"GRANT SELECT ON pgconsent_catalog.pg_class TO drift_role", "REVOKE SELECT ON pgconsent_catalog.pg_class FROM drift_role"},
		{"ALTER FUNCTION pgconsent_signed.text_is_signed() VOLATILE", "ALTER FUNCTION pgconsent_signed.text_is_signed() STABLE"},
		{"GRANT EXECUTE ON FUNCTION pgconsent_signed.text_is_signed() TO drift_role",
			"REVOKE EXECUTE ON FUNCTION pgconsent_signed.text_is_signed() FROM drift_role"},
		{"CREATE OR REPLACE VIEW pgconsent_catalog.pg_enum WITH (security_barrier) AS SELECT * FROM pg_catalog.pg_enum", ""},
	} {
		w.exec(w.super, c.change)
		if len(drift()) == 0 {
			t.Errorf("%s: no drift is found", c.change)
		}
		// what is stored is compared anew, whatever has a version
		w.exec(w.super, "UPDATE pgconsent.installed_object SET version = NULL")
		if len(drift()) == 0 {
			t.Errorf("%s: no drift is found without versions", c.change)
		}
		if c.back == "" {
			continue
		}
		w.exec(w.super, c.back)
		if found := drift(); len(found) > 0 {
			t.Errorf("%s: after it was undone: %v", c.change, found)
		}
		w.exec(w.super, "UPDATE pgconsent.installed_object AS o SET version = was.version FROM was WHERE was.identity = o.identity")
		if found := drift(); len(found) > 0 {
			t.Errorf("%s: after it was undone, with the versions of before: %v", c.change, found)
		}
	}
	w.exec(w.super, "DROP OWNED BY drift_role; DROP ROLE drift_role")
}

// A database with the record of a development version, which had no versions, gets the advice to remove it first.
func TestDriftOfADevelopmentVersion(t *testing.T) {
	w := newWorld(t).migrate()
	w.exec(w.super, "ALTER TABLE pgconsent.installed_object DROP COLUMN version")
	_, err := migrations.Drift(t.Context(), w.db.Connect(t, migrations.DefaultControlRole))
	var refused *sqlstate.Error
	if !errors.As(err, &refused) || !strings.Contains(refused.Hint, "migrate --down") {
		t.Errorf("%v", err)
	}
}
