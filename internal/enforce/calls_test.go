package enforce

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/test/tier"
)

// The audit records calls of services with references for persons. A refused call makes no reference for a new person.
func TestCallsAreRecorded(t *testing.T) {
	w := start(t, nil)
	about := func(c audit.Call, ids ...string) audit.Call {
		c.Interface, c.Database, c.Subjects = "http", "memories", ids
		return c
	}
	for _, c := range []audit.Call{
		about(audit.Call{CallerName: "marker-ada", Role: "subject", Operation: "consent.status", Outcome: audit.OutcomeDone}, "marker-ada"),
		about(audit.Call{CallerName: "auditor", Role: "admin", Operation: "consent.history", Outcome: audit.OutcomeDone}, "marker-ada", "marker-bob"),
		about(audit.Call{CallerName: "auditor", Role: "admin", Operation: "consent.history", Outcome: audit.OutcomeRefused, Code: "PC404"}, "marker-nobody",
			"marker-bob"),
		about(audit.Call{CallerName: "auditor", Role: "admin", Operation: "consent.audit", AboutEverybody: true, Outcome: audit.OutcomeDone}),
	} {
		if err := w.RecordCall(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	refs := map[string]string{}
	rows, err := w.dba.Query(t.Context(), "SELECT subject, 'ref:' || ref FROM pgconsent.audit_subject")
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var name, ref string
		if err := rows.Scan(&name, &ref); err != nil {
			t.Fatal(err)
		}
		refs[name] = ref
	}
	if len(refs) != 2 || refs["marker-nobody"] != "" {
		t.Errorf("references of %v, want those of ada and bob", refs)
	}
	found := w.records("call")
	want := []string{
		fmt.Sprintf("%s subject [%s] done", refs["marker-ada"], refs["marker-ada"]),
		fmt.Sprintf("auditor admin [%s %s] done", refs["marker-ada"], refs["marker-bob"]),
		fmt.Sprintf("auditor admin [%s] refused", refs["marker-bob"]),
		"auditor admin [] done",
	}
	if len(found) != len(want) {
		t.Fatalf("%d calls are recorded, want %d", len(found), len(want))
	}
	for i, c := range found {
		who, _ := c["about"].([]any)
		if got := fmt.Sprint(c["by"], " ", c["role"], " ", who, " ", c["outcome"]); got != want[i] {
			t.Errorf("call %d is %s, want %s", i, got, want[i])
		}
	}
	raw, err := os.ReadFile(w.audit + "/audit-000001.jsonl")
	if err != nil || bytes.Contains(raw, []byte("marker")) {
		t.Errorf("a name is in the audit (%v)", err)
	}
}

// A call that cannot be recorded is not answered, and does not wait forever.
func TestUnrecordedCallsAreRefused(t *testing.T) {
	tier.All(t)
	w := start(t, nil)
	call := audit.Call{Interface: "http", CallerName: "auditor", Role: "admin", Database: "memories", Operation: "consent.history",
		Subjects: []string{ann}, Outcome: audit.OutcomeDone}
	if err := w.RecordCall(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	w.exec("BEGIN; LOCK TABLE pgconsent.audit_subject")
	err := w.RecordCall(t.Context(), call)
	var refused *sqlstate.Error
	if !errors.As(err, &refused) || refused.Code != sqlstate.IOError {
		t.Error(err)
	}
	w.exec("ROLLBACK")
	if err := w.RecordCall(t.Context(), call); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	// The same holds if the record cannot be written.
	if err := os.Remove(filepath.Join(w.audit, "audit-000001.jsonl")); err != nil {
		t.Fatal(err)
	}
	for _, outcome := range []string{audit.OutcomeDone, audit.OutcomeRefused} {
		call.Outcome = outcome
		if err := w.RecordCall(t.Context(), call); !errors.As(err, &refused) || refused.Code != sqlstate.IOError {
			t.Errorf("%s, without an audit: %v", outcome, err)
		}
	}
}
