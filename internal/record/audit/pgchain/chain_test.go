package pgchain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/test/tier"
)

func TestMain(m *testing.M) { pgtest.MainAlone(m) }

// basePlan is a migration plan that installs only the base, with the rights of the control role.
type basePlan struct{}

func (basePlan) Hash() string          { return "none" }
func (basePlan) PolicyVersion() string { return "none" }

func (basePlan) Objects(f migrations.Found) []migrations.Object {
	o := migrations.Object{Identity: "rights of the control role", MakeStatements: []migrations.Statement{
		{SQL: "GRANT USAGE ON SCHEMA pgconsent TO pgconsent_control", Why: "test"},
		{SQL: fmt.Sprintf(`REVOKE TEMPORARY, CREATE ON DATABASE %q FROM PUBLIC`, f.Database), Why: "test"},
		{SQL: fmt.Sprintf(`GRANT CONNECT ON DATABASE %q TO PUBLIC`, f.Database), Why: "test"},
	}}
	for _, g := range migrations.AuditGrants("pgconsent_control") {
		o.MakeStatements = append(o.MakeStatements, g.GrantStatement())
	}
	return []migrations.Object{o}
}

func database(t testing.TB) *pgtest.DB {
	t.Helper()
	return pgtest.Template(t, "pgchain", func(ctx context.Context, conn *pgx.Conn) error {
		return migrations.Up(ctx, conn, migrations.Options{}, basePlan{})
	})
}

// wire is a network connection to the server that a test can interrupt.
type wire struct {
	conns   map[*wired]bool
	isMuted atomic.Bool // answers do not arrive
	isLost  atomic.Bool // the connection breaks before the answer to the last message
}

type wired struct {
	net.Conn
	w          *wire
	heldAnswer chan struct{}
	holdOnce   sync.Once
}

func (c *wired) Close() error {
	c.holdOnce.Do(func() { close(c.heldAnswer) })
	return c.Conn.Close()
}

func (c *wired) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	for c.w.isMuted.Load() {
		select {
		case <-c.heldAnswer:
			return 0, net.ErrClosed
		case <-time.After(5 * time.Millisecond):
		}
	}
	if c.w.isLost.Load() && err == nil {
		c.Close()
		return 0, net.ErrClosed
	}
	return n, err
}

// SetDeadline is what pgx calls when it gives up a connection.
func (c *wired) SetDeadline(t time.Time) error {
	if !t.IsZero() && time.Until(t) <= 0 {
		c.holdOnce.Do(func() { close(c.heldAnswer) })
	}
	return c.Conn.SetDeadline(t)
}

// bench is a database, a wire to it, and the files that a log on it needs.
type bench struct {
	t   testing.TB
	db  *pgtest.DB
	dba *pgx.Conn
	wire
	key    audit.Key
	anchor string
	now    atomic.Int64 // how far the log's clock is ahead, in nanoseconds
}

func begin(t testing.TB) *bench {
	t.Helper()
	key, err := audit.NewKey(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, db: database(t), key: key, anchor: filepath.Join(t.TempDir(), "audit.anchor")}
	b.conns = map[*wired]bool{}
	b.dba = b.db.Connect(t, "postgres")
	return b
}

func (b *bench) store(chain string) *Store {
	b.t.Helper()
	config, err := pgx.ParseConfig(b.db.DSN("pgconsent_control", ""))
	if err != nil {
		b.t.Fatal(err)
	}
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &wired{Conn: conn, w: &b.wire, heldAnswer: make(chan struct{})}, nil
	}
	return New(config, "app", chain)
}

// open opens a log; change may modify its configuration.
func (b *bench) open(change func(*audit.Config)) (*audit.Log, error) {
	// A busy machine must not cause refusals.
	cfg := audit.Config{Store: b.store("one"), Key: b.key, AnchorFile: b.anchor, ReleaseTimeout: tier.Patience,
		Clock: func() time.Time { return time.Now().Add(time.Duration(b.now.Load())) }}
	if change != nil {
		change(&cfg)
	}
	return audit.Open(cfg)
}

func (b *bench) log(change func(*audit.Config)) *audit.Log {
	b.t.Helper()
	log, err := b.open(change)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = log.Close(context.Background()) })
	return log
}

// run records a statement, and returns the refusal, if any.
func run(log *audit.Log, session string) *sqlstate.Error {
	d := log.Decision(audit.Decision{Session: session, Agent: "chat", Database: "app", Verdict: "allow", Tag: "SELECT"})
	if err := d.Release(); err != nil {
		d.RecordOutcome(audit.Outcome{SQLState: string(err.Code)})
		return err
	}
	d.RecordOutcome(audit.Outcome{Rows: 1, SQLState: "00000"})
	return nil
}

// pass moves the clock to a time after the start, while no write is in progress. A write that began before would seem
// to take that long.
func (b *bench) pass(log *audit.Log, d time.Duration) {
	b.t.Helper()
	if err := log.Call(audit.Call{Interface: "test", CallerName: "somebody", Role: "admin", Database: "app", Operation: "look",
		Outcome: audit.OutcomeDone}).Release(); err != nil {
		b.t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond) // the writer rests
	b.now.Store(int64(d))
}

func closed(t testing.TB, log *audit.Log) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), tier.Patience)
	defer cancel()
	if err := log.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

// verify verifies the chain with the key and the anchor, which are outside the database.
func (b *bench) verify(fn func(audit.Record) error) (audit.Report, error) {
	b.t.Helper()
	head, err := audit.ReadAnchor(b.anchor, b.key)
	if err != nil {
		b.t.Fatal(err)
	}
	return audit.VerifyOptions{Key: b.key, Heads: []audit.RecordHead{head}}.Read(NewReader(b.t.Context(), b.db.Connect(b.t, "pgconsent_control"), "app", "one"),
		fn)
}

// records returns the number of records by kind, and the sessions that have decisions.
func (b *bench) records() (audit.Report, map[string]int, map[string]bool) {
	b.t.Helper()
	kinds, sessions := map[string]int{}, map[string]bool{}
	report, err := b.verify(func(r audit.Record) error {
		kinds[r.Kind]++
		if r.Kind == audit.KindDecision {
			_, afterPrefix, _ := strings.Cut(string(r.Line), `"session":"`)
			session, _, _ := strings.Cut(afterPrefix, `"`)
			sessions[session] = true
		}
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return report, kinds, sessions
}

// Records are committed with synchronous_commit at least "on", whatever is stored for the database, and after a
// reconnect too.
func TestSynchronousCommitOfRecords(t *testing.T) {
	b := begin(t)
	for storedSetting, want := range map[string]string{"off": "on", "local": "on", "remote_write": "on", "on": "on",
		"remote_apply": "remote_apply"} {
		if _, err := b.dba.Exec(t.Context(), "ALTER DATABASE "+b.db.Name+" SET synchronous_commit = "+storedSetting); err != nil {
			t.Fatal(err)
		}
		s := b.store("durable-" + storedSetting)
		for _, situation := range []string{"at first", "connected again"} {
			if err := s.LockChain(); err != nil {
				t.Fatal(err)
			}
			var value string
			if err := s.conn.QueryRow(t.Context(), "SHOW synchronous_commit").Scan(&value); err != nil || value != want {
				t.Errorf("%s is stored, %s: records are written with %q, want %q (%v)", storedSetting, situation, value, want, err)
			}
			if err := s.conn.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		s.Close()
	}
}

// A chain in the database verifies, continues after a restart, and can be read from any record on.
func TestChainInADatabase(t *testing.T) {
	b := begin(t)
	for round := range 3 {
		log := b.log(nil)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for j := range 25 {
					if err := run(log, fmt.Sprint(round, i, j, ` "q\uoted" ü 表`)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		closed(t, log)
	}
	report, kinds, _ := b.records()
	if report.Records != 1200 || kinds["decision"] != 600 || kinds["outcome"] != 600 || !report.Authenticated ||
		report.AnchoredRecord != 1200 || report.Recoveries != 0 {
		t.Errorf("%+v %v", report, kinds)
	}
	var seqs []uint64
	cursor, err := audit.ReadNewest(NewReader(t.Context(), b.db.Connect(t, "pgconsent_control"), "app", "one"), 5,
		func(audit.Record) bool { return true }, func(r audit.Record) error {
			seqs = append(seqs, r.Seq)
			return nil
		})
	if err != nil || len(seqs) != 1200 || seqs[1199] != 1200 {
		t.Fatal(err, len(seqs))
	}
	log := b.log(nil)
	ctx, stop := context.WithTimeout(t.Context(), tier.Patience)
	defer stop()
	go run(log, "later")
	if err := cursor.Follow(ctx, func(r audit.Record) error {
		if r.Seq == 1202 {
			stop()
		}
		seqs = append(seqs, r.Seq)
		return nil
	}); err != nil || seqs[len(seqs)-1] != 1202 || len(seqs) != 1202 {
		t.Errorf("%v, the last is %d of %d", err, seqs[len(seqs)-1], len(seqs))
	}
	chains, err := ListChains(t.Context(), b.dba)
	if err != nil || fmt.Sprint(chains) != "[one]" {
		t.Errorf("chains %v %v", chains, err)
	}
}

// No role can change or remove records by SQL. Changes of the schema that would allow it are found.
func TestRecordsCannotBeChangedBySQL(t *testing.T) {
	b := begin(t)
	log := b.log(nil)
	for i := range 20 {
		if err := run(log, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, log)
	for _, role := range []string{"postgres", "pgconsent_control"} {
		conn := b.db.Connect(t, role)
		for _, sql := range []string{
			"UPDATE pgconsent.audit_record SET line = line", "DELETE FROM pgconsent.audit_record",
			"TRUNCATE pgconsent.audit_record", "DELETE FROM pgconsent.audit_retired",
			"UPDATE pgconsent.audit_retired SET seq = 1000", "SET session_replication_role = replica; DELETE FROM pgconsent.audit_record",
		} {
			if strings.Contains(sql, "retired") { // so that there are rows
				if _, err := b.dba.Exec(t.Context(), "INSERT INTO pgconsent.audit_retired VALUES ('other', 1) ON CONFLICT DO NOTHING"); err != nil {
					t.Fatal(err)
				}
			}
			var pg *pgconn.PgError
			if _, err := conn.Exec(t.Context(), sql); !errors.As(err, &pg) || pg.Code != "42501" {
				t.Errorf("%s: %s: %v", role, sql, err)
			}
		}
	}
	control := b.db.Connect(t, "pgconsent_control")
	for sql, code := range map[string]string{
		"INSERT INTO pgconsent.audit_record VALUES ('one', 1000, '{}')":            "42501",
		"INSERT INTO pgconsent.audit_retired VALUES ('one', 10)":                   "42501",
		"SELECT pgconsent.audit_append('one', 41, '{}') FROM pg_class WHERE false": "",
		"SELECT pgconsent.audit_append('one', 43, '{a gap}')":                      "55000",
		"SELECT pgconsent.audit_append('one', 40, '{another}')":                    "55000",
		"SELECT pgconsent.audit_retire('one', 40, 10)":                             "22023",
	} {
		var pg *pgconn.PgError
		if _, err := control.Exec(t.Context(), sql); code != "" && (!errors.As(err, &pg) || pg.Code != code) {
			t.Errorf("%s: %v", sql, err)
		}
	}
	if found, err := MissingGuards(t.Context(), control); err != nil || len(found) > 0 {
		t.Errorf("%v %v", found, err)
	}
	for name, sql := range map[string]string{
		"changed": `UPDATE pgconsent.audit_record SET line = replace(line, '"agent":"chat"', '"agent":"nobody"') WHERE seq = 7`,
		"dropped": "DELETE FROM pgconsent.audit_record WHERE seq = 7",
		"cut off": "DELETE FROM pgconsent.audit_record WHERE seq > 30",
		"all":     "DELETE FROM pgconsent.audit_record",
		"swapped": "UPDATE pgconsent.audit_record AS r SET line = o.line FROM " +
			"pgconsent.audit_record AS o WHERE r.seq IN (7, 8) AND o.seq = 15 - r.seq",
		"the beginning taken off": "DELETE FROM pgconsent.audit_record WHERE seq < 7",
		"added by control":        `SELECT pgconsent.audit_append('one', 41, ARRAY[(SELECT line FROM pgconsent.audit_record WHERE seq = 1)])`,
		"retired by control":      `SELECT pgconsent.audit_retire('one', 7, 100)`,
	} {
		t.Run(name, func(t *testing.T) {
			tx, err := b.dba.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback(context.Background()) }()
			for _, sql := range []string{"ALTER TABLE pgconsent.audit_record DISABLE TRIGGER ALL", sql} {
				if _, err := tx.Exec(t.Context(), sql); err != nil {
					t.Fatal(err)
				}
			}
			head, err := audit.ReadAnchor(b.anchor, b.key)
			if err != nil {
				t.Fatal(err)
			}
			var chainError *audit.ChainError
			if _, err := (audit.VerifyOptions{Key: b.key, Heads: []audit.RecordHead{head}}).
				Read(NewReader(t.Context(), tx.Conn(), "app", "one"), nil); !errors.As(err, &chainError) {
				t.Errorf("not found: %v", err)
			}
			if found, err := MissingGuards(t.Context(), tx.Conn()); err != nil || len(found) != 2 {
				t.Errorf("triggers: %v %v", found, err)
			}
		})
	}
	// Missing newest records are found when a log is opened, too.
	if _, err := b.dba.Exec(t.Context(),
		"ALTER TABLE pgconsent.audit_record DISABLE TRIGGER ALL; DELETE FROM pgconsent.audit_record WHERE seq > 30"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.open(nil); err == nil || !strings.Contains(err.Error(), "record 40 had been written") {
		t.Errorf("a chain that was cut off: %v", err)
	}
}

// Two processes cannot write to one chain. Each may have a chain of its own.
func TestOneWriter(t *testing.T) {
	tier.All(t)
	b := begin(t)
	firstLog := b.log(nil)
	if _, err := b.open(nil); err == nil || !strings.Contains(err.Error(), "in use by another pgconsent") {
		t.Errorf("the same chain again: %v", err)
	}
	secondLog := b.log(func(c *audit.Config) { c.Store, c.AnchorFile = b.store("two"), c.AnchorFile+"2" })
	for _, log := range []*audit.Log{firstLog, secondLog} {
		if err := run(log, "a"); err != nil {
			t.Error(err)
		}
	}
	// A record that another writer adds is noticed before the next answer. An outcome is written shortly after its
	// answer.
	for deadline, seq := time.Now().Add(tier.Patience), 0; seq != 2; time.Sleep(10 * time.Millisecond) {
		if err := b.dba.QueryRow(t.Context(), "SELECT max(seq) FROM pgconsent.audit_record WHERE chain = 'one'").Scan(&seq); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatalf("record %d is the last one", seq)
		}
	}
	if _, err := b.dba.Exec(t.Context(), "SELECT pgconsent.audit_append('one', 3, '{a}')"); err != nil {
		t.Fatal(err)
	}
	if err := run(firstLog, "b"); err == nil || err.Code != sqlstate.IOError {
		t.Errorf("over another's record: %v", err)
	}
	if err := run(secondLog, "b"); err != nil {
		t.Error(err)
	}
}

// Expired records are removed, a checkpoint replaces them, and the chain goes on.
func TestRetention(t *testing.T) {
	b := begin(t)
	withRetention := func(c *audit.Config) { c.Retention = 24 * time.Hour }
	log := b.log(withRetention)
	for i := range 30 {
		if err := run(log, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	b.pass(log, 23*time.Hour)
	if err := run(log, "young"); err != nil {
		t.Fatal(err)
	}
	b.pass(log, 25*time.Hour)
	if err := run(log, "new"); err != nil {
		t.Fatal(err)
	}
	closed(t, log)
	report, kinds, sessions := b.records()
	if report.FirstSeq != 62 || report.Checkpoints != 1 || !sessions["young"] || !sessions["new"] || kinds["decision"] != 2 {
		t.Errorf("%+v %v %v", report, kinds, sessions)
	}
	log = b.log(withRetention)
	if err := run(log, "again"); err != nil {
		t.Fatal(err)
	}
	closed(t, log)
	if report, _, _ := b.records(); report.FirstSeq != 62 {
		t.Errorf("%+v", report)
	}
}
