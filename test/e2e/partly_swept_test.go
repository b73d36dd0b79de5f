package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/registry/consent"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// A person may have both anonymised rows and others. Such a person must count once: in a cell, in a group that mixes
// cells with visible rows, and in the largest share.
func TestPartlySweptPeopleCountOnce(t *testing.T) {
	tier.All(t)
	const table = `
CREATE TABLE %T (id bigserial PRIMARY KEY, who %U, at timestamptz NOT NULL DEFAULT clock_timestamp(), channel text,
  n int NOT NULL DEFAULT 1, anonymous boolean NOT NULL DEFAULT false);`
	const rules = `
  %T:
    rows: [ consent: { subject: who, registry: { since: at } } ]
    aggregate:
      subject: who
      rows: [ any: [ consent: { subject: who, registry: { stream: ANONYMOUS, since: at } }, status: { column: anonymous, is: "true" } ] ]
      minimum: 3
      share: 40
      dimensions: { channel: allow }
      measures: { n: { between: [0, 9] } }
    lifecycle: { subject: who, at: at, columns: { who: { becomes: hash }, anonymous: { becomes: { value: true } } } }`
	tables := []string{"texts", "short", "uuids"}
	forEachTable := func(text string) (out string) {
		for i, kind := range []string{"text", "varchar(42)", "uuid"} {
			out += strings.NewReplacer("%T", tables[i], "%U", kind).Replace(text)
		}
		return out
	}
	personID := func(n string) string { return "6f1e0000-0000-4000-8000-00000000000" + n }
	for _, mode := range append(slices.Clone(enforcedModes), harness.InjectedOnly) {
		t.Run(mode.Name, func(t *testing.T) {
			db := pgtest.Database(t)
			harness.Exec(t, db, forEachTable(table))
			d := harness.Database{Name: "app", DB: db, Policy: "version: 1\nattributes: {}\ntables:" + forEachTable(rules), SearchPath: []string{"public"}}
			harness.Install(t, d, mode)
			g := &governedWorld{T: t, db: db, registry: openRegistry(t, db, consent.Settings{NoDecay: true}),
				superConn: harness.ConnectSuperuser(t, db)}
			agent := harness.Serve(t, mode, []harness.Database{d}, []harness.Agent{{Name: "agent", Database: "app"}}).Agent(t, "agent", "app")
			insertRows := func(channel string, people ...string) {
				for _, p := range people {
					g.Exec(forEachTable("INSERT INTO %T (who, channel) VALUES ('" + personID(p) + "', '" + channel + "');"))
				}
			}
			checkCounts := func(description, channel, want string) {
				t.Helper()
				for _, name := range tables {
					g.checkEqual(description+": "+name, oneText(agent,
						"SELECT channel, count(*), count(DISTINCT who), sum(n) FROM "+name+" WHERE channel = '"+channel+"' GROUP BY channel"), want)
					g.checkEqual(description+", one by one: "+name,
						oneText(agent, "SELECT count(*) FROM "+name+" AS visible_x WHERE anonymous OR channel = '"+channel+"' AND channel <> 'web'"), "0")
				}
			}
			for _, p := range []string{"1", "2", "3", "4"} {
				g.makePartner(personID(p))
			}
			insertRows("api", "1", "2")
			insertRows("web", "1", "2", "4")
			for _, p := range []string{"1", "2", "3", "4"} {
				g.degrade(personID(p), consent.StreamAnonymous)
			}
			checkCounts("two people", "api", "")
			g.runSweep()
			insertRows("api", "1", "2")
			checkCounts("two people, swept in part", "api", "")
			insertRows("api", "3")
			checkCounts("three people", "api", "api\t5\t3\t5")
			g.runSweep()
			checkCounts("all swept", "api", "api\t5\t3\t5")
			// One person has a third of the cell's rows; another row makes it two fifths, and one more a half.
			insertRows("api", "3")
			checkCounts("shares", "api", "api\t6\t3\t6")
			insertRows("api", "3")
			checkCounts("somebody has most of it", "api", "")
			// This person has visible rows again, and is one of the three people in the cell.
			g.makePartner(personID("4"))
			insertRows("web", "4")
			for _, name := range tables {
				g.checkEqual("one who shows again: "+name,
					oneText(agent, "SELECT channel, count(*), count(DISTINCT who) FROM "+name+" WHERE channel = 'web' GROUP BY channel"), "web\t4\t3")
				g.checkEqual("whom rows show: "+name, oneText(agent, "SELECT who FROM (SELECT * FROM "+name+") AS x"), personID("4"))
			}
		})
	}
}
