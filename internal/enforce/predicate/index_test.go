package predicate_test

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/test/tier"
)

// Under row security PostgreSQL can use an index on a column for the blocks that compare this column.
func TestBlocksUseIndexes(t *testing.T) {
	tier.All(t)
	r := newTriples(t)
	r.run(r.super, `CREATE TABLE public.docs (id int PRIMARY KEY, tenant text, owner uuid, grants text[], readers jsonb, expires_at timestamptz);
		INSERT INTO public.docs SELECT i, 'tenant ' || i % 2000, ('00000000-0000-4000-8000-' || lpad(i::text, 12, '0'))::uuid, ARRAY['id ' || i],
		  jsonb_build_array('id ' || i), now() + i * interval '1 second' - interval '19990 seconds'
		  FROM generate_series(1, 20000) AS i;
		CREATE INDEX by_tenant ON public.docs (tenant); CREATE INDEX by_owner ON public.docs (owner); CREATE INDEX by_grant ON public.docs USING gin (grants);
		CREATE INDEX by_reader ON public.docs USING gin (readers); CREATE INDEX by_end ON public.docs (expires_at);
		ANALYZE public.docs`)
	for rule, index := range map[string]string{
		`tenant: { column: tenant, is: one_text, shared: global }`:  "by_tenant",
		`tenant: { column: tenant, is: many_text, shared: global }`: "by_tenant",
		`tenant: { column: tenant, is: one_text, shared: null }`:    "by_tenant",
		`own: { column: owner, is: one_uuid }`:                      "by_owner",
		`own: { column: owner, is: many_uuid }`:                     "by_owner",
		`grant: { column: grants, to: [one_text, many_text] }`:      "by_grant",
		`grant: { column: readers, to: [one_text, many_text] }`:     "by_reader",
		`sql: "expires_at > now() + interval '5 seconds'"`:          "by_end",
	} {
		s := &schema{name: "public"}
		r.lastSchema = s.name
		r.migrate(s, "version: 1\nattributes: { one_text: { type: text, source: credential }, many_text: { type: "+
			"'text[]', source: credential }, one_uuid: { type: uuid, source: credential }, many_uuid: { type: 'uuid[]', source: credential } }\n"+
			"tables: { docs: { rows: [ "+rule+" ] } }")
		results, err := r.agent.PgConn().Exec(t.Context(), "EXPLAIN SELECT id FROM public.docs").ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		var plan strings.Builder
		for _, row := range results[0].Rows {
			plan.WriteString(string(row[0]) + "\n")
		}
		if !strings.Contains(plan.String(), index) {
			t.Errorf("%s does not reach %s:\n%s", rule, index, plan.String())
		}
	}
}
