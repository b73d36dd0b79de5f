package e2e

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// A consent status whose type is a domain is compared as the domain's base type, by row security and in rewritten text.
// This holds for the status in another table and for the rule "shared".
func TestStatusOfADomain(t *testing.T) {
	tier.All(t)
	const policy = `version: 1
attributes: { user: { type: integer, source: credential } }
tables:
  letters:
    rows:
      - status: { column: state, is: open }
      - status: { column: kind, is: memo }
      - not: { status: { column: gone, is: true } }
      - consent: { every: [ writers: { id: writer } ], status: consent, is: granted }
  writers: { rows: [ status: { column: consent, is: granted } ] }
`
	for _, mode := range harness.Modes(harness.Both, harness.Auto) {
		t.Run(mode.Name, func(t *testing.T) {
			db := pgtest.Database(t)
			harness.Exec(t, db, `CREATE TYPE kind AS ENUM ('memo', 'note');
				CREATE DOMAIN word AS text CHECK (VALUE <> 'x'); CREATE DOMAIN short AS word; CREATE DOMAIN sort AS kind; CREATE DOMAIN flag AS boolean;
				CREATE TABLE writers (id integer PRIMARY KEY, consent short);
				CREATE TABLE letters (id integer PRIMARY KEY, state word, kind sort, gone flag, writer integer REFERENCES writers, body text);
				INSERT INTO writers VALUES (1, 'granted'), (2, 'pending'), (3, NULL);
				INSERT INTO letters SELECT i, CASE i % 3 WHEN 0 THEN 'open' WHEN 1 THEN 'closed' END, CASE i % 2 WHEN 0 THEN 'memo' ELSE 'note' END::kind,
				  CASE i % 5 WHEN 0 THEN false WHEN 1 THEN true END, 1 + i / 30 % 3,
				  CASE WHEN i % 6 = 0 AND i % 5 = 0 AND i < 30 THEN 'shown' ELSE 'HIDDENMARK' END FROM generate_series(0, 89) i`)
			d := harness.Database{Name: "letters", DB: db, Policy: policy, SearchPath: []string{"public"}}
			harness.Install(t, d, mode)
			p := harness.Serve(t, mode, []harness.Database{d},
				[]harness.Agent{{Name: "chat", Database: "letters", Attributes: map[string]string{"user": "1"}}})
			c := p.Agent(t, "chat", "letters")
			for sql, want := range map[string]string{
				"SELECT id, body FROM letters ORDER BY id": "0\tshown",
				"SELECT count(*) FROM letters":             "1",
				"SELECT id, consent FROM writers":          "1\tgranted",
				"SELECT count(*) FROM letters l JOIN writers w ON w.id = l.writer WHERE l.body LIKE '%o%'": "1",
			} {
				if got := oneText(c, sql); got != want {
					t.Errorf("%s: %q, want %q", sql, got, want)
				}
			}
			p.Tap().RequireNoMarker(t)
		})
	}
}
