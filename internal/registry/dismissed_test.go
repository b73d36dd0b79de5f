package registry

import (
	"errors"
	"testing"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
)

// A guardian speaks from the appointment to the dismissal, each time, and for nobody else.
func TestGuardiansSpeakWhileTheyAreAppointed(t *testing.T) {
	r := open(t, database(t), defaults)
	must(t, r, grant("ada", consent.Temporary))
	must(t, r, grant("eve", consent.Temporary))
	owner, sean := consent.Party{Role: consent.RoleController, ID: "owner"}, consent.Party{Role: consent.RoleGuardian, ID: "sean"}
	speaks := func(want bool) {
		t.Helper()
		_, err := r.Execute(t.Context(), consent.Command{Do: consent.Grant, Subject: "ada", Stream: consent.Temporary,
			By: sean})
		if want != (err == nil) || !want && !errors.As(err, new(*consent.ForbiddenError)) {
			t.Errorf("speaks: %v, want %v", err, want)
		}
		if _, err := r.Execute(t.Context(), consent.Command{Do: consent.Revoke, Subject: "eve", By: sean}); !errors.As(err,
			new(*consent.ForbiddenError)) {
			t.Errorf("for somebody else: %v", err)
		}
		if named, err := r.Guardians(t.Context(), "ada"); err != nil || (len(named) == 1) != want {
			t.Errorf("guardians are %v, %v", named, err)
		}
		if wards, err := r.Wards(t.Context(), "sean"); err != nil || (len(wards) == 1) != want {
			t.Errorf("wards are %v, %v", wards, err)
		}
	}
	speaks(false)
	for range 2 {
		must(t, r, consent.Command{Do: consent.Appoint, Subject: "ada", Guardian: "sean", By: owner})
		speaks(true)
		must(t, r, consent.Command{Do: consent.Dismiss, Subject: "ada", Guardian: "sean", By: owner})
		speaks(false)
	}
}
