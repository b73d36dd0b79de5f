package registry

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
)

// The grantor of a record is the subject or a guardian, whose will it says, and nobody where somebody else or the clock
// acted.
func TestWhoseWillARecordSays(t *testing.T) {
	r := open(t, database(t), defaults)
	owner, sean := consent.Party{Role: consent.RoleController, ID: "owner"}, consent.Party{Role: consent.RoleGuardian, ID: "sean"}
	app, chat := consent.Party{Role: consent.RoleApplication, ID: "app"}, consent.Party{Role: consent.RoleAgent, ID: "chat"}
	commands := []struct {
		consent.Command
		grantor string
	}{
		{consent.Command{Do: consent.Grant, Stream: consent.Temporary, By: subject("ada")}, "ada"},
		{consent.Command{Do: consent.Interact, By: app}, "ada"},
		{consent.Command{Do: consent.Upgrade, By: subject("ada")}, "ada"},
		{consent.Command{Do: consent.DecidePartnership, Decision: consent.TaskComplete, By: chat}, ""},
		{consent.Command{Do: consent.Revoke, By: owner}, ""},
		{consent.Command{Do: consent.Appoint, Guardian: "sean", By: owner}, ""},
		{consent.Command{Do: consent.Grant, Stream: consent.Temporary, By: sean}, "sean"},
		{consent.Command{Do: consent.Report, By: owner}, ""},
		{consent.Command{Do: consent.Revoke, By: consent.Party{Role: consent.RoleSystem, ID: "import"}}, ""},
		{consent.Command{Do: consent.Dismiss, Guardian: "sean", By: owner}, ""},
		{consent.Command{Do: consent.Refuse, By: subject("ada")}, "ada"},
	}
	want := map[int64]string{}
	for _, c := range commands {
		c.Subject = "ada"
		out, err := r.Execute(t.Context(), c.Command)
		if err != nil {
			t.Fatalf("%s by %s: %v", c.Do, c.By.Role, err)
		}
		if out.RecordNumber == 0 {
			t.Logf("%s by %s changed nothing", c.Do, c.By.Role)
		}
		want[out.RecordNumber] = c.grantor
	}
	history, err := r.History(t.Context(), "ada")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, rec := range history {
		grantor, ok := want[rec.Number]
		if ok {
			seen++
		}
		if ok && rec.Grantor != grantor || rec.Grantor != "" && rec.Grantor != "ada" && rec.Grantor != "sean" {
			t.Errorf("record %d, %s by %s: its grantor is %q, want %q", rec.Number, rec.Event, rec.RecordedBy.Role, rec.Grantor,
				grantor)
		}
	}
	if seen < len(commands)-1 {
		t.Errorf("%d of %d records were looked at", seen, len(commands))
	}
}
