package registry

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
)

// executeWithoutTriggers changes tables with their triggers disabled, as only a superuser can.
func executeWithoutTriggers(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	for _, sql := range []string{"ALTER TABLE pgconsent.consent_record DISABLE TRIGGER USER", sql,
		"ALTER TABLE pgconsent.consent_record ENABLE TRIGGER USER"} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// If a subject's record was altered, nothing more is granted to that subject. Withdrawing still works: all of the
// subject's active consents end, and the data so far is void.
func TestWithdrawalOfAlteredRecords(t *testing.T) {
	db := database(t)
	r := open(t, db, defaults)
	conn := db.Connect(t, "postgres")
	mustExecute(t, r, grant("bob", consent.StreamTemporary))
	for i, change := range []string{
		"state = 'withdrawn'", "state = 'refused'", "stream = NULL", "stream = 'ANONYMOUS'",
		"categories = '{RESEARCH}'", "purposes = '{all}'", "expires_at = 'infinity'", "expires_at = NULL",
		"given_at = NULL", "void_before = '-infinity'", "void_before = 'infinity'", "decayed_before = now()",
		"mac = hash", "hash = sha256(hash)", "controller = 'eve'",
	} {
		for name, caller := range map[string]consent.Party{
			"withdrawn": {Role: consent.RoleSubject}, "revoked": {Role: consent.RoleController, ID: "owner"}, "erased": {Role: consent.RoleSubject}} {
			for _, isNewest := range []bool{false, true} {
				if isNewest && strings.HasPrefix(change, "hash") {
					continue // the anchor names another hash, so that nobody is granted anything
				}
				ada := fmt.Sprintf("ada %d %s %v", i, name, isNewest)
				number := mustExecute(t, r, grant(ada, consent.StreamTemporary)).RecordNumber
				if !isNewest {
					mustExecute(t, r, grant("eve of "+ada, consent.StreamTemporary))
				}
				executeWithoutTriggers(t, conn, fmt.Sprintf("UPDATE pgconsent.consent_record SET %s WHERE number = %d", change, number))
				for _, command := range []consent.Command{
					grant(ada, consent.StreamTemporary),
					{Action: consent.ActionUpgrade, Subject: ada, Caller: subject(ada)},
					{Action: consent.ActionDegrade, Subject: ada, Stream: consent.StreamAnonymous, Caller: subject(ada)},
					{Action: consent.ActionInteract, Subject: ada, Caller: subject(ada)},
				} {
					if _, err := r.Execute(t.Context(), command); !errors.As(err, new(*TamperedError)) {
						t.Errorf("%s, %s: %s on what was altered: %v", ada, change, command.Action, err)
					}
				}
				endCommand := consent.Command{Action: consent.ActionRevoke, Subject: ada, Caller: caller}
				if name == "erased" {
					endCommand.Action = consent.ActionErase
				}
				if caller.Role == consent.RoleSubject {
					endCommand.Caller = subject(ada)
				}
				out, err := r.Execute(t.Context(), endCommand)
				if err != nil || out.Tampered == nil || out.RecordNumber == 0 {
					t.Errorf("%s, %s: the end is not recorded: %+v, %v", ada, change, out, err)
				}
				var activeCount, voidCount int
				if err := conn.QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE state = 'given' OR categories <> '{}' OR purposes <> '{}'),
					count(*) FILTER (WHERE void_before >= now() - interval '1 hour')
					FROM pgconsent.consent_current WHERE subject = $1`, ada).Scan(&activeCount, &voidCount); err != nil || activeCount != 0 ||
					name != "erased" && voidCount != 1 {
					t.Errorf("%s, %s: after it %d are in force, what was before is void in %d (%v)", ada, change, activeCount, voidCount, err)
				}
				if out, err := r.Execute(t.Context(), grant("bob", consent.StreamTemporary)); err != nil || out.Tampered != nil {
					t.Errorf("%s, %s: somebody else's: %+v, %v", ada, change, out, err)
				}
			}
		}
	}
}

// If the record of an appointment was altered or forged, the guardian may do nothing.
func TestGuardiansOfAlteredRecords(t *testing.T) {
	db := database(t)
	r := open(t, db, defaults)
	conn := db.Connect(t, "postgres")
	owner, sean := consent.Party{Role: consent.RoleController, ID: "owner"}, consent.Party{Role: consent.RoleGuardian, ID: "sean"}
	mustExecute(t, r, grant("ada", consent.StreamTemporary))
	mustExecute(t, r, consent.Command{Action: consent.ActionAppoint, Subject: "ada", Guardian: "sean", Caller: owner})
	mustExecute(t, r, consent.Command{Action: consent.ActionDismiss, Subject: "ada", Guardian: "sean", Caller: owner})
	mustExecute(t, r, grant("bob", consent.StreamTemporary))
	executeWithoutTriggers(t, conn, `UPDATE pgconsent.consent_record SET event = 'appointed',
		state = (SELECT state FROM pgconsent.consent_record WHERE event = 'appointed') WHERE event = 'dismissed';
		INSERT INTO pgconsent.consent_guardian SELECT 'ada', 'sean', max(number) FROM pgconsent.consent_record WHERE event = 'appointed'`)
	var tampered *TamperedError
	for _, action := range []consent.Action{consent.ActionGrant, consent.ActionRevoke, consent.ActionErase, consent.ActionNoteReport} {
		command := consent.Command{Action: action, Subject: "ada", Caller: sean}
		if action == consent.ActionGrant {
			command.Stream = consent.StreamTemporary
		}
		if _, err := r.Execute(t.Context(), command); !errors.As(err, &tampered) {
			t.Errorf("%s by a guardian of an altered record: %v", action, err)
		}
	}
	if names, err := r.Guardians(t.Context(), "ada"); !errors.As(err, &tampered) {
		t.Errorf("guardians: %v, %v", names, err)
	}
	if names, err := r.Wards(t.Context(), "sean"); !errors.As(err, &tampered) {
		t.Errorf("wards: %v, %v", names, err)
	}
}

// If the record that requests a partnership was altered, nobody can approve it, even if it is not the newest record.
// Otherwise an agent could approve its own request.
func TestPartnershipsOfAlteredRequests(t *testing.T) {
	db := database(t)
	r := open(t, db, defaults)
	conn := db.Connect(t, "postgres")
	chat := consent.Party{Role: consent.RoleAgent, ID: "chat"}
	mustExecute(t, r, grant("ada", consent.StreamTemporary))
	mustExecute(t, r, consent.Command{Action: consent.ActionUpgrade, Subject: "ada", Caller: subject("ada")})
	mustExecute(t, r, consent.Command{Action: consent.ActionDecide, Subject: "ada", Decision: consent.DecisionDefer, Caller: chat})
	executeWithoutTriggers(t, conn, "UPDATE pgconsent.consent_record SET purposes = '{all}' WHERE event = 'requested'")
	if _, err := r.Execute(t.Context(), consent.Command{
		Action: consent.ActionDecide, Subject: "ada", Decision: consent.DecisionApprove, Caller: chat}); !errors.As(err, new(*TamperedError)) {
		t.Errorf("decided: %v", err)
	}
}
