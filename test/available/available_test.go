package available_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const schema = `CREATE TABLE people (id int PRIMARY KEY, name text, owner text);
INSERT INTO people SELECT i, 'n' || i, CASE WHEN i % 3 = 0 THEN 'other' ELSE 'me' END FROM generate_series(1, 20000) AS i;
CREATE TABLE events (id int, owner text) PARTITION BY RANGE (id); CREATE TABLE events_0 PARTITION OF events FOR VALUES FROM (0) TO (1000);
CREATE SCHEMA elsewhere; CREATE TABLE public.staging (id int PRIMARY KEY, body text); CREATE TABLE elsewhere.parts (id int) PARTITION BY RANGE (id);
ANALYZE;`

const policy = `version: 1
attributes: { user: { type: text, source: credential } }
tables:
  people: { rows: [ { own: { column: owner, is: user } } ] }
  events: { rows: [ { own: { column: owner, is: user } } ] }
`

// storm is a list of statements that owners execute again and again. # stands for the owner's number.
type storm struct {
	name  string
	pause time.Duration // the pause of each owner between two steps
	steps []string
}

var storms = []storm{
	{"nothing", 0, nil},
	{"DDL on what no policy lists", 50 * time.Millisecond, []string{
		"TRUNCATE public.staging", "CREATE TABLE public.made_# (id serial PRIMARY KEY, body text)",
		"ALTER TABLE public.made_# ADD COLUMN more int DEFAULT 1", "CREATE INDEX ON public.made_# (more)",
		"REINDEX TABLE public.made_#", "DROP TABLE public.made_#",
		"CREATE TABLE elsewhere.copied_# AS SELECT id FROM public.staging", "DROP TABLE elsewhere.copied_#",
		"CREATE TABLE elsewhere.part_# PARTITION OF elsewhere.parts FOR VALUES FROM (#000) TO (#999)",
		"DROP TABLE elsewhere.part_#",
		"CREATE FUNCTION elsewhere.f_#() RETURNS int LANGUAGE sql AS 'SELECT 1'", "DROP FUNCTION elsewhere.f_#()",
		"CREATE TYPE elsewhere.t_# AS ENUM ('a')", "DROP TYPE elsewhere.t_#",
	}},
	{"DDL on listed tables", 2 * time.Second, []string{
		"ALTER TABLE people ADD COLUMN IF NOT EXISTS more_# int", "ALTER TABLE people DROP COLUMN more_#",
		"ALTER TABLE people ADD COLUMN IF NOT EXISTS more_# text DEFAULT 'x'",
		"CREATE INDEX IF NOT EXISTS people_# ON people (name)", "DROP INDEX IF EXISTS people_#",
		"COMMENT ON TABLE people IS 'x'", "ALTER TABLE people ADD CONSTRAINT c_# CHECK (id > 0)",
		"ALTER TABLE people DROP CONSTRAINT c_#", "CREATE STATISTICS s_# ON id, name FROM people",
		"DROP STATISTICS s_#",
		"CREATE TABLE events_# PARTITION OF events FOR VALUES FROM (#000) TO (#999)", "DROP TABLE events_#",
		"ALTER TABLE people DROP COLUMN more_#",
	}},
}

// agentCounts counts what agents notice during a storm.
type agentCounts struct {
	mu                        sync.Mutex
	statements, logins, steps int
	refused                   map[string]int // how many requests were refused, by kind and SQLSTATE
	lookupTimes               []time.Duration
}

func (s *agentCounts) count(request string, took time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
		code := "connection lost"
		var pg *pgconn.PgError
		if errors.As(err, &pg) {
			code = pg.Code
		}
		s.refused[request+" "+code]++
	case request == "lookup":
		s.lookupTimes = append(s.lookupTimes, took)
	}
	if request == "login" {
		s.logins++
	} else {
		s.statements++
	}
}

// quantile returns the q-quantile of the times that lookups took.
func (s *agentCounts) quantile(q float64) time.Duration {
	if len(s.lookupTimes) == 0 {
		return 0
	}
	slices.Sort(s.lookupTimes)
	return s.lookupTimes[min(int(q*float64(len(s.lookupTimes))), len(s.lookupTimes)-1)]
}

func (s *agentCounts) String() string {
	var out []string
	for _, request := range slices.Sorted(maps.Keys(s.refused)) {
		out = append(out, fmt.Sprintf("%d × %s", s.refused[request], request))
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}

// runStorm lets agents send statements while two owners execute the steps of a storm, for so long.
func runStorm(t *testing.T, proxy *instance.Proxy, db *pgtest.DB, s storm, duration time.Duration) *agentCounts {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), duration)
	defer cancel()
	counts := &agentCounts{refused: map[string]int{}}
	var running sync.WaitGroup
	for owner := range 2 {
		conn := instance.ConnectSuperuser(t, db)
		running.Go(func() {
			for i := 0; ctx.Err() == nil && len(s.steps) > 0; i++ {
				sql := strings.ReplaceAll(s.steps[i%len(s.steps)], "#", strconv.Itoa(owner+1))
				if _, err := conn.Exec(context.WithoutCancel(ctx), sql).ReadAll(); err != nil {
					t.Errorf("%s: %v", sql, err)
				}
				counts.mu.Lock()
				counts.steps++
				counts.mu.Unlock()
				time.Sleep(s.pause)
			}
		})
	}
	for range 2 {
		agent := proxy.Agent(t, "agent", "app")
		if _, err := agent.Prepare(ctx, "one", "SELECT name FROM people WHERE id = $1", nil); err != nil {
			t.Fatal(err)
		}
		running.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				start := time.Now()
				r := agent.ExecPrepared(context.WithoutCancel(ctx), "one", [][]byte{[]byte(strconv.Itoa(1 + i%20000))}, nil, nil).Read()
				counts.count("lookup", time.Since(start), r.Err)
				if agent.IsClosed() {
					return
				}
			}
		})
	}
	agent := proxy.Agent(t, "agent", "app")
	running.Go(func() {
		for ctx.Err() == nil && !agent.IsClosed() {
			for _, sql := range []string{"BEGIN", "SELECT count(*) FROM people WHERE id < 100", "SELECT * FROM people WHERE id = 1", "COMMIT"} {
				_, err := agent.Exec(context.WithoutCancel(ctx), sql).ReadAll()
				request := "in a transaction"
				if sql == "BEGIN" || sql == "COMMIT" {
					request = sql
				}
				counts.count(request, 0, err)
				if err != nil {
					_, _ = agent.Exec(context.WithoutCancel(ctx), "ROLLBACK").ReadAll()
					break
				}
			}
		}
	})
	running.Go(func() {
		for ctx.Err() == nil {
			c, err := pgconn.Connect(context.WithoutCancel(ctx), proxy.DSN("agent", "app"))
			if err == nil {
				_, err = c.Exec(context.WithoutCancel(ctx), "SELECT * FROM events LIMIT 1").ReadAll()
				_ = c.Close(context.WithoutCancel(ctx))
			}
			counts.count("login", 0, err)
			time.Sleep(20 * time.Millisecond)
		}
	})
	running.Wait()
	return counts
}

func startProxy(t *testing.T) (*instance.Proxy, *pgtest.DB) {
	t.Helper()
	db := pgtest.Database(t)
	instance.Exec(t, db, schema)
	d := instance.Database{Name: "app", DB: db, Policy: policy, SearchPath: []string{"public"}, Refresh: 200 * time.Millisecond}
	return instance.Start(t, instance.Auto, d, map[string]string{"user": "me"}), db
}

// TestOwnersDDLRefusesNobody: two owners change objects while agents send statements. Changes of objects that no policy
// lists must cause no refusal. Changes of listed tables may refuse only transactions that have read before the change.
func TestOwnersDDLRefusesNobody(t *testing.T) {
	tier.All(t)
	proxy, db := startProxy(t)
	for _, s := range storms[1:] {
		counts := runStorm(t, proxy, db, s, 8*time.Second)
		t.Logf("%s: %d steps, %d statements, %d logins, refused: %s", s.name, counts.steps, counts.statements, counts.logins, counts)
		for request := range counts.refused {
			if s.name == storms[1].name || request != "in a transaction 40001" {
				t.Errorf("%s: refused: %s", s.name, counts)
				break
			}
		}
		if counts.steps < 4 || counts.logins == 0 || len(counts.lookupTimes) == 0 {
			t.Errorf("%s: %d steps, %d logins, %d lookups", s.name, counts.steps, counts.logins, len(counts.lookupTimes))
		}
	}
}

// TestAvailable is a measurement. AVAILABLE_SECONDS says how long each storm lasts, AVAILABLE_OUT is the file for the
// table.
func TestAvailable(t *testing.T) {
	seconds, _ := strconv.Atoi(os.Getenv("AVAILABLE_SECONDS"))
	if seconds == 0 {
		t.Skip("a measurement: make bench-available")
	}
	proxy, db := startProxy(t)
	var rows [][]string
	for _, s := range storms {
		fmt.Printf("available: %s, for %d s\n", s.name, seconds)
		counts := runStorm(t, proxy, db, s, time.Duration(seconds)*time.Second)
		ms := func(d time.Duration) string { return fmt.Sprintf("%.2f", float64(d.Microseconds())/1000) }
		rows = append(rows, []string{s.name, strconv.Itoa(counts.steps), strconv.Itoa(counts.statements), strconv.Itoa(counts.logins),
			ms(counts.quantile(0.5)), ms(counts.quantile(0.99)), counts.String()})
	}
	writeTable(t, "available",
		[]string{"meanwhile", "steps", "statements", "logins", "lookups, p50, ms", "p99, ms", "refused"}, rows)
}

// writeTable prints a table, and writes it into the file AVAILABLE_OUT, between two comments with its name.
func writeTable(t *testing.T, name string, headings []string, rows [][]string) {
	t.Helper()
	alignments := make([]string, len(headings))
	for i := range headings {
		if alignments[i] = "---"; isNumber(rows[0][i]) {
			alignments[i] = "---:"
		}
	}
	lines := [][]string{headings, alignments}
	var out strings.Builder
	for _, cells := range append(lines, rows...) {
		out.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	fmt.Print(out.String())
	file := os.Getenv("AVAILABLE_OUT")
	if file == "" {
		return
	}
	begin, end := "<!-- "+name+": make bench-available -->\n", "<!-- /"+name+" -->"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, fromBegin, hasBegin := strings.Cut(string(text), begin)
	_, after, hasEnd := strings.Cut(fromBegin, end)
	if !hasBegin || !hasEnd {
		t.Fatalf("%s has no place for the table", file)
	}
	if err := os.WriteFile(file, []byte(before+begin+out.String()+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

func isNumber(cell string) bool {
	_, err := strconv.ParseFloat(cell, 64)
	return err == nil
}
