package e2e

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/migrations"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// Statements prepared by SQL and by the protocol share their names, as in PostgreSQL. The rules that are current at
// each execution apply.
func TestPrepareInSQL(t *testing.T) {
	in := start(t, options{})
	c := in.agent(t)
	ctx := context.Background()
	want := superuserList(t, in, `SELECT m.id::text FROM memories m WHERE `+visibleMemories)
	rows := func(a harness.Answer) []string {
		if a.Err != "" || len(a.Results) == 0 {
			t.Fatal(a.Err)
		}
		return a.Results[len(a.Results)-1].Rows
	}
	if a := harness.Ask(c, `PREPARE mine (text) AS SELECT id FROM memories WHERE title LIKE $1`); a.Err != "" {
		t.Fatal(a.Err)
	}
	wantSameRows(t, "EXECUTE", rows(harness.Ask(c, `EXECUTE mine ('%')`)), want)
	r := c.ExecPrepared(ctx, "mine", [][]byte{[]byte("%")}, nil, nil).Read()
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	var got []string
	for _, row := range r.Rows {
		got = append(got, string(row[0]))
	}
	wantSameRows(t, "Bind of it", got, want)

	// A statement prepared by the protocol is signed, and EXECUTE of it is signed as well.
	if _, err := c.Prepare(ctx, "wired", `SELECT id FROM memories WHERE title LIKE $1`, nil); err != nil {
		t.Fatal(err)
	}
	wantSameRows(t, "EXECUTE of a statement of the wire", rows(harness.Ask(c, `EXECUTE wired ('%')`)), want)

	// A withdrawal counts at the next execution.
	runAsSuperuser(t, in.db, `UPDATE people SET consent_status = 'refused' WHERE id = '`+aliceID+`'`)
	remainingIDs := superuserList(t, in, `SELECT m.id::text FROM memories m WHERE `+visibleMemories)
	if len(remainingIDs) == len(want) || slices.Contains(remainingIDs, aliceMemory) {
		t.Fatal("nothing was withdrawn")
	}
	for _, sql := range []string{`EXECUTE mine ('%')`, `EXECUTE wired ('%')`} {
		wantSameRows(t, sql+" after a withdrawal", rows(harness.Ask(c, sql)), remainingIDs)
	}

	for sql, code := range map[string]string{
		`PREPARE mine AS SELECT 1`:                            "42P05",
		`EXECUTE nothing`:                                     "26000",
		`EXECUTE pgconsent_seal ('pgconsent.seal', 'x')`:      "26000",
		`EXECUTE mine ((SELECT title FROM memories LIMIT 1))`: "0A000",
		`EXECUTE mine (pg_read_file('PG_VERSION'))`:           "42501",
		`PREPARE other AS SELECT pg_read_file('PG_VERSION')`:  "42501",
		`PREPARE other AS DELETE FROM people`:                 "42501",
		`CREATE TABLE copied AS EXECUTE mine ('%')`:           "42501",
	} {
		if a := harness.Ask(c, sql); a.Code != code || strings.Contains(a.Err, "c:") {
			t.Errorf("%s: %s, want %s", sql, a.Err, code)
		}
	}
	if _, err := c.Prepare(ctx, "tx", `COMMIT`, nil); err != nil {
		t.Fatal(err)
	}
	if a := harness.Ask(c, `EXECUTE tx`); a.Code != "0A000" {
		t.Errorf("EXECUTE of a COMMIT: %s", a)
	}
	in.requireNoMarker(t)
}

// After a change of the schema, statements that SQL has prepared return the right rows, or an error that drivers
// expect.
func TestPreparedInSQLUnderOldVersions(t *testing.T) {
	in := start(t, options{refreshInterval: quickRefresh})
	c := in.agent(t)
	if a := harness.Ask(c, `PREPARE mine AS SELECT count(*) FROM memories; PREPARE titled AS SELECT count(title) FROM memories`); a.Err != "" {
		t.Fatal(a.Err)
	}
	before := harness.Ask(c, `EXECUTE mine`)
	runAsSuperuser(t, in.db, `CREATE TABLE unrelated (id int)`)
	waitFor(t, "the new catalog", func() bool { return harness.Ask(c, `EXECUTE mine`).String() == before.String() })
	runAsSuperuser(t, in.db, `ALTER TABLE memories RENAME COLUMN title TO headline`)
	waitFor(t, "an error", func() bool { return harness.Ask(c, `EXECUTE titled`).Code != "" })
	if a := harness.Ask(c, `EXECUTE mine`); a.String() != before.String() && a.Code == "" {
		t.Errorf("another answer than before: %s", a)
	}
}

// Pools reset connections: settings and prepared statements are gone, and the agent's identity stays.
func TestResets(t *testing.T) {
	in := startForReading(t, options{})
	c := in.agent(t)
	ctx := context.Background()
	const countQuery = `SELECT count(*) FROM memories`
	want := harness.Ask(c, countQuery).String()
	for _, reset := range []string{
		`DISCARD ALL`, `RESET ALL`, `discard all;`, `SELECT 1; RESET ALL`, "SELECT pg_advisory_unlock_all();\nCLOSE ALL;\nUNLISTEN *;\nRESET ALL;",
		`SET SESSION AUTHORIZATION DEFAULT; RESET ALL; CLOSE ALL; UNLISTEN *; SELECT pg_advisory_unlock_all(); DISCARD SEQUENCES; DISCARD TEMP`,
		`BEGIN; RESET ALL; COMMIT`, `RESET ALL; ` + countQuery,
		`DISCARD PLANS`, `DISCARD TEMP; DISCARD SEQUENCES`, `DEALLOCATE ALL`,
	} {
		if a := harness.Ask(c, `SET TimeZone = 'Asia/Tokyo'; PREPARE kept AS `+countQuery); a.Err != "" {
			t.Fatal(a.Err)
		}
		if _, err := c.Prepare(ctx, "wire", countQuery, nil); err != nil {
			t.Fatal(err)
		}
		if a := harness.Ask(c, reset); a.Err != "" {
			t.Fatalf("%s: %s", reset, a.Err)
		}
		if got := harness.Ask(c, countQuery).String(); got != want {
			t.Errorf("after %s: %s", reset, got)
		}
		timeZone := harness.Ask(c, `SHOW TimeZone`)
		if resetsSettings := strings.Contains(strings.ToUpper(reset), "RESET ALL") ||
			strings.Contains(strings.ToUpper(reset), "DISCARD ALL"); strings.Contains(timeZone.String(), "Tokyo") == resetsSettings {
			t.Errorf("after %s: %s", reset, timeZone)
		}
		dropsStatements := strings.Contains(strings.ToUpper(reset), "DISCARD ALL") || strings.Contains(reset, "DEALLOCATE ALL")
		for _, name := range []string{"kept", "wire"} {
			a := harness.Ask(c, `EXECUTE `+name)
			if dropsStatements != (a.Code == "26000") || !dropsStatements && a.String() != want {
				t.Errorf("%s after %s: %s", name, reset, a)
			}
			if !dropsStatements {
				harness.Ask(c, `DEALLOCATE `+name)
			}
		}
		harness.Ask(c, `DEALLOCATE ALL`)
	}
	// The same holds in the extended protocol, and for several resets in one pipeline.
	if r := c.ExecParams(ctx, `DISCARD ALL`, nil, nil, nil, nil).Read(); r.Err != nil {
		t.Fatal(r.Err)
	}
	if got := harness.Ask(c, countQuery).String(); got != want {
		t.Errorf("after DISCARD ALL in the extended protocol: %s", got)
	}
	p := c.StartPipeline(ctx)
	for range 3 {
		for _, sql := range []string{`DISCARD ALL`, countQuery} {
			p.SendQueryParams(sql, nil, nil, nil, nil)
			p.SendPipelineSync()
		}
	}
	if err := p.Flush(); err != nil {
		t.Fatal(err)
	}
	answeredCounts := 0
	for {
		r, err := p.GetResults()
		if err != nil || r == nil {
			t.Fatalf("in a pipeline: %v", err)
		}
		if resultReader, ok := r.(*pgconn.ResultReader); ok {
			if readResult := resultReader.Read(); readResult.Err != nil {
				t.Errorf("in a pipeline: %v", readResult.Err)
			} else if len(readResult.Rows) == 1 && !strings.Contains(want, "\n"+string(readResult.Rows[0][0])+"\n") {
				t.Errorf("in a pipeline: %s", readResult.Rows[0][0])
			} else if len(readResult.Rows) == 1 {
				if answeredCounts++; answeredCounts == 3 {
					break
				}
			}
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	for sql, code := range map[string]string{`BEGIN; DISCARD ALL`: "0A000", `DISCARD ALL; ` + countQuery: "0A000"} {
		if a := harness.Ask(c, sql); a.Code != code {
			t.Errorf("%s: %s, want %s", sql, a, code)
		}
		harness.Ask(c, `ROLLBACK`)
	}
	harness.Ask(c, `BEGIN`)
	if a := harness.Ask(c, `DISCARD ALL`); a.Code != "25001" {
		t.Errorf("DISCARD ALL in a transaction: %s", a)
	}
	harness.Ask(c, `ROLLBACK`)
	// ROLLBACK undoes RESET ALL. Statements after a reset in a pipeline still have the agent's identity.
	harness.Ask(c, `SET TimeZone = 'Asia/Tokyo'`)
	for _, step := range []struct{ sql, want string }{
		{`BEGIN`, "BEGIN"}, {`RESET ALL`, "RESET"}, {countQuery, want}, {`SHOW TimeZone`, "UTC"}, {`ROLLBACK`, "ROLLBACK"}, {`SHOW TimeZone`,
			"Tokyo"},
	} {
		if a := harness.Ask(c, step.sql); a.Err != "" || !strings.Contains(a.String(), step.want) {
			t.Errorf("%s: %s, want %s", step.sql, a, step.want)
		}
	}
	for _, reset := range []string{`RESET ALL`, `DISCARD ALL`} {
		harness.Ask(c, `SET TimeZone = 'Asia/Tokyo'`)
		answers := inOneGroup(t, c, reset, countQuery, `SHOW TimeZone`)
		if len(answers) != 3 || answers[0] != reset && answers[0] != "RESET" || !strings.Contains(want, "\n"+answers[1]+"\n") || answers[2] != "UTC" {
			t.Errorf("behind %s in a pipeline: %v", reset, answers)
		}
	}
	if _, err := c.Prepare(ctx, "wire", countQuery, nil); err != nil {
		t.Fatal(err)
	}
	if answers := inOneGroup(t, c, `BEGIN`, countQuery, `COMMIT`, `DISCARD ALL`, `EXECUTE wire`, countQuery); len(answers) != 5 ||
		answers[3] != "DISCARD ALL" || answers[4] != "26000" {
		t.Errorf("behind COMMIT and DISCARD ALL in a pipeline: %v", answers)
	}
	if got := harness.Ask(c, countQuery).String(); got != want {
		t.Errorf("at the end: %s", got)
	}
	in.requireNoMarker(t)
}

// inOneGroup sends statements with one Sync after them. It returns the first value or the command tag of each, and the
// SQLSTATE of the first error.
func inOneGroup(t *testing.T, c *pgconn.PgConn, statements ...string) (answers []string) {
	t.Helper()
	p := c.StartPipeline(context.Background())
	for _, sql := range statements {
		p.SendQueryParams(sql, nil, nil, nil, nil)
	}
	if err := p.Sync(); err != nil {
		t.Fatal(err)
	}
	for {
		r, err := p.GetResults()
		var server *pgconn.PgError
		switch resultReader, isResult := r.(*pgconn.ResultReader); {
		case errors.As(err, &server):
			answers = append(answers, server.Code)
		case err != nil:
			t.Fatal(err)
		case isResult:
			readResult := resultReader.Read()
			if answer := readResult.CommandTag.String(); readResult.Err != nil {
				if errors.As(readResult.Err, &server) {
					answer = server.Code
				}
				answers = append(answers, answer)
			} else if len(readResult.Rows) > 0 {
				answers = append(answers, string(readResult.Rows[0][0]))
			} else {
				answers = append(answers, answer)
			}
		default: // the Sync
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			return answers
		}
	}
}

// When the key of the seals is rotated, sessions go on. The old key is deleted when no seal needs it any more.
func TestRotateKey(t *testing.T) {
	tier.All(t)
	in := start(t, options{refreshInterval: quickRefresh})
	c := in.agent(t)
	const countQuery = `SELECT count(*) FROM memories`
	want := harness.Ask(c, countQuery).String()
	owner := in.db.Connect(t, "postgres")
	keyID, err := migrations.RotateKey(context.Background(), owner)
	if err != nil || keyID != 2 {
		t.Fatal(keyID, err)
	}
	keyIDs := func() string {
		return strings.Join(superuserList(t, in, `SELECT kid::text FROM pgconsent.keys ORDER BY 1`), ",")
	}
	for range 10 {
		if got := harness.Ask(c, countQuery).String(); got != want {
			t.Fatalf("after a new key: %s", got)
		}
		time.Sleep(50 * time.Millisecond)
	}
	if keyIDs() != "1,2" {
		t.Errorf("keys %s", keyIDs())
	}
	runAsSuperuser(t, in.db, `UPDATE pgconsent.keys SET made_at = made_at - interval '3 minutes'`)
	waitFor(t, "the old key is gone", func() bool { return keyIDs() == "2" })
	if got := harness.Ask(in.agent(t), countQuery).String(); got != want {
		t.Errorf("a new session: %s", got)
	}
}

// waitFor waits until f returns true.
func waitFor(t testing.TB, description string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(tier.Patience); !f(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", description)
		}
	}
}
