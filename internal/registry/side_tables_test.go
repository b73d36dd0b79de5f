package registry

import (
	"fmt"
	"testing"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
)

// Verify finds manual changes in the tables beside the records. Examples are messages that were forged, removed or
// postponed, deletions that nobody requested or no sweep made, and a sweep that never ran.
func TestTamperedSideTablesAreFound(t *testing.T) {
	db := database(t)
	r := open(t, db, defaults)
	for _, subjectID := range []string{"ada", "bob"} {
		mustExecute(t, r, consent.Command{Action: consent.ActionUpgrade, Subject: subjectID, Caller: subject(subjectID)})
		mustExecute(t, r, consent.Command{Action: consent.ActionDecide, Subject: subjectID, Decision: consent.DecisionApprove,
			Caller: consent.Party{Role: consent.RoleAgent, ID: "chat"}})
	}
	mustExecute(t, r, consent.Command{Action: consent.ActionErase, Subject: "bob", Caller: subject("bob")})
	requireVerified(t, r)
	conn := db.Connect(t, "postgres")
	var messages int
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pgconsent.outbox").Scan(&messages); err != nil || messages != 1 {
		t.Fatalf("%d messages wait: %v", messages, err)
	}
	notes, err := r.NoteSigner(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const forge, unlock, lock = "INSERT INTO pgconsent.sweep_note (subject, what, code) VALUES ('ada', 'deleted', %s)",
		"ALTER TABLE pgconsent.outbox DISABLE TRIGGER pgconsent_refuse; ",
		"; ALTER TABLE pgconsent.outbox ENABLE ALWAYS TRIGGER pgconsent_refuse"
	for _, change := range []struct{ apply, undo string }{
		{"CREATE TABLE kept AS TABLE pgconsent.outbox; " + unlock + "DELETE FROM pgconsent.outbox" + lock, "INSERT INTO pgconsent.outbox TABLE kept"},
		{"UPDATE pgconsent.outbox SET next_at = 'infinity'", "UPDATE pgconsent.outbox SET next_at = now()"},
		{fmt.Sprintf(forge, "NULL"), "DELETE FROM pgconsent.sweep_note"},
		{fmt.Sprintf(forge, "'1.00000000000000000000000000000000.00'"), "DELETE FROM pgconsent.sweep_note"},
		{fmt.Sprintf(forge, "'"+notes.Code("eve")+"'"), "DELETE FROM pgconsent.sweep_note"},
		{"CREATE TABLE changes AS TABLE pgconsent.change; TRUNCATE pgconsent.change", "INSERT INTO pgconsent.change TABLE changes"},
		{"DELETE FROM pgconsent.change WHERE xid <> '0'", "INSERT INTO pgconsent.change SELECT * FROM changes WHERE xid <> '0'"},
		{"REVOKE SELECT ON pgconsent.outbox FROM pgconsent_control", "GRANT SELECT ON pgconsent.outbox TO pgconsent_control"},
		{"UPDATE pgconsent.outbox SET subject = 'eve'", "UPDATE pgconsent.outbox SET subject = 'ada'"},
		{"UPDATE pgconsent.outbox SET event = 'rejected'", "UPDATE pgconsent.outbox SET event = 'approved'"},
		{"UPDATE pgconsent.outbox SET categories = '{}'",
			"UPDATE pgconsent.outbox AS o SET categories = r.categories FROM pgconsent.consent_record AS r WHERE r.number = o.number"},
		{"INSERT INTO pgconsent.outbox (number, recorded_at, subject, event, state, categories) VALUES (99, " +
			"now(), 'ada', 'revoked', 'revoked', '{}')", "DELETE FROM pgconsent.outbox WHERE number = 99"},
		{"INSERT INTO pgconsent.sweep_erased VALUES ('ada', now())", "DELETE FROM pgconsent.sweep_erased WHERE subject = 'ada'"},
		{"UPDATE pgconsent.sweep_state SET epoch = 1000", "UPDATE pgconsent.sweep_state SET epoch = 0"},
		{"UPDATE pgconsent.sweep_state SET finished_at = now() + interval '1 day'", "UPDATE pgconsent.sweep_state SET finished_at = now()"},
	} {
		for _, sql := range []string{change.apply, change.undo} {
			if _, err := conn.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
			report, err := r.Verify(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if found := len(report.Findings) > 0; found != (sql == change.apply) {
				t.Errorf("%s: %v", sql, report.Findings)
			}
		}
	}
	if _, err := conn.Exec(t.Context(), fmt.Sprintf(forge, "'"+notes.Code("ada")+"'")); err != nil {
		t.Fatal(err)
	}
	requireVerified(t, r) // with the right code it counts as written by the sweeper
	for _, sql := range []string{"DELETE FROM pgconsent.outbox", "TRUNCATE pgconsent.outbox"} {
		if _, err := conn.Exec(t.Context(), sql); err == nil {
			t.Errorf("not refused: %s", sql)
		}
	}
	if _, err := conn.Exec(t.Context(), "UPDATE pgconsent.outbox SET sent_at = now() - interval '31 days'; DELETE FROM pgconsent.outbox"); err == nil {
		t.Error("a message went before the 30 days were over after its record")
	}
}
