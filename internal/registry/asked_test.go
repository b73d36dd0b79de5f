package registry

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
)

// A request key identifies one command. A command with the same key and any other content, caller included, is refused,
// and is not told the first one's result.
func TestRequestKeyBelongsToOneCommand(t *testing.T) {
	r := open(t, database(t), defaults)
	command := grant("ada", consent.StreamTemporary)
	command.RequestKey = "form 12"
	mustExecute(t, r, command)
	for name, value := range map[string]any{
		"Do": consent.ActionRevoke, "Grantee": "vet", "Scope": "ctx:health", "Stream": consent.StreamAnonymous,
		"Categories": []string{consent.CategoryEssential + "/id"}, "Purposes": []string{"care"},
		"For": time.Hour, "Decision": consent.DecisionReject, "Guardian": "bob", "By": consent.Party{
			Role: consent.RoleGuardian, ID: "bob"}, "Reason": "why", "Evidence": "what",
		"Subject": nil, "Request": nil, "Via": nil, // keys are per subject; Request is the key; Via may differ
	} {
		field, ok := reflect.TypeFor[consent.Command]().FieldByName(name)
		if !ok || value == nil {
			continue
		}
		otherCommand := command
		reflect.ValueOf(&otherCommand).Elem().FieldByIndex(field.Index).Set(reflect.ValueOf(value))
		if out, err := r.Execute(t.Context(), otherCommand); !errors.As(err, new(*consent.ConflictError)) || out.RecordNumber != 0 {
			t.Errorf("with another %s: %+v, %v", name, out, err)
		}
	}
	if n := reflect.TypeFor[consent.Command]().NumField(); n != 15 {
		t.Errorf("a command has %d members: say of each what it does to a key", n)
	}
	command.Interface = "elsewhere"
	if out := mustExecute(t, r, command); !out.IsRepeated {
		t.Error("a repeated call is not")
	}
}

// If the anchor names a record that the database lacks, nothing is granted. Withdrawals are recorded all the same.
func TestNoGrantsWithoutTheAnchoredRecord(t *testing.T) {
	for name, change := range map[string]func(*recordHead){
		"another registry": func(h *recordHead) { h.Registry[0]++ },
		"another record":   func(h *recordHead) { h.Hash[0]++ },
		"a later record":   func(h *recordHead) { h.Number++ },
	} {
		t.Run(name, func(t *testing.T) {
			r := open(t, database(t), defaults)
			mustExecute(t, r, grant("ada", consent.StreamTemporary))
			a, err := openAnchor(t.Context(), r.Anchor, r.Database, r.Keys)
			if err != nil {
				t.Fatal(err)
			}
			h, ok, err := a.head()
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			change(&h)
			if err := errors.Join(a.prepare(h, time.Now()), a.commit()); err != nil {
				t.Fatal(err)
			}
			a.close()
			checkGrantFails := func() {
				t.Helper()
				if _, err := r.Execute(t.Context(), grant("bob", consent.StreamTemporary)); !errors.As(err, new(*TamperedError)) {
					t.Errorf("%v, want a TamperedError", err)
				}
			}
			checkGrantFails()
			out, err := r.Execute(t.Context(), consent.Command{Action: consent.ActionRevoke, Subject: "ada", Caller: subject("ada")})
			if err != nil || out.Tampered == nil || out.Consent.State != consent.StateWithdrawn {
				t.Errorf("%+v %v", out, err)
			}
			checkGrantFails() // after a withdrawal too
		})
	}
}
