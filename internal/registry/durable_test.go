package registry

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
)

// A change is committed with synchronous_commit at least "on", whatever setting is stored for the database. A stored
// remote_apply, by which a standby shows an acknowledged change, is not lowered.
func TestSynchronousCommitOfChanges(t *testing.T) {
	db := database(t)
	super := db.Connect(t, "postgres")
	exec := func(sql string) {
		t.Helper()
		if _, err := super.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(`CREATE TABLE seen (value text); CREATE FUNCTION seen() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public
		AS 'BEGIN INSERT INTO seen VALUES (pg_catalog.current_setting(''synchronous_commit'')); RETURN NULL; END';
		CREATE TRIGGER seen AFTER INSERT ON pgconsent.consent_record FOR EACH ROW EXECUTE FUNCTION seen()`)
	first := open(t, db, defaults)
	for stored, want := range map[string]string{"off": "on", "local": "on", "remote_write": "on", "on": "on", "remote_apply": "remote_apply"} {
		exec("ALTER DATABASE " + db.Name + " SET synchronous_commit = " + stored)
		r := openWithKeys(t, db, defaults, first.Keys, first.Anchor) // it logs in again, under the new setting
		mustExecute(t, r, grant("under "+stored, consent.StreamTemporary))
		var value string
		if err := super.QueryRow(t.Context(), "WITH d AS (DELETE FROM seen RETURNING value) SELECT value FROM d").
			Scan(&value); err != nil || value != want {
			t.Errorf("%s is stored: a change is made with %q, want %q (%v)", stored, value, want, err)
		}
	}
}
