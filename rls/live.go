package rls

import (
	"fmt"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// liveSignature is the function that works out the attributes that no credential gives.
const liveSignature = predicate.LiveFunction + "(pg_catalog.text, pg_catalog.text[], pg_catalog.text[])"

// live makes that function. It belongs to the reader, so that it reads the tables as predicates do, past the agent's
// row security, and nothing else. A role that could call it could ask for anybody's attributes: these are the owner of
// attr, which has verified a seal, and the proxy.
func (p *Plan) live() []Statement {
	lives := p.policy.Live()
	if len(lives) == 0 {
		return nil
	}
	const why = "The database works out the attributes that no credential gives, at each statement."
	out := []Statement{
		{SQL: "DROP FUNCTION IF EXISTS " + liveSignature, Why: why},
		{SQL: fmt.Sprintf(`CREATE FUNCTION %s(name pg_catalog.text, claims pg_catalog.text[], settings pg_catalog.text[]) RETURNS pg_catalog.text
LANGUAGE plpgsql STABLE SECURITY DEFINER PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $pgconsent_live$
%s $pgconsent_live$`, predicate.LiveFunction, predicate.LiveBody(lives)), Why: why},
		{SQL: "REVOKE ALL ON FUNCTION " + liveSignature + " FROM PUBLIC", Why: why},
		{SQL: fmt.Sprintf("GRANT USAGE ON SCHEMA %s TO %s", predicate.Schema, p.reader), Why: why},
		{SQL: fmt.Sprintf("GRANT EXECUTE ON FUNCTION pgconsent.claim(pg_catalog.text, pg_catalog.text[]), "+
			"pgconsent_gate.json_grants(pg_catalog.text, pg_catalog.text[]), "+
			"pgconsent_gate.json_ids(pg_catalog.text), pgconsent_gate.jsonb_ids(pg_catalog.jsonb) TO %s", p.reader), Why: why},
	}
	for _, r := range predicate.ShownWhileEmpty(p.liveNodes()) {
		out = append(out, Statement{SQL: fmt.Sprintf("GRANT EXECUTE ON FUNCTION %s() TO %s",
			predicate.EmptyFunction(r.Name).SQL(), p.reader), Why: why})
	}
	return append(out,
		Statement{SQL: "ALTER FUNCTION " + liveSignature + " OWNER TO " + p.reader, Why: why},
		Statement{SQL: fmt.Sprintf(`DO $$ BEGIN EXECUTE (SELECT pg_catalog.format('GRANT EXECUTE ON FUNCTION %s TO %%I, %%I', pg_catalog.pg_get_userbyid(p.proowner), %s)
  FROM pg_catalog.pg_proc AS p WHERE p.oid OPERATOR(pg_catalog.=) 'pgconsent_gate.attr(pg_catalog.text)'::pg_catalog.regprocedure); END $$`,
			liveSignature, catalog.QuoteLiteral(p.controlName)),
			Why: "attr has verified a seal; the proxy asks before it judges a statement."},
	)
}

// liveNodes are what live attributes read.
func (p *Plan) liveNodes() predicate.All {
	var out predicate.All
	for _, l := range p.policy.Live() {
		out = append(out, l.Node())
	}
	return out
}

func (p *Plan) dropLive() []Statement {
	if len(p.policy.Live()) == 0 {
		return nil
	}
	const why = "Take the function that works attributes out away."
	return []Statement{
		{SQL: "DROP FUNCTION IF EXISTS " + liveSignature, Why: why},
		{SQL: fmt.Sprintf("CREATE FUNCTION %s(name pg_catalog.text, claims pg_catalog.text[], settings "+
			"pg_catalog.text[]) RETURNS pg_catalog.text\n"+
			"LANGUAGE sql STABLE PARALLEL RESTRICTED\nRETURN NULL::pg_catalog.text", predicate.LiveFunction), Why: why},
		{SQL: "REVOKE ALL ON FUNCTION " + liveSignature + " FROM PUBLIC", Why: why},
	}
}
