//go:build unix

package pgtest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestMain(m *testing.M) { Main(m) }

func TestTemplateIsCopied(t *testing.T) {
	built := 0
	build := func(ctx context.Context, conn *pgx.Conn) error {
		built++
		_, err := conn.Exec(ctx, "CREATE TABLE t AS SELECT 1 AS n")
		return err
	}
	ctx := context.Background()
	a, b := Template(t, "copied", build), Template(t, "copied", build)
	if built != 1 {
		t.Errorf("the template was built %d times", built)
	}
	if _, err := a.Connect(t, "postgres").Exec(ctx, "INSERT INTO t VALUES (2)"); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := b.Connect(t, "postgres").QueryRow(ctx, "SELECT count(*) FROM t").Scan(&n); err != nil || n != 1 {
		t.Errorf("the other copy has %d rows (%v), want 1", n, err)
	}
}

// A copy is built further where nobody can have changed it, once for all that want the same, and has the rights of what
// it is a copy of.
func TestCopyIsExtended(t *testing.T) {
	ctx := context.Background()
	base := func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx,
			"CREATE TABLE t AS SELECT 1 AS n; DO $$ BEGIN EXECUTE format('REVOKE TEMPORARY ON DATABASE %I FROM "+
				"PUBLIC; GRANT CREATE ON DATABASE %1$I TO pg_monitor', current_database()); END $$")
		return err
	}
	built := 0
	more := func(ctx context.Context, conn *pgx.Conn) error {
		built++
		_, err := conn.Exec(ctx, "INSERT INTO t VALUES (2)")
		return err
	}
	a, b, looked, opened, plain := Temporary(t, "further", base), Temporary(t, "further", base), Temporary(t,
		"further", base), Temporary(t, "further", base), Temporary(t, "further", base)
	conn, err := pgx.Connect(ctx, looked.ReadOnlyDSN())
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close(ctx)
	opened.Connect(t, "postgres")
	if !a.BuildFurther("more", more) || !b.BuildFurther("more", more) || !looked.BuildFurther("more", more) ||
		opened.BuildFurther("more", more) || Database(t).BuildFurther("more", more) {
		t.Error("it was built further where somebody may have changed it, or not where nobody can have")
	}
	if built != 1 {
		t.Errorf("it was built %d times", built)
	}
	if a.UnchangedTemplate() != b.UnchangedTemplate() || a.UnchangedTemplate() == plain.UnchangedTemplate() || opened.UnchangedTemplate() != "" {
		t.Errorf("copies of %q, %q, %q and %q", a.UnchangedTemplate(), b.UnchangedTemplate(), plain.UnchangedTemplate(), opened.UnchangedTemplate())
	}
	for db, want := range map[*DB]int{a: 2, b: 2, looked: 2, opened: 1, plain: 1} {
		var n int
		var temporary, connect, create bool
		if err := db.Connect(t, "postgres").QueryRow(ctx, `SELECT (SELECT count(*) FROM t), has_database_privilege('public', current_database(), 'TEMPORARY'),
			has_database_privilege('public', current_database(), 'CONNECT'),
			has_database_privilege('pg_monitor', current_database(), 'CREATE')`).Scan(&n, &temporary, &connect, &create); err != nil {
			t.Fatal(err)
		}
		if n != want || temporary || !connect || !create {
			t.Errorf("%d rows, want %d; rights: %t %t %t", n, want, temporary, connect, create)
		}
	}
}

// What no other test asks for is gone with the test.
func TestTemporaryTemplatesAreDropped(t *testing.T) {
	var names []string
	t.Run("made", func(t *testing.T) {
		db := Temporary(t, "going", func(context.Context, *pgx.Conn) error { return nil })
		names = append(names, db.Template())
		db.BuildFurther("further", func(context.Context, *pgx.Conn) error { return nil })
		names = append(names, db.Template())
	})
	if err := dropDiscarded(); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if exists, err := isBuilt(name); err != nil || exists {
			t.Errorf("%s is there: %t, %v", name, exists, err)
		}
	}
}

// What is to be done when all tests are over is done in turn, the last first, and fails the run.
func TestAtEndFunctionsRunInReverse(t *testing.T) {
	saved := atEnd
	defer func() { atEnd = saved }()
	atEnd = nil
	var done []int
	AtEnd(func() error { done = append(done, 1); return nil })
	if code := runAtEnd(0); code != 0 {
		t.Errorf("exit code %d", code)
	}
	AtEnd(func() error { done = append(done, 2); return errors.New("an error of this test: no reason to worry") })
	if code := runAtEnd(0); code != 1 || !slices.Equal(done, []int{1, 2, 1}) {
		t.Errorf("exit code %d after %v", code, done)
	}
}

func TestTCPAsksForPassword(t *testing.T) {
	ctx := context.Background()
	db := Database(t)
	admin := db.Connect(t, "postgres")
	Lock(t, "roles")
	if _, err := admin.Exec(ctx, "CREATE ROLE somebody LOGIN PASSWORD 'right'"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = admin.Exec(ctx, "DROP ROLE somebody") })
	if _, err := pgx.Connect(ctx, db.DSN("somebody", "wrong")); err == nil {
		t.Error("a wrong password was accepted on 127.0.0.1")
	}
	conn, err := pgx.Connect(ctx, db.DSN("somebody", "right"))
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close(ctx)
}
