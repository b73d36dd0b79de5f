package registry

import (
	"errors"
	"testing"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
)

// A guardian may act from the appointment until the dismissal, each time, and only for that subject.
func TestGuardiansActWhileAppointed(t *testing.T) {
	r := open(t, database(t), defaults)
	mustExecute(t, r, grant("ada", consent.StreamTemporary))
	mustExecute(t, r, grant("eve", consent.StreamTemporary))
	owner, sean := consent.Party{Role: consent.RoleController, ID: "owner"}, consent.Party{Role: consent.RoleGuardian, ID: "sean"}
	speaks := func(want bool) {
		t.Helper()
		_, err := r.Execute(t.Context(), consent.Command{Action: consent.ActionGrant, Subject: "ada", Stream: consent.StreamTemporary,
			Caller: sean})
		if want != (err == nil) || !want && !errors.As(err, new(*consent.ForbiddenError)) {
			t.Errorf("speaks: %v, want %v", err, want)
		}
		if _, err := r.Execute(t.Context(), consent.Command{Action: consent.ActionRevoke, Subject: "eve", Caller: sean}); !errors.As(err,
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
		mustExecute(t, r, consent.Command{Action: consent.ActionAppoint, Subject: "ada", Guardian: "sean", Caller: owner})
		speaks(true)
		mustExecute(t, r, consent.Command{Action: consent.ActionDismiss, Subject: "ada", Guardian: "sean", Caller: owner})
		speaks(false)
	}
}
