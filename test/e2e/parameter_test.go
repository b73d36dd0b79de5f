package e2e

import (
	"context"
	"testing"

	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// A type that a text may not name cannot be declared by its OID for a parameter either.
func TestDeclaredParameterTypes(t *testing.T) {
	tier.All(t)
	in := start(t,
		options{beforeMigrate: `CREATE DOMAIN public.short AS text CHECK (length(VALUE) < 10); CREATE TYPE public.mood AS ENUM ('calm');
		CREATE FUNCTION public.fits(text) RETURNS boolean LANGUAGE sql AS 'SELECT true'; CREATE DOMAIN public.checked AS text CHECK (public.fits(VALUE));
		CREATE TYPE public.gauge AS (n integer); CREATE FUNCTION public.gauged(public.gauge) RETURNS text LANGUAGE sql AS 'SELECT (1 / $1.n)::text';
		CREATE CAST (public.gauge AS text) WITH FUNCTION public.gauged(public.gauge)`})
	oid := func(name string) uint32 {
		return parseNumber(t, superuserList(t, in, `SELECT oid::text FROM pg_type WHERE typname = '`+name+`'`)[0])
	}
	c := in.agent(t)
	for oid, want := range map[uint32]string{
		0: "", 25: "", 2950: "", 1009: "", 705: "", 28: "", 1011: "", // text, uuid, text[], unknown, xid, xid[]
		5069: "42501", 271: "42501", 5038: "42501", 2970: "42501", // xid8, xid8[], pg_snapshot, txid_snapshot
		oid("short"): "", oid("_short"): "", oid("_mood"): "",
		oid("checked"): "42501", oid("_checked"): "42501",
		oid("gauge"): "42501", oid("_gauge"): "42501", // the statement casts it to text
		4_000_000_000: "42704",
	} {
		_, err := c.Prepare(context.Background(), "", `SELECT $1::text IS NULL`, []uint32{oid})
		if code := codeOf(err); code != want {
			t.Errorf("a parameter of the type with OID %d: SQLSTATE %q, want %q", oid, code, want)
		}
	}
	// age() of a transaction number in a parameter returns the same value as for a literal.
	if a := harness.AskDeclared(c, `SELECT age($1)`, []uint32{28}, []byte("3")); a.Err != "" || a.Results[0].Rows[0] != "2147483647" {
		t.Errorf("age of an xid: %s", a)
	}
	if a := harness.Ask(c, `SELECT 1`); a.Err != "" {
		t.Errorf("the session after refusals: %s", a.Err)
	}
}

// set_config works with parameters as with literals. A parameter of another type, or EXECUTE, cannot set a forbidden
// value.
func TestSettingsByParameters(t *testing.T) {
	c := start(t, options{}).agent(t)
	answerText := func(a harness.Answer) string {
		if a.Err != "" || len(a.Results) != 1 || len(a.Results[0].Rows) != 1 {
			return a.Code + " " + a.Err
		}
		return a.Results[0].Rows[0]
	}
	const setQuery = "SELECT set_config($1, $2, $3)"
	for _, args := range [][]string{{"TimeZone", "Asia/Tokyo", "false"}, {"search_path", "public", "true"}} {
		if got := answerText(harness.AskExtended(c, setQuery, asBytes(args)...)); got != args[1] {
			t.Errorf("set_config of %v: %s", args, got)
		}
	}
	if got := answerText(harness.Ask(c, "SHOW TimeZone")); got != "Asia/Tokyo" {
		t.Errorf("the time zone is %s", got)
	}
	for _, args := range [][]string{{"row_security", "off", "f"}, {"role", "postgres", "t"}, {"pgconsent.seal", "x", "f"}} {
		if a := harness.AskExtended(c, setQuery, asBytes(args)...); a.Code != "42501" {
			t.Errorf("set_config of %v: %v", args, a)
		}
	}
	if _, err := c.Prepare(t.Context(), "s", setQuery, nil); err != nil {
		t.Fatal(err)
	}
	if a := harness.Ask(c, "EXECUTE s ('row_security', 'off', false)"); a.Code != "0A000" {
		t.Errorf("EXECUTE of it: %v", a)
	}
	for _, oid := range []uint32{19, 1042} { // the type name truncates a value, and bpchar ignores trailing blanks
		if _, err := c.Prepare(t.Context(), "", "SELECT set_config($1, $2, false)", []uint32{oid}); codeOf(err) != "42501" {
			t.Errorf("a parameter of the type with OID %d: %v", oid, err)
		}
	}
	if got := answerText(harness.Ask(c, "SHOW row_security")); got != "on" {
		t.Errorf("row security is %s", got)
	}
}

func asBytes(texts []string) (out [][]byte) {
	for _, text := range texts {
		out = append(out, []byte(text))
	}
	return out
}
