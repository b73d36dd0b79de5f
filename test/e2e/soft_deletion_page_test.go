package e2e

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// docs/reference/policy-write.md describes rows that are marked as deleted, where marked rows are hidden. Its policy
// installs. An UPDATE of the mark is refused, and DELETE marks a visible row.
func TestSoftDeletionPage(t *testing.T) {
	tier.All(t)
	t.Parallel()
	text, err := os.ReadFile("../../docs/reference/policy-write.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "## Rows that are marked as deleted")
	blocks := regexp.MustCompile("(?s)```(?:yaml|sql)\n(.*?)```").FindAllStringSubmatch(section, -1)
	if !ok || len(blocks) < 2 {
		t.Fatalf("the section has %d blocks", len(blocks))
	}
	for _, mode := range harness.Modes(enforcedModes...) {
		db := pgtest.Database(t)
		harness.Exec(t, db, blocks[0][1]+`
			INSERT INTO entries (author, title) VALUES ('mine', 'one'), ('mine', 'two'), ('yours', 'one'), ('yours', 'three');`)
		proxy := harness.Start(t, mode, harness.Database{
			Name: "entries", DB: db, Policy: blocks[1][1], SearchPath: []string{"public"}}, map[string]string{"user": "mine"})
		agent := proxy.Agent(t, "agent", "entries")
		if a := harness.Ask(agent, "UPDATE entries SET deleted_at = now() WHERE title = 'one'"); a.Code != "42501" {
			t.Errorf("%s: a mark by UPDATE: %q %s", mode.Name, a.Code, a.Err)
		}
		if a := harness.Ask(agent, "DELETE FROM entries WHERE title = 'one'"); a.Err != "" {
			t.Errorf("%s: DELETE: %s", mode.Name, a.Err)
		}
		if got := oneText(agent, "SELECT string_agg(title, ' ' ORDER BY title) FROM entries"); got != "two" {
			t.Errorf("%s: what is left shows as %q", mode.Name, got)
		}
		owner := harness.Connect(t, db.DSN("postgres", ""))
		if got := oneText(owner,
			"SELECT string_agg(author || ' ' || title || ' ' || (deleted_at IS NOT NULL), ', ' ORDER BY author, "+
				"title) FROM entries"); got != "mine one true, mine two false, yours one false, yours three false" {
			t.Errorf("%s: the table holds %s", mode.Name, got)
		}
	}
}
