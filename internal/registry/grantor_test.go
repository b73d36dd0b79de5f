package registry

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
)

// The grantor in a record is the subject or guardian whose decision it is. It is empty if somebody else or the clock
// caused the record.
func TestGrantorOfRecords(t *testing.T) {
	r := open(t, database(t), defaults)
	owner, sean := consent.Party{Role: consent.RoleController, ID: "owner"}, consent.Party{Role: consent.RoleGuardian, ID: "sean"}
	app, chat := consent.Party{Role: consent.RoleApplication, ID: "app"}, consent.Party{Role: consent.RoleAgent, ID: "chat"}
	commands := []struct {
		consent.Command
		grantor string
	}{
		{consent.Command{Action: consent.ActionGrant, Stream: consent.StreamTemporary, Caller: subject("ada")}, "ada"},
		{consent.Command{Action: consent.ActionInteract, Caller: app}, "ada"},
		{consent.Command{Action: consent.ActionUpgrade, Caller: subject("ada")}, "ada"},
		{consent.Command{Action: consent.ActionDecide, Decision: consent.DecisionApprove, Caller: chat}, ""},
		{consent.Command{Action: consent.ActionRevoke, Caller: owner}, ""},
		{consent.Command{Action: consent.ActionAppoint, Guardian: "sean", Caller: owner}, ""},
		{consent.Command{Action: consent.ActionGrant, Stream: consent.StreamTemporary, Caller: sean}, "sean"},
		{consent.Command{Action: consent.ActionNoteReport, Caller: owner}, ""},
		{consent.Command{Action: consent.ActionRevoke, Caller: consent.Party{Role: consent.RoleSystem, ID: "import"}}, ""},
		{consent.Command{Action: consent.ActionDismiss, Guardian: "sean", Caller: owner}, ""},
		{consent.Command{Action: consent.ActionRefuse, Caller: subject("ada")}, "ada"},
	}
	want := map[int64]string{}
	for _, c := range commands {
		c.Subject = "ada"
		out, err := r.Execute(t.Context(), c.Command)
		if err != nil {
			t.Fatalf("%s by %s: %v", c.Action, c.Caller.Role, err)
		}
		if out.RecordNumber == 0 {
			t.Logf("%s by %s changed nothing", c.Action, c.Caller.Role)
		}
		want[out.RecordNumber] = c.grantor
	}
	history, err := r.History(t.Context(), "ada")
	if err != nil {
		t.Fatal(err)
	}
	recordCount := 0
	for _, rec := range history {
		grantor, ok := want[rec.Number]
		if ok {
			recordCount++
		}
		if ok && rec.Grantor != grantor || rec.Grantor != "" && rec.Grantor != "ada" && rec.Grantor != "sean" {
			t.Errorf("record %d, %s by %s: its grantor is %q, want %q", rec.Number, rec.Event, rec.RecordedBy.Role, rec.Grantor,
				grantor)
		}
	}
	if recordCount < len(commands)-1 {
		t.Errorf("%d of %d records were looked at", recordCount, len(commands))
	}
}
