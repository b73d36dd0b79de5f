package pgcatalog_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/test/tier"
)

// checkSameAsFullRead fails if a reader that reads only changes gets another snapshot than a full read.
func checkSameAsFullRead(t *testing.T, r *pgcatalog.Reader, conn *pgx.Conn, after string) *catalog.Snapshot {
	t.Helper()
	got, err := r.Read(t.Context(), conn)
	if err != nil {
		t.Fatalf("%s: %v", after, err)
	}
	want := load(t, conn)
	if got.Version() == want.Version() {
		return got
	}
	t.Errorf("%s: what was read of the changes is not what a whole reading finds: %+v", after, got.Differences(want))
	for _, w := range want.Relations() {
		if g, _ := got.Relation(w.Name); !reflect.DeepEqual(g, w) {
			t.Logf("%s: got\n%+v\nwant\n%+v", w.Name, g, w)
		}
	}
	r.Reset()
	return want
}

// After any change, reading only what has changed gives the same snapshot as reading everything. One reader reads after
// each statement, and one after some. The third reads at the end; an older transaction is open meanwhile. The quick run
// compares after every second statement, when what the reader has missed of the one before still shows.
func TestIncrementalReadsAgreeWithFullOnes(t *testing.T) {
	t.Parallel()
	db := pgtest.Database(t)
	conn, olderConn := db.Connect(t, "postgres"), db.Connect(t, "postgres")
	roles := strings.NewReplacer("one_role", conn.Config().Database+"_one", "other_role", conn.Config().Database+"_other")
	exec(t, conn, roles.Replace(watchedSchema))
	eachReader, someReader, lateReader := pgcatalog.NewReader([]string{"public"}), pgcatalog.NewReader([]string{"public"}), pgcatalog.NewReader([]string{"public"})
	for _, r := range []*pgcatalog.Reader{eachReader, someReader, lateReader} {
		checkSameAsFullRead(t, r, conn, "nothing")
	}
	exec(t, olderConn, "BEGIN; SELECT pg_current_xact_id()")
	partialReads := 0
	for i, sql := range watchedChanges {
		exec(t, conn, roles.Replace(sql))
		before := eachReader.WholeReads()
		if !tier.IsPicked(i, 1) {
			if _, err := eachReader.Read(t.Context(), conn); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
			if eachReader.WholeReads() == before {
				partialReads++
			}
			continue
		}
		snapshot := checkSameAsFullRead(t, eachReader, conn, sql)
		if eachReader.WholeReads() == before {
			partialReads++
		}
		if i%7 == 0 {
			checkSameAsFullRead(t, someReader, conn, "seven statements up to "+sql)
		}
		before = eachReader.WholeReads()
		if secondSnapshot, err := eachReader.Read(t.Context(), conn); err != nil || secondSnapshot.Version() != snapshot.Version() ||
			eachReader.WholeReads() != before {
			t.Errorf("%s: something else is read, or everything again, though nothing more has changed: %v", sql, err)
		}
	}
	exec(t, olderConn, "COMMIT")
	checkSameAsFullRead(t, lateReader, conn, "all")
	if partialReads < len(watchedChanges)/3 {
		t.Errorf("of %d changes %d were read by themselves", len(watchedChanges), partialReads)
	}
}

// AgentChanges counts writes to the catalogs, also those that do not affect the snapshot, except for temporary tables.
func TestWrittenRowsAreCounted(t *testing.T) {
	t.Parallel()
	conn := pgtest.Database(t).Connect(t, "postgres")
	exec(t, conn, "CREATE TABLE t (id int); CREATE POLICY pgconsent_select ON t USING (true)")
	r := pgcatalog.NewReader([]string{"public"})
	version := ""
	for _, c := range []struct {
		sql                       string
		isCounted, isSameSnapshot bool
	}{
		{"SELECT", true, false}, {"SELECT", false, true}, {"ALTER TABLE t ADD a text", true, false},
		{"ALTER POLICY pgconsent_select ON t USING (false)", true, true}, {"GRANT SELECT ON t TO PUBLIC", true, true},
		{"GRANT INSERT (a) ON t TO PUBLIC", true, true}, {"UPDATE pg_policy SET polpermissive = polpermissive", true, true},
		{"CREATE TEMPORARY TABLE u (id int, a text)", false, true}, {"ALTER TABLE u ADD b int DEFAULT 1", false, true},
		{"DROP TABLE u", false, true}, {"INSERT INTO t VALUES (1)", false, true}, {"ANALYZE t", false, true},
		{"DROP TABLE t", true, false},
	} {
		exec(t, conn, c.sql)
		before := r.AgentChanges()
		snap, err := r.Read(t.Context(), conn)
		if err != nil {
			t.Fatal(err)
		}
		if isCounted, isSameSnapshot := r.AgentChanges() > before, snap.Version() == version; isCounted != c.isCounted ||
			isSameSnapshot != c.isSameSnapshot {
			t.Errorf("%s: counted: %t, the same snapshot: %t", c.sql, isCounted, isSameSnapshot)
		}
		version = snap.Version()
	}
}

// randomDDL are the statements of random histories: %[1]s and %[2]s are names of relations, %[3]d is a number.
var randomDDL = strings.Split(`CREATE TABLE %[1]s (id serial PRIMARY KEY, a text DEFAULT 'x', b int CHECK (b > %[3]d), c text CHECK (c IN ('a', 'b')))
CREATE TABLE %[1]s (id int GENERATED ALWAYS AS IDENTITY, a text UNIQUE, b int GENERATED ALWAYS AS (1) STORED, c varchar(9))
CREATE TABLE %[1]s (LIKE %[2]s INCLUDING ALL)
CREATE TABLE %[1]s () INHERITS (%[2]s)
CREATE TABLE %[1]s (id int, a text, b int) PARTITION BY RANGE (b)
CREATE TABLE %[1]s PARTITION OF %[2]s FOR VALUES FROM (%[3]d) TO (%[3]d + 1)
CREATE TABLE %[1]s (id int, a text, b int, whole %[2]s)
CREATE VIEW %[1]s AS SELECT * FROM %[2]s
CREATE VIEW %[1]s AS SELECT t, t.id + %[3]d AS id, t.a FROM %[2]s AS t
CREATE MATERIALIZED VIEW %[1]s AS SELECT a FROM %[2]s
CREATE TYPE %[1]s AS (id int, a text COLLATE "C", b %[2]s)
CREATE TYPE %[1]s AS ENUM ('a', 'b')
CREATE DOMAIN %[1]s AS %[2]s
CREATE SEQUENCE %[1]s
CREATE FUNCTION %[1]s(%[2]s) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT %[3]d'
CREATE FUNCTION %[1]s(int) RETURNS SETOF %[2]s LANGUAGE sql AS 'SELECT * FROM %[2]s'
CREATE OR REPLACE FUNCTION %[1]s(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN %[3]d; END'
DROP TABLE %[1]s
DROP TABLE %[1]s CASCADE
DROP VIEW %[1]s CASCADE
DROP SEQUENCE %[1]s CASCADE
DROP TYPE %[1]s CASCADE
DROP FUNCTION %[1]s CASCADE
ALTER TABLE %[1]s RENAME TO %[2]s
ALTER TABLE %[1]s RENAME a TO d
ALTER TABLE %[1]s RENAME d TO a
ALTER TABLE %[1]s ADD d %[2]s
ALTER TABLE %[1]s ADD d text COLLATE "C" DEFAULT '%[2]s'::regclass::text
ALTER TABLE %[1]s DROP d
ALTER TABLE %[1]s DROP a CASCADE
ALTER TABLE %[1]s ADD a text
ALTER TABLE %[1]s ALTER b TYPE bigint
ALTER TABLE %[1]s ALTER b SET DEFAULT nextval('%[2]s')
ALTER TABLE %[1]s ALTER b DROP DEFAULT
ALTER TABLE %[1]s ALTER a SET NOT NULL
ALTER TABLE %[1]s ALTER a DROP NOT NULL
ALTER TABLE %[1]s ADD FOREIGN KEY (b) REFERENCES %[2]s ON DELETE CASCADE
ALTER TABLE %[1]s ADD CONSTRAINT k CHECK (b <> %[3]d) NOT VALID
ALTER TABLE %[1]s ADD CONSTRAINT k CHECK (b <> '%[2]s'::regclass::oid::bigint)
ALTER TABLE %[1]s VALIDATE CONSTRAINT k
ALTER TABLE %[1]s DROP CONSTRAINT k
ALTER TABLE %[1]s INHERIT %[2]s
ALTER TABLE %[1]s NO INHERIT %[2]s
ALTER TABLE %[1]s ATTACH PARTITION %[2]s FOR VALUES FROM (%[3]d) TO (%[3]d + 1)
ALTER TABLE %[1]s DETACH PARTITION %[2]s
ALTER TABLE %[1]s ENABLE ROW LEVEL SECURITY
ALTER TABLE %[1]s DISABLE ROW LEVEL SECURITY
ALTER TABLE %[1]s SET SCHEMA extra
ALTER TABLE extra.%[1]s SET SCHEMA public
ALTER TABLE %[1]s CLUSTER ON %[1]s_pkey
CREATE POLICY p ON %[1]s USING (b > (SELECT count(*) FROM %[2]s))
CREATE POLICY pgconsent_select ON %[1]s USING (true)
DROP POLICY p ON %[1]s
DROP POLICY pgconsent_select ON %[1]s
CREATE INDEX i_%[2]s ON %[1]s (a, b)
CREATE UNIQUE INDEX i_%[2]s ON %[1]s (lower(a)) WHERE b > %[3]d
CREATE INDEX i_%[2]s ON %[1]s USING gin (to_tsvector('english', a))
CREATE INDEX i_%[2]s ON %[1]s (b) WHERE b <> '%[2]s'::regclass::oid::bigint
ALTER INDEX i_%[1]s RENAME TO i_%[2]s
DROP INDEX i_%[1]s
REINDEX TABLE %[1]s
CREATE STATISTICS s_%[1]s ON (b + 1), (b + %[3]d) FROM %[2]s
DROP STATISTICS s_%[1]s
CREATE TRIGGER g BEFORE UPDATE ON %[1]s FOR EACH ROW WHEN (1 / NEW.b > %[3]d) EXECUTE FUNCTION nothing()
DROP TRIGGER g ON %[1]s
CREATE RULE r AS ON UPDATE TO %[1]s DO INSTEAD SELECT * FROM %[2]s
DROP RULE r ON %[1]s
CREATE OR REPLACE VIEW %[1]s AS SELECT id, a FROM %[2]s
ALTER SEQUENCE %[1]s OWNED BY %[2]s.b
ALTER SEQUENCE %[1]s RENAME TO %[2]s
ALTER TYPE %[1]s RENAME TO %[2]s
ALTER TYPE %[1]s ADD ATTRIBUTE d int CASCADE
ALTER TYPE %[1]s ADD VALUE 'c%[3]d'
TRUNCATE %[1]s CASCADE
VACUUM FULL %[1]s
VACUUM ANALYZE %[1]s
CREATE TEMP TABLE %[1]s AS SELECT %[3]d AS n
DROP TABLE pg_temp.%[1]s
ALTER TABLE %[1]s OWNER TO CURRENT_USER
BEGIN; SAVEPOINT a; CREATE TABLE %[1]s (id int, a text, b int); SAVEPOINT b; ALTER TABLE %[2]s ADD e int; ROLLBACK TO b; COMMIT
BEGIN; CREATE TABLE %[1]s (id int PRIMARY KEY); ALTER TABLE %[2]s ADD f int REFERENCES %[1]s; COMMIT
BEGIN; DROP TABLE %[1]s CASCADE; CREATE TABLE %[1]s (id int PRIMARY KEY, a text, b int); ROLLBACK`, "\n")

// After random DDL, some of which fails, reading only what has changed gives the same snapshot as reading everything.
func TestRandomIncrementalReadsAgreeWithFullOnes(t *testing.T) {
	t.Parallel()
	names := []string{"one", "two", "three", "four", "five"}
	for history := range tier.Count(1, 5, 200) {
		t.Run(fmt.Sprint(history), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(tier.Seed(), uint64(history)))
			db := pgtest.Database(t)
			conn, olderConn := db.Connect(t, "postgres"), db.Connect(t, "postgres")
			exec(t, conn, `CREATE SCHEMA extra; CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
				CREATE TABLE one (id serial PRIMARY KEY, a text, b int); CREATE SEQUENCE two;`)
			r := pgcatalog.NewReader([]string{"public"})
			checkSameAsFullRead(t, r, conn, "nothing")
			var statementsSince []string
			doneCount, inTransaction := 0, false
			for range tier.Count(45, 300, 300) {
				name1, name2 := names[random.IntN(len(names))], names[random.IntN(len(names))]
				sql := fmt.Sprintf(randomDDL[random.IntN(len(randomDDL))]+"%.0[4]s", name1, name2, random.IntN(5), "") // uses all arguments
				if _, err := conn.PgConn().Exec(t.Context(), sql).ReadAll(); err == nil {
					doneCount++
				}
				exec(t, conn, "ROLLBACK") // ends a transaction that has failed
				statementsSince = append(statementsSince, sql)
				if random.IntN(3) > 0 {
					continue
				}
				if random.IntN(10) == 0 { // an open transaction: later ones cannot be known to have ended
					exec(t, olderConn, map[bool]string{true: "COMMIT", false: "BEGIN; SELECT pg_current_xact_id()"}[inTransaction])
					inTransaction = !inTransaction
				}
				checkSameAsFullRead(t, r, conn, strings.Join(statementsSince, "\n"))
				statementsSince = nil
				if t.Failed() {
					return
				}
			}
			t.Logf("%d statements succeeded; everything was read %d times", doneCount, r.WholeReads())
		})
	}
}

// The names of roles are in no catalog of the database, so the reader also checks the names of the relations' owners.
func TestRenamedOwnersAreReadAgain(t *testing.T) {
	t.Parallel()
	conn := pgtest.Database(t).Connect(t, "postgres")
	owner := conn.Config().Database + "_owner"
	exec(t, conn, fmt.Sprintf("CREATE ROLE %s; CREATE TABLE owned (id int); CREATE TABLE other (id int); ALTER TABLE owned OWNER TO %[1]s", owner))
	r := pgcatalog.NewReader([]string{"public"})
	checkSameAsFullRead(t, r, conn, "nothing")
	exec(t, conn, fmt.Sprintf("ALTER ROLE %s RENAME TO %[1]s_renamed; ALTER TABLE other ADD more int", owner))
	got, _ := checkSameAsFullRead(t, r, conn, "another name of an owner").Relation(publicName("owned"))
	if got.Owner != owner+"_renamed" {
		t.Errorf("the owner is %s", got.Owner)
	}
	exec(t, conn, "DROP TABLE owned")
	for startedAt := time.Now(); ; time.Sleep(50 * time.Millisecond) { // concurrent tests may hold references to every role for a moment
		if _, err := conn.Exec(t.Context(), fmt.Sprintf("DROP ROLE %s_renamed", owner)); err == nil {
			return
		} else if time.Since(startedAt) > tier.Patience {
			t.Fatal(err)
		}
	}
}

// The facts about a relation contain names of others. If one of these is renamed, the relation is read again, and
// nothing else.
func TestDependentRelationsAreReadAgain(t *testing.T) {
	t.Parallel()
	conn := pgtest.Database(t).Connect(t, "postgres")
	exec(t, conn, `CREATE TABLE base (id int PRIMARY KEY, a text, b int); CREATE INDEX base_a ON base (a); CREATE SEQUENCE counter;
		CREATE VIEW over_base AS SELECT id, a FROM base; CREATE VIEW over_view AS SELECT a FROM over_base;
		CREATE MATERIALIZED VIEW kept AS SELECT a FROM base;
		CREATE TABLE other (n int DEFAULT nextval('counter'), base int REFERENCES base, kind oid);
		CREATE INDEX other_n ON other (n) WHERE kind <> 'base'::regclass; CREATE TABLE parent (n int); CREATE TABLE child () INHERITS (parent);
		CREATE SCHEMA extra; CREATE FUNCTION plainly(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT abs($1) + 1';
		CREATE POLICY plain ON other USING (plainly(1) > n)`)
	r := pgcatalog.NewReader([]string{"public"})
	before := checkSameAsFullRead(t, r, conn, "nothing")
	for _, sql := range strings.Split(`ALTER TABLE base RENAME a TO c
ALTER VIEW over_base RENAME a TO d
ALTER VIEW over_base RENAME TO above
ALTER TABLE base RENAME TO below
ALTER INDEX base_a RENAME TO below_a
ALTER SEQUENCE counter RENAME TO ordinal
ALTER TABLE below SET SCHEMA extra
CREATE RULE none AS ON UPDATE TO above DO INSTEAD NOTHING
DROP RULE none ON above
CREATE TABLE abs (n int)
DROP TABLE abs
CREATE POLICY strict_one ON other AS RESTRICTIVE USING (true)
DROP POLICY strict_one ON other
ALTER TABLE child NO INHERIT parent
ALTER TABLE child INHERIT parent
DROP TABLE child
DROP VIEW over_view
ALTER TABLE extra.below DROP CONSTRAINT base_pkey CASCADE
DROP INDEX other_n`, "\n") {
		exec(t, conn, sql)
		after := checkSameAsFullRead(t, r, conn, sql)
		if after.Version() == before.Version() {
			t.Errorf("%s changes nothing that is read", sql)
		}
		before = after
	}
	if n := r.WholeReads(); n != 1 {
		t.Errorf("everything was read %d times", n)
	}
}
