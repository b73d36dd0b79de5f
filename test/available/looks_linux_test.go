package available_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
)

// large is the rest of the schema of a large application. It has 1,000 tables of 10 columns with a key, checks and
// defaults, 500 functions and 50 types.
const large = `
DO $$ BEGIN
FOR i IN 1..50 LOOP EXECUTE format('CREATE TYPE mood_%s AS ENUM (''calm'', ''glad'')', i); END LOOP;
FOR i IN 1..500 LOOP
  EXECUTE format('CREATE FUNCTION more_%s(a int, b text DEFAULT ''x'') RETURNS text LANGUAGE sql AS ''SELECT $2 || $1''', i);
END LOOP;
FOR i IN 1..1000 LOOP
  EXECUTE format('CREATE TABLE more_%s (id serial PRIMARY KEY, name text NOT NULL CHECK (length(name) < 99), kind text ' ||
    'CHECK (kind IN (''a'', ''b'')), n numeric(9, 2) DEFAULT 0, made timestamptz DEFAULT now(), parent int REFERENCES more_%s, ' ||
    'mood mood_%s, a uuid, b int, c jsonb)', i, greatest(i - 1, 1), i % 50 + 1);
  EXECUTE format('CREATE INDEX ON more_%s (name)', i);
END LOOP; END $$`

// refresh is the time between two looks at a database that has not changed.
const refresh = time.Second

// TestLooks is a measurement: the server's processor time of what a proxy reads of the catalogs of a large database.
func TestLooks(t *testing.T) {
	if os.Getenv("AVAILABLE_SECONDS") == "" {
		t.Skip("a measurement: make bench-available")
	}
	db := pgtest.Database(t)
	instance.Exec(t, db, schema)
	instance.Exec(t, db, large)
	instance.Exec(t, db, "VACUUM ANALYZE")
	fmt.Println("available: looks at 1,000 tables")
	d := instance.Database{Name: "app", DB: db, Policy: policy, SearchPath: []string{"public"}, Refresh: refresh}
	super := db.Connect(t, "postgres")
	proxy := instance.Start(t, instance.Auto, d, map[string]string{"user": "me"})
	first := settled(t, super)
	// The statement of an agent is decided by what was read.
	if _, err := proxy.Agent(t, "agent", "app").Exec(t.Context(), "SELECT 1").ReadAll(); err != nil {
		t.Fatal(err)
	}
	var unchanged, changed, later []time.Duration
	for range 5 {
		before := used(t, super)
		time.Sleep(10 * refresh)
		unchanged = append(unchanged, (used(t, super)-before)/10)
	}
	for i := range 7 {
		before := settled(t, super)
		instance.Exec(t, db, fmt.Sprintf("CREATE INDEX people_more_%d ON people (name)", i))
		looked := afterLook(t, super, before)
		time.Sleep(8 * refresh) // the statistics of writes to the catalogs may cause one more refresh
		if i >= 2 {             // at first PostgreSQL plans the queries of a refresh
			changed = append(changed, looked-before)
			later = append(later, max(0, used(t, super)-looked-8*median(unchanged)))
		}
	}
	writeTable(t, "looks", []string{"look at 1,000 tables", "server's processor time, ms"}, [][]string{
		{"the first", milliseconds(first)}, {"after one change", milliseconds(median(changed))},
		{"once more, some seconds after it", milliseconds(median(later))},
		{"nothing has changed", milliseconds(median(unchanged))},
	})
	writeTable(t, "catalogs", []string{"question of a client", "directly, ms", "by an agent, ms", "ratio"},
		measureReadings(t, db, proxy, "people"))
}

// used is the processor time of the server processes of the proxy's own connections.
func used(t *testing.T, conn *pgx.Conn) time.Duration {
	t.Helper()
	return usedBy(t, conn, "usename = 'pgconsent_control'")
}

// usedBy is the processor time of the server processes that a condition holds for: see proc(5), schedstat.
func usedBy(t *testing.T, conn *pgx.Conn, where string) time.Duration {
	t.Helper()
	rows, err := conn.Query(t.Context(), "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND "+where)
	if err != nil {
		t.Fatal(err)
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		t.Fatal(err)
	}
	var sum time.Duration
	for _, pid := range pids {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/schedstat")
		if err != nil {
			continue // the process has ended
		}
		ns, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += time.Duration(ns)
	}
	return sum
}

// afterLook is that time once it has grown by a look, and grows no more for a moment.
func afterLook(t *testing.T, conn *pgx.Conn, before time.Duration) time.Duration {
	t.Helper()
	for last := before; ; {
		time.Sleep(refresh / 4)
		now := used(t, conn)
		if now == last && now-before > 5*time.Millisecond {
			return now
		}
		last = now
	}
}

// settled is that time once it grows no more than looks that find nothing changed let it.
func settled(t *testing.T, conn *pgx.Conn) time.Duration {
	t.Helper()
	for last := used(t, conn); ; {
		time.Sleep(2 * refresh)
		now := used(t, conn)
		if now-last < 20*time.Millisecond {
			return last
		}
		last = now
	}
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d.Microseconds())/1000) }

func median(of []time.Duration) time.Duration {
	slices.Sort(of)
	return of[len(of)/2]
}
