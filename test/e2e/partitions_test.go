package e2e

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

const partitionSetup = `
CREATE TABLE journal (id int, user_id uuid, day date, text text) PARTITION BY RANGE (day);
CREATE TABLE journal_old PARTITION OF journal FOR VALUES FROM (MINVALUE) TO ('2024-01-01');
CREATE TABLE journal_new (text text, day date, id int, user_id uuid);
ALTER TABLE journal ATTACH PARTITION journal_new FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
CREATE TABLE journal_late PARTITION OF journal DEFAULT;
INSERT INTO journal SELECT i, CASE WHEN i % 3 = 0 THEN '` + user1 + `' ELSE '` + user2 + `' END::uuid, date '2023-01-01' + i,
CASE WHEN i % 3 = 0 THEN 'entry ' ELSE 'HIDDENMARK ' END || i
FROM generate_series(1, 1000) i;
CREATE TABLE papers (id int PRIMARY KEY, user_id uuid, text text);
CREATE TABLE letters () INHERITS (papers);
INSERT INTO papers SELECT i, CASE WHEN i % 2 = 0 THEN '` + user1 + `' ELSE '` + user2 + `' END::uuid, CASE WHEN i % 2 = 0 THEN 'paper' ELSE 'HIDDENMARK' END
FROM generate_series(1, 20) i;
INSERT INTO letters SELECT i, CASE WHEN i % 2 = 0 THEN '` + user1 + `' ELSE '` + user2 +
	`' END::uuid, CASE WHEN i % 2 = 0 THEN 'letter' ELSE 'HIDDENMARK' END FROM generate_series(21, 40) i;
`

// arciveFunctions is the last part of the world's policy.
const arciveFunctions = "functions: { match_memories: { pin: { respect_consent: true } }, " +
	"search_memories_semantic: { pin: { respect_consent: true } } }\n"

var partitionStatements = []string{
	"SELECT count(*) FROM journal", "SELECT * FROM journal_old ORDER BY id LIMIT 5",
	"SELECT text, day FROM journal_new WHERE day > '2024-06-01' ORDER BY day LIMIT 3", "SELECT count(*) FROM ONLY journal",
	"SELECT max(id) FROM journal_late",
	"SELECT j.id, o.id FROM journal j JOIN journal_old o ON o.id = j.id + 3 ORDER BY 1 LIMIT 5",
	"SELECT journal_new FROM journal_new ORDER BY id LIMIT 2",
	"SELECT count(*) FROM journal_old WHERE 1 / (id % 3) IS NULL", "TABLE journal_late",
	"SELECT tableoid::regclass, count(*) FROM journal GROUP BY 1 ORDER BY 1", "SELECT count(*) FROM journal_old GROUP BY day HAVING count(*) > 1",
	"SELECT count(*), min(text) FROM papers", "SELECT count(*) FROM ONLY papers", "SELECT * FROM letters ORDER BY id",
	"SELECT count(*) FROM papers *", "SELECT id FROM papers EXCEPT SELECT id FROM letters ORDER BY 1", "COPY letters TO STDOUT",
	"COPY papers TO STDOUT", "COPY (SELECT * FROM journal_new ORDER BY id) TO STDOUT",
	"SELECT papers FROM papers JOIN letters USING (id) ORDER BY id LIMIT 3",
}

// Partitions and child tables give the answers of a database without the hidden rows, by their own name and through
// their parents.
func TestPartitionsAnswerAsOnTheFilteredCopy(t *testing.T) {
	tier.All(t)
	copyDB := pgtest.Template(t, "arcive", loadArcive)
	runAsSuperuser(t, copyDB, partitionSetup)
	runAsSuperuser(t, copyDB, "DELETE FROM journal WHERE user_id <> '"+user1+"'; DELETE FROM papers WHERE user_id <> '"+user1+"'")
	rules := "  journal: { rows: [ { own: { column: user_id, is: user } } ] }\n  papers: { rows: [ { own: { column: user_id, is: user } } ] }\n"
	for name, o := range map[string]options{"both": {}, "row security alone": {mode: modeRLS},
		"predicates alone": {mode: modeInjected, rowSecurity: withoutPolicies}} {
		t.Run(name, func(t *testing.T) {
			o.beforeMigrate = partitionSetup
			o.policy = arcivePolicy[:len(arcivePolicy)-len(arciveFunctions)] + rules + arciveFunctions
			in := start(t, o)
			agent, filteredConn := in.agent(t), harness.Connect(t, copyDB.DSN("postgres", ""))
			comparedCount := 0
			for _, sql := range partitionStatements {
				want, got := harness.Ask(filteredConn, sql), harness.Ask(agent, sql)
				if got.Code == "0A000" && o.mode == modeInjected {
					continue // only row security applies to it
				}
				comparedCount++
				if got.Code != want.Code || want.Err == "" && got.SortedString() != want.SortedString() {
					t.Errorf("%s\nagent:\n%s\nfiltered copy:\n%s", sql, harness.Truncate(got.SortedString()), harness.Truncate(want.SortedString()))
				}
			}
			if comparedCount < 9 {
				t.Errorf("only %d statements were compared", comparedCount)
			}
			in.requireNoMarker(t)
		})
	}
}
