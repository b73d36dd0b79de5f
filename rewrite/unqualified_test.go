package rewrite

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// Prisma, PostgREST and Hasura qualify each column with the table's schema. The rewriter reads schema.table.column as
// that table's column where nothing else in scope has the table's name.
func TestSchemaBeforeColumns(t *testing.T) {
	r, _ := altered(t, AutoMode, "CREATE EXTENSION pg_trgm; CREATE INDEX ON memories USING gin (body gin_trgm_ops)")
	r = r.WithSizes(sizes())
	for sql, want := range map[string]string{
		`SELECT "public"."memories"."id" FROM "public"."memories" WHERE "public"."memories"."body" ILIKE $1 ORDER BY "public"."memories"."id" LIMIT $2`:     "signed",
		`SELECT COUNT(*) FROM (SELECT "public"."memories"."id" FROM "public"."memories" WHERE "public"."memories"."body"::text LIKE $1 OFFSET $2) AS "sub"`: "signed",
		`SELECT "public"."memories".* FROM "public"."memories" WHERE "public"."memories"."body" ILIKE '%x%'`:                                                "signed",
		`SELECT public . memories . id FROM memories WHERE body ILIKE '%x%' ` +
			`AND EXISTS (SELECT FROM people WHERE public.people.user_id = public.memories.user_id)`: "signed",
		`SELECT m.id FROM memories m WHERE m.id IN (SELECT public.memories.id FROM memories WHERE public.memories.body ILIKE '%x%')`: "signed",
		`SELECT public.memories.title FROM (public.memories JOIN people USING (user_id)) AS memories WHERE body ILIKE '%x%'`:         "not injected",
		`SELECT public.memories.title FROM memories, (SELECT 1) WHERE body ILIKE '%x%'`:                                              "not injected",
		`SELECT public.memories.nothing FROM memories WHERE body ILIKE '%x%'`:                                                        "not injected",
		`SELECT (SELECT public.memories.title FROM people AS memories LIMIT 1) FROM memories WHERE body ILIKE '%x%'`:                 "not injected",
		`SELECT public.memories.title FROM memories, LATERAL (SELECT 1 FROM people AS memories WHERE public.memories.user_id = memories.user_id) q ` +
			`WHERE body ILIKE '%x%'`: "not injected",
		`WITH memories AS (SELECT 'a' AS title) SELECT public.memories.title FROM public.memories ` +
			`JOIN (SELECT title FROM memories) q USING (title) WHERE body ILIKE '%x%'`: "signed",
	} {
		result, refusal := r.Rewrite(sql, false)
		if refusal != nil {
			t.Errorf("%s: %v", sql, refusal)
			continue
		}
		notInjected := strings.Contains(strings.NewReplacer(`"`, "", " ", "").Replace(result.Text), "public.memories.")
		if notInjected != (want == "not injected") || want == "signed" && result.Path != verdict.PathSigned {
			t.Errorf("%s: %s (%s)\n%s", sql, result.Path, result.RowSecurityReason, result.Text)
		}
	}
}

// The rewriter removes the schema and the dot. The table's name may be any word, without a space before it, or after a
// comment.
func TestSchemaIsTakenAwayWhole(t *testing.T) {
	r, _ := altered(t, AutoMode,
		`CREATE EXTENSION pg_trgm; CREATE INDEX ON memories USING gin (body gin_trgm_ops); CREATE VIEW "user" AS SELECT * FROM memories;
			CREATE VIEW "Odd.""One" AS SELECT * FROM memories`)
	r = r.WithSizes(sizes())
	for _, sql := range []string{
		`SELECT"public".memories.id FROM memories WHERE NOT"public".memories.body ILIKE '%x%' AND"public".memories.title = 'x'`,
		"SELECT id FROM memories WHERE body ILIKE '%x%' AND 5 -public.-- of memories\n memories.id > 0",
		"SELECT id FROM memories WHERE body ILIKE '%x%' AND 5 -public/* of memories */./**/memories.id > 0",
	} {
		result, refusal := r.Rewrite(sql, false)
		if refusal != nil {
			t.Errorf("%s: %v\n%s", sql, refusal, result.Text)
		}
	}
}
