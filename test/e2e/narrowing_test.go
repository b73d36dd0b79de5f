package e2e

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// narrowPolicy is the world's policy with hidden and masked columns. Two of these columns are used by its own rules.
const narrowPolicy = `version: 1
attributes: { user: { type: uuid, source: credential } }
tables:
  memories:
    rows:
      - own: { column: user_id, is: user }
      - consent: { every: [ memory_participants: { memory_id: id }, people: { id: person_id } ], status: consent_status, is: granted }
    columns:
      id: allow
      title: allow
      body: { mask: { generalise: 30 } }
      metadata: { keys: { mood: string, stars: number, place: string } }
      embedding: allow
      occurred_at: { mask: { generalise: day } }
  people:
    rows:
      - own: { column: user_id, is: user }
      - status: { column: consent_status, is: granted }
    columns: { id: allow, name: { mask: { generalise: 5 } }, consent_status: allow, created_at: { mask: null } }
  memory_participants: { rows: [ { visible: { memories: { id: memory_id } } }, { visible: { people: { id: person_id } } } ] }
`

// markHidden writes the marker into the hidden columns and parts of visible rows.
const markHidden = `
ALTER TABLE people ADD COLUMN phone text DEFAULT 'HIDDENMARK phone';
ALTER TABLE memories ADD COLUMN private text DEFAULT 'HIDDENMARK private';
UPDATE memories SET body = rpad(body, 30) || 'HIDDENMARK',
metadata = metadata || '{"diary": "HIDDENMARK", "place": {"HIDDENMARK": 1}}' WHERE metadata IS NOT NULL;
UPDATE memories SET metadata = '["HIDDENMARK"]' WHERE metadata IS NULL;
`

// narrowedCopy returns the filtered copy without the hidden columns, and with masked values instead of the originals.
// pgconsent's views are not used for it.
func narrowedCopy(t testing.TB) *pgtest.DB {
	t.Helper()
	db := filteredCopy(t)
	runAsSuperuser(t, db, markHidden)
	runAsSuperuser(t, db, `
		UPDATE memories SET body = substr(body, 1, 30), occurred_at = to_timestamp(86400 * floor(extract(epoch FROM occurred_at) / 86400)),
			metadata = CASE WHEN metadata IS NOT NULL AND metadata <> '["HIDDENMARK"]'
				THEN jsonb_strip_nulls(jsonb_build_object('mood', metadata -> 'mood', 'stars', metadata -> 'stars')) || '{"place": null}' END;
		UPDATE people SET name = substr(name, 1, 5);
		ALTER TABLE people ALTER COLUMN created_at DROP NOT NULL;
		UPDATE people SET created_at = NULL;
		ALTER TABLE people DROP COLUMN user_id CASCADE, DROP COLUMN is_self CASCADE, DROP COLUMN phone;
		ALTER TABLE memories DROP COLUMN user_id CASCADE, DROP COLUMN private`)
	return db
}

// From narrowed tables, agents get the answers that PostgreSQL gives on a copy without the hidden rows and columns.
// This holds with both layers of enforcement, and with each of them alone.
func TestNarrowedAnswersEqualThoseOfANarrowedCopy(t *testing.T) {
	tier.All(t)
	copyDB := narrowedCopy(t)
	var statements []string
	for _, q := range corpusQueries(t) {
		if !strings.Contains(q.note, "needs: vector") && !strings.Contains(q.sql, "tableoid") { // views have neither vectors nor tableoid
			statements = append(statements, q.sql)
		}
	}
	for i := range 60 {
		g := &generator{Rand: rand.New(rand.NewPCG(21, uint64(i)))}
		statements = append(statements, g.statement())
	}
	statements = append(statements, narrowStatements...)
	for name, o := range map[string]options{
		"both": {}, "row security alone": {mode: modeRLS}, "the view's predicate alone": {mode: modeInjected, rowSecurity: withoutPolicies},
	} {
		t.Run(name, func(t *testing.T) {
			o.policy, o.beforeMigrate = narrowPolicy, markHidden
			in := start(t, o)
			agent, copyConn := in.agent(t), harness.Connect(t, copyDB.DSN("postgres", ""))
			answeredCount, sensitiveCount, failedCount := 0, 0, 0
			unfilteredConn := in.superuserConn(t)
			for _, sql := range statements {
				want, got := harness.Ask(copyConn, sql), harness.Ask(agent, sql)
				switch {
				case strings.Contains(sql, "match_memories") || strings.Contains(sql, "search_memories"):
					continue // the function reads the tables with the agent's rights
				case got.Code == "42803", got.Code == "42501" || got.Code == "0A000":
					continue // refused: grouped by a primary key, which a view does not have
				case want.Err != "":
					failedCount++
					if got.Code != want.Code {
						t.Errorf("%s\nagent:\n%s\nnarrowed copy:\n%s", sql, harness.Truncate(got.SortedString()), harness.Truncate(want.SortedString()))
					}
					continue
				}
				answeredCount++
				if got.SortedString() != want.SortedString() {
					t.Errorf("%s\nagent:\n%s\nnarrowed copy:\n%s", sql, harness.Truncate(got.SortedString()), harness.Truncate(want.SortedString()))
				}
				if name != "both" {
					continue
				}
				if harness.Ask(unfilteredConn, sql).SortedString() != want.SortedString() {
					sensitiveCount++
				}
			}
			t.Logf("%d statements, %d answered, %d of them sensitive, %d failed on both sides", len(statements), answeredCount, sensitiveCount,
				failedCount)
			if answeredCount < 120 || name == "both" && sensitiveCount*2 < answeredCount {
				t.Error("too little was compared")
			}
			in.requireNoMarker(t)
		})
	}
}

// narrowStatements access the columns of narrowed tables in many forms of SQL.
var narrowStatements = []string{
	"SELECT * FROM people", "SELECT people FROM people", "SELECT p.* FROM people p", "SELECT (p).* FROM people p", "SELECT (people.*)::text FROM people",
	"SELECT row_to_json(p) FROM people p", "SELECT to_jsonb(m) FROM memories m",
	"SELECT public.people.name FROM public.people", "SELECT jsonb_agg(p) FROM (SELECT * FROM people ORDER BY id) p",
	"TABLE people", "TABLE memories ORDER BY memories.id LIMIT 3", "COPY people TO STDOUT",
	"COPY memories (id, body) TO STDOUT", "COPY (SELECT * FROM memories) TO STDOUT",
	"SELECT * FROM people NATURAL JOIN memories", "SELECT * FROM people JOIN memories USING (id)",
	"SELECT * FROM memory_participants mp JOIN people p ON p.id = mp.person_id",
	"SELECT phone FROM people", "SELECT people.phone FROM people", "SELECT p.user_id FROM people p",
	"SELECT id FROM people WHERE user_id IS NOT NULL", "SELECT id FROM people ORDER BY phone",
	"SELECT count(*) FROM people GROUP BY phone", "SELECT (SELECT private) FROM memories",
	"SELECT phone(p) FROM people p", "SELECT user_id FROM memories NATURAL JOIN people",
	"COPY people (phone) TO STDOUT", "SELECT * FROM people p(a, b, c, d)", "SELECT * FROM people p(a, b, c, d, e)",
	"WITH x AS (TABLE people) SELECT x FROM x",
	"SELECT metadata -> 'diary', metadata ->> 'place', metadata FROM memories",
	"SELECT k FROM memories, jsonb_object_keys(metadata) k WHERE jsonb_typeof(metadata) = 'object'",
	"SELECT body FROM memories WHERE body LIKE '%MARK%'",
	"SELECT length(body), max(length(name)) FROM memories, people GROUP BY 1",
	"SELECT occurred_at FROM memories WHERE occurred_at <> date_trunc('day', occurred_at, 'UTC')",
	"SELECT created_at FROM people WHERE created_at IS NOT NULL",
	"SELECT count(*) FROM people WHERE (name || id::text)::uuid IS NULL", "SELECT DISTINCT p FROM people p",
	"SELECT p.name FROM people p UNION SELECT m.body FROM memories m", "SELECT * FROM ONLY people",
	"SELECT * FROM people *", "SELECT array_agg(p ORDER BY p.id) FROM people p",
}

// The catalogs describe a narrowed table with its visible columns only.
func TestClientsSeeNarrowedTables(t *testing.T) {
	tier.All(t)
	in := start(t, options{policy: narrowPolicy, beforeMigrate: markHidden})
	agent := in.connectPgx(t, "caregiver")
	for sql, want := range map[string]string{
		"SELECT string_agg(attname, ',' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'people'::regclass " +
			"AND attnum > 0": "id,name,consent_status,created_at",
		"SELECT string_agg(column_name, ',' ORDER BY ordinal_position) FROM information_schema.columns WHERE " +
			"table_name = 'people'": "id,name,consent_status,created_at",
		"SELECT string_agg(table_name, ',' ORDER BY table_name) FROM information_schema.tables WHERE table_schema " +
			"NOT IN ('pg_catalog', 'information_schema')": "memories,memory_participants,people",
		"SELECT string_agg(indexname, ',' ORDER BY indexname) FROM pg_indexes WHERE tablename IN ('people', " +
			"'memories')": "memories_embedding,memories_metadata,memories_pkey,people_pkey",
		"SELECT count(*)::text FROM pg_class WHERE relname LIKE '%public_people'": "0",
	} {
		var got string
		if err := agent.QueryRow(context.Background(), sql, pgx.QueryExecModeSimpleProtocol).Scan(&got); err != nil || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, %v; want %q", sql, got, err, want)
		}
	}
	in.requireNoMarker(t)
}
