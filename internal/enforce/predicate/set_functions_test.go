package predicate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// The outermost sets of lookup views become functions where a policy chooses the hashed form, and nothing else does.
func TestWithSetFunctions(t *testing.T) {
	const (
		choice = "CASE WHEN pgconsent_signed.use_hash() THEN "
		other  = " ELSE x.a = ANY (SELECT r1.b FROM pgconsent.h_s_t AS r1) END"
	)
	set := func(name, view, query string) predicate.SetFunction {
		return predicate.SetFunction{Name: catalog.Name{Schema: "pgconsent", Name: name}, LookupView: view, Query: query}
	}
	for _, c := range []struct {
		sql, want string
		functions []predicate.SetFunction
	}{
		{"x.a = ANY (SELECT r1.b FROM pgconsent.h_s_t AS r1)", "x.a = ANY (SELECT r1.b FROM pgconsent.h_s_t AS r1)", nil},
		{choice + "(x.a = ANY (SELECT r1.b FROM pgconsent.h_s_t AS r1)) IS TRUE" + other,
			choice + "(x.a = ANY (SELECT r1.b FROM pgconsent.set1_public_x() AS r1)) IS TRUE" + other,
			[]predicate.SetFunction{set("set1_public_x", "pgconsent.h_s_t", "SELECT r1.* FROM pgconsent.h_s_t AS r1")}},
		{choice + `ROW(x.a, x.b) = ANY (SELECT r1." FROM ", r1.c FROM pgconsent."h_s_ AS )" AS r1 WHERE r1.d = ')' AND r1.e` +
			` = ANY (SELECT r2.f FROM pgconsent.h_s_u AS r2))` + other,
			choice + `ROW(x.a, x.b) = ANY (SELECT r1." FROM ", r1.c FROM pgconsent.set1_public_x() AS r1)` + other,
			[]predicate.SetFunction{set("set1_public_x", `pgconsent."h_s_ AS )"`, `SELECT r1.* FROM pgconsent."h_s_ AS )" AS r1 `+
				`WHERE r1.d = ')' AND r1.e = ANY (SELECT r2.f FROM pgconsent.h_s_u AS r2)`)}},
		{choice + "a = ANY (SELECT r1.b FROM pgconsent.h_s_t AS r1) AND NOT b = ANY (SELECT r2.b FROM pgconsent.h_s_u AS r2)" +
			other + " AND " + choice + "c = ANY (SELECT r3.k FROM pgconsent.materialized_1 AS r3)" + other,
			choice + "a = ANY (SELECT r1.b FROM pgconsent.set1_public_x() AS r1) AND NOT b = " +
				"ANY (SELECT r2.b FROM pgconsent.set2_public_x() AS r2)" + other + " AND " + choice +
				"c = ANY (SELECT r3.k FROM pgconsent.materialized_1 AS r3)" + other,
			[]predicate.SetFunction{set("set1_public_x", "pgconsent.h_s_t", "SELECT r1.* FROM pgconsent.h_s_t AS r1"),
				set("set2_public_x", "pgconsent.h_s_u", "SELECT r2.* FROM pgconsent.h_s_u AS r2")}},
		{choice + "c = ANY ('{1}'::int4[])" + other, choice + "c = ANY ('{1}'::int4[])" + other, nil},
	} {
		got, functions := predicate.WithSetFunctions(c.sql, catalog.Name{Schema: "public", Name: "x"})
		if got != c.want {
			t.Errorf("%s becomes\n%s, not\n%s", c.sql, got, c.want)
		}
		if d := cmp.Diff(c.functions, functions); d != "" {
			t.Errorf("%s: -want +got\n%s", c.sql, d)
		}
	}
}
