package enforce

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/test/tier"
)

// The enforcer watches the policy file and the files that it includes. If they have an error, the old policy stays
// active. If they need a migration, they wait for it. At no time is a table unprotected.
func TestPolicyFilesAreWatched(t *testing.T) {
	tier.All(t)
	w := start(t, nil)
	c := w.client("caregiver")
	closed := func() {
		t.Helper()
		c.want(titles, "lake", "sea")
		c.refused("SELECT person_id FROM memory_participants", sqlstate.InsufficientPrivilege)
	}
	times := func(text string) int { return strings.Count(w.log.String(), text) }

	w.write(rules + "  memory_participants: { rows: opne }\n")
	eventually(t, "the wrong policy is refused", func() bool { return times("the policy was not reloaded") == 1 })
	closed()

	// The same tables, split into two files: nothing has to be installed.
	head, tables, _ := strings.Cut(rules, "tables:\n")
	more := filepath.Join(filepath.Dir(w.policy), "more", "tables.yaml")
	if err := os.MkdirAll(filepath.Dir(more), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(more, []byte("version: 1\ntables:\n"+tables), 0o600); err != nil {
		t.Fatal(err)
	}
	w.write(head + "include: [more/*.yaml]\n")
	eventually(t, "the files have changed", func() bool { return times("the files of the policy have changed") == 2 })
	closed()

	if err := os.WriteFile(more, []byte("version: 1\ntables:\n"+
		tables+"  memory_participants: { rows: [ { visible: { memries: { id: memory_id } } } ] }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the wrong included file is refused", func() bool { return times("the policy was not reloaded") == 2 })
	closed()

	_, whole, _ := strings.Cut(wider, "tables:\n")
	if err := os.WriteFile(filepath.Join(filepath.Dir(more), "another.yaml"), []byte("version: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(more, []byte("version: 1\ntables:\n"+whole), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new policy waits", func() bool { return times("policy_pending") >= 1 })
	closed()
	if err := install(t.Context(), w.dba, wider); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the waiting policy is in force", func() bool {
		got, err := c.query("SELECT person_id FROM memory_participants")
		return err == nil && slices.Equal(got, []string{"1"})
	})

	if err := os.Remove(w.policy); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the policy is gone", func() bool { return times("the policy was not reloaded") >= 3 })
	c.want(titles, "lake", "sea")
}

// A policy file may name a table that does not exist yet. When the table has been created and the policy migrated, the
// policy becomes active.
func TestAPolicyMayComeBeforeItsTable(t *testing.T) {
	tier.All(t)
	w := start(t, nil)
	c := w.client("caregiver")
	named := rules + "  later: { rows: open }\n"
	w.write(named)
	eventually(t, "the policy does not fit", func() bool { return strings.Contains(w.log.String(), "the policy was not reloaded") })
	c.want(titles, "lake", "sea")
	if _, err := w.dba.Exec(t.Context(), "CREATE TABLE later (id integer PRIMARY KEY); INSERT INTO later VALUES (7)"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it waits for migrate", func() bool { return strings.Contains(w.log.String(), "policy_pending") })
	c.want(titles, "lake", "sea")
	if err := install(t.Context(), w.dba, named); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is in force", func() bool {
		got, err := c.query("SELECT id FROM later")
		return err == nil && slices.Equal(got, []string{"7"})
	})
	c.want(titles, "lake", "sea")
}
