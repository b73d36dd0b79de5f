package proxy

import (
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	pgx3 "github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/tier"
)

// randomConversation generates messages that often are valid, and else fail.
func randomConversation(r *rand.Rand) (script [][]pgx3.FrontendMessage) {
	pick := func(choices ...string) string { return choices[r.IntN(len(choices))] }
	text := func() string {
		return pick("SELECT 1 AS a", "SELECT 1 AS a", "SELECT $1::int + 1", "SELECT * FROM generate_series(1, 5)",
			"SELECT 'x' FROM generate_series(1, 300)",
			"BEGIN", "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT s", "ROLLBACK TO s", "SELECT nope", "SELECT 1/0", "SELECT forbidden", "", "SELEC",
			"SELECT 1; SELECT 2", "BEGIN; SELECT 1; COMMIT; SELECT 2", "DEALLOCATE a", "DEALLOCATE ALL",
			"PREPARE x AS SELECT 9", "PREPARE y AS SELECT $1::int",
			"EXECUTE x", "EXECUTE y (3)", "DECLARE k CURSOR FOR SELECT * FROM generate_series(1, 6)",
			"DECLARE k CURSOR WITH HOLD FOR SELECT 1", "FETCH 2 FROM k",
			"FETCH ALL FROM k", "MOVE 1 FROM k", "CLOSE k", "CLOSE ALL", "BEGIN ISOLATION LEVEL REPEATABLE READ",
			"DEALLOCATE x; PREPARE x AS SELECT 8; EXECUTE x", "PREPARE y AS SELECT 7; SELECT 1/0",
			"COPY (SELECT 1 UNION ALL SELECT 2) TO STDOUT", "SET TimeZone = 'Asia/Tokyo'", "RESET TimeZone", "SELECT $1::text, $2::int")
	}
	name := func() string { return pick("", "", "a", "b", strings.Repeat("l", 61)) }
	// EXECUTE may run only queries, so these statement names are used for queries alone.
	query := func() pgx3.FrontendMessage {
		return pa(pick("x", "y"), pick("SELECT 5", "SELECT $1::int", "SELECT 1/0", "SELECT nope"))
	}
	pickStatementName := func() string { return pick("x", "y") }
	portal := func() string { return pick("", "", "", "p", "a") }
	cursor := func() string { return "k" }
	newBind := func() *pgx3.Bind {
		b := &pgx3.Bind{DestinationPortal: portal(), PreparedStatement: name()}
		for range r.IntN(3) {
			b.Parameters = append(b.Parameters, [][]byte{[]byte("7"), []byte("x"), nil, {0, 0, 0, 7}, {}}[r.IntN(5)])
		}
		for range r.IntN(3) {
			b.ParameterFormatCodes = append(b.ParameterFormatCodes, int16(r.IntN(3)-r.IntN(2)))
		}
		for range r.IntN(2) {
			b.ResultFormatCodes = append(b.ResultFormatCodes, int16(r.IntN(2)))
		}
		return b
	}
	for range 2 + r.IntN(4) {
		var m []pgx3.FrontendMessage
		for range 1 + r.IntN(12) {
			switch r.IntN(18) {
			case 0, 1:
				m = append(m, q(text()))
			case 2, 3:
				m = append(m, pa(name(), text()))
			case 4, 5:
				m = append(m, newBind())
			case 6, 7:
				m = append(m, ex(portal(), uint32(r.IntN(3))))
			case 8:
				m = append(m, de('S', name()))
			case 9:
				m = append(m, de('P', portal()))
			case 10:
				m = append(m, cl('S', name()))
			case 11:
				m = append(m, cl('P', portal()))
			case 12:
				m = append(m, fl)
			case 13:
				m = append(m, []pgx3.FrontendMessage{&pgx3.CopyData{Data: []byte("x")}, &pgx3.CopyDone{}, &pgx3.CopyFail{}}[r.IntN(3)])
			case 14:
				m = append(m, sy)
			case 15:
				m = append(m, query(), cl('S', pickStatementName()), query())
			case 16:
				m = append(m, bi(portal(), pickStatementName(), "4"), de('S', pickStatementName()))
				if r.IntN(2) == 0 {
					m = append(m, ex(cursor(), uint32(r.IntN(3))), bi(cursor(), pickStatementName(), "4"))
				}
			case 17:
				n, p := name(), portal()
				m = append(m, pa(n, text()), bi(p, n), de('P', p), ex(p, uint32(r.IntN(3))))
			}
		}
		script = append(script, m)
	}
	avoidPortalsOfQueries(script)
	return script
}

// avoidPortalsOfQueries changes messages for the unnamed portal that come after a Query, without a Bind, to another
// portal. PostgreSQL keeps the portal of a Query that fails in a transaction. It describes that portal, and says that
// it cannot be run. The proxy says of any portal that the transaction is aborted. See TestPortalOfAFailedQuery.
func avoidPortalsOfQueries(script [][]pgx3.FrontendMessage) {
	ofQuery := false
	for _, round := range script {
		for _, m := range round {
			switch m := m.(type) {
			case *pgx3.Query:
				ofQuery = true
			case *pgx3.Bind:
				ofQuery = ofQuery && m.DestinationPortal != ""
			case *pgx3.Execute:
				if ofQuery && m.Portal == "" {
					m.Portal = "p"
				}
			case *pgx3.Describe:
				if ofQuery && m.ObjectType == 'P' && m.Name == "" {
					m.Name = "p"
				}
			}
		}
	}
}

// formatScript formats a script for a failure message.
func formatScript(script [][]pgx3.FrontendMessage) string {
	var b strings.Builder
	for i, round := range script {
		for _, m := range round {
			j, _ := json.Marshal(m)
			fmt.Fprintf(&b, "%d %s\n", i, j)
		}
	}
	return b.String()
}

// TestRandomScripts plays conversations of a fixed seed on the server and through the proxy, and compares the answers.
// Each round reaches the proxy in one piece.
func TestRandomScripts(t *testing.T) { randomScripts(t, startProxy(t), 100, allLines) }

// allLines returns transcripts unchanged.
func allLines(transcript []string) []string { return transcript }

// TestRandomScriptsInPieces: the answers do not depend on how the network splits a client's bytes.
func TestRandomScriptsInPieces(t *testing.T) {
	for name, size := range readSizes {
		if size != nil {
			t.Run(name, func(t *testing.T) { randomScripts(t, startProxy(t, splitReads(size)), 50, allLines) })
		}
	}
}

func randomScripts(t *testing.T, p *testProxy, n int, normalize func([]string) []string) {
	t.Helper()
	kinds := map[string]int{}
	for seed := range conversationSeeds(n) {
		script := randomConversation(rand.New(rand.NewPCG(uint64(seed), 7)))
		want := playConversation(t, p.connectDirect(t), script)
		got := playConversation(t, p.connectRaw(t), script)
		if diff := cmp.Diff(normalize(want), normalize(got)); diff != "" {
			t.Fatalf("seed %d\n%s\ndirect (-) and through the proxy (+):\n%s", seed, formatScript(script), diff)
		}
		for _, line := range want {
			kinds[strings.Join(strings.Fields(line)[:min(3, len(strings.Fields(line)))], " ")]++
		}
	}
	want := []string{"1", "2", "3", "n", "s", "I", "Z I", "Z T", "Z E", "E refused", "E ERROR 22012", "E ERROR 26000",
		"E ERROR 34000", "E ERROR 08P01", "E ERROR 25P02", "E ERROR 42P05"}
	if !tier.Quick() {
		want = append(want, "C SELECT 5", "C DEALLOCATE ALL") // these answers are rare
	}
	for _, kind := range want {
		if kinds[kind] == 0 {
			t.Errorf("the conversations have no %q", kind)
		}
	}
}

// conversationSeeds returns the seeds of conversations: perRun in a quick run, more in longer ones.
func conversationSeeds(perRun int) iter.Seq[int] {
	first, n := int(tier.Seed()-1)<<20, tier.Count(perRun, 4*perRun, 40*perRun)
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(first + i) {
				return
			}
		}
	}
}

// syncBeforeQueries adds a Sync before a Query that comes inside a group. From PostgreSQL 18 on, a message after such a
// Query and its Sync fails with XX000, "unexpected state STARTED". Such failures say nothing about the proxy.
func syncBeforeQueries(script ...[]pgx3.FrontendMessage) (out [][]pgx3.FrontendMessage) {
	if pgtest.Binaries().Major < 18 {
		return script
	}
	isPrefix := false
	for _, messages := range script {
		var round []pgx3.FrontendMessage
		for _, m := range messages {
			switch m.(type) {
			case *pgx3.Query:
				if isPrefix {
					round = append(round, sy)
				}
				isPrefix = false
			case *pgx3.Sync:
				isPrefix = false
			default:
				isPrefix = true
			}
			round = append(round, m)
		}
		out = append(out, round)
	}
	return out
}

// playConversation sends the rounds of a conversation and returns a transcript of the answers.
func playConversation(t *testing.T, c *peer, script [][]pgx3.FrontendMessage) (out []string) {
	defer c.Close()
	for i, m := range script {
		// A syntax error, which is reported in every state, marks the end of the answers. It is not sent after every
		// round, so that groups and transactions continue from one round to the next.
		end := fmt.Sprintf("E ERROR 42601 syntax error at or near \"end%d\"  @1", i)
		if i%3 < 2 && i+1 < len(script) {
			c.send(t, m...)
			continue
		}
		c.send(t, append(m, sy, q(fmt.Sprint("end", i)))...)
		for isFinished := false; ; {
			m, err := c.frontend.Receive()
			if err != nil {
				return append(out, "the connection ends")
			}
			line, typ := transcribe(m)
			if strings.HasPrefix(line, "E ERROR 42501 refused") || strings.HasPrefix(line, `E ERROR 42703 column "forbidden"`) {
				line = "E refused"
			}
			// A Query that fails in a transaction may leave an unnamed portal or not, depending on how far it came.
			if strings.HasPrefix(line, `E ERROR 34000 portal "" does`) {
				line = "E ERROR 25P02 current transaction is aborted, commands ignored until end of transaction block  @0"
			}
			out = append(out, line)
			if isFinished = isFinished || line == end; isFinished && typ == 'Z' {
				break
			}
		}
	}
	return out
}
