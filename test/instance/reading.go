package instance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
)

// Shared returns a value that several tests share, such as a proxy. The first of these tests calls start, with a t that
// ends when the process ends. start also returns the database, whose content must be unchanged at the end. Therefore
// tests in which anything is changed must not use Shared.
func Shared[T any](t testing.TB, key string, start func(testing.TB) (T, *pgtest.DB)) T {
	t.Helper()
	v, _ := sharedValues.LoadOrStore(key, &sharedValue{})
	r := v.(*sharedValue)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.value == nil {
		r.test = &processTest{TB: t, name: key}
		what, db := start(r.test)
		before, err := databaseContents(db)
		if err != nil {
			t.Fatal(err)
		}
		r.value = what
		r.test.firstTestEnded = true
		pgtest.AtEnd(func() error { return r.close(key, db, before) })
	}
	r.testNames = append(r.testNames, t.Name())
	return r.value.(T)
}

var sharedValues sync.Map // a *sharedValue for each key

type sharedValue struct {
	mu        sync.Mutex
	value     any
	test      *processTest
	testNames []string
}

// close closes the shared value. It returns an error if a test has changed the database.
func (r *sharedValue) close(key string, db *pgtest.DB, before string) error {
	after, err := databaseContents(db)
	if err == nil && after != before {
		err = fmt.Errorf("FAIL: a test changed what it shares with others as %q; one of %s\nbefore:\n%s\nafter:\n%s",
			key, strings.Join(r.testNames, ", "), before, after)
	}
	return errors.Join(err, r.test.end())
}

// databaseContents returns a text that differs if two databases differ in an object, in a sequence, or in a row of a
// table outside of pgconsent's schemas.
func databaseContents(db *pgtest.DB) (string, error) {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, db.DSN("postgres", ""))
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(ctx) }()
	objects, err := pgcatalog.Fingerprint(ctx, conn)
	if err != nil {
		return "", err
	}
	rows, err := conn.Query(ctx, `SELECT c.relkind::text, pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname)
		FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'S') AND n.nspname !~ '^(pg_|pgconsent)' AND n.nspname <> 'information_schema' ORDER BY 2`)
	if err != nil {
		return "", err
	}
	type relation struct{ Kind, Name string }
	relations, err := pgx.CollectRows(rows, pgx.RowToStructByPos[relation])
	if err != nil {
		return "", err
	}
	out := "objects " + objects + "\n"
	for _, r := range relations {
		of := "pg_catalog.count(*) || ' rows, ' || coalesce(pg_catalog.sum(pg_catalog.hashtextextended(x::text, 0)), 0)"
		if r.Kind == "S" {
			of = "x.last_value::text || x.is_called"
		}
		var is string
		if err := conn.QueryRow(ctx, "SELECT "+of+" FROM "+r.Name+" AS x").Scan(&is); err != nil {
			return "", fmt.Errorf("%s: %w", r.Name, err)
		}
		out += r.Name + ": " + is + "\n"
	}
	return out, nil
}

// processTest is a testing.TB that lasts as long as the process. Until the first test that uses it ends, its failures
// are failures of that test.
type processTest struct {
	testing.TB
	firstTestEnded bool // the first test that uses it has ended
	cleanups       []func()
	failures       []error
	name           string // key of the shared value
}

func (l *processTest) Name() string { return l.name }

func (l *processTest) Cleanup(f func()) { l.cleanups = append(l.cleanups, f) }

func (l *processTest) TempDir() string {
	dir, err := os.MkdirTemp("", "reading")
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			l.Error(err)
		}
	})
	return dir
}

func (l *processTest) Helper() {
	if !l.firstTestEnded {
		l.TB.Helper()
	}
}

func (l *processTest) Error(args ...any) {
	if !l.firstTestEnded {
		l.TB.Error(args...)
		return
	}
	l.failures = append(l.failures, errors.New("FAIL: "+fmt.Sprint(args...)))
}

func (l *processTest) Errorf(format string, args ...any) { l.Error(fmt.Sprintf(format, args...)) }

func (l *processTest) end() error {
	for _, f := range slices.Backward(l.cleanups) {
		f()
	}
	return errors.Join(l.failures...)
}

// WithOwnTap returns the same proxy with a new tap, which counts only what this test's agents receive.
func (p *Proxy) WithOwnTap(t testing.TB) *Proxy {
	t.Helper()
	AwaitProbes(t, p.enforcer)
	return &Proxy{addr: p.addr, enforcer: p.enforcer, tap: NewTap(t, p.addr), log: p.log}
}
