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

// TestPartlySweptPeopleCountOnce: a person may have some rows that are anonymous already and others that are not. Such
// a person counts as one subject in a cell, in a group that mixes cells with visible rows, and in the largest share.
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
	countEach := func(text string) (out string) {
		for i, kind := range []string{"text", "varchar(42)", "uuid"} {
			out += strings.NewReplacer("%T", tables[i], "%U", kind).Replace(text)
		}
		return out
	}
	person := func(n string) string { return "6f1e0000-0000-4000-8000-00000000000" + n }
	for _, mode := range append(slices.Clone(enforcedModes), harness.InjectedOnly) {
		t.Run(mode.Name, func(t *testing.T) {
			db := pgtest.Database(t)
			harness.Exec(t, db, countEach(table))
			d := harness.Database{Name: "app", DB: db, Policy: "version: 1\nattributes: {}\ntables:" + countEach(rules), SearchPath: []string{"public"}}
			harness.Install(t, d, mode)
			g := &governedWorld{T: t, db: db, registry: openRegistry(t, db, consent.Settings{NoDecay: true}), super: harness.ConnectSuperuser(t, db)}
			agent := harness.Serve(t, mode, []harness.Database{d}, []harness.Agent{{Name: "agent", Database: "app"}}).Agent(t, "agent", "app")
			row := func(channel string, people ...string) {
				for _, p := range people {
					g.Exec(countEach("INSERT INTO %T (who, channel) VALUES ('" + person(p) + "', '" + channel + "');"))
				}
			}
			wantMessage := func(description, channel, want string) {
				t.Helper()
				for _, name := range tables {
					g.want(description+": "+name, oneText(agent,
						"SELECT channel, count(*), count(DISTINCT who), sum(n) FROM "+name+" WHERE channel = '"+channel+"' GROUP BY channel"), want)
					g.want(description+", one by one: "+name,
						oneText(agent, "SELECT count(*) FROM "+name+" AS visible_x WHERE anonymous OR channel = '"+channel+"' AND channel <> 'web'"), "0")
				}
			}
			for _, p := range []string{"1", "2", "3", "4"} {
				g.partner(person(p))
			}
			row("api", "1", "2")
			row("web", "1", "2", "4")
			for _, p := range []string{"1", "2", "3", "4"} {
				g.degrade(person(p), consent.StreamAnonymous)
			}
			wantMessage("two people", "api", "")
			g.sweep()
			row("api", "1", "2")
			wantMessage("two people, swept in part", "api", "")
			row("api", "3")
			wantMessage("three people", "api", "api\t5\t3\t5")
			g.sweep()
			wantMessage("all swept", "api", "api\t5\t3\t5")
			// A third of the cell is somebody's: with another row it is two fifths, then one half.
			row("api", "3")
			wantMessage("shares", "api", "api\t6\t3\t6")
			row("api", "3")
			wantMessage("somebody has most of it", "api", "")
			// A person is back, with visible rows, and is one of the three people in the cell.
			g.partner(person("4"))
			row("web", "4")
			for _, name := range tables {
				g.want("one who shows again: "+name,
					oneText(agent, "SELECT channel, count(*), count(DISTINCT who) FROM "+name+" WHERE channel = 'web' GROUP BY channel"), "web\t4\t3")
				g.want("whom rows show: "+name, oneText(agent, "SELECT who FROM (SELECT * FROM "+name+") AS x"), person("4"))
			}
		})
	}
}
