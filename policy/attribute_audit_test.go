package policy_test

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/policy"
)

// For each policy, the audit settings of its attributes: how a record contains an attribute's value, and for whose key
// it is sealed.
func TestAuditSettingsOfAttributes(t *testing.T) {
	ownTables := "tables: { memories: { rows: [ own: { column: user_id, is: user } ] } }"
	for _, c := range []struct{ text, subject, purpose, wantError string }{
		{"attributes: { user: { type: uuid, source: credential } }\n" + ownTables, "user", "", ""},
		{"attributes: { user: { type: uuid, source: credential, audit: true } }\n" + ownTables, "user", "", ""},
		{"attributes: { user: { type: uuid, source: credential, audit: false } }\n" + ownTables, "user", "", ""},
		{"attributes: { user: { type: uuid, source: credential }, who: { type: text, source: credential, audit: " +
			"subject }, why: { type: text, source: credential, audit: purpose } }\n" + ownTables, "who", "why", ""},
		// a value that the session itself sets is not trusted as the name of a person
		{"attributes: { user: { type: uuid, source: set, audit: reference, within: { values: " +
			"[6f1e0000-0000-4000-8000-000000000001] } } }\n" + ownTables, "", "", ""},
		{"attributes: { user: { type: uuid, source: credential }, other: { type: uuid, source: credential } }\n" +
			"tables: { memories: { rows: [ any: [ own: { column: user_id, is: user }, own: { column: user_id, is: other } ] ] } }", "", "", ""},
		{"attributes: { user: { type: uuid, source: credential, audit: subject }, who: { type: text, source: " +
			"credential, audit: subject } }\n" + ownTables, "", "", "attribute who cannot be the subject of records: user is"},
		{"attributes: { user: { type: uuid, source: credential, audit: whom } }\n" + ownTables, "", "",
			"write true, reference, subject or purpose"},
		{"attributes: { user: { type: uuid, source: credential, audit: 1 } }\n" + ownTables, "", "", "write true, reference, subject or purpose"},
		{"attributes: { user: { type: uuid, source: credential } }\ntables: { memories: { rows: [ own: { column: " +
			"user_id, is: user } ], audit: { keys: yes } } }", "", "", "keys is true or false"},
		{"attributes: { user: { type: uuid, source: credential } }\ntables: { memories: { rows: [ own: { column: " +
			"user_id, is: user } ], audit: { rows: true } } }", "", "", `unknown key "rows" in audit`},
	} {
		doc, err := policy.Parse("p.yaml", []byte("version: 1\n"+c.text))
		var p *policy.Policy
		if err == nil {
			p, err = policy.Compile(doc, snapshot())
		}
		if c.wantError != "" {
			if err == nil || !strings.Contains(err.Error(), c.wantError) {
				t.Errorf("%s: %v, want %q", c.text, err, c.wantError)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if p.SubjectAttribute() != c.subject || p.PurposeAttribute() != c.purpose {
			t.Errorf("%s: subject %q, purpose %q; want %q, %q", c.text, p.SubjectAttribute(), p.PurposeAttribute(), c.subject,
				c.purpose)
		}
	}
}
