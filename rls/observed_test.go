package rls_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
)

// Agents see every row of a table that is only observed. The proxy can compare these rows with those that the rule
// would show, even if no enforced rule needs the lookup views.
func TestObservedTablesCanBeCompared(t *testing.T) {
	w := newWorld(t)
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(`version: 1
attributes: { user: { type: uuid, source: credential } }
tables:
  memories:
    observe: true
    rows:
      - own: { column: user_id, is: user }
      - consent: { every: [ memory_participants: { memory_id: id }, people: { id: person_id } ], status: consent_status, is: granted }
`), 0o600); err != nil {
		t.Fatal(err)
	}
	w.compile(file, rls.Options{})
	w.migrate()
	enforced, refusal := rewrite.New(w.snap, w.pol.Enforced(), rewrite.AlwaysInjectedMode).Rewrite(titlesQuery, false)
	if refusal != nil {
		t.Fatal(refusal)
	}
	agent := w.agent(user1)
	w.want(agent, "SELECT count(*) FROM memories", "8")
	w.want(agent, w.key().Sign(claims(agent, user1).Profile, enforced.Text), visibleTitles)
}
