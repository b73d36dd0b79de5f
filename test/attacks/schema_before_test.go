package attacks

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

const wordsSchema = `
CREATE EXTENSION pg_trgm;
CREATE TABLE "order" (id int PRIMARY KEY, owner text NOT NULL, body text NOT NULL, x int, b bool);
CREATE TABLE "user" (id int PRIMARY KEY, owner text NOT NULL, body text NOT NULL, "order" int);
INSERT INTO "order" SELECT g, CASE WHEN g % 3 = 0 THEN 'me' ELSE 'other' END, 'lake ' || g, g % 7, g % 7 > 3 FROM generate_series(1, 3000) g;
INSERT INTO "user" SELECT id, owner, body, id FROM "order";
CREATE INDEX ON "order" USING gin (body gin_trgm_ops)`

const wordsPolicy = `version: 1
attributes: { user: { type: text, source: credential } }
tables:
  order: { rows: [ { own: { column: owner, is: user } } ] }
  user: { rows: [ { own: { column: owner, is: user } } ] }
`

// A statement may qualify a column with a table's schema, where the table's name is a reserved word that is allowed
// only after a dot. However the statement is spaced, agents must be answered as by PostgreSQL without hidden rows.
func TestReservedTableNamesBehindASchema(t *testing.T) {
	tier.All(t)
	agent, plain := pgtest.Database(t), pgtest.Database(t)
	instance.Exec(t, agent, wordsSchema)
	instance.Exec(t, plain, wordsSchema)
	instance.Exec(t, plain, `DELETE FROM "order" WHERE owner <> 'me'; DELETE FROM "user" WHERE owner <> 'me'`)
	instance.Exec(t, agent, "VACUUM ANALYZE")
	c := plain.Connect(t, "postgres").PgConn()
	for _, mode := range modesOf(instance.Auto, instance.SignedViews, instance.Both) {
		db := instance.Database{Name: "pair", DB: agent, Policy: wordsPolicy, SearchPath: []string{"public"}}
		a := instance.Start(t, mode, db, map[string]string{"user": "me"}).Agent(t, "agent", "pair")
		for _, sql := range []string{
			"SELECT public.order.id FROM public.order WHERE public.order.body ILIKE '%lake 12%' ORDER BY public.order.id",
			"SELECT public.order.* FROM public.order WHERE public.order.body LIKE '%99%' ORDER BY public.order.id",
			"SELECT public.user.order, public.order.x AS id FROM public.user JOIN public.order ON " +
				"public.user.order = public.order.id WHERE public.order.body LIKE '%e 3%' ORDER BY public.order.id",
			`SELECT"public"."order".id FROM public.order WHERE NOT"public".order.b AND"public".order.body LIKE '%9%' ORDER BY 1`,
			"SELECT public.order.id FROM public.order WHERE body LIKE '%9%' AND 5 -public.-- the order's\n order.x > 2 ORDER BY public.order.id",
			"SELECT -x AS x, id FROM public.order WHERE body LIKE '%99%' ORDER BY public.order.x, id",
			"SELECT x % 2 AS x, count(*) FROM public.order WHERE body LIKE '%99%' GROUP BY public.order.x ORDER BY public.order.x",
			`SELECT (SELECT public.order.x FROM public.user AS "order" WHERE "order".id = public.order.id) FROM public.order WHERE body LIKE '%99%' ORDER BY id`,
			`WITH "order" AS (SELECT 3 AS id, 5 AS x) SELECT public.order.x, "order".x FROM public.order, "order" WHERE public.order.id = "order".id`,
		} {
			if got, want := instance.Ask(a, sql).String(), instance.Ask(c, sql).String(); got != want {
				t.Errorf("%s: %s\nagent: %.300s\nplain: %.300s", mode.Name, sql, got, want)
			}
		}
	}
}
