package proxy

import (
	"context"
	"strings"
	"testing"

	pgx3 "github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// commentDecider is a fakeDecider that sets fields of its verdict as comments in a text say.
type commentDecider struct{ *fakeDecider }

func (d *commentDecider) Decide(ctx context.Context, text string, protocol verdict.Protocol) *verdict.Verdict {
	v := d.fakeDecider.Decide(ctx, text, protocol)
	v.ExpectsForms, v.OneStatementPerMessage = strings.Contains(text, "/*formed*/"), strings.Contains(text, "/*apart*/")
	v.ForeignReads = strings.Count(text, "/*foreign*/")
	if strings.Contains(text, "/*whole*/") {
		v.Parts = nil
	}
	if before, literal, ok := strings.Cut(text, "/*bound*/"); ok {
		v.Text, v.Values, v.NeedsPlan = before+"$1", [][]byte{[]byte(literal)}, true
	}
	return v
}

func startCommentProxy(t *testing.T) *testProxy {
	p := startProxy(t)
	p.editRoute = func(r *Route) {
		openDecider := r.Open
		r.Open = func(ctx context.Context, info SessionInfo) (verdict.Decider, error) {
			d, err := openDecider(ctx, info)
			return &commentDecider{d.(*fakeDecider)}, err
		}
	}
	return p
}

// playRounds plays a script and returns the rows and errors.
func playRounds(t *testing.T, p *testProxy, rounds ...round) string {
	t.Helper()
	var out []string
	for _, line := range p.connectRaw(t).play(t, rounds) {
		switch {
		case strings.HasPrefix(line, "D "):
			out = append(out, line)
		case strings.HasPrefix(line, "E "):
			out = append(out, strings.Join(strings.Fields(line)[2:], " "))
		}
	}
	return strings.Join(out, " | ")
}

// EXECUTE and FETCH may run a query that was prepared by messages of the extended protocol. They may run nothing else,
// and no statement whose values the proxy checks at Bind.
func TestQueriesThatSQLRunsByName(t *testing.T) {
	p := startCommentProxy(t)
	playPrepared := func(text string, followingMessages ...pgx3.FrontendMessage) string {
		return playRounds(t, p, upToReady(1, q("BEGIN")),
			upToReady(1, append([]pgx3.FrontendMessage{pa("s", text), bi("c", "s")}, sy)...), upToReady(len(followingMessages),
				followingMessages...))
	}
	for _, c := range []struct {
		text, run, want string
	}{
		{"SELECT 7", "EXECUTE s", `D ["7"]`},
		{"", "EXECUTE s", ""},
		{"COMMIT", "EXECUTE s", `0A000 prepared statement "s" is no query: EXECUTE cannot run it @0`},
		{"SAVEPOINT a", "EXECUTE s", `0A000 prepared statement "s" is no query: EXECUTE cannot run it @0`},
		{"EXECUTE x", "EXECUTE s", `0A000 prepared statement "s" is no query: EXECUTE cannot run it @0`},
		{"SET application_name = 'x'", "EXECUTE s", `0A000 prepared statement "s" is no query: EXECUTE cannot run it @0`},
		{"SELECT 7 /*formed*/", "EXECUTE s",
			`0A000 prepared statement "s" was prepared by the protocol and takes a pattern, a search, a document or a setting as a parameter: EXECUTE cannot run it @0`},
		{"SELECT 7", "FETCH ALL FROM c", `D ["7"]`},
		{"SELECT 7 /*formed*/", "FETCH ALL FROM c", `D ["7"]`}, // its values were checked at Bind
		{"COMMIT", "FETCH ALL FROM c", `0A000 portal "c" is no query: FETCH cannot run it @0`},
		{"SAVEPOINT a", "MOVE ALL FROM c", `0A000 portal "c" is no query: FETCH cannot run it @0`},
		{"EXECUTE x", "FETCH ALL FROM c", `0A000 portal "c" is no query: FETCH cannot run it @0`},
	} {
		if got := playPrepared(c.text, q(c.run)); got != c.want {
			t.Errorf("%s, %s: %s\nwant %s", c.text, c.run, got, c.want)
		}
	}
}

// Only one statement of a transaction may read foreign tables, whichever messages run it.
func TestAForeignServerIsAskedInOneStatement(t *testing.T) {
	p := startCommentProxy(t)
	const refusedError = "0A000 a transaction reads foreign tables in one statement only @0"
	foreignQuery := func(n string) string { return "SELECT " + n + " /*foreign*/" }
	for name, c := range map[string]struct {
		script []round
		want   string
	}{
		"one":                      {[]round{upToReady(1, q(foreignQuery("1")))}, `D ["1"]`},
		"two in one text":          {[]round{upToReady(1, q(foreignQuery("1")+"; "+foreignQuery("2")))}, refusedError},
		"one, one after the other": {[]round{upToReady(1, q(foreignQuery("1"))), upToReady(1, q(foreignQuery("2")))}, `D ["1"] | D ["2"]`},
		"two in a block": {[]round{
			upToReady(1, q("BEGIN")), upToReady(1, q(foreignQuery("1"))), upToReady(1, q(foreignQuery("2")))}, `D ["1"] | ` + refusedError},
		"two in two blocks": {[]round{
			upToReady(1, q("BEGIN")), upToReady(1, q(foreignQuery("1"))), upToReady(1, q("COMMIT")), upToReady(1,
				q("BEGIN")), upToReady(1, q(foreignQuery("2")))}, `D ["1"] | D ["2"]`},
		"two in a group": {[]round{
			upToReady(1, pa("", foreignQuery("1")), bi("", ""), ex("", 0), pa("", foreignQuery("2")), bi("", ""), ex("", 0), sy)}, `D ["1"] | ` +
			refusedError},
		"two in two groups": {[]round{
			upToReady(2, pa("", foreignQuery("1")), bi("", ""), ex("", 0), sy, pa("", foreignQuery("2")), bi("", ""), ex("", 0),
				sy)}, `D ["1"] | D ["2"]`},
		"planned in a group": {[]round{upToReady(1, pa("s", foreignQuery("1")), bi("a", "s"), bi("b", "s"), ex("a", 0), ex("b", 0), sy)}, refusedError},
		"by name beside what asks": {[]round{upToReady(1, pa("s", foreignQuery("1")), sy),
			upToReady(1, q(foreignQuery("2")+"; EXECUTE s"))}, refusedError},
		"by name, once":                 {[]round{upToReady(1, pa("s", foreignQuery("1")), sy), upToReady(1, q("EXECUTE s"))}, `D ["1"]`},
		"what does not ask, in a block": {[]round{upToReady(1, q("BEGIN")), upToReady(1, q(foreignQuery("1"))), upToReady(1, q("SELECT 2"))}, `D ["1"] | D ["2"]`},
		"behind what failed, in a block": {[]round{
			upToReady(1, q("BEGIN")), upToReady(1, q("SAVEPOINT a")), upToReady(1, q(foreignQuery("1 / 0"))), upToReady(1,
				q("ROLLBACK TO a")), upToReady(1, q(foreignQuery("2")))}, `22012 division by zero @0 | ` + refusedError},
	} {
		if got := playRounds(t, p, c.script...); got != c.want {
			t.Errorf("%s: %s\nwant %s", name, got, c.want)
		}
	}
}

// If rows expire at a time, the time must be compared with the start of each statement, not of the whole message. The
// proxy sends such statements separately, and refuses them if it cannot.
func TestStatementsAreSentSeparately(t *testing.T) {
	p := startCommentProxy(t)
	const text = "SELECT set_config('x.y', statement_timestamp()::text, false) IS NULL; SELECT pg_sleep(0.02) IS " +
		"NULL; SELECT statement_timestamp()::text = current_setting('x.y')"
	for situation, want := range map[string]string{
		"":                   `D ["f"] | D ["f"] | D ["t"]`,
		"/*apart*/":          `D ["f"] | D ["f"] | D ["f"]`,
		"/*apart*//*whole*/": "0A000 these statements cannot run in one multi-statement query: what the later ones read may expire while the others run @0",
	} {
		if got := playRounds(t, p, upToReady(1, q(situation+text))); got != want {
			t.Errorf("%s: %s\nwant %s", situation, got, want)
		}
	}
}
