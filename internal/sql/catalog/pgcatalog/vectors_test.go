package pgcatalog_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
)

// IndexedVectors lists the text search vectors that a valid index holds for every row which a statement may read,
// computed by functions of PostgreSQL alone.
func TestVectors(t *testing.T) {
	db := pgtest.Database(t)
	conn, olderConn := db.Connect(t, "postgres"), db.Connect(t, "postgres")
	run := func(c *pgx.Conn, sql string) {
		t.Helper()
		if _, err := c.PgConn().Exec(context.Background(), sql).ReadAll(); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	run(conn, `CREATE TABLE v (id int PRIMARY KEY, a text, b text, c varchar(9));
		CREATE TEXT SEARCH CONFIGURATION mine (COPY = simple);
		CREATE FUNCTION plain(text) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT $1';
		CREATE INDEX ON v USING gin (to_tsvector('english', a), to_tsvector('simple', coalesce(b, '')));
		CREATE INDEX ON v (id, (to_tsvector('german', c)));
		CREATE INDEX ON v USING gin (to_tsvector('french', a)) WHERE id > 0;
		CREATE INDEX ON v USING gin (to_tsvector('mine', a));
		CREATE INDEX ON v USING gin (to_tsvector('dutch', plain(a)));
		CREATE INDEX invalid ON v USING gin (to_tsvector('danish', a));
		UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'invalid'::regclass;
		CREATE INDEX unready ON v USING gin (to_tsvector('finnish', a)); CREATE INDEX going ON v USING gin (to_tsvector('russian', a));
		UPDATE pg_index SET indisready = false WHERE indexrelid = 'unready'::regclass; UPDATE pg_index SET indislive = false WHERE indexrelid = 'going'::regclass;
		CREATE TABLE parent (a text); CREATE TABLE child () INHERITS (parent); CREATE INDEX ON parent USING gin (to_tsvector('english', a));
		CREATE INDEX ON child USING gin (to_tsvector('simple', a));
		CREATE TABLE whole (k int, a text) PARTITION BY LIST (k); CREATE TABLE part PARTITION OF whole DEFAULT;
		CREATE INDEX ON whole USING gin (to_tsvector('english', a));
		CREATE TABLE changed (id int PRIMARY KEY, a text); INSERT INTO changed VALUES (1, 'x');`)
	// A session with an older snapshot sees the previous version of the row, which the index does not have.
	run(olderConn, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM changed")
	run(conn, "UPDATE changed SET a = 'y'; CREATE INDEX ON changed USING gin (to_tsvector('english', a))")
	snap := load(t, conn)
	for table, want := range map[string]string{
		"v":      `to_tsvector('english'::regconfig, a) | to_tsvector('german'::regconfig, (c)::text) | to_tsvector('simple'::regconfig, COALESCE(b, ''::text))`,
		"parent": "", "child": "to_tsvector('simple'::regconfig, a)", "whole": "", "part": "to_tsvector('english'::regconfig, a)", "changed": "",
	} {
		relation, _ := snap.Relation(publicName(table))
		if got := strings.Join(relation.IndexedVectors, " | "); got != want {
			t.Errorf("%s: %s, want %s", table, got, want)
		}
	}
	run(conn, "CREATE TEXT SEARCH CONFIGURATION public.english (COPY = simple)")
	if relation, _ := load(t, conn).Relation(publicName("v")); len(relation.IndexedVectors) > 0 {
		t.Errorf("one of two configurations of a name: %q", relation.IndexedVectors)
	}
}
