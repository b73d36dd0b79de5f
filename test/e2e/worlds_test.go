package e2e

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// Agents count the same rows in the example worlds when statements read signed views only.

func TestKernleCountsAlikeOnBothPaths(t *testing.T) {
	tier.All(t)
	counts := map[string][]string{}
	for _, mode := range enforcedModes {
		k := readKernle(t, mode)
		for _, session := range []struct{ name, in string }{
			{"bella", ""}, {"bella", "ctx:bella_health"}, {"bella", "ctx:dog_park"}, {"ash", ""}, {
				"ash_as_guest", ""}, {"ashley", ""}, {"sean", ""}, {"vet", ""}, {"tutor_b", "ctx:student_123_academic"}, {"mallory", "ctx:bella_health"},
		} {
			c := k.connectAs(session.name, session.in)
			for _, table := range []string{"episodes", "beliefs", "notes", "raw_entries", "episodes_array",
				"episodes_jsonb", "privacy_contexts", "consent_records", "guardians", "stacks", "aliases", "generalizations"} {
				counts[mode.Name] = append(counts[mode.Name], session.name+" "+session.in+" "+table+" "+harness.Ask(c, "SELECT * FROM "+table).SortedString())
			}
			harness.Close(c)
		}
	}
	wantAlikeCounts(t, counts)
}

func TestBeheardCountsAlikeOnBothPaths(t *testing.T) {
	tier.All(t)
	counts := map[string][]string{}
	for _, mode := range enforcedModes {
		b := startBeheardIn(t, mode)
		agents := map[string]*pgconn.PgConn{"ana": b.agent, "ben": b.connectAs(t, "ben", "ses-1-4"),
			"planner": b.connectAs(t, "planner", "ses-1-4")}
		for _, stage := range []string{"0", "1", "2", "3", "4"} {
			b.setStage(t, stage)
			for _, name := range []string{"ana", "ben", "planner"} {
				for _, table := range []string{"Session", "Relationship", "SessionOutcome", "UserEvent",
					"EmotionalReading", "Need", "Boundary", "ConsentedContent", "CommonGround", "Agreement",
					"MicroExperiment", "GlobalExperiment", "AISynthesis", "UserVessel", "Turn"} {
					counts[mode.Name] = append(counts[mode.Name],
						"stage "+stage+" "+name+" "+table+" "+
							oneText(agents[name], `SELECT id FROM "`+table+`" ORDER BY id LIMIT 5`), oneText(agents[name], `SELECT count(*) FROM "`+table+`"`))
				}
			}
		}
		b.proxy.Tap().RequireNoMarker(t)
	}
	wantAlikeCounts(t, counts)
}

// wantAlikeCounts compares the counts of each mode. At least some statements must be answered.
func wantAlikeCounts(t *testing.T, counts map[string][]string) {
	t.Helper()
	firstCounts, otherCounts := counts[enforcedModes[0].Name], counts[enforcedModes[1].Name]
	answeredCount := 0
	for i := range firstCounts {
		if firstCounts[i] != otherCounts[i] {
			t.Errorf("%s: %s\n%s: %s", enforcedModes[0].Name, harness.Truncate(firstCounts[i]), enforcedModes[1].Name, harness.Truncate(otherCounts[i]))
		}
		if !strings.Contains(firstCounts[i], "42501") {
			answeredCount++
		}
	}
	if len(firstCounts) != len(otherCounts) || answeredCount < 50 {
		t.Errorf("%d and %d answers, %d of them rows: they say little", len(firstCounts), len(otherCounts), answeredCount)
	}
}

// A context is entered by SET or in the connection string. It is left by RESET, DISCARD ALL or an empty value. It works
// with psql and psycopg as well. A connection string with a context in which the agent does not take part is refused.
func TestKernleContextIsEnteredAndLeft(t *testing.T) {
	k := readKernle(t, harness.Both)
	const teamQuery = "SELECT count(*) FROM episodes WHERE id = 'episode:1002'"
	steps := func(in string) [][2]string {
		return [][2]string{{teamQuery, in}, {"SET pgconsent.context = 'ctx:dog_park'", ""}, {teamQuery, "0"},
			{"SET pgconsent.context TO 'ctx:bella_health'", ""}, {teamQuery, "1"}, {"RESET pgconsent.context", ""}, {teamQuery, in},
			{"SET pgconsent.context = 'ctx:bella_health'", ""}, {"SET pgconsent.context = ''", ""}, {teamQuery, "0"}, {
				"BEGIN", ""}, {"SET LOCAL pgconsent.context = 'ctx:bella_health'", ""}, {teamQuery, "1"}, {"COMMIT", ""}, {teamQuery, "0"},
			{"SET pgconsent.context = 'ctx:bella_health'", ""}, {"DISCARD ALL", ""}, {teamQuery, in}, {
				"SET pgconsent.context = 'ctx:student_123_academic'", "42501"}, {teamQuery, in}}
	}
	options := func(context string) string {
		return k.proxy.DSN("bella", "kernle") + "&options=-c%20pgconsent.context%3D" + strings.ReplaceAll(context, ":", "%3A")
	}
	for in, dsn := range map[string]string{"0": k.proxy.DSN("bella", "kernle"), "1": options("ctx:bella_health")} {
		c := harness.Connect(t, dsn)
		for i, step := range steps(in) {
			if got := oneText(c, step[0]); got != step[1] {
				t.Errorf("connected with %s, step %d, %s: got %q, want %q", in, i, step[0], got, step[1])
			}
		}
	}
	for _, context := range []string{"ctx:student_123_academic", "ctx:none", "ctx:broken"} {
		if _, err := harness.Dial(options(context)); err == nil || !strings.Contains(err.Error(), "42501") {
			t.Errorf("%s: %v", context, err)
		}
	}
	t.Run("psql", func(t *testing.T) {
		psql, _ := pgtest.ClientProgram(t, "psql")
		args := []string{"-X", "-A", "-t", "-q", options("ctx:bella_health")}
		for _, sql := range []string{teamQuery, "SET pgconsent.context = 'ctx:dog_park'", teamQuery, "RESET pgconsent.context",
			teamQuery, "SET pgconsent.context = ''", teamQuery} {
			args = append(args, "-c", sql)
		}
		output, err := exec.CommandContext(t.Context(), psql, args...).CombinedOutput()
		if err != nil || !slices.Equal(strings.Fields(string(output)), []string{"1", "0", "1", "0"}) {
			t.Errorf("%v\n%s", err, output)
		}
	})
	t.Run("psycopg", func(t *testing.T) {
		const program = `
import sys, psycopg
dsn = sys.argv[1]
team = "SELECT count(*) FROM episodes WHERE id = %s"
def see(c): return str(c.execute(team, ("episode:1002",)).fetchone()[0])
with psycopg.connect(dsn, autocommit=True) as c:
    out = [see(c)]
    c.execute("SET pgconsent.context = 'ctx:bella_health'"); out.append(see(c))
    c.execute("RESET pgconsent.context"); out.append(see(c))
    try: c.execute("SET pgconsent.context = 'ctx:none'"); out.append("entered")
    except psycopg.errors.InsufficientPrivilege: out.append(see(c))
with psycopg.connect(dsn, options="-c pgconsent.context=ctx:bella_health") as c:
    out.append(see(c)); c.execute("SET pgconsent.context = 'ctx:dog_park'"); out.append(see(c)); c.rollback(); out.append(see(c))
print(*out)`
		for _, python := range []string{"/usr/bin/python3", "python3"} {
			if exec.CommandContext(t.Context(), python, "-c", "import psycopg").Run() != nil {
				continue
			}
			output, err := exec.CommandContext(t.Context(), python, "-c", program, k.proxy.DSN("bella", "kernle")).CombinedOutput()
			if err != nil || strings.TrimSpace(string(output)) != "0 1 0 0 1 0 1" {
				t.Errorf("%v\n%s", err, output)
			}
			return
		}
		skipMissing(t, "Python's psycopg")
	})
	k.proxy.Tap().RequireNoMarker(t)
}

// disturbKernle changes rows that bella sees in no context, in every way that does not affect her: texts, lists,
// sources, times and the number of rows. It also changes records of consent and guardians that have no effect for her.
const disturbKernle = `
DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY '{episodes,beliefs,notes,raw_entries,episodes_array,episodes_jsonb}'::text[] LOOP
    EXECUTE format($f$
      DELETE FROM %1$I WHERE content LIKE 'HIDDENMARK%%' AND md5(id) < '3';
      UPDATE %1$I SET content = 'HIDDENMARK(1', source_entity = 'HIDDENMARK', created_at = 'infinity', access_grants = DEFAULT
        WHERE content LIKE 'HIDDENMARK%%' AND md5(id) < '8';
      UPDATE %1$I SET content = '1', consent_grants = NULL, created_at = created_at - interval '3 years' WHERE content LIKE 'HIDDENMARK%%' AND md5(id) >= '8';
      INSERT INTO %1$I (id, stack_id, content) SELECT 'more:' || n, 'ash', 'HIDDENMARK more' FROM generate_series(1, 40) n $f$, t);
  END LOOP;
END $$;
INSERT INTO episodes (id, stack_id, content, subject_ids, access_grants) VALUES ('more:bad', 'ash', 'HIDDENMARK', '["', '["*"]'),
  ('more:about', 'ash', 'HIDDENMARK', '["human:nobody"]', '["*"]');
INSERT INTO consent_records (id, stack_id, grantor, grantee, scope) VALUES ('consent:HIDDENMARK', 'ash', 'human:mira', 'si:rex', '*'),
  ('consent:HIDDENMARK2', 'student_123', 'human:kid_123', 'si:ashley', '*');
DELETE FROM consent_records WHERE id = 'consent:9';
INSERT INTO guardians VALUES ('student_123', 'human:HIDDENMARK', 'human:HIDDENMARK');
UPDATE privacy_contexts SET default_access_grants = '["*"]', participants = '["HIDDENMARK"]' WHERE id IN ('context:3', 'context:4', 'context:5');
DELETE FROM stacks WHERE id = 'mallory';
INSERT INTO stacks VALUES ('HIDDENMARK', 'si:HIDDENMARK');
DELETE FROM aliases WHERE subject = 'human:student_123';
INSERT INTO aliases (stack_id, subject, alias) VALUES ('ash', 'dog:bella', 'HIDDENMARK');
INSERT INTO generalizations (id, stack_id, belief_id, source_id) VALUES ('generalization:HIDDENMARK', 'ash', 'belief:1004', 'episode:1001');
`

// Two databases that differ only in rows that bella does not see give her the same answers, in a context or in none.
func TestKernleTwinsAnswerAlike(t *testing.T) {
	tier.All(t)
	firstTwin, secondTwin := startKernle(t), startKernle(t, disturbKernle)
	statements := []string{
		"SELECT * FROM %s ORDER BY id", "SELECT count(*), max(content), min(created_at) FROM %s",
		"SELECT string_agg(content, ',' ORDER BY id) FROM %s", "SELECT stack_id, count(*) FROM %s GROUP BY 1 ORDER BY 1",
		"SELECT content::int FROM %s ORDER BY id", "SELECT 1 / (length(content) - 12) FROM %s ORDER BY id",
		"SELECT id FROM %s WHERE content ~ '(' || left(content, 0) ORDER BY id", "SELECT source_entity, count(*) FROM %s GROUP BY 1 ORDER BY 1",
		"SELECT id FROM %s WHERE access_grants::text LIKE '%%*%%' ORDER BY id",
		"SELECT (subject_ids::text)::jsonb FROM %s ORDER BY id", "SELECT a.id FROM %[1]s a LEFT JOIN %[1]s b ON a.id < b.id WHERE b.id IS NULL",
		"SELECT id FROM %s WHERE id = 'episode:1003' OR id LIKE 'more:%%'",
		"SELECT id FROM %s EXCEPT SELECT id FROM beliefs ORDER BY 1", "SELECT row_number() OVER (ORDER BY created_at, id), id FROM %s ORDER BY 1",
		"SELECT id FROM %s WHERE NOT EXISTS (SELECT FROM privacy_contexts WHERE stack_id = 'mallory') ORDER BY id " +
			"LIMIT 3", "WITH m AS (SELECT id FROM %s OFFSET 3) SELECT count(*) FROM m", "COPY (SELECT id, content FROM %s ORDER BY id) TO STDOUT",
		"UPDATE %s SET content = content WHERE id = 'episode:1003' RETURNING id",
		"UPDATE %s SET content = 'x' WHERE stack_id = 'ash'",
		"INSERT INTO %s (id, stack_id, content) VALUES ('episode:1003', 'ash', 'x')", "DELETE FROM %s",
		"EXPLAIN SELECT * FROM %s", "SELECT pg_relation_size('%s')", "SELECT ctid, xmin FROM %s",
		"SELECT reltuples FROM pg_class WHERE relname = '%s'", "SELECT * FROM pg_stats WHERE tablename = '%s'", "SELECT * FROM nothing, %s",
		"SELECT id FROM %s TABLESAMPLE SYSTEM (50)", "SELECT id FROM %s ORDER BY content COLLATE \"C\", id LIMIT 5",
		"SELECT count(DISTINCT source_entity) FROM %s",
	}
	for _, in := range []string{"", "ctx:bella_health", "ctx:dog_park"} {
		tables := kernleTables()
		if in != "" {
			tables = kernleTables()[:1]
		}
		for _, table := range tables {
			for _, condition := range statements {
				sql := strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(condition, "%[1]s", table), "%s", table), "%%", "%")
				a, b := firstTwin.transcript(sql, in), secondTwin.transcript(sql, in)
				if a != b {
					t.Errorf("%s in %q\none:\n%s\ntwin:\n%s", sql, in, harness.Truncate(a), harness.Truncate(b))
				}
			}
		}
		for _, sql := range []string{"SELECT * FROM stacks", "SELECT * FROM privacy_contexts ORDER BY id",
			"SELECT * FROM guardians", "SELECT * FROM consent_records ORDER BY id",
			"SELECT * FROM aliases", "SELECT count(*) FROM aliases", "SELECT * FROM generalizations",
			"SELECT b.id FROM beliefs b JOIN generalizations g ON g.belief_id = b.id",
			"INSERT INTO aliases (stack_id, subject, alias) VALUES ('ash', 'dog:bella', 'HIDDENMARK')",
			"INSERT INTO generalizations (stack_id, belief_id, source_id) VALUES ('ash', 'belief:1004', 'episode:1001')", "DELETE FROM aliases",
			"SET pgconsent.context = 'ctx:none'", "SET pgconsent.context = 'ctx:student_123_academic'",
			"SET pgconsent.context = 'ctx:broken'", "INSERT INTO consent_records (id, stack_id, grantee, scope) VALUES ('consent:HIDDEN', 'ash', 'x', '*')"} {
			if a, b := firstTwin.transcript(sql, in), secondTwin.transcript(sql, in); a != b {
				t.Errorf("%s in %q\none:\n%s\ntwin:\n%s", sql, in, a, b)
			}
		}
	}
	// A control test: for the owner the databases differ.
	for _, table := range []string{"episodes", "privacy_contexts", "consent_records", "guardians", "stacks", "aliases", "generalizations"} {
		sql := "SELECT * FROM " + table
		if harness.Ask(harness.ConnectSuperuser(t, firstTwin.db), sql).SortedString() == harness.Ask(harness.ConnectSuperuser(t, secondTwin.db), sql).SortedString() {
			t.Errorf("%s is the same in both, which proves nothing", table)
		}
	}
	firstTwin.proxy.Tap().RequireNoMarker(t)
	secondTwin.proxy.Tap().RequireNoMarker(t)
}

// transcript returns the answer to a statement of bella's, in a transaction that is rolled back.
func (k *kernle) transcript(sql, in string) string {
	k.Helper()
	if k.bella == nil {
		k.bella = k.connectAs("bella", "")
	}
	k.mustExec(k.bella, "SET pgconsent.context = '"+in+"'")
	k.mustExec(k.bella, "BEGIN")
	a := harness.AskCopy(k.bella, sql)
	k.mustExec(k.bella, "ROLLBACK")
	return a.String()
}
