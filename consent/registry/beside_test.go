package registry

import (
	"testing"

	"github.com/pgconsent/pgconsent/consent"
)

// What stands beside the records and is written by hand is found: messages that nobody sent, deletions that nobody asked for, a sweep that
// never was.
func TestWhatStandsBesideIsFound(t *testing.T) {
	db := database(t)
	r := open(t, db, defaults)
	for _, who := range []string{"ada", "bob"} {
		must(t, r, consent.Command{Do: consent.Upgrade, Subject: who, By: subject(who)})
		must(t, r, consent.Command{Do: consent.DecidePartnership, Subject: who, Decision: consent.TaskComplete, By: consent.Party{Role: consent.RoleAgent, ID: "chat"}})
	}
	must(t, r, consent.Command{Do: consent.Erase, Subject: "bob", By: subject("bob")})
	sound(t, r)
	conn := db.Connect(t, "postgres")
	var messages int
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pgconsent.outbox").Scan(&messages); err != nil || messages != 1 {
		t.Fatalf("%d messages wait: %v", messages, err)
	}
	for _, change := range []struct{ do, undo string }{
		{"UPDATE pgconsent.outbox SET subject = 'eve'", "UPDATE pgconsent.outbox SET subject = 'ada'"},
		{"UPDATE pgconsent.outbox SET event = 'rejected'", "UPDATE pgconsent.outbox SET event = 'approved'"},
		{"UPDATE pgconsent.outbox SET categories = '{}'", "UPDATE pgconsent.outbox AS o SET categories = r.categories FROM pgconsent.consent_record AS r WHERE r.number = o.number"},
		{"INSERT INTO pgconsent.outbox (number, recorded_at, subject, event, state, categories) VALUES (99, now(), 'ada', 'revoked', 'revoked', '{}')", "DELETE FROM pgconsent.outbox WHERE number = 99"},
		{"INSERT INTO pgconsent.sweep_erased VALUES ('ada', now())", "DELETE FROM pgconsent.sweep_erased WHERE subject = 'ada'"},
		{"UPDATE pgconsent.sweep_state SET epoch = 1000", "UPDATE pgconsent.sweep_state SET epoch = 0"},
		{"UPDATE pgconsent.sweep_state SET finished_at = now() + interval '1 day'", "UPDATE pgconsent.sweep_state SET finished_at = now()"},
	} {
		for _, sql := range []string{change.do, change.undo} {
			if _, err := conn.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
			report, err := r.Verify(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if found := len(report.Findings) > 0; found != (sql == change.do) {
				t.Errorf("%s: %v", sql, report.Findings)
			}
		}
	}
}
