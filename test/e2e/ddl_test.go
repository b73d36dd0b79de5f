package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/test/tier"
)

// Objects that the owner's DDL opens to PUBLIC are not visible to an agent that sends a statement right after it. The
// statement is decided under the new catalog, or refused so that the client retries. It does not matter how the DDL was
// sent.
func TestDDLIsNoticedBeforeTheNextStatement(t *testing.T) {
	in := start(t, options{refreshInterval: quickRefresh})
	agent := in.agent(t)
	owners := map[string]*pgconn.PgConn{"direct": in.superuserConn(t), "relayed": in.ownerConn(t).PgConn()}
	exec := func(c *pgconn.PgConn, sql string) {
		t.Helper()
		if _, err := c.Exec(t.Context(), sql).ReadAll(); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	ask := func(sql string) (string, string) {
		t.Helper()
		results, err := agent.Exec(t.Context(), sql).ReadAll()
		var code string
		var pg *pgconn.PgError
		if errors.As(err, &pg) {
			code = pg.Code
		} else if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, r := range results {
			for _, row := range r.Rows {
				for _, v := range row {
					b.Write(v)
				}
			}
		}
		return b.String(), code
	}
	attempts := 0
	askUntilAccepted := func(sql string) (text, code string) { // retries as a client does
		t.Helper()
		for start := time.Now(); ; attempts++ {
			if text, code = ask(sql); code != "40001" || time.Since(start) > tier.Patience {
				return text, code
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	for name, owner := range owners {
		for i := range 5 {
			f := fmt.Sprintf("opened_%s_%d", name, i)
			exec(owner, "CREATE FUNCTION public."+f+"(public.memories) RETURNS text LANGUAGE sql AS $$SELECT 'opened'$$")
			text, code := ask("SELECT m." + f + " FROM memories AS m LIMIT 1")
			if strings.Contains(text, "opened") || code != "42703" && code != "42501" && code != "40001" && code != "0A000" {
				t.Errorf("%s: %q, SQLSTATE %s", name, text, code)
			}
			if code == "40001" {
				attempts++
			}
			text, code = askUntilAccepted("SELECT count(*) > 0 FROM memories")
			if text != "t" {
				t.Errorf("%s: the next statement: %q, SQLSTATE %s", name, text, code)
			}
		}
	}
	t.Logf("20 statements were to be tried again %d times", attempts)

	// An open transaction is refused at its next statement after relevant DDL. After DDL that does not concern agents it
	// goes on.
	if _, code := ask("BEGIN; SELECT count(*) FROM memories"); code != "" {
		t.Fatal(code)
	}
	exec(owners["direct"], "CREATE TABLE public.meanwhile (id int)")
	if text, code := ask("SELECT count(*) > 0 FROM memories"); text != "t" {
		t.Errorf("beside a table of others: %q, SQLSTATE %s", text, code)
	}
	exec(owners["direct"], "CREATE INDEX meanwhile_too ON public.memories (id)")
	if _, code := ask("SELECT count(*) FROM memories"); code != "40001" {
		t.Errorf("in a transaction: SQLSTATE %s, want 40001", code)
	}
	ask("ROLLBACK")
	if text, code := askUntilAccepted("SELECT count(*) > 0 FROM memories"); text != "t" {
		t.Errorf("after it: %q, SQLSTATE %s", text, code)
	}
}
