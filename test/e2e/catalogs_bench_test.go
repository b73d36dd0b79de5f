package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/dev/world"
	harness "github.com/pgconsent/pgconsent/test/instance"
)

// BenchmarkCatalogs runs the catalog queries that clients send at their start, as an agent and as the owner. The
// database has 200 more tables, half of which hide columns. It reports the agent's time as a multiple of the owner's,
// and the time of the slowest query.
func BenchmarkCatalogs(b *testing.B) {
	w, err := world.Open("arcive")
	if err != nil {
		b.Fatal(err)
	}
	text, err := w.File("policy.yaml")
	if err != nil {
		b.Fatal(err)
	}
	var setup, tables strings.Builder
	for i := range 200 {
		fmt.Fprintf(&setup,
			"CREATE TABLE more%d (id uuid PRIMARY KEY, user_id uuid NOT NULL, memory_id uuid REFERENCES memories, "+
				"a text, b text, c text); CREATE INDEX ON more%[1]d (user_id);", i)
		fmt.Fprintf(&tables, "\n  more%d: { rows: [ { own: { column: user_id, is: user } } ]", i)
		if i%2 == 0 {
			tables.WriteString(", columns: { id: allow, user_id: allow, memory_id: allow, a: allow, b: allow }")
		}
		tables.WriteString(" }")
	}
	in := start(b, options{beforeMigrate: setup.String(), policy: strings.Replace(string(text), "\ntables:", "\ntables:"+tables.String(), 1)})
	oids, code := (&pgxClient{t: b, conn: in.ownerConn(b)}).rows("SELECT 'memories'::regclass::oid")
	files, err := filepath.Glob("testdata/clients/*.sql")
	if err != nil || code != "" {
		b.Fatal(err, code)
	}
	var allStatements []clientStatement
	for _, file := range files {
		allStatements = append(allStatements, clientStatements(b, file, oids[0])...)
	}
	agent, owner := in.agent(b), harness.Connect(b, in.ownerDSN())
	var agentTime, ownerTime, longestTime time.Duration
	for b.Loop() {
		for _, s := range allStatements {
			t := time.Now()
			_, _, err := answerShape(b, agent, s, oids[0])
			duration := time.Since(t)
			t = time.Now()
			if _, _, _ = answerShape(b, owner, s, oids[0]); err != nil {
				continue
			}
			agentTime, ownerTime, longestTime = agentTime+duration, ownerTime+time.Since(t), max(longestTime, duration)
		}
	}
	b.ReportMetric(float64(agentTime)/float64(ownerTime), "agent/owner")
	b.ReportMetric(longestTime.Seconds()*1000, "ms/longest")
}
