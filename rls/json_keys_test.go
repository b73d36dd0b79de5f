package rls_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pgconsent/pgconsent/rls"
)

// A mask may list keys whose values are lists or objects of keys. At any depth, a value of another type becomes null,
// and a key that is not listed is left out.
func TestKeysThatAreListsAndObjects(t *testing.T) {
	w := newWorld(t, `SET ROLE app_owner;
		CREATE TABLE cards (id int PRIMARY KEY, b jsonb, j json);
		INSERT INTO cards SELECT i, v::jsonb, v::json FROM (VALUES
			(1, '{"tags": ["a", "b"], "n": [1, 2], "to": {"city": "Bonn", "street": "hidden", "geo": {"lat": 1, "who": "hidden"}}, "secret": 1}'),
			(2, '{"tags": ["a", 1], "n": "x", "to": {"city": {"x": "hidden"}, "geo": []}}'),
			(3, '{"tags": [["hidden"]], "n": [null], "to": ["hidden"]}'),
			(4, '{"tags": [], "n": [], "to": {}}'), (5, '["hidden"]'), (6, '"hidden"'), (7, '{}'), (8, 'null')) AS c (i, v);
		RESET ROLE`)
	file := filepath.Join(t.TempDir(), "policy.yaml")
	const keys = "{ tags: \"string[]\", n: \"number[]\", to: { city: string, geo: { lat: number } } }"
	if err := os.WriteFile(file, []byte("version: 1\ntables:\n  cards:\n    rows: open\n    columns: { id: allow, b: { keys: "+keys+
		" }, j: { keys: "+keys+" } }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.compile(file, rls.Options{})
	w.migrate()
	agent := w.agent(user1)
	for id, want := range map[string]string{
		"1": `{"n": [1, 2], "to": {"geo": {"lat": 1}, "city": "Bonn"}, "tags": ["a", "b"]}`,
		"2": `{"n": null, "to": {"geo": null, "city": null}, "tags": null}`,
		"3": `{"n": null, "to": null, "tags": null}`,
		"4": `{"n": [], "to": {}, "tags": []}`,
		"5": "NULL", "6": "NULL", "7": "{}", "8": "NULL",
	} {
		w.want(agent, "SELECT b FROM pgconsent_rows.public_cards WHERE id = "+id, want)
		w.want(agent, "SELECT j::jsonb FROM pgconsent_rows.public_cards WHERE id = "+id, want)
	}
}
