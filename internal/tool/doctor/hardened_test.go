package doctor_test

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/tool/doctor"
)

// The doctor reports which of a database's functions make statements need hardened plans, which prevent the use of
// indexes.
func TestTablesThatNeedHardenedPlans(t *testing.T) {
	t.Parallel()
	db := migratedDatabase(t)
	if found := examine(t, db, subject(t, db)); !has(found, "hardened_plan", doctor.SeverityOK) {
		t.Errorf("hardened_plan: %v", found)
	}
	exec(t, db.Connect(t, "postgres"), `CREATE FUNCTION public.normal(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN lower($1); END';
		CREATE INDEX letters_body ON public.letters (public.normal(body)); CREATE INDEX people_name ON public.people ((name || public.normal('x')));
		CREATE DOMAIN public.title AS text CHECK (VALUE = public.normal(VALUE)); ALTER TABLE public.letters ADD COLUMN title public.title;
		CREATE TABLE public.notes (id bigint PRIMARY KEY, person_id bigint)`)
	want := map[string]string{
		"public.letters ":             "public.letters, column title: type public.title",
		"public.notes ":               "public.people, index people_name: public.normal(text) (which its rules look into)",
		"public.memories ":            "public.people, index people_name: public.normal(text) (which its rules look into)",
		"public.memory_participants ": "public.people, index people_name: public.normal(text) (which its rules look into)",
		"public.people ":              "public.people, index people_name: public.normal(text)",
	}
	// A rule for writing counts like one for reading.
	s, err := compileRules(t.Context(), db.Connect(t, "pgconsent_control"),
		strings.Replace(rules, "views:",
			"  notes: { rows: open, write: { commands: [insert], check: [ { visible: { people: { id: person_id } } } ] } }\nviews:", 1))
	if err != nil {
		t.Fatal(err)
	}
	found := examine(t, db, s)
	for _, f := range found {
		if f.ID != "hardened_plan" {
			continue
		}
		for table, functions := range want {
			if f.Severity == doctor.SeverityAdvice && strings.HasPrefix(f.Problem, "statements about "+table) &&
				strings.HasSuffix(f.Problem, ": "+functions) {
				delete(want, table)
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("not said: %v\nof %v", want, found)
	}
}
