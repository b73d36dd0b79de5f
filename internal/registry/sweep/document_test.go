package sweep

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
)

// Each policy of docs/reference/lifecycle.md compiles with its schema, and does what the page says.
func TestLifecycleDocument(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/lifecycle.md")
	if err != nil {
		t.Fatal(err)
	}
	codeBlocks := regexp.MustCompile("(?s)```(yaml|sql)\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	schema, found := "", 0
	for _, b := range codeBlocks {
		if b[1] == "sql" {
			schema = b[2]
			continue
		}
		found++
		if !strings.HasPrefix(b[2], "version: 1") {
			t.Fatalf("not a policy:\n%s", b[2])
		}
		s := buildWith(t, consent.Settings{NoDecay: true}, schema, b[2])
		s.temporary("t")
		s.partner("a")
		s.exec("INSERT INTO people VALUES ('t', 'T'), ('a', 'A')")
		s.exec("INSERT INTO interactions (id, user_id, at, account, style) SELECT n, w, now() - interval '1 day', " +
			"'x', 'y' FROM unnest('{t,a}'::text[]) WITH ORDINALITY AS p (w, n)")
		s.do(consent.Command{Action: consent.ActionRevoke, Subject: "t"})
		s.degrade("a", consent.StreamAnonymous)
		s.sweep()
		if got := s.query("SELECT concat(left(user_id, 10), account, style, anonymous) FROM interactions"); got != "anonymous-t" {
			t.Error(got)
		}
		if got := s.query("SELECT user_id FROM people"); got != "a" {
			t.Error(got)
		}
	}
	if found == 0 {
		t.Error("the page has lost its policies")
	}
}
