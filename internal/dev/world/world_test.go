//go:build unix

package world_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/dev/world"
	"github.com/pgconsent/pgconsent/test/tier"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func loadArcive(t *testing.T) *pgx.Conn {
	t.Helper()
	w, err := world.Open("arcive")
	if err != nil {
		t.Fatal(err)
	}
	return pgtest.Template(t, "arcive", func(ctx context.Context, conn *pgx.Conn) error {
		return w.Load(ctx, conn, nil)
	}).Connect(t, "arcive_owner")
}

func queryNumber(t *testing.T, conn *pgx.Conn, sql string) (n int) {
	t.Helper()
	if err := conn.QueryRow(context.Background(), sql).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// The tour, the README and other tests count on these figures.
func TestArciveHasWhatItsReadmeSays(t *testing.T) {
	tier.All(t)
	conn := loadArcive(t)
	for sql, want := range map[string]int{
		"SELECT count(DISTINCT user_id) FROM memories":                                                                        3,
		"SELECT count(*) FROM memories":                                                                                       2505,
		"SELECT count(*) FROM people":                                                                                         386,
		"SELECT count(*) FROM memory_participants":                                                                            6117,
		"SELECT count(*) FROM memory_edges":                                                                                   4986,
		"SELECT count(*) FROM memories WHERE user_id = '11111111-1111-4111-8111-111111111111'":                                1505,
		"SELECT count(*) FROM memories WHERE title NOT LIKE '%HIDDENMARK%'":                                                   866,
		"SELECT count(*) FROM memories WHERE embedding IS NULL":                                                               0,
		"SELECT count(*) FROM people WHERE is_self AND consent_status = 'granted'":                                            3,
		"SELECT count(*) FROM people WHERE consent_status IS NULL":                                                            11,
		"SELECT count(*) FROM memories m WHERE NOT EXISTS (SELECT FROM memory_participants p WHERE p.memory_id = m.id)":       444,
		"SELECT count(*) FROM memory_participants p WHERE NOT EXISTS (SELECT FROM people q WHERE q.id = p.person_id)":         64,
		"SELECT count(*) FROM people WHERE name LIKE 'Alice' AND consent_status = 'granted'":                                  1,
		"SELECT count(DISTINCT consent_status) FROM people WHERE consent_status IN ('granted','pending','revoked','unknown')": 4,
	} {
		if got := queryNumber(t, conn, sql); got != want {
			t.Errorf("%s: %d, want %d", sql, got, want)
		}
	}
}

// The rule here is written with joins and EXISTS, the one in data.sql with counts, the one in policy.yaml as blocks.
const (
	isVisiblePerson = `(p.user_id = '11111111-1111-4111-8111-111111111111' AND p.consent_status IS NOT DISTINCT FROM 'granted')`
	isVisibleMemory = `(m.user_id = '11111111-1111-4111-8111-111111111111' AND NOT EXISTS (
		SELECT FROM memory_participants l LEFT JOIN people q ON q.id = l.person_id
		WHERE l.memory_id = m.id AND (q.id IS NULL OR q.consent_status IS NULL OR q.consent_status <> 'granted')))`
)

func TestArciveMarksExactlyTheHiddenRows(t *testing.T) {
	tier.All(t)
	conn := loadArcive(t)
	for name, sql := range map[string]string{
		"people":   `SELECT count(*) FROM people p WHERE ` + isVisiblePerson + ` = (name ~ 'HIDDENMARK[0-9a-f]{8}')`,
		"memories": `SELECT count(*) FROM memories m WHERE ` + isVisibleMemory + ` = (title ~ 'HIDDENMARK[0-9a-f]{8}')`,
		"bodies":   `SELECT count(*) FROM memories m WHERE ` + isVisibleMemory + ` = (body ~ 'HIDDENMARK[0-9a-f]{8}')`,
		"json": `SELECT count(*) FROM memories m WHERE ` + isVisibleMemory +
			` = coalesce(metadata->>'mood' ~ 'HIDDENMARK' AND metadata->>'place' ~ 'HIDDENMARK' AND metadata->>'tags' ~ 'HIDDENMARK', false)`,
		"any json": `SELECT count(*) FROM memories m WHERE ` + isVisibleMemory + ` AND metadata::text ~ 'HIDDENMARK|77[0-9]{4}'`,
		"numbers":  `SELECT count(*) FROM memories m WHERE ` + isVisibleMemory + ` = coalesce((metadata->>'stars')::int BETWEEN 770000 AND 779999, false)`,
		"links": `SELECT count(*) FROM memory_participants l
			WHERE (EXISTS (SELECT FROM memories m WHERE m.id = l.memory_id AND ` + isVisibleMemory + `)
			   AND EXISTS (SELECT FROM people p WHERE p.id = l.person_id AND ` + isVisiblePerson + `)) = (role ~ 'HIDDENMARK')`,
		"edges": `SELECT count(*) FROM memory_edges WHERE weight NOT BETWEEN 770000 AND 779999`,
	} {
		if got := queryNumber(t, conn, sql); got != 0 {
			t.Errorf("%s: %d rows are marked wrongly", name, got)
		}
	}
	// The data contain each reason for which a row is hidden, and visible rows that are similar to each.
	for name, sql := range map[string]string{
		"a dangling link alone": `SELECT count(*) FROM memories m WHERE EXISTS (SELECT FROM memory_participants l LEFT JOIN people q ON q.id = l.person_id ` +
			`WHERE l.memory_id = m.id AND q.id IS NULL) AND NOT EXISTS (SELECT FROM memory_participants l JOIN people q ON q.id = l.person_id ` +
			`WHERE l.memory_id = m.id AND q.consent_status IS DISTINCT FROM 'granted')`,
		"another user's person": `SELECT count(*) FROM memories m JOIN memory_participants l ON l.memory_id = m.id JOIN people q ON q.id = l.person_id ` +
			`WHERE q.user_id <> m.user_id AND ` + isVisibleMemory,
		"a link hidden by person": `SELECT count(*) FROM memory_participants l JOIN memories m ON m.id = l.memory_id JOIN people p ON p.id = l.person_id ` +
			`WHERE ` + isVisibleMemory + ` AND NOT ` + isVisiblePerson,
		"no participants, not ours": `SELECT count(*) FROM memories m WHERE user_id <> '11111111-1111-4111-8111-111111111111' ` +
			`AND NOT EXISTS (SELECT FROM memory_participants l WHERE l.memory_id = m.id)`,
	} {
		if queryNumber(t, conn, sql) == 0 {
			t.Errorf("%s does not occur", name)
		}
	}
}

func TestArciveKeepsTheOwnersMeaningOfRespectConsent(t *testing.T) {
	tier.All(t)
	conn := loadArcive(t)
	for sql, want := range map[string]int{
		"SELECT count(*) FROM match_memories((SELECT embedding FROM memories LIMIT 1), 10000)":                                                      2505,
		"SELECT count(*) FROM match_memories((SELECT embedding FROM memories LIMIT 1), 10000, false)":                                               2505,
		"SELECT count(*) FROM match_memories((SELECT embedding FROM memories LIMIT 1), 10000, respect_consent => null)":                             1422,
		"SELECT count(*) FROM match_memories((SELECT embedding FROM memories LIMIT 1), 10000, true)":                                                1422,
		"SELECT count(*) FROM search_memories_semantic('by the lake', 10000, true)":                                                                 1422,
		"SELECT count(*) FROM search_memories_semantic('by the lake', 10000)":                                                                       2505,
		"SELECT count(*) FROM search_memories_semantic('', 3)":                                                                                      3,
		"SELECT count(*) FROM match_memories((SELECT embedding FROM memories WHERE title = 'Rowing on the lake'), 1) WHERE title LIKE 'Rowing on%'": 1,
	} {
		if got := queryNumber(t, conn, sql); got != want {
			t.Errorf("%s: %d, want %d", sql, got, want)
		}
	}
	if a, b := queryNumber(t, conn,
		"SELECT count(*) FROM memories m WHERE NOT EXISTS (SELECT FROM memory_participants l LEFT JOIN people q "+
			"ON q.id = l.person_id WHERE l.memory_id = m.id AND q.consent_status IS DISTINCT FROM 'granted')"), 1422; a != b {
		t.Errorf("memories without a refusal: %d, want %d", a, b)
	}
}

func TestArciveNewPeople(t *testing.T) {
	tier.All(t)
	conn := loadArcive(t)
	for sql, want := range map[string]string{
		"INSERT INTO people (user_id, name) VALUES (gen_random_uuid(), 'x') RETURNING consent_status":                                     "pending",
		"INSERT INTO people (user_id, name, is_self) VALUES (gen_random_uuid(), 'x', true) RETURNING consent_status":                      "granted",
		"INSERT INTO people (user_id, name, is_self, consent_status) VALUES (gen_random_uuid(), 'x', true, 'x') RETURNING consent_status": "granted",
	} {
		var got string
		if err := conn.QueryRow(context.Background(), sql).Scan(&got); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", sql, got, err, want)
		}
	}
}

func TestLoadIsDeterministic(t *testing.T) {
	tier.All(t)
	w, err := world.Open("arcive")
	if err != nil {
		t.Fatal(err)
	}
	var sums []string
	for range 2 {
		conn := pgtest.Database(t).Connect(t, "postgres")
		if err := w.Load(context.Background(), conn, nil); err != nil {
			t.Fatal(err)
		}
		var sum string
		err := conn.QueryRow(context.Background(), `SELECT md5(string_agg(s, ',' ORDER BY s)) FROM (
			SELECT m::text AS s FROM memories m UNION ALL SELECT p::text FROM people p UNION ALL
			SELECT l::text FROM memory_participants l UNION ALL SELECT e::text FROM memory_edges e) x`).Scan(&sum)
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, sum)
	}
	if sums[0] != sums[1] {
		t.Error("two loads differ")
	}
}

func TestOpenWorld(t *testing.T) {
	if _, err := world.Open("atlantis"); err == nil || !strings.Contains(err.Error(), "atlantis") {
		t.Errorf("a world that is not there: %v", err)
	}
	if _, err := world.Open("../../../examples/worlds/arcive"); err != nil {
		t.Errorf("the same world as a folder: %v", err)
	}
	if _, err := world.Open(t.TempDir()); err == nil {
		t.Error("an empty folder is a world")
	}
	for _, name := range world.List() {
		w, err := world.Open(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := os.Stat("../../../examples/worlds/" + name + "/README.md"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(w.AttributeNames()) == 0 {
			t.Errorf("%s: agents without attributes", name)
		}
	}
}

// An error in a world's SQL is reported with file, line and column, as an editor counts them.
func TestErrorsHavePositions(t *testing.T) {
	conn := pgtest.Database(t).Connect(t, "postgres")
	for _, c := range []struct{ schema, data, want string }{
		{"CREATE TABEL a ();", "", "schema.sql:1:8: "},
		{"CREATE TABLE a ();\nCREATE TABEL b ();", "", "schema.sql:2:8: "},
		{"CREATE TABLE a ();\n\nTABEL b;\n", "", "schema.sql:3:1: "},
		{"CREATE TABLE a (b text);", "INSERT INTO a\n  VALUES ('ä\n'), ('ö') UNIUN", "data.sql:3:11: "},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"schema.sql": c.schema, "data.sql": c.data, "policy.yaml": "version: 1\n",
			"world.yaml": "version: 1\nname: broken\nowner: app_owner\nagents: [ { name: chat } ]\n"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		w, err := world.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.LoadAsOwner(t.Context(), conn, nil); err == nil || !strings.HasPrefix(err.Error(), "world broken: "+c.want) {
			t.Errorf("%s\n%s\ngives %v\nwant  world broken: %s", c.schema, c.data, err, c.want)
		}
	}
}
