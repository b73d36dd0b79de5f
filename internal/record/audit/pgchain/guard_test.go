package pgchain

import (
	"strings"
	"testing"
)

// MissingGuards finds triggers, rules and properties of the table by which records could be lost. TryAppend adds a
// record for a test, and reports if it is lost at once.
func TestMissingGuards(t *testing.T) {
	db := database(t)
	if err := TryAppend(t.Context(), db.Connect(t, "postgres")); err != nil {
		t.Fatal(err)
	}
	const createTriggerFunction = "CREATE FUNCTION public.takes() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; "
	for sql, isRecordLost := range map[string]bool{
		createTriggerFunction + "CREATE TRIGGER a BEFORE INSERT ON pgconsent.audit_record FOR EACH ROW EXECUTE FUNCTION public.takes()": true,
		createTriggerFunction + "CREATE TRIGGER a AFTER INSERT ON pgconsent.audit_record FOR EACH ROW EXECUTE FUNCTION public.takes()":  false,
		"CREATE RULE a AS ON INSERT TO pgconsent.audit_record DO INSTEAD NOTHING":                                                       true,
		"ALTER TABLE pgconsent.audit_record SET UNLOGGED":                                                                               false,
		"ALTER TABLE pgconsent.audit_record ENABLE ROW LEVEL SECURITY":                                                                  false,
		"CREATE TABLE public.child () INHERITS (pgconsent.audit_retired)":                                                               false,
	} {
		dba := db.Connect(t, "postgres")
		if _, err := dba.Exec(t.Context(), "BEGIN"); err != nil {
			t.Fatal(err)
		}
		if _, err := dba.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
		if found, err := MissingGuards(t.Context(), dba); err != nil || len(found) != 1 {
			t.Errorf("%s: %q, %v", sql, found, err)
		}
		if err := TryAppend(t.Context(), dba); isRecordLost != (err != nil && strings.Contains(err.Error(), "is missing")) {
			t.Errorf("%s: a record is said to be lost: %v", sql, err)
		}
		_ = dba.Close(t.Context()) // this rolls the change back
	}
}
