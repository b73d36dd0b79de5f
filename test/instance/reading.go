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

// Reading is what tests share that change nothing: start is called for the first one of the process, with a t that
// lasts until the last is over, and returns the database that it made as well. In the end the database must be as it
// was. Tests whose agents change something, or whose owner does, start what they need themselves.
func Reading[T any](t testing.TB, key string, start func(testing.TB) (T, *pgtest.DB)) T {
	t.Helper()
	v, _ := shared.LoadOrStore(key, &reading{})
	r := v.(*reading)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.started == nil {
		r.lasting = &lasting{TB: t, name: key}
		what, db := start(r.lasting)
		before, err := contents(db)
		if err != nil {
			t.Fatal(err)
		}
		r.started = what
		r.lasting.over = true
		pgtest.AtEnd(func() error { return r.end(key, db, before) })
	}
	r.readers = append(r.readers, t.Name())
	return r.started.(T)
}

var shared sync.Map // key → *reading

type reading struct {
	mu      sync.Mutex
	started any
	lasting *lasting
	readers []string
}

// end stops what was shared, and fails if one of the tests has changed it.
func (r *reading) end(key string, db *pgtest.DB, before string) error {
	after, err := contents(db)
	if err == nil && after != before {
		err = fmt.Errorf("FAIL: a test changed what it shares with others as %q; one of %s\nbefore:\n%s\nafter:\n%s",
			key, strings.Join(r.readers, ", "), before, after)
	}
	return errors.Join(err, r.lasting.end())
}

// contents tells databases apart that differ in an object, a row of a table that is not ours, or a sequence.
func contents(db *pgtest.DB) (string, error) {
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

// lasting is a test that is over when the process is, whose failures until then are those of the test that it began with.
type lasting struct {
	testing.TB
	over     bool // that test may be
	cleanups []func()
	failures []error
	name     string // the key: which test comes first says nothing
}

func (l *lasting) Name() string { return l.name }

func (l *lasting) Cleanup(f func()) { l.cleanups = append(l.cleanups, f) }

func (l *lasting) TempDir() string {
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

func (l *lasting) Helper() {
	if !l.over {
		l.TB.Helper()
	}
}

func (l *lasting) Error(args ...any) {
	if !l.over {
		l.TB.Error(args...)
		return
	}
	l.failures = append(l.failures, errors.New("FAIL: "+fmt.Sprint(args...)))
}

func (l *lasting) Errorf(format string, args ...any) { l.Error(fmt.Sprintf(format, args...)) }

func (l *lasting) end() error {
	for _, f := range slices.Backward(l.cleanups) {
		f()
	}
	return errors.Join(l.failures...)
}

// Reader is the proxy with a tap of the test's own: what came through for others is not counted.
func (p *Proxy) Reader(t testing.TB) *Proxy {
	t.Helper()
	Answered(t, p.enforcer)
	return &Proxy{addr: p.addr, enforcer: p.enforcer, tap: NewTap(t, p.addr), log: p.log}
}
