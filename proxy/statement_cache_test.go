package proxy

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

func textVerdict(text, catalog string) *verdict.Verdict {
	return &verdict.Verdict{Text: text, Versions: verdict.Versions{Catalog: catalog}}
}

func TestStatementCache(t *testing.T) {
	c := statementCache{maxStatements: 2}
	find := func(text, catalog string, types []byte, group uint64) (*cachedStatement, bool) {
		return c.findOrAdd(textVerdict(text, catalog), types, group, false)
	}
	if s, _ := find("a", "1", noParameterTypes, 1); s != nil {
		t.Error("a text that comes for the first time is kept prepared")
	}
	a, isNew := find("a", "1", noParameterTypes, 1)
	if a == nil || !isNew {
		t.Fatal("a text that comes again is not kept prepared")
	}
	if s, isNew := find("a", "1", noParameterTypes, 1); s != a || isNew {
		t.Error("it is not there for its own group")
	}
	if s, _ := find("a", "1", noParameterTypes, 2); s != nil {
		t.Error("another group uses it before it is known to be prepared")
	}
	c.confirm(a)
	if s, isNew := find("a", "1", noParameterTypes, 2); s != a || isNew {
		t.Error("another group does not use it")
	}
	if s, isNew := find("a", "1", []byte{0, 1, 0, 0, 0, 23}, 2); s == a || !isNew {
		t.Error("other types of parameters are the same statement")
	} else {
		c.confirm(s)
	}
	found, isNew := find("a", "2", noParameterTypes, 2)
	if found == a || !isNew || a.state != dropped {
		t.Error("it is used after the catalogs have changed")
	}
	c.fail(found)
	if found.state != dropped || len(c.statements) != 1 {
		t.Error("one that could not be prepared stays")
	}
	find("b", "1", noParameterTypes, 3)
	b, _ := find("b", "1", noParameterTypes, 3)
	c.confirm(b)
	find("c", "1", noParameterTypes, 3)
	find("c", "1", noParameterTypes, 3)
	if len(c.statements) != 2 || b.state == dropped {
		t.Errorf("%d statements for two; the one used last is dropped: %t", len(c.statements), b.state == dropped)
	}
	if got := fmt.Sprint(c.namesToClose); got != "[pgconsent_q1 pgconsent_q3 pgconsent_q2]" {
		t.Error("to be closed:", got)
	}
	c.dropAll()
	if len(c.statements) != 0 || c.recent.Len() != 0 || c.textBytes != 0 {
		t.Error("something stays")
	}
	longText := strings.Repeat("x", maxCachedText+1)
	find(longText, "1", noParameterTypes, 3)
	if s, _ := find(longText, "1", noParameterTypes, 3); s != nil {
		t.Error("a long text is kept prepared")
	}
}

func TestCacheIsBoundedByBytes(t *testing.T) {
	c := statementCache{maxStatements: 1000, preparesAtOnce: true}
	for i := range 100 {
		s, isNew := c.findOrAdd(textVerdict(strings.Repeat("x", maxCachedText-100)+fmt.Sprint(i), "1"), noParameterTypes, 1, false)
		if !isNew {
			t.Fatal("not kept prepared")
		}
		c.confirm(s)
	}
	if c.textBytes > maxCachedTexts || len(c.statements) > maxCachedTexts/(maxCachedText-100) {
		t.Errorf("%d bytes in %d statements", c.textBytes, len(c.statements))
	}
}

// preparedByProxyQuery shows the statements that the proxy has prepared in the client's session, and how often the
// server has used each one's generic plan.
const preparedByProxyQuery = "SELECT statement, generic_plans FROM pg_prepared_statements WHERE name ~ '^pgconsent_q' AND statement !~ 'pg_prepared' ORDER BY 1"

// A text that is sent repeatedly is parsed and planned once, in either protocol.
func TestTextsThatComeAgainArePlannedOnce(t *testing.T) {
	conn := startProxy(t).connectRaw(t)
	for range 3 {
		conn.play(t, []round{upToReady(1, q("SELECT 5")), upToReady(1, pa("", "SELECT 6"), bi("", ""), ex("", 0), sy),
			upToReady(1, pa("s", "SELECT 7"), bi("", "s"), ex("", 0), sy), upToReady(1, cl('S', "s"), sy)})
	}
	got := strings.Join(conn.play(t, []round{upToReady(1, q(preparedByProxyQuery))}), "\n")
	for _, text := range []string{"SELECT 5", "SELECT 6", "SELECT 7"} {
		if !strings.Contains(got, `D ["`+text+`" "3"]`) {
			t.Errorf("%s was not planned once for three times:\n%s", text, got)
		}
	}
}

// A Query that must be planned with its literals is parsed once for every five literals, and PostgreSQL has a generic
// plan for none.
func TestTextsWithOtherLiteralsArePlannedEachTime(t *testing.T) {
	conn := startCommentProxy(t).connectRaw(t)
	for i := range 12 {
		got := strings.Join(conn.play(t, []round{upToReady(1, q(fmt.Sprintf("SELECT 1 + /*bound*/%d", i)))}), "\n")
		if !strings.Contains(got, fmt.Sprintf(`D ["%d"]`, 1+i)) || strings.Count(got, "\n") != 3 {
			t.Fatalf("SELECT 1 + %d:\n%s", i, got)
		}
	}
	got := strings.Join(conn.play(t, []round{upToReady(1, q("SELECT statement, generic_plans, custom_plans FROM "+
		"pg_prepared_statements WHERE name ~ '^pgconsent_q' AND statement !~ 'pg_prepared'"))}), "\n")
	if !strings.Contains(got, `D ["SELECT 1 + $1" "0" "2"]`) || strings.Count(got, "D [") != 1 {
		t.Errorf("after twelve runs, five each of two statements that were closed:\n%s", got)
	}
}

// The number of statements that the proxy keeps prepared in a session is limited.
func TestCachedStatementsAreClosed(t *testing.T) {
	conn := startProxy(t).connectRaw(t)
	for i := range 60 {
		conn.play(t, []round{upToReady(1, q(fmt.Sprintf("SELECT %d", i)))})
	}
	got := conn.play(t, []round{upToReady(1, q("SELECT count(*) > 20 FROM pg_prepared_statements WHERE name ~ '^pgconsent_q'"))})
	if !strings.Contains(strings.Join(got, "\n"), `D ["f"]`) {
		t.Error("more than 20 are prepared")
	}
}

// If a cached prepared statement can no longer run, the client still gets the answer to its text.
func TestCachedStatementsThatCannotRun(t *testing.T) {
	p := startProxy(t)
	owner := p.db.Connect(t, "postgres")
	run := func(sql string) {
		t.Helper()
		if _, err := owner.Exec(context.Background(), sql); err != nil {
			t.Fatal(err)
		}
	}
	run("CREATE TABLE changing (a int); INSERT INTO changing VALUES (1); GRANT SELECT ON changing TO wire_agent")
	conn := p.connectRaw(t)
	queryRounds := map[string]round{"Query": upToReady(1, q("SELECT * FROM changing")),
		"extended": upToReady(1, pa("", "SELECT *, 'x' FROM changing"), bi("", ""), de('P', ""), ex("", 0), sy),
		"named":    upToReady(1, cl('S', "s"), pa("s", "SELECT *, 'y' FROM changing"), de('S', "s"), bi("", "s"), ex("", 0), sy)}
	for way, r := range queryRounds {
		for range 2 {
			if got := strings.Join(conn.play(t, []round{r}), "\n"); !strings.Contains(got, `D ["1"`) {
				t.Fatalf("%s: %s", way, got)
			}
		}
	}
	run("ALTER TABLE changing ADD b text DEFAULT 'new'")
	for way, r := range queryRounds {
		if got := strings.Join(conn.play(t, []round{r}), "\n"); !strings.Contains(got, `D ["1" "new"`) {
			t.Errorf("%s, after a change of the table: %s", way, got)
		}
	}
	conn.play(t, []round{upToReady(1, q("BEGIN")), upToReady(1, q("SELECT 1"))})
	run("ALTER TABLE changing ADD c text DEFAULT 'newer'")
	if got := strings.Join(conn.play(t, []round{queryRounds["Query"]}), "\n"); !strings.Contains(got, "E ERROR 40001") {
		t.Errorf("in a transaction that has read before: %s", got)
	}
	conn.play(t, []round{upToReady(1, q("ROLLBACK")), upToReady(1, q("DO $$BEGIN EXECUTE 'DEALLOCATE ALL'; END$$"))})
	for way, r := range queryRounds {
		if got := strings.Join(conn.play(t, []round{r}), "\n"); !strings.Contains(got, `D ["1" "new" "newer"`) {
			t.Errorf("%s, after a function has dropped all prepared statements: %s", way, got)
		}
	}
}
