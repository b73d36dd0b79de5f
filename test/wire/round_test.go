package wire_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// roundSeconds is how long a round lasts, in seconds.
const roundSeconds = 2

// roundResult has what one contender did in one round. CPU times are seconds for one transaction, latencies are
// microseconds.
type roundResult struct{ server, between, client, tps, p50, p99 float64 }

// cpuTimes has CPU times in seconds.
type cpuTimes struct{ server, between, client float64 }

// runRound runs pgbench without pauses. The CPU time of the logins is measured before, and subtracted.
func (m *measurement) runRound(c contender, p protocol, clients int) roundResult {
	t := m.t
	t.Helper()
	began := time.Now()
	logins, _ := m.pgbench(c, p, clients, "-t", "1")
	seconds := roundSeconds + int(time.Since(began).Seconds()+0.9)
	prefix := filepath.Join(t.TempDir(), "log")
	all, out := m.pgbench(c, p, clients, "-T", strconv.Itoa(seconds), "--log", "--log-prefix="+prefix)
	rate := tpsPattern.FindSubmatch(out)
	if rate == nil {
		t.Fatalf("%s: %s", c.name, out)
	}
	tps, _ := strconv.ParseFloat(string(rate[1]), 64)
	times := latencies(t, prefix)
	n := float64(len(times))
	return roundResult{server: (all.server - logins.server) / n, between: (all.between - logins.between) / n, client: (all.client - logins.client) / n,
		tps: tps, p50: quantile(times, 0.5), p99: quantile(times, 0.99)}
}

// pgbench runs pgbench, and returns the CPU times that server, process between and client took.
func (m *measurement) pgbench(c contender, p protocol, clients int, arguments ...string) (cpuTimes, []byte) {
	t := m.t
	t.Helper()
	var files []string
	for _, file := range m.scripts[script{c.agent, p.variation}] {
		files = append(files, "-f", file)
	}
	server, between := serverCPU(t, m.cluster.PID()), cpu(t, c.pid)
	cmd := exec.Command(filepath.Join(m.cluster.Binaries.Dir, "pgbench"), slices.Concat([]string{"-n", "-M", p.mode,
		"-c", strconv.Itoa(clients), "-j", "1"}, files, arguments, []string{c.dsn})...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", c.name, err, out)
	}
	return cpuTimes{serverCPU(t, m.cluster.PID()) - server, cpu(t, c.pid) - between,
		(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()}, out
}

// tpsPattern matches the rate in pgbench's report, without the time of the logins.
var tpsPattern = regexp.MustCompile(`(?m)^tps = ([0-9.]+) \(without initial connection time\)`)

// latencies returns the latencies of all transactions in microseconds, from the third field of each log line.
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
		between = us(func(u roundResult) float64 { return u.between })
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
