package attacks

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// Whether a statement gets a hardened plan depends on its path, and so on how large the tables are. No order of
// messages may reveal it. As of PostgreSQL 18, a statement behind an Execute in a pipeline is in a transaction block.
func TestNoPipelineTellsOfHardening(t *testing.T) {
	tier.All(t)
	const stmt = "SELECT count(*) FROM big WHERE note ILIKE '%x%' AND id IN (SELECT id FROM big y WHERE lower(y.note) = 'q')"
	parse := func(sql string) pgproto3.FrontendMessage { return &pgproto3.Parse{Query: sql} }
	query := func(sql string) pgproto3.FrontendMessage { return &pgproto3.Query{String: sql} }
	bind, execute, sync := &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Sync{}
	type messages = []pgproto3.FrontendMessage
	sequences := []messages{
		{parse("SELECT 1"), bind, execute, query(stmt), sync},
		{parse("SELECT 1"), bind, execute, query(stmt + "; SELECT 2"), sync},
		{query("PREPARE p AS " + stmt), parse("SELECT 1"), bind, execute, query("EXECUTE p"), sync},
		{parse(stmt), bind, parse("SET LOCAL extra_float_digits = 3"), bind, execute, sync},
		{parse(stmt), bind, parse("DECLARE c CURSOR FOR SELECT 1"), bind, execute, sync},
		{parse(stmt), bind, query("SELECT 1 / 0"), query("SELECT 1"), sync},
	}
	for _, nextSQL := range []string{"SELECT 1", "DECLARE c CURSOR FOR SELECT 1", "SAVEPOINT x", "COMMIT"} {
		sequences = append(sequences, messages{parse(stmt), bind, query(nextSQL), sync})
	}
	for _, nextSQL := range []string{"DISCARD ALL", "RESET ALL", "COMMIT"} {
		sequences = append(sequences, messages{parse(stmt), bind, parse(nextSQL), bind, execute, sync},
			messages{parse(stmt), bind, execute, parse(nextSQL), bind, execute, sync})
	}
	var got [2][]string
	for i, n := range []int{100, 30000} {
		db := pgtest.Database(t)
		instance.Exec(t, db, fmt.Sprintf(`CREATE TABLE big (id int PRIMARY KEY, owner text NOT NULL, note text);
			INSERT INTO big SELECT g, 'other', 'n' || g FROM generate_series(1, %d) g;
			INSERT INTO big SELECT g, 'me', 'x' FROM generate_series(100001, 100005) g; ANALYZE`, n))
		d := instance.Database{Name: "pair", DB: db,
			Policy: policyHead + "  big: { rows: [ own: { column: owner, is: user } ] }\n", SearchPath: []string{"public"}}
		proxy := instance.Start(t, instance.Auto, d, map[string]string{"user": "me"})
		for _, s := range sequences {
			got[i] = append(got[i], strings.ReplaceAll(converse(t, proxy, "pair", s), db.Name, "DATABASE"))
		}
	}
	for k := range sequences {
		if got[0][k] != got[1][k] {
			t.Errorf("%+v:\nof 100 hidden rows:\n%s\nof 30,000:\n%s", sequences[k], got[0][k], got[1][k])
		}
	}
}
