package policy_test

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// A policy gets a warning if agents' INSERTs leave out a column of a unique key. Warnings are shown beside errors, too.
func TestKeysThatInsertsLeaveOut(t *testing.T) {
	snap := catalog.NewSnapshot(catalog.Spec{Database: "d", ServerVersion: 150000, SearchPath: []string{"public"}, Relations: []*catalog.Relation{{
		Name: catalog.Name{Schema: "public", Name: "t"}, Kind: catalog.Table, PrimaryKey: []string{"id"},
		UniqueKeys: []catalog.Key{{Name: "t_pkey", Columns: []string{"id"}, EqualColumns: []string{"id"}},
			{Name: "t_email_key", Columns: []string{"email"}, EqualColumns: []string{"email"},
				NullsDistinctColumns: []string{"email"}}},
		Columns: []catalog.Column{{Name: "id", Type: "uuid", NotNull: true, Default: "gen_random_uuid()"}, {Name: "owner", Type: "uuid"},
			{Name: "email", Type: "text"}, {Name: "note", Type: "text"}},
	}}})
	const leftOutWarning = "agents insert rows into public.t without email, which is part of the key t_email_key"
	for table, want := range map[string]string{
		"write: { commands: [insert] }":                                                      leftOutWarning,
		"write: { commands: [insert], accept: [conflicts] }":                                 "",
		"write: { commands: [insert], columns: [note] }":                                     "",
		"write: { commands: [update] }":                                                      "",
		"write: { commands: [insert] } }\n  none: { rows: open":                              leftOutWarning,
		"write: { commands: [insert], stamp: { email: { value: x } }, accept: [conflicts] }": "",
	} {
		doc, err := policy.Parse("p.yaml", []byte(head+"tables:\n  t: { rows: [ { own: { column: owner, is: user } } ], "+table+" }\n"))
		if err != nil {
			t.Fatal(err)
		}
		warnings, err := policy.Lint(doc, snap, policy.LintContext{})
		if isInvalid := strings.Contains(table, "none"); (err != nil) != isInvalid {
			t.Errorf("%s: %v", table, err)
		}
		if err != nil {
			var otherErrors policy.Errors
			if otherErrors, warnings = policy.LintRest(doc, snap, policy.LintContext{}, err.(policy.Errors)); len(otherErrors) > 0 {
				t.Errorf("%s: %v", table, otherErrors)
			}
		}
		warningText := ""
		for _, w := range warnings {
			warningText += w.Error() + "\n"
		}
		if want == "" && strings.Contains(warningText, "without email") || !strings.Contains(warningText, want) {
			t.Errorf("%s: %s", table, warningText)
		}
	}
}
