package attacks

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

const virtualSchema = `
	CREATE TABLE shelf (id integer PRIMARY KEY, owner integer NOT NULL);
	INSERT INTO shelf SELECT i, i % 2 FROM generate_series(1, 200) AS i;
	CREATE TABLE lot (id integer PRIMARY KEY, shelf integer NOT NULL, quantity integer, code text, guests integer[],
	  share integer GENERATED ALWAYS AS (1000 / quantity) VIRTUAL,
	  number integer GENERATED ALWAYS AS (code::integer),
	  label text GENERATED ALWAYS AS (code || '/' || quantity) STORED);
	INSERT INTO lot SELECT i, i % 200 + 1, i % 50 + 1, i::text, CASE WHEN i % 3 = 0 THEN '{1,2}'::integer[] ELSE '{2}' END FROM generate_series(1, 20000) AS i;
	CREATE TABLE parcel (LIKE lot INCLUDING ALL);
	INSERT INTO parcel SELECT id, shelf, quantity, code, guests FROM lot;
	ANALYZE;`

const virtualHidden = `
	INSERT INTO lot VALUES (90001, 2, 0, 'HIDDENMARK', '{2}'), (90002, 4, 0, 'HIDDENMARK', NULL);
	INSERT INTO parcel SELECT id, shelf, quantity, code, guests FROM lot WHERE id > 90000;`

const virtualStatements = `SELECT count(*) FROM lot WHERE share > 500
SELECT count(*) FROM lot WHERE number = 8
SELECT count(*) FROM lot WHERE number IS NULL
SELECT count(*) FROM lot WHERE lot.number IN (3, 4) OR share < 0
SELECT count(number), max(share) FROM lot
SELECT * FROM lot ORDER BY number DESC LIMIT 2
SELECT share, count(*) FROM lot GROUP BY share ORDER BY 2, 1 LIMIT 3
SELECT count(*) FROM (SELECT id, number AS n FROM lot) AS x WHERE n < 30
SELECT count(*) FROM (SELECT * FROM lot) AS x WHERE x.share IS NULL
SELECT count(*) FROM lot AS l (share, shelf, quantity, code, guests, id) WHERE l.id = 20
WITH x AS (SELECT * FROM lot) SELECT count(*) FROM x WHERE number < 4
SELECT count(*) FROM lot AS a JOIN lot AS b USING (number) WHERE a.id < 100
SELECT count(b.share) FROM shelf AS a LEFT JOIN lot AS b ON a.id = b.shelf
SELECT s.id FROM shelf AS s WHERE EXISTS (SELECT FROM lot AS l WHERE l.number = s.id) ORDER BY 1 LIMIT 4
SELECT s.id, (SELECT min(number) FROM lot AS l WHERE l.share = s.id) FROM shelf AS s ORDER BY 1 LIMIT 3
SELECT count(DISTINCT share) FROM lot
SELECT l FROM lot AS l WHERE number < 5 ORDER BY id
SELECT count(*) FROM lot WHERE label LIKE '%/%' AND number > 7
COPY (SELECT number FROM lot WHERE share = 1000) TO STDOUT
SELECT count(*) FROM parcel WHERE share > 500
SELECT count(*) FROM parcel WHERE number = 8
SELECT max(number), min(share) FROM parcel
SELECT * FROM parcel ORDER BY share, id DESC LIMIT 3
SELECT count(*) FROM parcel AS a JOIN lot AS b ON a.number = b.number AND b.share = 20
`

const virtualPolicy = `version: 1
attributes:
  me: { type: integer, source: credential, audit: subject }
tables:
  shelf: { rows: [ own: { column: owner, is: me } ] }
  lot: { rows: [ visible: { shelf: { id: shelf } } ] }
  parcel:
    rows: [ any: [ grant: { column: guests, to: me }, visible: { shelf: { id: shelf } } ] ]
    columns: { id: allow, quantity: allow, code: allow, share: allow, number: allow, label: allow }
`

// A virtual column may fail when it is computed for a hidden row, with the row's value in the error. It must be
// computed for visible rows only, by either path.
func TestVirtualColumns(t *testing.T) {
	tier.All(t)
	instance.RequireServerVersion(t, 18)
	database := func(change string) instance.Database {
		db := pgtest.Database(t)
		instance.Exec(t, db, virtualSchema+change)
		return instance.Database{Name: "lots", DB: db, Policy: virtualPolicy, SearchPath: []string{"public"}}
	}
	attributes := map[string]string{"me": "1"}
	for _, mode := range modesOf(instance.Both, instance.Auto, instance.SignedViews) {
		one, two := database(""), database(virtualHidden)
		proxies := []*instance.Proxy{instance.Start(t, mode, one, attributes), instance.Start(t, mode, two, attributes)}
		agentOne, agentTwo := proxies[0].Agent(t, "agent", one.Name), proxies[1].Agent(t, "agent", two.Name)
		for sql := range strings.Lines(virtualStatements) {
			want, got := instance.AskCopy(agentOne, sql), instance.AskCopy(agentTwo, sql)
			if want.Err != "" || got.SortedString() != want.SortedString() {
				t.Errorf("%s: %s\nwithout failing rows:\n%s\nwith:\n%s", mode.Name, sql, instance.Truncate(want.SortedString()), instance.Truncate(got.SortedString()))
			}
		}
		proxies[1].Tap().RequireNoMarker(t)
		owner := instance.ConnectSuperuser(t, two.DB)
		for sql := range strings.Lines(virtualStatements) {
			if got := instance.Ask(owner, sql); got.Err == "" {
				t.Errorf("not even without walls does it come to the rows that fail: %s", sql)
			}
		}
	}
}
