package e2e

import (
	"context"
	"testing"

	harness "github.com/pgconsent/pgconsent/test/instance"
)

// psycopg deallocates by SQL what it has prepared by the protocol. The proxy's own prepared statement must survive
// that.
func TestDeallocateOfWireStatements(t *testing.T) {
	in := startForReading(t, options{})
	c := in.agent(t)
	ctx := context.Background()
	const sql = `SELECT count(*) FROM memories WHERE title LIKE $1`
	count := func(name string) (string, string) {
		r := c.ExecPrepared(ctx, name, [][]byte{[]byte("%lake%")}, nil, nil).Read()
		if r.Err != nil {
			return "", codeOf(r.Err)
		}
		return string(r.Rows[0][0]), ""
	}
	for _, name := range []string{"_pg3_0", "kept"} {
		if _, err := c.Prepare(ctx, name, sql, nil); err != nil {
			t.Fatal(err)
		}
	}
	if n, _ := count("_pg3_0"); n != "3" {
		t.Fatalf("prepared: %s", n)
	}
	if a := harness.Ask(c, `DEALLOCATE _pg3_0`); a.Err != "" {
		t.Fatal(a.Err)
	}
	if _, code := count("_pg3_0"); code != "26000" {
		t.Errorf("a deallocated statement answers with SQLSTATE %q", code)
	}
	if n, code := count("kept"); n != "3" {
		t.Errorf("the other statement: %q %s", n, code)
	}
	if a := harness.Ask(c, `DEALLOCATE _pg3_0`); a.Code != "26000" || a.Err != `ERROR 26000: prepared statement "_pg3_0" does not exist|||0||||||` {
		t.Errorf("a second time: %s", a.Err)
	}
	if a := harness.Ask(c, `DEALLOCATE pgconsent_seal`); a.Code != "26000" {
		t.Errorf("the proxy's own statement: %s", a)
	}
	if a := harness.Ask(c, `DEALLOCATE ALL`); a.Err != "" {
		t.Fatal(a.Err)
	}
	if _, code := count("kept"); code != "26000" {
		t.Errorf("after DEALLOCATE ALL: SQLSTATE %q", code)
	}
	if a := harness.Ask(c, `SELECT count(*) > 0 FROM memories`); a.String() != "[?column?] [16] SELECT 1\nt\n" {
		t.Errorf("the session after DEALLOCATE ALL: %s", a)
	}
}
