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

// Statements that SQL prepares and those of the wire share their names, as in PostgreSQL; each use is under the rules of
// the moment.
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

	// A statement prepared by the wire is signed, and so is its EXECUTE.
	if _, err := c.Prepare(ctx, "wired", `SELECT id FROM memories WHERE title LIKE $1`, nil); err != nil {
		t.Fatal(err)
	}
	wantSameRows(t, "EXECUTE of a statement of the wire", rows(harness.Ask(c, `EXECUTE wired ('%')`)), want)

	// A withdrawal acts on the next use.
	runAsSuperuser(t, in.db, `UPDATE people SET consent_status = 'refused' WHERE id = '`+alice+`'`)
	fewer := superuserList(t, in, `SELECT m.id::text FROM memories m WHERE `+visibleMemories)
	if len(fewer) == len(want) || slices.Contains(fewer, lakeAlice) {
		t.Fatal("nothing was withdrawn")
	}
	for _, sql := range []string{`EXECUTE mine ('%')`, `EXECUTE wired ('%')`} {
		wantSameRows(t, sql+" after a withdrawal", rows(harness.Ask(c, sql)), fewer)
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
	in.noMarker(t)
}

// The schema changes under statements that SQL has prepared: they are right, or refused as drivers expect.
func TestPreparedInSQLUnderOldVersions(t *testing.T) {
	in := start(t, options{refresh: quickRefresh})
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

// Pools reset connections: settings and names are gone, the identity is not.
func TestResets(t *testing.T) {
	in := startForReading(t, options{})
	c := in.agent(t)
	ctx := context.Background()
	const count = `SELECT count(*) FROM memories`
	want := harness.Ask(c, count).String()
	for _, reset := range []string{
		`DISCARD ALL`, `RESET ALL`, `discard all;`, `SELECT 1; RESET ALL`, "SELECT pg_advisory_unlock_all();\nCLOSE ALL;\nUNLISTEN *;\nRESET ALL;",
		`SET SESSION AUTHORIZATION DEFAULT; RESET ALL; CLOSE ALL; UNLISTEN *; SELECT pg_advisory_unlock_all(); DISCARD SEQUENCES; DISCARD TEMP`,
		`BEGIN; RESET ALL; COMMIT`, `RESET ALL; ` + count,
		`DISCARD PLANS`, `DISCARD TEMP; DISCARD SEQUENCES`, `DEALLOCATE ALL`,
	} {
		if a := harness.Ask(c, `SET TimeZone = 'Asia/Tokyo'; PREPARE kept AS `+count); a.Err != "" {
			t.Fatal(a.Err)
		}
		if _, err := c.Prepare(ctx, "wire", count, nil); err != nil {
			t.Fatal(err)
		}
		if a := harness.Ask(c, reset); a.Err != "" {
			t.Fatalf("%s: %s", reset, a.Err)
		}
		if got := harness.Ask(c, count).String(); got != want {
			t.Errorf("after %s: %s", reset, got)
		}
		zone := harness.Ask(c, `SHOW TimeZone`)
		if settings := strings.Contains(strings.ToUpper(reset), "RESET ALL") ||
			strings.Contains(strings.ToUpper(reset), "DISCARD ALL"); strings.Contains(zone.String(), "Tokyo") == settings {
			t.Errorf("after %s: %s", reset, zone)
		}
		isReset := strings.Contains(strings.ToUpper(reset), "DISCARD ALL") || strings.Contains(reset, "DEALLOCATE ALL")
		for _, name := range []string{"kept", "wire"} {
			a := harness.Ask(c, `EXECUTE `+name)
			if isReset != (a.Code == "26000") || !isReset && a.String() != want {
				t.Errorf("%s after %s: %s", name, reset, a)
			}
			if !isReset {
				harness.Ask(c, `DEALLOCATE `+name)
			}
		}
		harness.Ask(c, `DEALLOCATE ALL`)
	}
	// In the extended protocol, and many at once in one pipeline.
	if r := c.ExecParams(ctx, `DISCARD ALL`, nil, nil, nil, nil).Read(); r.Err != nil {
		t.Fatal(r.Err)
	}
	if got := harness.Ask(c, count).String(); got != want {
		t.Errorf("after DISCARD ALL in the extended protocol: %s", got)
	}
	p := c.StartPipeline(ctx)
	for range 3 {
		for _, sql := range []string{`DISCARD ALL`, count} {
			p.SendQueryParams(sql, nil, nil, nil, nil)
			p.SendPipelineSync()
		}
	}
	if err := p.Flush(); err != nil {
		t.Fatal(err)
	}
	counts := 0
	for {
		r, err := p.GetResults()
		if err != nil || r == nil {
			t.Fatalf("in a pipeline: %v", err)
		}
		if rr, ok := r.(*pgconn.ResultReader); ok {
			if read := rr.Read(); read.Err != nil {
				t.Errorf("in a pipeline: %v", read.Err)
			} else if len(read.Rows) == 1 && !strings.Contains(want, "\n"+string(read.Rows[0][0])+"\n") {
				t.Errorf("in a pipeline: %s", read.Rows[0][0])
			} else if len(read.Rows) == 1 {
				if counts++; counts == 3 {
					break
				}
			}
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	for sql, code := range map[string]string{`BEGIN; DISCARD ALL`: "0A000", `DISCARD ALL; ` + count: "0A000"} {
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
	// RESET ALL ends with its transaction, and what stands behind it in a pipeline has the identity still.
	harness.Ask(c, `SET TimeZone = 'Asia/Tokyo'`)
	for _, step := range []struct{ sql, want string }{
		{`BEGIN`, "BEGIN"}, {`RESET ALL`, "RESET"}, {count, want}, {`SHOW TimeZone`, "UTC"}, {`ROLLBACK`, "ROLLBACK"}, {`SHOW TimeZone`, "Tokyo"},
	} {
		if a := harness.Ask(c, step.sql); a.Err != "" || !strings.Contains(a.String(), step.want) {
			t.Errorf("%s: %s, want %s", step.sql, a, step.want)
		}
	}
	for _, reset := range []string{`RESET ALL`, `DISCARD ALL`} {
		harness.Ask(c, `SET TimeZone = 'Asia/Tokyo'`)
		answers := inOneGroup(t, c, reset, count, `SHOW TimeZone`)
		if len(answers) != 3 || answers[0] != reset && answers[0] != "RESET" || !strings.Contains(want, "\n"+answers[1]+"\n") || answers[2] != "UTC" {
			t.Errorf("behind %s in a pipeline: %v", reset, answers)
		}
	}
	if _, err := c.Prepare(ctx, "wire", count, nil); err != nil {
		t.Fatal(err)
	}
	if answers := inOneGroup(t, c, `BEGIN`, count, `COMMIT`, `DISCARD ALL`, `EXECUTE wire`, count); len(answers) != 5 ||
		answers[3] != "DISCARD ALL" || answers[4] != "26000" {
		t.Errorf("behind COMMIT and DISCARD ALL in a pipeline: %v", answers)
	}
	if got := harness.Ask(c, count).String(); got != want {
		t.Errorf("at the end: %s", got)
	}
	in.noMarker(t)
}

// inOneGroup sends statements with one Sync after them. It returns the first value of each or its command tag, up to
// the first error, whose SQLSTATE it returns.
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
		switch rr, isResult := r.(*pgconn.ResultReader); {
		case errors.As(err, &server):
			answers = append(answers, server.Code)
		case err != nil:
			t.Fatal(err)
		case isResult:
			read := rr.Read()
			if answer := read.CommandTag.String(); read.Err != nil {
				if errors.As(read.Err, &server) {
					answer = server.Code
				}
				answers = append(answers, answer)
			} else if len(read.Rows) > 0 {
				answers = append(answers, string(read.Rows[0][0]))
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

// A new key: sessions go on, and the old key is gone when no seal is left that it verifies.
func TestRotateKey(t *testing.T) {
	tier.All(t)
	in := start(t, options{refresh: quickRefresh})
	c := in.agent(t)
	const count = `SELECT count(*) FROM memories`
	want := harness.Ask(c, count).String()
	owner := in.db.Connect(t, "postgres")
	kid, err := migrations.RotateKey(context.Background(), owner)
	if err != nil || kid != 2 {
		t.Fatal(kid, err)
	}
	keys := func() string {
		return strings.Join(superuserList(t, in, `SELECT kid::text FROM pgconsent.keys ORDER BY 1`), ",")
	}
	for range 10 {
		if got := harness.Ask(c, count).String(); got != want {
			t.Fatalf("after a new key: %s", got)
		}
		time.Sleep(50 * time.Millisecond)
	}
	if keys() != "1,2" {
		t.Errorf("keys %s", keys())
	}
	runAsSuperuser(t, in.db, `UPDATE pgconsent.keys SET made_at = made_at - interval '3 minutes'`)
	waitFor(t, "the old key is gone", func() bool { return keys() == "2" })
	if got := harness.Ask(in.agent(t), count).String(); got != want {
		t.Errorf("a new session: %s", got)
	}
}

// waitFor waits until f says yes.
func waitFor(t testing.TB, description string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(tier.Patience); !f(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", description)
		}
	}
}
