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

// refresh is the interval of the catalog refreshes.
const refresh = time.Second

// TestCatalogRefreshes is a measurement: the server's processor time for the catalog refreshes of a proxy, of a
// database with 1,000 tables.
func TestCatalogRefreshes(t *testing.T) {
	if os.Getenv("AVAILABLE_SECONDS") == "" {
		t.Skip("a measurement: make bench-available")
	}
	db := pgtest.Database(t)
	instance.Exec(t, db, schema)
	instance.Exec(t, db, large)
	instance.Exec(t, db, "VACUUM ANALYZE")
	fmt.Println("available: catalog refreshes with 1,000 tables")
	d := instance.Database{Name: "app", DB: db, Policy: policy, SearchPath: []string{"public"}, Refresh: refresh}
	super := db.Connect(t, "postgres")
	proxy := instance.Start(t, instance.Auto, d, map[string]string{"user": "me"})
	firstRefresh := settledUse(t, super)
	// This statement waits until the first refresh is complete.
	if _, err := proxy.Agent(t, "agent", "app").Exec(t.Context(), "SELECT 1").ReadAll(); err != nil {
		t.Fatal(err)
	}
	var unchangedUse, changedUse, laterUse []time.Duration
	for range 5 {
		usedBefore := usedByProxy(t, super)
		time.Sleep(10 * refresh)
		unchangedUse = append(unchangedUse, (usedByProxy(t, super)-usedBefore)/10)
	}
	for i := range 7 {
		usedBefore := settledUse(t, super)
		instance.Exec(t, db, fmt.Sprintf("CREATE INDEX people_more_%d ON people (name)", i))
		refreshed := usedAfterRefresh(t, super, usedBefore)
		time.Sleep(8 * refresh) // the statistics of writes to the catalogs may cause one more refresh
		if i >= 2 {             // at first PostgreSQL must plan the refresh queries
			changedUse = append(changedUse, refreshed-usedBefore)
			laterUse = append(laterUse, max(0, usedByProxy(t, super)-refreshed-8*median(unchangedUse)))
		}
	}
	writeTable(t, "looks", []string{"refresh with 1,000 tables", "server's processor time, ms"}, [][]string{
		{"the first", milliseconds(firstRefresh)}, {"after one change", milliseconds(median(changedUse))},
		{"once more, some seconds after it", milliseconds(median(laterUse))},
		{"nothing has changed", milliseconds(median(unchangedUse))},
	})
	writeTable(t, "catalogs", []string{"question of a client", "directly, ms", "by an agent, ms", "ratio"},
		measureCatalogQueries(t, db, proxy, "people"))
}

// usedByProxy returns the processor time of the server processes of the proxy's own connections.
func usedByProxy(t *testing.T, conn *pgx.Conn) time.Duration {
	t.Helper()
	return usedBy(t, conn, "usename = 'pgconsent_control'")
}

// usedBy returns the processor time of the server processes for which a condition on pg_stat_activity holds.
func usedBy(t *testing.T, conn *pgx.Conn, where string) time.Duration {
	t.Helper()
	var sum time.Duration
	for _, used := range usedByEach(t, conn, where) {
		sum += used
	}
	return sum
}

// usedByEach returns the processor time of each of these processes, by its number. See proc(5), schedstat.
func usedByEach(t *testing.T, conn *pgx.Conn, where string) map[int]time.Duration {
	t.Helper()
	rows, err := conn.Query(t.Context(), "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND "+where)
	if err != nil {
		t.Fatal(err)
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		t.Fatal(err)
	}
	used := map[int]time.Duration{}
	for _, pid := range pids {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/schedstat")
		if err != nil {
			continue // the process has ended
		}
		ns, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		used[pid] = time.Duration(ns)
	}
	return used
}

// usedAfterRefresh waits until that time has grown by a refresh and grows no more, and returns it.
func usedAfterRefresh(t *testing.T, conn *pgx.Conn, usedBefore time.Duration) time.Duration {
	t.Helper()
	for last := usedBefore; ; {
		time.Sleep(refresh / 4)
		used := usedByProxy(t, conn)
		if used == last && used-usedBefore > 5*time.Millisecond {
			return used
		}
		last = used
	}
}

// settledUse waits until that time grows only by refreshes that find no change, and returns it.
func settledUse(t *testing.T, conn *pgx.Conn) time.Duration {
	t.Helper()
	for last := usedByProxy(t, conn); ; {
		time.Sleep(2 * refresh)
		used := usedByProxy(t, conn)
		if used-last < 20*time.Millisecond {
			return used
		}
		last = used
	}
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d.Microseconds())/1000) }

func median(durations []time.Duration) time.Duration {
	slices.Sort(durations)
	return durations[len(durations)/2]
}
