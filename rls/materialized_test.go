package rls_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/test/tier"
)

const materializedPolicy = `version: 1
attributes: { user: { type: integer, source: credential } }
tables:
  notes: { rows: [ consent: { every: [ note_people: { note: id }, people: { id: person } ], status: status, is: granted, expires: until, materialize: true } ] }
  drafts: { rows: [ consent: { every: [ people: { id: person } ], status: status, is: granted, materialize: true } ] }
`

func materializedDatabase(t *testing.T) (*pgtest.DB, *pgx.Conn, *rls.Plan) {
	t.Helper()
	return materializedDatabaseOf(t, materializedPolicy, `
CREATE TABLE people (id int, status text, until timestamptz);
CREATE TABLE notes (id int PRIMARY KEY, body text);
CREATE TABLE note_people (note int, person int);
CREATE TABLE drafts (a text, b int, person int, PRIMARY KEY (a, b));
INSERT INTO notes SELECT g FROM generate_series(1, 12) g; INSERT INTO people SELECT g, 'granted' FROM generate_series(1, 8) g;
INSERT INTO note_people SELECT 1 + g % 12, 1 + g % 8 FROM generate_series(1, 20) g;
INSERT INTO drafts SELECT 'x' || g % 3, g, g FROM generate_series(1, 10) g;`)
}

func materializedDatabaseOf(t *testing.T, rules, schema string) (*pgtest.DB, *pgx.Conn, *rls.Plan) {
	t.Helper()
	db := pgtest.Database(t)
	super := db.Connect(t, "postgres")
	ctx := context.Background()
	if _, err := super.PgConn().Exec(ctx, schema).ReadAll(); err != nil {
		t.Fatal(err)
	}
	snap, err := pgcatalog.Load(ctx, super, []string{"public"})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := policy.Parse("policy.yaml", []byte(rules))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Compile(doc, snap)
	if err != nil {
		t.Fatal(err)
	}
	plan := rls.Generate(p, snap, rls.Options{})
	if err := migrations.Up(ctx, super, migrations.Options{}, plan); err != nil {
		t.Fatal(err)
	}
	return db, super, plan
}

// A transaction that changes many people takes few advisory locks, and still updates the answer of each person's rows.
// The server has room for some thousands of locks.
func TestMaterializedManyChangesInOneTransaction(t *testing.T) {
	tier.All(t)
	_, super, plan := materializedDatabase(t)
	ctx := context.Background()
	if err := migrations.FillAll(ctx, super, plan.Fills(), func(migrations.Fill, int64) {}); err != nil {
		t.Fatal(err)
	}
	if _, err := super.PgConn().Exec(ctx, `CREATE INDEX ON people (id); CREATE INDEX ON drafts (person); CREATE INDEX ON drafts (b);
INSERT INTO people SELECT g, 'granted' FROM generate_series(100, 9099) g; ANALYZE people;
INSERT INTO drafts SELECT 'many', g, g FROM generate_series(100, 9099) g; ANALYZE drafts;
BEGIN; UPDATE people SET status = 'refused' WHERE id >= 100 AND id % 2 = 0; SET CONSTRAINTS ALL IMMEDIATE`).ReadAll(); err != nil {
		t.Fatal(err)
	}
	var lockCount, openCount, wrongCount int
	if err := super.QueryRow(ctx,
		"SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'").Scan(&lockCount); err != nil || lockCount < 2 || lockCount > 2000 {
		t.Errorf("%d locks, %v", lockCount, err)
	}
	if _, err := super.Exec(ctx, "COMMIT"); err != nil {
		t.Fatal(err)
	}
	if err := super.QueryRow(ctx, fmt.Sprintf(`SELECT count(*) FILTER (WHERE o.open_until > now()),
		count(*) FILTER (WHERE (o.open_until > now()) <> (o.b %% 2 = 1))
		FROM %s AS o WHERE o.a = 'many'`, materializedTable(t, super, "drafts"))).Scan(&openCount, &wrongCount); err != nil ||
		openCount != 4500 || wrongCount != 0 {
		t.Errorf("%d open, %d wrong, %v", openCount, wrongCount, err)
	}
}

// A transaction may have settled a change (updated stored answers) without committing yet. Meanwhile a REPEATABLE READ
// transaction changes consent. Afterwards no stored answer is outdated.
func TestMaterializedFillBesideAnUncommittedChange(t *testing.T) {
	tier.All(t)
	db, super, plan := materializedDatabase(t)
	ctx := context.Background()
	fill := func() {
		t.Helper()
		if err := migrations.FillAll(ctx, super, plan.Fills(), func(migrations.Fill, int64) {}); err != nil {
			t.Fatal(err)
		}
	}
	fill()
	settledConn, otherConn := db.Connect(t, "postgres"), db.Connect(t, "postgres")
	if _, err := settledConn.PgConn().Exec(ctx,
		"BEGIN; INSERT INTO notes VALUES (100); INSERT INTO note_people VALUES (100, 1); SET CONSTRAINTS ALL IMMEDIATE").ReadAll(); err != nil {
		t.Fatal(err)
	}
	committed := make(chan error, 1)
	go func() {
		_, err := otherConn.PgConn().Exec(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ; UPDATE people SET status = 'refused' WHERE id = 1; COMMIT").ReadAll()
		committed <- err
	}()
	waits := false
	for !waits && len(committed) == 0 {
		if err := super.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_locks WHERE pid = $1 AND NOT granted)",
			otherConn.PgConn().PID()).Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	fill()
	if _, err := settledConn.Exec(ctx, "COMMIT"); err != nil {
		t.Fatal(err)
	}
	if err := <-committed; err != nil {
		t.Fatal(err)
	}
	for _, isRefilled := range []bool{false, true} {
		if isRefilled {
			fill()
		}
		for _, f := range plan.Fills() {
			var ready bool
			var n int
			if err := super.QueryRow(ctx, "SELECT (SELECT ready FROM pgconsent.materialized WHERE name = $1), ("+f.CountWrong+
				")", f.Name).Scan(&ready, &n); err != nil || ready && n != 0 || isRefilled && !ready {
				t.Errorf("%s: ready: %v, %d rows differ, %v", f.Relation, ready, n, err)
			}
		}
	}
}

// If constraints are IMMEDIATE, or some parts of a transaction are rolled back, no change stays unsettled.
func TestMaterializedWhenSettledAtOnce(t *testing.T) {
	tier.All(t)
	_, super, plan := materializedDatabase(t)
	ctx := context.Background()
	if err := migrations.FillAll(ctx, super, plan.Fills(), func(migrations.Fill, int64) {}); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		"SET CONSTRAINTS ALL IMMEDIATE; UPDATE people SET status = 'refused' WHERE id IN (1, 2, 3)",
		"SET CONSTRAINTS ALL IMMEDIATE; UPDATE people SET status = 'granted' WHERE id = 1; UPDATE people SET " +
			"status = 'granted' WHERE id = 2; INSERT INTO note_people VALUES (1, 4); DELETE FROM note_people WHERE person = 3",
		"SET CONSTRAINTS pgconsent.materialized_settle IMMEDIATE; UPDATE people SET status = 'refused' WHERE id = 1; SET " +
			"CONSTRAINTS ALL DEFERRED; UPDATE people SET status = 'refused' WHERE id = 2",
		"UPDATE people SET status = 'granted' WHERE id = 1; SET CONSTRAINTS ALL IMMEDIATE; UPDATE people SET status = 'granted' WHERE id IN (2, 3)",
		"SET CONSTRAINTS ALL IMMEDIATE; SAVEPOINT a; UPDATE people SET status = 'refused' WHERE id = 1; ROLLBACK " +
			"TO a; UPDATE people SET status = 'refused' WHERE id IN (4, 5)",
		"UPDATE people SET status = 'refused' WHERE id = 1; SAVEPOINT a; SET CONSTRAINTS ALL IMMEDIATE; UPDATE " +
			"people SET status = 'refused' WHERE id = 2; ROLLBACK TO a; UPDATE people SET status = 'granted' WHERE id = 4",
		"UPDATE people SET status = 'granted' WHERE id = 1; SAVEPOINT a; SET CONSTRAINTS ALL IMMEDIATE; RELEASE " +
			"a; UPDATE people SET status = 'granted' WHERE id = 5; SET CONSTRAINTS ALL DEFERRED; UPDATE people SET status = 'refused' WHERE id = 6",
		"SAVEPOINT a; UPDATE people SET status = 'refused' WHERE id = 1; ROLLBACK TO a; UPDATE people SET status = 'refused' WHERE id = 7",
		"SET CONSTRAINTS ALL IMMEDIATE; DO $$ BEGIN UPDATE people SET status = 'refused' WHERE id = 1; BEGIN " +
			"UPDATE people SET status = 'refused' WHERE id = 8; RAISE 'x'; EXCEPTION WHEN raise_exception THEN " +
			"END; UPDATE people SET status = 'refused' WHERE id IN (2, 3); END $$",
	} {
		if _, err := super.PgConn().Exec(ctx, "BEGIN; "+sql+"; COMMIT").ReadAll(); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		for _, f := range plan.Fills() {
			var ready bool
			var n, leftCount int
			if err := super.QueryRow(ctx, "SELECT (SELECT ready FROM pgconsent.materialized WHERE name = $1), ("+f.CountWrong+
				"), (SELECT count(*) FROM pgconsent.materialized_change)", f.Name).Scan(&ready, &n, &leftCount); err != nil || !ready || n != 0 || leftCount != 0 {
				t.Errorf("%s: %s: ready: %v, %d rows differ, %d changes are left, %v", sql, f.Relation, ready, n, leftCount, err)
			}
		}
	}
}

// A change is settled whatever settings the session has that writes it, such as DateStyle.
func TestMaterializedUnderAnySettings(t *testing.T) {
	tier.All(t)
	_, super, plan := materializedDatabaseOf(t, `version: 1
attributes: { user: { type: integer, source: credential } }
tables:
  days: { rows: [ consent: { every: [ people: { id: person } ], status: status, is: granted, expires: until, materialize: true } ] }
`, `CREATE TABLE people (id int, status text, until timestamptz); INSERT INTO people SELECT g, 'granted' FROM generate_series(1, 9) g;
CREATE TABLE days (d date, n int, person int, PRIMARY KEY (d, n)); INSERT INTO days SELECT '2020-02-01', g, 1 + g % 9 FROM generate_series(1, 2500) g;
INSERT INTO days SELECT unnest('{2020-01-02,0044-03-15 BC,12345-06-07,infinity,-infinity,0001-02-03}'::date[]), g, g FROM generate_series(1, 3) g;`)
	if err := migrations.FillAll(t.Context(), super, plan.Fills(), func(migrations.Fill, int64) {}); err != nil {
		t.Fatal(err)
	}
	for _, dateStyle := range []string{"ISO, DMY", "SQL, DMY", "SQL, MDY", "German", "Postgres, MDY", "Postgres, DMY"} {
		for _, sql := range []string{
			"SET datestyle = '" + dateStyle + "'; SELECT pgconsent.materialized_invalidate(name) FROM pgconsent.materialized",
			"", // it is filled in
			"DO $$ BEGIN SET LOCAL datestyle = 'ISO, YMD'; UPDATE people SET status = 'refused' WHERE id = 2; SET LOCAL datestyle = '" + dateStyle + "'; END $$",
			"BEGIN; UPDATE days SET person = 10 - person WHERE n < 5; SET LOCAL datestyle = 'ISO, MDY'; COMMIT",
			"BEGIN; SET LOCAL datestyle = 'ISO, MDY'; UPDATE days SET d = d + 1, n = n + 1 WHERE n > 2498; INSERT " +
				"INTO days SELECT DISTINCT d, -1, 2 FROM days; SET LOCAL datestyle = '" + dateStyle + "'; COMMIT",
			"DELETE FROM days WHERE n < 0; UPDATE people SET status = 'granted'",
			// In this time zone, two different times have the same text.
			"SET timezone = 'XXX5XXX4,M3.1.0,M6.1.0/2'; UPDATE people SET until = '2099-06-07 05:30:00+00'",
			"UPDATE people SET until = '2099-06-07 06:30:00+00'", "RESET timezone; UPDATE people SET until = NULL",
		} {
			if sql == "" {
				if err := migrations.FillAll(t.Context(), super, plan.Fills(), func(migrations.Fill, int64) {}); err != nil {
					t.Fatalf("%s: %v", dateStyle, err)
				}
			} else if _, err := super.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
				t.Fatalf("%s: %s: %v", dateStyle, sql, err)
			}
			checkStoredAnswers(t, super, plan, dateStyle+": "+sql)
		}
	}
}

// checkStoredAnswers requires that every row has a stored answer, and that it is what the rule says.
func checkStoredAnswers(t *testing.T, super *pgx.Conn, plan *rls.Plan, after string) {
	t.Helper()
	for _, f := range plan.Fills() {
		var wrongCount, rowCount, storedCount int
		if err := super.QueryRow(t.Context(), "SELECT ("+f.CountWrong+"), (SELECT count(*) FROM "+f.Relation+
			"), (SELECT count(*) FROM pgconsent.materialized_"+f.Name+")").Scan(&wrongCount, &rowCount, &storedCount); err != nil ||
			wrongCount != 0 || rowCount != storedCount {
			t.Errorf("%s: %s: %d rows differ, %d are stored of %d, %v", after, f.Relation, wrongCount, storedCount, rowCount, err)
		}
	}
}

// A column may refer to a column of a wider or narrower integer type.
func TestMaterializedOverIntegersOfAnyWidth(t *testing.T) {
	tier.All(t)
	_, super, plan := materializedDatabaseOf(t, `version: 1
attributes: { user: { type: integer, source: credential } }
tables:
  notes: { rows: [ consent: { every: [ links: { id: link }, people: { id: person } ], status: status, is: granted, materialize: true } ] }
  more: { rows: [ consent: { every: [ links: { id: link }, people: { id: person } ], status: status, is: granted, materialize: true } ] }
`, `CREATE TABLE people (id smallint, status text); CREATE TABLE links (id int, person bigint); CREATE TABLE notes (id smallint PRIMARY KEY, link bigint);
CREATE TABLE more (id bigint PRIMARY KEY, link smallint);
INSERT INTO people SELECT g, 'granted' FROM generate_series(1, 9) g; INSERT INTO links SELECT g, g FROM generate_series(1, 9) g;
INSERT INTO notes SELECT g, g FROM generate_series(1, 9) g; INSERT INTO more SELECT g, g FROM generate_series(1, 9) g;`)
	if err := migrations.FillAll(t.Context(), super, plan.Fills(), func(migrations.Fill, int64) {}); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		"INSERT INTO notes VALUES (100, 5000000000)",
		"INSERT INTO links VALUES (100000, 5000000000), (5, 6000000000)",
		"UPDATE links SET person = 70000 WHERE id = 3", "UPDATE notes SET link = 70000 WHERE id = 4",
		"UPDATE people SET status = 'refused'", "UPDATE links SET person = id, id = 9 WHERE person > 70000",
	} {
		if _, err := super.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
		checkStoredAnswers(t, super, plan, sql)
	}
}

// The owner's columns may have the names of variables of the functions.
func TestMaterializedWithColumnsOfAnyName(t *testing.T) {
	columns := ", v text, value text, c text, t text, o text, r text, w text, l text, k bigint, open timestamptz, " +
		"step int, tx text, name text, changed0 text[], changed1 text[], reached0 text[], reached1 text[], " +
		"concerned0 text[], concerned1 text[], s1 int, new text, old text"
	_, super, plan := materializedDatabaseOf(t, `version: 1
attributes: { user: { type: integer, source: credential } }
tables:
  notes: { rows: [ consent: { every: [ links: { id: link }, people: { id: person } ], status: status, is: granted, expires: until, materialize: true } ] }
`, `CREATE TABLE people (id int, status text, until timestamptz`+columns+`); CREATE TABLE links (id int, person int`+columns+`); `+
		`CREATE TABLE notes (id int PRIMARY KEY, link int`+columns+`);
INSERT INTO people SELECT g, 'granted' FROM generate_series(1, 9) g; INSERT INTO links SELECT g, g FROM generate_series(1, 9) g;
INSERT INTO notes SELECT g, g FROM generate_series(1, 9) g;`)
	if err := migrations.FillAll(t.Context(), super, plan.Fills(), func(migrations.Fill, int64) {}); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{"INSERT INTO notes VALUES (100, 4, 'x', 'y')",
		"UPDATE people SET status = 'refused' WHERE id = 4", "UPDATE links SET person = 4 WHERE id = 3",
		"DELETE FROM notes WHERE id = 2", "DELETE FROM people"} {
		if _, err := super.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
		checkStoredAnswers(t, super, plan, sql)
	}
}

// materializedTable returns the name of the table with the stored answers for the rule of the given table.
func materializedTable(t *testing.T, conn *pgx.Conn, table string) (name string) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), `SELECT c.oid::regclass::text FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'open_until'
		WHERE c.relname LIKE 'materialized%' AND EXISTS (SELECT FROM pg_attribute AS k, pg_attribute AS o
			WHERE k.attrelid = c.oid AND k.attnum = 1 AND o.attrelid = $1::text::regclass AND o.attnum = 1 AND k.attname = o.attname)`,
		table).Scan(&name); err != nil {
		t.Fatal(err)
	}
	return name
}

// Stored answers are correct in every snapshot, whatever concurrent transactions write, and if some are killed. This
// holds while answers are filled in, after transactions that failed, and when triggers fire for several tables.
func TestMaterializedUnderConcurrentWriters(t *testing.T) {
	tier.All(t)
	db, super, plan := materializedDatabase(t)
	ctx := context.Background()
	wantedCommits := int64(tier.Count(60, 300, 20_000))
	var commits, failures, kills, checks, comparisons, fills atomic.Int64
	deadline := time.Now().Add(10 * time.Minute)
	mustContinue := func() bool {
		return (commits.Load() < wantedCommits || comparisons.Load() < 50 || fills.Load() == 0) && time.Now().Before(deadline) && !t.Failed()
	}
	var pids sync.Map
	var wg sync.WaitGroup
	for w := range 6 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r := rand.New(rand.NewPCG(tier.Seed(), uint64(w)))
			var conn *pgx.Conn
			for mustContinue() {
				if conn == nil || conn.IsClosed() {
					c, err := pgx.Connect(ctx, db.DSN("postgres", ""))
					if err != nil {
						continue
					}
					conn = c
					pids.Store(w, conn.PgConn().PID())
				}
				level := "READ COMMITTED"
				if r.IntN(40) == 0 {
					level = "REPEATABLE READ"
				}
				sql := "BEGIN ISOLATION LEVEL " + level
				for range 1 + r.IntN(3) {
					n, p, q := r.IntN(14), r.IntN(10), r.IntN(10)
					sql += ";" + []string{
						fmt.Sprintf("UPDATE people SET status = 'refused' WHERE id = %d", p),
						fmt.Sprintf("UPDATE people SET status = 'granted', until = NULL WHERE id = %d", p),
						fmt.Sprintf("UPDATE people SET status = 'granted', until = now() + interval '%d milliseconds' WHERE id = %d", r.IntN(3000)-500, p),
						fmt.Sprintf("INSERT INTO note_people VALUES (%d, %d)", n, p),
						fmt.Sprintf("DELETE FROM note_people WHERE note = %d AND person = %d", n, p),
						fmt.Sprintf("UPDATE note_people SET person = %d WHERE note = %d AND person = %d", q, n, p),
						fmt.Sprintf("UPDATE note_people SET note = %d WHERE person = %d AND note = %d", r.IntN(14), p, n),
						fmt.Sprintf("INSERT INTO notes VALUES (%d) ON CONFLICT DO NOTHING", n),
						fmt.Sprintf("DELETE FROM notes WHERE id = %d", n),
						fmt.Sprintf("DELETE FROM people WHERE id = %d", p),
						fmt.Sprintf("INSERT INTO people VALUES (%d, 'granted')", p),
						fmt.Sprintf("UPDATE notes SET id = %d WHERE id = %d AND NOT EXISTS (SELECT FROM notes WHERE id = %[1]d)", r.IntN(14), n),
						fmt.Sprintf("UPDATE people SET id = %d WHERE id = %d", q, p),
						fmt.Sprintf("UPDATE drafts SET person = %d WHERE b = %d", p,
							n), fmt.Sprintf("INSERT INTO drafts VALUES ('x', %d, %d) ON CONFLICT DO NOTHING", n, p),
						fmt.Sprintf("DELETE FROM drafts WHERE b = %d", n),
						"SAVEPOINT a; UPDATE people SET status = 'refused'; ROLLBACK TO a",
						"SET CONSTRAINTS ALL IMMEDIATE", "SET CONSTRAINTS ALL DEFERRED", "SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED",
						fmt.Sprintf(
							"SAVEPOINT a; UPDATE people SET status = 'refused' WHERE id = %d; SET CONSTRAINTS ALL "+
								"IMMEDIATE; UPDATE people SET status = 'refused' WHERE id = %d; ROLLBACK TO a", p, q),
						fmt.Sprintf(
							"SAVEPOINT a; INSERT INTO note_people VALUES (%d, %d); SET CONSTRAINTS ALL IMMEDIATE; "+
								"SET CONSTRAINTS ALL DEFERRED; UPDATE people SET status = 'refused' WHERE id = %d; RELEASE a", n, p, q),
						"SAVEPOINT a; TRUNCATE note_people; ROLLBACK TO a",
						fmt.Sprintf(
							"DO $$ BEGIN UPDATE people SET status = 'granted', until = NULL WHERE id = %d; SET "+
								"CONSTRAINTS ALL IMMEDIATE; BEGIN UPDATE people SET status = 'refused' WHERE id = "+
								"%d; RAISE 'x'; EXCEPTION WHEN raise_exception THEN END; END $$", p, q),
					}[r.IntN(24)]
				}
				_, err := conn.PgConn().Exec(ctx, sql+";COMMIT").ReadAll()
				if err != nil {
					failures.Add(1)
					var pg *pgconn.PgError
					if errors.As(err, &pg) && pg.Code != "40001" && pg.Code != "40P01" && pg.Code != "57P01" && pg.Code != "23505" {
						t.Errorf("%v: %s", err, sql)
					}
					_, _ = conn.PgConn().Exec(ctx, "ROLLBACK").ReadAll()
					continue
				}
				commits.Add(1)
			}
			if conn != nil {
				_ = conn.Close(ctx)
			}
		}()
	}
	wg.Add(3)
	go func() { // ends server processes
		defer wg.Done()
		c, random := db.Connect(t, "postgres"), tier.Rand(10)
		for mustContinue() {
			time.Sleep(time.Duration(50+random.IntN(200)) * time.Millisecond)
			if pid, ok := pids.Load(random.IntN(6)); ok {
				if _, err := c.Exec(ctx, "SELECT pg_terminate_backend($1)", pid); err == nil {
					kills.Add(1)
				}
			}
		}
	}()
	go func() { // fills in answers, and gives up at random
		defer wg.Done()
		random := tier.Rand(11)
		for attempt := 0; mustContinue(); attempt++ {
			c := db.Connect(t, "postgres")
			shortContext, cancel := context.WithTimeout(ctx, time.Duration(5+random.IntN(1500+100*attempt))*time.Millisecond)
			if err := migrations.FillAll(shortContext, c, plan.Fills(), func(migrations.Fill, int64) {}); err == nil {
				fills.Add(1)
				time.Sleep(20 * time.Millisecond)
			} else if shortContext.Err() == nil {
				t.Errorf("fill: %v", err)
			}
			cancel()
			_ = c.Close(ctx)
		}
	}()
	go func() { // compares stored and computed answers in one snapshot
		defer wg.Done()
		c := db.Connect(t, "postgres")
		for mustContinue() {
			for _, f := range plan.Fills() {
				checks.Add(1)
				var ready bool
				var n int
				if err := c.QueryRow(ctx, "SELECT (SELECT ready FROM pgconsent.materialized WHERE name = $1), ("+f.CountWrong+")",
					f.Name).Scan(&ready, &n); err != nil {
					t.Error(err)
					return
				}
				if ready {
					comparisons.Add(1)
					if n != 0 {
						t.Errorf("%d rows of %s differ", n, f.Relation)
						return
					}
				}
			}
		}
	}()
	wg.Wait()
	var leftCount int
	if err := super.QueryRow(ctx, "SELECT count(*) FROM pgconsent.materialized_change").Scan(&leftCount); err != nil || leftCount != 0 {
		t.Errorf("%d changes are left: %v", leftCount, err)
	}
	if comparisons.Load() < 50 || commits.Load() < 50 || fills.Load() == 0 {
		t.Errorf("the sample says little")
	}
	t.Logf("%d commits, %d failures, %d kills, %d fills, %d of %d snapshots compared", commits.Load(),
		failures.Load(), kills.Load(), fills.Load(), comparisons.Load(), checks.Load())
}

// A foreign key may refer to the person who must have agreed. Rows whose person does not exist stay hidden. Changes by
// replication count as well.
func TestMaterializedWhereSomebodyMustHaveAgreed(t *testing.T) {
	_, super, plan := materializedDatabaseOf(t, `version: 1
attributes: { user: { type: integer, source: credential } }
tables: { notes: { rows: [ consent: { every: [ people: { id: person } ], status: status, is: granted, materialize: true } ] } }
`, `CREATE TABLE people (id int PRIMARY KEY, status text); CREATE TABLE notes (id int PRIMARY KEY, person int);
INSERT INTO people VALUES (1, 'granted'), (2, 'refused'); INSERT INTO notes VALUES (1, 1), (2, 2), (3, 9), (4, NULL)`)
	ctx := context.Background()
	if err := migrations.FillAll(ctx, super, plan.Fills(), func(migrations.Fill, int64) {}); err != nil {
		t.Fatal(err)
	}
	const setReplica, resetReplica = "SET session_replication_role = replica; ", "; RESET session_replication_role"
	for _, c := range []struct{ change, openIDs string }{
		{"SELECT 1", "{1}"},
		{setReplica + "UPDATE people SET status = 'granted' WHERE id = 2" + resetReplica, "{1,2}"},
		{setReplica + "UPDATE people SET status = 'refused' WHERE id = 1" + resetReplica, "{2}"},
		{setReplica + "UPDATE notes SET person = 2 WHERE id = 4" + resetReplica, "{2,4}"},
		{setReplica + "DELETE FROM people WHERE id = 2" + resetReplica, "{}"},
		{setReplica + "INSERT INTO people VALUES (9, 'granted')" + resetReplica, "{3}"},
	} {
		if _, err := super.PgConn().Exec(ctx, c.change).ReadAll(); err != nil {
			t.Fatal(err)
		}
		var openIDs string
		if err := super.QueryRow(ctx, fmt.Sprintf(
			"SELECT COALESCE(array_agg(id ORDER BY id) FILTER (WHERE open_until > now()), '{}')::text FROM %s",
			materializedTable(t, super, "notes"))).Scan(&openIDs); err != nil || openIDs != c.openIDs {
			t.Errorf("%s: %s are open, %v, want %s", c.change, openIDs, err, c.openIDs)
		}
	}
	for _, table := range []string{"notes", "people"} { // after TRUNCATE no answer is stored until it is filled in again
		if err := migrations.FillAll(ctx, super, plan.Fills(), func(migrations.Fill, int64) {}); err != nil {
			t.Fatal(err)
		}
		var before, after bool
		if err := super.QueryRow(ctx, "SELECT pgconsent.materialized_ready(name) FROM pgconsent.materialized").Scan(&before); err != nil {
			t.Fatal(err)
		}
		if _, err := super.Exec(ctx, "TRUNCATE "+table); err != nil {
			t.Fatal(err)
		}
		if err := super.QueryRow(ctx, "SELECT pgconsent.materialized_ready(name) FROM pgconsent.materialized").Scan(&after); err != nil || !before || after {
			t.Errorf("TRUNCATE %s: the stored answers count %t before, %t after it, %v", table, before, after, err)
		}
	}
}
