package wire_test

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	clients = 8
	slice   = 2 // seconds of a turn
)

// TestWire is a measurement: WIRE_ROUNDS says how many rounds, WIRE_OUT where the tables go.
func TestWire(t *testing.T) {
	rounds, _ := strconv.Atoi(os.Getenv("WIRE_ROUNDS"))
	if rounds == 0 {
		t.Skip("a measurement: make bench-wire")
	}
	if !onLinux() {
		t.Skip("CPU time of other processes is read from /proc")
	}
	cluster := postgres(t)
	all := contenders(t, cluster)
	id, pgbench := visible(t, all), filepath.Join(cluster.Binaries.Dir, "pgbench")
	var out strings.Builder
	out.WriteString("| between | protocol | CPU for a transaction, µs | CPU / PgBouncer | CPU / PgBouncer at that " +
		"rate | transactions / PgBouncer | transactions / direct | p99 / PgBouncer |\n|---|---|---:|---:|---:|---:|---:|---:|\n")
	for _, protocol := range []string{"simple", "prepared"} {
		for _, line := range small(t, pgbench, all, protocol, "SELECT title FROM memories WHERE id = '"+id+"'", rounds) {
			out.WriteString(line)
		}
	}
	out.WriteString("\n| between | rows of | bytes per second / direct | CPU / PgBouncer |\n|---|---|---:|---:|\n")
	for _, size := range []int{10, 1000} {
		for _, line := range streams(t, all, size, rounds) {
			out.WriteString(line)
		}
	}
	fmt.Print(out.String())
	if file := os.Getenv("WIRE_OUT"); file != "" {
		write(t, file, cluster.Binaries.Version, out.String())
	}
}

// visible is the key of a memory that the agent sees.
func visible(t *testing.T, all []contender) string {
	t.Helper()
	conn := connect(t, all[len(all)-1])
	defer func() { _ = conn.Close(context.Background()) }()
	res := conn.ExecParams(t.Context(), "SELECT id::text FROM memories ORDER BY id LIMIT 1", nil, nil, nil, nil).Read()
	if res.Err != nil || len(res.Rows) != 1 {
		t.Fatalf("no memory is visible: %v", res.Err)
	}
	return string(res.Rows[0][0])
}

// turn is what one contender did in one round.
type turn struct{ cpu, tps, p99 float64 }

func small(t *testing.T, pgbench string, all []contender, protocol, sql string, rounds int) []string {
	t.Helper()
	script := filepath.Join(t.TempDir(), "script.sql")
	if err := os.WriteFile(script, []byte(sql+";\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	turns := map[string][]turn{}
	for round := range rounds {
		fmt.Printf("wire: %s, round %d of %d\n", protocol, round+1, rounds)
		for _, c := range all {
			turns[c.name] = append(turns[c.name], bench(t, pgbench, c, protocol, script, 0))
		}
		// What a process costs depends on how often it sleeps: an agent's server is slower, by the rules of the table.
		for _, c := range all {
			if i := slices.IndexFunc(all, func(c contender) bool { return c.name == bouncer }); i >= 0 && isAgent(c) {
				mine := turns[c.name][round]
				turns[paced(c)] = append(turns[paced(c)], bench(t, pgbench, all[i], protocol, script, mine.tps))
			}
		}
	}
	var lines []string
	for _, c := range all {
		ratio := func(than string, of func(turn) float64) string {
			if len(turns[than]) == 0 {
				return "–"
			}
			var r []float64
			for i, mine := range turns[c.name] {
				r = append(r, of(mine)/of(turns[than][i]))
			}
			return quartiles(r)
		}
		spent, than, pace := "–", "–", "–"
		if c.pid != 0 {
			var s []float64
			for _, mine := range turns[c.name] {
				s = append(s, mine.cpu*1e6)
			}
			spent, than = fmt.Sprintf("%.1f", at(s, 0.5)), ratio(bouncer, func(u turn) float64 { return u.cpu })
		}
		if isAgent(c) {
			pace = ratio(paced(c), func(u turn) float64 { return u.cpu })
		}
		tps := func(u turn) float64 { return u.tps }
		lines = append(lines, fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s | %s |\n", c.name, protocol, spent, than, pace,
			ratio(bouncer, tps), ratio(direct, tps), ratio(bouncer, func(u turn) float64 { return u.p99 })))
	}
	return lines
}

// paced names the turns of PgBouncer at this contender's rate.
func paced(c contender) string { return bouncer + " as " + c.name }

func isAgent(c contender) bool { return strings.Contains(c.name, "agent") }

// bench lets pgbench run for a turn, at a rate; 0: as fast as it can.
func bench(t *testing.T, pgbench string, c contender, protocol, script string, rate float64) turn {
	t.Helper()
	prefix := filepath.Join(t.TempDir(), "log")
	before := cpu(t, c.pid)
	arguments := []string{"-n", "-f", script, "-M", protocol, "-c", strconv.Itoa(clients), "-j",
		"1", "-T", strconv.Itoa(slice), "--log", "--log-prefix=" + prefix}
	if rate > 0 {
		arguments = append(arguments, "-R", strconv.FormatFloat(rate, 'f', 1, 64))
	}
	cmd := exec.Command(pgbench, append(arguments, c.dsn)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", c.name, err, out)
	}
	spent := cpu(t, c.pid) - before
	times := latencies(t, prefix)
	return turn{cpu: spent / float64(len(times)), tps: float64(len(times)) / slice, p99: at(times, 0.99)}
}

// latencies are those of all transactions, in microseconds: the third field of each line.
func latencies(t *testing.T, prefix string) []float64 {
	t.Helper()
	files, err := filepath.Glob(prefix + ".*")
	if err != nil || len(files) == 0 {
		t.Fatalf("pgbench wrote no log (%v)", err)
	}
	var times []float64
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			if fields := strings.Fields(lines.Text()); len(fields) > 2 {
				us, _ := strconv.ParseFloat(fields[2], 64)
				times = append(times, us)
			}
		}
		_ = f.Close()
		_ = os.Remove(name)
	}
	return times
}

// streams are rows of so many bytes, 64 MiB of them, by COPY.
func streams(t *testing.T, all []contender, size, rounds int) []string {
	t.Helper()
	type turn struct{ rate, cpu float64 }
	turns := map[string][]turn{}
	var owners []contender // an agent's COPY is made of other rows
	for _, c := range all {
		if !isAgent(c) {
			owners = append(owners, c)
		}
	}
	sql := fmt.Sprintf("COPY (SELECT repeat('x', %d) FROM generate_series(1, %d)) TO STDOUT", size-1, (64<<20)/size)
	for round := range rounds {
		fmt.Printf("wire: rows of %d bytes, round %d of %d\n", size, round+1, rounds)
		for _, c := range owners {
			conn := connect(t, c)
			before, began := cpu(t, c.pid), time.Now()
			if err := stream(t.Context(), conn, sql); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			turns[c.name] = append(turns[c.name], turn{1 / time.Since(began).Seconds(), cpu(t, c.pid) - before})
			_ = conn.Close(t.Context())
		}
	}
	var lines []string
	for _, c := range owners {
		var rate, spent []float64
		for i, mine := range turns[c.name] {
			rate = append(rate, mine.rate/turns[direct][i].rate)
			if b := turns[bouncer]; c.pid != 0 && len(b) > 0 {
				spent = append(spent, mine.cpu/b[i].cpu)
			}
		}
		lines = append(lines, fmt.Sprintf("| %s | %d bytes | %s | %s |\n", c.name, size, quartiles(rate), quartiles(spent)))
	}
	return lines
}

func stream(ctx context.Context, conn *pgconn.PgConn, sql string) error {
	_, err := conn.CopyTo(ctx, io.Discard, sql)
	return err
}

// at is a quantile.
func at(values []float64, q float64) float64 {
	s := slices.Sorted(slices.Values(values))
	return s[min(int(q*float64(len(s))), len(s)-1)]
}

func quartiles(values []float64) string {
	if len(values) == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f [%.2f–%.2f]", at(values, 0.5), at(values, 0.25), at(values, 0.75))
}

// write puts the tables between the marks of a file.
func write(t *testing.T, file, version, tables string) {
	t.Helper()
	const begin, end = "<!-- tables: written by make bench-wire -->\n", "<!-- end of tables -->"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no marks %q and %q", file, begin, end)
	}
	load, _ := os.ReadFile("/proc/loadavg")
	head := fmt.Sprintf("PostgreSQL %s, %s, %d processors, load average %s, %d clients:\n\n", version, runtime.GOARCH,
		runtime.NumCPU(), cmp.Or(strings.Split(string(load), " ")[0], "unknown"), clients)
	if err := os.WriteFile(file, []byte(before+begin+head+tables+"\n"+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
