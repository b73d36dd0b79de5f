package wire_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgcluster"
)

// TestWire is a measurement. WIRE_ROUNDS is the number of rounds, WIRE_OUT the file for the tables.
func TestWire(t *testing.T) {
	rounds, _ := strconv.Atoi(os.Getenv("WIRE_ROUNDS"))
	if rounds == 0 {
		t.Skip("a measurement: make bench-wire")
	}
	if !hasProc() {
		t.Skip("CPU time of other processes is read from /proc")
	}
	cluster := startPostgres(t)
	sets := startContenders(t, cluster)
	m := measurement{t: t, cluster: cluster, rounds: rounds, scripts: scripts(t, sets.all)}
	var out strings.Builder
	for _, part := range []struct {
		name    string
		measure func() string
	}{
		{"eight", func() string { return m.eight(sets.all) }},
		{"clients", func() string { return m.fewerAndMore(sets.all) }},
		{"audit", func() string { return m.records(sets.audits) }},
		{"idle", func() string { return idle(t, sets.all) }},
		{"crowd", func() string { return m.crowd(sets.all) }},
		{"streams", func() string { return streamTable(t, sets.all, rounds) }},
	} {
		if isWanted(part.name) {
			table := part.measure()
			fmt.Print(table)
			out.WriteString(table + "\n")
		}
	}
	if file := os.Getenv("WIRE_OUT"); file != "" {
		writeTables(t, file, cluster.Binaries.Version, out.String())
	}
}

// isWanted tells whether a part is to be measured. WIRE_PARTS names the parts; if it is empty, all are measured.
func isWanted(part string) bool {
	parts := os.Getenv("WIRE_PARTS")
	return parts == "" || strings.Contains(parts, part)
}

// measurement measures transactions that look up one row by its key.
type measurement struct {
	t       *testing.T
	cluster *pgcluster.Cluster
	rounds  int
	scripts map[script][]string // pgbench's script files; each transaction runs one of them
}

// script says which kind of pgbench script is meant.
type script struct {
	agent     bool // the policy adds the rule, so the statement does not have it
	variation textVariation
}

// textVariation says how the statements of a client differ from one another.
type textVariation int

const (
	equalTexts    textVariation = iota
	otherMemories               // the statements differ in the id in the condition
	otherNumbers                // the statements differ in a number that is compared with another number
	otherRanges                 // so they do, and name the memory by a range, for which no plan is kept
)

// protocol is a form in which pgbench sends a statement.
type protocol struct {
	name, mode string
	variation  textVariation
}

// protocols are the forms that are measured. The modes are pgbench's names for them.
var protocols = []protocol{
	{"simple, equal texts", "simple", equalTexts},
	{"simple, other memories", "simple", otherMemories},
	{"simple, other numbers", "simple", otherNumbers},
	{"simple, other ranges", "simple", otherRanges},
	{"extended, unnamed", "extended", equalTexts},
	{"prepared", "prepared", equalTexts},
}

// byHand is the policy's rule for memories, as an application would write it into its statements.
const byHand = " AND m.user_id = '%s' AND NOT EXISTS (SELECT 1 FROM memory_participants x LEFT JOIN people p " +
	"ON p.id = x.person_id WHERE x.memory_id = m.id AND p.consent_status IS DISTINCT FROM 'granted')"

// memories is the number of different memories that are looked up.
const memories = 100

// scripts writes pgbench's script files: look-ups of memories with participants that the agent may see.
func scripts(t *testing.T, all []contender) map[script][]string {
	t.Helper()
	agentContender, _ := contenderNamed(all, agent)
	conn := connect(t, agentContender)
	defer func() { _ = conn.Close(context.Background()) }()
	res := conn.ExecParams(t.Context(), "SELECT DISTINCT m.id::text, m.user_id::text FROM memories m JOIN memory_participants p "+
		"ON p.memory_id = m.id ORDER BY 1 LIMIT "+strconv.Itoa(memories), nil, nil, nil, nil).Read()
	if res.Err != nil || len(res.Rows) == 0 {
		t.Fatalf("no memory is visible: %v", res.Err)
	}
	dir := t.TempDir()
	files := map[script][]string{}
	for _, s := range []script{{false, equalTexts}, {false, otherMemories}, {false, otherNumbers}, {false, otherRanges},
		{true, equalTexts}, {true, otherMemories}, {true, otherNumbers}, {true, otherRanges}} {
		for i, row := range res.Rows {
			if i > 0 && s.variation != otherMemories {
				break
			}
			text := "SELECT m.title FROM memories m WHERE m.id = '" + string(row[0]) + "'"
			if !s.agent {
				text += fmt.Sprintf(byHand, row[1])
			}
			if s.variation == otherRanges {
				text = strings.Replace(text, "= '"+string(row[0])+"'", fmt.Sprintf("BETWEEN '%[1]s' AND '%[1]s'", row[0]), 1)
			}
			if s.variation == otherNumbers || s.variation == otherRanges {
				text = "\\set n random(1, 2000000000)\n" + text + " AND :n > 0"
			}
			file := filepath.Join(dir, fmt.Sprintf("%t-%d-%d.sql", s.agent, s.variation, i))
			if err := os.WriteFile(file, []byte(text+";\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			files[s] = append(files[s], file)
		}
	}
	return files
}

// eight measures throughput, CPU times and latencies of eight clients.
func (m *measurement) eight(all []contender) string {
	out := "Eight clients; CPU time for a transaction in µs:\n\n" +
		"| protocol | between | transactions per second | / PgBouncer, session | server | process between | / PgBouncer's | client | p50, µs | p99, µs |\n" +
		"|---|---|---:|---:|---:|---:|---:|---:|---:|---:|\n"
	for _, p := range protocols {
		rounds := m.runRounds(all, p, 8)
		for _, c := range all {
			out += rounds.line(p, c)
		}
	}
	return out
}

// fewerAndMore measures throughput and latencies of one client and of 32.
func (m *measurement) fewerAndMore(all []contender) string {
	out := "| protocol | clients | between | transactions per second | / PgBouncer, session | p50, µs | p99, µs |\n" +
		"|---|---:|---|---:|---:|---:|---:|\n"
	for _, clients := range []int{1, 32} {
		for _, p := range protocols {
			rounds := m.runRounds(all, p, clients)
			for _, c := range all {
				out += rounds.shortLine(p, clients, c)
			}
		}
	}
	return out
}

// records measures what each mode of the audit costs.
func (m *measurement) records(audits []contender) string {
	out := "Eight clients of an agent:\n\n| protocol | records | transactions per second | / buffered | process between, µs | p50, µs | p99, µs |\n" +
		"|---|---|---:|---:|---:|---:|---:|\n"
	for _, p := range protocols {
		rounds := m.runRounds(audits, p, 8)
		for _, c := range audits {
			out += rounds.auditLine(p, c)
		}
	}
	return out
}

// runRounds lets each contender run once in each round.
func (m *measurement) runRounds(all []contender, p protocol, clients int) roundsByName {
	rounds := roundsByName{}
	for round := range m.rounds {
		fmt.Printf("wire: %s, %d clients, round %d of %d\n", p.name, clients, round+1, m.rounds)
		for _, c := range all {
			if c.name == bouncerTransaction && p.mode == "prepared" {
				continue // before version 1.21 PgBouncer does not support prepared statements of clients
			}
			rounds[c.name] = append(rounds[c.name], m.runRound(c, p, clients))
		}
	}
	return rounds
}
