package predicate_test

import (
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
)

// The calls that verify the seal are replaced, but not the same text inside quotes, which may be a constant of the
// policy.
func TestSealInPlan(t *testing.T) {
	const (
		timeCondition = "CASE WHEN pgconsent_signed.plan_time() OPERATOR(pg_catalog.@>) pg_catalog.transaction_timestamp()"
		currentSeal   = "pg_catalog.current_setting('pgconsent.seal', true)"
		user          = "COALESCE(" + timeCondition + " THEN pgconsent_signed.plan_attr('user') OPERATOR(pg_catalog.->>) " + currentSeal +
			" END, pgconsent_signed.attr('user'))"
		wantCondition = "COALESCE(" + timeCondition + " AND pgconsent_signed.plan_seal() OPERATOR(pg_catalog.=) " + currentSeal +
			" THEN true END, pgconsent_signed.sealed())"
	)
	for sql, want := range map[string]string{
		"true": "true",
		"a = (SELECT pgconsent_signed.attr('user'))::uuid": "a = (SELECT " + user + ")::uuid",
		"(SELECT pgconsent_signed.sealed()) AND b":         "(SELECT " + wantCondition + ") AND b",
		"(SELECT pgconsent_signed.sealed()) AND pgconsent_signed.attr('user') = 'pgconsent_signed.attr(''user'')'": "(SELECT " + wantCondition +
			") AND " + user + " = 'pgconsent_signed.attr(''user'')'",
		`"pgconsent_signed.sealed()" = 'pgconsent_signed.sealed()'`: `"pgconsent_signed.sealed()" = 'pgconsent_signed.sealed()'`,
		"CASE WHEN pgconsent_signed.use_hash() THEN a = ANY (SELECT CASE WHEN pgconsent_signed.attr('user') = ' ELSE ' THEN 1 ELSE 2 END) " +
			"ELSE a = pgconsent_signed.attr('user') END": "CASE WHEN pgconsent_signed.use_hash() THEN a = ANY (SELECT CASE WHEN " +
			"pgconsent_signed.attr('user') = ' ELSE ' THEN 1 ELSE 2 END) ELSE a = " + user + " END",
		"pgconsent_signed.attr('user": "pgconsent_signed.attr('user",
	} {
		if got := predicate.WithSealInPlan(sql); got != want {
			t.Errorf("%s becomes\n%s, not\n%s", sql, got, want)
		}
	}
}
