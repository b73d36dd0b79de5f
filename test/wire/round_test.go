package wire_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// roundTime is how long a round is measured, after a first second.
const roundTime = 2 * time.Second

// roundResult has what one contender did in one round. CPU times are seconds for one transaction, latencies are
// microseconds.
type roundResult struct{ server, between, client, tps, p50, p99 float64 }

// runRound runs pgbench without pauses, and measures a part of its run. The part begins a second after pgbench: the
// logins and what is done for the first statements are left out.
func (m *measurement) runRound(c contender, p protocol, clients int) roundResult {
	t := m.t
	t.Helper()
	prefix := filepath.Join(t.TempDir(), "log")
	seconds := int(roundTime/time.Second) + 2
	arguments := []string{"-n", "-M", p.mode, "-c", strconv.Itoa(clients), "-j", "1", "-T", strconv.Itoa(seconds), "-P", "1",
		"--log", "--log-prefix=" + prefix}
	for _, file := range m.scripts[script{c.agent, p.variation}] {
		arguments = append(arguments, "-f", file)
	}
	cmd := exec.Command(filepath.Join(m.cluster.Binaries.Dir, "pgbench"), append(arguments, c.dsn)...)
	progress, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var begin, end moment
	var messages []string
	for lines := bufio.NewScanner(progress); lines.Scan(); {
		if line := lines.Text(); !strings.HasPrefix(line, "progress: ") {
			messages = append(messages, line)
		} else if begin.time.IsZero() {
			begin = m.now(c, cmd.Process.Pid)
			time.Sleep(roundTime)
			end = m.now(c, cmd.Process.Pid)
		}
	}
	if err := cmd.Wait(); err != nil || end.time.IsZero() {
		t.Fatalf("%s: %v\n%s", c.name, err, strings.Join(messages, "\n"))
	}
	times := latencies(t, prefix, begin.time, end.time)
	if len(times) == 0 {
		t.Fatalf("%s: no transaction ended", c.name)
	}
	n := float64(len(times))
	return roundResult{server: (end.server - begin.server) / n, between: (end.between - begin.between) / n,
		client: (end.client - begin.client) / n, tps: n / end.time.Sub(begin.time).Seconds(),
		p50: quantile(times, 0.5), p99: quantile(times, 0.99)}
}

// moment is a time in a round, with the CPU times in seconds that the processes have used until then.
type moment struct {
	time                    time.Time
	server, between, client float64
}

func (m *measurement) now(c contender, client int) moment {
	return moment{time.Now(), serverCPU(m.t, m.cluster.PID()), cpu(m.t, c.pid), cpu(m.t, client)}
}

// latencies returns the latencies in microseconds of the transactions that ended between two times, from pgbench's log.
// The third field of a line is the latency; the fifth and sixth are the time of the end, in seconds and microseconds.
func latencies(t *testing.T, prefix string, begin, end time.Time) []float64 {
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
			fields := strings.Fields(lines.Text())
			if len(fields) < 6 {
				continue
			}
			seconds, _ := strconv.ParseInt(fields[4], 10, 64)
			micros, _ := strconv.ParseInt(fields[5], 10, 64)
			if ended := time.Unix(seconds, micros*1000); ended.After(begin) && !ended.After(end) {
				us, _ := strconv.ParseFloat(fields[2], 64)
				times = append(times, us)
			}
		}
		_ = f.Close()
		_ = os.Remove(name)
	}
	return times
}

// roundsByName has the results of each contender by its name, in the order of the rounds.
type roundsByName map[string][]roundResult

// ratio divides the transactions per second of a contender by those of another in the same round.
func (rounds roundsByName) ratio(c contender, other string) string {
	if len(rounds[other]) == 0 {
		return "–"
	}
	var r []float64
	for i, result := range rounds[c.name] {
		r = append(r, result.tps/rounds[other][i].tps)
	}
	return quartiles(r)
}

// cpuRatio divides the CPU time of the process between by PgBouncer's in the same round.
func (rounds roundsByName) cpuRatio(c contender) string {
	var r []float64
	for i, result := range rounds[c.name] {
		if len(rounds[bouncer]) > 0 {
			r = append(r, result.between/rounds[bouncer][i].between)
		}
	}
	return quartiles(r)
}

// median returns the median of one figure over all rounds of a contender.
func (rounds roundsByName) median(c contender, figure func(roundResult) float64) float64 {
	var values []float64
	for _, result := range rounds[c.name] {
		values = append(values, figure(result))
	}
	return quantile(values, 0.5)
}

func (rounds roundsByName) line(p protocol, c contender) string {
	if len(rounds[c.name]) == 0 {
		return ""
	}
	us := func(figure func(roundResult) float64) string {
		return fmt.Sprintf("%.0f", rounds.median(c, figure)*1e6)
	}
	between := "–"
	if c.pid != 0 {
		between = us(func(u roundResult) float64 { return u.between }) + " | " + rounds.cpuRatio(c)
	} else {
		between += " | –"
	}
	return fmt.Sprintf("| %s | %s | %.0f | %s | %s | %s | %s | %.0f | %.0f |\n", p.name, c.name,
		rounds.median(c, tps), rounds.ratio(c, bouncer), us(func(u roundResult) float64 { return u.server }), between,
		us(func(u roundResult) float64 { return u.client }), rounds.median(c, p50), rounds.median(c, p99))
}

func (rounds roundsByName) shortLine(p protocol, clients int, c contender) string {
	if len(rounds[c.name]) == 0 {
		return ""
	}
	return fmt.Sprintf("| %s | %d | %s | %.0f | %s | %.0f | %.0f |\n", p.name, clients, c.name,
		rounds.median(c, tps), rounds.ratio(c, bouncer), rounds.median(c, p50), rounds.median(c, p99))
}

func (rounds roundsByName) auditLine(p protocol, c contender) string {
	return fmt.Sprintf("| %s | %s | %.0f | %s | %.0f | %.0f | %.0f |\n", p.name, strings.TrimPrefix(c.name, "audit "),
		rounds.median(c, tps), rounds.ratio(c, "audit buffered"), rounds.median(c, func(u roundResult) float64 { return u.between })*1e6,
		rounds.median(c, p50), rounds.median(c, p99))
}

func tps(u roundResult) float64 { return u.tps }
func p50(u roundResult) float64 { return u.p50 }
func p99(u roundResult) float64 { return u.p99 }

// quantile returns the q-quantile of the values.
func quantile(values []float64, q float64) float64 {
	s := slices.Sorted(slices.Values(values))
	return s[min(int(q*float64(len(s))), len(s)-1)]
}

func quartiles(values []float64) string {
	if len(values) == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f [%.2f–%.2f]", quantile(values, 0.5), quantile(values, 0.25), quantile(values, 0.75))
}
