package rls_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/enforce/seal"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
)

func TestMain(m *testing.M) { pgtest.MainAlone(m) }

// The users to whom the rows of testdata belong.
const (
	user1 = "00000000-0000-0000-0000-000000000001"
	user2 = "00000000-0000-0000-0000-000000000002"
)

// world is a database with the schema of testdata, owned by a role that is no superuser.
type world struct {
	t     testing.TB
	db    *pgtest.DB
	super *pgx.Conn
	owner *pgx.Conn
	snap  *catalog.Snapshot
	pol   *policy.Policy
	plan  *rls.Plan
}

// newWorld makes a world without migrating. It runs the given statements as superuser after the schema.
func newWorld(t testing.TB, before ...string) *world {
	t.Helper()
	w := &world{t: t, db: pgtest.Template(t, "world", func(ctx context.Context, super *pgx.Conn) error {
		return asOwner(ctx, super, func(owner *pgx.Conn) error { return createSchema(ctx, super, owner) })
	})}
	w.connect()
	if len(before) == 0 {
		w.compileOnce(&compiledNew)
		return w
	}
	for _, sql := range before {
		w.exec(w.super, sql)
	}
	w.compile("testdata/policy.yaml", rls.Options{})
	return w
}

// migrated returns the same as newWorld(t).migrate(), but faster, as a copy of a template. Tests of migrate --down need
// a database that was migrated itself.
func migrated(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, db: pgtest.Template(t, "world, migrated", func(ctx context.Context, super *pgx.Conn) error {
		return asOwner(ctx, super, func(owner *pgx.Conn) error {
			if err := createSchema(ctx, super, owner); err != nil {
				return err
			}
			template := &world{t: t, super: super, owner: owner}
			template.compile("testdata/policy.yaml", rls.Options{})
			return migrations.Up(ctx, owner, migrations.Options{}, template.plan)
		})
	})}
	w.connect()
	w.compileOnce(&compiledMigrated)
	return w
}

// asOwner calls f with a connection of the schema's owner to the database of a superuser's connection.
func asOwner(ctx context.Context, super *pgx.Conn, f func(owner *pgx.Conn) error) error {
	if err := makeRoles(ctx, super); err != nil {
		return err
	}
	config := super.Config().Copy()
	config.User = "app_owner"
	owner, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer owner.Close(ctx)
	return f(owner)
}

// compiledWorld is what [world.compile] makes of the policy of testdata in each unchanged copy of one template.
type compiledWorld struct {
	mu   sync.Mutex
	snap *catalog.Snapshot
	pol  *policy.Policy
	plan *rls.Plan
}

var compiledNew, compiledMigrated compiledWorld

// compileOnce does the same as compile with the policy of testdata, once for all copies of the template.
func (w *world) compileOnce(c *compiledWorld) {
	w.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.plan == nil {
		w.compile("testdata/policy.yaml", rls.Options{})
		c.snap, c.pol, c.plan = w.snap, w.pol, w.plan
	}
	w.snap, w.pol, w.plan = c.snap, c.pol, c.plan
}

func (w *world) connect() {
	w.t.Helper()
	w.super = w.db.Connect(w.t, "postgres")
	if err := makeRoles(context.Background(), w.super); err != nil {
		w.t.Fatal(err)
	}
	w.owner = w.db.Connect(w.t, "app_owner")
	w.exec(w.super, "ALTER DATABASE "+w.db.Name+" OWNER TO app_owner")
}

func makeRoles(ctx context.Context, super *pgx.Conn) error {
	for _, role := range []string{"app_owner LOGIN CREATEROLE", "app_other LOGIN"} {
		if _, err := super.Exec(ctx, "DO $$ BEGIN CREATE ROLE "+role+"; EXCEPTION WHEN duplicate_object THEN NULL; END $$"); err != nil {
			return err
		}
	}
	return nil
}

// createSchema creates the schema of testdata, as its owner.
func createSchema(ctx context.Context, super, owner *pgx.Conn) error {
	if _, err := super.Exec(ctx, "ALTER DATABASE "+pgx.Identifier{super.Config().Database}.Sanitize()+" OWNER TO app_owner"); err != nil {
		return err
	}
	schema, err := os.ReadFile("testdata/schema.sql")
	if err != nil {
		return err
	}
	for _, sql := range []string{string(schema), "GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA public TO app_other"} {
		if _, err := owner.PgConn().Exec(ctx, sql).ReadAll(); err != nil {
			return err
		}
	}
	return nil
}

// compile loads a policy and makes its plan.
func (w *world) compile(file string, o rls.Options) {
	w.t.Helper()
	doc, err := policy.Load(file)
	if err != nil {
		w.t.Fatal(err)
	}
	if w.snap, err = pgcatalog.Load(context.Background(), w.super, []string{"public"}); err != nil {
		w.t.Fatal(err)
	}
	if w.pol, err = policy.Compile(doc, w.snap, policy.WithViews(rewrite.RewriteViewQuery)); err != nil {
		w.t.Fatal(err)
	}
	w.plan = rls.Generate(w.pol, w.snap, o)
}

func (w *world) migrate() *world {
	w.t.Helper()
	if err := migrations.Up(context.Background(), w.owner, migrations.Options{}, w.plan); err != nil {
		w.t.Fatal(err)
	}
	return w
}

func (w *world) exec(conn *pgx.Conn, sql string) {
	w.t.Helper()
	if _, err := conn.PgConn().Exec(context.Background(), sql).ReadAll(); err != nil {
		w.t.Fatalf("%.200s: %v", sql, err)
	}
}

// key returns the newest key, read as the control role.
func (w *world) key() seal.Key {
	w.t.Helper()
	ring, err := seal.LoadKeyring(context.Background(), w.db.Connect(w.t, migrations.DefaultControlRole))
	if err != nil {
		w.t.Fatal(err)
	}
	return ring.NewestKey()
}

// agent opens a connection of the agent's role with a seal for the user; "": without a seal.
func (w *world) agent(user string) *pgx.Conn {
	w.t.Helper()
	conn := w.db.Connect(w.t, migrations.DefaultAgentRole)
	if user != "" {
		w.setSeal(conn, w.key().Seal(claims(conn, user)))
	}
	return conn
}

func claims(conn *pgx.Conn, user string) seal.Claims {
	return seal.Claims{
		Nonce: 7, PID: conn.PgConn().PID(), Expires: time.Now().Add(seal.SealLifetime), Profile: "p1",
		Attributes: map[string]string{"user": user},
	}
}

func (w *world) setSeal(conn *pgx.Conn, value string) {
	w.t.Helper()
	if _, err := conn.Exec(context.Background(), "SELECT set_config('pgconsent.seal', $1, false)", pgx.QueryExecModeExec, value); err != nil {
		w.t.Fatal(err)
	}
}

// query returns the first column of all result rows, joined by commas.
func query(conn *pgx.Conn, sql string) (string, error) {
	results, err := conn.PgConn().Exec(context.Background(), sql).ReadAll()
	if err != nil {
		return "", err
	}
	var out []string
	for _, r := range results {
		for _, row := range r.Rows {
			if row[0] == nil {
				out = append(out, "NULL")
				continue
			}
			out = append(out, string(row[0]))
		}
	}
	return strings.Join(out, ","), nil
}

func (w *world) want(conn *pgx.Conn, sql, want string) {
	w.t.Helper()
	got, err := query(conn, sql)
	if err != nil {
		w.t.Errorf("%s: %v", sql, err)
		return
	}
	if got != want {
		w.t.Errorf("%s:\n got %s\nwant %s", sql, got, want)
	}
}

func (w *world) wantRefusal(conn *pgx.Conn, code, sql string) {
	w.t.Helper()
	got, err := query(conn, sql)
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) || pgErr.Code != code {
		w.t.Errorf("%s: got %q and error %v, want SQLSTATE %s", sql, got, err, code)
	}
}

const (
	titlesQuery   = "SELECT title FROM public.memories ORDER BY id"
	namesQuery    = "SELECT name FROM public.people ORDER BY id"
	linksQuery    = "SELECT count(*) FROM public.memory_participants"
	visibleTitles = "alone,with Ada"
)

func uuid(n int) string { return fmt.Sprintf("00000000-0000-0000-0000-%012d", n) }

// recordedCase is a statement of the owner, and whether a trigger must record it as a change.
type recordedCase struct {
	sql        string
	isRecorded bool
}

// checkRecorded runs each statement and checks whether changed_since reports a change.
func (w *world) checkRecorded(cases []recordedCase) {
	w.t.Helper()
	control := w.db.Connect(w.t, migrations.DefaultControlRole)
	for _, c := range cases {
		snapshot, err := query(control, "SELECT pg_current_snapshot()::text")
		if err != nil {
			w.t.Fatal(err)
		}
		w.exec(w.owner, c.sql)
		isRecorded, err := query(control, "SELECT pgconsent.changed_since('"+snapshot+"'::pg_snapshot)::text")
		if err != nil {
			w.t.Fatal(err)
		}
		if (isRecorded == "true") != c.isRecorded {
			w.t.Errorf("%s: noted %s", c.sql, isRecorded)
		}
	}
}
